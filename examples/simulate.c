/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - twenty sites in one process: what accuracy does a release have at which epsilon?
 *
 *   images -> sites -> moments -> a round of secure aggregation and a release for each epsilon -> accuracies, a dataset
 *
 * `fedkt simulate` does the same with options and a report. The images are the built-in set "demo:train", ten classes;
 * a path to your own stands in its place. Writes "results.json" (NOT private: it holds true counts and accuracies) and
 * a synthetic dataset "synthetic" into the working folder. Build it against an installed library:
 *   cc simulate.c $(pkg-config --cflags --libs fedkt) */
#include "fedkt/advanced/federation.h"
#include "fedkt/fedkt.h"

#include <stdio.h>

enum { SIZE = 16, RECORDS = 1500, TESTS = 300, PER_CLASS = 5, DRAWS = 2 };

static fkt_status st = FKT_OK; /* the first failure ends it */
#define TRY(call) st = st == FKT_OK ? (call) : st

static fkt_status print_release(void *ctx, const struct fkt_sweep *s, size_t arm)
{
    const struct fkt_sweep_arm *a = fkt_sweep_arm(s, arm);
    (void)ctx;
    printf("%s: %u sites are in the sum, %.1f s\n", a->name, a->round->survivors, a->round->seconds);
    return FKT_OK; /* anything else ends the sweep */
}

static void open_sweep(struct fkt_sweep **sweep, const struct fkt_dataset *records, const struct fkt_dataset *test)
{
    static const double epsilon[] = {10, 1};
    const struct fkt_codec_spec codec = {.name = "dct", .size = SIZE, .dim = 32};
    struct fkt_calibration calibration = {0};
    struct fkt_sweep_spec spec;
    fkt_sweep_default(&spec);
    spec.data = records;
    spec.test = test;
    spec.epsilon = epsilon;
    spec.n_epsilon = 2;
    spec.task.privacy.delta = 1e-5;
    spec.draws = DRAWS; /* the noise of each release is drawn again, to see how much of an accuracy is chance */
    spec.partition = (struct fkt_partition_spec){.rule = FKT_PARTITION_DIRICHLET, .sites = 20, .alpha = 0.3};
    spec.dropout[FKT_SA_STATE_MASK] = 0.1; /* two sites are lost in the middle of each round */
    spec.released = print_release;
    spec.parts = 1; /* record vectors of a codec alone; a guide would be the second part */
    TRY(fkt_codec_open(&spec.codec[0], &codec));
    TRY(fkt_calibration_embedded(&calibration, spec.codec[0]));
    spec.calibration[0] = &calibration;
    TRY(fkt_sweep_new(sweep, &spec)); /* takes codec and calibration */
}

static void print_accuracies(const struct fkt_sweep *s)
{
    for (size_t i = 0; i < fkt_sweep_arms(s); i++) {
        printf("%-12s", fkt_sweep_arm(s, i)->name);
        for (int k = 0; k < FKT_HEAD_KINDS; k++) {
            double mean, deviation;
            fkt_sweep_accuracy(s, i, (enum fkt_head_kind)k, &mean, &deviation);
            printf("  %s %.1f +- %.1f %%", fkt_head_name((enum fkt_head_kind)k), 100 * mean, 100 * deviation);
        }
        printf("%s\n", fkt_sweep_arm(s, i)->release ? "" : "  (exact moments, NOT private)");
    }
    printf("all releases together cost epsilon %.3g\n", fkt_sweep_composed_epsilon(s));
}

static void write_results(const struct fkt_sweep *s)
{
    char *json = NULL;
    FILE *f;
    TRY(fkt_sweep_results_json(s, &json));
    if (st != FKT_OK) return;
    f = fopen("results.json", "wx");
    if (!f || fputs(json, f) < 0 || fclose(f) != 0) st = FKT_E_IO;
    fkt_string_free(json);
}

int main(void)
{
    struct fkt_dataset *records = NULL, *test = NULL;
    struct fkt_sweep *sweep = NULL;
    double exact = 0, ten = 0;
    TRY(fkt_dataset_open(&records, "demo:train", &(struct fkt_dataset_options){.limit = RECORDS}));
    TRY(fkt_dataset_open(&test, "demo:test", &(struct fkt_dataset_options){.limit = TESTS}));
    if (st == FKT_OK) open_sweep(&sweep, records, test);
    TRY(fkt_sweep_run(sweep));
    if (st == FKT_OK) {
        print_accuracies(sweep);
        fkt_sweep_accuracy(sweep, 0, FKT_HEAD_LDA, &ten, NULL);
        fkt_sweep_accuracy(sweep, fkt_sweep_arms(sweep) - 1, FKT_HEAD_LDA, &exact, NULL);
    }
    TRY(fkt_sweep_generate(sweep, 0, "synthetic", PER_CLASS, FKT_EXPORT_FOLDER, 0));
    if (st == FKT_OK) write_results(sweep);
    if (st != FKT_OK) fprintf(stderr, "simulate: %s\n", fkt_error_text());
    else if (!(ten > 0.15 && ten <= exact + 0.1)) { /* chance is 0.1 */
        fprintf(stderr, "simulate: the release at epsilon 10 tells nothing of the classes\n");
        st = FKT_E_STATE;
    }
    fkt_sweep_free(sweep);
    fkt_dataset_free(test);
    fkt_dataset_free(records);
    return st == FKT_OK ? 0 : 1;
}
