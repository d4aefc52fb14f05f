/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the baselines on one split of the records: each method's rounds, then each site's model on its own test
 * records.
 *
 *   data, test -> personal_split.c -> sites -> method after method: start -> rounds -> personal models -> accuracies
 *
 * The split, the network and its first weights are those of fkt_personalize with the same partition and seed, so that
 * the figures stand beside its own. Accuracies are of the last round, never of the best one.
 *
 * Memory: of the method at hand (rounds.c), one learner, and a second one where a site is smaller than a batch; on a
 * card also a site's images, there and here, and an average of the weights (network_steps.c). */
#include "learning/baselines/network.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct run {
    const struct fkt_baselines_spec *spec;
    struct fkt_personal *out;
    struct fkt_personal_split split;
    struct fkt_evaluation pooled[FKT_BASELINES];
    unsigned methods;
    uint64_t before, total;
};

static unsigned asked(unsigned methods) { return methods ? methods : (1U << FKT_BASELINES) - 1; }

static fkt_status evaluate_site(struct run *r, struct fkt_network_problem *q, enum fkt_baseline b, uint32_t site,
                                const float *x)
{
    const struct fkt_personal_part *part = &r->split.test;
    const struct fkt_training_set *set = r->spec->test ? r->spec->test : r->spec->data;
    const size_t n = fkt_personal_count(part, site);
    struct fkt_evaluation own = {0};
    fkt_status st;
    if (!n) return FKT_OK;
    FKT_TRY(fkt_evaluation_init(&own, set->n_classes));
    FKT_TRY(fkt_network_evaluate(q, x, set, part->record + part->start[site], n, &own, &r->pooled[b]));
    r->out->site[site].accuracy[b] = fkt_evaluation_accuracy(&own);
out:
    fkt_evaluation_clear(&own);
    return st;
}

/* Personal models of the sites that train; the common model, or the start, for the rest. */
static fkt_status evaluate(struct run *r, struct fkt_network_problem *q, enum fkt_baseline b, struct fkt_rounds *f,
                           float *x)
{
    const struct fkt_method *m = fkt_method_of(b);
    uint32_t next = 0;
    fkt_status st = FKT_OK;
    fkt_evaluation_clear(&r->pooled[b]);
    FKT_TRY(fkt_evaluation_init(&r->pooled[b], r->spec->data->n_classes));
    for (uint32_t s = 0; s < r->split.sites; s++) {
        if (next < q->problem.sites && q->site[next].site == s) {
            FKT_TRY(m->personal(f, next++, x));
            FKT_TRY(evaluate_site(r, q, b, s, x));
        } else {
            FKT_TRY(evaluate_site(r, q, b, s, m->common ? f->common : q->start));
        }
    }
    fkt_personal_summarise(r->out, r->pooled);
out:
    return st;
}

static fkt_status rounds(struct run *r, struct fkt_network_problem *q, enum fkt_baseline b)
{
    const struct fkt_baselines_spec *spec = r->spec;
    const struct fkt_method *m = fkt_method_of(b);
    const uint32_t all = spec->settings.rounds;
    struct fkt_rounds f = {0};
    float *x = NULL;
    fkt_status st;
    FKT_TRY(fkt_rounds_init(&f, m, &q->problem, &spec->settings, q->start, spec->seed));
    FKT_TRY(fkt_alloc(&x, q->problem.state));
    for (uint32_t t = 0; t < all; t++) {
        FKT_TRY(m->round(&f, t));
        if (t + 1 < all && !(spec->round && spec->every && (t + 1) % spec->every == 0)) continue;
        FKT_TRY(evaluate(r, q, b, &f, x));
        if (spec->round) FKT_TRY(spec->round(spec->ctx, b, t + 1, r->out->mean[b], r->out->pooled[b]));
    }
out:
    fkt_free(x);
    fkt_rounds_clear(&f);
    return st;
}

