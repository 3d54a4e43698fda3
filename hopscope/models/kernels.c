/* Attention, affine maps, MLP and norm of bf16 numbers, forward and backward, for processors with AVX-512 BF16.

   The instruction all products are made of, VDPBF16PS, multiplies pairs of bf16 and adds both products
   to a float32. So a pair, one 32-bit word, is the unit of everything that is summed over: a left
   operand gives one pair to all lanes, a right operand gives sixteen columns of pairs.

   What belongs to one head of one example fits into the first two caches, and no attention weight
   leaves them: the backward pass computes the weights anew from what the forward pass kept of each
   row, the logarithm of its sum. Sums, softmax and statistics are float32.

   Called from kernels.py, which sees to what must hold: widths are multiples of LANES (of affine maps,
   of OUTS), LONGEST and WIDEST are not exceeded. OpenMP is not linked: its calls bind to the library
   that torch has loaded, so that both share one pool of threads. */

#include <immintrin.h>
#include <stdint.h>

typedef uint16_t bf16;

enum { LANES = 16, ROWS = 8, LONGEST = 128, WIDEST = 128, CHUNKS = 32 };

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16") /* else arrays of sums may end up in memory */
#define ALIGNED __attribute__((aligned(64)))

INLINE int least(int a, int b) { return a < b ? a : b; }
INLINE int most(int a, int b) { return a > b ? a : b; }
INLINE int vectors_of(int n) { return (n + LANES - 1) / LANES; }
INLINE __mmask16 first(int n) { return n >= LANES ? 0xffff : (__mmask16)((1u << most(0, n)) - 1); }

INLINE __m512 all(float x) { return _mm512_set1_ps(x); }
INLINE __m256i get(const bf16 *from) { return _mm256_loadu_si256((const __m256i *)from); }
INLINE __m512i low(__m256i x) { return _mm512_cvtepu16_epi32(x); }
INLINE __m512i high(__m256i x) { return _mm512_slli_epi32(low(x), 16); }
INLINE __m512 load(const bf16 *from) { return _mm512_castsi512_ps(high(get(from))); }
INLINE __m256i rounded(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }
INLINE void store(bf16 *to, __m512 x) { _mm256_storeu_si256((__m256i *)to, rounded(x)); }

/* exp(x) = 2^n 2^f with |f| <= 1/2; the polynomial is off by 2e-6 at most. */
INLINE __m512 exponential(__m512 x) {
    __m512 power = _mm512_mul_ps(x, all(1.44269504f));
    __m512 whole = _mm512_roundscale_ps(power, 0);
    __m512 f = _mm512_sub_ps(power, whole);
    __m512 y = _mm512_fmadd_ps(all(1.3333558e-3f), f, all(9.6181291e-3f));
    y = _mm512_fmadd_ps(y, f, all(5.5504109e-2f));
    y = _mm512_fmadd_ps(y, f, all(2.4022651e-1f));
    y = _mm512_fmadd_ps(y, f, all(6.9314718e-1f));
    y = _mm512_fmadd_ps(y, f, all(1));
    return _mm512_scalef_ps(y, whole);
}

/* ---- Products: out[r][c] = sum over pairs p of left[r][p] . right[p][c] ---- */

typedef struct { const uint32_t *at; long row, pair; } Left;
typedef struct { const uint32_t *at; long pair; } Right;
typedef struct { float *sums; bf16 *rounded; long row; const bf16 *start; } Out; /* sums or rounded */

INLINE void tile(int rows, int vectors, Left left, Right right, int begin, int end, Out out) {
    __m512 sum[ROWS][4];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++)
            sum[r][v] = out.start ? load(out.start + v * LANES) : all(0);
    for (int p = begin; p < end; p++) {
        __m512bh columns[4];
        UNROLLED for (int v = 0; v < vectors; v++)
            columns[v] = (__m512bh)_mm512_loadu_si512(right.at + p * right.pair + v * LANES);
        UNROLLED for (int r = 0; r < rows; r++) {
            uint32_t pair = left.at[r * left.row + p * left.pair];
            UNROLLED for (int v = 0; v < vectors; v++)
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)_mm512_set1_epi32((int)pair), columns[v]);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++) {
            long place = r * out.row + v * LANES;
            if (out.sums) _mm512_storeu_ps(out.sums + place, sum[r][v]);
            else store(out.rounded + place, sum[r][v]);
        }
}

