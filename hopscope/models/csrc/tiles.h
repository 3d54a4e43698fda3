#pragma once

/* Products of bf16 matrices with AMX: sums[m][n] = sum over pairs p of left[m][p] . right[p][n]

   The processor has eight tiles of 16 rows of 64 bytes. The instruction TDPBF16PS multiplies 16 rows of 16
   pairs (left) with 16 pairs of 16 columns (right), and adds to 16 x 16 sums. Four tiles contain the sums of
   a square of 32 x 32, two the left operand and two the right, so that each loaded tile is used twice. Left
   operands are rows, right operands are pairs as in pairs.h.

   A separate unit multiplies tiles. Meanwhile the rest of the processor finishes the previous square: `Finish`
   adds a bias to a row of sums and rounds it, or does something else with it. */

#include "pairs.h"

#if defined(__x86_64__) && __has_include(<amxbf16intrin.h>) /* gcc 11 or later */
#define WITH_TILES 1

enum { SIDE = 2 * LANES, STEP = 2 * LANES }; /* SIDE: of a square; STEP: numbers that one instruction sums over */

/* Used instead of the compiler's intrinsics, which do not declare that they read memory. */
#define LOAD_TILE(tile, from, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((long)(stride)) : "memory")
#define STORE_TILE(tile, to, stride) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((long)(stride)) : "memory")
#define CLEAR_TILE(tile) __asm__ volatile("tilezero %tmm" #tile)
#define MULTIPLY_TILES(sums, left, right) \
    __asm__ volatile("tdpbf16ps %tmm" #right ", %tmm" #left ", %tmm" #sums)

/* Configures the tiles for a square with this number of rows. Every thread must call it before it uses tiles,
   since other libraries (oneDNN) may have configured them differently, and release them afterwards: context
   switches of a thread with tiles cost more. */
INLINE void hold_tiles(int rows) {
    ALIGNED struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } sizes = {.palette = 1};
    for (int t = 0; t < 8; t++) sizes.bytes[t] = 64, sizes.rows[t] = LANES;
    sizes.rows[0] = sizes.rows[1] = sizes.rows[4] = least(LANES, rows);
    sizes.rows[2] = sizes.rows[3] = sizes.rows[5] = least(LANES, most(1, rows - LANES)); /* 0 rows are not allowed */
    __asm__ volatile("ldtilecfg %0" ::"m"(sizes));
}
INLINE void release_tiles(void) { __asm__ volatile("tilerelease" ::: "memory"); }

/* The operands of a square, and their strides: numbers between rows (left), words between pairs (right) */
typedef struct { const bf16 *left; long row; const uint32_t *right; long pair; } Square;

/* A square has `down` x `across` tiles (1 or 2 each). `lower` is the offset from the upper to the lower 16 rows
   of the left operand. */
INLINE void clear_tiles(int down, int across) {
    CLEAR_TILE(0);
    if (across == 2) CLEAR_TILE(1);
    if (down == 2) CLEAR_TILE(2);
    if (down == 2 && across == 2) CLEAR_TILE(3);
}
INLINE void add_tiles(int down, int across, const Square *s, int step, long lower) {
    const bf16 *left = s->left + step * STEP;
    const uint32_t *right = s->right + step * LANES * s->pair;
    LOAD_TILE(4, left, 2 * s->row);
    LOAD_TILE(6, right, 4 * s->pair);
    MULTIPLY_TILES(0, 4, 6);
    if (across == 2) {
        LOAD_TILE(7, right + LANES, 4 * s->pair);
        MULTIPLY_TILES(1, 4, 7);
    }
    if (down == 2) {
        LOAD_TILE(5, left + lower, 2 * s->row);
        MULTIPLY_TILES(2, 5, 6);
        if (across == 2) MULTIPLY_TILES(3, 5, 7);
    }
}
INLINE void store_tiles(int down, int across, float *to, long row) {
    STORE_TILE(0, to, 4 * row);
    if (across == 2) STORE_TILE(1, to + LANES, 4 * row);
    if (down == 2) STORE_TILE(2, to + LANES * row, 4 * row);
    if (down == 2 && across == 2) STORE_TILE(3, to + LANES * row + LANES, 4 * row);
}
INLINE void load_tiles(const float *from, long row) {
    LOAD_TILE(0, from, 4 * row);
    LOAD_TILE(1, from + LANES, 4 * row);
    LOAD_TILE(2, from + LANES * row, 4 * row);
    LOAD_TILE(3, from + LANES * row + LANES, 4 * row);
}

/* A function that processes the sums of SIDE columns of one row. */
typedef void Finish(const void *what, int row, int column, __m512 left, __m512 right);

INLINE void finish_rows(Finish *finish, const void *what, int row, int column, int begin, int end,
                        const float *sums) {
    for (int r = begin; r < end; r++)
        finish(what, row + r, column, _mm512_load_ps(sums + r * SIDE), _mm512_load_ps(sums + r * SIDE + LANES));
}

