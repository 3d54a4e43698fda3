/* Attention with AMX.

   In the forward pass, the scores of 32 queries at a time have a row for each query. In the backward pass
   they are transposed, with a row for each key. Then each query has the same lane everywhere, sums over keys
   need no steps across lanes, and weights and slopes can be used unchanged as left operands for the gradients
   of values and keys. */

#include <string.h>

#include "attention.h"
#include "tiles.h"

#if WITH_TILES

INLINE int whole(int n) { return (n + SIDE - 1) / SIDE * SIDE; }
INLINE int tiles_of(int n) { return n > LANES ? 2 : 1; } /* for the remaining n rows or columns of a square */

/* Left operand: contiguous rows, padded with zeros to whole steps. */
static void copy_rows(const bf16 *x, long row, int n, int width, bf16 *to) {
    for (int r = 0; r < n; r++, x += row)
        for (int d = 0; d < width; d += SIDE, to += SIDE)
            _mm512_store_si512(to, _mm512_maskz_loadu_epi16(width - d < SIDE ? 0xffff : ~0u, x + d));
}

/* Right operands: rows transposed, and rows not transposed, padded with zeros to whole steps. */
static void transposed(const bf16 *x, long row, int n, int width, uint32_t *pairs) {
    int stride = whole(n);
    pair_numbers(x, row, n, width, stride, pairs);
    memset(pairs + width / 2 * stride, 0, 2 * (whole(width) - width) * stride);
}
static void as_they_lie(const bf16 *x, long row, int n, int width, uint32_t *pairs) {
    int stride = whole(width), begin = (n + 1) / 2;
    pair_rows(x, row, n, width, stride, pairs);
    memset(pairs + begin * stride, 0, 4 * (whole(n) / 2 - begin) * stride);
}

INLINE void sum_square(int down, int across, const Square *s, int steps, float *sums) {
    clear_tiles(down, across);
    for (int step = 0; step < steps; step++) add_tiles(down, across, s, step, LANES * s->row);
    store_tiles(down, across, sums, SIDE);
}
static void square(int down, int across, const Square *s, int steps, float *sums) {
    if (down == 2 && across == 2) sum_square(2, 2, s, steps, sums);
    else if (down == 2) sum_square(2, 1, s, steps, sums);
    else if (across == 2) sum_square(1, 2, s, steps, sums);
    else sum_square(1, 1, s, steps, sums);
}

/* Writes up to SIDE rows, rounded, of a product as wide as a head. */
static void product(int rows, int width, const Square *first, int steps, bf16 *out, long row) {
    ALIGNED float sums[SIDE * SIDE];
    for (int d = 0; d < width; d += SIDE) {
        Square s = {first->left, first->row, first->right + d, first->pair};
        square(tiles_of(rows), tiles_of(width - d), &s, steps, sums);
        for (int r = 0; r < rows; r++) {
            __m512 left = _mm512_load_ps(sums + r * SIDE);
            if (width - d >= SIDE) store_both(out + r * row + d, left, _mm512_load_ps(sums + r * SIDE + LANES));
            else store(out + r * row + d, left);
        }
    }
}

void attend_with_tiles(const Attention *a) {
    ALIGNED uint32_t keys[WIDEST / 2 * LONGEST], values[LONGEST / 2 * WIDEST];
    ALIGNED bf16 queries[SIDE * WIDEST], weights[SIDE * LONGEST];
    ALIGNED float scores[LONGEST / SIDE][SIDE * SIDE], row[LONGEST];
    int deep = whole(a->width), wide = whole(a->seq);
    transposed(a->key, a->key_row, a->seq, a->width, keys);
    as_they_lie(a->value, a->key_row, a->seq, a->width, values);
    for (int i = 0; i < a->read; i += SIDE) {
        int rows = least(SIDE, a->read - i), last = seen(a, i + rows - 1);
        copy_rows(a->query + i * a->query_row, a->query_row, rows, a->width, queries);
        for (int j = 0; j < last; j += SIDE)
            square(tiles_of(rows), tiles_of(last - j), &(Square){queries, deep, keys + j, wide}, deep / STEP,
                   scores[j / SIDE]);
        for (int r = 0; r < rows; r++) {
            for (int j = 0; j < last; j += LANES)
                _mm512_store_ps(row + j, _mm512_load_ps(scores[j / SIDE] + r * SIDE + j % SIDE));
            a->logsum[i + r] = softmax(row, seen(a, i + r), a->scale, weights + r * wide, whole(last) / LANES);
        }
        long out_row = (long)a->heads * a->width;
        product(rows, a->width, &(Square){weights, wide, values, deep}, whole(last) / STEP, a->out + i * out_row, out_row);
    }
}

/* A mask of which of sixteen queries, from the i-th on, see the j-th key */
INLINE __mmask16 seers(const Attention *a, int i, int j) {
    int blind = a->causal ? most(0, j - (a->seq - a->read) - i) : 0;
    return first(a->read - i) & (blind < LANES ? (__mmask16)(0xffff << blind) : 0);
}

