/* The halves of a transformer's block, each with one call forward and one back:

       x + out(attention(norm(x)))        x + down(GELU(up(norm(x))))

   What the backward pass needs again lies in one piece of memory, `kept`, which is laid out here. */

#include <string.h>

#include "attention.h"
#include "mlp.h"
#include "norm.h"

/* Sizes; `batch` examples of each model. With heads or with a hidden layer. */
typedef struct {
    int models, batch, seq, read, width, heads, inner, hidden, causal, tiles; /* inner: of all heads */
    float epsilon;
} Sizes;

typedef struct { bf16 *weight, *bias; } Map;

typedef struct {
    Sizes sizes;
    bf16 *x, *gain, *shift;
    Map query, key, value, out; /* of keys there is no bias */
    bf16 *y;
    char *kept;
    bf16 *gradient, *x_gradient, *gain_gradient, *shift_gradient;
    Map query_gradient, joined_gradient, out_gradient; /* joined: of (query,) key and value */
} AttentionHalf;

typedef struct {
    Sizes sizes;
    bf16 *x, *gain, *shift;
    Map up, down;
    bf16 *y;
    char *kept;
    bf16 *gradient, *x_gradient, *gain_gradient, *shift_gradient;
    Map up_gradient, down_gradient;
} MlpHalf;

/* What is kept; the last three parts are attention's, or the MLP's `hidden` */
typedef struct {
    float *statistics;
    bf16 *normed, *weight, *joined, *asked, *mixed, *hidden;
    float *logsum;
    long bytes;
} Kept;

static void *next(char *base, long *bytes, long numbers, long size) {
    void *part = base ? base + *bytes : 0;
    *bytes += (numbers * size + 63) / 64 * 64;
    return part;
}

static long rows_of(const Sizes *s) { return (long)s->models * s->batch * s->seq; }
static long read_of(const Sizes *s) { return (long)s->models * s->batch * s->read; }
static int whole(const Sizes *s) { return s->read == s->seq; }
/* Maps that stand side by side: query, key and value; or key and value alone */
static int joint(const Sizes *s) { return whole(s) ? 3 : 2; }

static Kept parts_of(const Sizes *s, char *base) {
    Kept k = {0};
    long rows = rows_of(s), read = read_of(s), half = sizeof(bf16), single = sizeof(float);
    k.statistics = next(base, &k.bytes, 2 * rows, single);
    k.normed = next(base, &k.bytes, rows * s->width, half);
    if (s->hidden) {
        k.hidden = next(base, &k.bytes, rows * s->hidden, half);
        return k;
    }
    k.weight = next(base, &k.bytes, (long)s->models * joint(s) * s->inner * s->width, half);
    k.joined = next(base, &k.bytes, rows * joint(s) * s->inner, half);
    if (!whole(s)) k.asked = next(base, &k.bytes, read * s->inner, half);
    k.mixed = next(base, &k.bytes, read * s->inner, half);
    k.logsum = next(base, &k.bytes, read * s->heads, single);
    return k;
}

long hopscope_half_room(const Sizes *s) { return parts_of(s, 0).bytes; }

static Norm norming(const Sizes *s, bf16 *x, bf16 *gain, const Kept *k) {
    return (Norm){.models = s->models, .width = s->width, .rows = (long)s->batch * s->seq,
                  .epsilon = s->epsilon, .x = x, .gain = gain, .statistics = k->statistics};
}

static Affine mapping(const Sizes *s, int ins, int outs, int seq, bf16 *x, Map map) {
    return (Affine){.models = s->models, .ins = ins, .outs = outs, .tiles = s->tiles,
                    .rows = (long)s->batch * seq, .x = x, .weight = map.weight, .bias = map.bias};
}

static void point_back(Affine *a, bf16 *gradient, bf16 *x_gradient, Map to) {
    a->gradient = gradient, a->x_gradient = x_gradient;
    a->weight_gradient = to.weight, a->bias_gradient = to.bias;
}

static Attention attending(const AttentionHalf *h, const Kept *k) {
    const Sizes *s = &h->sizes;
    bf16 *key = k->joined + (long)(joint(s) - 2) * s->inner;
    int width = s->inner / s->heads;
    return (Attention){.batch = s->models * s->batch, .heads = s->heads, .read = s->read, .seq = s->seq,
                       .width = width, .causal = s->causal, .tiles = s->tiles,
                       .query_row = whole(s) ? joint(s) * s->inner : s->inner,
                       .key_row = joint(s) * s->inner, .scale = (float)(1 / __builtin_sqrt(width)),
                       .query = whole(s) ? k->joined : k->asked, .key = key, .value = key + s->inner,
                       .logsum = k->logsum};
}

/* The weights (inner x width) and biases of maps, side by side, for each model */
static void join(const AttentionHalf *h, bf16 *weight, bf16 *bias) {
    const Sizes *s = &h->sizes;
    const Map all[] = {h->query, h->key, h->value}, *maps = all + 3 - joint(s);
    long numbers = (long)s->inner * s->width, inner = s->inner;
    for (int m = 0; m < s->models; m++)
        for (int i = 0; i < joint(s); i++, weight += numbers, bias += inner) {
            memcpy(weight, maps[i].weight + m * numbers, (size_t)numbers * sizeof(bf16));
            if (maps[i].bias) memcpy(bias, maps[i].bias + m * inner, (size_t)inner * sizeof(bf16));
            else memset(bias, 0, (size_t)inner * sizeof(bf16));
        }
}

