/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - who takes part: a secret key in a file of its own, its public part, and the roster that the operator makes
 * of the public parts of all sites.
 *
 *   site      fkt_key_make -> fkt_key_save (stays there)
 *                          -> fkt_site_key_save (is sent to the operator, with a proof of possession)
 *   operator  fkt_site_key_load (checks the proof) -> fkt_roster_enroll -> fkt_roster_load -> fkt_roster_apply
 *             -> fkt_task_make -> fkt_task_sign with a key file of the same kind
 */
#ifndef FEDKT_KEYS_H
#define FEDKT_KEYS_H

#include "fedkt/secagg.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_KEY_NAME 128 /* bytes of a name, with the NUL */

/* The public part. */
struct fkt_site_key {
    char name[FKT_KEY_NAME]; /* "": none */
    uint8_t key[FKT_SA_KEY];
};
/* The whole key. Clear it as soon as it is not needed any more, whether it was loaded or not. */
struct fkt_key {
    struct fkt_site_key site;
    uint8_t secret[FKT_SA_SECRET];
};
/* A new key from the operating system's randomness. name NULL: none. FKT_E_ARG: the name is not plain text. */
FKT_API FKT_MUST_USE fkt_status fkt_key_make(struct fkt_key *out, const char *name);
/* "fedkt.key/1" (docs/formats.md), mode 0600. force replaces a key file and nothing else (FKT_E_EXISTS); *old (may be
 * NULL) is the public part of the key that was replaced, with a key of zeros where there was none. */
FKT_API FKT_MUST_USE fkt_status fkt_key_save(const struct fkt_key *k, const char *path, int force,
                                             struct fkt_site_key *old);
/* FKT_E_STATE: another user can read the file, or owns it. FKT_E_FORMAT: it is not a key file. */
FKT_API FKT_MUST_USE fkt_status fkt_key_load(struct fkt_key *out, const char *path);
FKT_API void fkt_key_clear(struct fkt_key *k); /* wipes */

/* "fedkt.site/1": name and public key, with a signature over both that proves possession of the secret. */
FKT_API FKT_MUST_USE fkt_status fkt_site_key_save(const struct fkt_key *k, const char *path, int force);
/* Hostile input. FKT_E_PEER_AUTH: the proof is false. */
FKT_API FKT_MUST_USE fkt_status fkt_site_key_load(struct fkt_site_key *out, const char *path);

/* The first twenty hexadecimal digits of a key in groups of four, to be compared by telephone: another key with the
 * same fingerprint takes 2^80 trials. */
#define FKT_FINGERPRINT 25
FKT_API void fkt_fingerprint(char out[FKT_FINGERPRINT], const uint8_t key[FKT_SA_KEY]);

/* ---- roster: a text file with a key and a name per line; the order of the lines numbers the sites ---- */

struct fkt_roster {
    uint32_t n;
    uint8_t *keys;      /* (n, FKT_SA_KEY) in the order of the lines */
    const char **names; /* (n) NULL: the line has none */
    size_t *lines;      /* (n) line of each, from 1 */
    char *path, *text;  /* the names point into text */
};
/* At least three sites. FKT_E_FORMAT names the line of whatever is wrong with the file. */
FKT_API FKT_MUST_USE fkt_status fkt_roster_load(struct fkt_roster *out, const char *path);
FKT_API void fkt_roster_clear(struct fkt_roster *r);
/* Adds n sites to the end of the file, which is made when it is not there; all its other bytes stay. FKT_E_EXISTS: a
 * key or a name is there already or is given twice; then nothing changes. *total: sites on the roster now. A second
 * process that enrolls at the same time waits. */
FKT_API FKT_MUST_USE fkt_status fkt_roster_enroll(const char *path, const struct fkt_site_key *sites, uint32_t n,
                                                  uint32_t *total);
/* Puts the sites and their keys into *federation and their names into *service (either may be NULL), which borrow them.
 * FKT_E_FORMAT: some sites have a name and others do not. */
struct fkt_federation_choices; /* federation.h */
struct fkt_service_choices;    /* service.h */
FKT_API FKT_MUST_USE fkt_status fkt_roster_apply(const struct fkt_roster *r, struct fkt_federation_choices *federation,
                                                 struct fkt_service_choices *service);

#ifdef __cplusplus
}
#endif
#endif
