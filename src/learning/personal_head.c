/* SPDX-License-Identifier: Apache-2.0 */
/* personal_head.c - a common classifier at each site with the site's own class proportions: no training at all.
 *
 * Bayes' rule. A head of a release gives log p(c | image) for equal priors; a site knows how often it has each class,
 *     log p_s(c | image) = log p(c | image) + log pi_s(c) + constant,   pi_s(c) = (n_sc + 1) / (n_s + K),
 * with n_sc its training records of class c (Laplace's rule of succession: a class that the site has not seen is
 * unlikely, not impossible). The proportions never leave the site. The split is that of fkt_personalize. */
#include "learning/personal.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* log pi (K) of a site. */
static void log_prior(double *out, const struct fkt_training_set *data, const struct fkt_personal_part *train,
                      uint32_t site)
{
    const double total = (double)fkt_personal_count(train, site) + data->n_classes;
    for (uint32_t k = 0; k < data->n_classes; k++) out[k] = 1;
    for (size_t i = train->start[site]; i < train->start[site + 1]; i++) out[data->label[train->record[i]]]++;
    for (uint32_t k = 0; k < data->n_classes; k++) out[k] = log(out[k] / total);
}

static fkt_status evaluate_site(struct fkt_personal *out, const struct fkt_personal_split *split,
                                const struct fkt_personal_head_spec *spec, uint32_t site, double *prior, float *row,
                                struct fkt_evaluation *pooled)
{
    const struct fkt_personal_part *part = &split->test;
    const uint32_t K = spec->test->n_classes;
    struct fkt_evaluation own[FKT_PERSONAL_HEAD_WAYS] = {{.loss = 0}};
    fkt_status st = FKT_OK;
    for (int w = 0; w < FKT_PERSONAL_HEAD_WAYS; w++) FKT_TRY(fkt_evaluation_init(&own[w], K));
    log_prior(prior, spec->data, &split->train, site);
    for (size_t i = part->start[site]; i < part->start[site + 1]; i++) {
        const float *logits = spec->logits + part->record[i] * K;
        const uint32_t *label = &spec->test->label[part->record[i]];
        for (uint32_t k = 0; k < K; k++) row[k] = (float)(logits[k] + prior[k]);
        for (int w = 0; w < FKT_PERSONAL_HEAD_WAYS; w++) {
            const float *said = w == FKT_PERSONAL_HEAD_PRIOR ? row : logits;
            FKT_TRY(fkt_evaluation_add(&own[w], said, label, 1));
            FKT_TRY(fkt_evaluation_add(&pooled[w], said, label, 1));
        }
    }
    for (int w = 0; w < FKT_PERSONAL_HEAD_WAYS; w++)
        out->site[site].accuracy[w] = fkt_evaluation_accuracy(&own[w]); /* NaN: it has no test record */
out:
    for (int w = 0; w < FKT_PERSONAL_HEAD_WAYS; w++) fkt_evaluation_clear(&own[w]);
    return st;
}

fkt_status fkt_personal_head(struct fkt_personal *out, const struct fkt_personal_head_spec *spec)
{
    const struct fkt_personal_labels data = {spec->data->label, spec->data->n, spec->data->n_classes},
                                     test = {spec->test->label, spec->test->n, spec->test->n_classes};
    struct fkt_evaluation pooled[FKT_PERSONAL_HEAD_WAYS] = {{.loss = 0}};
    struct fkt_personal_split split = {0};
    double *prior = NULL;
    float *row = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (data.classes != test.classes)
        return fkt_fail(FKT_E_MISMATCH, "the records have %zu classes, and the test records %zu", data.classes,
                        test.classes);
    FKT_TRY(fkt_personal_split_init(&split, &data, &test, &spec->partition, 0, spec->seed));
    FKT_TRY(fkt_personal_describe(out, &split, spec->data, FKT_PERSONAL_HEAD_WAYS));
    FKT_TRY(fkt_alloc(&prior, data.classes));
    FKT_TRY(fkt_alloc(&row, data.classes));
    for (int w = 0; w < FKT_PERSONAL_HEAD_WAYS; w++) FKT_TRY(fkt_evaluation_init(&pooled[w], spec->data->n_classes));
    for (uint32_t s = 0; s < split.sites; s++) FKT_TRY(evaluate_site(out, &split, spec, s, prior, row, pooled));
    fkt_personal_summarise(out, pooled);
out:
    for (int w = 0; w < FKT_PERSONAL_HEAD_WAYS; w++) fkt_evaluation_clear(&pooled[w]);
    fkt_personal_split_clear(&split);
    fkt_free(prior);
    fkt_free(row);
    if (st != FKT_OK) fkt_personal_clear(out);
    return st;
}
