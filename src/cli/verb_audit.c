/* SPDX-License-Identifier: Apache-2.0 */
/* verb_audit.c - `fedkt audit`: release two worst-case neighbours many times and try to tell them apart.
 * Dataset 1 has one record more than dataset 0, at the edge of the ball and with an off-diagonal product: under
 * add-remove the release of its class differs by exactly the sensitivity. Everything goes through the real
 * mechanism. */
#include "cli/common.h"
#include "cli/verbs.h"

#include "base/alloc.h"
#include "privacy/audit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RQ = 65, LENGTH = 2, BLOCK = 6 };
static const int64_t record[BLOCK] = {1, 33, 56, 33 * 33, 33 * 56, 56 * 56}; /* 33^2 + 56^2 = 65^2: on the sphere */

struct asked {
    struct cli_privacy privacy;
    struct cli_run run;
    uint64_t trials;
    double confidence;
};

struct trial {
    const struct fkt_privacy_plan *plan;
};

static fkt_status release_once(void *self, int dataset, int64_t *out)
{
    const struct trial *t = self;
    int64_t exact[BLOCK];
    struct fkt_ledger ledger;
    fkt_status st = fkt_ledger_init(&ledger, t->plan->mu * t->plan->mu, 0);
    if (st != FKT_OK) return st;
    for (int i = 0; i < BLOCK; i++) exact[i] = dataset ? record[i] : 0;
    return fkt_privacy_release(out, exact, 1, LENGTH, t->plan, &ledger, NULL);
}

static fkt_status run(const struct asked *a)
{
    struct fkt_privacy_spec spec;
    struct fkt_privacy_plan plan;
    struct fkt_audit_result result;
    struct trial t = {&plan};
    double eps, shift[BLOCK], sigma[BLOCK];
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_privacy_spec(&a->privacy, eps, &spec));
    if (spec.adjacency != FKT_ADD_REMOVE) return fkt_fail(FKT_E_ARG, "audit attacks add-remove releases only");
    spec.radius = RQ;
    FKT_TRY(fkt_privacy_plan(&plan, &spec));
    for (int i = 0; i < BLOCK; i++) {
        shift[i] = (double)record[i];
        sigma[i] = i == 0        ? plan.sigma_count
                   : i <= LENGTH ? plan.sigma_sum
                   : i == 4      ? plan.sigma_cross
                                 : plan.sigma_moment;
    }
    FKT_TRY(fkt_privacy_audit(&result,
                              &(struct fkt_audit_spec){BLOCK, shift, sigma, a->trials, spec.delta, a->confidence},
                              release_once, &t));
    if (a->run.json)
        FKT_TRY(cli_print_json(
            json_pack("{s:f s:f s:f s:f s:f s:f s:I s:f s:b}", "epsilon", spec.epsilon, "delta", spec.delta, "mu",
                      plan.mu, "epsilon_low", result.epsilon_low, "epsilon_gdp_low", result.epsilon_gdp_low, "mu_low",
                      result.mu_low, "trials", (json_int_t)a->trials, "confidence", a->confidence, "broken",
                      !(result.epsilon_low <= spec.epsilon && result.epsilon_gdp_low <= spec.epsilon))));
    else
        printf("claimed epsilon %g at delta %g\nattack: epsilon >= %.4g with no assumption, >= %.4g if the noise is "
               "Gaussian (%.1f %% confidence)\n%s\n",
               spec.epsilon, spec.delta, result.epsilon_low, result.epsilon_gdp_low, 100 * a->confidence,
               result.epsilon_low <= spec.epsilon && result.epsilon_gdp_low <= spec.epsilon
                   ? "the claim stands against this attack; a bound below the claim proves nothing more"
                   : "BROKEN");
    if (!(result.epsilon_low <= spec.epsilon && result.epsilon_gdp_low <= spec.epsilon))
        st = fkt_fail_hint(FKT_E_NUMERIC, "run it again with more trials; if it stays, report it as SECURITY.md says",
                           "the attack beats the claim: lower bound %.4g for epsilon %g",
                           fmax(result.epsilon_low, result.epsilon_gdp_low), spec.epsilon);
out:
    return st;
}

int cli_audit(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.trials = 200000, .confidence = 0.999};
    const struct cli_option table[] = {
        CLI_PRIVACY_ROWS(a.privacy, 1),
        CLI_OPT_HEAD("attack"),
        CLI_OPT_WHOLE("trials", &a.trials, "N", 0, "releases of each dataset (default: 200000)"),
        CLI_OPT_REAL("confidence", &a.confidence, "C", 0, "of the lower bounds (default: 0.999)"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
