/* SPDX-License-Identifier: Apache-2.0 */
/* personal_result.c - what every run on one split of the records shares: the checks of its sets, the network that it
 * starts from, and its result, a row of accuracies for each site (personal.c, baselines/run.c). */
#include "learning/personal.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { STREAM_START = 0x7374 }; /* of the seed; personal_site.c and personal_split.c have others */

/* ---- before the run ---- */

/* what: "records", "test records". */
static fkt_status check_set(const struct fkt_model *m, const struct fkt_training_set *p, const char *what)
{
    if (fkt_model_size(m) != p->size)
        return fkt_fail(FKT_E_MISMATCH, "the model takes images of %u px, but the %s have %u", fkt_model_size(m), what,
                        p->size);
    if (fkt_model_classes(m) != p->n_classes)
        return fkt_fail(FKT_E_MISMATCH, "the model has %u classes, but the %s have %u", fkt_model_classes(m), what,
                        p->n_classes);
    for (uint32_t k = 0; k < p->n_classes; k++)
        if (strcmp(fkt_model_class(m, k), p->classes[k]) != 0)
            return fkt_fail(FKT_E_MISMATCH, "class %u of the model is '%s', of the %s '%s'", k, fkt_model_class(m, k),
                            what, p->classes[k]);
    for (size_t i = 0; i < p->n; i++)
        if (p->label[i] >= p->n_classes)
            return fkt_fail(FKT_E_ARG, "label %u of the %s is out of range: %u classes", p->label[i], what,
                            p->n_classes);
    return FKT_OK;
}

fkt_status fkt_personal_check_sets(const struct fkt_model *m, const struct fkt_training_set *data,
                                   const struct fkt_training_set *test)
{
    fkt_status st = check_set(m, data, "records");
    return st == FKT_OK && test ? check_set(m, test, "test records") : st;
}

fkt_status fkt_personal_start(struct fkt_model **out, const struct fkt_model *like, const struct fkt_training_set *data,
                              uint64_t seed)
{
    struct fkt_model_spec spec = {.architecture = fkt_model_architecture(like),
                                  .stem = fkt_model_stem(like),
                                  .size = fkt_model_size(like),
                                  .classes = (const char *const *)data->classes,
                                  .n_classes = data->n_classes,
                                  .mean = fkt_model_mean(like),
                                  .std = fkt_model_std(like)};
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, (uint64_t)STREAM_START << 32);
    spec.seed = fkt_rng_u64(&rng);
    return fkt_model_new(out, &spec);
}

/* ---- the result ---- */

static uint32_t classes_of(const struct fkt_personal_split *split, const struct fkt_training_set *data, uint32_t site,
                           uint8_t *seen)
{
    uint32_t n = 0;
    memset(seen, 0, data->n_classes);
    for (size_t i = split->train.start[site]; i < split->train.start[site + 1]; i++) { /* each is trained on */
        uint32_t k = data->label[split->train.record[i]];
        n += !seen[k];
        seen[k] = 1;
    }
    return n;
}

fkt_status fkt_personal_describe(struct fkt_personal *out, const struct fkt_personal_split *split,
                                 const struct fkt_training_set *data, uint32_t ways)
{
    uint8_t *seen = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&out->site, split->sites));
    FKT_TRY(fkt_alloc(&out->mean, ((size_t)split->sites + 3) * ways)); /* the one block of numbers */
    FKT_TRY(fkt_alloc(&seen, data->n_classes));
    out->sites = split->sites;
    out->ways = ways;
    out->spread = out->mean + ways;
    out->pooled = out->spread + ways;
    for (uint32_t s = 0; s < split->sites; s++) {
        struct fkt_personal_site *site = &out->site[s];
        site->train = fkt_personal_count(&split->train, s);
        site->test = fkt_personal_count(&split->test, s);
        site->classes = classes_of(split, data, s, seen);
        site->untrained = site->train < FKT_PERSONAL_LEAST;
        site->accuracy = out->pooled + ((size_t)s + 1) * ways;
        for (uint32_t w = 0; w < ways; w++) site->accuracy[w] = NAN;
    }
out:
    fkt_free(seen);
    return st;
}

void fkt_personal_summarise(struct fkt_personal *p, const struct fkt_evaluation *pooled)
{
    for (uint32_t w = 0; w < p->ways; w++) {
        double sum = 0, squares = 0, n = 0;
        for (uint32_t s = 0; s < p->sites; s++)
            if (!isnan(p->site[s].accuracy[w])) {
                sum += p->site[s].accuracy[w];
                n++;
            }
        p->mean[w] = n > 0 ? sum / n : NAN;
        for (uint32_t s = 0; s < p->sites; s++)
            if (!isnan(p->site[s].accuracy[w])) squares += pow(p->site[s].accuracy[w] - p->mean[w], 2);
        p->spread[w] = n > 1 ? sqrt(squares / (n - 1)) : NAN;
        p->pooled[w] = n > 0 ? fkt_evaluation_accuracy(&pooled[w]) : NAN;
    }
}

void fkt_personal_clear(struct fkt_personal *p)
{
    fkt_free(p->site);
    fkt_free(p->mean);
    memset(p, 0, sizeof *p);
}
