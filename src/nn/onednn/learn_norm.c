/* SPDX-License-Identifier: Apache-2.0 */
/* learn_norm.c - batch norm that learns, with the addition and the ReLU after it, in as few passes as possible.
 *
 *   ahead:  m, v = mean and variance of x over batch and pixels;  s = 1/sqrt(v + eps);  a = weight s;  b = bias - m a
 *           y = relu(a x + b + z)
 *   back:   dz = (g + h) where y > 0;  S = sum dz;  Q = sum dz (x - m)
 *           bias' = S;  weight' = s Q;  dx = a dz + p (x - m) + r  with  p = -a s^2 Q / n,  r = -a S / n
 *
 * Source: Ioffe and Szegedy 2015, section 3. oneDNN has the same, but its kernel reads x three times in the forward
 * (mean, variance, result), and an addition, a ReLU after it and a sum of two gradients are separate passes. In a
 * residual network these passes are bound by memory. Here a block of channels is summed once (both sums, around the
 * block's first pixel so that squares do not cancel; floats over at most 256 rows, doubles above) and written once; the
 * second pass goes backwards through the images, since those read last are still in the cache. In the backward without
 * an addition, the ReLU's mask is computed again from x, which is read anyway.
 *
 * Frozen: m and v are the stored ones, so the forward has no sums, and dx = a dz.
 *
 * Threads take whole blocks where these divide evenly; otherwise each takes a part of the images of every block and
 * the partial sums are added in the order of the parts. Both are fixed by the number of threads: bits repeat. */
#include "nn/onednn/lanes.h"
#include "nn/onednn/learn.h"
#include "nn/onednn/omp_team.h"

#include <math.h>

enum {
    PARTS = 2,  /* eights in a block */
    ROWS = 256, /* floats are added up over so many pixels, then doubles */
    STRIP = 4, /* blocks of one strip: where neighbouring blocks share a cache line, they are processed together, ... */
    CHUNK = 64 /* ... so many pixels at a time, so that the first block loads them for the others */
};

struct pass {
    struct fkt_norm *norm;
    struct fkt_norm_maps maps;
    int back;
    size_t strip;    /* blocks processed together: 1 or STRIP */
    unsigned shares; /* of the images */
    float momentum;
};

/* A block's constants, and its sums. */
struct block {
    fkt_f8 a[PARTS], b[PARTS], centre[PARTS], p[PARTS], r[PARTS], s[PARTS], q[PARTS];
};

/* Some blocks of some images: strip number, and images [from, to). */
struct patch {
    size_t strip, from, to;
};

/* dz of eight numbers at `at`, where x is known. */
FKT_ALWAYS void gradient(fkt_f8 *dz, const struct fkt_norm_maps *m, const struct block *c, int k, const fkt_f8 *x,
                         size_t at, int half)
{
    fkt_f8 other;
    fkt_f8_load(dz, m->g, at, half);
    if (m->h) {
        fkt_f8_load(&other, m->h, at, half);
        *dz += other;
    }
    if (!m->relu) return;
    if (m->y) fkt_f8_load(&other, m->y, at, half);
    else other = c->a[k] * *x + c->b[k];
    fkt_f8_mask(dz, &other);
}

FKT_ALWAYS void add_up(struct block *sum, const struct pass *p, size_t at, size_t pixels, int parts, int half, int back)
{
    const struct fkt_norm_maps m = p->maps;
    const size_t pixel = p->norm->field.pixel;
    struct block c = *sum;
    for (size_t i = 0; i < pixels; i++, at += pixel)
        for (int k = 0; k < parts; k++) {
            fkt_f8 x, dz;
            fkt_f8_load(&x, m.x, at + 8 * (size_t)k, half);
            dz = x - c.centre[k];
            if (back) {
                fkt_f8 centred = dz;
                gradient(&dz, &m, &c, k, &x, at + 8 * (size_t)k, half);
                if (m.e) fkt_f8_store(m.e, at + 8 * (size_t)k, &dz, half);
                c.q[k] += dz * centred;
            } else c.q[k] += dz * dz;
            c.s[k] += dz;
        }
    *sum = c;
}

