#pragma once

/* Layer normalisation. The rows of a fleet's models follow one another; each model has its gain and shift. */

#include "vectors.h"

typedef struct {
    int models, width;
    long rows; /* of each model */
    float epsilon;
    const bf16 *x, *gain, *shift;
    bf16 *y;
    float *statistics; /* mean and inverse deviation of each row */
    const bf16 *gradient;
    bf16 *x_gradient;
    bf16 *gain_gradient, *shift_gradient;
    const bf16 *also; /* added to the gradient of x; or 0 */
} Norm;

HIDDEN void norm_forward(const Norm *n);
HIDDEN void norm_backward(const Norm *n);
