/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_whole.c - `fedkt evaluate` of a whole model ('fedkt heads --export'): it needs nothing but its file. */
#include "cli/learning/evaluation.h"

#include "fedkt/whole.h"

#include "base/alloc.h"

#include <stdio.h>

static fkt_status names_of(const char ***names, const struct fkt_whole *m)
{
    fkt_status st = fkt_alloc(names, fkt_whole_classes(m));
    for (uint32_t k = 0; st == FKT_OK && k < fkt_whole_classes(m); k++) (*names)[k] = fkt_whole_class(m, k);
    return st;
}

static fkt_status print(const struct fkt_whole *m, const struct fkt_evaluation *j, const char *const *names,
                        struct fkt_device device, const struct cli_run *run)
{
    json_t *out;
    if (!run->json) {
        cli_score_print(&j->score, names);
        printf("loss %.4f, calibration error %.4f\n\n", fkt_evaluation_loss(j), fkt_evaluation_calibration_error(j));
        if (*fkt_whole_not_private(m)) printf("NOT PRIVATE: %s\n", fkt_whole_not_private(m));
        else cli_origin_print(fkt_whole_origin(m), 1);
        return cli_flush();
    }
    out = json_pack("{s:f s:o s:I s:f s:f s:s s:i s:o}", "accuracy", fkt_evaluation_accuracy(j), "per_class",
                    cli_per_class_json(&j->score, names), "n", (json_int_t)fkt_score_total(&j->score), "loss",
                    fkt_evaluation_loss(j), "calibration_error", fkt_evaluation_calibration_error(j), "head",
                    fkt_head_name(fkt_head_kind_of(fkt_whole_head(m))), "size", (int)fkt_whole_size(m), "device",
                    cli_device_json(device));
    if (out) cli_origin_json(out, fkt_whole_origin(m));
    return cli_print_json(out);
}

fkt_status cli_evaluate_whole(const char *path, const struct cli_data *data, int device, unsigned threads,
                              const struct cli_run *run, struct cli_progress *progress)
{
    const struct fkt_dataset_options o = cli_data_options(data);
    struct fkt_training_set_options options = {.threads = threads, .progress = &progress->hook};
    struct fkt_evaluation j = {0};
    struct fkt_skipped skipped = {0};
    struct fkt_dataset *ds = NULL;
    struct fkt_whole *m = NULL;
    const char **names = NULL;
    fkt_status st;
    if (data->skip_bad) options.skipped = &skipped;
    FKT_TRY(fkt_whole_load(&m, path));
    FKT_TRY(cli_device_settle(device, &options.device));
    FKT_TRY(names_of(&names, m));
    FKT_TRY(fkt_whole_open_dataset(&ds, m, data->path, &o));
    FKT_TRY(cli_print_dataset(ds, data->path, run));
    FKT_TRY(fkt_evaluation_init(&j, fkt_whole_classes(m)));
    FKT_TRY(fkt_whole_evaluate(&j, m, ds, &options));
    cli_progress_end(progress);
    cli_print_skipped(&skipped);
    FKT_TRY(print(m, &j, names, options.device, run));
out:
    fkt_evaluation_clear(&j);
    fkt_skipped_clear(&skipped);
    fkt_dataset_free(ds);
    fkt_free(names);
    fkt_whole_free(m);
    return st;
}
