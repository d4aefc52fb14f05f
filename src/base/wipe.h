/* SPDX-License-Identifier: Apache-2.0 */
/* wipe.h - memory that held secrets: keys, shares, exact moments, latents, images. */
#ifndef FKT_BASE_WIPE_H
#define FKT_BASE_WIPE_H

#include <stddef.h>

void fkt_wipe(void *p, size_t n); /* zeroes that no compiler removes */
void fkt_free_secret(void *p);    /* wipes the whole block, then fkt_free; NULL is fine */

#endif
