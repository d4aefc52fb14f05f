/* SPDX-License-Identifier: Apache-2.0 */
/* privacy.c - `fedkt privacy`: plans the noise of a release, added in one place or as noise shares by the sites of a
 * federation. Noise shares are planned for the integers that a task's sites add up (radius FKT_RQ_DEFAULT, as in a
 * task) and printed in units of the ball, so they equal those of such a task. */
#include "cli/core/common.h"
#include "cli/core/verbs.h"
#include "task/federation.h"

#include <math.h>
#include <stdio.h>

struct asked {
    struct cli_privacy privacy;
    struct cli_run run;
    uint64_t dim, records, sites;
    const char *dropped, *corrupt;
    int noise;
    double clip;
};

/* The settings of noise shares; sites 0: noise is added in one place. */
struct crew {
    uint32_t sites, dropped, corrupt, counted;
    double rho,
        surplus; /* zCDP of the release; excess variance when no site is lost, as a fraction of the required one */
};

static int noise_parse(const char *s) /* opposite default: this verb plans one place first */
{
    int place = fkt_noise_parse(s);
    return place < 0 ? place : place == FKT_NOISE_PLACE_DISTRIBUTED;
}

static fkt_status plan_shares(const struct asked *a, const struct fkt_privacy_spec *spec, struct fkt_privacy_plan *plan,
                              struct crew *c)
{
    struct fkt_privacy_spec integers = *spec;
    struct fkt_share_plan shares;
    double unit = a->clip / FKT_RQ_DEFAULT;
    fkt_status st = FKT_OK;
    if (a->sites < 3 || a->sites > FKT_SA_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "--noise distributed needs --sites between 3 and %u", FKT_SA_SITES_MAX);
    if (!(a->clip > 0)) return fkt_fail(FKT_E_ARG, "--clip must be positive");
    c->sites = (uint32_t)a->sites;
    FKT_TRY(cli_share_of("corrupt", a->corrupt ? a->corrupt : "0.1", c->sites, &c->corrupt));
    FKT_TRY(cli_dropped_of(a->dropped, c->sites, c->corrupt, &c->dropped));
    FKT_TRY(fkt_federation_check_crew(c->sites, c->dropped, c->corrupt, FKT_NOISE_PLACE_DISTRIBUTED));
    c->counted = c->sites - c->dropped - c->corrupt;
    integers.part[0].radius = FKT_RQ_DEFAULT;
    FKT_TRY(fkt_privacy_plan_shares(&shares, &integers, c->counted, c->sites));
    c->rho = shares.rho;
    c->surplus = (double)c->sites / c->counted - 1;
    *plan = shares.plan;
    plan->sigma[0].sum *= unit;
    plan->sigma[0].moment *= unit * unit;
out:
    return st;
}

static void print(const struct fkt_privacy_plan *p, const struct crew *c, const struct asked *a)
{
    double R = a->clip, d = (double)a->dim;
    char why[FKT_PROMISE_WORDS];
    printf("epsilon %.6g, delta %.3g, adjacency %s, mechanism %s\n", p->spec.epsilon, p->spec.delta,
           fkt_adjacency_name(p->spec.adjacency), fkt_mechanism_name(p->spec.mechanism));
    if (fkt_privacy_promise(p->spec.epsilon, p->spec.delta, 0, why) == FKT_PROMISE_WEAK)
        printf("WEAK PROMISE: %s; nothing made of it is called private\n", why);
    printf("protects: %s\n\n", fkt_adjacency_protects(p->spec.adjacency));
    if (c->sites) {
        printf("  noise shares   %u of %u are needed: %u sites may be lost, %u may collude\n", c->counted, c->sites,
               c->dropped, c->corrupt);
    }
    printf("  mu (GDP)       %.6g\n", p->mu);
    if (p->sigma_count > 0) printf("  sigma count    %.6g records\n", p->sigma_count);
    else printf("  sigma count    0 (counts are public under this adjacency)\n");
    printf("  sigma sum      %.6g   (%.4g R)\n", p->sigma[0].sum, p->sigma[0].sum / R);
    printf("  sigma moment   %.6g   (%.4g R^2 on the diagonal, /sqrt 2 off it)\n", p->sigma[0].moment,
           p->sigma[0].moment / (R * R));
    if (c->sites) {
        printf("  when no site is lost, the total has %.3g %% more variance than this\n", 100 * c->surplus);
        printf("  epsilon spent  %.6g\n", p->epsilon_spent);
    } else if (p->epsilon_spent < 0.999 * p->spec.epsilon)
        printf("  this noise spends only epsilon %.4g: the recipe wastes the rest\n", p->epsilon_spent);
    if (a->records) {
        double n = (double)a->records;
        printf("\nwith %llu records in a class:\n", (unsigned long long)a->records);
        printf("  noise in each coordinate of the mean       %.3g R\n", p->sigma[0].sum / n / R);
        printf("  spectral edge of the noise in a covariance %.3g R^2   (directions with less variance are below the "
               "noise)\n",
               sqrt(2 * d) * p->sigma[0].moment / n / (R * R));
    }
}

