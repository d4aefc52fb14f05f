/* SPDX-License-Identifier: Apache-2.0 */
/* evaluation.c - evaluates a classifier on labelled images: first on the images as they are, as a user would apply
 * it, then on images that were encoded and decoded, as in its training. */
#include "cli/learning/evaluation.h"

#include "base/alloc.h"
#include "tensor/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void cli_evaluation_clear(struct cli_evaluation *j)
{
    fkt_evaluation_clear(&j->plain);
    fkt_evaluation_clear(&j->through);
    j->codec[0] = '\0';
}

fkt_status cli_model_load(struct fkt_model **out, const char *path, uint32_t size)
{
    static const struct {
        const char *format, *what, *hint;
    } others[] = {
        {"fedkt.checkpoint/", "the checkpoint of a run, not a model",
         "run the command that wrote it with --resume to make the model"},
        {"fedkt.head/", "a head of 'fedkt heads', not a network", "make a network with 'fedkt train'"},
        {"fedkt.whole/", "a whole model of 'fedkt heads', not a network", "make a network with 'fedkt train'"},
        {"fedkt.release/", "a release, not a model", "make a model from it with 'fedkt train --release'"},
    };
    struct fkt_safetensors *s = NULL;
    const char *format;
    fkt_status st = FKT_OK;
    *out = NULL;
    if (fkt_safetensors_open(&s, path) == FKT_OK && (format = fkt_safetensors_meta(s, "format")) != NULL)
        for (size_t i = 0; i < CLI_COUNT(others) && st == FKT_OK; i++)
            if (!strncmp(format, others[i].format, strlen(others[i].format)))
                st = fkt_fail_hint(FKT_E_FORMAT, others[i].hint, "'%s' is %s", path, others[i].what);
    fkt_safetensors_free(s);
    if (st == FKT_OK) st = fkt_model_load(out, path, size);
    return st == FKT_E_FORMAT
               ? fkt_hint(st, "give a model of 'fedkt train', or a torchvision resnet18 as safetensors or ONNX")
               : st;
}

void cli_model_tell_size(const struct fkt_model *m, const char *path, uint64_t asked, const struct cli_run *r)
{
    if (!fkt_model_named(m) && !asked && !r->quiet)
        fprintf(stderr, "fedkt: '%s' has only weights: images are scaled to %u px (--size)\n", path, fkt_model_size(m));
}

static fkt_status names_of(const struct fkt_model *m, const char ***names)
{
    fkt_status st = fkt_alloc(names, fkt_model_classes(m));
    for (uint32_t k = 0; st == FKT_OK && k < fkt_model_classes(m); k++) (*names)[k] = fkt_model_class(m, k);
    return st;
}

fkt_status cli_open_for_model(struct fkt_dataset **out, const struct cli_data *d, const struct fkt_model *m,
                              const struct cli_run *r)
{
    const struct fkt_dataset_options o = cli_data_options(d);
    int same = 1;
    fkt_status st;
    FKT_TRY(fkt_model_open_dataset(out, m, d->path, &o, !d->fit_given));
    for (uint32_t k = 0; k < fkt_model_classes(m); k++)
        same = same && !strcmp(fkt_dataset_class(*out, k), fkt_model_class(m, k));
    if (!r->quiet && !same)
        fprintf(stderr, "fedkt: the model's classes have no names: the set's names are used in the set's order\n");
    FKT_TRY(cli_print_dataset(*out, d->path, r));
out:
    if (st != FKT_OK) {
        fkt_dataset_free(*out);
        *out = NULL;
    }
    return st;
}

fkt_status cli_evaluate_model(struct cli_evaluation *out, const struct fkt_model *m, const struct fkt_dataset *ds,
                              enum fkt_filter filter, const struct fkt_codec *codec, unsigned threads,
                              struct fkt_device device, const struct fkt_progress *progress,
                              struct fkt_skipped *skipped)
{
    const struct fkt_training_set_options o = {
        .threads = threads, .progress = progress, .skipped = skipped, .device = device};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&out->plain, fkt_model_classes(m)));
    FKT_TRY(fkt_evaluation_init(&out->through, fkt_model_classes(m)));
    FKT_TRY(fkt_model_evaluate(&out->plain, &out->through, m, ds, filter, codec, &o));
    if (codec) snprintf(out->codec, sizeof out->codec, "%s", fkt_codec_identity(codec));
out:
    return st;
}

/* ---- JSON ---- */

json_t *cli_per_class_json(const struct fkt_score *s, const char *const *classes)
{
    json_t *per = json_object();
    for (uint32_t k = 0; k < s->classes; k++) {
        double x = fkt_score_class_accuracy(s, k);
        json_object_set_new(per, classes[k], x >= 0 ? json_real(x) : json_null());
    }
    return per;
}

static json_t *confusion_json(const struct fkt_score *s)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < s->classes; i++) {
        json_t *row = json_array();
        for (uint32_t k = 0; k < s->classes; k++)
            json_array_append_new(row, json_integer((json_int_t)s->confusion[(size_t)i * s->classes + k]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *evaluation_json(const struct fkt_evaluation *j, const char *const *classes)
{
    return json_pack("{s:f s:o s:I s:f s:f s:o}", "accuracy", fkt_evaluation_accuracy(j), "per_class",
                     cli_per_class_json(&j->score, classes), "n", (json_int_t)fkt_score_total(&j->score), "loss",
                     fkt_evaluation_loss(j), "calibration_error", fkt_evaluation_calibration_error(j), "confusion",
                     confusion_json(&j->score));
}

json_t *cli_evaluation_json(const struct cli_evaluation *j, const struct fkt_model *m)
{
    const char **names = NULL;
    json_t *out, *through;
    if (names_of(m, &names) != FKT_OK) return NULL;
    out = evaluation_json(&j->plain, names);
    if (j->codec[0]) {
        through = evaluation_json(&j->through, names);
        json_object_set_new(through, "codec", json_string(j->codec));
        json_object_set_new(out, "through_codec", through);
    }
    fkt_free(names);
    return out;
}

json_t *cli_model_json(const struct fkt_model *m)
{
    json_t *classes = json_array();
    for (uint32_t k = 0; k < fkt_model_classes(m); k++)
        json_array_append_new(classes, json_string(fkt_model_class(m, k)));
    return json_pack("{s:s s:s s:i s:o s:I}", "architecture", fkt_architecture_name(fkt_model_architecture(m)), "stem",
                     fkt_stem_name(fkt_model_stem(m)), "size", (int)fkt_model_size(m), "classes", classes, "parameters",
                     (json_int_t)fkt_model_parameters(m));
}

void cli_origin_json(json_t *j, const struct fkt_model_origin *o)
{
    json_object_set_new(j, "private", json_boolean(o->is_private));
    json_object_set_new(j, "epsilon", o->is_private ? json_real(o->epsilon) : json_null());
    json_object_set_new(j, "delta", o->is_private ? json_real(o->delta) : json_null());
    json_object_set_new(j, "adjacency", o->adjacency[0] ? json_string(o->adjacency) : json_null());
    json_object_set_new(j, "release_sha256", o->release_sha256[0] ? json_string(o->release_sha256) : json_null());
    json_object_set_new(j, "data", json_string(o->data));
    json_object_set_new(j, "public_images", o->public_images[0] ? json_string(o->public_images) : json_null());
    json_object_set_new(j, "recipe", json_string(o->recipe));
}
