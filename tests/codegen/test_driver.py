"""The C loop over kernels: pointers, errors, times, threads, forks."""
from __future__ import annotations

import ctypes
import os
import time

import numpy as np
import pytest

from symconv.codegen.driver import CompiledProgram
from symconv.codegen.elementwise import elementwise_kernel
from symconv.codegen.kernel import Kernel, Operand
from symconv.codegen.toolchain import build
from symconv.config import config
from symconv.ops.scalar import single
from symconv.target import Target

ADD_NUMBER = Kernel("sc_test_add_number", """/* adds sizes[0] to sizes[1] integers; 7 where the first is negative */
#include <stdint.h>
int sc_test_add_number(void *const *buffers, const int64_t *sizes) {
    int64_t *out = buffers[0];
    const int64_t *in = buffers[1];
    if (in[0] < 0) return 7;
    for (int64_t i = 0; i < sizes[1]; i++) out[i] = in[i] + sizes[0];
    return 0;
}
""")


class Runner:
    """A program over two storages that are given anew with every call."""

    def __init__(self, steps):
        self.storages = (ctypes.c_void_p * 2)()
        self.program = CompiledProgram(steps, self.storages)

    def run(self, arrays, *args, **kwargs):
        self.storages[:len(arrays)] = arrays
        return self.program.run(*args, **kwargs)


def pointers(*arrays):
    return [array.ctypes.data for array in arrays]


@pytest.fixture
def program():
    """Three steps between two storages: y[0:4] = x + 1, y[4:8] = y[0:4] + 10, x = y[4:8] + 100."""
    address = build([ADD_NUMBER])[0].address
    return Runner([(address, [(1, 0), (0, 0)], [1, 4]), (address, [(1, 32), (1, 0)], [10, 4]),
                   (address, [(0, 0), (1, 32)], [100, 4])])


def test_steps_run_in_order_on_offsets(program):
    x, y = np.arange(4), np.zeros(8, np.int64)
    assert program.run(pointers(x, y)) is None
    assert y.tolist() == [1, 2, 3, 4, 11, 12, 13, 14]
    assert x.tolist() == [111, 112, 113, 114]


def test_the_first_error_stops_and_is_told(program):
    x, y = np.array([-5, 0, 0, 0]), np.zeros(8, np.int64)
    assert program.run(pointers(x, y)) == (0, 7)
    assert not y.any()
    x[0] = -1
    assert program.run(pointers(x, y), first=1) is None


def test_a_range_of_steps_and_their_times(program):
    x, y, seconds = np.arange(4), np.zeros(8, np.int64), np.full(3, -1.0)
    assert program.run(pointers(x, y), seconds, last=2) is None
    assert x.tolist() == [0, 1, 2, 3]
    assert (seconds[:2] >= 0).all()
    assert seconds[2] == -1.0


def test_an_empty_program_runs():
    assert Runner([]).run(pointers()) is None


def test_arrays_are_found_by_their_objects(program):
    """The addresses of NumPy arrays are read from the objects whose ids the program is given."""
    address = build([ADD_NUMBER])[0].address
    storages, arrays = (ctypes.c_void_p * 3)(), (ctypes.c_void_p * 2)()
    one = CompiledProgram([(address, [(2, 0), (1, 8)], [5, 3])], storages, arrays, first_array=1)
    for start in (0, 100):
        x, y = np.arange(start, start + 4), np.zeros(3, np.int64)
        arrays[:] = [id(x), id(y)]
        assert one.run() is None
        assert y.tolist() == [start + 6, start + 7, start + 8]


def parallel_program(size):
    """y = x + x with a kernel large enough to use several threads."""
    operand = Operand.contiguous("float32", (size,))
    kernel = elementwise_kernel(single("add", ("float32",) * 2, "float32"), [operand] * 2, [operand], Target(threads=2))
    built = build([kernel])[0]
    return built, Runner([(built.address, [(0, 0), (1, 0), (1, 0)], kernel.sizes)])


def test_a_forked_child_runs_kernels():
    """GNU OpenMP hangs in a child whose parent used its threads, if the child asks for more than one."""
    size = 1 << 18
    _built, program = parallel_program(size)
    x, y = np.ones(size, np.float32), np.zeros(size, np.float32)
    with config.change(threads=2):
        assert program.run(pointers(y, x)) is None
        y[:] = 0
        child = os.fork()
        if child == 0:
            program.run(pointers(y, x))
            os._exit(0 if (y == 2).all() else 1)
        deadline = time.monotonic() + 20
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        if done == (0, 0):
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert done == (child, 0)


def test_a_call_costs_little(program):
    """The whole Python side of a call stays in the range of microseconds."""
    x, y = np.arange(4), np.zeros(8, np.int64)
    storages = pointers(x, y)
    times = []
    for _ in range(300):
        start = time.perf_counter()
        program.run(storages)
        times.append(time.perf_counter() - start)
    assert np.median(times) < 100e-6
