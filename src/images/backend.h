/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - what a source of labelled images gives to the dataset: a list of records (builder) and a way to decode
 * one (vtable).
 *
 * A format's opener calls, in any order: fkt_builder_class for each class, fkt_builder_add for each record, and
 * exactly once fkt_builder_backend. The records it adds are numbered 0, 1, 2 ... in the order of adding: that is the
 * `r` of decode. It adds the records of every split; choosing a split, ordering, mapping to an agreed class list and
 * `limit` are the builder's work. */
#ifndef FKT_IMAGES_BACKEND_H
#define FKT_IMAGES_BACKEND_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of one record after another, in a block that grows when it must; bytes is freed with fkt_free. */
struct fkt_stored {
    uint8_t *bytes;
    size_t len, room;
};
FKT_MUST_USE fkt_status fkt_stored_reserve(struct fkt_stored *s, size_t len); /* sets len; choice.c */

/* What a decoder tells of an image beside its pixels; all zero before. */
struct fkt_facts {
    unsigned note; /* FKT_IMAGE_* bits */
    int wide;      /* 1: stored with 16 bits a sample; then sha256 is its digest (decode.h) */
    uint8_t sha256[32];
};

struct fkt_dataset_backend {
    const char *format; /* "ImageFolder", "CIFAR-10 binary", ...; static storage */
    /* Decodes raw record r into a fresh RGB image of its own size: gives *rgb (h, w, 3), freed with fkt_free; fills
     * *facts (never NULL). Called from several threads at once. The sentence of a failure need not name the record. */
    fkt_status (*decode)(const void *self, size_t r, uint8_t **rgb, uint32_t *w, uint32_t *h, struct fkt_facts *facts);
    void (*free)(void *self);
    /* The bytes in which raw record r is stored, before any decoding, without its name or place. Called from several
     * threads at once, each with an `out` of its own. */
    fkt_status (*stored)(const void *self, size_t r, struct fkt_stored *out);
};

struct fkt_dataset_builder;

/* The number of class `name` in *k, added when new. Copies name. */
FKT_MUST_USE fkt_status fkt_builder_class(struct fkt_dataset_builder *b, const char *name, uint32_t *k);
/* One record of class k. `split` is "train", "test", "val" or NULL (none); the rest is its name for error sentences.
 * Copies. */
FKT_MUST_USE fkt_status fkt_builder_add(struct fkt_dataset_builder *b, uint32_t k, const char *split,
                                        const char *name_fmt, ...) __attribute__((format(printf, 4, 5)));
/* Takes self (freed with vt->free also when opening fails later on); borrows vt for ever. */
void fkt_builder_backend(struct fkt_dataset_builder *b, const struct fkt_dataset_backend *vt, void *self);
/* Classes and records stay as they were added; without it both are sorted by name (bytewise), records within their
 * class. */
void fkt_builder_keep_order(struct fkt_dataset_builder *b);

/* procedural.c: the ten classes of "demo:"; which is "train" or "test". */
FKT_MUST_USE fkt_status fkt_procedural_open(struct fkt_dataset_builder *b, const char *which);

#endif
