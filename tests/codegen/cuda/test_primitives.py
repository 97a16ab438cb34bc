"""Every primitive of symconv.cuh in its emulated form, against NumPy and the layouts written in the PTX ISA."""
from __future__ import annotations

import numpy as np
import pytest

from symconv.codegen.cuda.emulator import launch_on_arrays
from symconv.codegen.cuda.kernel import CudaKernel, Scalar

MODES = pytest.mark.parametrize("checked", [True, False], ids=["checked", "fast"])


def run(body: str, parameters: str, arrays, checked: bool = True, grid=(1, 1, 1), block=(32, 1, 1), shared: int = 0, scalars=()):
    """Run a kernel with this body on arrays (changed in place); those that hold only zeros count as not yet written."""
    source = f'#include "symconv.cuh"\nextern "C" __global__ void sc_test({parameters}) {{\n{body}\n}}\n'
    kernel = CudaKernel("sc_test", source, grid, block, tuple(range(len(arrays))), tuple(scalars), shared)
    fresh = [number for number, array in enumerate(arrays) if not array.any()]
    launch_on_arrays(kernel, arrays, checked, written=fresh)


def rounded(values, kind: str):
    """Float32 values that the 16-bit kind (or tf32) holds exactly, and their bits."""
    values = np.asarray(values, np.float32)
    if kind == "f16":
        half = values.astype(np.float16)
        return half.astype(np.float32), half.view(np.uint16)
    bits = values.view(np.uint32) & np.uint32(0xffff0000 if kind == "bf16" else 0xffffe000)
    return bits.view(np.float32), (bits >> 16).astype(np.uint16) if kind == "bf16" else bits


@MODES
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_mma_m16n8k16(kind, checked):
    rng = np.random.default_rng(1)
    a, a_bits = rounded(rng.normal(size=(16, 16)), kind)
    b, b_bits = rounded(rng.normal(size=(16, 8)), kind)
    c = rng.normal(size=(16, 8)).astype(np.float32)
    fragments_a, fragments_b = np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32)
    fragments_c = np.zeros((32, 4), np.float32)
    for lane in range(32):  # PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type"
        group, inner = lane >> 2, lane % 4
        for i in range(8):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            column = inner * 2 + (i & 1) + (8 if i >= 4 else 0)
            fragments_a[lane, i // 2] |= np.uint32(a_bits[row, column]) << np.uint32(16 * (i % 2))
        for i in range(4):
            row = inner * 2 + (i & 1) + (8 if i >= 2 else 0)
            fragments_b[lane, i // 2] |= np.uint32(b_bits[row, group]) << np.uint32(16 * (i % 2))
        for i in range(4):
            fragments_c[lane, i] = c[group if i < 2 else group + 8, inner * 2 + (i & 1)]
    result = np.zeros((32, 4), np.float32)
    run(f"""uint32_t fa[4], fb[2]; float fc[4];
    for (int i = 0; i < 4; i++) fa[i] = a[threadIdx.x * 4 + i], fc[i] = c[threadIdx.x * 4 + i];
    for (int i = 0; i < 2; i++) fb[i] = b[threadIdx.x * 2 + i];
    sc_mma_m16n8k16_{kind}(fc, fa, fb);
    for (int i = 0; i < 4; i++) d[threadIdx.x * 4 + i] = fc[i];""",
        "sc_global<float> d, sc_global<const uint32_t> a, sc_global<const uint32_t> b, sc_global<const float> c",
        [result, fragments_a, fragments_b, fragments_c], checked)
    found = np.zeros((16, 8))
    for lane in range(32):
        for i in range(4):
            found[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2] = result[lane, i]
    np.testing.assert_allclose(found, c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64), rtol=2e-7, atol=1e-6)


@MODES
def test_mma_m16n8k8_tf32(checked):
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    wide_a, wide_b = (rounded(values, "tf32")[0].astype(np.float64) for values in (a, b))
    lanes = np.arange(32)
    group, inner = lanes >> 2, lanes % 4
    fragments_a = np.stack([a[group, inner], a[group + 8, inner], a[group, inner + 4], a[group + 8, inner + 4]], 1)
    fragments_b = np.stack([b[inner, group], b[inner + 4, group]], 1)
    result = np.zeros((32, 4), np.float32)
    run("""uint32_t fa[4], fb[2]; float fc[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    for (int i = 0; i < 4; i++) fa[i] = a[threadIdx.x * 4 + i];
    for (int i = 0; i < 2; i++) fb[i] = b[threadIdx.x * 2 + i];
    sc_mma_m16n8k8_tf32(fc, fa, fb);
    for (int i = 0; i < 4; i++) d[threadIdx.x * 4 + i] = fc[i];""",
        "sc_global<float> d, sc_global<const uint32_t> a, sc_global<const uint32_t> b",
        [result, np.ascontiguousarray(fragments_a).view(np.uint32), np.ascontiguousarray(fragments_b).view(np.uint32)], checked)
    product = 1 + wide_a @ wide_b
    wanted = np.stack([product[group, inner * 2], product[group, inner * 2 + 1],
                       product[group + 8, inner * 2], product[group + 8, inner * 2 + 1]], 1)
    np.testing.assert_allclose(result, wanted, rtol=2e-7, atol=1e-6)


@MODES
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_layout(transposed, checked):
    matrices = np.arange(1, 257, dtype=np.uint16).reshape(4, 8, 8)
    result = np.zeros((32, 4), np.uint32)
    run(f"""SC_SHARED(uint16_t, tile, [4 * 64]);
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = x[i];
    sc_barrier();
    uint32_t words[4];
    sc_ldmatrix_x4{"_trans" if transposed else ""}(words, tile + (threadIdx.x / 8 * 64 + threadIdx.x % 8 * 8));
    for (int i = 0; i < 4; i++) d[threadIdx.x * 4 + i] = words[i];""",
        "sc_global<uint32_t> d, sc_global<const uint16_t> x", [result, matrices], checked)
    shown = matrices.transpose(0, 2, 1) if transposed else matrices
    pairs = shown.reshape(4, 32, 2).astype(np.uint32)  # lane l holds elements 2l and 2l + 1 in row-major order
    np.testing.assert_array_equal(result, (pairs[..., 0] | pairs[..., 1] << np.uint32(16)).T)


@MODES
def test_ldmatrix_feeds_mma(checked):
    """A row-major product through shared memory: a as it lies, b transposed on loading, as a GEMM kernel does it."""
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((16, 16), (16, 16)))
    result = np.zeros((16, 16), np.float32)
    run("""SC_SHARED(uint16_t, ta, [16][24]);
    SC_SHARED(uint16_t, tb, [16][24]);
    for (int i = threadIdx.x; i < 256; i += 32) { ta[i / 16][i % 16] = a[i]; tb[i / 16][i % 16] = b[i]; }
    sc_barrier();
    uint32_t fa[4], fb[4]; float left[4] = {}, right[4] = {};
    const int lane = threadIdx.x;
    sc_ldmatrix_x4(fa, ta[lane % 16] + lane / 16 * 8);
    sc_ldmatrix_x4_trans(fb, tb[lane % 16] + lane / 16 * 8);
    const uint32_t first[2] = {fb[0], fb[1]}, second[2] = {fb[2], fb[3]};
    sc_mma_m16n8k16_f16(left, fa, first);
    sc_mma_m16n8k16_f16(right, fa, second);
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        d[row * 16 + column] = left[i];
        d[row * 16 + 8 + column] = right[i];
    }""", "sc_global<float> d, sc_global<const uint16_t> a, sc_global<const uint16_t> b",
        [result, a.view(np.uint16), b.view(np.uint16)], checked)
    np.testing.assert_allclose(result, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-6, atol=2e-6)