/* As many sums at once as hide the latency of an addition and still fit into the registers. */
#define TILE(rows, vectors) \
    static void tile_##rows##_##vectors(Left left, Right right, int begin, int end, Out out) { \
        tile(rows, vectors, left, right, begin, end, out); \
    }
TILE(8, 1) TILE(8, 2) TILE(4, 1) TILE(4, 2) TILE(4, 3) TILE(4, 4) TILE(1, 1) TILE(1, 2) TILE(1, 3) TILE(1, 4)

typedef void Tile(Left, Right, int begin, int end, Out);
static Tile *const EIGHT_ROWS[] = {0, tile_8_1, tile_8_2};
static Tile *const FOUR_ROWS[] = {0, tile_4_1, tile_4_2, tile_4_3, tile_4_4};
static Tile *const ONE_ROW[] = {0, tile_1_1, tile_1_2, tile_1_3, tile_1_4};

static void multiply(int rows, int vectors, Left left, Right right, int begin, int end, Out out) {
    for (int v = 0; v < vectors; v += 4) {
        int group = least(4, vectors - v);
        for (int r = 0, step; r < rows; r += step) {
            long place = r * out.row + v * LANES;
            step = group <= 2 && rows - r >= 8 ? 8 : rows - r >= 4 ? 4 : 1;
            Tile *run = (step == 8 ? EIGHT_ROWS : step == 4 ? FOUR_ROWS : ONE_ROW)[group];
            run((Left){left.at + r * left.row, left.row, left.pair},
                (Right){right.at + v * LANES, right.pair}, begin, end,
                (Out){out.sums ? out.sums + place : 0, out.rounded ? out.rounded + place : 0, out.row,
                      out.start ? out.start + v * LANES : 0});
        }
    }
}

/* Sixteen rows of sixteen words: change places across the diagonal, of blocks of 1, 2, 4 and 8. */
INLINE void transpose(__m512i x[LANES]) {
    static const __mmask16 SECOND[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    UNROLLED for (int s = 0; s < 4; s++) {
        int step = 1 << s;
        __m512i upper = _mm512_mask_add_epi32(lane, SECOND[s], lane, _mm512_set1_epi32(16 - step));
        __m512i lower = _mm512_mask_add_epi32(
            _mm512_add_epi32(lane, _mm512_set1_epi32(step)), SECOND[s], lane, _mm512_set1_epi32(16));
        UNROLLED for (int i = 0; i < LANES; i++)
            if (!(i & step)) {
                __m512i a = x[i], b = x[i + step];
                x[i] = _mm512_permutex2var_epi32(a, upper, b);
                x[i + step] = _mm512_permutex2var_epi32(a, lower, b);
            }
    }
}

/* Rows as right operand, transposed: pairs[p][i] = (x[i][2p], x[i][2p + 1]); beyond n zeros. */
static void pair_numbers(const bf16 *x, long row, int n, int width, uint32_t *pairs) {
    int padded = vectors_of(n) * LANES;
    for (int i = 0; i < n; i += LANES)
        for (int p = 0; p < width / 2; p += LANES) {
            int some = least(LANES, width / 2 - p); /* the last block may be half a one */
            __m512i block[LANES];
            UNROLLED for (int r = 0; r < LANES; r++)
                block[r] = i + r < n
                    ? _mm512_maskz_loadu_epi32(first(some), (const uint32_t *)(x + (i + r) * row) + p)
                    : _mm512_setzero_si512();
            transpose(block);
            UNROLLED for (int c = 0; c < LANES; c++)
                if (c < some) _mm512_storeu_si512(pairs + (p + c) * padded + i, block[c]);
        }
}

/* Rows as they lie: pairs[p][d] = (x[2p][d], x[2p + 1][d]); an odd last row is paired with zeros. */
INLINE void pair_rows(const bf16 *x, long row, int n, int width, int stride, uint32_t *pairs) {
    __m512i first_lanes = _mm512_set_epi32( /* 0 of the even row, 0 of the odd row, 1 of the even row, ... */
        0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a, 0x290009, 0x280008,
        0x270007, 0x260006, 0x250005, 0x240004, 0x230003, 0x220002, 0x210001, 0x200000);
    __m512i next_lanes = _mm512_add_epi16(first_lanes, _mm512_set1_epi16(LANES));
    for (int i = 0; i < n; i += 2)
        for (int d = 0; d < width; d += 2 * LANES) {
            int both = width - d >= 2 * LANES; /* the last block may be half a one */
            __mmask32 some = both ? ~0u : 0xffff;
            const bf16 *from = x + i * row + d;
            uint32_t *to = pairs + i / 2 * stride + d;
            __m512i even = _mm512_maskz_loadu_epi16(some, from), odd = _mm512_setzero_si512();
            if (i + 1 < n) odd = _mm512_maskz_loadu_epi16(some, from + row);
            _mm512_storeu_si512(to, _mm512_permutex2var_epi16(even, first_lanes, odd));
            if (both) _mm512_storeu_si512(to + LANES, _mm512_permutex2var_epi16(even, next_lanes, odd));
        }
}

/* Rows that will be needed soon. Beyond the end of a tensor this does nothing. */
INLINE void fetch(const bf16 *x, long row, int n, int width) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d < width; d += 2 * LANES) __builtin_prefetch(x + i * row + d);
}

