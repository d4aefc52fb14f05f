/* SPDX-License-Identifier: Apache-2.0 */
/* sa_json.h - transcripts and vectors of the aggregation protocol (oracle/secagg_transcript.py has their form): what
 * stands in them as JSON, as the C code wants it. Everything here fails the running test when the file is not right. */
#ifndef FKT_TEST_SA_JSON_H
#define FKT_TEST_SA_JSON_H

#include "fedkt/advanced/secagg.h"

#include "crypto/entropy.h"

#include <jansson.h>

json_t *sa_json_load(const char *name); /* tests/vectors/secagg/<name>.json; json_decref it */
json_t *sa_json_get(const json_t *object, const char *key);
uint64_t sa_json_number(const json_t *object, const char *key);
const char *sa_json_text(const json_t *object, const char *key);

struct sa_bytes { /* own memory */
    uint8_t *p;
    size_t n;
};
struct sa_bytes sa_json_bytes(const json_t *hex);                             /* free p */
void sa_json_fixed(const json_t *o, const char *key, uint8_t *out, size_t n); /* exactly n bytes */
void sa_json_check(const uint8_t *got, size_t n, const json_t *hex, const char *what);
int64_t *sa_json_numbers(const json_t *array, size_t *n); /* free it */

void sa_json_params(struct fkt_sa_params *p, const json_t *params); /* gives p->roster; sa_json_params_free */
void sa_json_params_free(struct fkt_sa_params *p);

/* One site of a transcript, from its secrets. */
struct sa_actor {
    struct fkt_sa_client *client;
    struct fkt_sa_site doors;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    int64_t *x;
    size_t length;
    uint8_t *out;
    size_t cap, len; /* of its last answer */
};
void sa_actor_init(struct sa_actor *a, const struct fkt_sa_params *p, uint32_t index, const json_t *secrets);
void sa_actor_release(struct sa_actor *a);
/* Delivers; when it wants to say something, that stands in out and len (else len is 0). */
fkt_status sa_actor_recv(struct sa_actor *a, const uint8_t *msg, size_t len);

#endif
