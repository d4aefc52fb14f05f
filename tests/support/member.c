/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - tiny members of the codec families; see member.h. */
#include "member.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "check.h"

#include <unistd.h>

void member_init(struct member *m, uint64_t seed)
{
    memset(m, 0, sizeof *m);
    m->seed = seed;
}

void member_release(struct member *m)
{
    for (size_t i = 0; i < m->n; i++) free(m->t[i].data);
    m->n = 0;
}

/* Seven bits and a sign, times the power of two next to 1/sqrt(fan-in): about the right size, and exact everywhere. */
static void fill(struct member *m, struct member_tensor *t)
{
    double fan = t->rank > 1 ? (double)(t->count / t->shape[0]) : 1, unit = exp2(floor(-0.5 * log2(fan)));
    int positive = strstr(t->name, "running_var") != NULL, vector = t->rank == 1;
    struct fkt_rng r;
    fkt_rng_init(&r, m->seed, m->draws);
    for (uint64_t i = 0; i < t->count; i++) {
        double x = (double)fkt_rng_below(&r, 127) - 63;
        if (positive) x = fabs(x) + 32;
        t->data[i] = (float)(vector ? x / 64 : x / 64 * unit);
    }
}

static void set_shape(struct member_tensor *t, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t shape[4] = {a, b, c, d};
    t->rank = 0;
    t->count = 1;
    while (t->rank < 4 && shape[t->rank]) {
        t->shape[t->rank] = shape[t->rank];
        t->count *= shape[t->rank++];
    }
}

struct member_tensor *member_add(struct member *m, const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    struct member_tensor *t = &m->t[m->n];
    assert_true(m->n < MEMBER_TENSORS);
    snprintf(t->name, sizeof t->name, "%s", name);
    set_shape(t, a, b, c, d);
    if (!m->blank) {
        t->data = malloc((size_t)t->count * sizeof *t->data);
        assert_non_null(t->data);
        fill(m, t);
    }
    m->n++;
    m->draws++;
    return t;
}

struct member_tensor *member_find(struct member *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->t[i].name, name)) return &m->t[i];
    fail_msg("the test has no tensor '%s'", name);
    return NULL;
}

void member_reshape(struct member_tensor *t, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    set_shape(t, a, b, c, d);
    free(t->data);
    t->data = calloc((size_t)t->count, sizeof *t->data);
    assert_non_null(t->data);
}

static uint16_t half(float x, enum fkt_dtype dtype)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    if (dtype == FKT_BF16) return (uint16_t)(b >> 16); /* exact: see fill */
    if (!(b << 1)) return (uint16_t)(b >> 16);
    return (uint16_t)((b >> 16 & 0x8000U) | (((b >> 23 & 0xFFU) - 112) << 10) | (b >> 13 & 0x3FFU));
}

void member_write(const struct member *m, const char *path, enum fkt_dtype dtype)
{
    struct fkt_st_writer *w = NULL;
    uint16_t *halves[MEMBER_TENSORS] = {NULL};
    CHECK_OK(fkt_st_writer_new(&w));
    for (size_t i = 0; i < m->n; i++) {
        const struct member_tensor *t = &m->t[i];
        const void *data = t->data;
        static const int64_t batches = 7;
        int counter = strstr(t->name, "num_batches_tracked") != NULL;
        if (t->drop) continue;
        if (dtype != FKT_F32 && !counter) {
            halves[i] = malloc((size_t)t->count * sizeof *halves[i]);
            assert_non_null(halves[i]);
            for (uint64_t k = 0; k < t->count; k++) halves[i][k] = half(t->data[k], dtype);
            data = halves[i];
        }
        CHECK_OK(fkt_st_writer_add(w, t->name, counter ? FKT_I64 : dtype, t->rank, t->shape,
                                   counter ? (const void *)&batches : data));
    }
    unlink(path);
    CHECK_OK(fkt_st_writer_write(w, path, 0));
    fkt_st_writer_free(w);
    for (size_t i = 0; i < m->n; i++) free(halves[i]);
}

