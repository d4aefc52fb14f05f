/* SPDX-License-Identifier: Apache-2.0 */
/* average.c - one round of federated averaging: x = sum(w_i * x_i) / sum(w_i) for every number of a model.
 * Source: McMahan et al., AISTATS 2017, algorithm 1, with w_i the records that site i trained on.
 *
 * Batch norms. Their scales and shifts are parameters and averaged like any other. Their running means and variances
 * are averaged with the same weights, number by number, as in implementations that average a whole state dictionary.
 * That is not the variance of the sites' combined activations, which would add the spread of the means; but those
 * activations come from different networks and no network has seen their mixture, so neither is right. This is a known
 * weakness of the method, and the reference keeps it.
 *
 * Sums are doubles, added in the order of the calls, so that a run repeats to the bit. A float has 24 bits and a weight
 * below 2^29 leaves the product exact; while the weights together stay below 2^29, the mean of one model, or of equal
 * ones, is that model to the bit: w*x is exact, so is its sum W*x, and W*x/W rounds to exactly x.
 *
 * Cost: 8 bytes for each number of a model, whatever the number of models. */
#include "classifier/average.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct fkt_model_average {
    struct fkt_model *like;
    double *sum; /* every tensor of like, one after the other */
    uint64_t weight;
};

fkt_status fkt_model_average_new(struct fkt_model_average **out, const struct fkt_model *like)
{
    struct fkt_model_average *a = NULL;
    size_t count = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&a, 1));
    FKT_TRY(fkt_model_copy(&a->like, like));
    for (size_t i = 0; i < fkt_model_tensors(like); i++) count += fkt_model_tensor(like, i).count;
    FKT_TRY(fkt_alloc(&a->sum, count));
    *out = a;
    a = NULL;
out:
    fkt_model_average_free(a);
    return st;
}

void fkt_model_average_free(struct fkt_model_average *a)
{
    if (!a) return;
    fkt_model_free(a->like);
    fkt_free(a->sum);
    fkt_free(a);
}

static int same_shape(const struct fkt_model_tensor *a, const struct fkt_model_tensor *b)
{
    return !strcmp(a->name, b->name) && a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) &&
           a->count == b->count;
}

/* Before anything is added: a failure leaves the sums as they were. */
static fkt_status check_tensors(const struct fkt_model_average *a, const struct fkt_model *m)
{
    if (fkt_model_tensors(m) != fkt_model_tensors(a->like))
        return fkt_fail(FKT_E_MISMATCH, "models of different architectures cannot be averaged");
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        struct fkt_model_tensor want = fkt_model_tensor(a->like, i), t = fkt_model_tensor(m, i);
        if (!same_shape(&want, &t))
            return fkt_fail(FKT_E_MISMATCH, "models whose '%s' differ in shape cannot be averaged", want.name);
        for (size_t k = 0; k < t.count; k++)
            if (!isfinite(t.data[k]))
                return fkt_fail(FKT_E_NUMERIC, "'%s' of a model to be averaged holds a NaN or an infinity", t.name);
    }
    return FKT_OK;
}

fkt_status fkt_model_average_add(struct fkt_model_average *a, const struct fkt_model *m, uint64_t weight)
{
    double *sum = a->sum;
    fkt_status st = check_tensors(a, m);
    if (st != FKT_OK) return st;
    if (weight > UINT64_MAX - a->weight) return fkt_fail(FKT_E_ARG, "the weights of an average are too large");
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        struct fkt_model_tensor t = fkt_model_tensor(m, i);
        for (size_t k = 0; k < t.count; k++) sum[k] += (double)weight * t.data[k];
        sum += t.count;
    }
    a->weight += weight;
    return FKT_OK;
}

fkt_status fkt_model_average_model(const struct fkt_model_average *a, struct fkt_model **out)
{
    const double *sum = a->sum;
    fkt_status st;
    *out = NULL;
    if (!a->weight) return fkt_fail(FKT_E_STATE, "there is nothing to average: no model with a weight above 0");
    st = fkt_model_copy(out, a->like);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < fkt_model_tensors(*out); i++) {
        struct fkt_model_tensor t = fkt_model_tensor(*out, i);
        for (size_t k = 0; k < t.count; k++) t.data[k] = (float)(sum[k] / (double)a->weight);
        sum += t.count;
    }
    return FKT_OK;
}
