/* The host form of the primitives: a kernel's text compiled with this runs on the emulator, one CUDA thread after the other.
   With SC_CHECKED pointers are objects that report every access, with its line. */
#pragma once
#include <string.h>
extern "C" {
#include "emulator_interface.h"
}

/* What kernels use of math.h, which takes longer to read than all the rest. */
#define SC_UNARY(name) extern "C" double name(double); extern "C" float name##f(float);
#define SC_BINARY(name) extern "C" double name(double, double); extern "C" float name##f(float, float);
SC_UNARY(fabs) SC_UNARY(floor) SC_UNARY(ceil) SC_UNARY(trunc) SC_UNARY(rint) SC_UNARY(round) SC_UNARY(sqrt) SC_UNARY(cbrt)
SC_UNARY(exp) SC_UNARY(exp2) SC_UNARY(expm1) SC_UNARY(log) SC_UNARY(log2) SC_UNARY(log10) SC_UNARY(log1p)
SC_UNARY(sin) SC_UNARY(cos) SC_UNARY(tan) SC_UNARY(asin) SC_UNARY(acos) SC_UNARY(atan)
SC_UNARY(sinh) SC_UNARY(cosh) SC_UNARY(tanh) SC_UNARY(erf) SC_UNARY(erfc) SC_UNARY(lgamma)
SC_BINARY(pow) SC_BINARY(fmod) SC_BINARY(atan2) SC_BINARY(copysign) SC_BINARY(fmin) SC_BINARY(fmax) SC_BINARY(hypot)
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define __global__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __device__
#define SC_DEVICE static inline
#define SC_RESTRICT
#define SC_LINE_PARAMETER , int line = __builtin_LINE()
#define SC_LINE int line = __builtin_LINE()

/* The state of the running CUDA thread stands at the top of its stack. */
static inline sc_thread *sc_current() {
    uintptr_t top = ((uintptr_t)__builtin_frame_address(0) | (SC_STACK_BYTES - 1)) + 1;
    return *(sc_thread **)(top - sizeof(sc_thread *));
}
#define threadIdx (sc_current()->index)
#define blockIdx (sc_current()->block)
#define blockDim (sc_current()->block_size)
#define gridDim (sc_current()->grid_size)

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b) { return b < a ? b : a; }
template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b) { return a < b ? b : a; }

#ifdef SC_CHECKED
/* Called by code that -fsanitize=bounds adds: an index outside an array of known size, such as one in registers. */
struct sc_bounds { const char *file; uint32_t line, column; };
extern "C" __attribute__((visibility("hidden"), noinline)) void __ubsan_handle_out_of_bounds(void *place, void *index) {
    sc_current()->services->outside(sc_current(), (ptrdiff_t)index, 0, (int)((const sc_bounds *)place)->line);
}
#include "emulator_pointers.h"
#else
template <class T> using sc_global = T *;
template <class T> using sc_shared = T *;
#define SC_ELEMENT(pointer, index) (pointer)[index]
template <class T> static inline bool sc_is_aligned(const T *pointer, int bytes) { return (uintptr_t)pointer % (uintptr_t)bytes == 0; }
template <class To, class From> static inline To *sc_cast(From *pointer) { return (To *)pointer; }
template <class T> static inline sc_argument sc_argument_of(T *pointer) { return {(char *)pointer, nullptr}; }
template <class T> static inline T *sc_place_for_atomic(T *pointer, int) { return pointer; }
#define SC_SHARED(type, name, dimensions) \
    typedef type name##_type dimensions; \
    name##_type &name = *(name##_type *)sc_current()->services->shared(sc_current(), __COUNTER__, sizeof(name##_type), sizeof(type), #name, __LINE__).at
