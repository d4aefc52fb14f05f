/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c - what the methods share: the vectors of a run, local training, the weighted mean.
 *
 *   method     vectors of all sites     memory in vectors of `state` floats, beside 4 of scratch, g and a double sum
 *   2 models   model, other             2 N + 1
 *   1 model    model                    N + 1
 *   none       -                        1
 *
 * All of it is in memory: 20 sites with ResNet-18 (45 MB each) take 2.2 GB with two, 1000 sites with ResNet-8 (0.3 MB)
 * 0.6 GB. Local training is plain SGD at a constant rate, as in the papers and in PFLlib, whose protocol the table
 * follows; all sites take part in every round. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include "base/alloc.h"

#include <string.h>

const struct fkt_method *fkt_method_of(enum fkt_baseline b)
{
    static const struct fkt_method *const methods[FKT_BASELINES] = {
        [FKT_BASELINE_LOCAL] = &fkt_method_local,   [FKT_BASELINE_FEDAVG_ONCE] = &fkt_method_fedavg_once,
        [FKT_BASELINE_FEDAVG] = &fkt_method_fedavg, [FKT_BASELINE_PERFEDAVG] = &fkt_method_perfedavg,
        [FKT_BASELINE_PFEDME] = &fkt_method_pfedme, [FKT_BASELINE_FEDAMP] = &fkt_method_fedamp,
        [FKT_BASELINE_FEDPHP] = &fkt_method_fedphp, [FKT_BASELINE_FEDFOMO] = &fkt_method_fedfomo,
        [FKT_BASELINE_APPLE] = &fkt_method_apple,   [FKT_BASELINE_PARTIALFED] = &fkt_method_partialfed,
    };
    return (unsigned)b < FKT_BASELINES ? methods[b] : NULL;
}

static size_t numbers_of(const struct fkt_method *m, const struct fkt_problem *p)
{
    return p->sites * ((m->numbers ? m->numbers(p) : 0) + 1);
}

uint64_t fkt_rounds_bytes(const struct fkt_method *m, const struct fkt_problem *p)
{
    const uint64_t state = p->state;
    return (state * ((uint64_t)m->models * p->sites + 5) + p->parameters) * sizeof(float) +
           (state + numbers_of(m, p)) * sizeof(double);
}

/* n rows: not more than check_memory has seen. */
static fkt_status copies(float **out, const struct fkt_rounds *r, uint32_t n)
{
    const size_t state = r->p->state;
    fkt_status st = fkt_alloc(out, n * state);
    for (uint32_t i = 0; i < n && st == FKT_OK; i++) memcpy(*out + i * state, r->start, state * sizeof **out);
    return st;
}

/* An error that names the sites, rather than a killed process. */
static fkt_status check_memory(const struct fkt_method *m, const struct fkt_problem *p)
{
    const uint64_t bytes = fkt_rounds_bytes(m, p), have = fkt_machine_memory();
    if (bytes <= have / 4 * 3) return FKT_OK;
    return fkt_fail_hint(FKT_E_NOMEM, "use fewer sites or a smaller network, or leave the method out",
                         "the models of %u sites take %.1f GB, and this machine has %.1f GB of memory", p->sites,
                         (double)bytes / 1e9, (double)have / 1e9);
}

fkt_status fkt_rounds_init(struct fkt_rounds *r, const struct fkt_method *m, const struct fkt_problem *p,
                           const struct fkt_baseline_settings *s, const float *start, uint64_t seed)
{
    fkt_status st;
    *r = (struct fkt_rounds){.p = p, .s = s, .start = start, .seed = seed};
    FKT_TRY(check_memory(m, p));
    if (m->models > 0) FKT_TRY(copies(&r->model, r, p->sites));
    if (m->models > 1) FKT_TRY(copies(&r->other, r, p->sites));
    FKT_TRY(copies(&r->common, r, 1));
    FKT_TRY(fkt_alloc(&r->sum, p->state));
    FKT_TRY(fkt_alloc(&r->number, numbers_of(m, p)));
    FKT_TRY(fkt_alloc(&r->g, p->parameters));
    FKT_TRY(fkt_alloc(&r->w, p->state));
    FKT_TRY(fkt_alloc(&r->x, p->state));
    FKT_TRY(fkt_alloc(&r->y, p->state));
    FKT_TRY(fkt_alloc(&r->z, p->state));
    if (m->begin) m->begin(r);
out:
    return st;
}

