#pragma once

/* Attention from the last `read` of `seq` positions to all positions (causal: to none after them). */

#include "vectors.h"

enum { LONGEST = 128, WIDEST = 128 };

typedef struct {
    int batch, heads, read, seq, width, causal, tiles; /* tiles: whether AMX is used */
    long query_row, key_row; /* stride in numbers between positions; values have key_row, too */
    float scale;
    const bf16 *query, *key, *value; /* batch, position, head, width */
    bf16 *out;
    float *logsum; /* batch, head, read */
    const bf16 *gradient;
    bf16 *query_gradient, *key_gradient, *value_gradient;
} Attention;

/* A copy whose pointers start at one head of one example. */
INLINE Attention at_head(const Attention *a, int example, int head) {
    Attention one = *a;
    long inner = (long)head * a->width, read = (long)example * a->read;
    long query = read * a->query_row + inner, key = (long)example * a->seq * a->key_row + inner;
    long out = read * a->heads * a->width + inner;
    one.query += query, one.key += key, one.value += key, one.out += out, one.gradient += out;
    one.query_gradient += query, one.key_gradient += key, one.value_gradient += key;
    one.logsum += ((long)example * a->heads + head) * a->read;
    return one;
}

INLINE int seen(const Attention *a, int i) { return a->causal ? a->seq - a->read + i + 1 : a->seq; }

/* Writes the softmax of one row of scores, rounded; returns the logarithm of the sum. */
INLINE float softmax(float *scores, int n, float scale, bf16 *weights, int vectors) {
    __m512 top = all(-__FLT_MAX__), sum = all(0);
    for (int v = 0; v < vectors_of(n); v++)
        top = _mm512_mask_max_ps(top, first(n - v * LANES), top, _mm512_loadu_ps(scores + v * LANES));
    float highest = _mm512_reduce_max_ps(top) * scale;
    for (int v = 0; v < vectors_of(n); v++) {
        __m512 x = _mm512_fmsub_ps(_mm512_loadu_ps(scores + v * LANES), all(scale), all(highest));
        x = _mm512_maskz_mov_ps(first(n - v * LANES), exponential(x));
        sum = _mm512_add_ps(sum, x);
        _mm512_storeu_ps(scores + v * LANES, x);
    }
    float whole = _mm512_reduce_add_ps(sum);
    for (int v = 0; v < vectors; v++) {
        __m512 x = v < vectors_of(n) ? _mm512_loadu_ps(scores + v * LANES) : all(0);
        store(weights + v * LANES, _mm512_mul_ps(x, all(1 / whole)));
    }
    return highest + __builtin_logf(whole);
}

/* One head of one example */
HIDDEN void attend_with_tiles(const Attention *a);
HIDDEN void attend_back_with_tiles(const Attention *a);

HIDDEN void attention_forward(const Attention *a);
HIDDEN void attention_backward(const Attention *a);
