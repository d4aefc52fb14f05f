/* SPDX-License-Identifier: Apache-2.0 */
/* omp_team.c - our own loops on the threads that oneDNN's kernels run on.
 *
 * Why not fkt_parallel: oneDNN's OpenMP threads spin for a while after each kernel, so other threads would compete with
 * them for the processors, 40 times a step. GNU OpenMP's entry point for a parallel region is part of its stable binary
 * interface (LLVM's runtime has it too), and calling it needs no pragmas, which clang would compile for another
 * runtime. Cost of a region: about 2 us while the threads spin, 50 us when they sleep.
 *
 * The two atomics describe the runtime's barriers to thread checkers, which cannot see them. */
#include "nn/onednn/omp_team.h"

#include <stdatomic.h>

void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

struct region {
    void (*fn)(void *ctx, unsigned member, unsigned members);
    void *ctx;
    atomic_int begun, done;
};

static void enter(void *data)
{
    struct region *r = data;
    (void)atomic_load(&r->begun);
    r->fn(r->ctx, (unsigned)omp_get_thread_num(), (unsigned)omp_get_num_threads());
    atomic_fetch_add(&r->done, 1);
}

void fkt_team_run(unsigned threads, void (*fn)(void *ctx, unsigned member, unsigned members), void *ctx)
{
    struct region r = {.fn = fn, .ctx = ctx};
    if (threads <= 1) {
        fn(ctx, 0, 1);
        return;
    }
    atomic_store(&r.begun, 1);
    GOMP_parallel(enter, &r, threads, 0);
    (void)atomic_load(&r.done);
}
