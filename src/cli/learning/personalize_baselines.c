/* SPDX-License-Identifier: Apache-2.0 */
/* personalize_baselines.c - `fedkt personalize --baselines`: methods of others on the same split, network and first
 * weights (fedkt/advanced/baselines.h); their options, their run, and their columns in table, JSON and CSV. */
#include "cli/learning/personalize.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int asked(const struct cli_personalized *p, int b) { return (p->asked->baseline_mask >> b & 1) != 0; }

/* ---- options ---- */

static fkt_status parse_methods(struct cli_personalize *a)
{
    char *text = NULL;
    const char **names = NULL;
    size_t n = 0;
    fkt_status st;
    FKT_TRY(cli_split(a->baselines, &text, &names, &n));
    for (size_t i = 0; i < n; i++) {
        const int b = fkt_baseline_parse(names[i]);
        if (b >= 0) a->baseline_mask |= 1U << b;
        else if (!strcmp(names[i], "all")) a->baseline_mask = (1U << FKT_BASELINES) - 1;
        else {
            st = fkt_fail(FKT_E_ARG,
                          "--baselines: '%s' is not local, fedavg_once, fedavg, perfedavg, pfedme, fedamp, fedphp, "
                          "fedfomo, apple, partialfed or all",
                          names[i]);
            goto out;
        }
    }
out:
    fkt_free(names);
    fkt_free(text);
    return st;
}

static fkt_status parse_settings(struct cli_personalize *a)
{
    char *text = NULL;
    const char **names = NULL;
    size_t n = 0;
    fkt_status st;
    FKT_TRY(cli_split(a->baseline_set, &text, &names, &n));
    for (size_t i = 0; i < n; i++) {
        char name[64], *end = NULL;
        const char *equals = strchr(names[i], '=');
        const double value = equals ? strtod(equals + 1, &end) : 0;
        const size_t length = equals ? (size_t)(equals - names[i]) : 0;
        if (!equals || end == equals + 1 || *end || length >= sizeof name) {
            st = fkt_fail(FKT_E_ARG, "--baseline-set: '%s' is not NAME=NUMBER", names[i]);
            goto out;
        }
        snprintf(name, sizeof name, "%.*s", (int)length, names[i]);
        FKT_TRY(fkt_fail_in(fkt_baseline_set(&a->settings, name, value), "--baseline-set"));
    }
out:
    fkt_free(names);
    fkt_free(text);
    return st;
}

fkt_status cli_personalize_baselines_check(struct cli_personalize *a)
{
    fkt_status st = FKT_OK;
    a->baseline_mask = 0;
    if (!a->baselines) {
        if (a->rounds_given || a->baseline_set)
            st = fkt_fail_hint(FKT_E_ARG, "name them, --baselines fedavg,pfedme or --baselines all",
                               "%s needs --baselines", a->rounds_given ? "--rounds" : "--baseline-set");
        return st;
    }
    if (a->sites < 2) return fkt_fail(FKT_E_ARG, "--baselines needs more than one site");
    FKT_TRY(parse_methods(a));
    fkt_baseline_default(&a->settings);
    FKT_TRY(fkt_fail_in(fkt_baseline_set(&a->settings, "batch", (double)a->batch), "--batch"));
    FKT_TRY(fkt_fail_in(fkt_baseline_set(&a->settings, "rounds", (double)a->rounds), "--rounds"));
    if (a->baseline_set) FKT_TRY(parse_settings(a));
    FKT_TRY(fkt_fail_in(fkt_baseline_check(&a->settings), "--baseline-set"));
out:
    return st;
}

/* ---- the run ---- */

fkt_status cli_personalize_baselines_run(struct cli_personalized *p)
{
    const struct cli_personalize *a = p->asked;
    const struct fkt_baselines_spec spec = {.like = p->network,
                                            .data = p->spec.data,
                                            .test = p->spec.test,
                                            .partition = p->spec.partition,
                                            .holdout = p->spec.holdout,
                                            .methods = a->baseline_mask,
                                            .settings = a->settings,
                                            .seed = a->seed,
                                            .threads = p->spec.local.threads,
                                            .dtype = p->spec.local.dtype,
                                            .device = p->spec.local.device,
                                            .progress = p->spec.progress};
    const double start = fkt_now();
    fkt_status st;
    if (!a->baseline_mask) return FKT_OK;
    st = fkt_baselines_run(&p->baselines, &spec);
    p->baseline_seconds = fkt_now() - start;
    return st;
}

/* ---- the report ---- */

void cli_personalize_baselines_print(const struct cli_personalized *p)
{
    const struct fkt_personal *r = &p->baselines;
    if (!p->asked->baseline_mask) return;
    printf("baselines, %u rounds of %u epoch%s at rate %g:\n%-12s %10s %10s %14s   source\n", p->asked->settings.rounds,
           p->asked->settings.epochs, p->asked->settings.epochs == 1 ? "" : "s", p->asked->settings.rate, "", "mean",
           "deviation", "all records");
    for (int b = 0; b < FKT_BASELINES; b++)
        if (asked(p, b))
            printf("%-12s %8.2f %% %8.2f %% %12.2f %%   %s\n", fkt_baseline_name((enum fkt_baseline)b),
                   100 * r->mean[b], 100 * r->spread[b], 100 * r->pooled[b], fkt_baseline_source((enum fkt_baseline)b));
}

static json_t *accuracies(const struct cli_personalized *p, const double *accuracy)
{
    json_t *j = json_object();
    for (int b = 0; b < FKT_BASELINES; b++)
        if (asked(p, b))
            json_object_set_new(j, fkt_baseline_name((enum fkt_baseline)b),
                                isnan(accuracy[b]) ? json_null() : json_real(accuracy[b]));
    return j;
}

json_t *cli_personalize_baselines_json(const struct cli_personalized *p)
{
    const struct fkt_personal *r = &p->baselines;
    json_t *methods = json_array(), *settings = json_object(), *sites = json_array();
    for (int b = 0; b < FKT_BASELINES; b++)
        if (asked(p, b)) json_array_append_new(methods, json_string(fkt_baseline_name((enum fkt_baseline)b)));
    for (size_t i = 0; fkt_baseline_setting(i); i++)
        json_object_set_new(settings, fkt_baseline_setting(i), json_real(fkt_baseline_value(&p->asked->settings, i)));
    for (uint32_t s = 0; s < r->sites; s++) json_array_append_new(sites, accuracies(p, r->site[s].accuracy));
    return json_pack("{s:o s:o s:o s:o s:o s:o s:f}", "methods", methods, "settings", settings, "mean",
                     accuracies(p, r->mean), "spread", accuracies(p, r->spread), "pooled", accuracies(p, r->pooled),
                     "sites", sites, "seconds", p->baseline_seconds);
}

void cli_personalize_baselines_csv(struct fkt_text *t, const struct cli_personalized *p, uint32_t site)
{
    for (int b = 0; b < FKT_BASELINES; b++) {
        if (!asked(p, b)) continue;
        if (site == UINT32_MAX) fkt_text_addf(t, ",baseline_%s", fkt_baseline_name((enum fkt_baseline)b));
        else if (isnan(p->baselines.site[site].accuracy[b])) fkt_text_add(t, ",");
        else fkt_text_addf(t, ",%.6f", p->baselines.site[site].accuracy[b]);
    }
}