void member_write_hole(const struct member *m, const char *path)
{
    struct fkt_text t;
    FILE *f = fopen(path, "wb");
    uint64_t end = 0, length;
    fkt_text_init(&t);
    for (size_t i = 0; i < m->n; i++) {
        const struct member_tensor *x = &m->t[i];
        int counter = strstr(x->name, "num_batches_tracked") != NULL;
        uint64_t bytes = x->count * (counter ? 8 : 4);
        fkt_text_addf(&t, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "{", x->name, counter ? "I64" : "F32");
        for (unsigned k = 0; k < x->rank; k++)
            fkt_text_addf(&t, "%s%llu", k ? "," : "", (unsigned long long)x->shape[k]);
        fkt_text_addf(&t, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)end,
                      (unsigned long long)(end + bytes));
        end += bytes;
    }
    fkt_text_add(&t, "}");
    CHECK_OK(fkt_text_status(&t));
    length = t.len;
    assert_non_null(f);
    CHECK(fwrite(&length, 8, 1, f) == 1 && fwrite(t.s, 1, t.len, f) == t.len && fflush(f) == 0);
    CHECK(ftruncate(fileno(f), (off_t)(8 + length + end)) == 0);
    fclose(f);
    fkt_text_clear(&t);
}

/* ---- TAESD ---- */

static void tiny_conv(struct member *m, const char *prefix, int index, const char *what, uint64_t out, uint64_t in,
                      int bias)
{
    char name[128];
    snprintf(name, sizeof name, "%s%d.%sweight", prefix, index, what);
    member_add(m, name, out, in, 3, 3);
    snprintf(name, sizeof name, "%s%d.%sbias", prefix, index, what);
    if (bias) member_add(m, name, out, 0, 0, 0);
}

void member_taesd(struct member *m, int side, uint64_t width, uint64_t latent, int diffusers)
{
    /* e: 3 -> w with bias; b: block; d: w -> w, no bias; l: to or from the latents; '-': no weights; o: to pixels */
    static const char *const plan[2] = {"ebdbbbdbbbdbbbl", "-l-bbb-dbbb-dbbb-dbo"};
    const char *prefix = diffusers ? side ? "decoder.layers." : "encoder.layers." : "";
    int index = diffusers && side ? -1 : 0;
    for (const char *p = plan[side]; *p; p++, index++) {
        if (*p == 'e') tiny_conv(m, prefix, index, "", width, 3, 1);
        if (*p == 'd') tiny_conv(m, prefix, index, "", width, width, 0);
        if (*p == 'o') tiny_conv(m, prefix, index, "", 3, width, 1);
        if (*p == 'l') tiny_conv(m, prefix, index, "", side ? width : latent, side ? latent : width, 1);
        if (*p != 'b') continue;
        tiny_conv(m, prefix, index, "conv.0.", width, width, 1);
        tiny_conv(m, prefix, index, "conv.2.", width, width, 1);
        tiny_conv(m, prefix, index, "conv.4.", width, width, 1);
    }
}

void member_write_taesd(const char *folder, uint64_t seed)
{
    static const char *const name[2] = {"taesd_encoder.safetensors", "taesd_decoder.safetensors"};
    CHECK_OK(fkt_mkdirs(folder));
    for (int side = 0; side < 2; side++) {
        static struct member m;
        char path[600];
        member_init(&m, seed + (uint64_t)side);
        member_taesd(&m, side, 64, 4, 0);
        for (size_t i = 0; i < m.n; i++) /* biases of the size of what they are added to */
            for (uint64_t k = 0; m.t[i].rank == 1 && k < m.t[i].count; k++) m.t[i].data[k] /= 32;
        snprintf(path, sizeof path, "%s/%s", folder, name[side]);
        member_write(&m, path, FKT_F32);
        member_release(&m);
    }
}