FKT_ALWAYS void flush(struct block *c, double *sum, int parts)
{
    for (int k = 0; k < parts; k++)
        for (int l = 0; l < 8; l++) {
            sum[8 * k + l] += (double)c->s[k][l];
            sum[8 * (k + parts) + l] += (double)c->q[k][l];
            c->s[k][l] = c->q[k][l] = 0;
        }
}

FKT_ALWAYS void prepare(struct block *c, const struct pass *p, size_t block, int parts, int half)
{
    const struct fkt_norm *n = p->norm;
    memset(c, 0, sizeof *c);
    for (int k = 0; k < parts; k++) {
        size_t at = block * n->field.lanes + 8 * (size_t)k;
        fkt_f8_load(&c->a[k], n->a, at, 0);
        fkt_f8_load(&c->b[k], n->b, at, 0);
        fkt_f8_load(&c->centre[k], n->centre, at, 0);
        fkt_f8_load(&c->p[k], n->p, at, 0);
        fkt_f8_load(&c->r[k], n->r, at, 0);
        if (!p->back) fkt_f8_load(&c->centre[k], p->maps.x, block * n->field.block + 8 * (size_t)k, half);
    }
}

static inline size_t blocks_of(const struct pass *p, size_t strip)
{
    size_t left = p->norm->field.blocks - strip * p->strip;
    return left < p->strip ? left : p->strip;
}

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Both sums of each block: sum + block * step. */
FKT_ALWAYS void sums(const struct pass *p, struct patch t, double *sum, size_t step, int parts, int half)
{
    const struct fkt_field *f = &p->norm->field;
    size_t first = t.strip * p->strip, blocks = blocks_of(p, t.strip), room = ROWS, n;
    struct block c[STRIP];
    for (size_t b = 0; b < blocks; b++) prepare(&c[b], p, first + b, parts, half);
    for (size_t i = t.from; i < t.to; i++)
        for (size_t done = 0; done < f->pixels; done += n) {
            size_t at = i * f->image + first * f->block + done * f->pixel;
            n = least(f->pixels - done, blocks > 1 ? least(room, CHUNK) : room);
            for (size_t b = 0; b < blocks; b++)
                if (p->back) add_up(&c[b], p, at + b * f->block, n, parts, half, 1);
                else add_up(&c[b], p, at + b * f->block, n, parts, half, 0);
            room -= n;
            if (room) continue;
            for (size_t b = 0; b < blocks; b++) flush(&c[b], sum + b * step, parts);
            room = ROWS;
        }
    for (size_t b = 0; b < blocks; b++) flush(&c[b], sum + b * step, parts);
}

FKT_ALWAYS void ahead(const struct pass *p, const struct block *c, size_t at, size_t pixels, int parts, int half)
{
    const struct fkt_norm_maps m = p->maps;
    const size_t pixel = p->norm->field.pixel;
    for (size_t i = 0; i < pixels; i++, at += pixel)
        for (int k = 0; k < parts; k++) {
            fkt_f8 x, z;
            fkt_f8_load(&x, m.x, at + 8 * (size_t)k, half);
            x = c->a[k] * x + c->b[k];
            if (m.z) {
                fkt_f8_load(&z, m.z, at + 8 * (size_t)k, half);
                x += z;
            }
            if (m.relu) {
                z = x;
                fkt_f8_mask(&x, &z);
            }
            fkt_f8_store(m.y, at + 8 * (size_t)k, &x, half);
        }
}

