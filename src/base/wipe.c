/* SPDX-License-Identifier: Apache-2.0 */
/* wipe.c - zeroes secrets before their memory is freed.
 *
 * explicit_bzero (glibc 2.25) is a memset that the compiler must keep. The block's size comes from the allocator, so no
 * caller can wipe too little. A block of secrets must not grow with fkt_realloc, which may leave the old block unwiped.
 * Registers, caches and the packing buffers inside BLAS are out of reach (docs/privacy.md, side
 * channels). Cost: a pass over the block. */
#include "base/wipe.h"

#include "base/alloc.h"

#include <string.h>

void fkt_wipe(void *p, size_t n) { explicit_bzero(p, n); }

void fkt_free_secret(void *p)
{
    if (p) fkt_wipe(p, fkt_alloc_size(p));
    fkt_free(p);
}
