/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_run.c - the threads of a block as fibers of the calling thread, block after block.
 *
 * A fiber runs thread after thread until one waits at a barrier; then the fiber belongs to that thread and another one
 * continues with the next thread. A kernel without barriers therefore costs one fiber. Misuse that a card would punish
 * with a hang or with garbage (a barrier that not all threads reach, a shuffle of a partial warp) ends the process with
 * a message. */
#include "cuda_host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined __x86_64__ || defined __SANITIZE_THREAD__
#include <ucontext.h>
#define WITH_UCONTEXT 1
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

enum { MAX_THREADS = 1024, LANES = 32, STACK = 256 * 1024, MAX_SHARED = 227 * 1024 };

__thread fkt_host_dim3 fkt_host_thread, fkt_host_block, fkt_host_threads, fkt_host_blocks;

struct context {
#ifdef WITH_UCONTEXT
    ucontext_t at;
#else
    void *sp;
#endif
    char *stack;
    size_t bytes;
#ifdef __SANITIZE_ADDRESS__
    void *fake;
#endif
#ifdef __SANITIZE_THREAD__
    void *tsan;
#endif
};

enum state { READY = 0, AT_BARRIER, AT_EXCHANGE, DONE };
struct thread {
    struct context *fiber; /* NULL: not begun, or done */
    enum state state;
    unsigned exchanges; /* so far */
    fkt_host_dim3 index;
};

/* One launch at a time on each host thread. */
struct run {
    struct context *home;
    struct context *spare[MAX_THREADS + 1];
    unsigned n_spare;
    struct thread thread[MAX_THREADS];
    uint64_t value[2][MAX_THREADS];
    unsigned n, now;
    unsigned next; /* position in the order of the next thread to begin */
    char shared[MAX_SHARED] __attribute__((aligned(256)));
    const char *kernel;
    void (*body)(const void *);
    const void *arguments;
    int busy;
};
static __thread struct run *here;
static pthread_key_t at_exit; /* of a host thread: its `here` is freed */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void stop(const char *what)
{
    fprintf(stderr, "cuda emulation: kernel %s: %s\n", here ? here->kernel : "?", what);
    abort();
}

#ifndef WITH_UCONTEXT
/* Saves what the calling convention keeps, exchanges the stack pointer, restores. */
void fkt_host_swap(void **save, void *to);
__asm__(
    ".text\n.p2align 4\n.globl fkt_host_swap\n.hidden fkt_host_swap\n.type fkt_host_swap,@function\nfkt_host_swap:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n.size fkt_host_swap,.-fkt_host_swap\n");
#endif

static void swap_to(struct context *from, struct context *to)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->fake, to->stack, to->bytes);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
#ifdef WITH_UCONTEXT
    swapcontext(&from->at, &to->at);
#else
    fkt_host_swap(&from->sp, to->sp);
#endif
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}

static unsigned in_order(unsigned position) { return fkt_host_machine.reverse ? here->n - 1 - position : position; }

static void become(unsigned t)
{
    here->now = t;
    fkt_host_thread = here->thread[t].index;
}

/* A fiber's life: threads that have not begun, until there are none; then back to the scheduler, for the next block. */
static void fiber_main(void)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, (const void **)&here->home->stack, &here->home->bytes);
#endif
    for (;;) {
        struct context *self = here->thread[here->now].fiber;
        while (here->next < here->n) {
            unsigned t = in_order(here->next++);
            here->thread[t].fiber = self;
            become(t);
            here->body(here->arguments);
            t = here->now; /* the same thread: only its own fiber resumes it */
            here->thread[t].state = DONE;
            here->thread[t].fiber = NULL;
        }
        here->spare[here->n_spare++] = self;
        swap_to(self, here->home);
    }
}

static struct context *fiber_new(void)
{
    struct context *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->bytes = STACK;
    c->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->stack == MAP_FAILED) abort();
#ifdef WITH_UCONTEXT
    getcontext(&c->at);
    c->at.uc_stack.ss_sp = c->stack;
    c->at.uc_stack.ss_size = c->bytes;
    c->at.uc_link = NULL;
    makecontext(&c->at, fiber_main, 0);
#else
    {
        void **top = (void **)(c->stack + STACK) - 3; /* so that fiber_main finds the stack as a call leaves it */
        void (*entry)(void) = fiber_main;
        *top = NULL; /* where fiber_main would return to; it never does */
        memcpy(--top, &entry, sizeof entry);
        top -= 6; /* six registers */
        memset(top, 0, 6 * sizeof *top);
        c->sp = top;
    }
#endif
#ifdef __SANITIZE_THREAD__
    c->tsan = __tsan_create_fiber(0);
#endif
    return c;
}

static void wait_as(enum state s)
{
    struct thread *t = &here->thread[here->now];
    t->state = s;
    swap_to(t->fiber, here->home);
}

void fkt_host_barrier(void) { wait_as(AT_BARRIER); }

/* Two sets of values: a thread writes to a set again only after all of its warp have read it. */
uint64_t fkt_host_exchange(uint64_t value, unsigned lane)
{
    unsigned t = here->now, warp = t / LANES * LANES, set = here->thread[t].exchanges++ & 1;
    if (here->n % LANES) stop("shuffle in a block with a partial warp");
    here->value[set][t] = value;
    wait_as(AT_EXCHANGE);
    return here->value[set][warp + lane % LANES];
}

