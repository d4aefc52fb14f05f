/* SPDX-License-Identifier: Apache-2.0 */
/* evaluation.h - opens a classifier, evaluates it on labelled images and prints the result; for `evaluate`, `train`
 * and `simulate`. */
#ifndef FKT_CLI_LEARNING_EVALUATION_H
#define FKT_CLI_LEARNING_EVALUATION_H

#include "cli/core/common.h"

#include "fedkt/model_data.h"

/* Results on images as they are and, with a codec, on images encoded and decoded first. */
struct cli_evaluation {
    struct fkt_evaluation plain, through;
    char codec[256]; /* identity; "": images did not go through one */
};
void cli_evaluation_clear(struct cli_evaluation *j);

/* fkt_model_load for --model, --from and --teacher; its error names the kind of our other files. */
FKT_MUST_USE fkt_status cli_model_load(struct fkt_model **out, const char *path, uint32_t size);
/* A remark when no size is given: a file with only weights has none. */
void cli_model_tell_size(const struct fkt_model *m, const char *path, uint64_t asked, const struct cli_run *r);
/* fkt_model_open_dataset, with remarks: the set's contents, and whether its class order is used for the model's. */
FKT_MUST_USE fkt_status cli_open_for_model(struct fkt_dataset **out, const struct cli_data *d,
                                           const struct fkt_model *m, const struct cli_run *r);
/* Reads the set, evaluates, with a codec (may be NULL) evaluates again. `skipped` may be NULL. */
FKT_MUST_USE fkt_status cli_evaluate_model(struct cli_evaluation *out, const struct fkt_model *m,
                                           const struct fkt_dataset *ds, enum fkt_filter filter,
                                           const struct fkt_codec *codec, unsigned threads, struct fkt_device device,
                                           const struct fkt_progress *progress, struct fkt_skipped *skipped);
/* A whole model of 'fedkt heads --export': reads it, evaluates, prints. device: of CLI_DEVICE_ROW. */
FKT_MUST_USE fkt_status cli_evaluate_whole(const char *path, const struct cli_data *data, int device, unsigned threads,
                                           const struct cli_run *run, struct cli_progress *progress);

/* accuracy, per_class, n, loss, calibration_error, confusion and, after a codec, through_codec with the same. */
json_t *cli_evaluation_json(const struct cli_evaluation *j, const struct fkt_model *m);
json_t *cli_per_class_json(const struct fkt_score *s, const char *const *classes);
void cli_evaluation_print(const struct cli_evaluation *j, const struct fkt_model *m); /* on stdout */
void cli_score_print(const struct fkt_score *s, const char *const *classes); /* accuracy in all and per class */

/* architecture, stem, size, classes, parameters */
json_t *cli_model_json(const struct fkt_model *m);
/* private, epsilon, delta (null when not private), release_sha256, data, recipe put into j */
void cli_origin_json(json_t *j, const struct fkt_model_origin *o);
/* On stdout, a line or two; claimed: the file states it, and it was not checked in this run. */
void cli_origin_print(const struct fkt_model_origin *o, int claimed);
#endif
