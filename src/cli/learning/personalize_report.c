/* SPDX-License-Identifier: Apache-2.0 */
/* personalize_report.c - the personalised protocol's result: a table, JSON, and a CSV with a line per site.
 * Accuracies and record counts come from real records: no release's promise covers them. */
#include "cli/learning/personalize.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "task/task.h"

#include <math.h>
#include <stdio.h>

static int asked(const struct cli_personalized *p, int way) { return (p->asked->mask >> way & 1) != 0; }

/* ---- for people ---- */

static void print_row(const struct cli_personalized *p, const char *name, const double *accuracy)
{
    printf("%s", name);
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++) {
        if (!asked(p, w)) continue;
        if (isnan(accuracy[w])) printf(" %13s  ", "-");
        else printf(" %13.2f %%", 100 * accuracy[w]);
    }
    putchar('\n');
}

/* which: 0: sites without test records, 1: sites that could not train. */
static int belongs(const struct fkt_personal_site *s, int which) { return which ? s->untrained : !s->test; }

static void print_sites(const struct cli_personalized *p, int which, const char *one, const char *many)
{
    uint32_t n = 0, told = 0;
    for (uint32_t s = 0; s < p->result.sites; s++) n += (uint32_t)belongs(&p->result.site[s], which);
    if (!n) return;
    printf("%s", n == 1 ? "site" : "sites");
    for (uint32_t s = 0; s < p->result.sites; s++)
        if (belongs(&p->result.site[s], which)) printf("%s %u", told++ ? "," : "", s);
    printf(": %s\n", n == 1 ? one : many);
}

static void print_training(const struct cli_training *t)
{
    size_t n;
    const struct fkt_epoch *e = t->trainer ? fkt_trainer_history(t->trainer, &n) : NULL;
    if (!e) return;
    printf("the network was trained first: %s, %zu images%s, %u epoch%s, loss %.4f, training accuracy %.2f %%\n",
           fkt_architecture_name((enum fkt_architecture)t->asked->architecture),
           fkt_training_source_set(t->images.source)->n, t->asked->fresh ? " an epoch" : "", e[n - 1].epoch,
           e[n - 1].epoch == 1 ? "" : "s", e[n - 1].loss, 100 * e[n - 1].accuracy);
    if (t->asked->out) printf("saved it as %s\n", t->asked->out);
}

void cli_personalize_print(const struct cli_personalized *p)
{
    const struct fkt_personal *r = &p->result;
    printf("%4s %8s %8s %8s", "site", "train", "test", "classes");
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++)
        if (asked(p, w)) printf(" %15s", fkt_personal_name((enum fkt_personal_way)w));
    putchar('\n');
    for (uint32_t s = 0; s < r->sites; s++) {
        const struct fkt_personal_site *site = &r->site[s];
        char name[96];
        snprintf(name, sizeof name, "%4u %8llu %8llu %8u", s, (unsigned long long)site->train,
                 (unsigned long long)site->test, site->classes);
        print_row(p, name, site->accuracy);
    }
    if (r->sites > 1) {
        print_row(p, "mean of the sites              ", r->mean);
        print_row(p, "standard deviation over sites  ", r->spread);
        print_row(p, "all test records together      ", r->pooled);
    }
    print_sites(p, 0, "no test records; left out of the means", "no test records; left out of the means");
    if (p->asked->mask & ~(1U << FKT_PERSONAL_GLOBAL | 1U << FKT_PERSONAL_TUNED))
        print_sites(p, 1, "too few records to train on; its local network is untrained",
                    "too few records to train on; their local networks are untrained");
    cli_personalize_baselines_print(p);
    print_training(&p->training);
    printf("the network: ");
    cli_origin_print(fkt_model_origin(p->network), 1);
    printf("the table is NOT private: it comes from real records, and no release covers it\n");
    if (p->tuned)
        printf("saved the tuned model as %s\nNOT PRIVATE: its last layer was trained on your records; keep it at the "
               "site\n",
               p->asked->out);
    else if (p->asked->out) printf("the table is also in %s/sites.csv, which is private\n", p->asked->out);
}

/* ---- for machines ---- */

static json_t *number(double x) { return isnan(x) ? json_null() : json_real(x); }

static json_t *accuracies(const struct cli_personalized *p, const double *accuracy)
{
    json_t *j = json_object();
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++)
        if (asked(p, w)) json_object_set_new(j, fkt_personal_name((enum fkt_personal_way)w), number(accuracy[w]));
    return j;
}

static json_t *sites_json(const struct cli_personalized *p)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < p->result.sites; s++) {
        const struct fkt_personal_site *site = &p->result.site[s];
        json_array_append_new(list, json_pack("{s:i s:I s:I s:i s:b s:o}", "site", (int)s, "train",
                                              (json_int_t)site->train, "test", (json_int_t)site->test, "classes",
                                              (int)site->classes, "enough_to_train", !site->untrained, "accuracy",
                                              accuracies(p, site->accuracy)));
    }
    return list;
}

static json_t *ways_json(const struct cli_personalized *p)
{
    json_t *list = json_array();
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++)
        if (asked(p, w)) json_array_append_new(list, json_string(fkt_personal_name((enum fkt_personal_way)w)));
    return list;
}

