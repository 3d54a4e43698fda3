#pragma once

/* The MLP: up, GELU, down. */

#include "affine.h"

typedef struct {
    Affine up, down; /* x of down: forward, memory for a block of each thread; back, for GELU of y of up.
                        The gradients of both are one memory, changed in place. Both have a workspace
                        during a call. */
} Mlp;

HIDDEN void mlp_forward(const Mlp *m);
HIDDEN void mlp_backward(const Mlp *m);
