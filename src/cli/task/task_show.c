/* SPDX-License-Identifier: Apache-2.0 */
/* task_show.c - `fedkt task show`: explains a task to a site before it joins. All printed text comes from a file of
 * another party, so control bytes are shown as '?'. */
#include "fedkt/keys.h"
#include "task/privacy_words.h"
#include "cli/task/service.h"
#include "cli/task/task.h"

#include "base/text.h"
#include "task/task.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 100, INDENT = 12, CLASSES_SHOWN = 100, SITES_SHOWN = 100 };

struct asked {
    const char *task;
    struct cli_run run;
};

/* A row: the heading, and the text wrapped beside it. */
static void row(const char *head, const char *text)
{
    size_t col = INDENT;
    printf("%-*s", INDENT, head);
    while (*text) {
        size_t n = strcspn(text, " ");
        if (col > INDENT && col + 1 + n > WIDTH) {
            printf("\n%*s", INDENT, "");
            col = INDENT;
        } else if (col > INDENT) {
            putchar(' ');
            col++;
        }
        cli_show(text, n);
        col += n;
        text += n;
        while (*text == ' ') text++;
    }
    putchar('\n');
}

#define ROW(head, ...)                                                                                                 \
    do {                                                                                                               \
        char text_[1024];                                                                                              \
        snprintf(text_, sizeof text_, __VA_ARGS__);                                                                    \
        row(head, text_);                                                                                              \
    } while (0)

static fkt_status show_classes(const struct fkt_task *t)
{
    struct fkt_text list;
    fkt_status st;
    fkt_text_init(&list);
    fkt_text_addf(&list, "%u:", t->n_classes);
    for (uint32_t k = 0; k < t->n_classes && k < CLASSES_SHOWN; k++)
        fkt_text_addf(&list, " %s%s", t->classes[k], k + 1 < t->n_classes ? "," : "");
    if (t->n_classes > CLASSES_SHOWN) fkt_text_addf(&list, " and %u more", t->n_classes - CLASSES_SHOWN);
    st = fkt_text_status(&list);
    if (st == FKT_OK) row("classes", list.s);
    fkt_text_clear(&list);
    return st;
}

static fkt_status show_privacy(const struct fkt_task *t)
{
    const struct fkt_privacy_spec *p = &t->privacy;
    struct fkt_text words;
    char why[FKT_PROMISE_WORDS];
    fkt_status st = FKT_OK;
    ROW("privacy", "epsilon %g, delta %g, adjacency %s (%s)", p->epsilon, p->delta, fkt_adjacency_name(p->adjacency),
        fkt_adjacency_protects(p->adjacency));
    if (fkt_task_promise(t, why) == FKT_PROMISE_WEAK)
        ROW("WEAK PROMISE", "%s; nothing made of it is called private", why);
    if (!t->federation.sites) return FKT_OK;
    fkt_text_init(&words);
    st = fkt_privacy_words(&words, t);
    for (char *line = words.s, *end; st == FKT_OK && line; line = end) { /* one sentence per line */
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        row(t->service.seeded ? "NOT PRIVATE" : "", line);
    }
    fkt_text_clear(&words);
    return st;
}

static void show_sites(const struct fkt_task *t)
{
    const struct fkt_federation *f = &t->federation;
    ROW("noise", "%s: %s", fkt_noise_name(f->noise),
        f->noise == FKT_NOISE_PLACE_DISTRIBUTED ? "every site adds its noise share before its numbers leave it"
                                                : "the server sees the exact sum of all sites, and adds the noise");
    ROW("sites", "%u; a round tolerates %u lost and %u colluding with the server; at most %llu records of a class each",
        f->sites, f->dropped, f->corrupt, (unsigned long long)f->records);
    for (uint32_t i = 0; i < f->sites && i < SITES_SHOWN; i++) {
        char print[FKT_FINGERPRINT];
        fkt_fingerprint(print, f->roster + (size_t)i * FKT_SA_KEY);
        printf("%*s%4u  %s  ", INDENT, "", i, print);
        if (t->service.names) cli_show(t->service.names[i], strlen(t->service.names[i]));
        putchar('\n');
    }
    if (f->sites > SITES_SHOWN) printf("%*s... and %u more\n", INDENT, "", f->sites - SITES_SHOWN);
}

