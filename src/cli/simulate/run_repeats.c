/* SPDX-License-Identifier: Apache-2.0 */
/* run_repeats.c - the same release drawn again and again, to see how much of an accuracy is luck.
 *
 * The exact sums do not depend on who holds what (tests/invariance), so fresh noise is all that changes from run to run
 * and the images are encoded once. Each further draw is a round of its own and pays its full price to a ledger of its
 * own; its heads are judged and it is thrown away. What a simulation writes down is its first draw. */
#include "cli/simulate/run.h"

#include "base/alloc.h"

#include <math.h>

static fkt_status draw(const struct cli_sim *s, const struct cli_outcome *o, const struct cli_arm *a, uint64_t seed,
                       const struct fkt_progress *progress, struct cli_repeat *out)
{
    struct fkt_federate_result round = {0};
    struct fkt_estimate_options raw = {FKT_ESTIMATOR_RAW, 0, 0};
    struct fkt_gaussians measured = {0};
    struct fkt_release again = {0};
    struct fkt_ledger ledger;
    fkt_status st;
    FKT_TRY(fkt_ledger_init(&ledger, a->release.plan.mu * a->release.plan.mu, 0));
    FKT_TRY(cli_round_clear(s, o, a, seed, &ledger, progress, &again, &round));
    FKT_TRY(fkt_release_gaussians(&again, &raw, &measured));
    FKT_TRY(fkt_heads_fit(&out->heads, &measured));
out:
    fkt_gaussians_clear(&measured);
    fkt_federate_clear(&round);
    fkt_release_clear(&again);
    return st;
}

fkt_status cli_repeats_draw(const struct cli_sim *s, struct cli_outcome *o, const struct fkt_progress *progress)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i + 1 < o->n_arms; i++) {
        struct cli_arm *a = &o->arm[i];
        FKT_TRY(fkt_alloc(&a->repeat, s->runs - 1));
        for (a->n_repeats = 0; a->n_repeats < s->runs - 1; a->n_repeats++)
            FKT_TRY(draw(s, o, a, s->insecure_seed + CLI_ARMS_MAX * (a->n_repeats + 1) + i, progress,
                         &a->repeat[a->n_repeats]));
    }
out:
    return st;
}

void cli_repeats_clear(struct cli_arm *a)
{
    for (size_t r = 0; r < a->n_repeats; r++) {
        fkt_heads_clear(&a->repeat[r].heads);
        for (int k = 0; k < FKT_HEAD_KINDS; k++) fkt_score_clear(&a->repeat[r].score[k]);
    }
    fkt_free(a->repeat);
}

static double accuracy(const struct cli_arm *a, size_t run, int head)
{
    return fkt_score_accuracy(run ? &a->repeat[run - 1].score[head] : &a->score[head]);
}

struct cli_spread cli_arm_spread(const struct cli_arm *a, int head)
{
    size_t n = a->n_repeats + 1;
    double sum = 0, squares = 0;
    for (size_t r = 0; r < n; r++) sum += accuracy(a, r, head);
    for (size_t r = 0; r < n; r++) squares += pow(accuracy(a, r, head) - sum / (double)n, 2);
    return (struct cli_spread){sum / (double)n, n > 1 ? sqrt(squares / (double)(n - 1)) : 0};
}

json_t *cli_repeats_json(const struct cli_arm *a)
{
    json_t *j = json_object();
    for (int k = 0; k < FKT_HEAD_KINDS; k++) {
        json_t *runs = json_array();
        for (size_t r = 0; r <= a->n_repeats; r++) json_array_append_new(runs, json_real(accuracy(a, r, k)));
        json_object_set_new(j, fkt_head_name((enum fkt_head_kind)k), runs);
    }
    return j;
}
