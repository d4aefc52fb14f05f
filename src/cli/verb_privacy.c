/* SPDX-License-Identifier: Apache-2.0 */
/* verb_privacy.c - `fedkt privacy`: the noise of a release before there is one, in numbers and in words. */
#include "cli/common.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdio.h>

struct asked {
    struct cli_privacy privacy;
    struct cli_run run;
    uint64_t dim, records;
    double clip;
};

static void tell(const struct fkt_privacy_plan *p, const struct asked *a)
{
    double R = a->clip, d = (double)a->dim;
    printf("epsilon %.6g, delta %.3g, adjacency %s, mechanism %s\n", p->spec.epsilon, p->spec.delta,
           fkt_adjacency_name(p->spec.adjacency), fkt_mechanism_name(p->spec.mechanism));
    printf("protects: %s\n\n", fkt_adjacency_protects(p->spec.adjacency));
    printf("  mu (GDP)       %.6g\n", p->mu);
    if (p->sigma_count > 0) printf("  sigma count    %.6g records\n", p->sigma_count);
    else printf("  sigma count    0 (counts are public under this adjacency)\n");
    printf("  sigma sum      %.6g   (%.4g R)\n", p->sigma_sum, p->sigma_sum / R);
    printf("  sigma moment   %.6g   (%.4g R^2 on the diagonal, /sqrt 2 off it)\n", p->sigma_moment,
           p->sigma_moment / (R * R));
    if (p->epsilon_spent < 0.999 * p->spec.epsilon)
        printf("  this noise really spends epsilon %.4g: the recipe wastes the rest\n", p->epsilon_spent);
    if (a->records) {
        double n = (double)a->records;
        printf("\nwith %llu records in a class:\n", (unsigned long long)a->records);
        printf("  noise in each coordinate of the mean       %.3g R\n", p->sigma_sum / n / R);
        printf("  spectral edge of the noise in a covariance %.3g R^2   (directions with less variance drown)\n",
               sqrt(2 * d) * p->sigma_moment / n / (R * R));
    }
}

static fkt_status run(const struct asked *a)
{
    struct fkt_privacy_spec spec;
    struct fkt_privacy_plan plan;
    double eps;
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_privacy_spec(&a->privacy, eps, &spec));
    if (a->dim < 1 || a->dim > 65535) return fkt_fail(FKT_E_ARG, "--dim must be between 1 and 65535");
    spec.radius = a->clip;
    FKT_TRY(fkt_privacy_plan(&plan, &spec));
    if (a->run.json) {
        json_t *j = json_pack(
            "{s:f s:f s:f s:f s:f s:f s:f s:s s:s s:s s:i s:f s:[fff]}", "mu", plan.mu, "sigma_count", plan.sigma_count,
            "sigma_sum", plan.sigma_sum, "sigma_moment", plan.sigma_moment, "epsilon", spec.epsilon, "delta",
            spec.delta, "epsilon_spent", plan.epsilon_spent, "adjacency", fkt_adjacency_name(spec.adjacency),
            "mechanism", fkt_mechanism_name(spec.mechanism), "protects", fkt_adjacency_protects(spec.adjacency), "dim",
            (int)a->dim, "clip", a->clip, "shares", spec.shares[0], spec.shares[1], spec.shares[2]);
        if (j && a->records)
            json_object_set_new(j, "with_records",
                                json_pack("{s:I s:f s:f}", "records", (json_int_t)a->records, "mean_noise",
                                          plan.sigma_sum / (double)a->records, "covariance_edge",
                                          sqrt(2 * (double)a->dim) * plan.sigma_moment / (double)a->records));
        FKT_TRY(cli_print_json(j));
    } else {
        tell(&plan, a);
    }
out:
    return st;
}

int cli_privacy(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_PRIVACY_ROWS(a.privacy, 1),
        CLI_OPT_HEAD("the query"),
        CLI_OPT_WHOLE("dim", &a.dim, "d", 1, "length of the record vector"),
        CLI_OPT_REAL("clip", &a.clip, "R", 1, "radius of the ball that holds every record"),
        CLI_OPT_WHOLE("records", &a.records, "n", 0, "records in a class, to see what the noise does to it"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
