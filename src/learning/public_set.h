/* SPDX-License-Identifier: Apache-2.0 */
/* public_set.h - unlabelled public images that a teacher has labelled, and which of them an epoch takes. */
#ifndef FKT_LEARNING_PUBLIC_SET_H
#define FKT_LEARNING_PUBLIC_SET_H

#include "fedkt/training_source.h"

#include "pipeline/fingerprint.h"

struct fkt_public_set {
    struct fkt_training_set set; /* n 0: none. Labels: the teacher's most probable class */
    size_t each;                 /* of an epoch; at most set.n */
    uint64_t seed;               /* of the choice */
    struct fkt_digest *digests;  /* (n_digests) ascending, of the records that were read */
    size_t n_digests;
    char name[64], sha256[FKT_SHA256_HEX];
    size_t *order; /* (set.n) of pass `pass` over the images; NULL: not made yet */
    uint64_t pass;
};
void fkt_public_set_clear(struct fkt_public_set *p);
/* Reads all records of ds, with the size and classes of `like`. Labels of ds are ignored; the caller fills in logits.
 * name: its path, of which the last component is kept. */
FKT_MUST_USE fkt_status fkt_public_set_read(struct fkt_public_set *p, const struct fkt_dataset *ds, const char *name,
                                            const struct fkt_training_set *like, enum fkt_filter filter,
                                            const struct fkt_training_set_options *options);
/* The images of an epoch after those of `to`, whose logits (n, K) grow with them: with e = each, images e*epoch ..
 * e*(epoch+1) - 1 of a sequence of passes, each a permutation of all of them. */
FKT_MUST_USE fkt_status fkt_public_set_append(struct fkt_public_set *p, uint32_t epoch, struct fkt_training_set *to);
uint32_t fkt_most_probable(const float *logits, uint32_t classes); /* of equal ones the first */
/* Labels from logits: the most probable class. */
void fkt_public_set_label(struct fkt_public_set *p);
/* FKT_E_MISMATCH when one of records idx[0..n-1] (NULL: all) of ds is among the public images; states how many of
 * `what`, and names the first. */
FKT_MUST_USE fkt_status fkt_public_set_refuse(const struct fkt_public_set *p, const struct fkt_dataset *ds,
                                              const size_t *idx, size_t n, const char *what,
                                              const struct fkt_training_set_options *options);

#endif
