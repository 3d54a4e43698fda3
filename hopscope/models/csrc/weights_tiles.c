/* Gradients of weights with AMX, sums over rows of (gradient of y)^T x, and of biases.

   The sum is over rows, so one factor is transposed (turned), and the rows of the other are paired. Turning
   costs more than pairing, so the narrower factor is turned. Neither this choice nor the division into parts
   changes the sums. */

#include <omp.h>
#include <string.h>

#include "affine.h"
#include "tiles.h"

#if WITH_TILES

enum { STRIP = 256, TURNED = 128, PAIRED = 256 };

/* A part of one model's gradient: `turned` columns of one factor and `paired` columns of the other. */
typedef struct {
    const bf16 *left, *right; /* left is turned, right is paired */
    long rows, left_row, right_row;
    int turned, paired;
    bf16 *weight, *bias; /* bias: for the columns of the gradient of y; or 0 */
    int ins, across;     /* across: x is the turned factor, so the result is turned, too */
} Part;

typedef struct {
    bf16 left[TURNED * STRIP];
    uint32_t right[PAIRED * STRIP / 2]; /* in panels of SIDE columns */
    float sums[TURNED * PAIRED], shifts[PAIRED > TURNED * LANES ? PAIRED : TURNED * LANES];
} Workspace;

/* Adds the two numbers of each pair to its sum, for sixteen sums. */
INLINE void add_pairs(float *sums, const void *pairs, int step, int n) {
    __m512 sum = _mm512_loadu_ps(sums);
    __m512bh ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
    for (int i = 0; i < n; i++)
        sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_loadu_si512((const uint32_t *)pairs + (long)i * step), ones);
    _mm512_storeu_ps(sums, sum);
}

static void add_strip(const Part *p, Workspace *own, long from, int rows, int wide) {
    const bf16 *left = p->left + from * p->left_row, *right = p->right + from * p->right_row;
    for (int r = 0; r < wide; r += SIDE)
        for (int c = 0; c < p->turned; c += SIDE) {
            const bf16 *from = left + r * p->left_row + c;
            if (rows - r >= SIDE) turn(from, p->left_row, SIDE, own->left + c * STRIP + r, STRIP);
            else turn(from, p->left_row, rows - r, own->left + c * STRIP + r, STRIP);
        }
    for (int c = 0; c < p->paired; c += SIDE) {
        uint32_t *pairs = own->right + c * STRIP / 2;
        pair_rows(right + c, p->right_row, rows, SIDE, SIDE, pairs);
        for (int i = (rows + 1) / 2; i < wide / 2; i++)
            for (int v = 0; v < SIDE; v += LANES) _mm512_storeu_si512(pairs + i * SIDE + v, _mm512_setzero_si512());
    }
    const bf16 *next_left = left + STRIP * p->left_row, *next_right = right + STRIP * p->right_row;
    int products = p->paired / SIDE * (p->turned / SIDE) * (wide / STEP), few = (STRIP + products - 1) / products;
    int asked = 0; /* prefetched rows of the next strip */
    for (int i = 0; i < p->paired; i += SIDE)
        for (int t = 0; t < p->turned; t += SIDE) {
            Square s = {own->left + t * STRIP, STRIP, own->right + i * STRIP / 2, SIDE};
            float *sums = own->sums + t * PAIRED + i;
            load_tiles(sums, PAIRED);
            for (int step = 0; step < wide / STEP; step++) {
                add_tiles(2, 2, &s, step, LANES * STRIP);
                if (asked >= STRIP) continue;
                fetch(next_left + asked * p->left_row, p->left_row, few, p->turned);
                fetch(next_right + asked * p->right_row, p->right_row, few, p->paired);
                asked += few;
            }
            store_tiles(2, 2, sums, PAIRED);
        }
    if (p->bias && p->across)
        for (int i = 0; i < p->paired; i += LANES)
            add_pairs(own->shifts + i, own->right + i / SIDE * SIDE * STRIP / 2 + i % SIDE, SIDE, wide / 2);
    else if (p->bias)
        for (int t = 0; t < p->turned; t++)
            add_pairs(own->shifts + t * LANES, own->left + t * STRIP, LANES, wide / STEP);
}

static void store_part(const Part *p, Workspace *own) {
    for (int t = 0; t < p->turned; t += SIDE)
        for (int i = 0; i < p->paired; i += SIDE) {
            const float *sums = own->sums + t * PAIRED + i;
            bf16 square[SIDE * SIDE];
            for (int r = 0; r < SIDE; r++, sums += PAIRED)
                store_both(square + r * SIDE, _mm512_loadu_ps(sums), _mm512_loadu_ps(sums + LANES));
            if (p->across) turn(square, SIDE, SIDE, p->weight + (long)i * p->ins + t, p->ins);
            else
                for (int r = 0; r < SIDE; r++)
                    _mm512_storeu_si512(p->weight + (long)(t + r) * p->ins + i, _mm512_loadu_si512(square + r * SIDE));
        }
    if (p->bias && p->across)
        for (int i = 0; i < p->paired; i += LANES) store(p->bias + i, _mm512_loadu_ps(own->shifts + i));
    else if (p->bias)
        for (int t = 0; t < p->turned; t += LANES) {
            float whole[LANES];
            for (int r = 0; r < LANES; r++)
                whole[r] = _mm512_reduce_add_ps(_mm512_loadu_ps(own->shifts + (t + r) * LANES));
            store(p->bias + t, _mm512_loadu_ps(whole));
        }
}

static void part_back(const Part *p) {
    ALIGNED Workspace own;
    memset(own.sums, 0, sizeof own.sums), memset(own.shifts, 0, sizeof own.shifts);
    for (long r = 0; r < p->rows; r += STRIP) {
        int rows = least(STRIP, p->rows - r > STRIP ? STRIP : (int)(p->rows - r));
        add_strip(p, &own, r, rows, (rows + STEP - 1) / STEP * STEP);
    }
    store_part(p, &own);
}

/* The number of parts is a multiple of the number of threads if the gradient is large enough. */
void weights_back_with_tiles(const Affine *a) {
    int across = a->outs > a->ins, turned = across ? a->ins : a->outs, paired = across ? a->outs : a->ins;
    int down = (turned + TURNED - 1) / TURNED, least_parts = (paired + PAIRED - 1) / PAIRED;
    int parts = least_parts, threads = omp_get_max_threads();
    while (parts * down * a->models % threads && parts < 4 * least_parts && parts < paired / SIDE) parts++;
    int wide = ((paired / SIDE + parts - 1) / parts) * SIDE;
#pragma omp parallel
    {
        hold_tiles(SIDE);
#pragma omp for schedule(static) collapse(2)
        for (int d = 0; d < a->models * down; d++)
            for (int part = 0; part < parts; part++) {
                long model = d / down, t = d % down * TURNED, i = (long)part * wide;
                if (i >= paired) continue;
                const bf16 *x = a->x + model * a->rows * a->ins, *y = a->gradient + model * a->rows * a->outs;
                long o = across ? i : t, in = across ? t : i;
                Part p = {across ? x + t : y + t, across ? y + i : x + i, a->rows, turned, paired,
                          least(TURNED, turned - (int)t), least(wide, paired - (int)i),
                          a->weight_gradient + (model * a->outs + o) * a->ins + in,
                          in == 0 ? a->bias_gradient + model * a->outs + o : 0, a->ins, across};
                part_back(&p);
            }
        release_tiles();
    }
}

#else
void weights_back_with_tiles(const Affine *a) { weights_back(a); }
#endif
