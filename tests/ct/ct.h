/* SPDX-License-Identifier: Apache-2.0 */
/* ct.h - marks secrets as undefined memory, so that valgrind reports every branch or address that depends on one.
 *
 * The idea is Adam Langley's ctgrind. memcheck follows undefined bits through arithmetic and reports them only when
 * they decide a jump or an address, which is exactly what constant-time code must not do. SECRET sets the mark, PUBLIC
 * removes it where a result is meant to be known, and ct_tainted checks it, so that each case can show that its secrets
 * reached the result. Branches that are public by design inside a library are listed in verdicts.supp, each with its
 * reason. */
#ifndef FKT_TEST_CT_H
#define FKT_TEST_CT_H

#include "crypto/entropy.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define CT_AVAILABLE 1
#endif
#endif

#ifdef CT_AVAILABLE
#define SECRET(p, n) VALGRIND_MAKE_MEM_UNDEFINED((p), (n))
#define PUBLIC(p, n) VALGRIND_MAKE_MEM_DEFINED((p), (n))
#else
#define RUNNING_ON_VALGRIND 0
#define SECRET(p, n) ((void)(p), (void)(n))
#define PUBLIC(p, n) ((void)(p), (void)(n))
#endif

enum { CT_SKIP = 77, CT_MOST = 65536 };

/* How many of the n bytes have an undefined bit. */
static inline size_t ct_marked(const void *p, size_t n)
{
    size_t marked = 0;
#ifdef CT_AVAILABLE
    static uint8_t bits[CT_MOST];
    if (n > CT_MOST || VALGRIND_GET_VBITS(p, bits, n) != 1) return 0;
    for (size_t i = 0; i < n; i++) marked += bits[i] != 0;
#else
    (void)p;
    (void)n;
#endif
    return marked;
}

/* An entropy's fill: bytes of the seeded stream `self`, marked as they are drawn. */
static inline fkt_status ct_fill(void *self, uint8_t *out, size_t len)
{
    struct fkt_entropy e;
    fkt_status st;
    fkt_entropy_seeded(&e, self);
    st = e.fill(e.self, out, len);
    SECRET(out, len);
    return st;
}

static inline int ct_tainted(const void *p, size_t n) { return ct_marked(p, n) == n; }

/* The case fails when `cond`, which must be public, does not hold. */
#define CT_CHECK(cond)                                                                                                 \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);                                       \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

struct ct_case {
    const char *name;
    int (*run)(void); /* 0: success */
};

/* Runs them all. Exit 77 outside valgrind: nothing is checked there. */
static inline int ct_main(const struct ct_case *cases, size_t n)
{
    int failed = 0;
    if (!RUNNING_ON_VALGRIND) {
        fprintf(stderr, "skipped: needs valgrind and its header\n");
        return CT_SKIP;
    }
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
#ifdef CT_AVAILABLE
        before = VALGRIND_COUNT_ERRORS;
#endif
        int bad = cases[i].run();
#ifdef CT_AVAILABLE
        if (VALGRIND_COUNT_ERRORS != before) bad = 1;
#endif
        (void)before;
        fprintf(stderr, "%s %s\n", bad ? "FAILED" : "ok", cases[i].name);
        failed |= bad;
    }
    return failed;
}

#endif