FKT_ALWAYS void back(const struct pass *p, const struct block *c, size_t at, size_t pixels, int parts, int half)
{
    const struct fkt_norm_maps m = p->maps;
    const size_t pixel = p->norm->field.pixel;
    const int frozen = p->norm->frozen; /* then no pass before this one has written e */
    for (size_t i = 0; i < pixels; i++, at += pixel)
        for (int k = 0; k < parts; k++) {
            fkt_f8 x, dz;
            fkt_f8_load(&x, m.x, at + 8 * (size_t)k, half);
            if (m.e && !frozen) fkt_f8_load(&dz, m.e, at + 8 * (size_t)k, half);
            else gradient(&dz, &m, c, k, &x, at + 8 * (size_t)k, half);
            if (m.e && frozen) fkt_f8_store(m.e, at + 8 * (size_t)k, &dz, half);
            x = frozen ? c->a[k] * dz : c->a[k] * dz + c->p[k] * (x - c->centre[k]) + c->r[k];
            fkt_f8_store(m.d, at + 8 * (size_t)k, &x, half);
        }
}

FKT_ALWAYS void apply(const struct pass *p, struct patch t, int parts, int half)
{
    const struct fkt_field *f = &p->norm->field;
    size_t first = t.strip * p->strip, blocks = blocks_of(p, t.strip), n;
    struct block c[STRIP];
    for (size_t b = 0; b < blocks; b++) prepare(&c[b], p, first + b, parts, half);
    for (size_t i = t.to; i-- > t.from;)
        for (size_t done = 0; done < f->pixels; done += n) {
            size_t at = i * f->image + first * f->block + done * f->pixel;
            n = blocks > 1 ? least(f->pixels - done, CHUNK) : f->pixels;
            for (size_t b = 0; b < blocks; b++)
                if (p->back) back(p, &c[b], at + b * f->block, n, parts, half);
                else ahead(p, &c[b], at + b * f->block, n, parts, half);
        }
}

FKT_WIDE static void sums_any(const struct pass *p, struct patch t, double *sum, size_t step)
{
    const struct fkt_field *f = &p->norm->field;
    if (f->half) sums(p, t, sum, step, 2, 1);
    else if (f->lanes == 16) sums(p, t, sum, step, 2, 0);
    else sums(p, t, sum, step, 1, 0);
}

FKT_WIDE static void apply_any(const struct pass *p, struct patch t)
{
    const struct fkt_field *f = &p->norm->field;
    if (f->half) apply(p, t, 2, 1);
    else if (f->lanes == 16) apply(p, t, 2, 0);
    else apply(p, t, 1, 0);
}

/* From a channel's two sums to the numbers of the second pass. */
static void finish_ahead(const struct pass *p, size_t c, double s, double q)
{
    struct fkt_norm *n = p->norm;
    const struct fkt_field *f = &n->field;
    double count = (double)f->images * (double)f->pixels, mean = s / count, var = q / count - mean * mean;
    size_t at = c / f->lanes * f->block + c % f->lanes; /* the first pixel, which the sums were taken around */
    if (var < 0) var = 0;
    mean += (double)(f->half ? fkt_from_bf16(((const uint16_t *)p->maps.x)[at]) : ((const float *)p->maps.x)[at]);
    n->centre[c] = (float)mean;
    n->scale[c] = (float)(1 / sqrt(var + (double)n->op->value[0]));
    n->a[c] = n->weight[c] * n->scale[c];
    n->b[c] = (float)((double)n->bias[c] - mean * (double)n->a[c]);
    n->mean[c] = (1 - p->momentum) * n->mean[c] + p->momentum * (float)mean;
    n->var[c] = (1 - p->momentum) * n->var[c] + p->momentum * (float)(var * count / (count - 1));
}

static void finish_back(const struct pass *p, size_t c, double s, double q)
{
    struct fkt_norm *n = p->norm;
    double count = (double)n->field.images * (double)n->field.pixels, a = (double)n->a[c], scale = (double)n->scale[c];
    n->bias_gradient[c] = (float)s;
    n->weight_gradient[c] = (float)(q * scale);
    n->p[c] = (float)(-a * scale * scale * q / count);
    n->r[c] = (float)(-a * s / count);
}