static json_t *left_out(const struct cli_personalized *p)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < p->result.sites; s++)
        if (belongs(&p->result.site[s], 0)) json_array_append_new(list, json_integer(s));
    return list;
}

static json_t *recipe_json(const struct fkt_recipe *r)
{
    return json_pack("{s:i s:i s:f s:f s:f s:s}", "epochs", (int)r->epochs, "batch", (int)r->batch, "rate", r->rate,
                     "momentum", r->momentum, "decay", r->decay, "schedule", fkt_schedule_name(r->schedule));
}

static json_t *model_json(const struct fkt_model *m)
{
    json_t *j = cli_model_json(m);
    if (j) cli_origin_json(j, fkt_model_origin(m));
    return j;
}

/* The network's training in this run. */
static json_t *training_json(const struct cli_training *t)
{
    size_t n;
    const struct fkt_epoch *e = fkt_trainer_history(t->trainer, &n);
    json_t *j =
        json_pack("{s:I s:b s:i s:f s:f s:f}", "images", (json_int_t)fkt_training_source_set(t->images.source)->n,
                  "fresh", t->asked->fresh, "epochs", (int)e[n - 1].epoch, "loss", e[n - 1].loss, "accuracy",
                  e[n - 1].accuracy, "seconds", t->seconds);
    if (j && t->asked->out) json_object_set_new(j, "out", cli_path_json(t->asked->out));
    return j;
}

json_t *cli_personalize_json(const struct cli_personalized *p)
{
    const struct cli_personalize *a = p->asked;
    const struct fkt_personal *r = &p->result;
    json_t *j = json_pack(
        "{s:s s:s s:o s:s s:I s:i s:I s:s s:o s:{s:o s:o} s:o s:o s:o s:o s:o s:b s:I s:f}", "schema",
        "fedkt.personalize/1", "version", fkt_version(), "model", model_json(p->network), "partition", a->partition,
        "seed", (json_int_t)a->seed, "classes", (int)p->data.n_classes, "records", (json_int_t)p->data.n,
        "evaluated_on", a->test.path ? "test set" : "own records", "ways", ways_json(p), "recipe", "local",
        recipe_json(&p->spec.local), "tune", recipe_json(&p->spec.tune), "mean", accuracies(p, r->mean), "spread",
        accuracies(p, r->spread), "pooled", accuracies(p, r->pooled), "left_out", left_out(p), "sites", sites_json(p),
        "private", 0, "skipped", (json_int_t)p->skipped.count, "seconds", p->seconds);
    if (j && a->test.path) json_object_set_new(j, "test_records", json_integer((json_int_t)p->test.n));
    else if (j) json_object_set_new(j, "holdout", json_real(a->holdout));
    if (j) json_object_set_new(j, "device", cli_device_json(p->spec.local.device));
    if (j && a->out) json_object_set_new(j, "out", cli_path_json(a->out));
    if (j && a->baseline_mask) json_object_set_new(j, "baselines", cli_personalize_baselines_json(p));
    if (j && p->training.trainer) json_object_set_new(j, "trained", training_json(&p->training));
    return j;
}

static void csv(struct fkt_text *t, const struct cli_personalized *p)
{
    fkt_text_add(t, "site,train,test,classes");
    for (int w = 0; w < FKT_PERSONAL_WAYS; w++)
        if (asked(p, w)) fkt_text_addf(t, ",%s", fkt_personal_name((enum fkt_personal_way)w));
    cli_personalize_baselines_csv(t, p, UINT32_MAX);
    fkt_text_add(t, "\n");
    for (uint32_t s = 0; s < p->result.sites; s++) {
        const struct fkt_personal_site *site = &p->result.site[s];
        fkt_text_addf(t, "%u,%llu,%llu,%u", s, (unsigned long long)site->train, (unsigned long long)site->test,
                      site->classes);
        for (int w = 0; w < FKT_PERSONAL_WAYS; w++) {
            if (!asked(p, w)) continue;
            if (isnan(site->accuracy[w])) fkt_text_add(t, ",");
            else fkt_text_addf(t, ",%.6f", site->accuracy[w]);
        }
        cli_personalize_baselines_csv(t, p, s);
        fkt_text_add(t, "\n");
    }
}

fkt_status cli_personalize_folder(const struct cli_personalized *p)
{
    struct fkt_folder f = {0};
    struct fkt_text t;
    char *path = NULL, *results = NULL;
    fkt_status st;
    fkt_text_init(&t);
    csv(&t, p);
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_folder_begin(&f, p->asked->out, p->asked->run.force));
    FKT_TRY(fkt_path_join(&path, f.tmp, "sites.csv"));
    FKT_TRY(fkt_file_write(path, t.s, t.len, FKT_FILE_PRIVATE));
    FKT_TRY(fkt_path_join(&results, f.tmp, "results.json"));
    FKT_TRY(fkt_json_save(cli_personalize_json(p), results, FKT_FILE_PRIVATE));
    FKT_TRY(fkt_folder_commit(&f));
out:
    fkt_folder_fail(&f, st);
    fkt_text_clear(&t);
    fkt_free(path);
    fkt_free(results);
    fkt_folder_clear(&f);
    return st;
}
