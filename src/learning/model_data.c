/* SPDX-License-Identifier: Apache-2.0 */
/* model_data.c - matches a model with a dataset: classes, sizes, evaluation.
 *
 * Classes are matched by name, because two datasets seldom list them in the same order. A file with only weights has
 * no names: then the dataset's order is used. An evaluation first uses the images as they are, as a user would apply
 * the model, then encodes and decodes them, as in training on synthetic images. */
#include "fedkt/model_data.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { EVALUATE_BYTES = 256 << 20 }; /* images in memory at a time */

/* ---- names of classes ---- */

int fkt_model_numbered(const struct fkt_model *m)
{
    char number[16];
    for (uint32_t k = 0; k < fkt_model_classes(m); k++) {
        snprintf(number, sizeof number, "%u", k);
        if (strcmp(number, fkt_model_class(m, k)) != 0) return 0;
    }
    return 1;
}

fkt_status fkt_model_rename(struct fkt_model **m, const char *const *names)
{
    struct fkt_model *named = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_new_head(&named, *m, names, fkt_model_classes(*m), 0));
    for (size_t i = 0; i < fkt_model_tensors(named); i++) {
        const struct fkt_model_tensor to = fkt_model_tensor(named, i), of = fkt_model_tensor(*m, i);
        memcpy(to.data, of.data, to.count * sizeof *to.data);
    }
    fkt_model_changed(named);
    fkt_model_set_origin(named, fkt_model_origin(*m));
    fkt_model_free(*m);
    *m = named;
out:
    return st;
}

fkt_status fkt_model_take_names(struct fkt_model **m, const struct fkt_dataset *ds)
{
    const uint32_t classes = fkt_model_classes(*m);
    const char **names = NULL;
    fkt_status st;
    if (!fkt_model_numbered(*m)) return FKT_OK;
    if (fkt_dataset_classes(ds) != classes)
        return fkt_fail(FKT_E_MISMATCH, "the dataset has %zu classes, but the model has %u", fkt_dataset_classes(ds),
                        classes);
    FKT_TRY(fkt_alloc(&names, classes));
    for (uint32_t k = 0; k < classes; k++) names[k] = fkt_dataset_class(ds, k);
    FKT_TRY(fkt_model_rename(m, names));
out:
    fkt_free(names);
    return st;
}

/* Numbers are names if the model was saved with them and the dataset has no others. */
static int numbers_are_names(const struct fkt_model *m, const struct fkt_dataset *ds)
{
    for (size_t i = 0; i < fkt_dataset_classes(ds); i++) {
        uint32_t k = 0;
        while (k < fkt_model_classes(m) && strcmp(fkt_model_class(m, k), fkt_dataset_class(ds, i)) != 0) k++;
        if (k == fkt_model_classes(m)) return 0;
    }
    return fkt_model_named(m);
}

/* A numbered model and a dataset in its own order; *out NULL: the numbers are names. */
static fkt_status open_by_position(struct fkt_dataset **out, const struct fkt_model *m, const char *path,
                                   const struct fkt_dataset_options *o)
{
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    FKT_TRY(fkt_dataset_open(&ds, path, o));
    if (numbers_are_names(m, ds)) goto out;
    if (fkt_dataset_classes(ds) != fkt_model_classes(m)) {
        st = fkt_fail(FKT_E_MISMATCH, "'%s' has %zu classes, but the model has %u", path, fkt_dataset_classes(ds),
                      fkt_model_classes(m));
        goto out;
    }
    *out = ds;
    ds = NULL;
out:
    fkt_dataset_free(ds);
    return st;
}

fkt_status fkt_model_open_dataset(struct fkt_dataset **out, const struct fkt_model *m, const char *path,
                                  const struct fkt_dataset_options *options, int model_fit)
{
    struct fkt_dataset_options o = *options;
    const char **names = NULL;
    fkt_status st = FKT_OK;
    *out = NULL;
    o.classes = NULL;
    o.n_classes = 0;
    if (model_fit && fkt_model_origin(m)->fit[0]) o.fit = (enum fkt_fit)fkt_fit_parse(fkt_model_origin(m)->fit);
    if (fkt_model_numbered(m)) FKT_TRY(open_by_position(out, m, path, &o));
    if (*out) goto out;
    FKT_TRY(fkt_alloc(&names, fkt_model_classes(m)));
    for (uint32_t k = 0; k < fkt_model_classes(m); k++) names[k] = fkt_model_class(m, k);
    o.classes = names;
    o.n_classes = fkt_model_classes(m);
    FKT_TRY(fkt_dataset_open(out, path, &o));
out:
    fkt_free(names);
    return st;
}