void fkt_rounds_clear(struct fkt_rounds *r)
{
    fkt_free(r->model);
    fkt_free(r->other);
    fkt_free(r->common);
    fkt_free(r->sum);
    fkt_free(r->number);
    fkt_free(r->g);
    fkt_free(r->w);
    fkt_free(r->x);
    fkt_free(r->y);
    fkt_free(r->z);
    fkt_free(r->step);
    memset(r, 0, sizeof *r);
}

float *fkt_rounds_model(const struct fkt_rounds *r, uint32_t site) { return r->model + (size_t)site * r->p->state; }

float *fkt_rounds_other(const struct fkt_rounds *r, uint32_t site) { return r->other + (size_t)site * r->p->state; }

uint64_t fkt_rounds_steps(const struct fkt_rounds *r, uint32_t site) { return r->s->epochs * r->p->epoch[site]; }

void fkt_local_step(const struct fkt_local_step *s, float *x, float *anchor, const float *g, size_t n)
{
    if (s->pull > 0) fkt_vector_proximal_step(x, g, anchor, n, s->rate, s->pull);
    else fkt_vector_step(x, g, n, s->rate);
    if (s->follow > 0) fkt_vector_mix(anchor, x, n, s->follow);
}

fkt_status fkt_rounds_plan(struct fkt_rounds *r, uint64_t n)
{
    fkt_status st = FKT_OK;
    if (n > SIZE_MAX / sizeof *r->step) return fkt_fail(FKT_E_NOMEM, "a round of too many steps");
    if (n > r->step_room) {
        st = fkt_realloc(&r->step, (size_t)n);
        if (st == FKT_OK) r->step_room = (size_t)n;
    }
    return st;
}

fkt_status fkt_rounds_descend(struct fkt_rounds *r, uint32_t site, uint64_t n, float *x, float *anchor)
{
    const struct fkt_problem *p = r->p;
    int done = 0;
    fkt_status st = FKT_OK;
    if (p->descend) FKT_TRY(p->descend(p->self, site, r->step, n, x, anchor, &done));
    for (uint64_t k = 0; k < n && !done; k++) {
        FKT_TRY(p->gradient(p->self, site, r->step[k].batch, x, r->g));
        fkt_local_step(&r->step[k], x, anchor, r->g, p->parameters);
    }
out:
    return st;
}

fkt_status fkt_rounds_train(struct fkt_rounds *r, uint32_t site, uint32_t t, float *x, float *anchor, double pull)
{
    const uint64_t steps = fkt_rounds_steps(r, site);
    fkt_status st;
    FKT_TRY(fkt_rounds_plan(r, steps));
    for (uint64_t k = 0; k < steps; k++)
        r->step[k] =
            (struct fkt_local_step){.batch = t * steps + k, .rate = r->s->rate, .pull = anchor && pull > 0 ? pull : 0};
    st = fkt_rounds_descend(r, site, steps, x, anchor);
out:
    return st;
}

fkt_status fkt_rounds_end(struct fkt_rounds *r, uint32_t site, uint32_t t, const float *x)
{
    if (!fkt_vector_finite(x, r->p->state))
        return fkt_fail_hint(FKT_E_NUMERIC, "use a smaller rate",
                             "training diverged: the model of site %u is not finite after round %u", site, t + 1);
    if (r->p->stop && r->p->stop(r->p->self, ++r->done))
        return fkt_fail(FKT_E_STOPPED, "stopped in round %u of %u; nothing is kept", t + 1, r->s->rounds);
    return FKT_OK;
}

void fkt_rounds_gather(struct fkt_rounds *r, uint32_t site, const float *x)
{
    if (!site) memset(r->sum, 0, r->p->state * sizeof *r->sum);
    fkt_vector_add(r->sum, x, r->p->state, (double)r->p->records[site]);
}

void fkt_rounds_average(struct fkt_rounds *r, float *out)
{
    double all = 0;
    for (uint32_t i = 0; i < r->p->sites; i++) all += (double)r->p->records[i];
    fkt_vector_from_sum(out, r->sum, r->p->state, all);
}
