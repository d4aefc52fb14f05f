/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - everything that a server needs after kill -9, in one SQLite file. */
#ifndef FKT_SERVER_JOURNAL_H
#define FKT_SERVER_JOURNAL_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/secagg.h"

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* What happened in a round after it had begun. */
enum fkt_journal_kind { FKT_EVENT_MESSAGE = 1, FKT_EVENT_DEADLINE = 2 };
struct fkt_journal_event {
    enum fkt_journal_kind kind;
    uint32_t site;        /* MESSAGE only, as the rest */
    fkt_status verdict;   /* verdict of the state machine: FKT_OK or FKT_E_PEER_* */
    const uint8_t *bytes; /* borrowed */
    size_t len;
};
struct fkt_journal_round {
    uint8_t name[FKT_SA_ROUND];
    fkt_status ended; /* FKT_OK: not failed; it is under way, or the release is of it */
    const char *reason;
    uint64_t messages, bytes; /* accepted; known once it has ended */
    const uint8_t *spent;     /* bitmap over the roster: sites that have revealed; NULL: not ended */
};
struct fkt_journal_release { /* what is written once */
    uint32_t round;
    const uint8_t *survivors; /* bitmap over the roster */
    const char *sha256;
    const uint8_t *bytes;
    size_t len;
    const char *certificate; /* the text of its certificate.json */
};

struct fkt_journal;
/* Makes the file, or opens it for this process alone (FKT_E_STATE: another process has it). FKT_E_MISMATCH: another
 * task's. */
FKT_MUST_USE fkt_status fkt_journal_open(struct fkt_journal **out, const char *path, const char *task_sha256,
                                         uint32_t sites);
void fkt_journal_close(struct fkt_journal *j); /* what was not settled is rolled back */
/* Commits everything since the last settle; *any (may be NULL): there was something. */
FKT_MUST_USE fkt_status fkt_journal_settle(struct fkt_journal *j, int *any);

FKT_MUST_USE fkt_status fkt_journal_begin(struct fkt_journal *j, uint32_t round, const uint8_t name[FKT_SA_ROUND]);
FKT_MUST_USE fkt_status fkt_journal_add(struct fkt_journal *j, uint32_t round, const struct fkt_journal_event *e);
FKT_MUST_USE fkt_status fkt_journal_end(struct fkt_journal *j, uint32_t round, const struct fkt_journal_round *r);
/* Fails when there is a release already. */
FKT_MUST_USE fkt_status fkt_journal_release_put(struct fkt_journal *j, const struct fkt_journal_release *r);
FKT_MUST_USE fkt_status fkt_journal_fact_put(struct fkt_journal *j, const char *name, const char *value);
FKT_MUST_USE fkt_status fkt_journal_fact_change(struct fkt_journal *j, const char *name,
                                                const char *value);                                     /* or put */
FKT_MUST_USE fkt_status fkt_journal_count(struct fkt_journal *j, enum fkt_refusal why, uint64_t times); /* adds */
FKT_MUST_USE fkt_status fkt_journal_line(struct fkt_journal *j, uint64_t entry, const char *line);
/* Deletes up to `limit` events of rounds up to `last`; *left: there are more. Deleted events are overwritten on disk
 * once fkt_journal_scrub has returned. */
FKT_MUST_USE fkt_status fkt_journal_forget(struct fkt_journal *j, uint32_t last, uint32_t limit, int *left);
FKT_MUST_USE fkt_status fkt_journal_scrub(struct fkt_journal *j); /* when all is settled */

/* Reading back; the file may be damaged: FKT_E_FORMAT. Callbacks are called in order; what they get is borrowed for the
 * call. */
typedef fkt_status fkt_journal_on_round(void *self, uint32_t number, const struct fkt_journal_round *r);
typedef fkt_status fkt_journal_on_event(void *self, const struct fkt_journal_event *e);
typedef fkt_status fkt_journal_on_line(void *self, uint64_t entry, const char *line);
FKT_MUST_USE fkt_status fkt_journal_rounds(struct fkt_journal *j, fkt_journal_on_round *visit, void *self);
FKT_MUST_USE fkt_status fkt_journal_events(struct fkt_journal *j, uint32_t round, fkt_journal_on_event *visit,
                                           void *self);
FKT_MUST_USE fkt_status fkt_journal_lines(struct fkt_journal *j, fkt_journal_on_line *visit, void *self);
FKT_MUST_USE fkt_status fkt_journal_counts(struct fkt_journal *j, uint64_t refused[FKT_REFUSALS]);
FKT_MUST_USE fkt_status fkt_journal_fact(struct fkt_journal *j, const char *name, char **value); /* gives; NULL: none */
typedef fkt_status fkt_journal_on_release(void *self, const struct fkt_journal_release *r);
FKT_MUST_USE fkt_status fkt_journal_release_get(struct fkt_journal *j, fkt_journal_on_release *visit, void *self);

#endif