/* For sixteen queries, from the i-th on, converts scores and the gradients of weights (slopes), a row for each
   of `last` keys, to weights p and the gradients of scores, p (slope - sum p slope) scale, rounded. Both are 0
   at masked positions. */
static void softmax_back(const Attention *a, int i, int last, float *scores, const float *slopes, bf16 *weights,
                         bf16 *changes, int wide) {
    __m512 logsum = _mm512_maskz_loadu_ps(first(a->read - i), a->logsum + i), sum = all(0);
    for (int j = 0; j < last; j++) {
        __m512 x = _mm512_fmsub_ps(_mm512_load_ps(scores + j * SIDE), all(a->scale), logsum);
        x = _mm512_maskz_mov_ps(seers(a, i, j), exponential(x));
        sum = _mm512_mask3_fmadd_ps(x, _mm512_load_ps(slopes + j * SIDE), sum, seers(a, i, j));
        _mm512_store_ps(scores + j * SIDE, x);
        store(weights + j * wide, x);
    }
    for (int j = 0; j < last; j++) {
        __m512 x = _mm512_mul_ps(_mm512_load_ps(scores + j * SIDE), all(a->scale));
        x = _mm512_maskz_mul_ps(seers(a, i, j), x, _mm512_sub_ps(_mm512_load_ps(slopes + j * SIDE), sum));
        store(changes + j * wide, x);
    }
    for (int j = last; j < whole(last); j++) store(weights + j * wide, all(0)), store(changes + j * wide, all(0));
}

/* Left operands of the sums over queries, with a row for each key */
typedef struct { bf16 weights[LONGEST * LONGEST], changes[LONGEST * LONGEST]; } Slopes;

/* Computes both for all queries; and from the changes of each SIDE queries, the gradients of these queries. */
static void queries_back(const Attention *a, Slopes *to) {
    ALIGNED bf16 keys[LONGEST * WIDEST], values[LONGEST * WIDEST], turned[SIDE * LONGEST];
    ALIGNED uint32_t queries[WIDEST / 2 * LONGEST], gradients[WIDEST / 2 * LONGEST], key_rows[LONGEST / 2 * WIDEST];
    ALIGNED float scores[LONGEST * SIDE], slopes[LONGEST * SIDE];
    int deep = whole(a->width), wide = whole(a->read), steps = deep / STEP;
    copy_rows(a->key, a->key_row, a->seq, a->width, keys);
    copy_rows(a->value, a->key_row, a->seq, a->width, values);
    as_they_lie(a->key, a->key_row, a->seq, a->width, key_rows);
    transposed(a->query, a->query_row, a->read, a->width, queries);
    transposed(a->gradient, (long)a->heads * a->width, a->read, a->width, gradients);
    for (int i = 0; i < a->read; i += SIDE) {
        int some = least(SIDE, a->read - i), across = tiles_of(some), last = seen(a, i + some - 1);
        for (int j = 0; j < last; j += SIDE) {
            int down = tiles_of(last - j);
            square(down, across, &(Square){keys + j * deep, deep, queries + i, wide}, steps, scores + j * SIDE);
            square(down, across, &(Square){values + j * deep, deep, gradients + i, wide}, steps, slopes + j * SIDE);
        }
        for (int v = 0; v < SIDE; v += LANES)
            softmax_back(a, i + v, last, scores + v, slopes + v, to->weights + i + v, to->changes + i + v, wide);
        for (int j = 0; j < last; j += SIDE) turn(to->changes + j * wide + i, wide, SIDE, turned + j, LONGEST);
        product(some, a->width, &(Square){turned, LONGEST, key_rows, deep}, whole(last) / STEP,
                a->query_gradient + i * a->query_row, a->query_row);
    }
}

/* Writes the sum over i of left[j][i] right[i], for every position j. */
static void keys_back(const Attention *a, const bf16 *left, const uint32_t *right, bf16 *out) {
    int deep = whole(a->width), wide = whole(a->read), before = a->seq - a->read;
    for (int j = 0; j < a->seq; j += SIDE) {
        int begin = a->causal ? most(0, j - before) / STEP : 0;
        Square s = {left + j * wide + begin * STEP, wide, right + begin * LANES * deep, deep};
        product(least(SIDE, a->seq - j), a->width, &s, wide / STEP - begin, out + j * a->key_row, a->key_row);
    }
}

void attend_back_with_tiles(const Attention *a) {
    ALIGNED Slopes slopes;
    ALIGNED uint32_t right[LONGEST / 2 * WIDEST];
    queries_back(a, &slopes);
    as_they_lie(a->gradient, (long)a->heads * a->width, a->read, a->width, right);
    keys_back(a, slopes.weights, right, a->value_gradient);
    as_they_lie(a->query, a->query_row, a->read, a->width, right);
    keys_back(a, slopes.changes, right, a->key_gradient);
}

#else
void attend_with_tiles(const Attention *a) { (void)a; }
void attend_back_with_tiles(const Attention *a) { (void)a; }
#endif