void *fkt_host_shared(void) { return here->shared; }

/* Lets the threads of each warp that have all arrived at a shuffle go on, and the block when all are at a barrier. */
static int release(void)
{
    unsigned waiting = 0, done = 0, released = 0;
    for (unsigned w = 0; w < here->n; w += LANES) {
        unsigned end = w + LANES < here->n ? w + LANES : here->n, at = 0, ended = 0;
        for (unsigned t = w; t < end; t++) {
            at += here->thread[t].state == AT_EXCHANGE;
            ended += here->thread[t].state == DONE;
            waiting += here->thread[t].state == AT_BARRIER;
        }
        done += ended;
        if (at && at + ended == end - w && ended) stop("shuffle that not all threads of the warp reach");
        if (at != end - w) continue;
        for (unsigned t = w; t < end; t++) here->thread[t].state = READY;
        released = 1;
    }
    if (done == here->n) return 0;
    if (waiting && waiting + done == here->n) {
        if (done) stop("barrier that not all threads of the block reach");
        for (unsigned t = 0; t < here->n; t++) here->thread[t].state = READY;
        released = 1;
    }
    if (!released) stop("threads wait at different barriers");
    return 1;
}

static void run_block(size_t shared)
{
    here->next = 0;
    memset(here->shared, 0xff, shared); /* reading it before writing it gives NaN */
    for (unsigned t = 0; t < here->n; t++) {
        here->thread[t].state = READY;
        here->thread[t].fiber = NULL;
        here->thread[t].exchanges = 0;
        here->thread[t].index.x = t % fkt_host_threads.x;
        here->thread[t].index.y = t / fkt_host_threads.x % fkt_host_threads.y;
        here->thread[t].index.z = t / fkt_host_threads.x / fkt_host_threads.y;
    }
    do {
        for (unsigned p = 0; p < here->n; p++) {
            unsigned t = in_order(p);
            if (here->thread[t].state != READY) continue;
            if (!here->thread[t].fiber)
                here->thread[t].fiber = here->n_spare ? here->spare[--here->n_spare] : fiber_new();
            become(t);
            swap_to(here->home, here->thread[t].fiber);
        }
    } while (release());
}

/* All fibers of a run that is not busy are spare. */
static void run_free(void *p)
{
    struct run *r = p;
    for (unsigned i = 0; i < r->n_spare; i++) {
        munmap(r->spare[i]->stack, STACK);
#ifdef __SANITIZE_THREAD__
        __tsan_destroy_fiber(r->spare[i]->tsan);
#endif
        free(r->spare[i]);
    }
    free(r->home);
    free(r);
}

static void make_key(void)
{
    if (pthread_key_create(&at_exit, run_free)) abort();
}

static struct run *run_new(void)
{
    struct run *r = aligned_alloc(256, (sizeof *r + 255) / 256 * 256);
    if (!r) abort();
    memset(r, 0, sizeof *r);
    r->home = calloc(1, sizeof *r->home);
    if (!r->home) abort();
#ifdef __SANITIZE_THREAD__
    r->home->tsan = __tsan_get_current_fiber();
#endif
    if (pthread_once(&once, make_key) || pthread_setspecific(at_exit, r)) abort();
    return r;
}

struct launch {
    const char *kernel;
    fkt_host_dim3 grid, block;
    size_t shared;
    void (*body)(const void *);
    /* the arguments follow */
} __attribute__((aligned(16)));

static void run_grid(const void *p)
{
    const struct launch *l = p;
    unsigned blocks = l->grid.x * l->grid.y * l->grid.z;
    if (!here) here = run_new();
    if (here->busy) stop("a kernel that launches a kernel");
    here->busy = 1;
    here->kernel = l->kernel;
    here->n = l->block.x * l->block.y * l->block.z;
    here->body = l->body;
    here->arguments = l + 1;
    fkt_host_threads = l->block;
    fkt_host_blocks = l->grid;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned b = fkt_host_machine.reverse ? blocks - 1 - i : i;
        fkt_host_block.x = b % l->grid.x;
        fkt_host_block.y = b / l->grid.x % l->grid.y;
        fkt_host_block.z = b / l->grid.x / l->grid.y;
        run_block(l->shared);
    }
    here->busy = 0;
}

void fkt_host_launch_c(const char *name, fkt_host_dim3 grid, fkt_host_dim3 block, size_t shared, cudaStream_t stream,
                       void (*body)(const void *), const void *arguments, size_t bytes)
{
    struct launch l = {name, grid, block, shared, body};
    size_t threads = (size_t)block.x * block.y * block.z;
    char *whole;
    if (!threads || threads > MAX_THREADS || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 ||
        grid.x > 0x7fffffff || shared > 48 * 1024) {
        fkt_host_set_error(cudaErrorInvalidConfiguration);
        return;
    }
    whole = aligned_alloc(16, (sizeof l + bytes + 15) / 16 * 16);
    if (!whole) abort();
    memcpy(whole, &l, sizeof l);
    memcpy(whole + sizeof l, arguments, bytes);
    fkt_host_submit(stream, run_grid, whole, sizeof l + bytes);
    free(whole);
}
