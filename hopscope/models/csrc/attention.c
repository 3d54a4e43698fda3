/* Attention from the last `read` of `seq` positions to all positions (causal: to none after them).

   The data of one head of one example fits into the first two cache levels, and attention weights
   never leave them: the backward pass computes them again, from the logarithm of each row's sum,
   which the forward pass saves. */

#include "attention.h"
#include "products.h"
#include "tiles.h"

static void attend(const Attention *a) {
    ALIGNED uint32_t keys[WIDEST / 2 * LONGEST], values[LONGEST / 2 * WIDEST], weights[ROWS * LONGEST / 2];
    ALIGNED float scores[ROWS * LONGEST];
    int padded = vectors_of(a->seq) * LANES;
    long row = (long)a->heads * a->width;
    pair_numbers(a->key, a->key_row, a->seq, a->width, padded, keys);
    pair_rows(a->value, a->key_row, a->seq, a->width, a->width, values);
    for (int i = 0; i < a->read; i += ROWS) {
        int rows = least(ROWS, a->read - i), last = seen(a, i + rows - 1);
        Left queries = {(const uint32_t *)(a->query + i * a->query_row), a->query_row / 2, 1};
        multiply(rows, vectors_of(last), queries, (Right){keys, padded}, 0, a->width / 2,
                 (Out){scores, 0, padded, 0});
        for (int r = 0; r < rows; r++)
            a->logsum[i + r] = softmax(scores + r * padded, seen(a, i + r), a->scale,
                                       (bf16 *)weights + r * padded, vectors_of(last));
        multiply(rows, a->width / LANES, (Left){weights, padded / 2, 1}, (Right){values, a->width}, 0,
                 (last + 1) / 2, (Out){0, a->out + i * row, row, 0});
    }
}

/* Converts one row in place: scores to weights p, and the gradients of the weights (slopes) to those of the
   scores, p (slope - sum p slope) scale. Both are 0 at masked positions. */
static void softmax_back(float *scores, float *slopes, int n, int vectors, float scale, float logsum) {
    __m512 sum = all(0);
    for (int v = 0; v < vectors; v++) {
        __mmask16 here = first(n - v * LANES);
        __m512 x = _mm512_fmsub_ps(_mm512_maskz_loadu_ps(here, scores + v * LANES), all(scale), all(logsum));
        x = _mm512_maskz_mov_ps(here, exponential(x));
        sum = _mm512_fmadd_ps(x, _mm512_maskz_loadu_ps(here, slopes + v * LANES), sum);
        _mm512_storeu_ps(scores + v * LANES, x);
    }
    __m512 mean = all(_mm512_reduce_add_ps(sum));
    for (int v = 0; v < vectors; v++) {
        __mmask16 here = first(n - v * LANES);
        __m512 x = _mm512_mul_ps(_mm512_loadu_ps(scores + v * LANES), all(scale));
        x = _mm512_maskz_mul_ps(here, x, _mm512_sub_ps(_mm512_loadu_ps(slopes + v * LANES), mean));
        _mm512_storeu_ps(slopes + v * LANES, x);
    }
}

/* Rounds rows of sums, with the same layout. */
static void round_rows(const float *x, int rows, int padded, bf16 *rounded_rows) {
    for (int i = 0; i < rows * padded; i += LANES) store(rounded_rows + i, _mm512_loadu_ps(x + i));
}

/* Rounds rows of sums, and combines every two rows as pairs, as pair_rows does. */
static void pair_sums(const float *x, int rows, int padded, uint32_t *pairs) {
    for (int r = 0; r < rows; r += 2)
        for (int i = 0; i < padded; i += LANES) {
            const float *from = x + r * padded + i;
            __m512i both = low(rounded(_mm512_loadu_ps(from)));
            if (r + 1 < rows) both = _mm512_or_si512(both, high(rounded(_mm512_loadu_ps(from + padded))));
            _mm512_storeu_si512(pairs + r / 2 * padded + i, both);
        }
}