/* The positions that read, of every example: out of all of them, or added to them */
static bf16 *reading(const Sizes *s, const bf16 *x) {
    long wide = (long)s->read * s->width;
    bf16 *last = room_for(read_of(s) * s->width * (long)sizeof(bf16));
    const bf16 *from = x + (long)(s->seq - s->read) * s->width;
    for (long e = 0; e < (long)s->models * s->batch; e++)
        memcpy(last + e * wide, from + e * s->seq * s->width, (size_t)wide * sizeof(bf16));
    return last;
}

static void add_reading(const Sizes *s, bf16 *x, const bf16 *last) {
    long wide = (long)s->read * s->width;
    bf16 *to = x + (long)(s->seq - s->read) * s->width;
    for (long e = 0; e < (long)s->models * s->batch; e++, last += wide, to += (long)s->seq * s->width)
        for (long i = 0; i < wide; i += LANES) store(to + i, _mm512_add_ps(load(to + i), load(last + i)));
}

void hopscope_attention_half(const AttentionHalf *h) {
    const Sizes *s = &h->sizes;
    Kept k = parts_of(s, h->kept);
    Norm norm = norming(s, h->x, h->gain, &k);
    norm.shift = h->shift, norm.y = k.normed;
    hopscope_norm(&norm);
    bf16 *bias = room_for((long)s->models * joint(s) * s->inner * (long)sizeof(bf16)), *also = h->x;
    join(h, k.weight, bias);
    Affine joined = mapping(s, s->width, joint(s) * s->inner, s->seq, k.normed, (Map){k.weight, bias});
    joined.y = k.joined;
    hopscope_affine(&joined);
    free(bias);
    if (!whole(s)) {
        bf16 *last = reading(s, k.normed);
        Affine query = mapping(s, s->width, s->inner, s->read, last, h->query);
        query.y = k.asked;
        hopscope_affine(&query);
        free(last);
        also = reading(s, h->x);
    }
    Attention attention = attending(h, &k);
    attention.out = k.mixed;
    hopscope_attend(&attention);
    Affine out = mapping(s, s->inner, s->width, s->read, k.mixed, h->out);
    out.y = h->y, out.also = also;
    hopscope_affine(&out);
    if (!whole(s)) free(also);
}

void hopscope_attention_half_back(const AttentionHalf *h) {
    const Sizes *s = &h->sizes;
    Kept k = parts_of(s, h->kept);
    long half = sizeof(bf16), wide = joint(s) * s->inner;
    bf16 *mixed = room_for(read_of(s) * s->inner * half), *slopes = room_for(rows_of(s) * wide * half);
    bf16 *normed = room_for(rows_of(s) * s->width * half), *asked = 0;
    Affine out = mapping(s, s->inner, s->width, s->read, k.mixed, h->out);
    point_back(&out, h->gradient, mixed, h->out_gradient);
    hopscope_affine_back(&out);
    Attention attention = attending(h, &k);
    attention.gradient = mixed;
    attention.key_gradient = slopes + (wide - 2 * s->inner), attention.value_gradient = slopes + (wide - s->inner);
    attention.query_gradient = whole(s) ? slopes : (asked = room_for(read_of(s) * s->inner * half));
    hopscope_attend_back(&attention);
    Affine joined = mapping(s, s->width, (int)wide, s->seq, k.normed, (Map){k.weight, 0});
    point_back(&joined, slopes, normed, h->joined_gradient);
    hopscope_affine_back(&joined);
    if (!whole(s)) {
        bf16 *last = reading(s, k.normed), *of_last = room_for(read_of(s) * s->width * half);
        Affine query = mapping(s, s->width, s->inner, s->read, last, h->query);
        point_back(&query, asked, of_last, h->query_gradient);
        hopscope_affine_back(&query);
        add_reading(s, normed, of_last);
        free(last), free(of_last), free(asked);
    }
    Norm norm = norming(s, h->x, h->gain, &k);
    norm.gradient = normed, norm.x_gradient = h->x_gradient;
    norm.gain_gradient = h->gain_gradient, norm.shift_gradient = h->shift_gradient;
    if (whole(s)) norm.also = h->gradient;
    hopscope_norm_back(&norm);
    if (!whole(s)) add_reading(s, h->x_gradient, h->gradient);
    free(mixed), free(slopes), free(normed);
}

static Mlp mlp_of(const MlpHalf *h, const Kept *k) {
    const Sizes *s = &h->sizes;
    return (Mlp){mapping(s, s->width, s->hidden, s->seq, k->normed, h->up),
                 mapping(s, s->hidden, s->width, s->seq, k->hidden, h->down)};
}

void hopscope_mlp_half(const MlpHalf *h) {
    const Sizes *s = &h->sizes;
    Kept k = parts_of(s, h->kept);
    Norm norm = norming(s, h->x, h->gain, &k);
    norm.shift = h->shift, norm.y = k.normed;
    hopscope_norm(&norm);
    Mlp mlp = mlp_of(h, &k);
    mlp.up.y = k.hidden, mlp.down.y = h->y, mlp.down.also = h->x;
    hopscope_mlp(&mlp);
}

void hopscope_mlp_half_back(const MlpHalf *h) {
    const Sizes *s = &h->sizes;
    Kept k = parts_of(s, h->kept);
    bf16 *normed = room_for(rows_of(s) * s->width * (long)sizeof(bf16));
    Mlp mlp = mlp_of(h, &k);
    mlp.up.y = k.hidden;
    point_back(&mlp.up, 0, normed, h->up_gradient);
    point_back(&mlp.down, h->gradient, 0, h->down_gradient);
    hopscope_mlp_back(&mlp);
    Norm norm = norming(s, h->x, h->gain, &k);
    norm.gradient = normed, norm.x_gradient = h->x_gradient, norm.also = h->gradient;
    norm.gain_gradient = h->gain_gradient, norm.shift_gradient = h->shift_gradient;
    hopscope_norm_back(&norm);
    free(normed);
}