/* ---- Attention: the last `read` of `seq` positions look at all (causal: at none behind them) ---- */

typedef struct {
    int batch, heads, read, seq, width, causal;
    long query_row, key_row; /* numbers from one position to the next; of values as of keys */
    float scale;
    const bf16 *query, *key, *value; /* batch, position, head, width */
    bf16 *out;
    float *logsum; /* batch, head, read */
    const bf16 *gradient;
    bf16 *query_gradient, *key_gradient, *value_gradient;
} Attention;

/* The same, from one head of one example on. */
static Attention at_head(const Attention *a, int example, int head) {
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

/* The softmax of one row of scores, rounded; returns the logarithm of the sum. */
static float softmax(float *scores, int n, float scale, bf16 *weights, int vectors) {
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

static void attend(const Attention *a) {
    ALIGNED uint32_t keys[WIDEST / 2 * LONGEST], values[LONGEST / 2 * WIDEST], weights[ROWS * LONGEST / 2];
    ALIGNED float scores[ROWS * LONGEST];
    int padded = vectors_of(a->seq) * LANES;
    long row = (long)a->heads * a->width;
    pair_numbers(a->key, a->key_row, a->seq, a->width, keys);
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

/* One row: scores become weights p, and slopes (of the weights) those of the scores,
   p (slope - sum p slope) scale. Both are 0 where nothing is seen. */
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

/* Rows of sums, rounded: each as it is. */
static void round_rows(const float *x, int rows, int padded, bf16 *rounded_rows) {
    for (int i = 0; i < rows * padded; i += LANES) store(rounded_rows + i, _mm512_loadu_ps(x + i));
}

/* The same, two and two as pairs, as pair_rows does it. */
static void pair_sums(const float *x, int rows, int padded, uint32_t *pairs) {
    for (int r = 0; r < rows; r += 2)
        for (int i = 0; i < padded; i += LANES) {
            const float *from = x + r * padded + i;
            __m512i both = low(rounded(_mm512_loadu_ps(from)));
            if (r + 1 < rows) both = _mm512_or_si512(both, high(rounded(_mm512_loadu_ps(from + padded))));
            _mm512_storeu_si512(pairs + r / 2 * padded + i, both);
        }
}

/* sum over i of left[i][j] right[i], for every position j; left is given in pairs of i. */
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
    pair_numbers(a->key, a->key_row, a->seq, width, keys);
    pair_numbers(a->value, a->key_row, a->seq, width, values);
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

/* Inline, since a function that only fetches does nothing, as gcc sees it, and is left out. */
INLINE void fetch_head(const Attention *a, int example, int head) {
    Attention one = at_head(a, example, head);
    fetch(one.key, a->key_row, a->seq, a->width);
    fetch(one.value, a->key_row, a->seq, a->width);
    fetch(one.query, a->query_row, a->read, a->width);
    if (a->gradient) fetch(one.gradient, (long)a->heads * a->width, a->read, a->width);
}

/* Threads share examples, and not heads: the heads of a position lie in the same cache lines. */
static void for_each_head(const Attention *a, void (*run)(const Attention *)) {
#pragma omp parallel for schedule(static)
    for (int example = 0; example < a->batch; example++)
        for (int head = 0; head < a->heads; head++) {
            Attention one = at_head(a, example, head);
            int last = head == a->heads - 1;
            fetch_head(a, example + last, last ? 0 : head + 1);
            run(&one);
        }
}

void hopscope_attend(const Attention *a) { for_each_head(a, attend); }
void hopscope_attend_back(const Attention *a) { for_each_head(a, attend_back); }

/* ---- Affine maps: y = x W^T + b, rows of a fleet's models one behind the other ---- */

enum { BLOCK = 64, PANEL = 2 * LANES };

typedef struct {
    int models, ins, outs; /* ins and outs: multiples of BLOCK */
    long rows;             /* of each model */
    bf16 *x;
    const bf16 *weight, *bias;
    bf16 *y, *gradient, *x_gradient, *weight_gradient, *bias_gradient; /* gradient: of y */
    uint32_t *packed; /* room for the weights as right operand */
} Affine;

INLINE long blocks_of(const Affine *a) { return (a->rows + BLOCK - 1) / BLOCK; }

/* The weights as right operand of x W^T, PANEL columns after PANEL columns; or of gradient W. */
static void pack(const Affine *a, int back) {
    long panels = (back ? a->ins : a->outs) / PANEL, numbers = (long)a->ins * a->outs;
#pragma omp for schedule(static)
    for (long k = 0; k < a->models * panels; k++) {
        const bf16 *weight = a->weight + k / panels * numbers;
        uint32_t *packed = a->packed + k / panels * numbers / 2;
        long from = k % panels * PANEL;
        if (back) pair_rows(weight + from, a->ins, a->outs, PANEL, PANEL, packed + from * a->outs / 2);
        else pair_numbers(weight + from * a->ins, a->ins, PANEL, a->ins, packed + from * a->ins / 2);
    }
}

/* One block of the rows of all models, times the packed weights. */
static void map_block(const Affine *a, long block, int back) {
    long model = block / blocks_of(a), r = block % blocks_of(a) * BLOCK, at = model * a->rows + r;
    int ins = back ? a->outs : a->ins, outs = back ? a->ins : a->outs;
    int rows = a->rows - r < BLOCK ? (int)(a->rows - r) : BLOCK;
    const bf16 *from = (back ? a->gradient : a->x) + at * ins;
    bf16 *to = (back ? a->x_gradient : a->y) + at * outs;
    const uint32_t *packed = a->packed + model * ins * outs / 2;
    for (int o = 0; o < outs; o += PANEL)
        multiply(rows, PANEL / LANES, (Left){(const uint32_t *)from, ins / 2, 1},
                 (Right){packed + (long)o * ins / 2, PANEL}, 0, ins / 2,
                 (Out){0, to + o, outs, back ? 0 : a->bias + model * outs + o});
}

static void map_blocks(const Affine *a, int back) {
#pragma omp parallel
    {
        pack(a, back);
#pragma omp for schedule(static)
        for (long block = 0; block < a->models * blocks_of(a); block++) map_block(a, block, back);
    }
}

/* ---- Gradients of weights: sums over rows of (gradient of y)^T x ---- */

enum { STRIP = 64, OUTS = 64, INS = 128, GROUP = 4, COLUMNS = GROUP * LANES };

/* sums[o][i] += left[p][o] . right[p][i] for GROUP times COLUMNS of them */
static void add_product(const uint32_t *left, const uint32_t *right, int pairs, float *sums) {
    __m512 sum[GROUP][GROUP];
    UNROLLED for (int r = 0; r < GROUP; r++)
        UNROLLED for (int v = 0; v < GROUP; v++) sum[r][v] = _mm512_loadu_ps(sums + r * INS + v * LANES);
    for (int p = 0; p < pairs; p++, left += OUTS, right += COLUMNS)
        UNROLLED for (int r = 0; r < GROUP; r++) {
            __m512bh pair = (__m512bh)_mm512_set1_epi32((int)left[r]);
            UNROLLED for (int v = 0; v < GROUP; v++)
                sum[r][v] =
                    _mm512_dpbf16_ps(sum[r][v], pair, (__m512bh)_mm512_loadu_si512(right + v * LANES));
        }
    UNROLLED for (int r = 0; r < GROUP; r++)
        UNROLLED for (int v = 0; v < GROUP; v++) _mm512_storeu_ps(sums + r * INS + v * LANES, sum[r][v]);
}

/* OUTS x ins numbers of one model's gradient, strip after strip of rows. While one is multiplied, the
   next is fetched, a few rows at a time: more would wait for each other. */
static void weights_back(const Affine *a, const bf16 *x, const bf16 *gradient, int ins, bf16 *weight,
                         bf16 *bias) {
    ALIGNED uint32_t left[STRIP / 2 * OUTS], right[STRIP / 2 * INS]; /* right: COLUMNS after COLUMNS */
    ALIGNED float sums[OUTS * INS] = {0}, shifts[OUTS] = {0};
    int few = STRIP / (OUTS / GROUP * ins / COLUMNS);
    __m512bh ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
    for (long r = 0; r < a->rows; r += STRIP) {
        int rows = a->rows - r < STRIP ? (int)(a->rows - r) : STRIP, pairs = (rows + 1) / 2;
        const bf16 *next_x = x + STRIP * a->ins, *next_gradient = gradient + STRIP * a->outs;
        pair_rows(gradient, a->outs, rows, OUTS, OUTS, left);
        for (int i = 0; i < ins; i += COLUMNS)
            pair_rows(x + i, a->ins, rows, COLUMNS, COLUMNS, right + i * STRIP / 2);
        x = next_x, gradient = next_gradient;
        for (int i = 0; i < ins; i += COLUMNS)
            for (int o = 0; o < OUTS; o += GROUP) {
                fetch(next_x, a->ins, few, ins), next_x += few * a->ins;
                fetch(next_gradient, a->outs, few, OUTS), next_gradient += few * a->outs;
                add_product(left + o, right + i * STRIP / 2, pairs, sums + o * INS + i);
            }
        for (int o = 0; bias && o < OUTS; o += LANES) {
            __m512 shift = _mm512_load_ps(shifts + o);
            for (int p = 0; p < pairs; p++)
                shift = _mm512_dpbf16_ps(shift, (__m512bh)_mm512_load_si512(left + p * OUTS + o), ones);
            _mm512_store_ps(shifts + o, shift);
        }
    }
    for (int o = 0; o < OUTS; o++)
        for (int i = 0; i < ins; i += LANES)
            store(weight + (long)o * a->ins + i, _mm512_load_ps(sums + o * INS + i));
    for (int o = 0; bias && o < OUTS; o += LANES) store(bias + o, _mm512_load_ps(shifts + o));
}

static void all_weights_back(const Affine *a) {
    int across = (a->ins + INS - 1) / INS, down = a->outs / OUTS;
#pragma omp parallel for schedule(static)
    for (int block = 0; block < a->models * down * across; block++) {
        long model = block / (down * across), o = block / across % down * OUTS, i = block % across * INS;
        weights_back(a, a->x + model * a->rows * a->ins + i, a->gradient + model * a->rows * a->outs + o,
                     least(INS, a->ins - (int)i), a->weight_gradient + (model * a->outs + o) * a->ins + i,
                     i == 0 ? a->bias_gradient + model * a->outs + o : 0);
    }
}

void hopscope_affine(const Affine *a) { map_blocks(a, 0); }

void hopscope_affine_back(const Affine *a) {
    map_blocks(a, 1);
    all_weights_back(a);
}

/* ---- MLP: up, GELU (x times the share of a normal distribution below x), down ---- */

typedef struct {
    Affine up, down; /* x of down is GELU of y of up; the gradients are one memory, changed in place */
} Mlp;

/* GELU of x, and its slope */
INLINE __m512 gelu(__m512 x, __m512 *slope) {
    __m512 bell = exponential(_mm512_mul_ps(_mm512_mul_ps(x, x), all(-0.5f)));
    /* Abramowitz and Stegun 7.1.26, halved: off by 1e-7 at most */
    __m512 z = _mm512_fmadd_ps(_mm512_abs_ps(x), all(0.3275911f * 0.70710678f), all(1));
    __m512 t = _mm512_rcp14_ps(z);
    t = _mm512_mul_ps(t, _mm512_fnmadd_ps(z, t, all(2)));
    __m512 tail = _mm512_fmadd_ps(all(0.5f * 1.061405429f), t, all(0.5f * -1.453152027f));
    tail = _mm512_fmadd_ps(tail, t, all(0.5f * 1.421413741f));
    tail = _mm512_fmadd_ps(tail, t, all(0.5f * -0.284496736f));
    tail = _mm512_fmadd_ps(tail, t, all(0.5f * 0.254829592f));
    tail = _mm512_mul_ps(_mm512_mul_ps(tail, t), bell);
    __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
    __m512 share = _mm512_mask_mov_ps(_mm512_sub_ps(all(1), tail), below, tail);
    *slope = _mm512_fmadd_ps(_mm512_mul_ps(x, all(0.39894228f)), bell, share);
    return _mm512_mul_ps(x, share);
}

/* GELU of one block of the hidden layer; back: its gradient is multiplied by the slope, too. */
static void gelu_block(const Mlp *m, long block, int back) {
    long model = block / blocks_of(&m->up), r = block % blocks_of(&m->up) * BLOCK, width = m->up.outs;
    long begin = (model * m->up.rows + r) * width, end = begin + width * least(BLOCK, (int)(m->up.rows - r));
    for (long i = begin; i < end; i += LANES) {
        __m512 slope;
        store(m->down.x + i, gelu(load(m->up.y + i), &slope));
        if (back) store(m->up.gradient + i, _mm512_mul_ps(load(m->up.gradient + i), slope));
    }
}

void hopscope_mlp(const Mlp *m) {
#pragma omp parallel
    {
        pack(&m->up, 0), pack(&m->down, 0);
#pragma omp for schedule(static)
        for (long block = 0; block < m->up.models * blocks_of(&m->up); block++)
            map_block(&m->up, block, 0), gelu_block(m, block, 0), map_block(&m->down, block, 0);
    }
}

void hopscope_mlp_back(const Mlp *m) {
#pragma omp parallel
    {
        pack(&m->up, 1), pack(&m->down, 1);
#pragma omp for schedule(static)
        for (long block = 0; block < m->up.models * blocks_of(&m->up); block++)
            map_block(&m->down, block, 1), gelu_block(m, block, 1), map_block(&m->up, block, 1);
    }
    all_weights_back(&m->up), all_weights_back(&m->down);
}

/* ---- Norm: rows of a fleet's models one behind the other, each model with its gain and shift ---- */

typedef struct {
    int models, width;
    long rows; /* of each model */
    float epsilon;
    const bf16 *x, *gain, *shift;
    bf16 *y;
    float *statistics; /* mean and inverse deviation of each row */
    const bf16 *gradient;
    bf16 *x_gradient;
    float *partial; /* model, chunk, (gain, shift), width: sums over some rows */
} Norm;

void hopscope_norm(const Norm *n) {
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

/* With u the unit row and h = gradient . gain:  (h - mean(h) - u mean(u h)) / deviation */
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
        store(n->x_gradient + r * n->width + i, h);
    }
}

/* Chunks, and not threads, have sums of their own: the result is the same for any number of threads. */
void hopscope_norm_back(const Norm *n) {
    int width = n->width;
#pragma omp parallel for schedule(static)
    for (int c = 0; c < n->models * CHUNKS; c++) {
        long model = c / CHUNKS, chunk = c % CHUNKS, start = model * n->rows;
        float *gains = n->partial + 2L * c * width, *shifts = gains + width;
        for (int i = 0; i < 2 * width; i += LANES) _mm512_storeu_ps(gains + i, all(0));
        for (long r = n->rows * chunk / CHUNKS; r < n->rows * (chunk + 1) / CHUNKS; r++)
            norm_back_row(n, start + r, n->gain + model * width, gains, shifts);
    }
}
