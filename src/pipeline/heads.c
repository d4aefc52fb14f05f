/* SPDX-License-Identifier: Apache-2.0 */
/* heads.c - heads from the class Gaussians of a task's parts.
 *
 * Parts whose moments are released separately are independent to a head: their log-likelihoods add
 * (classifier/heads.c). Joined parts are one vector. A head on the guide alone takes its coordinates; of a joined
 * vector these are the marginal of the Gaussian: its block of the covariance, whose noise has the same standard
 * deviation and so an edge smaller by sqrt(own length / whole length). */
#include "fedkt/heads.h"

#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {
    [FKT_HEADS_DEFAULT] = "default", [FKT_HEADS_ALL] = "all", [FKT_HEADS_GUIDE] = "guide"};
enum { CHOICES = sizeof names / sizeof *names };

const char *fkt_heads_on_name(enum fkt_heads_on on)
{
    return (int)on >= 0 && (int)on < CHOICES ? names[on] : "unknown choice";
}

int fkt_heads_on_parse(const char *s)
{
    for (int i = 0; i < CHOICES; i++)
        if (!strcmp(s, names[i])) return i;
    return -1;
}

#define DEFAULT_ON FKT_HEADS_GUIDE /* chosen on public classes: docs/decisions/0025-heads-on-parts.md */

/* 1 when heads take part p of the task. */
static int taken(const struct fkt_task *t, uint32_t p, enum fkt_heads_on on)
{
    return (on ? on : DEFAULT_ON) == FKT_HEADS_ALL || t->parts == 1 || t->part[p].kind == FKT_PART_GUIDE;
}

/* What heads are fitted to; `cut` owns copies of blocks of a joined vector. */
struct view {
    struct fkt_class_statistics s[FKT_PARTS_MAX];
    uint32_t n;
    double *mean, *cov, *edge;
};

static struct fkt_class_statistics whole(const struct fkt_gaussians *g, uint32_t offset, int pooled)
{
    return (struct fkt_class_statistics){.classes = g->classes,
                                         .length = g->length,
                                         .count = g->count,
                                         .mean = g->mean,
                                         .cov = g->cov,
                                         .noise_edge = g->noise_edge,
                                         .mean_noise = g->mean_noise,
                                         .offset = offset,
                                         .pooled = pooled};
}

/* Coordinates offset .. offset + length of one vector. */
static fkt_status cut(struct view *v, const struct fkt_gaussians *g, uint32_t offset, uint32_t length, int pooled)
{
    const size_t k = g->classes, m = g->length, own = length, covariances = pooled ? 1 : k;
    fkt_status st;
    FKT_TRY(fkt_alloc(&v->mean, k * own));
    FKT_TRY(fkt_alloc(&v->cov, covariances * own * own));
    FKT_TRY(fkt_alloc(&v->edge, k));
    for (size_t c = 0; c < k; c++) {
        memcpy(v->mean + c * own, g->mean + c * m + offset, own * sizeof *v->mean);
        for (size_t i = 0; i < own && c < covariances; i++)
            memcpy(v->cov + (c * own + i) * own, g->cov + (c * m + offset + i) * m + offset, own * sizeof *v->cov);
        v->edge[c] = g->noise_edge[c] * sqrt((double)own / (double)m);
    }
    v->s[0] = whole(g, offset, pooled);
    v->s[0].length = length;
    v->s[0].mean = v->mean;
    v->s[0].cov = v->cov;
    v->s[0].noise_edge = v->edge;
    v->n = 1;
out:
    return st;
}

static void view_clear(struct view *v)
{
    fkt_free_secret(v->mean); /* in a simulation the reference comes from exact moments */
    fkt_free_secret(v->cov);
    fkt_free(v->edge);
}

static fkt_status make_view(struct view *v, const struct fkt_gaussians *g, const struct fkt_task *t,
                            enum fkt_heads_on on)
{
    const int pooled = t->layout.pooled;
    uint32_t offset = 0;
    for (uint32_t p = 0; p < t->layout.parts; p++)
        if (g[p].classes != t->n_classes || g[p].length != t->layout.length[p])
            return fkt_fail(FKT_E_MISMATCH, "%u Gaussians of length %u are not of this task: it has %u of length %u",
                            g[p].classes, g[p].length, t->n_classes, t->layout.length[p]);
    if (t->joined && taken(t, 0, on)) { /* the codec is the first part: so all of them */
        v->s[0] = whole(&g[0], 0, pooled);
        v->n = 1;
        return FKT_OK;
    }
    for (uint32_t p = 0; p < t->parts; p++) {
        const uint32_t length = t->part[p].coordinates.length;
        if (taken(t, p, on)) {
            if (t->joined) return cut(v, &g[0], offset, length, pooled);
            v->s[v->n++] = whole(&g[p], offset, pooled);
        }
        offset += length;
    }
    return FKT_OK;
}

/* The origin of a head is derived here, so that no program can forget or change it. */
static fkt_status set_origin(struct fkt_head *h, const struct fkt_release *r)
{
    fkt_status st = fkt_head_set_origin(h, r->task.sha256, r->sha256, fkt_release_not_private(r));
    return st == FKT_OK ? fkt_head_set_classes(h, (const char *const *)r->task.classes) : st;
}

fkt_status fkt_heads_fit(struct fkt_heads *out, const struct fkt_gaussians *g, const struct fkt_task *task,
                         enum fkt_heads_on on, const struct fkt_release *release)
{
    struct view v = {.n = 0};
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (release && strcmp(release->task.sha256, task->sha256) != 0)
        return fkt_fail(FKT_E_MISMATCH, "the release is of task %.12s, and heads are fitted for task %.12s",
                        release->task.sha256, task->sha256);
    FKT_TRY(make_view(&v, g, task, on));
    FKT_TRY(fkt_alloc(&out->head, FKT_HEAD_KINDS));
    out->n = FKT_HEAD_KINDS;
    for (int k = 0; k < FKT_HEAD_KINDS; k++) {
        if (fkt_head_is_quadratic((enum fkt_head_kind)k) && task->layout.pooled) continue;
        FKT_TRY(fkt_head_fit_parts(&out->head[k], (enum fkt_head_kind)k, v.s, v.n));
        if (release) FKT_TRY(set_origin(out->head[k], release));
    }
out:
    view_clear(&v);
    if (st != FKT_OK) fkt_heads_clear(out);
    return st;
}

fkt_status fkt_heads_of_release(struct fkt_heads *out, const struct fkt_release *release, enum fkt_heads_on on)
{
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};
    struct fkt_gaussians g[FKT_PARTS_MAX] = {{0}};
    fkt_status st = FKT_OK;
    memset(out, 0, sizeof *out);
    for (uint32_t p = 0; p < release->task.layout.parts; p++) FKT_TRY(fkt_release_gaussians(release, p, &raw, &g[p]));
    FKT_TRY(fkt_heads_fit(out, g, &release->task, on, release));
out:
    for (int p = 0; p < FKT_PARTS_MAX; p++) fkt_gaussians_clear(&g[p]);
    return st;
}

void fkt_heads_clear(struct fkt_heads *h)
{
    for (size_t k = 0; k < h->n; k++) fkt_head_free(h->head[k]);
    fkt_free(h->head);
    memset(h, 0, sizeof *h);
}
