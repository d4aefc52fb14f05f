/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - the experiment `audit`: the canary lower bound on epsilon of the mechanism that makes a release, with
 * noise in one place and in shares of sites (the paper has none).
 *
 * The work is that of audit/privacy_audit.c. Its noise comes from the operating system, as that of a release does,
 * so these cells do not repeat to the bit. */
#include "experiment/list.h"

#include "audit/privacy_audit.h"
#include "base/alloc.h"

#include <math.h>

enum { TRIALS = 5000, QUICK_TRIALS = 1000 };

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const struct fkt_experiment_options *o = fkt_lab_options(lab);
    const struct fkt_audit_options options = {.privacy = {.epsilon = c->x[0].x,
                                                          .delta = FKT_EXPERIMENT_DELTA,
                                                          .split_count = FKT_BUDGET_SPLIT_COUNT,
                                                          .parts = 1,
                                                          .part = {{1, FKT_BUDGET_SPLIT_SUM, FKT_BUDGET_SPLIT_MOMENT}}},
                                              .one_place = 1,
                                              .place = (enum fkt_noise_place)c->arm->noise,
                                              .trials = o->quick ? QUICK_TRIALS : TRIALS,
                                              .confidence = 0.999,
                                              .progress = o->progress};
    struct fkt_audit_outcome *found = NULL;
    double low = 0, gaussian = 0, share = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&found, 1));
    FKT_TRY(fkt_mechanism_audit(found, &options));
    for (size_t i = 0; i < found->n; i++) {
        low = fmax(low, found->cases[i].bound.epsilon_low);
        gaussian = fmax(gaussian, found->cases[i].bound.epsilon_gdp_low);
        share = fmax(share, found->cases[i].mu / found->cases[i].mu_claimed);
    }
    FKT_TRY(fkt_point_add(
        points, &c->x[0], NULL,
        json_pack("{s:f s:f s:f s:f}", "epsilon_low", low, "epsilon_gdp_low", gaussian, "mu_share", share, "broken",
                  fkt_audit_broken(found) ? 1.0 : 0.0),
        json_pack("{s:I s:s?}", "trials", (json_int_t)options.trials, "broken", fkt_audit_broken(found))));
out:
    fkt_free(found);
    return st;
}

static const struct fkt_arm arms[] = {
    {.name = "central", .title = "noise in one place", .noise = FKT_NOISE_PLACE_CENTRAL},
    {.name = "distributed", .title = "noise shares of sites", .noise = FKT_NOISE_PLACE_DISTRIBUTED}};
static const char *const panels[] = {"release"};
static const struct fkt_position full[] = {{1, 0}, {3, 0}, {10, 0}}, quick[] = {{1, 0}};
static const struct fkt_metric metrics[] = {{"epsilon_low", "epsilon at least", 1, 2, 0},
                                            {"epsilon_gdp_low", "epsilon at least, Gaussian noise", 1, 2, 0},
                                            {"mu_share", "largest mu measured / claimed", 1, 3, 0},
                                            {"broken", "claims contradicted", 1, 0, 0}};

const struct fkt_experiment fkt_experiment_audit = {.name = "audit",
                                                    .title = "Lower bounds on epsilon by attack",
                                                    .paper = "none: the paper has no audit",
                                                    .about =
                                                        "canary lower bound of the release, central and distributed",
                                                    .time = "quick: 20 s of processor time",
                                                    .x_title = "epsilon claimed",
                                                    .y_title = "epsilon at least",
                                                    .x = full,
                                                    .n_x = FKT_COUNT(full),
                                                    .x_quick = quick,
                                                    .n_quick = FKT_COUNT(quick),
                                                    .apart = 1,
                                                    .arm = arms,
                                                    .n_arms = FKT_COUNT(arms),
                                                    .panel = panels,
                                                    .n_panels = FKT_COUNT(panels),
                                                    .metric = metrics,
                                                    .n_metrics = FKT_COUNT(metrics),
                                                    .measures_time = 1,
                                                    .run = run};
