/* SPDX-License-Identifier: Apache-2.0 */
/* features.h - methods of others that make a classifier from features of a public network, to compare ours with.
 *
 *   images --fkt_features_encode--> features --fkt_fedpft, fkt_dpfedpft, fkt_merf--> drawn features
 *                                                        --fkt_softmax_fit--> linear head --fkt_softmax_accuracy-->
 *
 * Features are the record vectors of one part of a task (docs/method.md 1.2): |x| <= radius, a public number. All
 * randomness, noise included, comes from a known seed: these are measurements, and NOT private. Letters: n records, m
 * numbers of a record, K classes. */
#ifndef FKT_LEARNING_FEATURES_FEATURES_H
#define FKT_LEARNING_FEATURES_FEATURES_H

#include "fedkt/pipeline.h"

#include "base/rng.h"
#include "base/status.h"
#include "learning/features/mixture.h"

struct fkt_features {
    size_t n;
    uint32_t m, classes, sites; /* sites 0: nobody owns them */
    double radius;
    double *x;       /* (n, m) */
    uint32_t *label; /* (n) */
    uint32_t *owner; /* (n) the site; NULL: nobody owns them */
};
void fkt_features_clear(struct fkt_features *f);
/* Room for n records, zeros. */
FKT_MUST_USE fkt_status fkt_features_new(struct fkt_features *f, size_t n, uint32_t m, uint32_t classes);
/* FKT_E_ARG for a label or an owner out of range, FKT_E_NUMERIC for a number that is not finite or a record outside the
 * radius: the promises below rest on it. */
FKT_MUST_USE fkt_status fkt_features_check(const struct fkt_features *f);
/* Records of one class at one site (site UINT32_MAX: at all), copied in order into rows (f->n fit); how many. */
size_t fkt_features_take(const struct fkt_features *f, uint32_t site, uint32_t class_, double *rows);
/* Record vectors of records idx (n) of ds; the pipeline has one part. Kept encodings are used. */
FKT_MUST_USE fkt_status fkt_features_encode(struct fkt_features *out, const struct fkt_pipeline *w,
                                            const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                            const struct fkt_pipeline_options *options);

/* Every class of every site by itself: `transfer` makes n draws of its n >= 1 records x, and adds what the site sends.
 * out: all draws. bytes: most that a site sends. */
typedef fkt_status fkt_transfer(const void *settings, double *draws, const double *x, size_t n,
                                const struct fkt_features *in, struct fkt_rng *rng, uint64_t *bytes);
FKT_MUST_USE fkt_status fkt_features_transfer(struct fkt_features *out, const struct fkt_features *in,
                                              fkt_transfer *transfer, const void *settings, uint64_t seed,
                                              uint64_t *bytes);

/* ---- fedpft.c ---- */

struct fkt_fedpft_settings {
    enum fkt_covariance kind;
    uint32_t components, iterations;
    double tolerance; /* of the mean log-likelihood */
    uint64_t seed;
};
void fkt_fedpft_default(struct fkt_fedpft_settings *s); /* diagonal, 10 components */
/* As many drawn features of each class as the sites have records of it. bytes: most that a site sends. */
FKT_MUST_USE fkt_status fkt_fedpft(struct fkt_features *out, const struct fkt_features *in,
                                   const struct fkt_fedpft_settings *s, uint64_t *bytes);

/* ---- dpfedpft.c ---- */

/* Noise of a mean, and of the diagonal of a covariance, of n records in a ball; off the diagonal it is smaller by
 * sqrt 2. mu INFINITY: none. */
void fkt_dpfedpft_sigmas(double radius, size_t n, double mu, double *sigma_mean, double *sigma_cov);
/* The noised Gaussian of x (n, m), n >= 1, as a mixture of one full component, of which the caller frees. */
FKT_MUST_USE fkt_status fkt_dpfedpft_release(struct fkt_mixture *g, const double *x, size_t n, uint32_t m,
                                             double radius, double mu, struct fkt_rng *rng);
FKT_MUST_USE fkt_status fkt_dpfedpft(struct fkt_features *out, const struct fkt_features *in, double mu, uint64_t seed,
                                     uint64_t *bytes);

/* ---- fourier.c: random Fourier features and their noised sums ---- */

struct fkt_fourier {
    uint32_t m, frequencies;
    double *w; /* (frequencies, m) */
};
/* Frequencies from N(0, 1 / scale^2): those of the kernel exp(-|x - y|^2 / (2 scale^2)). */
FKT_MUST_USE fkt_status fkt_fourier_new(struct fkt_fourier *f, uint32_t m, uint32_t frequencies, double scale,
                                        struct fkt_rng *rng);