static fkt_status one_method(struct run *r, enum fkt_baseline b)
{
    const struct fkt_method *m = fkt_method_of(b);
    struct fkt_network_problem q = {0};
    fkt_status st;
    FKT_TRY(fkt_network_problem_init(&q, r->spec, &r->split, m->validates ? r->spec->settings.fedfomo_validation : 0));
    q.before = r->before;
    q.total = r->total;
    FKT_TRY(rounds(r, &q, b));
    r->before += (uint64_t)q.problem.sites * r->spec->settings.rounds;
out:
    fkt_network_problem_clear(&q);
    return fkt_fail_in(st, "%s", m->name);
}

static fkt_status check_spec(const struct fkt_baselines_spec *spec)
{
    fkt_status st = FKT_OK;
    if (spec->methods >> FKT_BASELINES) return fkt_fail(FKT_E_ARG, "unknown baseline %#x", spec->methods);
    FKT_TRY(fkt_personal_check_sets(spec->like, spec->data, spec->test));
    FKT_TRY(fkt_baseline_check(&spec->settings));
    if (spec->settings.pad >= spec->data->size)
        return fkt_fail(FKT_E_ARG, "shifts by up to %u px move images of %u px out of view", spec->settings.pad,
                        spec->data->size);
    if (asked(spec->methods) >> FKT_BASELINE_PERFEDAVG & 1 && spec->settings.perfedavg_delta > 0 &&
        spec->dtype == FKT_LEARN_DTYPE_BF16)
        st = fkt_fail_hint(FKT_E_ARG, "compute in f32, or leave the Hessian out",
                           "Per-FedAvg with the Hessian divides differences of gradients by %g: bf16 rounds them away",
                           2 * spec->settings.perfedavg_delta);
out:
    return st;
}

static fkt_status open_run(struct run *r)
{
    const struct fkt_training_set *p = r->spec->data, *t = r->spec->test;
    const struct fkt_personal_labels data = {p->label, p->n, p->n_classes};
    struct fkt_personal_labels test = {0};
    uint64_t able = 0;
    fkt_status st;
    if (t) test = (struct fkt_personal_labels){t->label, t->n, t->n_classes};
    FKT_TRY(fkt_personal_split_init(&r->split, &data, t ? &test : NULL, &r->spec->partition, r->spec->holdout,
                                    r->spec->seed));
    FKT_TRY(fkt_personal_describe(r->out, &r->split, p, FKT_BASELINES));
    for (int b = 0; b < FKT_BASELINES; b++) FKT_TRY(fkt_evaluation_init(&r->pooled[b], p->n_classes));
    for (uint32_t s = 0; s < r->split.sites; s++) able += !r->out->site[s].untrained;
    for (int b = 0; b < FKT_BASELINES; b++) r->total += (r->methods >> b & 1) * able * r->spec->settings.rounds;
out:
    return st;
}

fkt_status fkt_baselines_run(struct fkt_personal *out, const struct fkt_baselines_spec *given)
{
    struct fkt_baselines_spec spec = *given;
    struct run r = {.spec = &spec, .out = out, .methods = asked(given->methods)};
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(check_spec(&spec));
    FKT_TRY(fkt_device_resolve(&spec.device, NULL, 0));
    FKT_TRY(open_run(&r));
    for (int b = 0; b < FKT_BASELINES; b++)
        if (r.methods >> b & 1) FKT_TRY(one_method(&r, (enum fkt_baseline)b));
    fkt_personal_summarise(out, r.pooled);
out:
    fkt_personal_split_clear(&r.split);
    for (int b = 0; b < FKT_BASELINES; b++) fkt_evaluation_clear(&r.pooled[b]);
    if (st != FKT_OK) fkt_personal_clear(out);
    return st;
}

uint64_t fkt_baselines_memory(const struct fkt_model *like, uint32_t sites, unsigned methods)
{
    struct fkt_problem p = {.sites = sites, .parameters = fkt_model_parameters(like)};
    uint64_t most = 0;
    for (size_t i = 0; i < fkt_model_tensors(like); i++) p.state += fkt_model_tensor(like, i).count;
    p.layers = (uint32_t)fkt_model_tensors(like); /* at most */
    for (int b = 0; b < FKT_BASELINES; b++) {
        const uint64_t bytes = asked(methods) >> b & 1 ? fkt_rounds_bytes(fkt_method_of((enum fkt_baseline)b), &p) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}
