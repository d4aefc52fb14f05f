/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.h - a fingerprint of labelled images, and its parts, for callers that have the pixels. */
#ifndef FKT_PIPELINE_FINGERPRINT_H
#define FKT_PIPELINE_FINGERPRINT_H

#include "fedkt/pipeline.h"

#include "crypto/hash.h"

struct fkt_digest {
    uint8_t bytes[FKT_HASH_BYTES];
};
struct fkt_labelled {
    struct fkt_digest image;
    uint32_t label;
};
void fkt_fingerprint_pixels(struct fkt_digest *out, const uint8_t *rgb, uint32_t width, uint32_t height);
struct fkt_facts; /* images/backend.h */
/* The digest of an image of a set: the decoder's where the file has 16-bit samples, else that of its pixels. */
void fkt_fingerprint_image(struct fkt_digest *out, const uint8_t *rgb, uint32_t width, uint32_t height,
                           const struct fkt_facts *facts);
/* Digests of records idx[0..n-1] (NULL: 0..n-1) of ds, and bad[i] 1 for those that cannot be read. Gives both, also on
 * failure. */
FKT_MUST_USE fkt_status fkt_records_digests(const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                            const struct fkt_pipeline_options *options, struct fkt_digest **digests,
                                            uint8_t **bad);
/* Of images without labels; sorts the list. */
void fkt_unlabelled_end(struct fkt_digest *list, size_t n, char out[FKT_SHA256_HEX]);
/* names[label]; overwrites the list. */
void fkt_labelled_end(struct fkt_labelled *list, size_t n, const char *const *names, char out[FKT_SHA256_HEX]);
/* Of records idx[0..n-1] (NULL: all) of ds, whose classes are called `names`. */
FKT_MUST_USE fkt_status fkt_labelled_fingerprint(const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                                 const char *const *names, const struct fkt_pipeline_options *options,
                                                 char out[FKT_SHA256_HEX]);

#endif
