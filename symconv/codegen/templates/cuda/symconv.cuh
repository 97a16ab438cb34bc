/* The primitives of generated kernels.  Under NVRTC each is its PTX; on the host each is its emulated form (emulator.h).
   This is the only place with instructions of particular architectures. */
#pragma once

#ifdef __CUDACC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT64_C(number) number##ll
#define UINT64_C(number) number##ull
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 0xffffffffu
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 0xffffffffffffffffull
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif

/* ---- memory ---- */
template <class T> using sc_global = T *;
template <class T> using sc_shared = T *;
#define SC_RESTRICT __restrict__
#define SC_SHARED(type, name, dimensions) __shared__ __align__(128) type name dimensions
#define SC_DYNAMIC_SHARED(type, name) \
    extern __shared__ __align__(128) unsigned char sc_dynamic_shared[]; \
    type *const name = reinterpret_cast<type *>(sc_dynamic_shared)

/* The same memory as elements of another type. */
template <class To, class From> __device__ __forceinline__ To *sc_cast(From *pointer) { return reinterpret_cast<To *>(pointer); }

/* ---- barriers and warps ---- */
__device__ __forceinline__ void sc_barrier() { __syncthreads(); }
__device__ __forceinline__ void sc_warp_barrier() { __syncwarp(); }
template <class T> __device__ __forceinline__ T sc_shuffle(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
template <class T> __device__ __forceinline__ T sc_shuffle_xor(T value, int bits) { return __shfl_xor_sync(0xffffffffu, value, bits); }
template <class T> __device__ __forceinline__ T sc_shuffle_down(T value, int by) { return __shfl_down_sync(0xffffffffu, value, by); }
template <class T> __device__ __forceinline__ T sc_shuffle_up(T value, int by) { return __shfl_up_sync(0xffffffffu, value, by); }
__device__ __forceinline__ uint32_t sc_ballot(bool is_true) { return __ballot_sync(0xffffffffu, is_true); }

/* ---- atomics: the value before ---- */
template <class T> __device__ __forceinline__ T sc_atomic_add(T *at, T value) { return atomicAdd(at, value); }
__device__ __forceinline__ int64_t sc_atomic_add(int64_t *at, int64_t value) {
    return (int64_t)atomicAdd((unsigned long long *)at, (unsigned long long)value);
}
template <class T> __device__ __forceinline__ T sc_atomic_max(T *at, T value) { return atomicMax(at, value); }
template <class T> __device__ __forceinline__ T sc_atomic_min(T *at, T value) { return atomicMin(at, value); }
template <class T> __device__ __forceinline__ T sc_atomic_or(T *at, T value) { return atomicOr(at, value); }
template <class T> __device__ __forceinline__ T sc_atomic_swap(T *at, T expected, T value) { return atomicCAS(at, expected, value); }

/* ---- copies from global to shared memory beside the computation; the first `valid` bytes are copied, the rest becomes 0 ---- */
template <int BYTES> __device__ __forceinline__ void sc_cp_async_ca(void *to, const void *from, int valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "n"(BYTES), "r"(valid) : "memory");
#else
    for (int i = 0; i < BYTES; i++)
        ((unsigned char *)to)[i] = i < valid ? ((const unsigned char *)from)[i] : 0;
#endif
}
template <class To, class From> __device__ __forceinline__ void sc_cp_async_4(To *to, From *from, int valid = 4) {
    sc_cp_async_ca<4>((void *)to, (const void *)from, valid);
}
template <class To, class From> __device__ __forceinline__ void sc_cp_async_8(To *to, From *from, int valid = 8) {
    sc_cp_async_ca<8>((void *)to, (const void *)from, valid);
}
template <class To, class From> __device__ __forceinline__ void sc_cp_async_16(To *to, From *from, int valid = 16) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
                 :: "r"((uint32_t)__cvta_generic_to_shared((void *)to)), "l"((const void *)from), "r"(valid) : "memory");
#else
    if (valid == 16)
        *(uint4 *)to = *(const uint4 *)from;
    else
        sc_cp_async_ca<16>((void *)to, (const void *)from, valid);
#endif
}
__device__ __forceinline__ void sc_cp_async_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}
/* Waits until at most GROUPS_LEFT committed groups of this thread are on their way. */
template <int GROUPS_LEFT> __device__ __forceinline__ void sc_cp_async_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;\n" :: "n"(GROUPS_LEFT) : "memory");
#endif
}

