/* SPDX-License-Identifier: Apache-2.0 */
/* fedphp.c - FedPHP: a site keeps an inherited private model, the moving average of its trained models, which teaches
 * the common model when it arrives.
 * Source: Li et al., "FedPHP: Federated personalization with inherited private models", ECML PKDD 2021, and the
 * authors' program for what the text leaves open. In round t at a site, with h_i its inherited model:
 *
 *   w_i <- w trained on (1 - share) CE + share T^2 KL(softmax(h_i / T) || softmax(w_i / T))
 *   h_i <- m h_i + (1 - m) w_i,   m = mu t / T_rounds: the later, the more history; in round 0 h_i becomes w_i
 *
 * and the server averages the w_i by records. The personal model is h_i. Of the paper's forms of transfer this is
 * distillation. Where we differ: the divergence has both sides at temperature T and the factor T^2, as everywhere else
 * here (nn/loss.h), where the authors soften the teacher alone; h_i teaches from the second round on, since before it
 * is the random start. PFLlib's version is another one: it mixes the common model into the personal one and compares
 * features (MMD). Statistics of batch norms go with the parameters. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"

#include <string.h>

double fkt_fedphp_momentum(double mu, uint32_t round, uint32_t rounds) { return mu * round / rounds; }

static fkt_status fedphp_round(struct fkt_rounds *r, uint32_t t)
{
    const struct fkt_baseline_settings *s = r->s;
    const struct fkt_problem *p = r->p;
    const double m = fkt_fedphp_momentum(s->fedphp_mu, t, s->rounds);
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < p->sites; i++) {
        float *h = fkt_rounds_model(r, i);
        if (t > 0 && s->fedphp_share > 0) FKT_TRY(p->teach(p->self, h, s->fedphp_share, s->fedphp_temperature));
        memcpy(r->x, r->common, p->state * sizeof *r->x);
        FKT_TRY(fkt_rounds_train(r, i, t, r->x, NULL, 0));
        FKT_TRY(p->teach(p->self, NULL, 0, 1));
        FKT_TRY(fkt_rounds_end(r, i, t, r->x));
        fkt_vector_mix(h, r->x, p->state, 1 - m);
        fkt_rounds_gather(r, i, r->x);
    }
    fkt_rounds_average(r, r->common);
out:
    return st;
}

const struct fkt_method fkt_method_fedphp = {.name = "fedphp",
                                             .source = "Li et al., ECML PKDD 2021",
                                             .models = 1,
                                             .common = 1,
                                             .round = fedphp_round,
                                             .personal = fkt_local_personal};
