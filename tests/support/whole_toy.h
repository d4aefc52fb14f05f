/* SPDX-License-Identifier: Apache-2.0 */
/* whole_toy.h - a whole model made by hand: small networks with every operation that one may have, random numbers. */
#ifndef FKT_TEST_WHOLE_TOY_H
#define FKT_TEST_WHOLE_TOY_H

#include "fedkt/advanced/moments.h"

#include "base/rng.h"
#include "classifier/heads.h"
#include "learning/whole.h"
#include "tests/support/check.h"

enum { TOY_SIZE = 20, TOY_CLASSES = 3, TOY_DIM = 5 };

static inline uint32_t toy_conv(struct fkt_net *n, uint32_t x, const char *name, uint32_t in, uint32_t out,
                                uint32_t kernel, uint32_t stride, uint32_t groups, uint32_t after)
{
    struct fkt_op op = {.kind = FKT_OP_CONV,
                        .in = {x, 0},
                        .channels = out,
                        .kernel = kernel,
                        .stride = stride,
                        .pad = after ? 0 : kernel / 2,
                        .pad_after = after,
                        .groups = groups,
                        .bias = FKT_NO_SLOT,
                        .mean = FKT_NO_SLOT,
                        .var = FKT_NO_SLOT};
    op.weight = fkt_net_slot(n, name, out, in / groups, kernel, kernel);
    return fkt_net_add(n, &op);
}

static inline uint32_t toy_norm(struct fkt_net *n, uint32_t x, uint32_t channels)
{
    struct fkt_op op = {.kind = FKT_OP_BATCH_NORM, .in = {x, 0}, .value = {1e-5F, 0}};
    op.weight = fkt_net_slot(n, "norm.weight", channels, 0, 0, 0);
    op.bias = fkt_net_slot(n, "norm.bias", channels, 0, 0, 0);
    op.mean = fkt_net_slot(n, "norm.mean", channels, 0, 0, 0);
    op.var = fkt_net_slot(n, "norm.var", channels, 0, 0, 0);
    return fkt_net_add(n, &op);
}

/* Part 0 is a guide: resized, depthwise, uneven padding, ReLU6, pooled; part 1 a spatial latent of 2 x 5 x 5. */
static inline void toy_net(struct fkt_net *n, uint32_t part)
{
    uint32_t x = 0, y;
    fkt_net_init(n, 3);
    if (part == 0) {
        struct fkt_op pool = {.kind = FKT_OP_MAX_POOL,
                              .kernel = 3,
                              .stride = 2,
                              .pad = 1,
                              .weight = FKT_NO_SLOT,
                              .bias = FKT_NO_SLOT,
                              .mean = FKT_NO_SLOT,
                              .var = FKT_NO_SLOT};
        x = fkt_net_move(n, FKT_OP_RESIZE, 0, 16);
        x = toy_conv(n, x, "stem.weight", 3, 8, 3, 2, 1, 1);
        x = toy_norm(n, x, 8);
        x = fkt_net_plain(n, FKT_OP_RELU6, x, 0, 0);
        y = toy_conv(n, x, "deep.weight", 8, 8, 3, 1, 8, 0);
        x = fkt_net_plain(n, FKT_OP_ADD, x, y, 0);
        pool.in[0] = x;
        x = fkt_net_add(n, &pool);
        (void)fkt_net_plain(n, FKT_OP_MEAN, x, 0, 0);
    } else {
        x = toy_conv(n, x, "a.weight", 3, 6, 3, 2, 1, 0);
        x = fkt_net_plain(n, FKT_OP_RELU, x, 0, 0);
        (void)toy_conv(n, x, "b.weight", 6, 2, 3, 2, 2, 0);
    }
    CHECK_OK(fkt_net_status(n));
}

