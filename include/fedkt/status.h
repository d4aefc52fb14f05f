/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - how every fedkt call answers, and the sentence behind a failure.
 *
 * A call returns FKT_OK or a status from one of five families that a caller treats differently:
 *   1x  the caller asked for something impossible
 *   2x  the machine let us down
 *   3x  data (a file, an image, a tensor) is not what it claims to be
 *   4x  a peer in a protocol sent what it must not, or too few of them are left
 *   6x  the privacy budget does not allow it
 * Values are pinned; new ones fill the gaps. The sentence and the hint belong to the calling thread and stay valid
 * until its next failing fedkt call.
 */
#ifndef FEDKT_STATUS_H
#define FEDKT_STATUS_H

#if defined(__GNUC__)
#define FKT_API __attribute__((visibility("default")))
#define FKT_MUST_USE __attribute__((warn_unused_result))
#else
#define FKT_API
#define FKT_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    FKT_OK = 0,
    FKT_E_ARG = 10,         /* an argument is out of its documented range */
    FKT_E_STATE = 11,       /* the call does not fit what came before it */
    FKT_E_NOMEM = 20,       /* memory ran out */
    FKT_E_IO = 21,          /* a file could not be read or written */
    FKT_E_EXISTS = 22,      /* the output is there already */
    FKT_E_ENTROPY = 23,     /* the operating system gave no randomness */
    FKT_E_STOPPED = 24,     /* the caller's progress hook asked to stop */
    FKT_E_FORMAT = 30,      /* a file breaks its format */
    FKT_E_NUMERIC = 31,     /* a NaN, an infinity or a number beyond its bound */
    FKT_E_MISMATCH = 32,    /* two things that must belong together do not */
    FKT_E_PEER_FORMAT = 40, /* a peer's message breaks the protocol's format */
    FKT_E_PEER_AUTH = 41,   /* a peer's signature, key, commitment or view of the round is wrong */
    FKT_E_TOO_FEW = 42,     /* fewer peers are left than the protocol may go on with */
    FKT_E_BUDGET = 60       /* the privacy ledger refuses the debit */
} fkt_status;

FKT_API const char *fkt_status_name(fkt_status st);
FKT_API const char *fkt_error_text(void); /* never NULL; "" before any failure */
FKT_API const char *fkt_error_hint(void); /* never NULL; "" when there is none */
FKT_API const char *fkt_version(void);
FKT_API void fkt_string_free(char *s); /* a string that a call gives; NULL is fine */

#define FKT_SHA256_HEX 65 /* a SHA-256 as lower-case hex, with its NUL */

/* Called now and then during long work: `what` is borrowed, `done` of `total` (total 0: unknown). A non-zero answer
 * stops the work with FKT_E_STOPPED. May be called from worker threads, one at a time. */
struct fkt_progress {
    int (*step)(void *self, const char *what, unsigned long long done, unsigned long long total);
    void *self;
};

#ifdef __cplusplus
}
#endif
#endif