static void show_cohort(const struct fkt_division *d)
{
    char hex[2 * sizeof d->seed + 1];
    if (d->index == FKT_DIVISION_WHOLE)
        ROW("cohorts", "the sum of %u cohorts, %u sites together; sites take part in the tasks of cohorts", d->number,
            d->sites);
    else
        ROW("cohort",
            "%u of %u, numbered from 0, with %u sites together: their releases are added up, and every key "
            "below belongs here by the seed",
            d->index, d->number, d->sites);
    fkt_hex(hex, d->seed, sizeof d->seed);
    ROW("", "seed %s: it must be public randomness of a time after the roster was fixed", hex);
    fkt_hex(hex, d->roster_sha256, sizeof d->roster_sha256);
    ROW("", "roster of all %s", hex);
}

static void show_server(const struct fkt_service *s, uint64_t now)
{
    char when[FKT_UTC];
    ROW("server", "%s", s->address);
    ROW("pin", "%s", s->pin[0] ? s->pin : "not known yet; the server prints it on its first start");
    ROW("deadlines", "waits %u s for further sites once enough have arrived, %u s in each phase; tries %u round%s",
        s->gather_seconds, s->phase_seconds, s->rounds, s->rounds == 1 ? "" : "s");
    if (s->expires) fkt_utc(when, s->expires);
    else snprintf(when, sizeof when, "never");
    ROW("expires", "%s%s", when, s->expires && s->expires < now ? " - EXPIRED" : "");
}

static void show_signature(const struct fkt_task *t)
{
    char key[2 * FKT_SA_KEY + 1], print[FKT_FINGERPRINT];
    if (!t->signature.there) {
        row("signature", "NOT SIGNED");
        return;
    }
    fkt_hex(key, t->signature.key, sizeof t->signature.key);
    fkt_fingerprint(print, t->signature.key);
    ROW("operator", "%s", key);
    ROW("", "fingerprint %s: compare it by telephone", print);
    row("signature",
        fkt_task_verify(t, NULL) == FKT_OK ? "right" : "INVALID: the task was changed after it was signed");
}

static void show_parts(const struct fkt_task *t)
{
    for (uint32_t p = 0; p < t->parts; p++)
        ROW(fkt_part_name(t->part[p].kind), "%s, %u numbers an image; calibrated on %s", t->part[p].identity,
            t->part[p].coordinates.length, t->part[p].calibration_source);
    if (t->joined) row("moments", "joined: codec and guide count as one vector, with the products across them");
    if (t->layout.pooled)
        row("moments", "pooled: one second moment for all classes together, for heads and not for images");
}

static fkt_status show(const struct fkt_task *t, uint64_t now)
{
    fkt_status st;
    ROW("task", "%s", t->name);
    ROW("hash", "%s", t->sha256);
    FKT_TRY(show_classes(t));
    ROW("images", "%u x %u pixels, scaled by %s%s%s", t->size, t->size, fkt_filter_name(t->filter),
        t->fit == FKT_FIT_CROP ? "" : ", made square by ", t->fit == FKT_FIT_CROP ? "" : fkt_fit_name(t->fit));
    show_parts(t);
    FKT_TRY(show_privacy(t));
    if (t->division.number) show_cohort(&t->division);
    if (t->federation.sites) show_sites(t);
    if (t->service.address[0]) show_server(&t->service, now);
    show_signature(t);
out:
    return st;
}

static json_t *facts(const struct fkt_task *t, uint64_t now)
{
    char key[2 * FKT_SA_KEY + 1], print[FKT_FINGERPRINT];
    const struct fkt_signature *s = &t->signature;
    fkt_hex(key, s->key, sizeof s->key);
    fkt_fingerprint(print, s->key);
    return json_pack("{s:s s:b s:b s:s? s:s? s:b s:b s:o}", "sha256", t->sha256, "signed", s->there, "signature_right",
                     s->there && fkt_task_verify(t, NULL) == FKT_OK, "operator", s->there ? key : NULL, "fingerprint",
                     s->there ? print : NULL, "expired", t->service.expires && t->service.expires < now, "private",
                     !t->service.seeded, "task", fkt_task_document(t));
}

static fkt_status run(const struct asked *a)
{
    struct fkt_task t = {0};
    uint64_t now = (uint64_t)time(NULL);
    fkt_status st;
    FKT_TRY(fkt_task_load_into(&t, a->task));
    if (a->run.json) FKT_TRY(cli_print_json(facts(&t, now)));
    else FKT_TRY(show(&t, now));
out:
    fkt_task_clear(&t);
    return st;
}

int cli_task_show(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
