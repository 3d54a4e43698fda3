/* Gradients of weights, sums over rows of (gradient of y)^T x, and of biases. */

#include "affine.h"
#include "products.h"

enum { STRIP = 64, OUTS = BLOCK, INS = 128, GROUP = 4, COLUMNS = GROUP * LANES };

/* sums[o][i] += left[p][o] . right[p][i] for a block of GROUP x COLUMNS sums */
static void add_product(const uint32_t *left, const uint32_t *right, int pairs, float *sums) {
    __m512 sum[GROUP][GROUP];
    UNROLLED for (int r = 0; r < GROUP; r++)
        UNROLLED for (int v = 0; v < GROUP; v++) sum[r][v] = _mm512_loadu_ps(sums + r * INS + v * LANES);
    for (int p = 0; p < pairs; p++, left += OUTS, right += COLUMNS)
        UNROLLED for (int r = 0; r < GROUP; r++) {
            __m512bh pair = (__m512bh)_mm512_set1_epi32((int)left[r]);
            UNROLLED for (int v = 0; v < GROUP; v++)
                sum[r][v] =
                    _mm512_dpbf16_ps(sum[r][v], pair, (__m512bh)_mm512_loadu_si512(right + v * LANES));
        }
    UNROLLED for (int r = 0; r < GROUP; r++)
        UNROLLED for (int v = 0; v < GROUP; v++) _mm512_storeu_ps(sums + r * INS + v * LANES, sum[r][v]);
}

/* Computes a block of OUTS x ins numbers of one model's gradient, strip by strip of rows. While a strip is
   multiplied, the next is prefetched, a few rows at a time, since more prefetches at once would stall. */
static void block_back(const Affine *a, const bf16 *x, const bf16 *gradient, int ins, bf16 *weight, bf16 *bias) {
    ALIGNED uint32_t left[STRIP / 2 * OUTS], right[STRIP / 2 * INS]; /* right: in panels of COLUMNS */
    ALIGNED float sums[OUTS * INS] = {0}, shifts[OUTS] = {0};
    int few = STRIP / (OUTS / GROUP * ins / COLUMNS);
    __m512bh ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
    for (long r = 0; r < a->rows; r += STRIP) {
        int rows = a->rows - r < STRIP ? (int)(a->rows - r) : STRIP, pairs = (rows + 1) / 2;
        const bf16 *next_x = x + STRIP * a->ins, *next_gradient = gradient + STRIP * a->outs;
        pair_rows(gradient, a->outs, rows, OUTS, OUTS, left);
        for (int i = 0; i < ins; i += COLUMNS)
            pair_rows(x + i, a->ins, rows, COLUMNS, COLUMNS, right + i * STRIP / 2);
        x = next_x, gradient = next_gradient;
        for (int i = 0; i < ins; i += COLUMNS)
            for (int o = 0; o < OUTS; o += GROUP) {
                fetch(next_x, a->ins, few, ins), next_x += few * a->ins;
                fetch(next_gradient, a->outs, few, OUTS), next_gradient += few * a->outs;
                add_product(left + o, right + i * STRIP / 2, pairs, sums + o * INS + i);
            }
        for (int o = 0; bias && o < OUTS; o += LANES) {
            __m512 shift = _mm512_load_ps(shifts + o);
            for (int p = 0; p < pairs; p++)
                shift = _mm512_dpbf16_ps(shift, (__m512bh)_mm512_load_si512(left + p * OUTS + o), ones);
            _mm512_store_ps(shifts + o, shift);
        }
    }
    for (int o = 0; o < OUTS; o++)
        for (int i = 0; i < ins; i += LANES)
            store(weight + (long)o * a->ins + i, _mm512_load_ps(sums + o * INS + i));
    for (int o = 0; bias && o < OUTS; o += LANES) store(bias + o, _mm512_load_ps(shifts + o));
}

void weights_back(const Affine *a) {
    int across = (a->ins + INS - 1) / INS, down = a->outs / OUTS;
#pragma omp parallel for schedule(static)
    for (int block = 0; block < a->models * down * across; block++) {
        long model = block / (down * across), o = block / across % down * OUTS, i = block % across * INS;
        block_back(a, a->x + model * a->rows * a->ins + i, a->gradient + model * a->rows * a->outs + o,
                   least(INS, a->ins - (int)i), a->weight_gradient + (model * a->outs + o) * a->ins + i,
                   i == 0 ? a->bias_gradient + model * a->outs + o : 0);
    }
}
