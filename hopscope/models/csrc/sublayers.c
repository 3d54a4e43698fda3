/* The sublayers of a transformer block, each computed by one call forward and one backward:

       x + out(attention(norm(x)))        x + down(GELU(up(norm(x))))

   The forward pass saves what the backward pass needs in one buffer, `saved`, whose layout is defined here.
   native.py mirrors Sizes, AttentionSublayer and MlpSublayer field by field. */

#include <string.h>

#include "attention.h"
#include "mlp.h"
#include "norm.h"

/* The sizes of a sublayer, with `batch` examples of each model; either `heads` or `hidden` is set. */
typedef struct {
    int models, batch, seq, read, width, heads, inner, hidden, causal, tiles; /* inner: width of all heads */
    float epsilon;
} Sizes;

typedef struct { bf16 *weight, *bias; } Map;

typedef struct {
    Sizes sizes;
    bf16 *x, *gain, *shift;
    Map query, key, value, out; /* keys have no bias */
    bf16 *y;
    char *saved;
    bf16 *gradient, *x_gradient, *gain_gradient, *shift_gradient;
    Map query_gradient, packed_gradient, out_gradient; /* packed: (query,) key and value */
} AttentionSublayer;

typedef struct {
    Sizes sizes;
    bf16 *x, *gain, *shift;
    Map up, down;
    bf16 *y;
    char *saved;
    bf16 *gradient, *x_gradient, *gain_gradient, *shift_gradient;
    Map up_gradient, down_gradient;
} MlpSublayer;

/* The parts of `saved`. The MLP saves `hidden`; attention saves all parts after `normed` except `hidden`. */
typedef struct {
    float *statistics;
    bf16 *normed, *weight, *packed_qkv, *queries, *mixed, *hidden;
    float *logsum;
    long bytes;
} Saved;

enum { BF16 = sizeof(bf16), FLOAT32 = sizeof(float) }; /* bytes per number */

static void *next(char *base, long *bytes, long numbers, long size) {
    void *part = base ? base + *bytes : 0;
    *bytes += (numbers * size + 63) / 64 * 64;
    return part;
}

static long rows_of(const Sizes *s) { return (long)s->models * s->batch * s->seq; }
static long read_of(const Sizes *s) { return (long)s->models * s->batch * s->read; }
static int whole(const Sizes *s) { return s->read == s->seq; }
/* The number of maps that are computed as one: query, key and value; or key and value */
static int joint(const Sizes *s) { return whole(s) ? 3 : 2; }

static Saved parts_of(const Sizes *s, char *base) {
    Saved saved = {0};
    long rows = rows_of(s), read = read_of(s);
    saved.statistics = next(base, &saved.bytes, 2 * rows, FLOAT32);
    saved.normed = next(base, &saved.bytes, rows * s->width, BF16);
    if (s->hidden) {
        saved.hidden = next(base, &saved.bytes, rows * s->hidden, BF16);
        return saved;
    }
    saved.weight = next(base, &saved.bytes, (long)s->models * joint(s) * s->inner * s->width, BF16);
    saved.packed_qkv = next(base, &saved.bytes, rows * joint(s) * s->inner, BF16);
    if (!whole(s)) saved.queries = next(base, &saved.bytes, read * s->inner, BF16);
    saved.mixed = next(base, &saved.bytes, read * s->inner, BF16);
    saved.logsum = next(base, &saved.bytes, read * s->heads, FLOAT32);
    return saved;
}

/* The sizes of the structs that native.py mirrors. */
const long hopscope_struct_sizes[] = {sizeof(Sizes), sizeof(AttentionSublayer), sizeof(MlpSublayer)};

long hopscope_saved_bytes(const Sizes *s) { return parts_of(s, 0).bytes; }

static Norm norming(const Sizes *s, bf16 *x, bf16 *gain, const Saved *saved) {
    return (Norm){.models = s->models, .width = s->width, .rows = (long)s->batch * s->seq,
                  .epsilon = s->epsilon, .x = x, .gain = gain, .statistics = saved->statistics};
}