/* ---- DC-AE ---- */

const struct member_dcae member_small_dcae = {.stages = 3,
                                              .width = {0, 16, 64},
                                              .depth = {{0, 1, 2}, {0, 2, 1}},
                                              .attention = {0, 0, 1},
                                              .latent = 8,
                                              .batch_norm = 1};
const struct member_dcae member_small_sana = {.stages = 3,
                                              .width = {8, 16, 64},
                                              .depth = {{1, 1, 1}, {1, 1, 1}},
                                              .attention = {0, 0, 1},
                                              .latent = 16,
                                              .scale = 5,
                                              .bare = 1};
const struct member_dcae member_f32c32 = {.stages = 6,
                                          .width = {0, 256, 512, 512, 1024, 1024},
                                          .depth = {{0, 4, 8, 2, 2, 2}, {0, 5, 10, 2, 2, 2}},
                                          .attention = {0, 0, 0, 1, 1, 1},
                                          .latent = 32,
                                          .batch_norm = 1};

struct dcae_at {
    struct member *m;
    const struct member_dcae *c;
    int side, stage, block;
};

/* `d` and `e` are diffusers' and efficientvit's names of one part; a leading '@' stands for the block's prefix. */
static void put(const struct dcae_at *at, const char *d, const char *e, const char *leaf, uint64_t a, uint64_t b,
                uint64_t k)
{
    static const char *const sides[2] = {"encoder", "decoder"}, *const stages[2] = {"down_blocks", "up_blocks"};
    const char *part = at->c->efficientvit ? e : d;
    char name[128];
    if (part[0] != '@') snprintf(name, sizeof name, "%s.%s.%s", sides[at->side], part, leaf);
    else if (at->c->efficientvit)
        snprintf(name, sizeof name, "%s.stages.%d.op_list.%d.%s.%s", sides[at->side], at->stage, at->block, part + 1,
                 leaf);
    else
        snprintf(name, sizeof name, "%s.%s.%d.%d.%s.%s", sides[at->side], stages[at->side], at->stage, at->block,
                 part + 1, leaf);
    member_add(at->m, name, a, b, k, k);
}

static void put_norm(const struct dcae_at *at, const char *d, const char *e, uint64_t width, int batch)
{
    put(at, d, e, "weight", width, 0, 0);
    put(at, d, e, "bias", width, 0, 0);
    if (!batch) return;
    put(at, d, e, "running_mean", width, 0, 0);
    put(at, d, e, "running_var", width, 0, 0);
    put(at, d, e, "num_batches_tracked", 0, 0, 0);
}

static void put_conv(const struct dcae_at *at, const char *d, const char *e, uint64_t out, uint64_t in, uint64_t k)
{
    put(at, d, e, "weight", out, in, k);
    put(at, d, e, "bias", out, 0, 0);
}

static void residual(const struct dcae_at *at, uint64_t w)
{
    put_conv(at, "@conv1", "@main.conv1.conv", w, w, 3);
    put(at, "@conv2", "@main.conv2.conv", "weight", w, w, 3);
    put_norm(at, "@norm", "@main.conv2.norm", w, at->side && at->c->batch_norm);
}

/* diffusers has matrices where efficientvit has 1x1 windows, and qkv in three parts, cut by rows. */
static void qkv(const struct dcae_at *at, uint64_t w)
{
    static const char *const leaf = "weight", *const thirds[3] = {"@attn.to_q", "@attn.to_k", "@attn.to_v"};
    struct member_tensor *whole, *third;
    struct member all;
    if (at->c->efficientvit) {
        put(at, "", "@context_module.main.qkv.conv", leaf, 3 * w, w, 1);
        return;
    }
    member_init(&all, at->m->seed);
    all.draws = at->m->draws; /* the numbers that the whole would have had */
    whole = member_add(&all, "whole", 3 * w, w, 1, 1);
    for (int i = 0; i < 3; i++) {
        put(at, thirds[i], "", leaf, w, w, 0);
        third = &at->m->t[at->m->n - 1];
        if (third->data)
            memcpy(third->data, whole->data + (size_t)i * third->count, (size_t)third->count * sizeof *third->data);
    }
    at->m->draws = all.draws;
    member_release(&all);
}

