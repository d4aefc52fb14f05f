/* SPDX-License-Identifier: Apache-2.0 */
/* merf.c - DP-MERF on features: a noised embedding of all records, and a generator that is trained to match it.
 * Source: Harder, Adamczewski, Park, AISTATS 2021. Embedding, adjacency and sensitivity: fourier.c; generator.c.
 *
 *   central     one embedding of the records of all sites, noise added once: somebody, or secure aggregation with noise
 *               shares, is trusted with the exact sums
 *   federated   every site adds the whole noise to its own sums, and the server adds up what they send: nobody is
 *               trusted, and N sites have N times the variance. A record is at one site, so the promise is the same.
 *
 * What follows is post-processing: target_k = sum_k / max(count_k, 1), steps of Adam, then as many draws of class k as
 * its noised count says (at least one, at most MOST). Where we differ from the paper: features, or a codec's latents,
 * in the place of pixels; fourier.c and generator.c say the rest. The paper knows one holder of all records: the
 * federated form is the plain one, sums of what the sites release.
 *
 * The kernel's scale is a public constant in units of the radius, since the usual one, the median distance of the
 * records, would have to be released. */
#include "learning/features/features.h"

#include "base/alloc.h"
#include "base/meter.h"

#include <math.h>
#include <string.h>

enum { BYTES = 4, MOST = 5000, STREAM_FOURIER = 0, STREAM_WEIGHTS = 1, STREAM_CODES = 2, STREAM_DRAWS = 3, NOISE = 16 };

/* Chosen on training records of a set that no table was made of: docs/decisions/0034-features-baselines.md. */
void fkt_merf_default(struct fkt_merf_settings *s)
{
    *s = (struct fkt_merf_settings){
        .frequencies = 500, .code = 5, .hidden = 400, .scale = 0.7, .steps = 1000, .batch = 50, .rate = 0.003};
}

/* The noised sums of all sites. */
static fkt_status gather(struct fkt_embedding *e, const struct fkt_fourier *f, const struct fkt_features *in,
                         const struct fkt_merf_settings *s, double mu)
{
    const uint32_t releases = s->federated ? in->sites : 1;
    fkt_status st;
    FKT_TRY(fkt_embedding_new(e, in->classes, 2 * f->frequencies));
    for (uint32_t i = 0; i < releases; i++) {
        struct fkt_rng rng;
        fkt_rng_init(&rng, s->seed, NOISE + i);
        FKT_TRY(fkt_embedding_add(e, f, in, s->federated ? i : UINT32_MAX));
        if (isfinite(mu)) fkt_embedding_noise(e, mu, &rng);
    }
out:
    return st;
}

static fkt_status train(struct fkt_generator *g, const struct fkt_fourier *f, const struct fkt_embedding *e,
                        const struct fkt_merf_settings *s, double loss[2])
{
    const size_t numbers = (size_t)e->classes * e->length;
    double *target = NULL, now = NAN;
    struct fkt_meter meter;
    struct fkt_rng rng;
    fkt_status st;
    fkt_meter_init(&meter, s->progress, "training a generator", s->steps);
    FKT_TRY(fkt_alloc(&target, numbers));
    for (size_t i = 0; i < numbers; i++) target[i] = e->sum[i] / fmax(e->count[i / e->length], 1);
    fkt_rng_init(&rng, s->seed, STREAM_CODES);
    for (uint32_t t = 0; t < s->steps; t++) {
        FKT_TRY(fkt_generator_step(g, f, target, &rng, &now));
        if (loss) loss[t > 0] = now;
        FKT_TRY(fkt_meter_add(&meter, 1));
    }
out:
    fkt_meter_clear(&meter);
    fkt_free(target);
    return st;
}

static fkt_status draw(struct fkt_features *out, struct fkt_generator *g, const struct fkt_embedding *e, uint32_t m,
                       const struct fkt_merf_settings *s)
{
    size_t *want = NULL, all = 0, most = 0, at = 0;
    struct fkt_rng rng;
    fkt_status st;
    FKT_TRY(fkt_alloc(&want, e->classes));
    for (uint32_t k = 0; k < e->classes; k++) {
        want[k] = (size_t)fmin(fmax(round(e->count[k]), 1), MOST);
        all += want[k];
        if (want[k] > most) most = want[k];
    }
    FKT_TRY(fkt_features_new(out, all, m, e->classes));
    fkt_rng_init(&rng, s->seed, STREAM_DRAWS);
    for (size_t had = 0; had < most; had += s->batch) {
        const double *x;
        fkt_generator_draw(g, &rng, &x);
        for (uint32_t k = 0; k < e->classes; k++)
            for (size_t i = 0; i < s->batch && had + i < want[k]; i++) {
                memcpy(out->x + at * m, x + (k * (size_t)s->batch + i) * m, m * sizeof *x);
                out->label[at++] = k;
            }
    }
out:
    fkt_free(want);
    return st;
}

fkt_status fkt_merf(struct fkt_features *out, const struct fkt_features *in, const struct fkt_merf_settings *s,
                    double mu, uint64_t *bytes, double loss[2])
{
    struct fkt_generator *g = NULL;
    struct fkt_fourier f = {0};
    struct fkt_embedding e = {0};
    struct fkt_rng rng;
    fkt_status st;
    *out = (struct fkt_features){0};
    if (!(mu > 0)) return fkt_fail(FKT_E_ARG, "an embedding needs a privacy parameter above 0");
    if (s->federated && !in->sites) return fkt_fail(FKT_E_ARG, "records that no site owns cannot be federated");
    FKT_TRY(fkt_features_check(in));
    fkt_rng_init(&rng, s->seed, STREAM_FOURIER);
    FKT_TRY(fkt_fourier_new(&f, in->m, s->frequencies, s->scale * in->radius, &rng));
    FKT_TRY(gather(&e, &f, in, s, mu));
    fkt_rng_init(&rng, s->seed, STREAM_WEIGHTS);
    FKT_TRY(fkt_generator_new(&g, s, in->m, in->classes, in->radius, &rng));
    FKT_TRY(train(g, &f, &e, s, loss));
    FKT_TRY(draw(out, g, &e, in->m, s));
    *bytes = (uint64_t)BYTES * in->classes * (e.length + 1);
out:
    if (st != FKT_OK) fkt_features_clear(out);
    fkt_generator_free(g);
    fkt_embedding_clear(&e);
    fkt_fourier_clear(&f);
    return st;
}
