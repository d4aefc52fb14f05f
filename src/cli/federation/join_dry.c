/* SPDX-License-Identifier: Apache-2.0 */
/* join_dry.c - `fedkt join --dry-run`: what would be sent, what it would cost, against whom it protects. Nothing is
 * sent, and no file is written. Lengths and noise follow from the task; how many records there are of which class is
 * told to their own owner, here and nowhere else. */
#include "cli/federation/join.h"
#include "task/privacy_words.h"

#include "base/text.h"
#include "pipeline/contribution.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct cost {
    double before, after; /* epsilon at the task's delta; before: 0, nothing yet */
    double sigma[3];      /* of this site's share, in the units of the moments: count, sum, diagonal */
};

static double deviation(struct fkt_dyadic v) { return sqrt(ldexp((double)v.num, -(int)v.shift)); }

static fkt_status count_cost(const struct cli_join *j, struct cost *c)
{
    struct fkt_ledger_charge charge;
    struct fkt_ledger_spent spent;
    struct fkt_ledger_contents contents = {0};
    const double delta = j->task.privacy.delta;
    fkt_status st;
    *c = (struct cost){0};
    FKT_TRY(cli_join_charge(j, &charge));
    FKT_TRY(fkt_ledger_file_ask(j->ledger, &charge, &spent));
    c->after = fkt_ledger_epsilon(delta, &spent);
    if (access(j->ledger, F_OK) == 0) FKT_TRY(fkt_ledger_file_read(&contents, j->ledger, j->dataset));
    if (contents.n && contents.accounts[0].total.mu2 > 0)
        c->before = fkt_ledger_epsilon(delta, &contents.accounts[0].total);
    if (j->shares.counted) {
        c->sigma[0] = deviation(j->shares.variance[0]) / j->shares.count_scale;
        c->sigma[1] = deviation(j->shares.variance[1]);
        c->sigma[2] = deviation(j->shares.variance[2]);
    }
out:
    fkt_ledger_contents_clear(&contents);
    return st;
}

static void print_messages(const struct fkt_contribution_message *m, size_t n)
{
    size_t all = 0;
    printf("would send, in one round, at most:\n");
    for (size_t i = 0; i < n; i++) {
        printf("  %-10s %9zu bytes  %s\n", m[i].kind, m[i].bytes, m[i].holds);
        all += m[i].bytes;
    }
    printf("  %-10s %9zu bytes, and requests that ask whether there is something to answer\n", "together", all);
}

/* For the eyes of this site: a folder with a wrong name shows as a class that it has none of. */
static void print_classes(const struct cli_join *j)
{
    for (int none = 0; none < 2; none++) {
        const char *before = none ? "none of: " : "of them: ";
        for (uint32_t k = 0; k < j->task.n_classes; k++) {
            if ((j->held[k] == 0) != none) continue;
            fputs(before, stdout);
            if (!none) printf("%llu ", (unsigned long long)j->held[k]);
            cli_show(j->task.classes[k], strlen(j->task.classes[k]));
            before = ", ";
        }
        if (*before == ',') puts(!none && j->skipped.count ? " (unreadable ones counted too)" : "");
    }
    puts("that stays here: what is sent does not tell how many there are of which class");
}

static void print_cost(const struct cli_join *j, const struct cost *c)
{
    const double delta = j->task.privacy.delta;
    if (j->shares.counted)
        printf("noise that this site adds, a random number to each: standard deviation %.4g on a class's count of "
               "images, %.4g on a sum over its images, %.4g on a sum of squares and products (an image is a list of "
               "numbers of length %u at most)\n",
               c->sigma[0], c->sigma[1], c->sigma[2], j->task.coordinates.rq);
    else printf("noise of this site: none; whoever takes the masks off adds it\n");
    fputs("dataset ", stdout);
    cli_show(j->dataset, strlen(j->dataset));
    printf(": epsilon %.4g at delta %.3g so far, %.4g after this task (ledger '%s')\n", c->before, delta, c->after,
           j->ledger);
}

static fkt_status print_words(struct cli_join *j, const struct cost *c, const struct fkt_contribution_message *m,
                              size_t n)
{
    struct fkt_text words;
    fkt_status st;
    fkt_text_init(&words);
    FKT_TRY(fkt_privacy_words(&words, &j->task));
    printf("site %u of %u, %zu records\n", j->site, j->task.federation.sites, j->records);
    print_classes(j);
    printf("server %s\n", j->task.service.address);
    print_messages(m, n);
    print_cost(j, c);
    puts(words.s);
    printf("nothing was sent, and nothing was written%s\n", j->a->encodings ? " but the encodings" : "");
out:
    fkt_text_clear(&words);
    return st;
}

static fkt_status print_json(struct cli_join *j, const struct cost *c, const struct fkt_contribution_message *m,
                             size_t n)
{
    json_t *messages = json_array(), *classes = json_object(), *told;
    json_int_t all = 0;
    for (uint32_t k = 0; k < j->task.n_classes; k++)
        json_object_set_new(classes, j->task.classes[k], json_integer((json_int_t)j->held[k]));
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(messages, json_pack("{s:s s:I s:s}", "kind", m[i].kind, "bytes", (json_int_t)m[i].bytes,
                                                  "holds", m[i].holds));
        all += (json_int_t)m[i].bytes;
    }
    told = json_pack("{s:b s:s s:s s:I s:I s:I s:o s:I s:s s:s s:o s:I s:s s:{s:f s:f s:f} s:f s:f s:f s:s s:b}",
                     "dry_run", 1, "task", j->task.name, "task_sha256", j->task.sha256, "site", (json_int_t)j->site,
                     "sites", (json_int_t)j->task.federation.sites, "records", (json_int_t)j->records, "classes",
                     classes, "skipped", (json_int_t)j->skipped.count, "dataset", j->dataset, "server",
                     j->task.service.address, "messages", messages, "bytes", all, "noise",
                     fkt_noise_name(j->task.federation.noise), "sigma", "count", c->sigma[0], "sum", c->sigma[1],
                     "moment", c->sigma[2], "delta", j->task.privacy.delta, "epsilon_before", c->before,
                     "epsilon_after", c->after, "ledger", j->ledger, "private", cli_task_is_private(&j->task));
    cli_mark_weak(told, &j->task);
    return cli_print_json(told);
}

fkt_status cli_join_print(struct cli_join *j)
{
    struct fkt_contribution_message m[FKT_CONTRIBUTION_MESSAGES];
    struct cost c;
    size_t n = fkt_contribution_messages(m, &j->params);
    fkt_status st;
    FKT_TRY(count_cost(j, &c));
    FKT_TRY(fkt_contribution_check(&j->task, j->exact));
    FKT_TRY(j->a->run.json ? print_json(j, &c, m, n) : print_words(j, &c, m, n));
out:
    return st;
}
