/* SPDX-License-Identifier: Apache-2.0 */
/* secagg.h - keys, keystreams and phases of secure aggregation (docs/protocol.md), as tasks and reports name them. The
 * protocol's state machines are in advanced/secagg.h. */
#ifndef FEDKT_SECAGG_H
#define FEDKT_SECAGG_H

#include "fedkt/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_SA_SITES_MAX 65536U
#define FKT_SA_ROUND 16   /* bytes of a round's name */
#define FKT_SA_SESSION 32 /* bytes of a session */
#define FKT_SA_KEY 32     /* bytes of a roster key (Ed25519) */
#define FKT_SA_SECRET 64  /* bytes of a site's signing key: 32-byte seed (RFC 8032), then the public key */

enum fkt_sa_keystream { FKT_SA_KEYSTREAM_AES_256_CTR = 0, FKT_SA_KEYSTREAM_CHACHA20 = 1 };

enum fkt_sa_state {
    FKT_SA_STATE_BEGIN = 0,
    FKT_SA_STATE_ADVERTISE,
    FKT_SA_STATE_COIN,
    FKT_SA_STATE_SHARE,
    FKT_SA_STATE_MASK,
    FKT_SA_STATE_CONFIRM,
    FKT_SA_STATE_REVEAL,
    FKT_SA_STATE_UNMASK, /* server only */
    FKT_SA_STATE_DONE,
    FKT_SA_STATE_FAILED
};
FKT_API const char *fkt_sa_state_name(enum fkt_sa_state s);

struct fkt_entropy; /* not public: pass NULL, which means the operating system; others are for this library's tests */

/* A site's identity: the public key goes into the roster, the secret stays at the site. */
FKT_API FKT_MUST_USE fkt_status fkt_sa_identity(uint8_t key[FKT_SA_KEY], uint8_t secret[FKT_SA_SECRET],
                                                struct fkt_entropy *entropy);

#ifdef __cplusplus
}
#endif
#endif
