/* ldmatrix and mma.sync with the fragment layouts of the PTX ISA ("Matrix multiply-accumulate operation using mma instruction",
   "Warp-level matrix load instruction").  Products are exact in double and summed there, then rounded once to float: the
   hardware's own order of summation is not documented. */
#pragma once

struct sc_matrix_row { uint16_t row[8]; uint32_t result[4]; };

/* Lane l gets of matrix j the elements 2 (l % 4) and the next of row l / 4; transposed: of column l / 4. */
template <bool TRANSPOSED> static void sc_spread_rows(void *const *lanes, int n) {
    for (int lane = 0; lane < n; lane++)
        for (int j = 0; j < 4; j++) {
            int outer = lane / 4, inner = lane % 4 * 2;
            const sc_matrix_row *first = (sc_matrix_row *)lanes[8 * j + (TRANSPOSED ? inner : outer)];
            const sc_matrix_row *second = (sc_matrix_row *)lanes[8 * j + (TRANSPOSED ? inner + 1 : outer)];
            uint32_t low = first->row[TRANSPOSED ? outer : inner], high = second->row[TRANSPOSED ? outer : inner + 1];
            ((sc_matrix_row *)lanes[lane])->result[j] = low | high << 16;
        }
}
struct alignas(16) sc_row_bits { uint16_t values[8]; };
template <bool TRANSPOSED, class P> static inline void sc_load_matrices(uint32_t (&d)[4], P row, int line) {
    sc_matrix_row lane;
#ifdef SC_CHECKED
    const sc_row_bits bits = sc_cast<const sc_row_bits>(row)[sc_index(0, line)];
#else
    const sc_row_bits bits = *sc_cast<const sc_row_bits>(row);
#endif
    memcpy(lane.row, bits.values, 16);
    sc_warp_do(sc_spread_rows<TRANSPOSED>, &lane, line, 0, 1);
    memcpy(d, lane.result, 16);
}
template <class P> static inline void sc_ldmatrix_x4(uint32_t (&d)[4], P row, SC_LINE) { sc_load_matrices<false>(d, row, line); }
template <class P> static inline void sc_ldmatrix_x4_trans(uint32_t (&d)[4], P row, SC_LINE) { sc_load_matrices<true>(d, row, line); }

struct sc_fragments { float *d; const uint32_t *a, *b; };

static inline float sc_f16_of(uint32_t word, int half) { return sc_load_f16((uint16_t)(word >> 16 * half)); }
static inline float sc_bf16_of(uint32_t word, int half) { return sc_load_bf16((uint16_t)(word >> 16 * half)); }

/* d += a b of the gathered matrices; lane 4 g + t holds d at rows g and g + 8, columns 2 t and 2 t + 1. */
template <int K> static inline void sc_multiply(void *const *lanes, const float (&a)[16][K], const float (&b)[K][8]) {
    double sums[16][8];
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++)
            sums[row][column] = ((sc_fragments *)lanes[row % 8 * 4 + column / 2])->d[row / 8 * 2 + column % 2];
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < K; k++)
            for (int column = 0; column < 8; column++)
                sums[row][column] += (double)a[row][k] * b[k][column];
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++)
            ((sc_fragments *)lanes[row % 8 * 4 + column / 2])->d[row / 8 * 2 + column % 2] = (float)sums[row][column];
}
/* Word w of a holds row g + 8 (w % 2), columns 2 t + 8 (w / 2) and the next; word w of b rows 2 t + 8 w and the next, column g. */
template <float (*VALUE)(uint32_t, int)> static void sc_multiply_16(void *const *lanes, int) {
    float a[16][16], b[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const sc_fragments *own = (sc_fragments *)lanes[lane];
        int g = lane / 4, t = lane % 4;
        for (int half = 0; half < 2; half++) {
            for (int w = 0; w < 4; w++) a[g + 8 * (w % 2)][2 * t + 8 * (w / 2) + half] = VALUE(own->a[w], half);
            for (int w = 0; w < 2; w++) b[2 * t + 8 * w + half][g] = VALUE(own->b[w], half);
        }
    }
    sc_multiply<16>(lanes, a, b);
}
/* Word w of a holds row g + 8 (w % 2), column t + 4 (w / 2); word w of b row t + 4 w, column g. The low 13 bits are not looked at. */
static void sc_multiply_8(void *const *lanes, int) {
    float a[16][8], b[8][8];
    for (int lane = 0; lane < 32; lane++) {
        const sc_fragments *own = (sc_fragments *)lanes[lane];
        int g = lane / 4, t = lane % 4;
        for (int w = 0; w < 4; w++) a[g + 8 * (w % 2)][t + 4 * (w / 2)] = sc_bits_to_f32((int32_t)(own->a[w] & 0xffffe000));
        for (int w = 0; w < 2; w++) b[t + 4 * w][g] = sc_bits_to_f32((int32_t)(own->b[w] & 0xffffe000));
    }
    sc_multiply<8>(lanes, a, b);
}
#define SC_MMA(name, work) \
    static inline void name(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], SC_LINE) { \
        sc_fragments lane = {d, a, b}; \
        sc_warp_do(work, &lane, line, 0, 1); \
    }
SC_MMA(sc_mma_m16n8k16_f16, sc_multiply_16<sc_f16_of>)
SC_MMA(sc_mma_m16n8k16_bf16, sc_multiply_16<sc_bf16_of>)
SC_MMA(sc_mma_m16n8k8_tf32, sc_multiply_8)
