/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.h - sources of secret randomness: the operating system in production, a seeded stream in tests. */
#ifndef FKT_CRYPTO_ENTROPY_H
#define FKT_CRYPTO_ENTROPY_H

#include "base/status.h"
#include "base/wipe.h" /* fkt_wipe, for every file that holds keys */

#include <stddef.h>
#include <stdint.h>

/* A source of uniform bytes. `secure` is 0 for seeded sources; every artifact made from one must state it. */
struct fkt_entropy {
    fkt_status (*fill)(void *self, uint8_t *out, size_t len);
    void *self;
    int secure;
};

/* The operating system's generator (getrandom). No state, nothing to free. */
void fkt_entropy_os(struct fkt_entropy *e);

/* A ChaCha20 stream from a 64-bit seed and a stream number: the same bytes every time. INSECURE: tests and
 * --insecure-seed only. */
struct fkt_entropy_seeded {
    uint8_t key[32];
    uint64_t block; /* next 64-byte block of the stream */
    uint8_t buf[1024];
    size_t left;
};
void fkt_entropy_seeded_init(struct fkt_entropy_seeded *s, uint64_t seed, uint64_t stream);
void fkt_entropy_seeded(struct fkt_entropy *e, struct fkt_entropy_seeded *s); /* borrows s for e's life */

/* The same stream under a 256-bit key from the operating system: as secure as the key is secret, and reproducible after
 * a crash. Streams of one key are independent. The owner of the key must wipe it. */
#define FKT_ENTROPY_KEY 32
void fkt_entropy_keyed_init(struct fkt_entropy_seeded *s, const uint8_t key[FKT_ENTROPY_KEY], uint64_t stream);
void fkt_entropy_keyed(struct fkt_entropy *e, struct fkt_entropy_seeded *s); /* borrows s for e's life */

#endif
