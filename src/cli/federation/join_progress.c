/* SPDX-License-Identifier: Apache-2.0 */
/* join_progress.c - what a site says while it waits: a line when something has changed, in words, or as an
 * event (log.h). Never a number of the records. */
#include "cli/federation/join.h"

#include <stdio.h>
#include <string.h>

/* What a phase of the protocol means to somebody who watches. */
static const char *meaning(const char *phase)
{
    static const struct {
        const char *phase, *words;
    } rows[] = {
        {"advertise", "has shown its keys"},
        {"coin", "has thrown its part of the coin"},
        {"share", "has given pieces of its secrets to its neighbours, sealed"},
        {"mask", "has sent its sums, masked"},
        {"confirm", "has signed the list of those whose sums are in"},
        {"reveal", "helps to take the masks off the total"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].phase, phase)) return rows[i].words;
    return NULL;
}

void cli_join_warn(const char *text)
{
    if (cli_log_jsonl()) cli_event("join", json_pack("{s:s s:s}", "state", "warning", "reason", text));
    else fprintf(stderr, "fedkt: %s\n", text);
}

static void say(const struct fkt_client_view *v)
{
    const char *words = meaning(v->phase);
    if (cli_log_jsonl()) {
        cli_event("join", json_pack("{s:s s:I s:s s:b s:b}", "state", fkt_stage_name(v->stage), "round",
                                    (json_int_t)v->begun, "phase", v->phase, "masked", v->masked, "spent", v->spent));
        return;
    }
    if (words) fprintf(stderr, "fedkt: round %u: this site %s\n", v->begun, words);
    else if (v->stage == FKT_STAGE_GATHERING) fprintf(stderr, "fedkt: waiting for the others\n");
    else if (v->spent) fprintf(stderr, "fedkt: this site has done its part; waiting for the release\n");
    else if (v->begun) fprintf(stderr, "fedkt: waiting for another round\n");
    else fprintf(stderr, "fedkt: waiting for a round to begin\n");
}

static void say_trouble(struct cli_join *j, const char *trouble)
{
    const int troubled = trouble[0] != '\0';
    const size_t cause = strcspn(trouble, ":"); /* what follows differs from try to try */
    if (strlen(j->trouble) == cause && !strncmp(j->trouble, trouble, cause)) return; /* once for each cause */
    snprintf(j->trouble, sizeof j->trouble, "%.*s", (int)cause, trouble);
    if (cli_log_jsonl())
        cli_event("join", troubled ? json_pack("{s:s s:s}", "state", "trouble", "reason", trouble)
                                   : json_pack("{s:s}", "state", "well"));
    else if (troubled) fprintf(stderr, "fedkt: %s; trying again\n", trouble);
    else fprintf(stderr, "fedkt: the server answers again\n");
}

static int same(const struct fkt_client_view *a, const struct fkt_client_view *b)
{
    return a->stage == b->stage && a->begun == b->begun && a->masked == b->masked && a->spent == b->spent &&
           !strcmp(a->phase, b->phase);
}

int cli_join_heartbeat(void *self, const char *trouble)
{
    struct cli_join *j = self;
    struct fkt_client_view v;
    if (cli_progress_check("") != FKT_OK) return 1;
    fkt_client_get_view(j->client, &v);
    if (!v.phase[0] && !v.masked && v.stage < FKT_STAGE_RELEASED && cli_join_expired(j)) j->expired = 1;
    if (!j->a->run.quiet) {
        say_trouble(j, trouble);
        if (!j->showed || !same(&v, &j->shown)) say(&v);
    }
    j->shown = v;
    j->showed = 1;
    return j->expired;
}
