/* SPDX-License-Identifier: Apache-2.0 */
/* key_file.h - who somebody is: a secret key in a file of its own, and the public part that is sent to the operator.
 * To be called before other threads use jansson: its free function is another one meanwhile (key_file.c). */
#ifndef FKT_TASK_KEY_FILE_H
#define FKT_TASK_KEY_FILE_H

#include "base/status.h"

#include "fedkt/secagg.h"

#include <stdint.h>

#define CLI_KEY_NAME 128 /* bytes of a name, with the NUL */

/* What is sent away. */
struct cli_site {
    char name[CLI_KEY_NAME]; /* "": none */
    uint8_t key[FKT_SA_KEY];
};
/* What stays. Wipe it as soon as it is not needed any more, whether it was loaded or not. */
struct cli_key {
    struct cli_site site;
    uint8_t secret[FKT_SA_SECRET];
};
/* From the operating system. name NULL: none. */
FKT_MUST_USE fkt_status cli_key_make(struct cli_key *out, const char *name);
/* "fedkt.key/1", 0600. With force it takes the place of a key file, and of nothing else; *old (may be NULL) is whose it
 * was, with a key of zeros where there was none. */
FKT_MUST_USE fkt_status cli_key_save(const struct cli_key *k, const char *path, int force, struct cli_site *old);
/* Refuses a file that anybody but its owner can read. */
FKT_MUST_USE fkt_status cli_key_load(struct cli_key *out, const char *path);
void cli_key_wipe(struct cli_key *k);

/* "fedkt.site/1": name and public key, with a proof that whoever wrote it holds the secret. Hostile when read. */
FKT_MUST_USE fkt_status cli_site_save(const struct cli_key *k, const char *path, int force);
FKT_MUST_USE fkt_status cli_site_load(struct cli_site *out, const char *path);
/* 64 hexadecimal digits, or the path of a public part. `option` names it in failures. */
FKT_MUST_USE fkt_status cli_site_key(const char *option, const char *text, uint8_t key[FKT_SA_KEY]);

/* The first twenty digits of a key in fours, to be read over the telephone: 2^80 trials to meet them by chance. */
#define CLI_FINGERPRINT 25
void cli_fingerprint(char out[CLI_FINGERPRINT], const uint8_t key[FKT_SA_KEY]);

#endif
