/* SPDX-License-Identifier: Apache-2.0 */
/* join_print.c - standard output of `fedkt join`: the result; with --dry-run what would be sent, its privacy cost
 * and what it protects against. Records per class are printed only for their owner. */
#include "cli/federation/join.h"

#include <stdio.h>
#include <string.h>

/* ---- --dry-run ---- */

static size_t sum_messages(const struct fkt_join_preview *p)
{
    size_t all = 0;
    for (size_t i = 0; i < p->n_messages; i++) all += p->messages[i].bytes;
    return all;
}

static void print_messages(const struct fkt_join_preview *p)
{
    printf("would send, in one round, at most:\n");
    for (size_t i = 0; i < p->n_messages; i++)
        printf("  %-10s %9zu bytes  %s\n", p->messages[i].kind, p->messages[i].bytes, p->messages[i].holds);
    printf("  %-10s %9zu bytes, and requests that ask for new messages\n", "together", sum_messages(p));
}

/* A folder with a wrong name shows as a class without records. */
static void print_classes(const struct fkt_join_preview *p)
{
    for (int none = 0; none < 2; none++) {
        const char *before = none ? "none of: " : "of them: ";
        for (uint32_t k = 0; k < p->task->n_classes; k++) {
            if ((p->held[k] == 0) != none) continue;
            fputs(before, stdout);
            if (!none) printf("%llu ", (unsigned long long)p->held[k]);
            cli_show(p->task->classes[k], strlen(p->task->classes[k]));
            before = ", ";
        }
        if (*before == ',') puts(!none && p->skipped.count ? " (unreadable ones counted too)" : "");
    }
    puts("that stays here: the messages do not reveal the number of records per class");
}

static void print_cost(const struct fkt_join_preview *p)
{
    const struct fkt_moments_layout *l = &p->task->layout;
    if (p->task->federation.noise == FKT_NOISE_PLACE_DISTRIBUTED)
        printf(
            "noise that this site adds to each number: standard deviation %.4g on a class's count of images, %.4g on a "
            "sum over its images, %.4g on a sum of squares and products (an image is a vector of length %u at most)\n",
            p->sigma_count, p->sigma[0].sum, p->sigma[0].moment, l->rq[0]);
    else printf("noise of this site: none; the server adds it after unmasking\n");
    for (uint32_t i = 1; i < l->parts && p->sigma[i].sum > 0; i++)
        printf("in the part of the %s: %.4g on a sum, %.4g on a sum of squares and products (a vector of length %u at "
               "most)\n",
               fkt_part_name(p->task->part[i].kind), p->sigma[i].sum, p->sigma[i].moment, l->rq[i]);
    fputs("dataset ", stdout);
    cli_show(p->dataset, strlen(p->dataset));
    printf(": epsilon %.4g at delta %.3g so far, %.4g after this task (ledger '%s')\n", p->epsilon_before,
           p->task->privacy.delta, p->epsilon_after, p->ledger);
}

static void print_words(const struct cli_join_asked *a, const struct fkt_join_preview *p)
{
    printf("site %u of %u, %llu records\n", p->site, p->task->federation.sites, (unsigned long long)p->records);
    print_classes(p);
    printf("server %s\n", p->task->service.address);
    print_messages(p);
    print_cost(p);
    puts(p->privacy);
    printf("nothing was sent, and nothing was written%s\n", a->encodings ? " but the encodings" : "");
}

/* null: this run opened no codec, because a run before it had encoded the images. */
static json_t *device_json(const struct cli_join *j) { return j->opened ? cli_device_json(j->device) : json_null(); }

static fkt_status print_json(const struct cli_join *j, const struct fkt_join_preview *p)
{
    const struct fkt_task *t = p->task;
    json_t *messages = json_array(), *classes = json_object(), *told;
    for (uint32_t k = 0; k < t->n_classes; k++)
        json_object_set_new(classes, t->classes[k], json_integer((json_int_t)p->held[k]));
    for (size_t i = 0; i < p->n_messages; i++)
        json_array_append_new(messages, json_pack("{s:s s:I s:s}", "kind", p->messages[i].kind, "bytes",
                                                  (json_int_t)p->messages[i].bytes, "holds", p->messages[i].holds));
    told = json_pack("{s:b s:s s:s s:I s:I s:I s:o s:I s:s s:s s:o s:I s:s s:{s:f s:f s:f} s:f s:f s:f s:s s:o s:b}",
                     "dry_run", 1, "task", t->name, "task_sha256", t->sha256, "site", (json_int_t)p->site, "sites",
                     (json_int_t)t->federation.sites, "records", (json_int_t)p->records, "classes", classes, "skipped",
                     (json_int_t)p->skipped.count, "dataset", p->dataset, "server", t->service.address, "messages",
                     messages, "bytes", (json_int_t)sum_messages(p), "noise", fkt_noise_name(t->federation.noise),
                     "sigma", "count", p->sigma_count, "sum", p->sigma[0].sum, "moment", p->sigma[0].moment, "delta",
                     t->privacy.delta, "epsilon_before", p->epsilon_before, "epsilon_after", p->epsilon_after, "ledger",
                     p->ledger, "device", device_json(j), "private", cli_task_is_private(t));
    for (uint32_t i = 1; i < t->layout.parts; i++)
        json_object_set_new(json_object_get(told, "sigma"), fkt_part_name(t->part[i].kind),
                            json_pack("{s:f s:f}", "sum", p->sigma[i].sum, "moment", p->sigma[i].moment));
    cli_mark_weak(told, t);
    return cli_print_json(told);
}

fkt_status cli_join_print_preview(const struct cli_join *j, const struct fkt_join_preview *p)
{
    if (j->a->run.json) return print_json(j, p);
    print_words(j->a, p);
    return FKT_OK;
}

/* ---- the result ---- */

fkt_status cli_join_print_result(const struct cli_join *j, const struct fkt_join_result *r)
{
    const struct fkt_verification *v = &r->verified;
    const int released = v->release_sha256[0] != '\0';
    if (j->a->run.json) {
        json_t *told =
            json_pack("{s:s s:s s:I s:I s:s s:b s:s? s:I s:I s:I s:o s:b s:b s:s}", "task", r->task->name,
                      "task_sha256", r->task->sha256, "site", (json_int_t)r->site, "records", (json_int_t)r->records,
                      "stage", fkt_stage_name(r->stage), "in_release", v->counted, "release_sha256",
                      released ? v->release_sha256 : NULL, "survivors", (json_int_t)v->survivors, "rounds",
                      (json_int_t)r->rounds, "bytes_sent", (json_int_t)r->sent_bytes, "device", device_json(j),
                      "verified", 1, "private", cli_task_is_private(r->task), "out", r->out);
        cli_mark_weak(told, r->task);
        return cli_print_json(told);
    }
    if (released)
        printf("release %s\nof %u of %u sites, and %s\n", v->release_sha256, v->survivors, v->sites,
               v->counted ? "this one is among them" : "this one is NOT among them");
    else printf("no release: the server gave the task up, as its log states\n");
    printf("log, signatures%s and this site's receipt are consistent\nin %s\n", released ? ", certificate" : "",
           r->out);
    cli_print_weak(r->task);
    if (r->task->service.seeded) printf("NOT PRIVATE: all randomness came from a known seed\n");
    return FKT_OK;
}
