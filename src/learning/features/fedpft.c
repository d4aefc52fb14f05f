/* SPDX-License-Identifier: Apache-2.0 */
/* fedpft.c - FedPFT: a mixture of Gaussians of each class at each site; the server draws features from all of them.
 * Source: Beitollahi et al., "Parametric Feature Transfer: One-shot Federated Learning with Foundation Models", 2024,
 * algorithm 1. NOT private: a component of few records is nearly a copy of them.
 *
 * A site fits one mixture for each of its classes by EM and sends it with the number of records; the server draws as
 * many features from each mixture as it has records, and trains a linear head on all of them.
 *
 * Where we differ: a class of few records has fewer components, one for every five records, since a component of one
 * record is that record. Numbers are sent as 4-byte floats (the paper: 2 bytes). Features are the coordinates of a
 * task's part, not those of a foundation model. */
#include "learning/features/features.h"

enum { RECORDS_EACH = 5, BYTES = 4 };

void fkt_fedpft_default(struct fkt_fedpft_settings *s)
{
    *s = (struct fkt_fedpft_settings){
        .kind = FKT_COVARIANCE_DIAGONAL, .components = 10, .iterations = 100, .tolerance = 1e-3};
}

static fkt_status transfer(const void *settings, double *draws, const double *x, size_t n,
                           const struct fkt_features *in, struct fkt_rng *rng, uint64_t *bytes)
{
    const struct fkt_fedpft_settings *s = settings;
    const size_t most = n / RECORDS_EACH;
    struct fkt_mixture g = {0};
    fkt_status st;
    FKT_TRY(fkt_mixture_new(&g, s->kind, most < 1 ? 1 : most < s->components ? (uint32_t)most : s->components, in->m));
    FKT_TRY(fkt_mixture_start(&g, x, n, rng));
    FKT_TRY(fkt_mixture_em(&g, x, n, s->iterations, s->tolerance, NULL, NULL));
    FKT_TRY(fkt_mixture_sample(&g, n, rng, draws));
    *bytes += BYTES * (1 + fkt_mixture_numbers(&g));
out:
    fkt_mixture_clear(&g);
    return st;
}

fkt_status fkt_fedpft(struct fkt_features *out, const struct fkt_features *in, const struct fkt_fedpft_settings *s,
                      uint64_t *bytes)
{
    return fkt_features_transfer(out, in, transfer, s, s->seed, bytes);
}