static Affine mapping(const Sizes *s, int ins, int outs, int seq, bf16 *x, Map map) {
    return (Affine){.models = s->models, .ins = ins, .outs = outs, .tiles = s->tiles,
                    .rows = (long)s->batch * seq, .x = x, .weight = map.weight, .bias = map.bias};
}

static void point_back(Affine *a, bf16 *gradient, bf16 *x_gradient, Map to) {
    a->gradient = gradient, a->x_gradient = x_gradient;
    a->weight_gradient = to.weight, a->bias_gradient = to.bias;
}

static Attention attending(const AttentionSublayer *task, const Saved *saved) {
    const Sizes *s = &task->sizes;
    bf16 *key = saved->packed_qkv + (long)(joint(s) - 2) * s->inner;
    int width = s->inner / s->heads;
    return (Attention){.batch = s->models * s->batch, .heads = s->heads, .read = s->read, .seq = s->seq,
                       .width = width, .causal = s->causal, .tiles = s->tiles,
                       .query_row = whole(s) ? joint(s) * s->inner : s->inner,
                       .key_row = joint(s) * s->inner, .scale = (float)(1 / __builtin_sqrt(width)),
                       .query = whole(s) ? saved->packed_qkv : saved->queries, .key = key, .value = key + s->inner,
                       .logsum = saved->logsum};
}

/* Concatenates the weights (inner x width) and biases of these maps, for each model */
static void join(const AttentionSublayer *task, bf16 *weight, bf16 *bias) {
    const Sizes *s = &task->sizes;
    const Map all[] = {task->query, task->key, task->value}, *maps = all + 3 - joint(s);
    long numbers = (long)s->inner * s->width, inner = s->inner;
    for (int m = 0; m < s->models; m++)
        for (int i = 0; i < joint(s); i++, weight += numbers, bias += inner) {
            memcpy(weight, maps[i].weight + m * numbers, (size_t)numbers * BF16);
            if (maps[i].bias) memcpy(bias, maps[i].bias + m * inner, (size_t)inner * BF16);
            else memset(bias, 0, (size_t)inner * BF16);
        }
}

/* Returns a copy of the last `read` positions of every example */
static bf16 *last_positions(const Sizes *s, const bf16 *x) {
    long wide = (long)s->read * s->width;
    bf16 *last = workspace(read_of(s) * s->width * BF16);
    const bf16 *from = x + (long)(s->seq - s->read) * s->width;
    for (long e = 0; e < (long)s->models * s->batch; e++)
        memcpy(last + e * wide, from + e * s->seq * s->width, (size_t)wide * BF16);
    return last;
}

/* Adds `last` to the last `read` positions of every example in x */
static void add_to_last(const Sizes *s, bf16 *x, const bf16 *last) {
    long wide = (long)s->read * s->width;
    bf16 *to = x + (long)(s->seq - s->read) * s->width;
    for (long e = 0; e < (long)s->models * s->batch; e++, last += wide, to += (long)s->seq * s->width)
        for (long i = 0; i < wide; i += LANES) store(to + i, _mm512_add_ps(load(to + i), load(last + i)));
}

void hopscope_attention_sublayer(const AttentionSublayer *task) {
    const Sizes *s = &task->sizes;
    Saved saved = parts_of(s, task->saved);
    Norm norm = norming(s, task->x, task->gain, &saved);
    norm.shift = task->shift, norm.y = saved.normed;
    norm_forward(&norm);
    bf16 *bias = workspace((long)s->models * joint(s) * s->inner * BF16), *also = task->x;
    join(task, saved.weight, bias);
    Affine packed_qkv = mapping(s, s->width, joint(s) * s->inner, s->seq, saved.normed, (Map){saved.weight, bias});
    packed_qkv.y = saved.packed_qkv;
    affine_forward(&packed_qkv);
    free(bias);
    if (!whole(s)) {
        bf16 *last = last_positions(s, saved.normed);
        Affine query = mapping(s, s->width, s->inner, s->read, last, task->query);
        query.y = saved.queries;
        affine_forward(&query);
        free(last);
        also = last_positions(s, task->x);
    }
    Attention attention = attending(task, &saved);
    attention.out = saved.mixed;
    attention_forward(&attention);
    Affine out = mapping(s, s->inner, s->width, s->read, saved.mixed, task->out);
    out.y = task->y, out.also = also;
    affine_forward(&out);
    if (!whole(s)) free(also);
}

