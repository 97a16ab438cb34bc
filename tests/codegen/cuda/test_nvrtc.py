"""Primitives and templates compiled by NVRTC for every architecture; no GPU is needed. Skipped where NVRTC is not installed."""
from __future__ import annotations

import pytest

from symconv.codegen.cuda.cubin import Resources, read_resources
from symconv.codegen.cuda.kernel import ARCHITECTURES
from symconv.codegen.cuda.nvrtc import compile_kernel, spilled_bytes
from symconv.codegen.cuda.nvrtc_library import find_nvrtc, missing_nvrtc_error
from symconv.errors import BackendError, InternalError

needs_nvrtc = pytest.mark.skipif(find_nvrtc() is None, reason=f"CUDA kernels cannot be compiled: {missing_nvrtc_error()}")

EVERY_PRIMITIVE = """#include "symconv.cuh"
extern "C" __global__ void __launch_bounds__(128) sc_everything(
    sc_global<float> SC_RESTRICT out, sc_global<const float> SC_RESTRICT x, sc_global<int> counts, sc_global<int64_t> wide,
    int64_t n) {
    SC_SHARED(float, tile, [4][128]);
    SC_SHARED(uint16_t, halves, [512]);
    SC_DYNAMIC_SHARED(float, dynamic);
    const int t = threadIdx.x;
    sc_cp_async_16(tile[0] + t * 4, x + t * 4, n > 4 ? 16 : 8);
    sc_cp_async_8(tile[2], x + 2);
    sc_cp_async_4(tile[3], x + 3);
    sc_cp_async_commit();
    sc_cp_async_wait<1>();
    sc_cp_async_wait<0>();
    for (int i = t; i < 512; i += 128) halves[i] = sc_store_f16(x[i]) ^ sc_store_bf16(x[i + 1]);
    sc_barrier();
    sc_warp_barrier();
    uint32_t a[4], b[4];
    sc_ldmatrix_x4(a, halves + t % 32 * 8);
    sc_ldmatrix_x4_trans(b, halves + t % 32 * 8);
    const uint32_t right[2] = {b[0] ^ b[2], b[1] ^ b[3] ^ sc_pack_f16(1.0f, 2.0f) ^ sc_pack_bf16(3.0f, 4.0f)};
    float d[4] = {sc_load_f16(halves[t]), sc_load_bf16(halves[t]), 0.0f, 0.0f};
    sc_mma_m16n8k16_f16(d, a, right);
#ifdef SC_WITH_SM_80
    sc_mma_m16n8k16_bf16(d, a, right);
    const uint32_t words[4] = {sc_to_tf32(d[0]), sc_to_tf32(d[1]), a[2], a[3]};
    sc_mma_m16n8k8_tf32(d, words, right);
#endif
    float sum = sc_shuffle(d[0], 3) + sc_shuffle_xor(d[1], 1) + sc_shuffle_down(d[2], 2) + sc_shuffle_up(d[3], 4);
    sum = sc_fma(sum, sc_fast_exp2(sum), sc_fast_reciprocal(sum)) + (float)sc_ballot(sum > 0.0f) + sc_shuffle_xor((double)sum, 1);
    sc_atomic_add(out, sum);
    sc_atomic_add(counts, 1);
    sc_atomic_max(counts, t);
    sc_atomic_min(counts, -t);
    sc_atomic_or(counts, 4);
    sc_atomic_swap(counts, 1, 2);
    sc_atomic_add(wide, (int64_t)1);
    dynamic[t] = sum + tile[1][t] + sc_bits_to_f32(sc_bits_of_f32(sum) + 1);
    sc_store_vector(out + 4 * t, sc_load_vector<4>(x + 4 * t, 4, sc_is_aligned(x, 16)), 4);
    sc_store_vector(out + 4 * t, sc_load_strided<4>(x, 3, 2), 3);
    out[t] = dynamic[t] + INFINITY + NAN;
}
"""


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_primitive_compiles(arch):
    source = ("#define SC_WITH_SM_80\n" if arch >= 80 else "") + EVERY_PRIMITIVE
    (resources,) = read_resources(compile_kernel(source, arch)).values()
    assert 16 < resources.registers <= 168
    assert resources.local_bytes == 0
    assert 4 * 128 * 4 + 1024 <= resources.shared_bytes < 4 * 128 * 4 + 1024 + 2048  # sm_90 and later keep 1024 bytes


@needs_nvrtc
def test_bfloat16_fragments_are_refused_below_sm_80():
    with pytest.raises(BackendError, match="sc_mma_m16n8k16_bf16"):
        compile_kernel("#define SC_WITH_SM_80\n" + EVERY_PRIMITIVE, 75)


@needs_nvrtc
def test_resources_are_read_from_the_cubin():
    source = """#include "symconv.cuh"
extern "C" __global__ void sc_small(sc_global<float> out) { out[threadIdx.x] = 1.0f; }
extern "C" __global__ void sc_indexed(sc_global<float> out, int n) {
    float values[300];
    for (int i = 0; i < 300; i++) values[i] = i * n;
    out[0] = values[n];
}
extern "C" __global__ void __launch_bounds__(1024) sc_spilling(sc_global<float> out) {
    float sums[150];
    for (int i = 0; i < 150; i++) sums[i] = out[i];
    for (int step = 0; step < 100; step++)
        for (int i = 0; i < 150; i++) sums[i] = sums[i] * sums[(i + 7) % 150] + out[step];
    for (int i = 0; i < 150; i++) out[threadIdx.x * 150 + i] = sums[i];
}
"""
    found = read_resources(compile_kernel(source, 80))
    assert found["sc_small"].registers <= 16
    assert found["sc_small"] == Resources(found["sc_small"].registers, 0, 0)
    assert found["sc_indexed"].local_bytes == 1200
    assert found["sc_spilling"].registers in (63, 64)
    assert found["sc_spilling"].local_bytes > 0
    assert spilled_bytes(source, 80) > 0
    assert spilled_bytes(EVERY_PRIMITIVE, 80) == 0


def test_something_else_is_no_cubin():
    with pytest.raises(InternalError, match="not a 64-bit ELF file"):
        read_resources(b"PTX text")


@needs_nvrtc
def test_the_compilers_words_are_in_the_error(tmp_path):
    with pytest.raises(BackendError, match="identifier \"undefined_name\" is undefined") as found:
        compile_kernel('extern "C" __global__ void sc_wrong(float *x) { x[0] = undefined_name; }', 80)
    assert "sm_80" in str(found.value)
    assert ".cu" in found.value.__notes__[0]


@needs_nvrtc
def test_cubins_come_from_the_cache(monkeypatch):
    source = '#include "symconv.cuh"\nextern "C" __global__ void sc_cached(sc_global<float> out) { out[0] = 1.0f; }\n'
    first = compile_kernel(source, 80)
    monkeypatch.setattr("symconv.codegen.cuda.nvrtc_library.Nvrtc.compile", lambda *_: pytest.fail("it is compiled again"))
    assert compile_kernel(source, 80) == first
    with pytest.raises(pytest.fail.Exception):
        compile_kernel(source, 86)
