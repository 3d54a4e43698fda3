#pragma once

/* The MLP: up, GELU, down. */

#include "affine.h"

typedef struct {
    Affine up, down; /* down.x is a buffer: in the forward pass for one block per thread, in the backward
                        pass for GELU(up.y). Both gradients share one buffer, changed in place. Both maps
                        have a workspace during a call. */
} Mlp;

HIDDEN void mlp_forward(const Mlp *m);
HIDDEN void mlp_backward(const Mlp *m);