static fkt_status run(const struct asked *a)
{
    struct fkt_privacy_spec spec;
    struct fkt_privacy_plan plan;
    struct crew crew = {0};
    double eps;
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_privacy_spec(&a->privacy, eps, &spec));
    if (a->dim < 1 || a->dim > 65535) return fkt_fail(FKT_E_ARG, "--dim must be between 1 and 65535");
    FKT_TRY(cli_accept_promise("promise", spec.epsilon, spec.delta, a->privacy.accept_weak));
    spec.part[0].radius = a->clip;
    if (a->noise) FKT_TRY(plan_shares(a, &spec, &plan, &crew));
    else if (a->sites || a->dropped || a->corrupt)
        return fkt_fail(FKT_E_ARG, "--sites, --dropped and --corrupt are for noise shares: give --noise distributed");
    else FKT_TRY(fkt_privacy_plan(&plan, &spec));
    if (a->run.json) {
        json_t *j =
            json_pack("{s:f s:f s:f s:f s:f s:f s:f s:s s:s s:s s:i s:f s:[fff] s:s}", "mu", plan.mu, "sigma_count",
                      plan.sigma_count, "sigma_sum", plan.sigma[0].sum, "sigma_moment", plan.sigma[0].moment, "epsilon",
                      spec.epsilon, "delta", spec.delta, "epsilon_spent", plan.epsilon_spent, "adjacency",
                      fkt_adjacency_name(spec.adjacency), "mechanism", fkt_mechanism_name(spec.mechanism), "protects",
                      fkt_adjacency_protects(spec.adjacency), "dim", (int)a->dim, "clip", a->clip, "budget_split",
                      spec.split_count, spec.part[0].split_sum, spec.part[0].split_moment, "noise",
                      crew.sites ? "distributed" : "central");
        if (j && a->records)
            json_object_set_new(j, "with_records",
                                json_pack("{s:I s:f s:f}", "records", (json_int_t)a->records, "mean_noise",
                                          plan.sigma[0].sum / (double)a->records, "covariance_edge",
                                          sqrt(2 * (double)a->dim) * plan.sigma[0].moment / (double)a->records));
        if (j && fkt_privacy_promise(spec.epsilon, spec.delta, 0, NULL) == FKT_PROMISE_WEAK)
            json_object_set_new(j, "promise", json_string("weak"));
        if (j && crew.sites)
            json_object_set_new(j, "federation",
                                json_pack("{s:I s:I s:I s:I s:f s:f}", "sites", (json_int_t)crew.sites, "dropped",
                                          (json_int_t)crew.dropped, "corrupt", (json_int_t)crew.corrupt, "counted",
                                          (json_int_t)crew.counted, "rho", crew.rho, "surplus", crew.surplus));
        FKT_TRY(cli_print_json(j));
    } else {
        print(&plan, &crew, a);
    }
out:
    return st;
}

int cli_privacy(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_PRIVACY_ROWS(a.privacy, 1),
        CLI_WEAK_ROW(a.privacy.accept_weak),
        CLI_OPT_HEAD("the query"),
        CLI_OPT_WHOLE("dim", &a.dim, "d", 1, "length of the record vector"),
        CLI_OPT_REAL("clip", &a.clip, "R", 1, "radius of the ball that holds every record"),
        CLI_OPT_POSITIVE("records", &a.records, "n", 0,
                         "records in a class, to print the noise's effect on it; delta is compared with 1e-3 only, "
                         "while 'task new' also compares it with 1/(records of all sites)"),
        CLI_OPT_HEAD("who adds it"),
        CLI_OPT_CHOICE("noise", &a.noise, noise_parse, "central or distributed",
                       "one place after the sum, or every site its noise share before masking"),
        CLI_OPT_POSITIVE("sites", &a.sites, "N", 0, "sites of the federation, for noise shares"),
        CLI_OPT_TEXT("dropped", &a.dropped, "F|N", 0,
                     "fraction (0.1; rounded up) or number (1) of sites that may be lost (default: 0.1 and at least 2, "
                     "but 1 of five or six sites and 0 of fewer)"),
        CLI_OPT_TEXT(
            "corrupt", &a.corrupt, "F|N", 0,
            "fraction (0.1; rounded up) or number (1) of sites that may collude with the server (default: 0.1)"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
