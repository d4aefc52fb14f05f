/* SPDX-License-Identifier: Apache-2.0 */
/* personal.c - the paper's personalised protocol, compared with two older methods in one run on the same records.
 * Source: the paper's section on downstream tasks (personalised federated learning after PFLlib).
 *
 *   X* -> pretrained --------------------------------------------------------> global        evaluated at every site
 *             \--> features of the site's records, once -> last layer tuned --> tuned         ours
 *   start -> trained on the site's records alone ------------------------------> local
 *              \--> mean of all sites' weights, once (classifier/average.c) ----> fedavg
 *                      \--> its features, last layer tuned ---------------------> fedavg_tuned
 *
 * Every way of a site is evaluated on the same records, which none of its models was trained on. Those records may be
 * in the release that X* was drawn from, under its privacy promise; with a test set (personal_split.c) they are not.
 * The features are those of prediction: running statistics, no augmentation; so one pass through the network serves all
 * epochs of tuning, which then take seconds.
 *
 * Where we differ. The paper's baselines average for 50 rounds; here FedAvg has a single round, as our method has, with
 * the local epochs of `local`: a comparison at equal communication. Its local models start from the same weights, as
 * averaging requires. The split is in personal_split.c.
 *
 * Small sites. Batch norm needs two images in a batch, so a site with fewer keeps the weights of the start as its local
 * model, is marked, and does not enter the average. A site without test records trains like any other and is left out
 * of mean and standard deviation.
 *
 * Only the pretrained model is private: the others are trained on the records themselves.
 *
 * Memory: the pixels of the largest site, a trainer, and four models, whatever the number of sites. Cost: that of
 * local training; the average is evaluated in a second pass over the sites. */
#include "learning/personal.h"

#include "base/alloc.h"
#include "classifier/average.h"

#include <string.h>

const char *fkt_personal_name(enum fkt_personal_way w)
{
    static const char *const name[FKT_PERSONAL_WAYS] = {"global", "tuned", "local", "fedavg", "fedavg_tuned"};
    return (unsigned)w < FKT_PERSONAL_WAYS ? name[w] : "unknown";
}

static fkt_status first_pass(struct fkt_personal_run *r)
{
    fkt_status st = FKT_OK;
    for (uint32_t s = 0; s < r->split.sites && st == FKT_OK; s++) {
        fkt_personal_load(r, s);
        st = fkt_personal_base(r, r->spec->pretrained, FKT_PERSONAL_GLOBAL, FKT_PERSONAL_TUNED);
        if (st == FKT_OK) st = fkt_personal_local(r);
        if (st != FKT_OK) return fkt_fail_in(st, "site %u", s);
    }
    return st;
}

static fkt_status second_pass(struct fkt_personal_run *r)
{
    fkt_status st = fkt_model_average_model(r->sum, &r->average);
    if (st != FKT_OK) return st;
    fkt_personal_disown(r->average, "mean of the sites' models, each trained on the site's records", NULL);
    r->site = 0;
    st = fkt_personal_hand_out(r, FKT_PERSONAL_FEDAVG, r->average);
    for (uint32_t s = 0; s < r->split.sites && st == FKT_OK; s++) {
        fkt_personal_load(r, s);
        st =
            fkt_fail_in(fkt_personal_base(r, r->average, FKT_PERSONAL_FEDAVG, FKT_PERSONAL_FEDAVG_TUNED), "site %u", s);
    }
    return st;
}

/* Checked before the first site trains. */
static fkt_status check_average(const struct fkt_personal_run *r)
{
    for (uint32_t s = 0; s < r->split.sites; s++)
        if (!r->out->site[s].untrained) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG, "use fewer sites or more records, or leave out the ways with fedavg",
                         "no site has %d records to train on, so there is no model to average", FKT_PERSONAL_LEAST);
}

/* ---- the entry point ---- */

static fkt_status check_spec(const struct fkt_personal_spec *spec)
{
    fkt_status st = FKT_OK;
    if (spec->ways >> FKT_PERSONAL_WAYS) return fkt_fail(FKT_E_ARG, "unknown way %#x of personalising", spec->ways);
    FKT_TRY(fkt_personal_check_sets(spec->pretrained, spec->data, spec->test));
    FKT_TRY(fkt_fail_in(fkt_recipe_check(&spec->local), "local training"));
    FKT_TRY(fkt_fail_in(fkt_recipe_check(&spec->tune), "tuning"));
out:
    return st;
}

static fkt_status open_run(struct fkt_personal_run *r)
{
    const struct fkt_training_set *p = r->spec->data, *t = r->spec->test;
    struct fkt_personal_labels data = {p->label, p->n, p->n_classes}, test = {0};
    size_t most = 0;
    fkt_status st;
    if (t) test = (struct fkt_personal_labels){t->label, t->n, t->n_classes};
    FKT_TRY(fkt_personal_split_init(&r->split, &data, t ? &test : NULL, &r->spec->partition, r->spec->holdout,
                                    r->spec->seed));
    FKT_TRY(fkt_personal_describe(r->out, &r->split, p, FKT_PERSONAL_WAYS));
    if (fkt_personal_asked_average(r)) FKT_TRY(check_average(r));
    for (uint32_t s = 0; s < r->split.sites; s++) {
        size_t n = r->out->site[s].train + r->out->site[s].test;
        if (n > most) most = n;
    }
    FKT_TRY(fkt_alloc(&r->rgb, most * p->size * p->size * 3)); /* not more than the sets' pixels */
    FKT_TRY(fkt_alloc(&r->label, most));
    FKT_TRY(fkt_alloc(&r->logits, most * p->n_classes));
    FKT_TRY(fkt_alloc(&r->features, most * fkt_model_features(r->spec->pretrained)));
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++) FKT_TRY(fkt_evaluation_init(&r->pooled[w], p->n_classes));
    if (fkt_personal_asked_local(r)) FKT_TRY(fkt_personal_start(&r->start, r->spec->pretrained, p, r->spec->seed));
    if (fkt_personal_asked_average(r)) FKT_TRY(fkt_model_average_new(&r->sum, r->start));
    fkt_personal_plan(r);
out:
    return st;
}

static void close_run(struct fkt_personal_run *r)
{
    fkt_personal_split_clear(&r->split);
    fkt_model_free(r->start);
    fkt_model_free(r->average);
    fkt_model_average_free(r->sum);
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++) fkt_evaluation_clear(&r->pooled[w]);
    fkt_free(r->rgb);
    fkt_free(r->label);
    fkt_free(r->logits);
    fkt_free(r->features);
}

fkt_status fkt_personalize(struct fkt_personal *out, const struct fkt_personal_spec *spec)
{
    struct fkt_personal_run r = {
        .spec = spec, .out = out, .ways = spec->ways ? spec->ways : (1U << FKT_PERSONAL_WAYS) - 1};
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(check_spec(spec));
    FKT_TRY(open_run(&r));
    FKT_TRY(first_pass(&r));
    if (fkt_personal_asked_average(&r)) FKT_TRY(second_pass(&r));
    fkt_personal_summarise(out, r.pooled);
out:
    close_run(&r);
    if (st != FKT_OK) fkt_personal_clear(out);
    return st;
}