/* ---- matrices: fragments as the PTX ISA lays them out ---- */
/* Four 8x8 matrices of 16-bit elements; lane l brings the address of row l % 8 of matrix l / 8. */
template <class T> __device__ __forceinline__ void sc_ldmatrix_x4(uint32_t (&d)[4], T *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"((uint32_t)__cvta_generic_to_shared((void *)row)) : "memory");
}
template <class T> __device__ __forceinline__ void sc_ldmatrix_x4_trans(uint32_t (&d)[4], T *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"((uint32_t)__cvta_generic_to_shared((void *)row)) : "memory");
}
/* d (16x8) += a (16x16) b (16x8), float accumulators. */
__device__ __forceinline__ void sc_mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void sc_mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* d (16x8) += a (16x8) b (8x8) of tf32 words (see sc_to_tf32). */
__device__ __forceinline__ void sc_mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* Rounds to the nearest tf32, halves away from zero. */
__device__ __forceinline__ uint32_t sc_to_tf32(float value) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(value));
    return bits;
}
#endif

/* ---- numbers ---- */
__device__ __forceinline__ float sc_bits_to_f32(int32_t bits) { return __int_as_float(bits); }
__device__ __forceinline__ int32_t sc_bits_of_f32(float value) { return __float_as_int(value); }
__device__ __forceinline__ float sc_load_f16(uint16_t bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(bits));
    return value;
}
__device__ __forceinline__ uint16_t sc_store_f16(float value) {
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;\n" : "=h"(bits) : "f"(value));
    return bits;
}
__device__ __forceinline__ float sc_load_bf16(uint16_t bits) { return __int_as_float((int32_t)((uint32_t)bits << 16)); }
__device__ __forceinline__ uint16_t sc_store_bf16(float value) {
#if __CUDA_ARCH__ >= 900
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;\n" : "=h"(bits) : "f"(value));
    return bits;
#else
    uint32_t bits = (uint32_t)__float_as_int(value), rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)(value != value ? (bits >> 16) | 0x40 : rounded);
#endif
}
/* Approximations of the special function unit (relative error about 2^-22). */
__device__ __forceinline__ float sc_fast_exp2(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(value));
    return result;
}
__device__ __forceinline__ float sc_fast_reciprocal(float value) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(value));
    return result;
}
/* Fused multiply-add and the products and sums that no compiler may fuse. */
__device__ __forceinline__ float sc_fma(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double sc_fma(double a, double b, double c) { return fma(a, b, c); }
#define SC_DEVICE __device__ __forceinline__
#else
#include "emulator.h"
#endif

/* ---- several elements at once ---- */
#ifdef __CUDACC__
#define SC_LINE_PARAMETER
#define SC_ELEMENT(pointer, index) (pointer)[index]
template <class T> SC_DEVICE bool sc_is_aligned(const T *pointer, int bytes) { return ((size_t)pointer & (bytes - 1)) == 0; }
#endif

/* N elements that are read or written together; their address must be a multiple of their size together. */
template <class T, int N> struct alignas(sizeof(T) * N) sc_vector { T values[N]; };

/* The first `count` of N elements at a pointer; `is_aligned`: in one access where all are wanted. */
template <int N, class T> SC_DEVICE sc_vector<T, N> sc_load_vector(sc_global<const T> from, int count, bool is_aligned SC_LINE_PARAMETER) {
    typedef const sc_vector<T, N> vector;
    if (is_aligned && count == N) return SC_ELEMENT(sc_cast<vector>(from), 0);
    sc_vector<T, N> result = {};
    for (int i = 0; i < N; i++)
        if (i < count) result.values[i] = SC_ELEMENT(from, i);
    return result;
}

/* The same for elements that are `step` apart. */
template <int N, class T, class I> SC_DEVICE sc_vector<T, N> sc_load_strided(sc_global<const T> from, I step, int count SC_LINE_PARAMETER) {
    sc_vector<T, N> result = {};
    for (int i = 0; i < N; i++)
        if (i < count) result.values[i] = SC_ELEMENT(from, i * step);
    return result;
}

/* Writes the first `count` of N elements to an aligned place. */
template <int N, class T> SC_DEVICE void sc_store_vector(sc_global<T> to, const sc_vector<T, N> &from, int count SC_LINE_PARAMETER) {
    typedef sc_vector<T, N> vector;
    if (count == N) {
        SC_ELEMENT(sc_cast<vector>(to), 0) = from;
        return;
    }
    for (int i = 0; i < N; i++)
        if (i < count) SC_ELEMENT(to, i) = from.values[i];
}

/* Two 16-bit elements as one word of a fragment. */
SC_DEVICE uint32_t sc_pack_bits(uint16_t low, uint16_t high) { return (uint32_t)low | (uint32_t)high << 16; }
SC_DEVICE uint32_t sc_pack_f16(float low, float high) { return sc_pack_bits(sc_store_f16(low), sc_store_f16(high)); }
SC_DEVICE uint32_t sc_pack_bf16(float low, float high) { return sc_pack_bits(sc_store_bf16(low), sc_store_bf16(high)); }

/* Entry for the emulator; nothing on the device. */
#ifdef __CUDACC__
#define SC_ENTRY(kernel)
#endif
