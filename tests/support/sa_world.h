/* SPDX-License-Identifier: Apache-2.0 */
/* sa_world.h - a whole aggregation round in memory and in one thread: N sites, a server, and the wire between them.
 *
 *   struct sa_world w;
 *   CHECK_OK(sa_world_init(&w, &params, seed));  roster, signing keys, vectors, entropy and round: all from the seed
 *   sa_world_kill(&w, 3, FKT_SA_STATE_MASK);           site 3 falls silent when its Masked is due
 *   w.hook = bend; w.self = ...;                 sees every letter before it is on the wire; may drop, delay, repeat,
 *                                                alter it
 *   CHECK_OK(sa_world_run(&w));                  until DONE or FAILED; gives the server's last word
 *   sa_world_check(&w);                          the total is the plain sum over the survivors, bit for bit
 *   sa_world_release(&w);
 *
 * When the wire is empty and the server still waits, the phase is closed: a deadline without a clock. What the server
 * was told stands in w.log, for sa_world_replay. The world's own memory is malloc's, so that a sweep of failing
 * allocations hits the library alone. */
#ifndef FKT_TEST_SA_WORLD_H
#define FKT_TEST_SA_WORLD_H

#include "fedkt/advanced/secagg.h"

#include "base/rng.h"
#include "crypto/entropy.h"
#include "secagg/msg.h"

/* One message on its way. A hook may write `bytes` (room for `cap`) and set `len`. */
struct sa_message {
    uint32_t site;         /* the site's end of the wire */
    int to_server;         /* 1: site -> server */
    enum fkt_sa_kind kind; /* NONE when it does not decode */
    uint8_t *bytes;
    size_t len, cap;
    unsigned copies; /* 1; 0 drops it, 2 repeats it */
    unsigned delay;  /* 0; how many other letters are delivered first (as long as there are others) */
};
struct sa_world;
typedef void (*sa_hook)(void *self, struct sa_world *w, struct sa_message *message);

/* Which letter on the wire is delivered next. Last in, first out keeps the wire short: each site answers at once. */
enum sa_order { SA_FIRST_IN = 0, SA_ANY = 1, SA_LAST_IN = 2 };

struct sa_site {
    struct fkt_sa_client *client;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_sa_site doors;
    struct sa_world *world;
    uint8_t secret[FKT_SA_SECRET];
    int64_t *x;                    /* (length) what it contributes */
    enum fkt_sa_state silent_from; /* its message of this state never leaves, nor any later one; DONE: speaks always */
    int gone;                      /* it has fallen silent: nothing leaves it and nothing reaches it */
    unsigned reserved, asked, spent;         /* how often the site's three doors were called */
    fkt_status refuse_reserve, refuse_spend; /* what they answer; FKT_OK at first */
    fkt_status status;                       /* what the client last said */
    int told_to_abort;                       /* an Aborted reached it */
};

enum sa_event { SA_RECV, SA_CLOSE, SA_LOST };
struct sa_log_entry {
    enum sa_event event;
    uint32_t from;
    uint8_t *bytes;
    size_t len;
    fkt_status answer;
};

struct sa_world {
    struct fkt_sa_params params;
    uint8_t round[FKT_SA_ROUND];
    uint64_t seed;
    struct fkt_rng rng; /* for schedules */
    uint8_t *roster;
    int64_t *vectors;
    struct sa_site *site; /* (sites) */
    struct fkt_sa_server *server;
    sa_hook hook; /* may be NULL */
    void *self;
    enum sa_order order;
    int keep_log; /* 1 at first */
    struct sa_message *wire;
    size_t on_wire, wire_cap;
    struct sa_log_entry *log;
    size_t logged, log_cap;
    uint8_t said[32];                                      /* chained hash over everything that the server said */
    uint64_t steps;                                        /* letters delivered */
    uint64_t sent_up, sent_down, largest_up, largest_down; /* bytes */
};

/* Parameters with task hash and the largest bound for `bits`; no roster: sa_world_init makes it. degree 0: complete.
 * threshold 0: the smallest that the parameters allow. */
struct fkt_sa_params sa_params(uint32_t sites, uint32_t dropped, uint32_t corrupt, uint32_t degree, uint32_t threshold,
                               uint32_t length, uint32_t bits);

/* Copies p (its roster is ignored). Vectors are uniform in -bound..bound with the extremes among them. */
fkt_status sa_world_init(struct sa_world *w, const struct fkt_sa_params *p, uint64_t seed);
void sa_world_release(struct sa_world *w);
void sa_world_kill(struct sa_world *w, uint32_t site, enum fkt_sa_state silent_from);
uint64_t sa_world_draw(struct sa_world *w, uint64_t below); /* uniform, from the seed; for schedules */

/* What moves the world, from large to small. */
fkt_status sa_world_run(struct sa_world *w);           /* until the server ended; unmasks by the single call */
fkt_status sa_world_run_to_unmask(struct sa_world *w); /* the same, but stops in UNMASK (or FAILED) */
void sa_world_finish_wire(struct sa_world *w);         /* delivers what is still on the wire (aborts) */
int sa_world_step(struct sa_world *w);                 /* one letter, or a close; 0 when nothing is left to do */
void sa_world_pump(struct sa_world *w);                /* puts on the wire all that anybody wants to say now */
void sa_world_post(struct sa_world *w, uint32_t site, int to_server, const uint8_t *bytes,
                   size_t len); /* past the hook */
/* Tells the server, logs it, and puts on the wire what the server says to it. */
fkt_status sa_world_tell(struct sa_world *w, enum sa_event event, uint32_t from, const uint8_t *bytes, size_t len);

/* The server is DONE and its total is the plain sum of its survivors' vectors, of which there are >= N - D. */
void sa_world_check(struct sa_world *w);
/* A new server, told the same things, says the same bytes, gives the same answers and ends in the same state with the
 * same total. FKT_OK also when that end is FAILED; the first failure of memory is given back. */
fkt_status sa_world_replay(const struct sa_world *w);

#endif
