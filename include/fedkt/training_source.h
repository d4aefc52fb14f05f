/* SPDX-License-Identifier: Apache-2.0 */
/* training_source.h - the images of each epoch of a training run, and what a model trained on them may claim.
 *
 *   fkt_training_source_new        images of a release (the same in all epochs, or others in each) or of a dataset
 *   fkt_training_source_hold_out   a part of them on which no epoch trains
 *   fkt_training_source_mix        real images beside them, in every epoch: the model is then NOT private
 *   fkt_training_source_public     unlabelled public images beside them, which the teacher labels
 *   fkt_training_source_images     what a trainer takes (learn.h)
 */
#ifndef FEDKT_TRAINING_SOURCE_H
#define FEDKT_TRAINING_SOURCE_H

#include "fedkt/teacher.h"
#include "fedkt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Either a release or a dataset. */
struct fkt_training_source_spec {
    const struct fkt_release *release; /* borrowed until the source is freed; NULL: a dataset */
    struct fkt_draw_options draw;      /* of the release; `first` is ignored, the pipeline borrowed until it is freed.
                                          per_class 0: none is drawn, and public images must follow */
    int fresh;                         /* 1: epoch e trains on samples e*N .. (e+1)*N - 1 of each class, with N =
                                          per_class, so that a resumed run draws the same; 0: on 0 .. N - 1 always */
    uint32_t ahead; /* fresh: epochs of the run; while one is trained on, the next one's images are made in a thread.
                       0: when they are asked for. The same images */
    const struct fkt_dataset *data; /* borrowed */
    const char *folder;             /* of the dataset: as in fkt_training_set_read; may be NULL */
    uint32_t size;                  /* of the dataset's images; a release has a size */
    enum fkt_filter filter;         /* of the dataset and of what is mixed in */
    const struct fkt_model *order;  /* borrowed; may be NULL: if this model has named classes and the images have
                                          the same names, labels follow the model's order */
    const struct fkt_teacher
        *teacher; /* borrowed until the source is freed; may be NULL: its logits come with the images
                                          of each epoch. Needs a release */
    double plain; /* of a release with a guide: this share of the images of an epoch is decoded without it, 0 to 1 */
    double blend; /* fresh, with a teacher: this share of the images of an epoch, of all kinds, is replaced by blends
                     of two, which the teacher labels as they are, 0 to 1 */
    struct fkt_training_set_options options; /* what it points to is borrowed until the source is freed */
};
struct fkt_training_source;
/* Reads the dataset, or draws the images of epoch 0. */
FKT_API FKT_MUST_USE fkt_status fkt_training_source_new(struct fkt_training_source **out,
                                                        const struct fkt_training_source_spec *spec);
FKT_API void fkt_training_source_free(struct fkt_training_source *s);

/* Once, and before mix: what is mixed in is never held out. Fresh images: samples after those of the last of `epochs`
 * epochs, `share` times N of each class and at least one. Else a stratified `share` of the images, by `seed`. */
FKT_API FKT_MUST_USE fkt_status fkt_training_source_hold_out(struct fkt_training_source *s, double share, uint64_t seed,
                                                             uint32_t epochs);
/* Once: all records of ds (borrowed), whose classes must be those of fkt_training_source_set. The source is not private
 * afterwards, whatever ds holds. skipped NULL: an unreadable image stops. */
FKT_API FKT_MUST_USE fkt_status fkt_training_source_mix(struct fkt_training_source *s, const struct fkt_dataset *ds,
                                                        struct fkt_skipped *skipped);

/* Once, with a teacher, after hold_out and mix: `each` (0: as many as there are others, or all if they are fewer) of
 * the records of ds (borrowed) in each epoch; over the epochs all of them are seen. Labels of ds are ignored: the label
 * is the teacher's most probable class. name: where ds comes from; its last component stands in the origin. What the
 * source may claim does not change: whoever calls this says that ds is public. skipped as in mix. */
FKT_API FKT_MUST_USE fkt_status fkt_training_source_public(struct fkt_training_source *s, const struct fkt_dataset *ds,
                                                           const char *name, size_t each, struct fkt_skipped *skipped);
struct fkt_public_facts {
    const char *name, *sha256; /* borrowed from the source; the digest covers the images alone, in any order */
    size_t images, each;       /* of the set, and of an epoch; 0: there is none */
};
FKT_API struct fkt_public_facts fkt_training_source_public_facts(const struct fkt_training_source *s);
/* FKT_E_MISMATCH when a record of ds, a test set, is among the public images; names the first. */
FKT_API FKT_MUST_USE fkt_status fkt_training_source_check_test(const struct fkt_training_source *s,
                                                               const struct fkt_dataset *ds);

/* The images of the epoch asked for last: their classes, size, number and origin are those of all epochs. */
FKT_API const struct fkt_training_set *fkt_training_source_set(const struct fkt_training_source *s);
FKT_API const struct fkt_images *fkt_training_source_held(const struct fkt_training_source *s); /* NULL: none */
FKT_API void fkt_training_source_images(struct fkt_training_source *s, struct fkt_image_source *out);

#ifdef __cplusplus
}
#endif
#endif
