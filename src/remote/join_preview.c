/* SPDX-License-Identifier: Apache-2.0 */
/* join_preview.c - what fkt_join would send and its privacy cost. Nothing is sent, and only encodings are written.
 * Lengths and noise follow from the task; counts of records are only for their owner. */
#include "remote/join.h"

#include "base/alloc.h"
#include "base/text.h"
#include "pipeline/contribution.h"
#include "task/privacy_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double deviation(struct fkt_dyadic v) { return sqrt(ldexp((double)v.num, -(int)v.shift)); }

static fkt_status count_cost(const struct fkt_joining *j, struct fkt_join_preview *p)
{
    struct fkt_ledger_charge charge;
    struct fkt_ledger_spent spent;
    struct fkt_ledger_contents contents = {0};
    const double delta = j->task->privacy.delta;
    fkt_status st;
    FKT_TRY(fkt_joining_charge(j, &charge));
    FKT_TRY(fkt_ledger_file_ask(j->ledger, &charge, &spent));
    p->epsilon_after = fkt_ledger_epsilon(delta, &spent);
    if (access(j->ledger, F_OK) == 0) FKT_TRY(fkt_ledger_file_read(&contents, j->ledger, j->dataset));
    if (contents.n && contents.accounts[0].total.mu2 > 0)
        p->epsilon_before = fkt_ledger_epsilon(delta, &contents.accounts[0].total);
    if (j->shares.counted) {
        p->sigma_count = deviation(j->shares.variance_count) / j->shares.count_scale;
        for (uint32_t i = 0; i < j->task->layout.parts; i++)
            p->sigma[i] = (struct fkt_part_sigma){.sum = deviation(j->shares.variance[i].sum),
                                                  .moment = deviation(j->shares.variance[i].moment),
                                                  .cross = deviation(j->shares.variance[i].cross)};
    }
out:
    fkt_ledger_contents_clear(&contents);
    return st;
}

static void list_messages(const struct fkt_joining *j, struct fkt_join_preview *p)
{
    struct fkt_contribution_message m[FKT_CONTRIBUTION_MESSAGES];
    p->n_messages = fkt_contribution_messages(m, &j->params);
    for (size_t i = 0; i < p->n_messages; i++)
        p->messages[i] = (struct fkt_join_message){.kind = m[i].kind, .holds = m[i].holds, .bytes = m[i].bytes};
}

static fkt_status promise_in_words(const struct fkt_joining *j, struct fkt_join_preview *p)
{
    struct fkt_text words;
    fkt_status st;
    fkt_text_init(&words);
    FKT_TRY(fkt_privacy_words(&words, j->task));
    FKT_TRY(fkt_strdup(&p->privacy, words.s));
out:
    fkt_text_clear(&words);
    return st;
}

_Static_assert(FKT_JOIN_MESSAGES == FKT_CONTRIBUTION_MESSAGES, "one list of messages");

fkt_status fkt_join_preview(const struct fkt_join_spec *spec, struct fkt_join_preview *preview)
{
    struct fkt_joining j;
    fkt_status st;
    memset(preview, 0, sizeof *preview);
    FKT_TRY(fkt_joining_begin(&j, spec, 1));
    FKT_TRY(fkt_joining_prepare(&j));
    FKT_TRY(count_cost(&j, preview));
    FKT_TRY(fkt_contribution_check(j.task, j.exact));
    FKT_TRY(promise_in_words(&j, preview));
    list_messages(&j, preview);
    preview->site = j.site;
    preview->records = j.records;
    snprintf(preview->dataset, sizeof preview->dataset, "%s", j.dataset);
    preview->task = j.task;
    preview->held = j.held;
    preview->skipped = j.skipped;
    preview->ledger = j.ledger;
    j.task = NULL;
    j.held = NULL;
    j.skipped = (struct fkt_skipped){0};
    j.ledger = NULL;
out:
    st = fkt_joining_end(&j, st);
    if (st != FKT_OK) fkt_join_preview_clear(preview);
    preview->over = j.over;
    return st;
}

void fkt_join_preview_clear(struct fkt_join_preview *p)
{
    fkt_task_free(p->task);
    fkt_free(p->held);
    fkt_skipped_clear(&p->skipped);
    fkt_free(p->ledger);
    fkt_free(p->privacy);
    memset(p, 0, sizeof *p);
}
