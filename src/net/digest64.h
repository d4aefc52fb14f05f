/* SPDX-License-Identifier: Apache-2.0 */
/* digest64.h - a SHA-256 as base64, the way that pins and content security policies are written. */
#ifndef FKT_NET_DIGEST64_H
#define FKT_NET_DIGEST64_H

#include <stddef.h>

#define FKT_DIGEST64 45 /* 44 characters and the NUL */

void fkt_digest64(char out[FKT_DIGEST64], const void *data, size_t len);

#endif
