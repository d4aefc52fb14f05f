/* SPDX-License-Identifier: Apache-2.0 */
/* model_data.h - a model and the images that it meets: classes matched by name, evaluation as they are and through a
 * codec, what a further training starts from, and what the trained model may claim.
 */
#ifndef FEDKT_MODEL_DATA_H
#define FEDKT_MODEL_DATA_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/learn.h"
#include "fedkt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1: its classes are "0", "1", "2", ..., as those of a file of weights alone. */
FKT_API int fkt_model_numbered(const struct fkt_model *m);
/* *m with these names (K) for its classes; weights and origin stay. */
FKT_API FKT_MUST_USE fkt_status fkt_model_rename(struct fkt_model **m, const char *const *names);

/* Opens a dataset with the model's classes: by name, in the model's order. A numbered model takes a dataset of as many
 * classes in the dataset's order, except where the model was saved with those names and the dataset has them too.
 * options->classes is ignored. model_fit 1: images become square as the images did that the model was trained on, if
 * its origin says how; 0: as options->fit says. */
FKT_API FKT_MUST_USE fkt_status fkt_model_open_dataset(struct fkt_dataset **out, const struct fkt_model *m,
                                                       const char *path, const struct fkt_dataset_options *options,
                                                       int model_fit);
/* A numbered model takes the names of a dataset that was opened for it. */
FKT_API FKT_MUST_USE fkt_status fkt_model_take_names(struct fkt_model **m, const struct fkt_dataset *ds);

/* Adds all records of ds, which was opened for the model, to *plain; and, where codec is not NULL, the same images
 * encoded and decoded first to *through. Memory does not grow with ds. */
FKT_API FKT_MUST_USE fkt_status fkt_model_evaluate(struct fkt_evaluation *plain /* initialised */,
                                                   struct fkt_evaluation *through /* initialised; NULL: no codec */,
                                                   const struct fkt_model *m, const struct fkt_dataset *ds,
                                                   enum fkt_filter filter, const struct fkt_codec *codec,
                                                   const struct fkt_training_set_options *options);

/* ---- training further ---- */

/* FKT_E_MISMATCH unless m is for images of this size and has these classes in this order. */
FKT_API FKT_MUST_USE fkt_status fkt_training_set_check_model(const struct fkt_training_set *p,
                                                             const struct fkt_model *m);
/* The model that a training starts from, for the classes and the size of spec. from NULL: a new one. Else a copy of
 * `from` if its classes are the same in the same order, or `from` with a last layer that is drawn from spec->seed:
 * *new_head (may be NULL) is 1 then. FKT_E_MISMATCH when `from` is of another size. */
FKT_API FKT_MUST_USE fkt_status fkt_model_start(struct fkt_model **out, const struct fkt_model *from,
                                                const struct fkt_model_spec *spec, int *new_head);
/* What a model may claim that was trained on p, started from `from` and taught by `teacher` (NULL: none): private only
 * if all of them are. What a file says of itself is quoted as such. recipe is "". */
FKT_API void fkt_training_origin(struct fkt_model_origin *out, const struct fkt_training_set *p,
                                 const struct fkt_model *from, const struct fkt_model *teacher);

#ifdef __cplusplus
}
#endif
#endif