/* Writes the sum over i of left[i][j] right[i], for every position j; left has pairs of i. */
static void gather_back(const Attention *a, const uint32_t *left, const uint32_t *right, bf16 *out) {
    int padded = vectors_of(a->seq) * LANES, before = a->seq - a->read;
    for (int j = 0; j < a->seq; j += ROWS) {
        int begin = a->causal ? most(0, j - before) / 2 : 0;
        multiply(least(ROWS, a->seq - j), a->width / LANES, (Left){left + j, 1, padded},
                 (Right){right, a->width}, begin, (a->read + 1) / 2,
                 (Out){0, out + j * a->key_row, a->key_row, 0});
    }
}

static void attend_back(const Attention *a) {
    ALIGNED uint32_t keys[WIDEST / 2 * LONGEST], values[WIDEST / 2 * LONGEST], right[LONGEST / 2 * WIDEST];
    ALIGNED uint32_t weight_pairs[LONGEST / 2 * LONGEST], slope_pairs[LONGEST / 2 * LONGEST];
    ALIGNED uint32_t slope_rows[ROWS * LONGEST / 2];
    ALIGNED float scores[ROWS * LONGEST], slopes[ROWS * LONGEST];
    int padded = vectors_of(a->seq) * LANES, width = a->width;
    long row = (long)a->heads * width;
    pair_numbers(a->key, a->key_row, a->seq, width, padded, keys);
    pair_numbers(a->value, a->key_row, a->seq, width, padded, values);
    pair_rows(a->key, a->key_row, a->seq, width, width, right);
    for (int i = 0; i < a->read; i += ROWS) {
        int rows = least(ROWS, a->read - i), last = seen(a, i + rows - 1), near = vectors_of(last);
        Left queries = {(const uint32_t *)(a->query + i * a->query_row), a->query_row / 2, 1};
        Left gradients = {(const uint32_t *)(a->gradient + i * row), row / 2, 1};
        multiply(rows, near, queries, (Right){keys, padded}, 0, width / 2, (Out){scores, 0, padded, 0});
        multiply(rows, near, gradients, (Right){values, padded}, 0, width / 2, (Out){slopes, 0, padded, 0});
        for (int r = 0; r < rows; r++)
            softmax_back(scores + r * padded, slopes + r * padded, seen(a, i + r), padded / LANES,
                         a->scale, a->logsum[i + r]);
        pair_sums(scores, rows, padded, weight_pairs + i / 2 * padded);
        pair_sums(slopes, rows, padded, slope_pairs + i / 2 * padded);
        round_rows(slopes, rows, padded, (bf16 *)slope_rows);
        multiply(rows, width / LANES, (Left){slope_rows, padded / 2, 1}, (Right){right, width}, 0,
                 (last + 1) / 2, (Out){0, a->query_gradient + i * a->query_row, a->query_row, 0});
    }
    pair_rows(a->gradient, row, a->read, width, width, right);
    gather_back(a, weight_pairs, right, a->value_gradient);
    pair_rows(a->query, a->query_row, a->read, width, width, right);
    gather_back(a, slope_pairs, right, a->key_gradient);
}

/* Inline, since gcc would remove calls of a function that only prefetches. */
INLINE void fetch_head(const Attention *a, int example, int head) {
    Attention one = at_head(a, example, head);
    fetch(one.key, a->key_row, a->seq, a->width);
    fetch(one.value, a->key_row, a->seq, a->width);
    fetch(one.query, a->query_row, a->read, a->width);
    if (a->gradient) fetch(one.gradient, (long)a->heads * a->width, a->read, a->width);
}

/* Threads divide the examples, not the heads, since the heads of a position share cache lines. */
static void for_each_head(const Attention *a, void (*run)(const Attention *)) {
#pragma omp parallel
    {
        if (a->tiles) hold_tiles(SIDE);
#pragma omp for schedule(static)
        for (int example = 0; example < a->batch; example++)
            for (int head = 0; head < a->heads; head++) {
                Attention one = at_head(a, example, head);
                int last = head == a->heads - 1;
                fetch_head(a, example + last, last ? 0 : head + 1);
                run(&one);
            }
        if (a->tiles) release_tiles();
    }
}

void attention_forward(const Attention *a) { for_each_head(a, a->tiles ? attend_with_tiles : attend); }
void attention_backward(const Attention *a) {
    for_each_head(a, a->tiles ? attend_back_with_tiles : attend_back);
}
