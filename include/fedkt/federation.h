/* SPDX-License-Identifier: Apache-2.0 */
/* federation.h - who adds up with whom: the part of a task that the aggregation protocol runs on (docs/protocol.md 1).
 *
 * Noise in shares: every site adds its own before masking, and nobody ever holds a total without noise. Central noise:
 * the masks hide every site, and the party that removes them sees the exact total and must add the noise.
 */
#ifndef FEDKT_FEDERATION_H
#define FEDKT_FEDERATION_H

#include "fedkt/secagg.h"
#include "fedkt/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_noise_place { FKT_NOISE_PLACE_DISTRIBUTED = 0, FKT_NOISE_PLACE_CENTRAL = 1 };

/* A bound for tasks whose author knows none: the same for every set, so it says nothing of this one. In a task
 * without a server it does not count as a public bound on the records where a promise is weighed (fkt_task_promise). */
#define FKT_RECORDS_UNKNOWN ((uint64_t)1 << 20)

struct fkt_federation {
    uint32_t sites; /* N; 0: the task has no federation, and nothing below means anything */
    uint32_t dropped;
    uint32_t corrupt;           /* every curious participant counts; at least 1 where the noise is in shares */
    uint32_t security, failure; /* bits: a round keeps its promises, and ends well, except with 2^-these */
    uint32_t attempts;
    uint64_t records; /* the most records of one class that a site may hold; FKT_RECORDS_UNKNOWN above */
    enum fkt_sa_keystream keystream;
    enum fkt_noise_place noise;
    uint32_t degree, threshold; /* from here on derived */
    uint32_t bits;
    uint64_t bound;
    uint8_t *roster; /* (sites, 32) owned */
};

/* What a person chooses. */
struct fkt_federation_choices {
    uint32_t sites, dropped, corrupt;
    uint32_t security, failure, attempts; /* 0: 40, 20, 8 */
    uint64_t records;
    enum fkt_sa_keystream keystream;
    enum fkt_noise_place noise;
    const uint8_t *roster; /* (sites, 32) borrowed */
};

/* A task in cohorts (docs/scale.md): its sites are divided over several federations, each with a task of its own, and
 * their releases are added up. The site with public key k is in cohort floor(number * h / 2^64), where h is the first
 * eight bytes, read as a big-endian number, of SHA-256("fedkt.cohort/1\n", seed, k). */
#define FKT_DIVISION_WHOLE UINT32_MAX
struct fkt_division {
    uint32_t number;  /* of cohorts, 2 or more; 0: the task is not divided, and nothing below means anything */
    uint32_t index;   /* of this one; FKT_DIVISION_WHOLE: the task of the sum, which has no federation itself */
    uint32_t sites;   /* of all cohorts together */
    uint64_t records; /* as in the federation of every cohort */
    uint8_t seed[32]; /* public randomness that was drawn after the roster was fixed */
    uint8_t roster_sha256[32]; /* of all sites' keys, as fkt_division_roster computes it */
};

FKT_API const char *fkt_noise_name(enum fkt_noise_place n);
FKT_API int fkt_noise_parse(const char *s); /* -1 when unknown */
FKT_API const char *fkt_keystream_name(enum fkt_sa_keystream k);
FKT_API int fkt_keystream_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
