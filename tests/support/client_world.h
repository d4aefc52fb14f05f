/* SPDX-License-Identifier: Apache-2.0 */
/* client_world.h - a whole round in memory in which one site is a fkt_client on a state file, and can be closed and
 * opened again at any moment. The server is the real machine; the other sites are plain machines with known entropy. */
#ifndef FKT_TEST_CLIENT_WORLD_H
#define FKT_TEST_CLIENT_WORLD_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/client.h"

#include "crypto/entropy.h"
#include "crypto/hash.h"
#include "pipeline/contribution.h"
#include "tests/support/scratch.h"
#include "tests/support/small_federation.h"

#include <unistd.h>

enum { AW_SITES = 5, AW_ME = 3, AW_MESSAGES = 16, AW_NUMBERS = FED_CLASSES * FED_BLOCK };
#define AW_SEED UINT64_C(9)
#define AW_DATASET "a site's images"

struct aw_other {
    struct fkt_sa_client *client;
    struct fkt_sa_site brings;
    struct fkt_entropy_seeded own[2];
    struct fkt_entropy keys, noise;
    uint32_t index;
    struct aw *world;
    int gone;
};

struct aw {
    struct small_federation f;
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    int64_t moments[AW_NUMBERS];
    struct fkt_records *records; /* one image, whose digest is all a5 */
    char state[200], ledger[200];
    struct fkt_client *a;
    struct fkt_endpoint c;

    struct fkt_sa_server *server;
    uint8_t round[FKT_MAILBOX_ROUND];
    struct aw_other other[AW_SITES];
    uint8_t *in, *out, *newest; /* newest: the letter that waits for this site */
    size_t newest_len;
    uint32_t newest_index;
    char said[AW_MESSAGES][FKT_HASH_HEX]; /* what this site said to letter i; "": nothing */
    int said_twice;                       /* two different answers to one letter */
};

/* seed NULL: keys from the operating system. */
void aw_init(struct aw *w, struct scratch *s, enum fkt_noise_place noise, const uint64_t *seed);
void aw_release(struct aw *w);
void aw_records(struct fkt_records **out, uint8_t byte);
void aw_forget(const struct aw *w); /* the files go: another life */

/* ---- the site ---- */
struct fkt_client_spec aw_spec(const struct aw *w);
FKT_MUST_USE fkt_status aw_open(struct aw *w);
void aw_close(struct aw *w);
void aw_crash(struct aw *w); /* without ceremony, and back */

/* ---- a round ---- */
void aw_begin_round(struct aw *w, uint8_t name);
/* The server speaks and the others answer, until all wait for this site or the round is over. */
void aw_pump(struct aw *w);
struct fkt_message aw_message(const struct aw *w);
int aw_has_news(const struct aw *w); /* 1 when the server has something that the site has not */
FKT_MUST_USE fkt_status aw_recv(struct aw *w);
/* Brings what waits at the site to the server; *taken as an HTTP server would say. */
FKT_MUST_USE fkt_status aw_carry(struct aw *w, int *taken);
int aw_step(struct aw *w); /* one step of the conversation; 0 when there is none left */
void aw_run(struct aw *w);
FKT_MUST_USE fkt_status aw_tell(struct aw *w, enum fkt_stage stage, fkt_status lost); /* an empty answer */

/* ---- the file ---- */
/* 1 when it, or its log, holds these bytes. Looks from a process of its own: one that closes a file loses its locks. */
int aw_file_holds(const char *path, const void *what, size_t n);
void aw_seed(const struct aw *w, uint8_t seed[32]); /* of the round under way, of a site that is closed */

#endif
