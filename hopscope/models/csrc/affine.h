#pragma once

/* An affine map, y = x W^T + b. The rows of a fleet's models follow one another. */

#include "tiles.h"

enum { BLOCK = 64, PANEL = 2 * LANES };

typedef struct {
    int models, ins, outs; /* ins and outs: multiples of BLOCK */
    int tiles;             /* whether AMX is used */
    long rows;             /* of each model */
    bf16 *x;
    const bf16 *weight, *bias;
    bf16 *y, *gradient, *x_gradient, *weight_gradient, *bias_gradient; /* gradient: of y */
    const bf16 *also; /* added to y; or 0 */
    uint32_t *packed; /* workspace during a call: the weights as right operand */
} Affine;

/* A copy with an allocated workspace */
INLINE Affine with_workspace(const Affine *a) {
    Affine b = *a;
    b.packed = workspace((long)a->models * a->ins * a->outs * (long)sizeof(bf16));
    return b;
}

INLINE long blocks_of(const Affine *a) { return (a->rows + BLOCK - 1) / BLOCK; }

/* Some rows of one model, and its weights as right operand: for x W^T, or with `back` for gradient W */
typedef struct {
    int rows, ins, outs;
    int fresh; /* whether `from` was just computed: then the rows after it need no prefetch */
    bf16 *from, *to;
    const uint32_t *packed;
    const bf16 *bias, *also; /* each may be 0 */
} Block;

INLINE Block block_of(const Affine *a, long block, int back) {
    long model = block / blocks_of(a), r = block % blocks_of(a) * BLOCK, at = model * a->rows + r;
    int rows = least(BLOCK, (int)(a->rows - r)), ins = back ? a->outs : a->ins, outs = back ? a->ins : a->outs;
    return (Block){rows, ins, outs, 0, (back ? a->gradient : a->x) + at * ins, (back ? a->x_gradient : a->y) + at * outs,
                   a->packed + model * ins * outs / 2, back ? 0 : a->bias + model * outs,
                   back || !a->also ? 0 : a->also + at * outs};
}

#if WITH_TILES
/* The rows after these, as many again: those of the next block, to be prefetched. */
INLINE Stream rows_after(const Block *b, const bf16 *here, int width, int written) {
    return (Stream){(const char *)(here + (long)b->rows * width), (long)b->rows * width * 2 / LINE, written};
}
#endif

HIDDEN void pack(const Affine *a, int back); /* call within a parallel region */
HIDDEN void map_rows(const Block *b);
HIDDEN void map_rows_with_tiles(const Block *b);
HIDDEN void weights_back(const Affine *a);
HIDDEN void weights_back_with_tiles(const Affine *a);

HIDDEN void affine_forward(const Affine *a);
HIDDEN void affine_backward(const Affine *a);
