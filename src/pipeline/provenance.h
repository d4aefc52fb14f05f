/* SPDX-License-Identifier: Apache-2.0 */
/* provenance.h - what a model may claim about its training images. */
#ifndef FKT_PIPELINE_PROVENANCE_H
#define FKT_PIPELINE_PROVENANCE_H

#include "fedkt/train.h"

#include "base/status.h"

/* images.json of a folder that fkt_generate makes: which images its certificate was written for, and how they were
 * guided (NULL, or NONE: they were not). */
struct fkt_guided_facts;
FKT_MUST_USE fkt_status fkt_origin_note(const char *folder, const struct fkt_release *r, const char *certificate,
                                        uint64_t images, const char *fingerprint,
                                        const struct fkt_guided_facts *guided);

/* Of `per_class` images drawn for each class from r. */
void fkt_origin_of_release(struct fkt_model_origin *out, const struct fkt_release *r, size_t per_class);
/* *o has also seen n public images of the set `name`, which do not change what it may claim. */
void fkt_origin_add_public(struct fkt_model_origin *o, const char *name, size_t n, const char *sha256);
/* Of records idx[0..n-1] (NULL: all) of ds. `place`: the folder, or a file of the folder, that may hold a certificate;
 * NULL: there is none. Decodes every image once more where there is a promise to carry along. */
FKT_MUST_USE fkt_status fkt_origin_of_set(struct fkt_model_origin *out, const struct fkt_dataset *ds, const size_t *idx,
                                          size_t n, const char *place, const struct fkt_training_set_options *options);

#endif
