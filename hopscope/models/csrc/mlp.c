/* The MLP: up, GELU (x times the share of a normal distribution below x), down. */

#include <omp.h>

#include "mlp.h"

/* GELU of x; also writes its derivative to `slope` */
INLINE __m512 gelu(__m512 x, __m512 *slope) {
    __m512 bell = exponential(_mm512_mul_ps(_mm512_mul_ps(x, x), all(-0.5f)));
    /* Abramowitz and Stegun 7.1.26, halved; with this exponential, the error is at most 1e-6 */
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

/* Some rows of the hidden layer: the input and the output of GELU */
typedef struct {
    Block up, down;
    bf16 *hidden, *active;
} Rows;

static Rows rows_of(const Mlp *m, long block, int back) {
    Rows b = {block_of(&m->up, block, back), block_of(&m->down, block, back), 0, 0};
    if (back) {
        long at = b.up.from - m->up.gradient;
        b.hidden = m->up.y + at, b.active = m->down.x + at, b.up.fresh = 1;
    } else {
        b.hidden = b.up.to;
        b.active = b.down.from = m->down.x + (long)omp_get_thread_num() * BLOCK * m->up.outs;
        b.down.fresh = 1;
    }
    return b;
}

static void forward(const Rows *b) {
    map_rows(&b->up);
    for (long i = 0; i < (long)b->up.rows * b->up.outs; i += LANES) {
        __m512 slope;
        store(b->active + i, gelu(load(b->hidden + i), &slope));
    }
    map_rows(&b->down);
}

static void backward(const Rows *b) {
    map_rows(&b->down);
    for (long i = 0; i < (long)b->up.rows * b->up.ins; i += LANES) {
        __m512 slope;
        store(b->active + i, gelu(load(b->hidden + i), &slope));
        store(b->down.to + i, _mm512_mul_ps(load(b->down.to + i), slope));
    }
    map_rows(&b->up);
}

#if WITH_TILES
INLINE void finish_up(const void *what, int row, int column, __m512 left, __m512 right) {
    const Rows *b = what;
    long at = (long)row * b->up.outs + column;
    __m512 slope;
    left = _mm512_add_ps(left, load(b->up.bias + column));
    right = _mm512_add_ps(right, load(b->up.bias + column + LANES));
    store_both(b->hidden + at, left, right);
    store_both(b->active + at, gelu(left, &slope), gelu(right, &slope));
}

INLINE void finish_down(const void *what, int row, int column, __m512 left, __m512 right) {
    const Rows *b = what;
    long at = (long)row * b->down.outs + column;
    __m512 slope, next_slope;
    __m512 x = gelu(load(b->hidden + at), &slope), next = gelu(load(b->hidden + at + LANES), &next_slope);
    store_both(b->active + at, x, next);
    store_both(b->down.to + at, _mm512_mul_ps(left, slope), _mm512_mul_ps(right, next_slope));
}

static void forward_with_tiles(const Rows *b) {
    const Block *up = &b->up;
    Product p = {up->rows, up->outs, up->ins / STEP, {up->from, up->ins, up->packed, SIDE},
                 {rows_after(up, up->from, up->ins, 0), rows_after(up, b->hidden, up->outs, 1)}};
    multiply_squares(&p, finish_up, b);
    map_rows_with_tiles(&b->down);
}

static void backward_with_tiles(const Rows *b) {
    const Block *down = &b->down;
    Product p = {down->rows, down->outs, down->ins / STEP, {down->from, down->ins, down->packed, SIDE},
                 {rows_after(down, down->from, down->ins, 0), rows_after(down, b->hidden, down->outs, 0),
                  rows_after(down, b->active, down->outs, 1), rows_after(down, down->to, down->outs, 1)}};
    multiply_squares(&p, finish_down, b);
    map_rows_with_tiles(&b->up);
}
#else
static void forward_with_tiles(const Rows *b) { forward(b); }
static void backward_with_tiles(const Rows *b) { backward(b); }
#endif

static void for_each_block(const Mlp *m, int back) {
    void (*run)(const Rows *) = back ? (m->up.tiles ? backward_with_tiles : backward)
                                     : (m->up.tiles ? forward_with_tiles : forward);
#pragma omp parallel
    {
        pack(&m->up, back), pack(&m->down, back);
        if (m->up.tiles) hold_tiles(SIDE);
#pragma omp for schedule(static)
        for (long block = 0; block < m->up.models * blocks_of(&m->up); block++) {
            Rows b = rows_of(m, block, back);
            run(&b);
        }
        if (m->up.tiles) release_tiles();
    }
}

static Mlp mlp_with_workspace(const Mlp *m, long hidden_rows) {
    Mlp with = {with_workspace(&m->up), with_workspace(&m->down)};
    with.down.x = workspace(hidden_rows * m->up.outs * (long)sizeof(bf16));
    return with;
}

static void free_workspace(Mlp *m) { free(m->down.x), free(m->up.packed), free(m->down.packed); }

void mlp_forward(const Mlp *given) {
    Mlp m = mlp_with_workspace(given, (long)omp_get_max_threads() * BLOCK);
    for_each_block(&m, 0);
    free_workspace(&m);
}

void mlp_backward(const Mlp *given) {
    long rows = given->up.models * given->up.rows;
    Mlp with = mlp_with_workspace(given, rows), *m = &with;
    m->up.gradient = m->down.x_gradient = workspace(rows * m->up.outs * (long)sizeof(bf16));
    for_each_block(m, 1);
    void (*back)(const Affine *) = m->up.tiles ? weights_back_with_tiles : weights_back;
    back(&m->up), back(&m->down);
    free(m->up.gradient), free_workspace(m);
}
