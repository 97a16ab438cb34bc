"""The pool of threads under OpenMP's pragmas: every iteration runs once, nested and concurrent regions too."""
from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from symconv.codegen.helpers import with_helpers
from symconv.codegen.kernel import Kernel
from symconv.codegen.toolchain import build

SOURCE = with_helpers("""/* counts iterations of loops of every kind that kernels use */
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int sc_test_loops(void *const *buffers, const int64_t *sizes) {
    int64_t *counts = buffers[0], *numbers = buffers[1];
    const int64_t n = sizes[0], inner = sizes[1], chunk = sizes[2], threads = sizes[3];
    #pragma omp parallel for schedule(static) if (n > 2)
    for (int64_t i = 0; i < n; i++) counts[i]++;
    #pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < n; i++) counts[i] += 10;
    #pragma omp parallel for schedule(dynamic, 3) num_threads(threads)
    for (int64_t i = n - 1; i >= 0; i--) {
        counts[i] += 100;
        if (omp_get_thread_num() >= omp_get_num_threads() || omp_get_thread_num() >= threads) numbers[0]++;
    }
    #pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = 0; i < n; i += chunk) {
        const int64_t end = i + chunk < n ? i + chunk : n;
        #pragma omp parallel for schedule(dynamic)
        for (int64_t j = i * inner; j < end * inner; j++)
            if (j % inner == 0) counts[j / inner] += 1000;
    }
    #pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = 0; i < 37; i++) numbers[1 + i]++;  /* bounds that are constants: GCC begins region and loop in one call */
    return 0;
}
""")


@pytest.fixture(scope="module")
def loops():
    built = build([Kernel("sc_test_loops", SOURCE)])[0]
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)

    def run(n, inner=3, chunk=2, threads=2):
        counts, numbers, sizes = np.zeros(n + 1, np.int64), np.zeros(38, np.int64), np.array([n, inner, chunk, threads])
        pointers = (ctypes.c_void_p * 2)(counts.ctypes.data, numbers.ctypes.data)
        assert function(ctypes.addressof(pointers), sizes.ctypes.data) == 0
        assert numbers[0] == 0
        assert (numbers[1:] == 1).all()
        assert counts[n] == 0
        return counts[:n]

    run.built = built
    return run


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64, 1001])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_iteration_runs_once(loops, n, threads):
    for _ in range(20):
        assert (loops(n, threads=threads) == 1111).all()


def test_callers_at_the_same_time_do_not_disturb_each_other(loops):
    wrong = []

    def work(seed):
        for turn in range(60):
            if not (loops(50 + (seed * 7 + turn) % 90) == 1111).all():
                wrong.append(seed)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
