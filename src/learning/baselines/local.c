/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - each site trains alone: what a federation has to beat. All sites start from the same weights and take as
 * many steps as in the other methods: rounds x epochs passes over their records. */
#include "learning/baselines/method.h"

#include <string.h>

fkt_status fkt_local_round(struct fkt_rounds *r, uint32_t t)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < r->p->sites; i++) {
        float *w = fkt_rounds_model(r, i);
        FKT_TRY(fkt_rounds_train(r, i, t, w, NULL, 0));
        FKT_TRY(fkt_rounds_end(r, i, t, w));
    }
out:
    return st;
}

fkt_status fkt_local_personal(struct fkt_rounds *r, uint32_t site, float *x)
{
    memcpy(x, fkt_rounds_model(r, site), r->p->state * sizeof *x);
    return FKT_OK;
}

const struct fkt_method fkt_method_local = {
    .name = "local", .source = "", .models = 1, .round = fkt_local_round, .personal = fkt_local_personal};
