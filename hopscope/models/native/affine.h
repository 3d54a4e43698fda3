#pragma once

/* An affine map, y = x W^T + b; rows of a fleet's models one behind the other. */

#include "tiles.h"

enum { BLOCK = 64, PANEL = 2 * LANES };

typedef struct {
    int models, ins, outs; /* ins and outs: multiples of BLOCK */
    int tiles;             /* whether with AMX */
    long rows;             /* of each model */
    long together;         /* so many of them are taken through all of the backward pass, and then the next */
    long x_apart, y_apart; /* rows from one model to the next, in x and in y (as in their gradients) */
    bf16 *x;
    const bf16 *weight, *bias;
    bf16 *y, *gradient, *x_gradient, *weight_gradient, *bias_gradient; /* gradient: of y */
    const bf16 *also; /* what is added to y, or 0 */
    /* Room during a call: */
    uint32_t *packed; /* the weights as right operand */
    float *sums;      /* the gradients of weights and biases before they are rounded */
} Affine;

/* The same, with room for a call; it is given back at its end. */
INLINE Affine with_room(const Affine *a, int back) {
    Affine b = *a;
    long numbers = (long)a->models * a->ins * a->outs, biases = (long)a->models * a->outs;
    b.packed = room_for(numbers * (long)sizeof(bf16));
    b.sums = back && a->tiles ? room_for((numbers + biases * LANES) * (long)sizeof(float)) : 0;
    return b;
}
INLINE void without_room(Affine *a) { free(a->packed), free(a->sums); }

INLINE long blocks_of(const Affine *a) { return (a->rows + BLOCK - 1) / BLOCK; }

/* Some rows of one model, and its weights as right operand; back: of gradient W instead of x W^T */
typedef struct {
    int rows, ins, outs;
    int fresh; /* whether `from` was just computed: then there is nothing to ask for beyond it */
    bf16 *from, *to;
    const uint32_t *packed;
    const bf16 *bias, *also; /* each may be 0 */
} Block;

INLINE Block block_of(const Affine *a, long block, int back) {
    long model = block / blocks_of(a), r = block % blocks_of(a) * BLOCK;
    long x = (model * a->x_apart + r) * a->ins, y = (model * a->y_apart + r) * a->outs;
    int rows = least(BLOCK, (int)(a->rows - r)), ins = back ? a->outs : a->ins, outs = back ? a->ins : a->outs;
    return (Block){rows, ins, outs, 0, back ? a->gradient + y : a->x + x, back ? a->x_gradient + x : a->y + y,
                   a->packed + model * ins * outs / 2, back ? 0 : a->bias + model * outs,
                   back || !a->also ? 0 : a->also + y};
}

#if WITH_TILES
/* As many rows again, behind these: those of the next block. */
INLINE Stream rows_after(const Block *b, const bf16 *here, int width, int written) {
    return (Stream){(const char *)(here + (long)b->rows * width), (long)b->rows * width * 2 / LINE, written};
}
#endif

HIDDEN Affine part_of(const Affine *a, long from, long rows);
HIDDEN void pack(const Affine *a, int back); /* within a parallel region */
HIDDEN void map_rows(const Block *b);
HIDDEN void map_rows_with_tiles(const Block *b);

/* Gradients of weights and biases: what these rows of every model add; and, after the last ones, rounded. Within a
   parallel region. The version without tiles takes all rows at once. */
HIDDEN void weights_back(const Affine *a);
HIDDEN void weights_back_with_tiles(const Affine *a, int first, int last);
