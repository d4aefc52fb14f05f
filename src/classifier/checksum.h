/* SPDX-License-Identifier: Apache-2.0 */
/* checksum.h - a 64-bit checksum against accidents, not against malice. */
#ifndef FKT_CLASSIFIER_CHECKSUM_H
#define FKT_CLASSIFIER_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

struct fkt_checksum {
    uint64_t h;
};
void fkt_checksum_init(struct fkt_checksum *c);
/* The length counts too: "ab", "c" is not "a", "bc". */
void fkt_checksum_add(struct fkt_checksum *c, const void *data, size_t len);
uint64_t fkt_checksum_value(const struct fkt_checksum *c);

#endif