void fkt_fourier_clear(struct fkt_fourier *f);
/* x (n, m) -> phi (n, 2 frequencies) = (cos(w x), sin(w x)) / sqrt(frequencies); |phi| = 1 */
FKT_MUST_USE fkt_status fkt_fourier_apply(const struct fkt_fourier *f, const double *x, size_t n, double *phi);

struct fkt_embedding {
    uint32_t classes, length; /* length: 2 frequencies */
    double *sum;              /* (K, length) */
    double *count;            /* (K) */
};
FKT_MUST_USE fkt_status fkt_embedding_new(struct fkt_embedding *e, uint32_t classes, uint32_t length);
void fkt_embedding_clear(struct fkt_embedding *e);
/* Adds the records of a site (UINT32_MAX: of all). */
FKT_MUST_USE fkt_status fkt_embedding_add(struct fkt_embedding *e, const struct fkt_fourier *f,
                                          const struct fkt_features *in, uint32_t site);
/* mu^2 = 1 / s_count^2 + 1 / s_sum^2 */
void fkt_embedding_sigmas(double mu, double *sigma_count, double *sigma_sum);
void fkt_embedding_noise(struct fkt_embedding *e, double mu, struct fkt_rng *rng);

/* ---- merf.c ---- */

struct fkt_merf_settings {
    uint32_t frequencies, code, hidden; /* code: numbers of the generator's random input */
    double scale;                       /* of the kernel, in units of the radius */
    uint32_t steps, batch;              /* batch: drawn features of each class in a step */
    double rate;
    int federated; /* 1: every site adds the whole noise to its own sums; 0: it is added once */
    uint64_t seed;
    const struct fkt_progress *progress; /* counts steps; may be NULL */
};
void fkt_merf_default(struct fkt_merf_settings *s);
/* Drawn features, as many of each class as its noised count says. mu INFINITY: no noise. loss (may be NULL): that of
 * the first and the last step. */
FKT_MUST_USE fkt_status fkt_merf(struct fkt_features *out, const struct fkt_features *in,
                                 const struct fkt_merf_settings *s, double mu, uint64_t *bytes, double loss[2]);

/* ---- generator.c: code and class -> feature inside the ball, one hidden layer ---- */

struct fkt_generator;
FKT_MUST_USE fkt_status fkt_generator_new(struct fkt_generator **out, const struct fkt_merf_settings *s, uint32_t m,
                                          uint32_t classes, double radius, struct fkt_rng *rng);
void fkt_generator_free(struct fkt_generator *g);
/* Features of `batch` random codes for every class, class by class: *x (K batch, m), valid until the next call. */
void fkt_generator_draw(struct fkt_generator *g, struct fkt_rng *rng, const double **x);
/* One step of Adam on the loss sum over k of |target_k - mean phi(drawn of class k)|^2, target (K, 2 frequencies). */
FKT_MUST_USE fkt_status fkt_generator_step(struct fkt_generator *g, const struct fkt_fourier *f, const double *target,
                                           struct fkt_rng *rng, double *loss);
/* For tests: the loss of the codes (K batch, code), its gradient by the parameters, and these. */
FKT_MUST_USE fkt_status fkt_generator_loss(struct fkt_generator *g, const struct fkt_fourier *f, const double *target,
                                           const double *codes, double *loss);
float *fkt_generator_parameters(struct fkt_generator *g, size_t *n);
const float *fkt_generator_gradient(const struct fkt_generator *g);

/* ---- softmax.c: the linear head ---- */

struct fkt_softmax_settings {
    uint32_t epochs, batch;
    double rate, decay; /* decay: of the L2 penalty's gradient */
    uint64_t seed;
};
struct fkt_softmax {
    uint32_t m, classes;
    double *centre, *spread; /* (m) of the training features: inputs are (x - centre) / spread */
    float *w;                /* (K, m), then K offsets */
};
void fkt_softmax_default(struct fkt_softmax_settings *s);
FKT_MUST_USE fkt_status fkt_softmax_fit(struct fkt_softmax *h, const struct fkt_features *in,
                                        const struct fkt_softmax_settings *s);
FKT_MUST_USE fkt_status fkt_softmax_accuracy(const struct fkt_softmax *h, const struct fkt_features *test,
                                             double *accuracy);
void fkt_softmax_clear(struct fkt_softmax *h);

#endif
