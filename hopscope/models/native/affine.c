/* Affine maps, y = x W^T + b, and the MLP; rows of a fleet's models one behind the other. */

#include "products.h"

enum { BLOCK = 64, PANEL = 2 * LANES };

typedef struct {
    int models, ins, outs; /* ins and outs: multiples of BLOCK */
    long rows;             /* of each model */
    bf16 *x;
    const bf16 *weight, *bias;
    bf16 *y, *gradient, *x_gradient, *weight_gradient, *bias_gradient; /* gradient: of y */
    uint32_t *packed; /* room for the weights as right operand */
} Affine;

INLINE long blocks_of(const Affine *a) { return (a->rows + BLOCK - 1) / BLOCK; }

/* The weights as right operand of x W^T, PANEL columns after PANEL columns; or of gradient W. */
static void pack(const Affine *a, int back) {
    long panels = (back ? a->ins : a->outs) / PANEL, numbers = (long)a->ins * a->outs;
#pragma omp for schedule(static)
    for (long k = 0; k < a->models * panels; k++) {
        const bf16 *weight = a->weight + k / panels * numbers;
        uint32_t *packed = a->packed + k / panels * numbers / 2;
        long from = k % panels * PANEL;
        if (back) pair_rows(weight + from, a->ins, a->outs, PANEL, PANEL, packed + from * a->outs / 2);
        else pair_numbers(weight + from * a->ins, a->ins, PANEL, a->ins, packed + from * a->ins / 2);
    }
}

/* One block of the rows of all models, times the packed weights. */
static void map_block(const Affine *a, long block, int back) {
    long model = block / blocks_of(a), r = block % blocks_of(a) * BLOCK, at = model * a->rows + r;
    int ins = back ? a->outs : a->ins, outs = back ? a->ins : a->outs;
    int rows = a->rows - r < BLOCK ? (int)(a->rows - r) : BLOCK;
    const bf16 *from = (back ? a->gradient : a->x) + at * ins;
    bf16 *to = (back ? a->x_gradient : a->y) + at * outs;
    const uint32_t *packed = a->packed + model * ins * outs / 2;
    for (int o = 0; o < outs; o += PANEL)
        multiply(rows, PANEL / LANES, (Left){(const uint32_t *)from, ins / 2, 1},
                 (Right){packed + (long)o * ins / 2, PANEL}, 0, ins / 2,
                 (Out){0, to + o, outs, back ? 0 : a->bias + model * outs + o});
}

static void map_blocks(const Affine *a, int back) {
#pragma omp parallel
    {
        pack(a, back);
#pragma omp for schedule(static)
        for (long block = 0; block < a->models * blocks_of(a); block++) map_block(a, block, back);
    }
}

/* ---- Gradients of weights: sums over rows of (gradient of y)^T x ---- */

enum { STRIP = 64, OUTS = BLOCK, INS = 128, GROUP = 4, COLUMNS = GROUP * LANES };

/* sums[o][i] += left[p][o] . right[p][i] for GROUP times COLUMNS of them */
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

/* OUTS x ins numbers of one model's gradient, strip after strip of rows. While one is multiplied, the
   next is fetched, a few rows at a time: more would wait for each other. */
static void weights_back(const Affine *a, const bf16 *x, const bf16 *gradient, int ins, bf16 *weight,
                         bf16 *bias) {
    ALIGNED uint32_t left[STRIP / 2 * OUTS], right[STRIP / 2 * INS]; /* right: COLUMNS after COLUMNS */
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

static void all_weights_back(const Affine *a) {
    int across = (a->ins + INS - 1) / INS, down = a->outs / OUTS;
#pragma omp parallel for schedule(static)
    for (int block = 0; block < a->models * down * across; block++) {
        long model = block / (down * across), o = block / across % down * OUTS, i = block % across * INS;
        weights_back(a, a->x + model * a->rows * a->ins + i, a->gradient + model * a->rows * a->outs + o,
                     least(INS, a->ins - (int)i), a->weight_gradient + (model * a->outs + o) * a->ins + i,
                     i == 0 ? a->bias_gradient + model * a->outs + o : 0);
    }
}

void hopscope_affine(const Affine *a) { map_blocks(a, 0); }

void hopscope_affine_back(const Affine *a) {
    map_blocks(a, 1);
    all_weights_back(a);
}

/* ---- MLP: up, GELU (x times the share of a normal distribution below x), down ---- */

typedef struct {
    Affine up, down; /* x of down is GELU of y of up; the gradients are one memory, changed in place */
} Mlp;

/* GELU of x, and its slope */
INLINE __m512 gelu(__m512 x, __m512 *slope) {
    __m512 bell = exponential(_mm512_mul_ps(_mm512_mul_ps(x, x), all(-0.5f)));
    /* Abramowitz and Stegun 7.1.26, halved: with this exponential off by 1e-6 at most */
    __m512 z = _mm512_fmadd_ps(_mm512_abs_ps(x), all(0.3275911f * 0.70710678f), all(1));
    __m512 t = _mm512_rcp14_ps(z);
    t = _mm512_mul_ps(t, _mm512_fnmadd_ps(z, t, all(2)));
    __m512 tail = _mm512_fmadd_ps(all(0.5f * 1.061405429f), t, all(0.5f * -1.453152027f));
    tail = _mm512_fmadd_ps(tail, t, all(0.5f * 1.421413741f));
    tail = _mm512_fmadd_ps(tail, t, all(0.5f * -0.284496736f));
    tail = _mm512_fmadd_ps(tail, t, all(0.5f * 0.254829592f));
    tail = _mm512_mul_ps(_mm512_mul_ps(tail, t), bell);
    __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
    __m512 share = _mm512_mask_mov_ps(_mm512_sub_ps(all(1), tail), below, tail);
    *slope = _mm512_fmadd_ps(_mm512_mul_ps(x, all(0.39894228f)), bell, share);
    return _mm512_mul_ps(x, share);
}

/* GELU of one block of the hidden layer; back: its gradient is multiplied by the slope, too. */
static void gelu_block(const Mlp *m, long block, int back) {
    long model = block / blocks_of(&m->up), r = block % blocks_of(&m->up) * BLOCK, width = m->up.outs;
    long begin = (model * m->up.rows + r) * width, end = begin + width * least(BLOCK, (int)(m->up.rows - r));
    for (long i = begin; i < end; i += LANES) {
        __m512 slope;
        store(m->down.x + i, gelu(load(m->up.y + i), &slope));
        if (back) store(m->up.gradient + i, _mm512_mul_ps(load(m->up.gradient + i), slope));
    }
}

void hopscope_mlp(const Mlp *m) {
#pragma omp parallel
    {
        pack(&m->up, 0), pack(&m->down, 0);
#pragma omp for schedule(static)
        for (long block = 0; block < m->up.models * blocks_of(&m->up); block++)
            map_block(&m->up, block, 0), gelu_block(m, block, 0), map_block(&m->down, block, 0);
    }
}

void hopscope_mlp_back(const Mlp *m) {
#pragma omp parallel
    {
        pack(&m->up, 1), pack(&m->down, 1);
#pragma omp for schedule(static)
        for (long block = 0; block < m->up.models * blocks_of(&m->up); block++)
            map_block(&m->down, block, 1), gelu_block(m, block, 1), map_block(&m->up, block, 1);
    }
    all_weights_back(&m->up), all_weights_back(&m->down);
}
