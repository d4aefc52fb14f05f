/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the part of a task that says where and until when, and the operator's signature under all of it. */
#ifndef FEDKT_SERVICE_H
#define FEDKT_SERVICE_H

#include "fedkt/secagg.h"
#include "fedkt/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_SERVICE_PIN 53 /* "sha256//", 44 characters of base64, NUL */

struct fkt_service {
    char address[256]; /* "https://host:port", no path; "": the task has no service, nothing below counts */
    char
        pin[FKT_SERVICE_PIN]; /* SHA-256 of the server's public key (SPKI, DER), as curl writes it; "": not known yet */
    uint32_t gather_seconds;  /* once enough sites are there, how long the others are waited for */
    uint32_t phase_seconds;   /* how long each phase of a round waits for a site */
    uint32_t rounds;          /* how often the server tries, at most FKT_LEDGER_ROUNDS */
    uint64_t expires;         /* seconds since 1970; nobody begins a round of this task after it; 0: never */
    char **names;             /* (federation.sites) what people call the sites, owned; NULL: they have none */
    int seeded;               /* 1: EVERYTHING random comes from insecure_seed; nothing made of it is private */
    uint64_t insecure_seed;   /* below 2^53 */
};
/* A seed makes a federation repeatable, for tests. Whoever draws from it says so: fkt_release_make gets
 * &service.insecure_seed and fkt_release_gather 1 when `seeded`, so that release, certificate and all that is made of
 * them say NOT PRIVATE; a ledger's charge has insecure_seed 1. */
struct fkt_service_choices {
    const char *address;
    const char *pin;                                /* NULL: not known yet */
    uint32_t gather_seconds, phase_seconds, rounds; /* 0: 300, 120, 8 */
    uint64_t expires;
    const char *const *names; /* (sites) borrowed; NULL: none */
    const uint64_t *insecure_seed;
};

/* Ed25519 over "fedkt-task-1" and the task's hash (docs/formats.md). */
struct fkt_signature {
    int there; /* 0: the task is not signed */
    uint8_t key[FKT_SA_KEY];
    uint8_t bytes[64];
};

struct fkt_task;
FKT_API FKT_MUST_USE fkt_status fkt_task_sign(struct fkt_task *t, const uint8_t secret[FKT_SA_SECRET]);
/* operator NULL: any signer. FKT_E_STATE: not signed. FKT_E_PEER_AUTH: signature invalid, or by another key. */
FKT_API FKT_MUST_USE fkt_status fkt_task_verify(const struct fkt_task *t, const uint8_t *operator_key /* (32) */);
/* Puts the pin of a service in; the hash changes and a signature goes. */
FKT_API FKT_MUST_USE fkt_status fkt_task_pin(struct fkt_task *t, const char *pin);
/* The index of a key on the roster; FKT_E_MISMATCH when it is not there. */
FKT_API FKT_MUST_USE fkt_status fkt_task_site(const struct fkt_task *t, const uint8_t key[FKT_SA_KEY], uint32_t *site);

/* The stage of a task at its server. */
enum fkt_stage {
    FKT_STAGE_GATHERING = 0, /* waits for sites; nobody has sent anything */
    FKT_STAGE_RUNNING,       /* a round is under way */
    FKT_STAGE_FINISHING,     /* the last message is there; masks come off, files are made */
    FKT_STAGE_RELEASED,      /* over: the release is there, and `file` has all files */
    FKT_STAGE_GIVEN_UP       /* over: there will be none, and `file` has transparency.jsonl alone */
};
FKT_API const char *fkt_stage_name(enum fkt_stage s);

#ifdef __cplusplus
}
#endif
#endif