static void attention(const struct dcae_at *at, uint64_t w)
{
    const char *leaf = "weight";
    uint64_t k = at->c->efficientvit, heads = 1 + (at->c->scale != 0);
    qkv(at, w);
    if (at->c->scale) {
        put(at, "@attn.to_qkv_multiscale.0.proj_in", "@context_module.main.aggreg.0.0", leaf, 3 * w, 1,
            (uint64_t)at->c->scale);
        put(at, "@attn.to_qkv_multiscale.0.proj_out", "@context_module.main.aggreg.0.1", leaf, 3 * w, 32, 1);
    }
    put(at, "@attn.to_out", "@context_module.main.proj.conv", leaf, w, heads * w, k);
    put_norm(at, "@attn.norm_out", "@context_module.main.proj.norm", w, 0);
    put_conv(at, "@conv_out.conv_inverted", "@local_module.main.inverted_conv.conv", 8 * w, w, 1);
    put_conv(at, "@conv_out.conv_depth", "@local_module.main.depth_conv.conv", 8 * w, 1, 3);
    put(at, "@conv_out.conv_point", "@local_module.main.point_conv.conv", leaf, w, 4 * w, 1);
    put_norm(at, "@conv_out.norm", "@local_module.main.point_conv.norm", w, 0);
}

static void blocks(struct dcae_at *at)
{
    for (int i = 0; i < at->c->depth[at->side][at->stage]; i++, at->block++)
        if (at->c->attention[at->stage]) attention(at, at->c->width[at->stage]);
        else residual(at, at->c->width[at->stage]);
}

static void encoder(struct dcae_at *at)
{
    const struct member_dcae *c = at->c;
    int last = c->stages - 1;
    if (c->depth[0][0]) put_conv(at, "conv_in", "project_in.conv", c->width[0], 3, 3);
    else put_conv(at, "conv_in.conv", "project_in.conv.conv", c->width[1] / 4, 3, 3);
    for (at->stage = 0; at->stage <= last; at->stage++) {
        at->block = 0;
        blocks(at);
        if (at->stage < last && at->block)
            put_conv(at, "@conv", c->bare ? "@main.conv" : "@main.conv.conv",
                     c->width[at->stage + 1] / (c->bare ? 1 : 4), c->width[at->stage], 3);
    }
    put_conv(at, "conv_out", "project_out.main.op_list.0.conv", c->latent, c->width[last], 3);
}

static void decoder(struct dcae_at *at)
{
    const struct member_dcae *c = at->c;
    int last = c->stages - 1, first = c->depth[1][0] ? 0 : 1;
    put_conv(at, "conv_in", "project_in.main.conv", c->width[last], c->latent, 3);
    for (at->stage = first; at->stage <= last; at->stage++) {
        at->block = 0;
        if (at->stage < last) {
            put_conv(at, "@conv", "@main.conv.conv", c->width[at->stage] * (c->bare ? 1 : 4), c->width[at->stage + 1],
                     3);
            at->block++;
        }
        blocks(at);
    }
    put_norm(at, "norm_out", "project_out.op_list.0", c->width[first], 0);
    if (first) put_conv(at, "conv_out.conv", "project_out.op_list.2.conv.conv", 12, c->width[1], 3);
    else put_conv(at, "conv_out", "project_out.op_list.2.conv", 3, c->width[0], 3);
}

void member_dcae(struct member *m, const struct member_dcae *c)
{
    struct dcae_at at = {.m = m, .c = c};
    encoder(&at);
    at.side = 1;
    decoder(&at);
}
