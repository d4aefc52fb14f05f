/* SPDX-License-Identifier: Apache-2.0 */
/* join_progress.c - the events of fkt_join on standard error: a line of text for each change, or an event (log.h). A
 * log file may be read by others: it must not contain numbers or names of records. */
#include "fedkt/advanced/mailbox.h"

#include "cli/federation/join.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The phases of the protocol, explained to the user. */
static const char *meaning(const char *phase)
{
    static const struct {
        const char *phase, *words;
    } rows[] = {
        {"advertise", "has sent its keys"},
        {"coin", "has sent its part of the common random coin"},
        {"share", "has sent encrypted key shares to its neighbours"},
        {"mask", "has sent its sums, masked"},
        {"confirm", "has signed the list of the sites in the sum"},
        {"reveal", "helps to unmask the total"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].phase, phase)) return rows[i].words;
    return NULL;
}

static void warn(const char *text)
{
    if (cli_log_jsonl()) cli_event("join", json_pack("{s:s s:s}", "state", "warning", "reason", text));
    else fprintf(stderr, "fedkt: %s\n", text);
}

static void print_signed(const struct cli_join *j, const struct fkt_join_event *e)
{
    const int given = j->a->operator_key != NULL;
    char print[FKT_FINGERPRINT];
    fkt_fingerprint(print, e->key);
    if (cli_log_jsonl())
        cli_event("join", json_pack("{s:s s:s s:b}", "state", "task", "signed_by", print, "operator", given));
    else if (given) fprintf(stderr, "fedkt: the task is signed by the operator, %s\n", print);
    else fprintf(stderr, "fedkt: the task is signed by %s; is that the operator? --operator compares it\n", print);
}

static void print_view(const struct fkt_client_view *v)
{
    const char *words = meaning(v->phase);
    if (cli_log_jsonl()) {
        cli_event("join", json_pack("{s:s s:I s:s s:b s:b}", "state", fkt_stage_name(v->stage), "round",
                                    (json_int_t)v->begun, "phase", v->phase, "masked", v->masked, "spent", v->spent));
        return;
    }
    if (words) fprintf(stderr, "fedkt: round %u: this site %s\n", v->begun, words);
    else if (v->stage == FKT_STAGE_GATHERING) fprintf(stderr, "fedkt: waiting for the others\n");
    else if (v->spent) fprintf(stderr, "fedkt: this site has finished its part; waiting for the release\n");
    else if (v->begun) fprintf(stderr, "fedkt: waiting for another round\n");
    else fprintf(stderr, "fedkt: waiting for a round to begin\n");
}

static void print_trouble(const struct fkt_join_event *e)
{
    if (cli_log_jsonl())
        cli_event("join", e->text ? json_pack("{s:s s:s}", "state", "trouble", "reason", e->text)
                                  : json_pack("{s:s}", "state", "well"));
    else if (e->text) fprintf(stderr, "fedkt: %s; trying again\n", e->text);
    else fprintf(stderr, "fedkt: the server answers again\n");
}

/* 1: standard error is the user's terminal, where names and numbers of records may be printed. */
static int may_see(const struct cli_join *j) { return j->progress.terminal || j->a->dry_run; }

static void print_dataset(struct cli_join *j, const struct fkt_dataset *ds)
{
    if (may_see(j)) {
        if (cli_print_dataset(ds, j->a->data.path, &j->a->run) != FKT_OK) warn("no memory to describe the images");
        return;
    }
    if (fkt_dataset_skipped(ds)) warn("some files were skipped: they are not read as images; --dry-run names them");
    if (fkt_dataset_nested(ds, NULL)) warn("some images are in a folder inside a class folder; --dry-run names it");
    j->progress.quiet = 1; /* its lines contain numbers of records */
}

static void print_records(struct cli_join *j, const struct fkt_join_event *e)
{
    const enum fkt_adjacency adjacency = e->task->privacy.adjacency;
    cli_progress_end(&j->progress);
    if (may_see(j)) {
        cli_print_skipped(e->skipped);
        cli_print_copies(e->records, adjacency);
    } else {
        if (e->skipped->count) warn("left out files that could not be read as images; --dry-run names them");
        if (fkt_records_copies(e->records))
            warn("some records have the pixels and the label of another one; --dry-run prints how many");
    }
    if (cli_limit_remark(&j->a->data, adjacency)) warn(cli_limit_remark(&j->a->data, adjacency));
}

static void print_encoded(const struct cli_join *j, const struct fkt_join_event *e)
{
    if (!j->a->run.quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "fedkt: of %llu images %llu were encoded now, %llu before (%s, as private as the images)\n",
                (unsigned long long)(e->found + e->made), (unsigned long long)e->made, (unsigned long long)e->found,
                j->a->encodings);
}

int cli_join_event(void *self, const struct fkt_join_event *e)
{
    struct cli_join *j = self;
    const int quiet = j->a->run.quiet;
    switch (e->kind) {
    case FKT_JOIN_EVENT_SIGNED:
        if (!quiet) print_signed(j, e);
        break;
    case FKT_JOIN_EVENT_SEEDED:
        if (!quiet) warn("NOT PRIVATE: all randomness of this task comes from a seed that is written in it");
        break;
    case FKT_JOIN_EVENT_DATASET: print_dataset(j, e->dataset); break;
    case FKT_JOIN_EVENT_CODEC:
        j->opened = 1;
        j->device = fkt_codec_device_used(e->codec);
        cli_print_dtype(&j->a->settings, e->codec, &j->a->run);
        break;
    case FKT_JOIN_EVENT_ENCODED: print_encoded(j, e); break;
    case FKT_JOIN_EVENT_RECORDS: print_records(j, e); break;
    case FKT_JOIN_EVENT_OVER_BUDGET:
        fkt_failure_save(&j->refused, cli_hint_charge(FKT_E_BUDGET, e->charge, e->spent, e->ledger));
        break;
    case FKT_JOIN_EVENT_VIEW:
        if (!quiet) print_view(e->view);
        break;
    case FKT_JOIN_EVENT_TROUBLE:
    case FKT_JOIN_EVENT_WELL:
        if (!quiet) print_trouble(e);
        break;
    }
    return 0;
}
