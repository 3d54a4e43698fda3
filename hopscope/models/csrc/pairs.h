#pragma once

/* Layout of rows in pairs, as the right operand of a product. The dimension that is summed over consists of
   pairs of bf16 (32-bit words), both for VDPBF16PS (products.h) and for AMX (tiles.h). */

#include "vectors.h"

/* Transposes sixteen rows of sixteen words, by swapping blocks of 1, 2, 4 and 8 across the diagonal. */
INLINE void transpose(__m512i x[LANES]) {
    static const __mmask16 SECOND[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    UNROLLED for (int s = 0; s < 4; s++) {
        int step = 1 << s;
        __m512i upper = _mm512_mask_add_epi32(lane, SECOND[s], lane, _mm512_set1_epi32(16 - step));
        __m512i lower = _mm512_mask_add_epi32(
            _mm512_add_epi32(lane, _mm512_set1_epi32(step)), SECOND[s], lane, _mm512_set1_epi32(16));
        UNROLLED for (int i = 0; i < LANES; i++)
            if (!(i & step)) {
                __m512i a = x[i], b = x[i + step];
                x[i] = _mm512_permutex2var_epi32(a, upper, b);
                x[i + step] = _mm512_permutex2var_epi32(a, lower, b);
            }
    }
}

/* Rows as right operand, transposed: pairs[p][i] = (x[i][2p], x[i][2p + 1]), padded with zeros after n to a
   whole vector. */
static inline void pair_numbers(const bf16 *x, long row, int n, int width, int stride, uint32_t *pairs) {
    for (int i = 0; i < n; i += LANES)
        for (int p = 0; p < width / 2; p += LANES) {
            int some = least(LANES, width / 2 - p); /* the last block may be half a one */
            __m512i block[LANES];
            UNROLLED for (int r = 0; r < LANES; r++)
                block[r] = i + r < n
                    ? _mm512_maskz_loadu_epi32(first(some), (const uint32_t *)(x + (i + r) * row) + p)
                    : _mm512_setzero_si512();
            transpose(block);
            UNROLLED for (int c = 0; c < LANES; c++)
                if (c < some) _mm512_storeu_si512(pairs + (p + c) * stride + i, block[c]);
        }
}

/* Rows as right operand, not transposed: pairs[p][d] = (x[2p][d], x[2p + 1][d]); an odd last row is paired
   with zeros. */
INLINE void pair_rows(const bf16 *x, long row, int n, int width, int stride, uint32_t *pairs) {
    __m512i first_lanes = _mm512_set_epi32( /* 0 of the even row, 0 of the odd row, 1 of the even row, ... */
        0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a, 0x290009, 0x280008,
        0x270007, 0x260006, 0x250005, 0x240004, 0x230003, 0x220002, 0x210001, 0x200000);
    __m512i next_lanes = _mm512_add_epi16(first_lanes, _mm512_set1_epi16(LANES));
    for (int i = 0; i < n; i += 2)
        for (int d = 0; d < width; d += 2 * LANES) {
            int both = width - d >= 2 * LANES; /* the last block may be half a one */
            __mmask32 some = both ? ~0u : 0xffff;
            const bf16 *from = x + i * row + d;
            uint32_t *to = pairs + i / 2 * stride + d;
            __m512i even = _mm512_maskz_loadu_epi16(some, from), odd = _mm512_setzero_si512();
            if (i + 1 < n) odd = _mm512_maskz_loadu_epi16(some, from + row);
            _mm512_storeu_si512(to, _mm512_permutex2var_epi16(even, first_lanes, odd));
            if (both) _mm512_storeu_si512(to + LANES, _mm512_permutex2var_epi16(even, next_lanes, odd));
        }
}

/* Prefetches rows that will be needed soon. Addresses beyond the end of a tensor do no harm. */
INLINE void fetch(const bf16 *x, long row, int n, int width) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d < width; d += 2 * LANES) __builtin_prefetch(x + i * row + d);
}