@MODES
def test_shuffles_and_ballot(checked):
    result = np.zeros((5, 64), np.int32)
    run("""const int t = threadIdx.x, lane = t % 32, value = 100 + t;
    d[t] = sc_shuffle(value, 3);
    d[64 + t] = sc_shuffle_xor(value, 5);
    d[128 + t] = sc_shuffle_down(value, 4);
    d[192 + t] = sc_shuffle_up(value, 7);
    d[256 + t] = (int)sc_ballot(lane % 3 == 1);""", "sc_global<int> d", [result], checked, block=(64, 1, 1))
    thread = np.arange(64)
    warp, lane = thread // 32 * 32, thread % 32
    wanted = [warp + 3, warp + (lane ^ 5), warp + np.where(lane + 4 < 32, lane + 4, lane),
              warp + np.where(lane >= 7, lane - 7, lane)]
    np.testing.assert_array_equal(result[:4], 100 + np.array(wanted))
    assert (result[4].view(np.uint32) == sum(1 << bit for bit in range(32) if bit % 3 == 1)).all()


@MODES
def test_doubles_are_shuffled_whole(checked):
    result = np.zeros(32)
    run("d[threadIdx.x] = sc_shuffle_xor(1.0 / (1 + threadIdx.x), 1);", "sc_global<double> d", [result], checked)
    np.testing.assert_array_equal(result, 1 / (1.0 + (np.arange(32) ^ 1)))


@MODES
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64"])
def test_atomics(dtype, checked):
    c_type = {"float32": "float", "float64": "double"}.get(dtype, f"{dtype}_t")
    total, extremes = np.full(3, 1, dtype), np.array([5, 5], dtype)
    whole = dtype not in ("float32", "float64")
    body = "sc_atomic_add(total + threadIdx.x % 3, (T)(threadIdx.x + blockIdx.x));".replace("(T)", f"({c_type})")
    if whole:
        body += f"sc_atomic_max(extremes, ({c_type})(threadIdx.x)); sc_atomic_min(extremes + 1, ({c_type})(threadIdx.x));"
    run(body, f"sc_global<{c_type}> total, sc_global<{c_type}> extremes", [total, extremes], checked, grid=(40, 1, 1))
    wanted = np.ones(3)
    for block in range(40):
        np.add.at(wanted, np.arange(32) % 3, np.arange(32) + block)
    np.testing.assert_array_equal(total, wanted)
    if whole:
        np.testing.assert_array_equal(extremes, [31, 0])


