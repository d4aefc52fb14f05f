/* SPDX-License-Identifier: Apache-2.0 */
/* fedavg.c - federated averaging: w <- sum of n_i w_i / sum of n_i, each w_i trained from w on the site's records.
 * Source: McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
 * algorithm 1, with all sites in every round.
 *
 * `fedavg` does so after every round, `fedavg_once` after the last alone: its sites train as long without exchanging
 * anything before. Statistics of batch norms are averaged with the parameters, as in classifier/average.c; PFLlib,
 * which the paper's table follows, averages parameters alone and leaves the statistics of the sites where they are. A
 * site is evaluated with the common model, without any tuning. */
#include "learning/baselines/method.h"

#include <string.h>

static fkt_status fedavg_round(struct fkt_rounds *r, uint32_t t)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < r->p->sites; i++) {
        memcpy(r->x, r->common, r->p->state * sizeof *r->x);
        FKT_TRY(fkt_rounds_train(r, i, t, r->x, NULL, 0));
        FKT_TRY(fkt_rounds_end(r, i, t, r->x));
        fkt_rounds_gather(r, i, r->x);
    }
    fkt_rounds_average(r, r->common);
out:
    return st;
}

static fkt_status once_round(struct fkt_rounds *r, uint32_t t)
{
    fkt_status st = fkt_local_round(r, t);
    if (st != FKT_OK) return st;
    for (uint32_t i = 0; i < r->p->sites; i++) fkt_rounds_gather(r, i, fkt_rounds_model(r, i));
    fkt_rounds_average(r, r->common);
    return FKT_OK;
}

fkt_status fkt_fedavg_personal(struct fkt_rounds *r, uint32_t site, float *x)
{
    (void)site;
    memcpy(x, r->common, r->p->state * sizeof *x);
    return FKT_OK;
}

#define MCMAHAN "McMahan et al., AISTATS 2017"
const struct fkt_method fkt_method_fedavg = {
    .name = "fedavg", .source = MCMAHAN, .common = 1, .round = fedavg_round, .personal = fkt_fedavg_personal};
const struct fkt_method fkt_method_fedavg_once = {.name = "fedavg_once",
                                                  .source = MCMAHAN,
                                                  .models = 1,
                                                  .common = 1,
                                                  .round = once_round,
                                                  .personal = fkt_fedavg_personal};
