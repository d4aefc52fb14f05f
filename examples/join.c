/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - what `fedkt join` does, as a program of your own: one site takes part in a federation over HTTPS, logs JSON
 * lines to standard error, and prints what came of it.
 *
 *   join TASK KEY IMAGES STATE LEDGER OUT              takes part; the same call goes on after a crash or a stop
 *   join TASK KEY IMAGES STATE LEDGER OUT preview      says what would be sent and what it would cost; sends nothing
 *
 * Exit status: 0 in the release, 3 over without this site's records in a release, 4 stopped, 1 anything else. */
#include "fedkt/join.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t stop;
static void on_signal(int sig) { stop = sig; }

/* Nothing in these lines says how many records this site has: a log may be read by others. */
static int on_event(void *self, const struct fkt_join_event *e)
{
    char who[FKT_FINGERPRINT];
    (void)self;
    switch (e->kind) {
    case FKT_JOIN_EVENT_SIGNED:
        fkt_fingerprint(who, e->key);
        fprintf(stderr, "{\"event\": \"signed\", \"task\": \"%.16s\", \"by\": \"%s\"}\n", fkt_task_sha256(e->task),
                who);
        break;
    case FKT_JOIN_EVENT_SEEDED: fprintf(stderr, "{\"event\": \"NOT PRIVATE: a seed stands in the task\"}\n"); break;
    case FKT_JOIN_EVENT_RECORDS: fprintf(stderr, "{\"event\": \"prepared\"}\n"); break;
    case FKT_JOIN_EVENT_VIEW:
        fprintf(stderr, "{\"event\": \"stage\", \"stage\": %d, \"round\": %u, \"phase\": \"%s\"}\n",
                (int)e->view->stage, (unsigned)e->view->begun, e->view->phase);
        break;
    case FKT_JOIN_EVENT_TROUBLE: fprintf(stderr, "{\"event\": \"trouble\"}\n"); break;
    case FKT_JOIN_EVENT_WELL: fprintf(stderr, "{\"event\": \"well\"}\n"); break;
    default: break;
    }
    return 0;
}

static fkt_status preview(const struct fkt_join_spec *spec)
{
    struct fkt_join_preview p = {0};
    size_t bytes = 0;
    fkt_status st = fkt_join_preview(spec, &p);
    if (st == FKT_OK) {
        for (size_t i = 0; i < p.n_messages; i++) bytes += p.messages[i].bytes;
        printf("site %u, %llu records, at most %zu bytes in %zu messages\n", (unsigned)p.site,
               (unsigned long long)p.records, bytes, p.n_messages);
        printf("epsilon %.17g before, %.17g after\n%s\n", p.epsilon_before, p.epsilon_after, p.privacy);
    }
    fkt_join_preview_clear(&p);
    return st;
}

static fkt_status take_part(const struct fkt_join_spec *spec, int *over)
{
    struct fkt_join_result r = {0};
    fkt_status st = fkt_join(spec, &r);
    if (r.out)
        printf("%s\nof %u of %u sites, this one %s; verified in %s\n",
               r.verified.release_sha256[0] ? r.verified.release_sha256 : "no release", (unsigned)r.verified.survivors,
               (unsigned)r.verified.sites, r.verified.counted ? "among them" : "not among them", r.out);
    *over = r.over;
    fkt_join_result_clear(&r);
    return st;
}

int main(int argc, char **argv)
{
    struct fkt_join_spec spec = {0};
    int over = 0;
    fkt_status st;
    if (argc != 7 && !(argc == 8 && !strcmp(argv[7], "preview"))) {
        fprintf(stderr, "usage: %s TASK KEY IMAGES STATE LEDGER OUT [preview]\n", argv[0]);
        return 2;
    }
    spec.task = argv[1];
    spec.key = argv[2];
    spec.data = argv[3];
    spec.state = argv[4];
    spec.ledger = argv[5];
    spec.out = argv[6];
    spec.event = on_event;
    spec.stop = &stop;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    st = argc == 8 ? preview(&spec) : take_part(&spec, &over);
    if (st != FKT_OK) {
        fprintf(stderr, "%s\n", fkt_error_text());
        if (fkt_error_hint()[0]) fprintf(stderr, "hint: %s\n", fkt_error_hint());
    }
    return st == FKT_OK ? 0 : over ? 3 : st == FKT_E_STOPPED ? 4 : 1;
}