@MODES
def test_asynchronous_copies_arrive_group_by_group(checked):
    x, result = np.arange(1, 257, dtype=np.float32), np.zeros(256, np.float32)
    run("""SC_SHARED(float, tile, [2][128]);
    const int at = threadIdx.x * 4;
    sc_cp_async_16(tile[0] + at, x + at);
    sc_cp_async_commit();
    sc_cp_async_16(tile[1] + at, x + 128 + at, threadIdx.x < 30 ? 16 : 8);
    sc_cp_async_commit();
    sc_cp_async_wait<1>();
    sc_barrier();
    d[threadIdx.x] = tile[0][127 - threadIdx.x];
    sc_cp_async_wait<0>();
    sc_barrier();
    for (int i = threadIdx.x; i < 128; i += 32) d[128 + i] = tile[1][i];
    for (int i = 32 + threadIdx.x; i < 128; i += 32) d[i] = 0.0f;""",
        "sc_global<float> d, sc_global<const float> x", [result, x], checked)
    np.testing.assert_array_equal(result[:32], x[:128][::-1][:32])
    wanted = x[128:].copy()
    wanted[[122, 123, 126, 127]] = 0
    np.testing.assert_array_equal(result[128:], wanted)


@MODES
def test_small_asynchronous_copies(checked):
    x, result = np.arange(1, 33, dtype=np.float32), np.zeros(64, np.float32)
    run("""SC_SHARED(float, tile, [64]);
    sc_cp_async_4(tile + threadIdx.x, x + threadIdx.x, threadIdx.x % 2 ? 4 : 0);
    if (threadIdx.x < 16) sc_cp_async_8(tile + 32 + 2 * threadIdx.x, x + 2 * threadIdx.x);
    sc_cp_async_commit();
    sc_cp_async_wait<0>();
    sc_barrier();
    d[threadIdx.x] = tile[threadIdx.x];
    d[32 + threadIdx.x] = tile[32 + threadIdx.x];""", "sc_global<float> d, sc_global<const float> x", [result, x], checked)
    np.testing.assert_array_equal(result[:32], np.where(np.arange(32) % 2, x, 0))
    np.testing.assert_array_equal(result[32:], x)


@MODES
def test_half_floats_convert_as_numpy(checked):
    bits = np.arange(65536, dtype=np.uint16)
    wide, back = np.zeros(65536, np.float32), np.zeros(65536, np.uint16)
    wide[0] = 7  # so that it counts as written
    run("""for (int i = threadIdx.x; i < 65536; i += 32) {
        const float value = sc_load_f16(x[i]);
        w[i] = value;
        b[i] = sc_store_f16(value);
    }""",
        "sc_global<float> w, sc_global<uint16_t> b, sc_global<const uint16_t> x", [wide, back, bits], checked)
    wanted = bits.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(wide, wanted)
    finite = ~np.isnan(wanted)
    np.testing.assert_array_equal(back[finite], bits[finite])


@MODES
def test_tf32_rounds_halves_away_from_zero(checked):
    x = np.random.default_rng(4).normal(size=64).astype(np.float32)
    x[:4] = np.array([0x3f801000, 0x3f800fff, 0xbf801000, 0x3f803000], np.uint32).view(np.float32)
    result = np.zeros(64, np.uint32)
    run("for (int i = threadIdx.x; i < 64; i += 32) d[i] = sc_to_tf32(x[i]);", "sc_global<uint32_t> d, sc_global<const float> x",
        [result, x], checked)
    assert list(result[:4]) == [0x3f802000, 0x3f800000, 0xbf802000, 0x3f804000]
    np.testing.assert_array_less(np.abs(result.view(np.float32) - x), np.abs(x) * 2.0**-11 * 1.001)
    assert not (result & 0x1fff).any()


@MODES
def test_three_dimensional_grids_and_blocks(checked):
    result = np.zeros(2 * 3 * 4 * 5 * 6 * 2, np.int32)
    run("""const int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    d[b * 60 + t] = b * 1000 + t;""", "sc_global<int> d", [result], checked, grid=(2, 3, 4), block=(5, 6, 2))
    np.testing.assert_array_equal(result, (np.arange(24)[:, None] * 1000 + np.arange(60)).ravel())


@MODES
def test_dynamic_shared_memory_and_vectors(checked):
    x, result = np.arange(64, dtype=np.float32) + 1, np.zeros(64, np.float32)
    run("""SC_DYNAMIC_SHARED(float, tile);
    typedef sc_vector<float, 2> pair;
    const pair both = sc_cast<const pair>(x)[threadIdx.x];
    sc_cast<pair>(tile)[31 - threadIdx.x] = both;
    sc_barrier();
    for (int i = threadIdx.x; i < n; i += 32) d[i] = tile[i];""", "sc_global<float> d, sc_global<const float> x, int32_t n",
        [result, x], checked, shared=256, scalars=(Scalar("int32", 64),))
    np.testing.assert_array_equal(result, x.reshape(32, 2)[::-1].ravel())
