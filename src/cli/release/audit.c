/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - `fedkt audit`: attacks the production path of a release and tests its privacy claim. The work is in
 * audit/privacy_audit.c; this file has the options, and prints the findings as text or JSON. */
#include "cli/core/common.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "audit/privacy_audit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct asked {
    struct cli_privacy privacy;
    struct cli_run run;
    uint64_t trials;
    double confidence;
    int adjacency_given, noise, noise_given, layout, layout_given;
};

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *checks_json(const struct fkt_noise_check *c)
{
    json_t *j = json_object();
    for (int k = 0; k < FKT_NOISE_CHECKS; k++)
        json_object_set_new(j, fkt_noise_check_name((enum fkt_noise_kind)k),
                            json_pack("{s:o s:f}", "value", number(c[k].value), "limit", c[k].limit));
    return j;
}

static json_t *case_json(const struct fkt_audit_case *c)
{
    json_t *j =
        json_pack("{s:s s:s s:s s:s s:[fff] s:f s:o s:o s:o s:f s:f s:f s:s?}", "adjacency",
                  fkt_adjacency_name(c->adjacency), "noise", fkt_noise_name(c->place), "canary",
                  fkt_audit_canary_name(c->canary), "layout", fkt_audit_layout_name(c->layout), "budget_split",
                  c->split[0], c->split[1], c->split[2], "mu_claimed", c->mu_claimed, "mu", number(c->mu), "mu_from",
                  number(c->mu_from), "mu_to", number(c->mu_to), "epsilon_low", c->bound.epsilon_low, "epsilon_gdp_low",
                  c->bound.epsilon_gdp_low, "mu_low", c->bound.mu_low, "broken", c->broken[0] ? c->broken : NULL);
    json_object_set_new(j, "released", checks_json(c->noise));
    if (c->place == FKT_NOISE_PLACE_DISTRIBUTED) json_object_set_new(j, "sites", checks_json(c->sites));
    return j;
}

/* The strongest attack of all cases. */
static struct fkt_audit_result strongest(const struct fkt_audit_outcome *o)
{
    struct fkt_audit_result r = {0};
    for (size_t i = 0; i < o->n; i++) {
        r.epsilon_low = fmax(r.epsilon_low, o->cases[i].bound.epsilon_low);
        r.epsilon_gdp_low = fmax(r.epsilon_gdp_low, o->cases[i].bound.epsilon_gdp_low);
        r.mu_low = fmax(r.mu_low, o->cases[i].bound.mu_low);
    }
    return r;
}

static fkt_status print_json(const struct asked *a, const struct fkt_privacy_spec *p, const struct fkt_audit_outcome *o)
{
    const struct fkt_audit_result r = strongest(o);
    json_t *cases = json_array();
    for (size_t i = 0; i < o->n; i++) json_array_append_new(cases, case_json(&o->cases[i]));
    return cli_print_json(json_pack(
        "{s:f s:f s:f s:f s:f s:f s:I s:f s:b s:o s:{s:I s:s?} s:{s:f s:f s:s?} s:{s:s?}}", "epsilon", p->epsilon,
        "delta", p->delta, "mu", fkt_privacy_mu(p->epsilon, p->delta), "epsilon_low", r.epsilon_low, "epsilon_gdp_low",
        r.epsilon_gdp_low, "mu_low", r.mu_low, "trials", (json_int_t)a->trials, "confidence", a->confidence, "broken",
        fkt_audit_broken(o) != NULL, "cases", cases, "quantiser", "vectors", (json_int_t)o->quantised, "broken",
        o->quantiser[0] ? o->quantiser : NULL, "ledger", "claimed", o->ledger_claimed, "found", o->ledger_found,
        "broken", o->ledger[0] ? o->ledger : NULL, "processes", "broken", o->processes[0] ? o->processes : NULL));
}

static void line(const char *what, const char *broken) { printf("%-12s %s\n", what, broken[0] ? broken : "in order"); }

static void print(const struct asked *a, const struct fkt_privacy_spec *p, const struct fkt_audit_outcome *o)
{
    const struct fkt_audit_result r = strongest(o);
    printf("claimed epsilon %g at delta %g: mu %.4g at most\n\n", p->epsilon, p->delta,
           fkt_privacy_mu(p->epsilon, p->delta));
    printf("%-12s %-12s %-6s %-7s %16s   %s\n", "adjacency", "noise", "canary", "layout", "mu measured",
           "noise of every number");
    for (size_t i = 0; i < o->n; i++) {
        const struct fkt_audit_case *c = &o->cases[i];
        printf("%-12s %-12s %-6s %-7s %7.4f .. %.4f   %s\n", fkt_adjacency_name(c->adjacency), fkt_noise_name(c->place),
               fkt_audit_canary_name(c->canary), fkt_audit_layout_name(c->layout), c->mu_from, c->mu_to,
               c->broken[0] ? c->broken : "as claimed");
    }
    putchar('\n');
    line("quantiser", o->quantiser);
    line("processes", o->processes);
    line("ledger", o->ledger);
    printf("\nattack: epsilon >= %.4g with no assumption, >= %.4g if the noise is Gaussian\n%s\n", r.epsilon_low,
           r.epsilon_gdp_low,
           fkt_audit_broken(o) ? "BROKEN" : "this attack does not contradict the claim; it does not prove it either");
    printf("a correct program fails one such audit in %.3g\n", 1 / (1 - a->confidence));
}

