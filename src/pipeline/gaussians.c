/* SPDX-License-Identifier: Apache-2.0 */
/* gaussians.c - what the estimators of synth/ need to know of a task: for each part of its layout length, noise and
 * unit, and which coordinates have one length in all records.
 *
 * A joined layout has one part, R^2 the sum of the R_p^2; each of its task parts is a run of coordinates, whose length
 * is known where the part is in gain-shape. */
#include "pipeline/gaussians.h"

#include "fedkt/advanced/moments.h"

#include "pipeline/release.h"

#include <string.h>

struct noise {
    struct fkt_part_noise part[FKT_PARTS_MAX];
    struct fkt_known_length known[FKT_PARTS_MAX];
    struct fkt_layout_noise layout;
};

static void noise_of(struct noise *n, const struct fkt_task *t, const struct fkt_sigmas *sigma)
{
    const struct fkt_moments_layout *l = &t->layout;
    struct fkt_coordinates c[FKT_PARTS_MAX];
    uint32_t first = 0;
    memset(n, 0, sizeof *n);
    n->layout = (struct fkt_layout_noise){.sigma_count = sigma ? sigma->count : 0,
                                          .pooled = l->pooled,
                                          .part = n->part,
                                          .parts = l->parts,
                                          .known = n->known};
    for (uint32_t p = 0; p < t->parts; p++) c[p] = t->part[p].coordinates;
    for (uint32_t p = 0; p < l->parts; p++)
        n->part[p] =
            (struct fkt_part_noise){.length = l->length[p],
                                    .sigma_sum = sigma ? sigma->part[p].sum : 0,
                                    .sigma_moment = sigma ? sigma->part[p].moment : 0,
                                    .unit = (t->joined ? fkt_joined_radius(c, t->parts) : c[p].radius) / l->rq[p]};
    for (uint32_t p = 0; p < t->parts && sigma; p++) { /* exact moments need no second count */
        const struct fkt_direction d =
            t->joined ? fkt_joined_direction(c, t->parts, p, l->rq[0]) : fkt_coordinates_direction(&c[p]);
        if (d.length)
            n->known[n->layout.n_known++] =
                (struct fkt_known_length){t->joined ? 0 : p, t->joined ? first : 0, d.length, d.square, d.slack};
        first += c[p].length;
    }
}

fkt_status fkt_task_gaussians(struct fkt_gaussians *out, const struct fkt_task *t, const int64_t *moments,
                              const struct fkt_sigmas *sigma, uint32_t part, const struct fkt_estimate_options *options)
{
    struct noise n;
    noise_of(&n, t, sigma);
    return fkt_gaussians_estimate_part(out, moments, t->n_classes, &n.layout, part, options);
}

fkt_status fkt_task_gaussians_all(struct fkt_gaussians g[FKT_PARTS_MAX], const struct fkt_task *t,
                                  const int64_t *moments, const struct fkt_sigmas *sigma,
                                  const struct fkt_estimate_options *options)
{
    fkt_status st = FKT_OK;
    memset(g, 0, FKT_PARTS_MAX * sizeof *g);
    for (uint32_t p = 0; p < t->layout.parts; p++) FKT_TRY(fkt_task_gaussians(&g[p], t, moments, sigma, p, options));
out:
    if (st != FKT_OK) fkt_gaussians_clear_all(g);
    return st;
}

fkt_status fkt_release_gaussians(const struct fkt_release *r, uint32_t part, const struct fkt_estimate_options *options,
                                 struct fkt_gaussians *out)
{
    return fkt_task_gaussians(out, &r->task, r->moments, &r->sigma, part, options);
}

fkt_status fkt_release_gaussians_all(const struct fkt_release *r, const struct fkt_estimate_options *options,
                                     struct fkt_gaussians g[FKT_PARTS_MAX])
{
    return fkt_task_gaussians_all(g, &r->task, r->moments, &r->sigma, options);
}

void fkt_gaussians_clear_all(struct fkt_gaussians g[FKT_PARTS_MAX])
{
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_gaussians_clear(&g[p]);
}
