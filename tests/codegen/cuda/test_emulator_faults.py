"""Planted faults of every kind: the emulator finds each, says where, and the process goes on."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from symconv.codegen.cuda.emulator import EmulatorFault, launch_on_arrays
from symconv.codegen.cuda.kernel import CudaKernel, Scalar
from symconv.config import config
from symconv.errors import BackendError, InternalError

BLOCK_SUM = """#include "symconv.cuh"
extern "C" __global__ void __launch_bounds__(128) sc_block_sum(sc_global<float> out, sc_global<const float> x, int32_t n) {
    SC_SHARED(float, parts, [4]);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
    for (int step = 16; step; step /= 2) sum += sc_shuffle_xor(sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    sc_barrier();
    if (threadIdx.x == 0) out[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
}
"""


def run(source: str = BLOCK_SUM, checked: bool = True, **options):
    x, out = np.arange(300, dtype=np.float32).reshape(3, 100), np.zeros(3, np.float32)
    kernel = CudaKernel("sc_block_sum", source, (3, 1, 1), (128, 1, 1), (0, 1), (Scalar("int32", 100),))
    launch_on_arrays(kernel, [out, x], checked, written=(0,), **options)
    return out, x


def fault(old: str, new: str, checked: bool = True, **options) -> EmulatorFault:
    """What the emulator says against the kernel with one text replaced."""
    assert BLOCK_SUM.count(old) == 1
    with pytest.raises(EmulatorFault) as found:
        run(BLOCK_SUM.replace(old, new), checked, **options)
    return found.value


@pytest.mark.parametrize("checked", [True, False])
def test_the_kernel_without_a_fault_is_right(checked):
    out, x = run(checked=checked)
    np.testing.assert_allclose(out, x.sum(1))


FAULTS = {  # what is replaced, by what, what is said, in which line, block and thread
    "global read outside": ("i < n;", "i <= n;",
        "a read of 4 bytes at byte 1200 of argument 1, which has 1200 bytes", 5, (2, 0, 0), (100, 0, 0)),
    "global write outside": ("out[blockIdx.x]", "out[blockIdx.x + 1]",
        "a write of 4 bytes at byte 12 of argument 0, which has 12 bytes",
        9, (2, 0, 0), (0, 0, 0)),
    "global read before": ("x[blockIdx.x * n + i]", "x[(int)(blockIdx.x * n + i) - 1]",
        "at byte -4 of argument 1", 5, (0, 0, 0), (0, 0, 0)),
    "shared outside": ("parts[threadIdx.x / 32] =", "parts[threadIdx.x / 16] =",
        "the index 4 is outside a shared array's dimension of size 4",
        7, (0, 0, 0), (64, 0, 0)),
    "shared through a pointer": ("parts[threadIdx.x / 32] =", "(parts + threadIdx.x / 16)[0] =",
        "a write of 4 bytes at byte 16 of parts, which has 16 bytes", 7, (0, 0, 0), (64, 0, 0)),
    "never written": ("% 32 == 0", "% 64 == 0",
        "byte 4 of parts is read, but nobody has written it", 9, (0, 0, 0), (0, 0, 0)),
    "output read": ("out[blockIdx.x] =", "out[blockIdx.x] +=",
        "byte 0 of argument 0 is read, but nobody has written it", 9, (0, 0, 0), (0, 0, 0)),
    "some threads end": ("float sum = 0.0f;", "float sum = 0.0f; if (threadIdx.x >= 96) return;",
        "waits at a block barrier, but thread (96, 0, 0) has ended", 8, (0, 0, 0), (0, 0, 0)),
    "another barrier": ("    sc_barrier();", "    if (threadIdx.x < 64) sc_barrier(); else\n    sc_barrier();",
        "a divergent barrier: this thread has come to a block barrier in line 9, others wait at one in line 8",
        9, (0, 0, 0), (95, 0, 0)),
    "a lane is missing": ("for (int step", "if (threadIdx.x % 32 != 5) for (int step",
        "at a warp operation", 6, (0, 0, 0), (0, 0, 0)),
    "write after write": ("if (threadIdx.x % 32 == 0) parts", "parts",
        "a race: a write of byte 0 of parts, which thread (31, 0, 0) of this block wrote in line 7",
        7, (0, 0, 0), (0, 0, 0)),
    "read after write": ("    sc_barrier();", "    if (threadIdx.x == 96) parts[0] = parts[3]; sc_barrier();",
        "a race: a write of byte 0 of parts, which thread (0, 0, 0) of this block wrote in line 7",
        8, (0, 0, 0), (96, 0, 0)),
    "write after read": ("    sc_barrier();", "    sc_barrier(); sum = parts[threadIdx.x / 32]; if (!threadIdx.x) parts[3] = 1;",
        "a race: a write of byte 12 of parts, which thread (126, 0, 0) of this block read in line 8",
        8, (0, 0, 0), (0, 0, 0)),
    "two blocks": ("out[blockIdx.x]", "out[0]",
        "which thread (0, 0, 0) of block number 0 wrote in line 9",
        9, (1, 0, 0), (0, 0, 0)),
    "misaligned": ("x[blockIdx.x * n + i]", "sc_cast<const float>(sc_cast<const char>(x) + 2)[i]",
                   "its address is not a multiple of 4", 5, (0, 0, 0), (0, 0, 0)),
    "registers": ("float sum = 0.0f;", "float held[4] = {}, sum = 0.0f; held[n / 25] = 1.0f; sum = held[n / 100];",
                  "the index 4 is outside an array in registers", 4, (0, 0, 0), (0, 0, 0)),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_planted_fault_is_found(kind):
    old, new, said, line, block, thread = FAULTS[kind]
    found = fault(old, new)
    assert said in found.what
    assert (found.kernel, found.line, found.block, found.thread) == ("sc_block_sum", line, block, thread)
    assert isinstance(found, InternalError)
    assert f"line {line}" in str(found)
    assert BLOCK_SUM.replace(old, new).splitlines()[line - 1].strip() in str(found)


DIVERGENT = [name for name in FAULTS if name in ("some threads end", "another barrier", "a lane is missing")]


@pytest.mark.parametrize("kind", DIVERGENT)
def test_the_fast_mode_finds_divergent_barriers_too(kind):
    old, new, said, line, *_ = FAULTS[kind]
    found = fault(old, new, checked=False)
    assert said in found.what
    assert found.line == line


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("code", "said"), [
    ("volatile float big[60000]; big[n] = 1.0f; float sum = 0.0f * big[n];", "the stack of 126976 bytes overflowed"),
    ("float sum = *(volatile float *)(uintptr_t)4096;", "a wild pointer"),
    ("volatile int zero = 0; float sum = 0.0f * (n / zero);", "an integer was divided by zero"),
], ids=["stack", "pointer", "division"])
def test_what_would_end_the_process_is_an_exception(code, said, checked):
    assert said in fault("float sum = 0.0f;", code, checked).what
    np.testing.assert_allclose(run()[0], run(checked=False)[0])  # and the next launch works


def test_a_kernel_that_never_ends_is_given_up():
    found = fault("i += blockDim.x", "i += 0", seconds=0.5)
    assert "has not ended after" in found.what
    assert found.line == 5


@pytest.mark.parametrize("checked", [True, False])
def test_a_loop_that_touches_nothing_is_given_up_too(checked):
    forever = "float sum = 0.0f; volatile int turns = 0; while (turns >= 0) turns = 1;"
    found = fault("float sum = 0.0f;", forever, checked, seconds=0.3)
    assert "has not ended after" in found.what
    np.testing.assert_allclose(run()[0], run(checked=False)[0])


def test_launches_from_several_threads():
    wanted = run()[0]

    def some(checked):
        for _ in range(20):
            np.testing.assert_allclose(run(checked=checked)[0], wanted)
            with pytest.raises(EmulatorFault):
                run(BLOCK_SUM.replace("i < n;", "i <= n;"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, [True, False, True, False]))


def test_a_c_compiler_without_cxx_is_named(tmp_path):
    compiler = tmp_path / "only-c"
    compiler.write_text("""#!/bin/sh
case "$*" in *'-x c++'*) echo "cannot execute 'cc1plus'" >&2; exit 1;; esac
exec cc "$@"
""")
    compiler.chmod(0o755)
    settings = config.change(compiler=str(compiler), cache_dir=str(tmp_path / "cache"))
    with settings, pytest.raises(BackendError, match=r"apt install g\+\+"):
        run()


def simple(body: str, parameters: str, arrays, written=(0,), block: int = 64):
    source = f'#include "symconv.cuh"\nextern "C" __global__ void sc_simple({parameters}) {{\n{body}\n}}\n'
    kernel = CudaKernel("sc_simple", source, (1, 1, 1), (block, 1, 1), tuple(range(len(arrays))))
    launch_on_arrays(kernel, arrays, written=written)


COPY = """SC_SHARED(float, tile, [2][64]);
sc_cp_async_4(tile[0] + threadIdx.x, x + threadIdx.x);
sc_cp_async_commit();
{middle}
out[threadIdx.x] = tile[0][threadIdx.x ^ {other}];"""


@pytest.mark.parametrize(("middle", "other", "said"), [
    ("sc_cp_async_wait<0>();", 0, ""),
    ("sc_cp_async_wait<0>(); sc_barrier();", 1, ""),
    ("", 0, "before the sc_cp_async of line 4 has been waited for"),
    ("sc_cp_async_wait<1>();", 0, "before the sc_cp_async of line 4 has been waited for"),
    ("sc_cp_async_wait<0>();", 1, "byte 4 of tile is read, but nobody has written it"),
    ("sc_barrier(); sc_cp_async_wait<0>();", 1, "before the sc_cp_async"),
    ("sc_cp_async_wait<0>(); sc_barrier(); const float old = tile[0][threadIdx.x]; "
     "sc_cp_async_4(tile[0] + (threadIdx.x ^ 32), x + threadIdx.x); sc_cp_async_commit(); sc_cp_async_wait<0>(); sc_barrier();", 0,
     "a race: a read of byte 124 of tile, which thread (63, 0, 0) of this block wrote in line 6"),
], ids=["own", "all", "no wait", "one group left", "no barrier", "barrier first", "overwritten while read"])
def test_asynchronous_copies_must_be_waited_for(middle, other, said):
    arrays = [np.zeros(64, np.float32), np.arange(64, dtype=np.float32)]
    body = COPY.format(middle=middle, other=other)
    if not said:
        simple(body, "sc_global<float> out, sc_global<const float> x", arrays)
        np.testing.assert_array_equal(arrays[0], arrays[1][np.arange(64) ^ other])
        return
    with pytest.raises(EmulatorFault) as found:
        simple(body, "sc_global<float> out, sc_global<const float> x", arrays)
    assert said in found.value.what


@pytest.mark.parametrize(("body", "said"), [
    ("sc_cp_async_16(tile + 1, x);", "not a multiple of 16"),
    ("sc_cp_async_16(tile, x + 1);", "not a multiple of 16"),
    ("sc_cp_async_16(tile, x + 60, 16); sc_cp_async_16(tile + 4, x + 64);", "a read of 16 bytes at byte 256 of argument 1"),
    ("sc_cp_async_16(tile + 64, x);", "an sc_cp_async of 16 bytes at byte 256 of tile, which has 256 bytes"),
    ("sc_cp_async_16(x, x);", "which is not shared memory"),
])
def test_asynchronous_copies_stay_inside(body, said):
    arrays = [np.zeros(64, np.float32), np.arange(64, dtype=np.float32)]
    with pytest.raises(EmulatorFault) as found:
        simple(f"SC_SHARED(float, tile, [64]);\n{body}", "sc_global<float> out, sc_global<const float> x", arrays, block=1)
    assert said in found.value.what


def test_a_warp_barrier_orders_lanes_of_one_warp_only():
    body = """SC_SHARED(float, tile, [64]);
    tile[threadIdx.x] = 1.0f;
    sc_warp_barrier();
    out[threadIdx.x] = tile[threadIdx.x ^ {distance}];"""
    out = np.zeros(64, np.float32)
    simple(body.format(distance=1), "sc_global<float> out", [out])
    assert out.all()
    with pytest.raises(EmulatorFault, match="nobody has written it"):
        simple(body.format(distance=32), "sc_global<float> out", [out])


def test_a_shuffle_orders_nothing():
    body = """SC_SHARED(float, tile, [64]);
    tile[threadIdx.x] = sc_shuffle_xor(1.0f, 1);
    out[threadIdx.x] = sc_shuffle_xor(tile[threadIdx.x ^ 1] + 0.0f, 1);"""
    with pytest.raises(EmulatorFault, match=r"a race|nobody has written"):
        simple(body, "sc_global<float> out", [np.zeros(64, np.float32)])


def test_atomics_race_with_plain_accesses_only():
    total = np.ones(1, np.float32)
    simple("sc_atomic_add(total, 1.0f);", "sc_global<float> total", [total], ())
    assert total[0] == 65
    with pytest.raises(EmulatorFault, match="a race: an atomic update"):
        simple("if (threadIdx.x == 0) total[0] = 1.0f; sc_atomic_add(total, 1.0f);", "sc_global<float> total", [total], ())
    with pytest.raises(EmulatorFault, match="a race: a write"):
        simple("sc_atomic_add(total, 1.0f); if (threadIdx.x == 63) total[0] = 2.0f;", "sc_global<float> total", [total], ())


def test_matrices_need_a_whole_warp():
    with pytest.raises(EmulatorFault, match="a warp of 16 threads at an operation of 32"):
        simple("float d[4] = {}; uint32_t a[4] = {}, b[2] = {}; sc_mma_m16n8k16_f16(d, a, b);", "sc_global<float> out",
               [np.zeros(1, np.float32)], block=16)


def test_launch_bounds_are_kept():
    kernel = CudaKernel("sc_block_sum", BLOCK_SUM, (1, 1, 1), (256, 1, 1), (0, 1), (Scalar("int32", 1),))
    with pytest.raises(EmulatorFault, match="a block of 256 threads, but the kernel is bound to 128"):
        launch_on_arrays(kernel, [np.zeros(1, np.float32), np.zeros(1, np.float32)])


def test_too_much_shared_memory():
    source = '#include "symconv.cuh"\nextern "C" __global__ void sc_big() {\nSC_DYNAMIC_SHARED(float, tile);\n}\n'
    kernel = CudaKernel("sc_big", source, (1, 1, 1), (1, 1, 1), (), (), 300000)
    with pytest.raises(EmulatorFault, match="300000 bytes of shared memory in one block"):
        launch_on_arrays(kernel, [])


def test_grids_outside_the_limits_are_refused():
    with pytest.raises(InternalError, match="outside CUDA's limits"):
        CudaKernel("sc_x", "", (1, 65536, 1), (1, 1, 1), ())
    with pytest.raises(InternalError, match="the limits are 1024 in all"):
        CudaKernel("sc_x", "", (1, 1, 1), (1025, 1, 1), ())