#define SC_DYNAMIC_SHARED(type, name) \
    type *const name = (type *)sc_current()->services->shared(sc_current(), -1, 0, sizeof(type), #name, __LINE__).at
#endif

/* ---- barriers and warps ---- */
static inline void sc_barrier(SC_LINE) { sc_current()->services->barrier(sc_current(), line); }
static inline void sc_warp_do(sc_warp_work work, void *lane, int line, int orders = 0, int whole = 0) {
    sc_current()->services->warp(sc_current(), line, orders, whole, work, lane);
}
static void sc_nothing(void *const *, int) {}
static inline void sc_warp_barrier(SC_LINE) { sc_warp_do(sc_nothing, nullptr, line, 1); }

/* A lane whose source is outside the warp keeps its own value, as the hardware does. */
template <class T> struct sc_shuffled { T value, result; int from; };
template <class T> static void sc_exchange(void *const *lanes, int n) {
    for (int lane = 0; lane < n; lane++) {
        sc_shuffled<T> *mine = (sc_shuffled<T> *)lanes[lane];
        mine->result = ((sc_shuffled<T> *)lanes[mine->from >= 0 && mine->from < n ? mine->from : lane])->value;
    }
}
static inline int sc_lane() {
    const sc_thread *t = sc_current();
    return (int)((t->index.x + t->block_size.x * (t->index.y + t->block_size.y * t->index.z)) % SC_WARP);
}
template <class T> static inline T sc_from_lane(T value, int from, int line) {
    sc_shuffled<T> lane = {value, value, from};
    sc_warp_do(sc_exchange<T>, &lane, line);
    return lane.result;
}
template <class T> static inline T sc_shuffle(T value, int lane, SC_LINE) { return sc_from_lane(value, lane & (SC_WARP - 1), line); }
template <class T> static inline T sc_shuffle_xor(T value, int bits, SC_LINE) { return sc_from_lane(value, sc_lane() ^ bits, line); }
template <class T> static inline T sc_shuffle_down(T value, int by, SC_LINE) { return sc_from_lane(value, sc_lane() + by, line); }
template <class T> static inline T sc_shuffle_up(T value, int by, SC_LINE) { return sc_from_lane(value, sc_lane() - by, line); }
struct sc_vote { uint32_t is_true, result; };
static void sc_count_votes(void *const *lanes, int n) {
    uint32_t votes = 0;
    for (int lane = 0; lane < n; lane++) votes |= ((sc_vote *)lanes[lane])->is_true << lane;
    for (int lane = 0; lane < n; lane++) ((sc_vote *)lanes[lane])->result = votes;
}
static inline uint32_t sc_ballot(bool is_true, SC_LINE) {
    sc_vote vote = {is_true, 0};
    sc_warp_do(sc_count_votes, &vote, line);
    return vote.result;
}

/* ---- atomics: blocks run on several threads of the machine, so a compare-and-swap loop makes them whole ---- */
template <int BYTES> struct sc_word;
template <> struct sc_word<4> { typedef uint32_t type; };
template <> struct sc_word<8> { typedef uint64_t type; };
template <class T, class Update> static inline T sc_update(T *at, Update update) {
    typedef typename sc_word<sizeof(T)>::type word;
    word before = __atomic_load_n((word *)at, __ATOMIC_RELAXED), after;
    T value;
    do {
        memcpy(&value, &before, sizeof(T));
        T changed = update(value);
        memcpy(&after, &changed, sizeof(T));
    } while (!__atomic_compare_exchange_n((word *)at, &before, after, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return value;
}
#define SC_ATOMIC(name, expression) \
    template <class P, class V> static inline auto name(P pointer, V given, SC_LINE) -> typename sc_element<P>::type { \
        typedef typename sc_element<P>::type T; \
        const T value = (T)given; \
        return sc_update(sc_place_for_atomic(pointer, line), [=](T now) -> T { return expression; }); \
    }
template <class P> struct sc_element;
template <class T> struct sc_element<T *> { typedef T type; };
#ifdef SC_CHECKED
template <class T, bool S> struct sc_element<sc_pointer<T, S>> { typedef T type; };
#endif
SC_ATOMIC(sc_atomic_add, (T)(now + value))
SC_ATOMIC(sc_atomic_max, now > value ? now : value)
SC_ATOMIC(sc_atomic_min, now < value ? now : value)
SC_ATOMIC(sc_atomic_or, (T)(now | value))
template <class P, class V> static inline auto sc_atomic_swap(P pointer, V expected, V value, SC_LINE) -> typename sc_element<P>::type {
    typedef typename sc_element<P>::type T;
    return sc_update(sc_place_for_atomic(pointer, line), [=](T now) -> T { return now == (T)expected ? (T)value : now; });
}

/* ---- asynchronous copies ---- */
#define SC_CP_ASYNC(name, bytes) \
    template <class To, class From> static inline void name(To to, From from, int valid = bytes, SC_LINE) { \
        sc_current()->services->copy(sc_current(), sc_argument_of(to), sc_argument_of(from), bytes, valid, line); \
    }
SC_CP_ASYNC(sc_cp_async_4, 4)
SC_CP_ASYNC(sc_cp_async_8, 8)
SC_CP_ASYNC(sc_cp_async_16, 16)
static inline void sc_cp_async_commit() { sc_current()->services->commit(sc_current()); }
template <int GROUPS_LEFT> static inline void sc_cp_async_wait() { sc_current()->services->wait(sc_current(), GROUPS_LEFT); }

/* ---- numbers ---- */
static inline float sc_bits_to_f32(int32_t bits) { float value; memcpy(&value, &bits, 4); return value; }
static inline int32_t sc_bits_of_f32(float value) { int32_t bits; memcpy(&bits, &value, 4); return bits; }
static inline float sc_load_bf16(uint16_t bits) { return sc_bits_to_f32((int32_t)((uint32_t)bits << 16)); }
static inline uint16_t sc_store_bf16(float x) {
    uint32_t bits = (uint32_t)sc_bits_of_f32(x), rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)(x != x ? (bits >> 16) | 0x40 : rounded);
}
static inline float sc_load_f16(uint16_t bits) {
    float size = sc_bits_to_f32((int32_t)((uint32_t)(bits & 0x7fff) << 13)) * 5.192296858534828e33f;
    uint32_t raw = (uint32_t)sc_bits_of_f32(size);
    raw = (bits & 0x7c00) == 0x7c00 ? raw | 0x7f800000 : raw;
    return sc_bits_to_f32((int32_t)(raw | (uint32_t)(bits & 0x8000) << 16));
}
static inline uint16_t sc_store_f16(float x) {
    uint32_t bits = (uint32_t)sc_bits_of_f32(x), size = bits & 0x7fffffff;
    uint32_t tiny = (uint32_t)sc_bits_of_f32(sc_bits_to_f32((int32_t)size) + 0.5f) - 0x3f000000;
    uint32_t normal = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
    uint32_t result = size < 0x38800000 ? tiny : normal;
    result = size >= 0x477ff000 ? 0x7c00 : result;
    result = size > 0x7f800000 ? 0x7e00 : result;
    return (uint16_t)(result | (bits >> 16 & 0x8000));
}
/* Rounds to the nearest tf32, halves away from zero. */
static inline uint32_t sc_to_tf32(float value) {
    uint32_t bits = (uint32_t)sc_bits_of_f32(value);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}
static inline float sc_fast_exp2(float value) { return exp2f(value); }
static inline float sc_fast_reciprocal(float value) { return 1.0f / value; }
static inline float sc_fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline double sc_fma(double a, double b, double c) { return fma(a, b, c); }

#include "emulator_matrices.h"

/* ---- the function that the emulator calls for each thread ---- */
template <int... I> struct sc_numbers {};
template <int N, int... I> struct sc_count : sc_count<N - 1, N - 1, I...> {};
template <int... I> struct sc_count<0, I...> { typedef sc_numbers<I...> type; };
template <class... A, int... I> static inline void sc_unpack(void (*kernel)(A...), void **arguments, sc_numbers<I...>) {
    kernel(*(A *)arguments[I]...);
}
template <class... A> static inline void sc_call(void (*kernel)(A...), void **arguments) {
    sc_unpack(kernel, arguments, typename sc_count<sizeof...(A)>::type());
}
#define SC_ENTRY(kernel) extern "C" __attribute__((visibility("default"))) void sc_entry_##kernel(void **arguments) { sc_call(kernel, arguments); }
