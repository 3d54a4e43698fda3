/* Layer normalisation. The rows of a fleet's models follow one another; each model has its gain and shift. */

#include "norm.h"

enum { CHUNKS = 32 };

void norm_forward(const Norm *n) {
    int width = n->width;
#pragma omp parallel for schedule(static)
    for (long r = 0; r < n->models * n->rows; r++) {
        const bf16 *x = n->x + r * width, *gain = n->gain + r / n->rows * width;
        const bf16 *shift = n->shift + r / n->rows * width;
        __m512 sum = all(0), squares = all(0);
        for (int i = 0; i < width; i += LANES) sum = _mm512_add_ps(sum, load(x + i));
        __m512 mean = all(_mm512_reduce_add_ps(sum) / width);
        for (int i = 0; i < width; i += LANES) {
            __m512 off = _mm512_sub_ps(load(x + i), mean);
            squares = _mm512_fmadd_ps(off, off, squares);
        }
        float inverse = 1 / __builtin_sqrtf(_mm512_reduce_add_ps(squares) / width + n->epsilon);
        for (int i = 0; i < width; i += LANES) {
            __m512 unit = _mm512_mul_ps(_mm512_sub_ps(load(x + i), mean), all(inverse));
            store(n->y + r * width + i, _mm512_fmadd_ps(unit, load(gain + i), load(shift + i)));
        }
        n->statistics[2 * r] = _mm512_cvtss_f32(mean);
        n->statistics[2 * r + 1] = inverse;
    }
}

/* Gradient of a row: (h - mean(h) - u mean(u h)) / deviation, where u is the normalised row, h = gradient gain */
static void norm_back_row(const Norm *n, long r, const bf16 *gain, float *gains, float *shifts) {
    const bf16 *x = n->x + r * n->width, *gradient = n->gradient + r * n->width;
    __m512 mean = all(n->statistics[2 * r]), inverse = all(n->statistics[2 * r + 1]);
    __m512 sum = all(0), along = all(0);
    for (int i = 0; i < n->width; i += LANES) {
        __m512 unit = _mm512_mul_ps(_mm512_sub_ps(load(x + i), mean), inverse), in = load(gradient + i);
        __m512 h = _mm512_mul_ps(in, load(gain + i));
        _mm512_storeu_ps(gains + i, _mm512_fmadd_ps(in, unit, _mm512_loadu_ps(gains + i)));
        _mm512_storeu_ps(shifts + i, _mm512_add_ps(in, _mm512_loadu_ps(shifts + i)));
        sum = _mm512_add_ps(sum, h);
        along = _mm512_fmadd_ps(h, unit, along);
    }
    __m512 mean_h = all(_mm512_reduce_add_ps(sum) / n->width);
    __m512 mean_along = all(_mm512_reduce_add_ps(along) / n->width);
    for (int i = 0; i < n->width; i += LANES) {
        __m512 unit = _mm512_mul_ps(_mm512_sub_ps(load(x + i), mean), inverse);
        __m512 h = _mm512_fmsub_ps(load(gradient + i), load(gain + i), mean_h);
        h = _mm512_mul_ps(_mm512_fnmadd_ps(unit, mean_along, h), inverse);
        if (n->also) h = _mm512_add_ps(h, load(n->also + r * n->width + i));
        store(n->x_gradient + r * n->width + i, h);
    }
}

/* Computes the gradients of a chunk of a model's rows, and their sums for gain and shift */
static void norm_back_chunk(const Norm *n, long model, long chunk, float *partial) {
    float *gains = partial + 2L * (model * CHUNKS + chunk) * n->width, *shifts = gains + n->width;
    for (int i = 0; i < 2 * n->width; i += LANES) _mm512_storeu_ps(gains + i, all(0));
    for (long r = n->rows * chunk / CHUNKS; r < n->rows * (chunk + 1) / CHUNKS; r++)
        norm_back_row(n, model * n->rows + r, n->gain + model * n->width, gains, shifts);
}

/* Sums are kept per chunk, not per thread, so that the result is the same for any number of threads. */
void norm_backward(const Norm *n) {
    int width = n->width;
    /* model, chunk, (gain, shift), width */
    float *partial = workspace(2L * n->models * CHUNKS * width * (long)sizeof(float));
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int c = 0; c < n->models * CHUNKS; c++) norm_back_chunk(n, c / CHUNKS, c % CHUNKS, partial);
#pragma omp for schedule(static)
        for (int i = 0; i < n->models * width; i += LANES) {
            const float *gains = partial + 2L * (i / width * CHUNKS) * width + i % width;
            __m512 gain = all(0), shift = all(0);
            for (int c = 0; c < CHUNKS; c++, gains += 2 * width) {
                gain = _mm512_add_ps(gain, _mm512_loadu_ps(gains));
                shift = _mm512_add_ps(shift, _mm512_loadu_ps(gains + width));
            }
            store(n->gain_gradient + i, gain), store(n->shift_gradient + i, shift);
        }
    }
    free(partial);
}
