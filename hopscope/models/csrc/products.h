#pragma once

/* Products of bf16 matrices: out[r][c] = sum over pairs p of left[r][p] . right[p][c]

   They use the instruction VDPBF16PS, which multiplies two pairs of bf16 and adds both products to a
   float32. So the dimension that is summed over consists of pairs (32-bit words): a left operand has one
   pair for all lanes, a right operand has sixteen columns of pairs. */

#include "pairs.h"

enum { ROWS = 8 }; /* of a tile, at most */

typedef struct { const uint32_t *at; long row, pair; } Left;
typedef struct { const uint32_t *at; long pair; } Right;
typedef struct { float *sums; bf16 *rounded; long row; const bf16 *start; } Out; /* sums or rounded */

INLINE void tile(int rows, int vectors, Left left, Right right, int begin, int end, Out out) {
    __m512 sum[ROWS][4];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++)
            sum[r][v] = out.start ? load(out.start + v * LANES) : all(0);
    for (int p = begin; p < end; p++) {
        __m512bh columns[4];
        UNROLLED for (int v = 0; v < vectors; v++)
            columns[v] = (__m512bh)_mm512_loadu_si512(right.at + p * right.pair + v * LANES);
        UNROLLED for (int r = 0; r < rows; r++) {
            uint32_t pair = left.at[r * left.row + p * left.pair];
            UNROLLED for (int v = 0; v < vectors; v++)
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)_mm512_set1_epi32((int)pair), columns[v]);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++) {
            long place = r * out.row + v * LANES;
            if (out.sums) _mm512_storeu_ps(out.sums + place, sum[r][v]);
            else store(out.rounded + place, sum[r][v]);
        }
}

/* The number of sums computed at once hides the latency of an addition and fits into the registers. */
#define TILE(rows, vectors) \
    static void tile_##rows##_##vectors(Left left, Right right, int begin, int end, Out out) { \
        tile(rows, vectors, left, right, begin, end, out); \
    }
TILE(8, 1) TILE(8, 2) TILE(4, 1) TILE(4, 2) TILE(4, 3) TILE(4, 4) TILE(1, 1) TILE(1, 2) TILE(1, 3) TILE(1, 4)

typedef void Tile(Left, Right, int begin, int end, Out);
static Tile *const EIGHT_ROWS[] = {0, tile_8_1, tile_8_2};
static Tile *const FOUR_ROWS[] = {0, tile_4_1, tile_4_2, tile_4_3, tile_4_4};
static Tile *const ONE_ROW[] = {0, tile_1_1, tile_1_2, tile_1_3, tile_1_4};

static inline void multiply(int rows, int vectors, Left left, Right right, int begin, int end, Out out) {
    for (int v = 0; v < vectors; v += 4) {
        int group = least(4, vectors - v);
        for (int r = 0, step; r < rows; r += step) {
            long place = r * out.row + v * LANES;
            step = group <= 2 && rows - r >= 8 ? 8 : rows - r >= 4 ? 4 : 1;
            Tile *run = (step == 8 ? EIGHT_ROWS : step == 4 ? FOUR_ROWS : ONE_ROW)[group];
            run((Left){left.at + r * left.row, left.row, left.pair},
                (Right){right.at + v * LANES, right.pair}, begin, end,
                (Out){out.sums ? out.sums + place : 0, out.rounded ? out.rounded + place : 0, out.row,
                      out.start ? out.start + v * LANES : 0});
        }
    }
}