static inline void toy_part(struct fkt_whole_part *p, uint32_t part, int clip)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, 40 + part, 0);
    snprintf(p->name, sizeof p->name, part ? "codec" : "guide");
    snprintf(p->identity, sizeof p->identity, "toy/1 part=%u", part);
    snprintf(p->calibration_sha256, sizeof p->calibration_sha256, "%064u", part);
    toy_net(&p->net, part);
    CHECK_OK(fkt_alloc(&p->array, p->net.n_slots));
    for (size_t i = 0; i < p->net.n_slots; i++) {
        const struct fkt_slot *s = &p->net.slot[i];
        CHECK_OK(fkt_alloc(&p->array[i], fkt_slot_count(s)));
        for (size_t k = 0; k < fkt_slot_count(s); k++)
            p->array[i][k] =
                strstr(s->name[0], "var") ? 0.5F + (float)fkt_rng_unit(&rng) : 0.3F * (float)fkt_rng_normal(&rng);
        if (strstr(s->name[0], "stem")) /* exact in half precision, one of them subnormal there */
            for (size_t k = 0; k < fkt_slot_count(s); k++)
                p->array[i][k] = k ? (float)fkt_rng_below(&rng, 200) / 256 - 0.25F : 0x1p-23F;
    }
    for (int c = 0; c < 3; c++) {
        p->pixel_scale[c] = 1 + 0.1F * (float)c;
        p->pixel_shift[c] = -0.5F + 0.05F * (float)c;
    }
    p->latent_scale = part ? 1.5 : 1;
    p->latent_shift = part ? 0.25 : 0;
    p->calibration.raw_dim = part ? 50 : 8;
    p->calibration.dim = TOY_DIM;
    snprintf(p->calibration.source, sizeof p->calibration.source, "toy");
    CHECK_OK(fkt_alloc(&p->calibration.centre, p->calibration.raw_dim));
    CHECK_OK(fkt_alloc(&p->calibration.map, (size_t)TOY_DIM * p->calibration.raw_dim));
    for (size_t i = 0; i < p->calibration.raw_dim; i++) p->calibration.centre[i] = 0.1F * (float)fkt_rng_normal(&rng);
    for (size_t i = 0; i < (size_t)TOY_DIM * p->calibration.raw_dim; i++)
        p->calibration.map[i] = (float)fkt_rng_normal(&rng);
    if (clip) CHECK_OK(fkt_coordinates_clip(&p->coordinates, TOY_DIM, 256, 1.0));
    else CHECK_OK(fkt_coordinates_gain_shape(&p->coordinates, TOY_DIM, 256, 0.35, 0.2, 1.5));
}

static inline void toy_head(struct fkt_head **out, enum fkt_head_kind kind, const struct fkt_head_part *part,
                            uint32_t parts)
{
    static const char *const names[TOY_CLASSES] = {"owl", "a \"b\"", "\xc3\xa9tang"};
    char hash[65];
    struct fkt_rng rng;
    size_t squares = 0;
    fkt_rng_init(&rng, 60, 0);
    CHECK_OK(fkt_head_new(out, kind, TOY_CLASSES, part, parts));
    for (uint32_t p = 0; p < parts; p++) squares += (size_t)part[p].length * part[p].length;
    for (size_t i = 0; i < TOY_CLASSES; i++) (*out)->bias[i] = fkt_rng_normal(&rng);
    for (size_t i = 0; i < (size_t)TOY_CLASSES * (*out)->length; i++)
        ((*out)->weight ? (*out)->weight : (*out)->mean)[i] = fkt_rng_normal(&rng);
    for (size_t i = 0; (*out)->map && i < TOY_CLASSES * squares; i++) (*out)->map[i] = fkt_rng_normal(&rng);
    snprintf(hash, sizeof hash, "%064d", 7);
    CHECK_OK(fkt_head_set_classes(*out, names));
    CHECK_OK(fkt_head_set_origin(*out, hash, hash, NULL));
}

/* parts 1: the guide alone, in a record vector where it is not first; 2: both. */
static inline void toy_whole(struct fkt_whole **out, enum fkt_head_kind kind, uint32_t parts, int clip)
{
    const uint32_t length = clip ? TOY_DIM : TOY_DIM + 1;
    const struct fkt_head_part both[2] = {{0, length}, {length, length}}, alone = {9, length};
    struct fkt_whole *m = NULL;
    CHECK_OK(fkt_alloc(&m, 1));
    m->size = TOY_SIZE;
    m->parts = parts;
    for (uint32_t p = 0; p < parts; p++) toy_part(&m->part[p], p, clip);
    toy_head(&m->head, kind, parts == 1 ? &alone : both, parts);
    m->origin = (struct fkt_model_origin){.is_private = 1, .epsilon = 1, .delta = 1e-5, .adjacency = "add-remove"};
    snprintf(m->origin.data, sizeof m->origin.data, "release 0123, head %s", fkt_head_name(kind));
    memcpy(m->origin.release_sha256, m->head->release, 65);
    CHECK_OK(fkt_whole_settle(m));
    *out = m;
}

static inline void toy_pictures(uint8_t *rgb, size_t n)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, 70, 0);
    for (size_t i = 0; i < n * 3 * TOY_SIZE * TOY_SIZE; i++) rgb[i] = (uint8_t)fkt_rng_below(&rng, 256);
    memset(rgb, 128, (size_t)3 * TOY_SIZE * TOY_SIZE);
}

#endif
