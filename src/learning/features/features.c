/* SPDX-License-Identifier: Apache-2.0 */
/* features.c - labelled features of sites: their checks, and those of a dataset through a pipeline.
 *
 * A record vector of a pipeline lies in the ball of its part by construction (docs/method.md 1.2); fkt_features_check
 * looks again, since every sensitivity of this folder rests on it. */
#include "learning/features/features.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <string.h>

fkt_status fkt_features_new(struct fkt_features *f, size_t n, uint32_t m, uint32_t classes)
{
    fkt_status st;
    *f = (struct fkt_features){.n = n, .m = m, .classes = classes, .radius = INFINITY};
    if (!m || !classes) return fkt_fail(FKT_E_ARG, "features need a length and classes");
    FKT_TRY(fkt_alloc(&f->x, n * m));
    FKT_TRY(fkt_alloc(&f->label, n));
out:
    if (st != FKT_OK) fkt_features_clear(f);
    return st;
}

void fkt_features_clear(struct fkt_features *f)
{
    fkt_free_secret(f->x);
    fkt_free(f->label);
    fkt_free(f->owner);
    *f = (struct fkt_features){0};
}

fkt_status fkt_features_check(const struct fkt_features *f)
{
    for (size_t i = 0; i < f->n; i++) {
        double square = 0;
        for (size_t j = 0; j < f->m; j++) square += f->x[i * f->m + j] * f->x[i * f->m + j];
        if (f->label[i] >= f->classes)
            return fkt_fail(FKT_E_ARG, "record %zu has label %u, and there are %u classes", i, f->label[i], f->classes);
        if (f->owner && f->owner[i] >= f->sites)
            return fkt_fail(FKT_E_ARG, "record %zu belongs to site %u of %u", i, f->owner[i], f->sites);
        if (!isfinite(square)) return fkt_fail(FKT_E_NUMERIC, "features of record %zu are not finite", i);
        if (!(sqrt(square) <= f->radius * (1 + 1e-9)))
            return fkt_fail(FKT_E_NUMERIC, "record %zu has length %g outside the ball of %g", i, sqrt(square),
                            f->radius);
    }
    return FKT_OK;
}

size_t fkt_features_take(const struct fkt_features *f, uint32_t site, uint32_t class_, double *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->label[i] != class_ || (site != UINT32_MAX && (!f->owner || f->owner[i] != site))) continue;
        memcpy(rows + n++ * f->m, f->x + i * f->m, f->m * sizeof *rows);
    }
    return n;
}

fkt_status fkt_features_transfer(struct fkt_features *out, const struct fkt_features *in, fkt_transfer *transfer,
                                 const void *settings, uint64_t seed, uint64_t *bytes)
{
    double *rows = NULL;
    size_t at = 0;
    fkt_status st;
    *out = (struct fkt_features){0};
    *bytes = 0;
    FKT_TRY(fkt_features_check(in));
    FKT_TRY(fkt_features_new(out, in->n, in->m, in->classes));
    FKT_TRY(fkt_alloc(&rows, in->n * in->m));
    for (uint32_t site = 0; site < in->sites; site++) {
        uint64_t sent = 0;
        for (uint32_t k = 0; k < in->classes; k++) {
            const size_t n = fkt_features_take(in, site, k, rows);
            struct fkt_rng rng;
            if (!n) continue;
            fkt_rng_init(&rng, seed, (uint64_t)site << 32 | k);
            FKT_TRY(transfer(settings, out->x + at * in->m, rows, n, in, &rng, &sent));
            for (size_t i = 0; i < n; i++) out->label[at++] = k;
        }
        if (sent > *bytes) *bytes = sent;
    }
    out->n = at;
out:
    fkt_free_secret(rows);
    if (st != FKT_OK) fkt_features_clear(out);
    return st;
}

/* ---- from images ---- */

static fkt_status keep(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct fkt_features *f = ctx;
    (void)worker; /* places of different batches differ */
    for (size_t i = 0; i < b->n; i++) {
        memcpy(f->x + b->places[i] * f->m, b->w + i * f->m, f->m * sizeof *f->x);
        f->label[b->places[i]] = b->labels[i];
    }
    return FKT_OK;
}

fkt_status fkt_features_encode(struct fkt_features *out, const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                               const size_t *idx, size_t n, const struct fkt_pipeline_options *options)
{
    const struct fkt_visitor v = {.visit = keep, .ctx = out};
    struct fkt_meter meter;
    fkt_status st;
    *out = (struct fkt_features){0};
    if (w->task.parts != 1)
        return fkt_fail(FKT_E_ARG, "features are those of one part, and the task has %u", w->task.parts);
    fkt_meter_init(&meter, options->progress, "encoding", n);
    FKT_TRY(fkt_features_new(out, n, (uint32_t)w->length, w->task.n_classes));
    out->radius = w->coordinates[0].radius;
    FKT_TRY(fkt_pipeline_visit(w, ds, idx, n, &v, options, &meter));
    FKT_TRY(fkt_features_check(out));
out:
    fkt_meter_clear(&meter);
    if (st != FKT_OK) fkt_features_clear(out);
    return st;
}