/* Memory that will be read or written soon. It is prefetched line by line between the products, since too many
   prefetches at once would stall. Addresses beyond the end of a tensor do no harm. */
enum { STREAMS = 4, LINE = 64 };
typedef struct { const char *at; long lines; int written; } Stream;

INLINE void ask_for(Stream *s, long lines) {
    for (; lines > 0 && s->lines > 0; lines--, s->lines--, s->at += LINE)
        if (s->written) __asm__ volatile("prefetchw %0" ::"m"(*s->at));
        else __builtin_prefetch(s->at);
}

/* A product of rows x columns, over `steps` steps. The right operand is stored in panels of SIDE columns. */
typedef struct { int rows, columns, steps; Square first; Stream soon[STREAMS]; } Product;

INLINE void multiply_squares(const Product *p, Finish *finish, const void *what) {
    ALIGNED float sums[2][SIDE * SIDE];
    Stream soon[STREAMS];
    long each[STREAMS]; /* lines per step */
    int row = 0, column = 0, height = 0, share = 0; /* of the previous square; share: its rows per step */
    int all = (p->rows + SIDE - 1) / SIDE * (p->columns / SIDE) * p->steps;
    for (int s = 0; s < STREAMS; s++) soon[s] = p->soon[s], each[s] = (soon[s].lines + all - 1) / all;
    for (int n = 0, r = 0, c = 0; c < p->columns; n++) {
        int here = least(SIDE, p->rows - r);
        Square s = {p->first.left + r * p->first.row, p->first.row,
                    p->first.right + c / SIDE * p->steps * LANES * SIDE, SIDE};
        if (here < SIDE) hold_tiles(here);
        clear_tiles(2, 2);
        for (int step = 0; step < p->steps; step++) {
            add_tiles(2, 2, &s, step, here > LANES ? LANES * s.row : 0);
            for (int i = 0; i < STREAMS && soon[i].lines; i++) ask_for(&soon[i], each[i]);
            finish_rows(finish, what, row, column, least(height, step * share), least(height, (step + 1) * share),
                        sums[(n + 1) % 2]);
        }
        store_tiles(2, 2, sums[n % 2], SIDE);
        if (here < SIDE) hold_tiles(SIDE);
        row = r, column = c, height = here, share = (here + p->steps - 1) / p->steps;
        if ((r += SIDE) >= p->rows) r = 0, c += SIDE;
        if (c >= p->columns) finish_rows(finish, what, row, column, 0, height, sums[n % 2]);
    }
}

/* Transposes a block of 32 x 32 numbers, of which only the first n rows exist; the others are 0. */
INLINE void turn(const bf16 *x, long row, int n, bf16 *turned, long turned_row) {
    static const ALIGNED bf16 NOTHING[LANES] = {0};
    for (int q = 0; q < 4; q++) {
        __m512i a[8], b[8]; /* a[s]: eight numbers of each of the rows s, s + 8, s + 16, s + 24 */
        UNROLLED for (int s = 0; s < 8; s++) {
#define EIGHT(r) _mm_loadu_si128((const __m128i *)((r) < n ? x + (r) * row + 8 * q : NOTHING))
            a[s] = _mm512_castsi128_si512(EIGHT(s));
            a[s] = _mm512_inserti32x4(a[s], EIGHT(s + 8), 1);
            a[s] = _mm512_inserti32x4(a[s], EIGHT(s + 16), 2);
            a[s] = _mm512_inserti32x4(a[s], EIGHT(s + 24), 3);
#undef EIGHT
        }
        UNROLLED for (int s = 0; s < 4; s++) {
            b[2 * s] = _mm512_unpacklo_epi16(a[2 * s], a[2 * s + 1]);
            b[2 * s + 1] = _mm512_unpackhi_epi16(a[2 * s], a[2 * s + 1]);
        }
        UNROLLED for (int s = 0; s < 8; s += 4)
            UNROLLED for (int h = 0; h < 2; h++) {
                a[s + 2 * h] = _mm512_unpacklo_epi32(b[s + h], b[s + h + 2]);
                a[s + 2 * h + 1] = _mm512_unpackhi_epi32(b[s + h], b[s + h + 2]);
            }
        UNROLLED for (int s = 0; s < 4; s++) {
            _mm512_storeu_si512(turned + (8 * q + 2 * s) * turned_row, _mm512_unpacklo_epi64(a[s], a[s + 4]));
            _mm512_storeu_si512(turned + (8 * q + 2 * s + 1) * turned_row, _mm512_unpackhi_epi64(a[s], a[s + 4]));
        }
    }
}

#else
#define WITH_TILES 0
enum { SIDE = 0 };
INLINE void hold_tiles(int rows) { (void)rows; }
INLINE void release_tiles(void) {}
#endif