void hopscope_attention_sublayer_back(const AttentionSublayer *task) {
    const Sizes *s = &task->sizes;
    Saved saved = parts_of(s, task->saved);
    long wide = joint(s) * s->inner;
    bf16 *mixed = workspace(read_of(s) * s->inner * BF16), *slopes = workspace(rows_of(s) * wide * BF16);
    bf16 *normed = workspace(rows_of(s) * s->width * BF16), *queries = 0;
    Affine out = mapping(s, s->inner, s->width, s->read, saved.mixed, task->out);
    point_back(&out, task->gradient, mixed, task->out_gradient);
    affine_backward(&out);
    Attention attention = attending(task, &saved);
    attention.gradient = mixed;
    attention.key_gradient = slopes + (wide - 2 * s->inner), attention.value_gradient = slopes + (wide - s->inner);
    attention.query_gradient = whole(s) ? slopes : (queries = workspace(read_of(s) * s->inner * BF16));
    attention_backward(&attention);
    Affine packed_qkv = mapping(s, s->width, (int)wide, s->seq, saved.normed, (Map){saved.weight, 0});
    point_back(&packed_qkv, slopes, normed, task->packed_gradient);
    affine_backward(&packed_qkv);
    if (!whole(s)) {
        bf16 *last = last_positions(s, saved.normed), *of_last = workspace(read_of(s) * s->width * BF16);
        Affine query = mapping(s, s->width, s->inner, s->read, last, task->query);
        point_back(&query, queries, of_last, task->query_gradient);
        affine_backward(&query);
        add_to_last(s, normed, of_last);
        free(last), free(of_last), free(queries);
    }
    Norm norm = norming(s, task->x, task->gain, &saved);
    norm.gradient = normed, norm.x_gradient = task->x_gradient;
    norm.gain_gradient = task->gain_gradient, norm.shift_gradient = task->shift_gradient;
    if (whole(s)) norm.also = task->gradient;
    norm_backward(&norm);
    if (!whole(s)) add_to_last(s, task->x_gradient, task->gradient);
    free(mixed), free(slopes), free(normed);
}

static Mlp mlp_of(const MlpSublayer *task, const Saved *saved) {
    const Sizes *s = &task->sizes;
    return (Mlp){mapping(s, s->width, s->hidden, s->seq, saved->normed, task->up),
                 mapping(s, s->hidden, s->width, s->seq, saved->hidden, task->down)};
}

void hopscope_mlp_sublayer(const MlpSublayer *task) {
    const Sizes *s = &task->sizes;
    Saved saved = parts_of(s, task->saved);
    Norm norm = norming(s, task->x, task->gain, &saved);
    norm.shift = task->shift, norm.y = saved.normed;
    norm_forward(&norm);
    Mlp mlp = mlp_of(task, &saved);
    mlp.up.y = saved.hidden, mlp.down.y = task->y, mlp.down.also = task->x;
    mlp_forward(&mlp);
}

void hopscope_mlp_sublayer_back(const MlpSublayer *task) {
    const Sizes *s = &task->sizes;
    Saved saved = parts_of(s, task->saved);
    bf16 *normed = workspace(rows_of(s) * s->width * BF16);
    Mlp mlp = mlp_of(task, &saved);
    mlp.up.y = saved.hidden;
    point_back(&mlp.up, 0, normed, task->up_gradient);
    point_back(&mlp.down, task->gradient, 0, task->down_gradient);
    mlp_backward(&mlp);
    Norm norm = norming(s, task->x, task->gain, &saved);
    norm.gradient = normed, norm.x_gradient = task->x_gradient, norm.also = task->gradient;
    norm.gain_gradient = task->gain_gradient, norm.shift_gradient = task->shift_gradient;
    norm_backward(&norm);
    free(normed);
}