/* ---- evaluation ---- */

/* A numbered model's classes are those of the dataset in its own order. */
static fkt_status name_as_model(struct fkt_training_set *p, const struct fkt_model *m)
{
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < p->n_classes && k < fkt_model_classes(m); k++) {
        fkt_free(p->classes[k]);
        p->classes[k] = NULL;
        FKT_TRY(fkt_strdup(&p->classes[k], fkt_model_class(m, k)));
    }
out:
    return st;
}

fkt_status fkt_model_evaluate(struct fkt_evaluation *plain, struct fkt_evaluation *through, const struct fkt_model *m,
                              const struct fkt_dataset *ds, enum fkt_filter filter, const struct fkt_codec *codec,
                              const struct fkt_training_set_options *options)
{
    const struct fkt_predict_options predict = {
        .threads = options->threads, .progress = options->progress, .device = options->device};
    const size_t all = fkt_dataset_size(ds), pixels = (size_t)fkt_model_size(m) * fkt_model_size(m) * 3;
    const size_t most = EVALUATE_BYTES / pixels;
    struct fkt_training_set part = {0};
    size_t *idx = NULL, n;
    fkt_status st;
    FKT_TRY(fkt_alloc(&idx, most < all ? most : all));
    for (size_t first = 0; first < all; first += n) {
        n = all - first < most ? all - first : most;
        for (size_t i = 0; i < n; i++) idx[i] = first + i;
        FKT_TRY(fkt_training_set_read(&part, ds, idx, n, fkt_model_size(m), filter, NULL, options));
        if (fkt_model_numbered(m)) FKT_TRY(name_as_model(&part, m));
        FKT_TRY(fkt_training_set_evaluate(plain, m, &part, &predict));
        if (codec) {
            FKT_TRY(fkt_training_set_through_codec(&part, codec, options));
            FKT_TRY(fkt_training_set_evaluate(through, m, &part, &predict));
        }
        fkt_training_set_clear(&part);
    }
out:
    fkt_training_set_clear(&part);
    fkt_free(idx);
    return st;
}

/* ---- training further ---- */

fkt_status fkt_training_set_check_model(const struct fkt_training_set *p, const struct fkt_model *m)
{
    if (fkt_model_size(m) != p->size)
        return fkt_fail(FKT_E_MISMATCH, "the model takes images of %u px, but these have %u px", fkt_model_size(m),
                        p->size);
    if (fkt_model_classes(m) != p->n_classes)
        return fkt_fail(FKT_E_MISMATCH, "the model has %u classes, but the images have %u", fkt_model_classes(m),
                        p->n_classes);
    for (uint32_t k = 0; k < p->n_classes; k++)
        if (strcmp(fkt_model_class(m, k), p->classes[k]) != 0)
            return fkt_fail(FKT_E_MISMATCH, "class %u is '%s' for the model and '%s' for the images", k,
                            fkt_model_class(m, k), p->classes[k]);
    return FKT_OK;
}

static int same_classes(const struct fkt_model *m, const struct fkt_model_spec *spec)
{
    if (fkt_model_classes(m) != spec->n_classes) return 0;
    for (uint32_t k = 0; k < spec->n_classes; k++)
        if (strcmp(fkt_model_class(m, k), spec->classes[k]) != 0) return 0;
    return 1;
}

fkt_status fkt_model_start(struct fkt_model **out, const struct fkt_model *from, const struct fkt_model_spec *spec,
                           int *new_head)
{
    *out = NULL;
    if (new_head) *new_head = 0;
    if (!from) return fkt_model_new(out, spec);
    if (fkt_model_size(from) != spec->size)
        return fkt_fail(FKT_E_MISMATCH, "the model takes images of %u px, but these have %u px", fkt_model_size(from),
                        spec->size);
    if (same_classes(from, spec)) return fkt_model_copy(out, from);
    if (new_head) *new_head = 1;
    return fkt_model_new_head(out, from, spec->classes, spec->n_classes, spec->seed);
}

/* A file's statement about itself is passed on as its claim. */
static void add_claim(struct fkt_model_origin *o, const char *silent, const char *says, const struct fkt_model *m)
{
    const struct fkt_model_origin *more = fkt_model_origin(m);
    fkt_model_origin_add(o, more->data[0] ? says : silent, more);
}

void fkt_training_origin(struct fkt_model_origin *out, const struct fkt_training_set *p, const struct fkt_model *from,
                         const struct fkt_model *teacher)
{
    *out = p->origin;
    if (from) add_claim(out, "started from ", "started from a model whose file says: ", from);
    if (teacher) add_claim(out, "taught by ", "taught by a model whose file says: ", teacher);
}
