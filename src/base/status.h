/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - failures with a sentence, and the project's only control-flow macro. */
#ifndef FKT_BASE_STATUS_H
#define FKT_BASE_STATUS_H

#include "fedkt/status.h"

#include <stdarg.h>

/* Stores the sentence (cause first, lower case, subject in quotes, no full stop) for this thread, clears the hint,
 * returns st. */
fkt_status fkt_fail(fkt_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with a second line that says what to do next. `hint` is printed unchanged. */
fkt_status fkt_fail_hint(fkt_status st, const char *hint, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the sentence of a propagating failure; returns st. No effect on FKT_OK. */
fkt_status fkt_fail_in(fkt_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a hint to a propagating failure that has none; returns st. No effect on FKT_OK. */
fkt_status fkt_hint(fkt_status st, const char *hint);
/* The same with a code (fedkt/status.h) under which a program phrases the remedy in its own terms. The words name no
 * option and no verb of the command line. */
fkt_status fkt_hint_code(fkt_status st, enum fkt_hint code, const char *hint);
/* Values for the phrase, where `code` is the code of the propagating failure; NULL: none. */
fkt_status fkt_hint_values(fkt_status st, enum fkt_hint code, const char *first, const char *second);
/* As fkt_hint, but a later fkt_hint replaces it. */
fkt_status fkt_hint_weakly(fkt_status st, const char *hint);

/* Carries a failure from a worker thread to the thread that waits for it. */
struct fkt_failure {
    fkt_status status;
    char text[768];
    char hint[384];
    enum fkt_hint code;
    char value[2][64];
    int weak; /* the hint */
};
void fkt_failure_save(struct fkt_failure *f, fkt_status st);
fkt_status fkt_failure_restore(const struct fkt_failure *f); /* gives f->status */

/* Needs `fkt_status st` and a label `out` in the function. */
#define FKT_TRY(call)                                                                                                  \
    do {                                                                                                               \
        st = (call);                                                                                                   \
        if (st != FKT_OK) goto out;                                                                                    \
    } while (0)

#endif
