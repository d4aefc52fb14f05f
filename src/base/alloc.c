/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - calloc with a counter and injected faults.
 * As in SQLite's tests: an error path that never runs is broken, so tests fail the 1st, 2nd, 3rd ... allocation of an
 * operation until none fails, and check fkt_alloc_live() each time. Counters are atomic; their cost is negligible
 * beside malloc's. A second hook shows tests every freed block, so that they can search it for secrets. */
#include "base/alloc.h"

#include <malloc.h> /* malloc_usable_size */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_size_t live;
static atomic_size_t countdown; /* 0: no fault requested */
static atomic_int sticky_fault;
static _Atomic(void (*)(const void *, size_t)) watcher;

static int fault_now(void)
{
    size_t left = atomic_load(&countdown);
    while (left > 0) {
        if (left == 1 && atomic_load(&sticky_fault)) return 1;
        if (atomic_compare_exchange_weak(&countdown, &left, left - 1)) return left == 1;
    }
    return 0;
}

static fkt_status no_memory(size_t n, size_t size)
{
    return fkt_fail(FKT_E_NOMEM, "out of memory: cannot allocate %zu x %zu bytes", n, size);
}

void *fkt_malloc_raw(size_t size)
{
    void *p = fault_now() ? NULL : malloc(size ? size : 1);
    if (p) atomic_fetch_add(&live, 1);
    return p;
}

fkt_status fkt_alloc_bytes(void *pp, size_t n, size_t size)
{
    void *p = NULL;
    memcpy(pp, &p, sizeof p);
    if (n > SIZE_MAX / 2 / size) return no_memory(n, size);
    p = fault_now() ? NULL : calloc(n ? n : 1, size);
    if (!p) return no_memory(n, size);
    atomic_fetch_add(&live, 1);
    memcpy(pp, &p, sizeof p);
    return FKT_OK;
}

static void *move(void *old, size_t bytes)
{
    void *p = malloc(bytes);
    size_t had = old ? malloc_usable_size(old) : 0;
    if (p && old) {
        memcpy(p, old, had < bytes ? had : bytes);
        atomic_load (&watcher)(old, had);
        free(old);
    }
    return p;
}

fkt_status fkt_realloc_bytes(void *pp, size_t n, size_t size)
{
    void *old, *p;
    memcpy(&old, pp, sizeof old);
    if (n > SIZE_MAX / 2 / size) return no_memory(n, size);
    p = fault_now() ? NULL : atomic_load(&watcher) ? move(old, n ? n * size : size) : realloc(old, n ? n * size : size);
    if (!p) return no_memory(n, size);
    if (!old) atomic_fetch_add(&live, 1);
    memcpy(pp, &p, sizeof p);
    return FKT_OK;
}

fkt_status fkt_strdup(char **out, const char *s)
{
    size_t n = strlen(s) + 1;
    fkt_status st = fkt_alloc(out, n);
    if (st == FKT_OK) memcpy(*out, s, n);
    return st;
}

void fkt_free(void *p)
{
    if (!p) return;
    void (*seen)(const void *, size_t) = atomic_load(&watcher);
    if (seen) seen(p, malloc_usable_size(p));
    atomic_fetch_sub(&live, 1);
    free(p);
}

size_t fkt_alloc_size(const void *p) { return malloc_usable_size((void *)(uintptr_t)p); }

void fkt_alloc_watch(void (*freed)(const void *, size_t)) { atomic_store(&watcher, freed); }

void fkt_alloc_fault_at(size_t n, int sticky)
{
    atomic_store(&sticky_fault, sticky);
    atomic_store(&countdown, n);
}

uint64_t fkt_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

size_t fkt_alloc_live(void) { return atomic_load(&live); }
