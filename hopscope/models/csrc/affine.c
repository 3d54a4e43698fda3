/* Affine maps, forward and for the gradient of their input. */

#include "affine.h"
#include "products.h"
#include "tiles.h"

/* Packs the weights as right operand of x W^T (or with `back` of gradient W), in panels of PANEL columns. */
void pack(const Affine *a, int back) {
    long panels = (back ? a->ins : a->outs) / PANEL, numbers = (long)a->ins * a->outs;
#pragma omp for schedule(static)
    for (long k = 0; k < a->models * panels; k++) {
        const bf16 *weight = a->weight + k / panels * numbers;
        uint32_t *packed = a->packed + k / panels * numbers / 2;
        long from = k % panels * PANEL;
        if (back) pair_rows(weight + from, a->ins, a->outs, PANEL, PANEL, packed + from * a->outs / 2);
        else pair_numbers(weight + from * a->ins, a->ins, PANEL, a->ins, PANEL, packed + from * a->ins / 2);
    }
}

void map_rows(const Block *b) {
    for (int o = 0; o < b->outs; o += PANEL)
        multiply(b->rows, PANEL / LANES, (Left){(const uint32_t *)b->from, b->ins / 2, 1},
                 (Right){b->packed + (long)o * b->ins / 2, PANEL}, 0, b->ins / 2,
                 (Out){0, b->to + o, b->outs, b->bias ? b->bias + o : 0});
    for (long i = 0; b->also && i < (long)b->rows * b->outs; i += LANES)
        store(b->to + i, _mm512_add_ps(load(b->to + i), load(b->also + i)));
}

#if WITH_TILES
INLINE void round_sums(const void *what, int row, int column, __m512 left, __m512 right) {
    const Block *b = what;
    if (b->bias) {
        left = _mm512_add_ps(left, load(b->bias + column));
        right = _mm512_add_ps(right, load(b->bias + column + LANES));
    }
    long at = (long)row * b->outs + column;
    if (b->also) {
        left = _mm512_add_ps(left, load(b->also + at));
        right = _mm512_add_ps(right, load(b->also + at + LANES));
    }
    store_both(b->to + at, left, right);
}

void map_rows_with_tiles(const Block *b) {
    Product p = {b->rows, b->outs, b->ins / STEP, {b->from, b->ins, b->packed, SIDE},
                 {rows_after(b, b->to, b->outs, 1)}};
    if (!b->fresh) p.soon[1] = rows_after(b, b->from, b->ins, 0);
    if (b->also) p.soon[2] = rows_after(b, b->also, b->outs, 0);
    multiply_squares(&p, round_sums, b);
}
#else
void map_rows_with_tiles(const Block *b) { map_rows(b); }
#endif

static void map_all(const Affine *given, int back) {
    Affine with = with_workspace(given), *a = &with;
#pragma omp parallel
    {
        pack(a, back);
        if (a->tiles) hold_tiles(SIDE);
#pragma omp for schedule(static)
        for (long block = 0; block < a->models * blocks_of(a); block++) {
            Block b = block_of(a, block, back);
            if (a->tiles) map_rows_with_tiles(&b);
            else map_rows(&b);
        }
        if (a->tiles) release_tiles();
    }
    free(a->packed);
}

void affine_forward(const Affine *a) { map_all(a, 0); }

void affine_backward(const Affine *a) {
    map_all(a, 1);
    if (a->tiles) weights_back_with_tiles(a);
    else weights_back(a);
}
