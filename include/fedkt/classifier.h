/* SPDX-License-Identifier: Apache-2.0 */
/* classifier.h - closed-form heads from class Gaussians alone: nearest mean, LDA, QDA, RDA; noise-aware; no images
 * needed. Letters: K classes, m length of w, n vectors. */
#ifndef FEDKT_CLASSIFIER_H
#define FEDKT_CLASSIFIER_H

#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_head_kind { FKT_HEAD_NEAREST_MEAN = 0, FKT_HEAD_LDA = 1, FKT_HEAD_QDA = 2, FKT_HEAD_RDA = 3 };
#define FKT_HEAD_KINDS 4
FKT_API int fkt_head_kinds(void);                            /* 0 to this less one */
FKT_API int fkt_head_is_quadratic(enum fkt_head_kind kind);  /* 1: it needs a covariance of each class */
FKT_API enum fkt_head_kind fkt_head_default(int pooled);     /* of moments that are pooled over classes, or not */
FKT_API const char *fkt_head_name(enum fkt_head_kind kind);  /* in files: "nearest_mean", "lda", "qda", "rda" */
FKT_API int fkt_head_parse(const char *s);                   /* such a name; -1: unknown */
FKT_API const char *fkt_head_title(enum fkt_head_kind kind); /* for people: "nearest mean", "LDA", "QDA", "RDA" */

/* Class statistics as plain arrays (synth makes them; round carries them over). */
struct fkt_class_statistics {
    uint32_t classes, length;
    const double *count; /* (K) */
    const double *mean;  /* (K, m) */
    const double *cov;   /* (K, m, m) symmetric, without bias, NOT shrunk against the noise; need not be positive */
    const double
        *noise_edge; /* (K) spectral edge of the noise in cov: sqrt(2m) times its standard deviation on the diagonal */
    const double *mean_noise; /* (K) standard deviation of the noise in each coordinate of mean */
    uint32_t offset;          /* of these coordinates in the record vector */
    int pooled;               /* 1: cov is (m, m), one within-class covariance for all; noise_edge is (1) */
};

enum { FKT_HEAD_PARTS_MAX = 4 };
struct fkt_head;
FKT_API FKT_MUST_USE fkt_status fkt_head_fit(struct fkt_head **out, enum fkt_head_kind kind,
                                             const struct fkt_class_statistics *s);
/* For record vectors of several parts whose moments across parts are unknown: the covariance is block-diagonal, so
 * log-likelihoods add, and the prior counts once. Each part is shrunk and floored against its own noise. Parts must not
 * overlap, and lie in the order of their offsets. w of such a head: their coordinates side by side. */
FKT_API FKT_MUST_USE fkt_status fkt_head_fit_parts(struct fkt_head **out, enum fkt_head_kind kind,
                                                   const struct fkt_class_statistics *s, uint32_t parts);
FKT_API void fkt_head_free(struct fkt_head *h);
FKT_API FKT_MUST_USE fkt_status fkt_head_predict(const struct fkt_head *h, const double *w /* (n, m) */, size_t n,
                                                 uint32_t *label /* (n) */);
/* p (n, K): softmax of scores / temperature. At 1 it is the head's posterior, with equal priors; nearest mean counts
 * with a unit covariance. temperature: finite, > 0. Each row sums to 1 and depends on its own w alone. */
FKT_API FKT_MUST_USE fkt_status fkt_head_posterior(const struct fkt_head *h, const double *w /* (n, m) */, size_t n,
                                                   double temperature, double *p);
FKT_API FKT_MUST_USE fkt_status fkt_head_save(const struct fkt_head *h, const char *path, int force); /* safetensors */
FKT_API FKT_MUST_USE fkt_status fkt_head_load(struct fkt_head **out, const char *path);
/* Where a head comes from; saved with it, so that it is not used with another task and its privacy is not forgotten.
 * Copies; text is "" before it is set. */
FKT_API FKT_MUST_USE fkt_status fkt_head_set_origin(struct fkt_head *h, const char *task_sha256,
                                                    const char *release_sha256,
                                                    const char *not_private /* why it is not; NULL: it is */);
/* The names of its K classes, in the order of its scores; saved with it. Copies. */
FKT_API FKT_MUST_USE fkt_status fkt_head_set_classes(struct fkt_head *h, const char *const *names);
FKT_API const char *fkt_head_class(const struct fkt_head *h, uint32_t k); /* borrowed; "" when not said */
FKT_API const char *fkt_head_task(const struct fkt_head *h);
FKT_API enum fkt_head_kind fkt_head_kind_of(const struct fkt_head *h);
FKT_API uint32_t fkt_head_classes(const struct fkt_head *h);
FKT_API uint32_t fkt_head_length(const struct fkt_head *h); /* m: coordinates of all its parts */
/* The parts of the record vector that it takes, at most FKT_HEAD_PARTS_MAX. */
FKT_API uint32_t fkt_head_parts(const struct fkt_head *h);
FKT_API uint32_t fkt_head_part_offset(const struct fkt_head *h, uint32_t part); /* in the record vector */
FKT_API uint32_t fkt_head_part_length(const struct fkt_head *h, uint32_t part); /* 0: there is no such part */

/* Counting hits: confusion is (K, K), rows = truth. */
struct fkt_score {
    uint32_t classes;
    uint64_t *confusion;
};
FKT_API FKT_MUST_USE fkt_status fkt_score_init(struct fkt_score *s, uint32_t classes);
FKT_API void fkt_score_clear(struct fkt_score *s);
FKT_API FKT_MUST_USE fkt_status fkt_score_add(struct fkt_score *s, const uint32_t *truth, const uint32_t *guess,
                                              size_t n);
FKT_API uint64_t fkt_score_total(const struct fkt_score *s);
FKT_API double fkt_score_accuracy(const struct fkt_score *s); /* NaN when empty */
FKT_API double fkt_score_class_accuracy(const struct fkt_score *s, uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