/* A child process draws once and sends the result here: a generator with a fixed seed would draw the same in both. */
static fkt_status elsewhere(struct fkt_audit_world *w, struct fkt_audit_draw *out)
{
    uint8_t *to = (uint8_t *)out;
    size_t have = 0;
    int ends[2], code = 1;
    pid_t child;
    if (pipe(ends) != 0) return fkt_fail(FKT_E_IO, "cannot make a pipe");
    memset(out, 0, sizeof *out);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        if (fkt_audit_world_draw(w, 0, out) == FKT_OK && write(ends[1], out, sizeof *out) == (ssize_t)sizeof *out)
            code = 0;
        _exit(code);
    }
    (void)close(ends[1]);
    for (ssize_t n = 1; child > 0 && have < sizeof *out && n > 0; have += (size_t)(n > 0 ? n : 0))
        n = read(ends[0], to + have, sizeof *out - have);
    (void)close(ends[0]);
    if (child > 0) (void)waitpid(child, &code, 0);
    if (child < 0 || have < sizeof *out) return fkt_fail(FKT_E_IO, "cannot draw in a second process");
    return FKT_OK;
}

static fkt_status run(const struct asked *a)
{
    struct fkt_audit_outcome *o = NULL;
    struct cli_progress progress;
    struct fkt_audit_options options = {.one_adjacency = a->adjacency_given,
                                        .one_place = a->noise_given,
                                        .place = (enum fkt_noise_place)a->noise,
                                        .one_layout = a->layout_given,
                                        .layout = (enum fkt_audit_layout)a->layout,
                                        .trials = a->trials,
                                        .confidence = a->confidence,
                                        .progress = &progress.hook,
                                        .elsewhere = elsewhere};
    const char *broken;
    double eps;
    size_t n;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_privacy_spec(&a->privacy, eps, &options.privacy));
    FKT_TRY(fkt_alloc(&o, 1));
    FKT_TRY(fkt_mechanism_audit(o, &options));
    cli_progress_end(&progress);
    if (a->run.json) FKT_TRY(print_json(a, &options.privacy, o));
    else print(a, &options.privacy, o);
    broken = fkt_audit_broken(o);
    if (broken)
        st = fkt_fail_hint(FKT_E_NUMERIC,
                           "run it again with more trials; if it fails again, report it as SECURITY.md describes", "%s",
                           broken);
out:
    cli_progress_end(&progress);
    fkt_free(o);
    return st;
}

int cli_audit(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.trials = 5000, .confidence = 0.999};
    const struct cli_option table[] = {
        CLI_OPT_HEAD("privacy"),
        CLI_OPT_TEXT("epsilon", &a.privacy.epsilon, "E", 1, "the promise that is attacked"),
        CLI_OPT_REAL("delta", &a.privacy.delta, "D", 1, "its delta"),
        CLI_OPT_CHOICE_GIVEN("adjacency", &a.privacy.adjacency, fkt_adjacency_parse, cli_adjacencies(),
                             "attack only this one (default: all)", &a.adjacency_given),
        CLI_OPT_CHOICE("mechanism", &a.privacy.mechanism, fkt_mechanism_parse, "joint or paper",
                       "how noise is calibrated"),
        CLI_OPT_TEXT("budget-split", &a.privacy.split, "N,S,M", 0,
                     "budget of count, sum, second moment (default: " CLI_BUDGET_SPLIT ")"),
        CLI_OPT_CHOICE_GIVEN("noise", &a.noise, fkt_noise_parse, "distributed or central",
                             "attack only this one (default: both)", &a.noise_given),
        CLI_OPT_CHOICE_GIVEN("layout", &a.layout, fkt_audit_layout_parse, "one, parts, pooled or joined",
                             "attack only records of one part, of two, with pooled second moments, or joined (default: "
                             "all)",
                             &a.layout_given),
        CLI_OPT_HEAD("attack"),
        CLI_OPT_WHOLE("trials", &a.trials, "N", 0,
                      "releases of each of two datasets, for each of 24 cases (default: 5000)"),
        CLI_OPT_REAL("confidence", &a.confidence, "C", 0,
                     "probability that a correct program passes all checks (default: 0.999)"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
