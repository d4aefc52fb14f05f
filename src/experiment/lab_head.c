/* SPDX-License-Identifier: Apache-2.0 */
/* lab_head.c - records of a set as features, and the bound for heads: a linear softmax head that is trained on the real
 * features of all records, at one place and without noise. Ours sees noised sums of the same features. */
#include "experiment/lab.h"

#include "learning/features/features.h"

#define GUIDE "fedkt-guide"

fkt_status fkt_lab_features(struct fkt_lab *lab, const struct fkt_sweep *sweep, struct fkt_features *train,
                            struct fkt_features *test)
{
    const struct fkt_pipeline_options options = {
        .threads = lab->options.threads, .progress = lab->options.progress, .encodings = lab->encodings};
    const struct fkt_pipeline *w = fkt_sweep_pipeline(sweep);
    const size_t *idx;
    size_t n;
    fkt_status st;
    idx = fkt_sweep_train_records(sweep, &n);
    FKT_TRY(fkt_features_encode(train, w, fkt_sweep_data(sweep), idx, n, &options));
    idx = fkt_sweep_test_records(sweep, &n);
    FKT_TRY(fkt_features_encode(test, w, fkt_sweep_test_data(sweep), idx, n, &options));
out:
    return st;
}

fkt_status fkt_lab_softmax(const struct fkt_features *train, const struct fkt_features *test, uint64_t seed,
                           double *accuracy)
{
    struct fkt_softmax_settings settings;
    struct fkt_softmax head = {0};
    fkt_status st;
    fkt_softmax_default(&settings);
    settings.seed = seed;
    FKT_TRY(fkt_softmax_fit(&head, train, &settings));
    FKT_TRY(fkt_softmax_accuracy(&head, test, accuracy));
out:
    fkt_softmax_clear(&head);
    return st;
}

/* The sweep is not run: it knows which records are trained on, and the guide with its calibration. */
fkt_status fkt_lab_real_head(struct fkt_lab *lab, const char *set, uint64_t seed, double *accuracy)
{
    static const struct fkt_arm arm = {.name = "real", .guide = GUIDE, .noise = -1};
    static const double epsilon = 1; /* a sweep needs one */
    const struct fkt_lab_run run = {.set = set,
                                    .arm = &arm,
                                    .epsilon = &epsilon,
                                    .n_epsilon = 1,
                                    .sites = 20,
                                    .partition = "iid",
                                    .participation = 1,
                                    .seed = seed};
    struct fkt_features train = {0}, test = {0};
    struct fkt_sweep *sweep = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_sweep_new(lab, &run, &sweep));
    FKT_TRY(fkt_lab_features(lab, sweep, &train, &test));
    FKT_TRY(fkt_lab_softmax(&train, &test, FKT_REFERENCE_SEED(seed), accuracy));
out:
    fkt_features_clear(&train);
    fkt_features_clear(&test);
    fkt_sweep_free(sweep);
    return st;
}