/* Padding lanes of the last block stay zero. */
static void finish(const struct pass *p, size_t block)
{
    const struct fkt_norm *n = p->norm;
    size_t lanes = n->field.lanes;
    for (size_t l = 0; l < lanes && block * lanes + l < n->channels; l++) {
        double s = 0, q = 0;
        for (unsigned i = 0; i < p->shares; i++) {
            const double *part = n->part + (block * p->shares + i) * 2 * lanes;
            s += part[l];
            q += part[lanes + l];
        }
        if (p->back) finish_back(p, block * lanes + l, s, q);
        else finish_ahead(p, block * lanes + l, s, q);
    }
}

static size_t strips(const struct pass *p) { return (p->norm->field.blocks + p->strip - 1) / p->strip; }

static struct patch patch_of(const struct pass *p, size_t item)
{
    size_t images = p->norm->field.images, share = item % p->shares;
    return (struct patch){item / p->shares, images * share / p->shares, images * (share + 1) / p->shares};
}

static void sum_patch(const struct pass *p, size_t item)
{
    struct patch t = patch_of(p, item);
    size_t two = (size_t)2 * p->norm->field.lanes, step = p->shares * two;
    double *part = p->norm->part + t.strip * p->strip * step + item % p->shares * two;
    for (size_t b = 0; b < blocks_of(p, t.strip); b++) memset(part + b * step, 0, two * sizeof *part);
    sums_any(p, t, part, step);
}

static void finish_strip(const struct pass *p, size_t strip)
{
    for (size_t b = 0; b < blocks_of(p, strip); b++) finish(p, strip * p->strip + b);
}

static void whole_strips(void *ctx, unsigned member, unsigned members)
{
    const struct pass *p = ctx;
    for (size_t i = member; i < strips(p); i += members) {
        sum_patch(p, i);
        finish_strip(p, i);
        if (!p->back || p->maps.d) apply_any(p, patch_of(p, i));
    }
}

static void sum_patches(void *ctx, unsigned member, unsigned members)
{
    const struct pass *p = ctx;
    for (size_t i = member; i < strips(p) * p->shares; i += members) sum_patch(p, i);
}

static void apply_patches(void *ctx, unsigned member, unsigned members)
{
    const struct pass *p = ctx;
    for (size_t i = member; i < strips(p) * p->shares; i += members) apply_any(p, patch_of(p, i));
}

static void use_stored(struct fkt_norm *n)
{
    for (size_t c = 0; c < n->channels; c++) {
        const double a = (double)n->weight[c] / sqrt((double)n->var[c] + (double)n->op->value[0]);
        n->a[c] = (float)a;
        n->b[c] = (float)((double)n->bias[c] - (double)n->mean[c] * a);
    }
}

static void run(struct pass *p, unsigned threads)
{
    const struct fkt_field *f = &p->norm->field;
    p->strip = f->pixel == f->lanes ? 1 : STRIP;
    if (p->norm->frozen) {
        p->shares = threads;
        if (!p->back) use_stored(p->norm);
        fkt_team_run(threads, apply_patches, p);
        return;
    }
    p->shares = strips(p) % threads == 0 || strips(p) >= (size_t)8 * threads ? 1 : threads;
    if (p->shares == 1) {
        fkt_team_run(threads, whole_strips, p);
        return;
    }
    fkt_team_run(threads, sum_patches, p);
    for (size_t i = 0; i < strips(p); i++) finish_strip(p, i);
    if (!p->back || p->maps.d) fkt_team_run(threads, apply_patches, p);
}

void fkt_norm_forward(struct fkt_norm *n, const struct fkt_norm_maps *m, float momentum, unsigned threads)
{
    struct pass p = {.norm = n, .maps = *m, .momentum = momentum};
    run(&p, threads);
}

void fkt_norm_backward(struct fkt_norm *n, const struct fkt_norm_maps *m, unsigned threads)
{
    struct pass p = {.norm = n, .maps = *m, .back = 1};
    run(&p, threads);
}
