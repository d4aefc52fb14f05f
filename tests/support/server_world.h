/* SPDX-License-Identifier: Apache-2.0 */
/* server_world.h - a server (fedkt/server.h) on a real journal, a clock that the test turns, and sites with real
 * machines on the other side of its mailbox. Nothing is sent over a wire, but nothing is known before it is settled
 * either: what a site was answered it learns after the settle, and a crash in between makes it ask again.
 *
 *   struct server_world w;
 *   server_world_init(&w, &(struct host_plan){.sites = 5, .dropped = 1, .corrupt = 1});
 *   w.site[3].silent_from = FKT_SA_STATE_MASK;          its message of that phase never leaves, nor any later one
 *   server_world_run(&w);                           until RELEASED or GIVEN_UP
 *   server_world_check(&w);                         the release is that of the plain sum; the chain holds
 *   server_world_release(&w);
 *
 * `crash_at` n: at the n-th point of the run the process "dies": a copy of its folders as they are on disk at that
 * moment is what the next one opens. */
#ifndef FKT_TEST_SERVER_WORLD_H
#define FKT_TEST_SERVER_WORLD_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/server.h"

#include "crypto/entropy.h"
#include "task/task.h"
#include "tests/support/scratch.h"
#include "tests/support/small_federation.h"

enum { SERVER_SITES_MAX = 64, SERVER_LENGTH = FED_CLASSES * FED_BLOCK };

struct server_plan {
    uint32_t sites, dropped, corrupt, rounds; /* rounds 0: 3 */
    enum fkt_noise_place noise;
    uint64_t expires;
    int unseeded; /* 1: from the operating system; else everything comes from a seed */
};

struct server_world;
struct server_site {
    struct server_world *world;
    uint32_t index;
    struct fkt_sa_client *client;
    struct fkt_sa_site doors;
    struct fkt_entropy_seeded keys, noise;
    struct fkt_entropy keys_door, noise_door;
    uint8_t round[FKT_SA_ROUND];
    uint32_t after, begun; /* begun: rounds */
    uint8_t *out;          /* a message that the server has not acknowledged */
    size_t out_len;
    int64_t x[SERVER_LENGTH];      /* what it last put under its masks */
    enum fkt_sa_state silent_from; /* BEGIN: speaks always */
    uint32_t silent_in;            /* in this round of its; 0: in all */
    int away;                      /* asks for nothing */
    int spent;
    fkt_status lost;  /* what it was last told */
    uint32_t refused; /* messages that the server did not want */
};

struct server_world {
    struct server_plan plan;
    struct fkt_task task;
    struct fkt_calibration calibration;
    uint8_t roster[(SERVER_SITES_MAX + 1) * FKT_SA_KEY], secrets[(SERVER_SITES_MAX + 1) * FKT_SA_SECRET];
    struct scratch scratch;
    char folder[512];
    struct fkt_server *server;
    const char *out;  /* NULL: the one in the state */
    size_t per_class; /* of the next process */
    enum fkt_export_format format;
    struct fkt_mailbox box;
    struct server_site site[SERVER_SITES_MAX];
    uint64_t now;
    uint32_t points, crash_at, crashes; /* crash_at 0: never */
    uint32_t lives;
    size_t each; /* messages between two settles; 0: as many as there are */
};

void server_world_init(struct server_world *w, const struct server_plan *plan);
void server_world_release(struct server_world *w);
fkt_status server_world_open(struct server_world *w, const char *folder); /* a process */
void server_world_point(struct server_world *w);                          /* here it may die */
/* dies: a copy of the folder as it is goes on */
void server_world_crash(struct server_world *w);
void server_world_copy(const char *from, const char *to);

fkt_status server_world_tick(struct server_world *w, uint64_t ms); /* so much time goes by; and settle */
/* Every site that is there asks, and answers what it gets. Gives the number of messages that were taken. */
uint32_t server_world_talk(struct server_world *w);
void server_world_ask(struct server_world *w, uint32_t site); /* one site asks, and has its answer ready */
void server_world_work(struct server_world *w);               /* what waits to be worked on, in this thread */
/* Talks, works and lets the time go until the task is over, or for so many turns that it never will be. */
enum fkt_stage server_world_run(struct server_world *w);
enum fkt_stage server_world_until(struct server_world *w, enum fkt_stage stage); /* or over */
struct fkt_mailbox_view server_world_view(struct server_world *w);

void server_world_check(struct server_world *w);
/* Goes along the chain with a JSON parser and a hash, and nothing of the library's. Gives the number of lines with
 * `event`. */
size_t server_world_chain(const char *path, const char *event);
size_t server_world_count(struct server_world *w, const char *event); /* the same, of a log that has not ended */

#endif
