/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.h - all memory allocation: zeroed, overflow-checked, counted, and able to fail on request. */
#ifndef FKT_BASE_ALLOC_H
#define FKT_BASE_ALLOC_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* *pp gets `n` zeroed elements, or NULL and FKT_E_NOMEM. n = 0 gives one element, so that NULL always means failure.
 * `pp` is the address of a typed pointer: fkt_alloc(&sum, dim). */
#define fkt_alloc(pp, n) fkt_alloc_bytes((pp), (n), sizeof **(pp))
/* *pp, made by fkt_alloc or NULL, grows or shrinks to n elements; new elements are NOT zeroed; on failure the old
 * block stays. */
#define fkt_realloc(pp, n) fkt_realloc_bytes((pp), (n), sizeof **(pp))

FKT_MUST_USE fkt_status fkt_alloc_bytes(void *pp, size_t n, size_t size);
FKT_MUST_USE fkt_status fkt_realloc_bytes(void *pp, size_t n, size_t size);
FKT_MUST_USE fkt_status fkt_strdup(char **out, const char *s); /* allocates *out */
void fkt_free(void *p);                                        /* NULL is fine */

/* A malloc-shaped interface for libraries that take an allocator (libpng): same counting and faults. */
void *fkt_malloc_raw(size_t size);

size_t fkt_alloc_size(const void *p); /* bytes of a block, at least those requested */

uint64_t fkt_machine_memory(void); /* bytes of memory in this machine; UINT64_MAX: unknown */

/* Tests only: the n-th allocation from now fails (and every later one too when `sticky`); 0 switches faults off. */
void fkt_alloc_fault_at(size_t n, int sticky);
size_t fkt_alloc_live(void); /* blocks allocated and not yet freed */
/* Tests only: `freed` is called with every block just before it is freed, on the thread that frees it; NULL switches it
 * off. While it is on, fkt_realloc moves every block, so that copies left by growth are seen too. */
void fkt_alloc_watch(void (*freed)(const void *block, size_t bytes));

#endif
