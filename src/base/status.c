/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - names of the statuses and the per-thread sentence of the last failure.
 * A library must not print, and does not know the options of the program that calls it: it leaves a sentence and
 * perhaps a hint in plain words with a code, and the program prints them in its own terms (cli/core/hints.c). */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static _Thread_local struct fkt_failure last;

const char *fkt_status_name(fkt_status st)
{
    switch (st) {
    case FKT_OK: return "ok";
    case FKT_E_ARG: return "bad argument";
    case FKT_E_STATE: return "wrong order of calls";
    case FKT_E_NOMEM: return "out of memory";
    case FKT_E_IO: return "input/output error";
    case FKT_E_EXISTS: return "already exists";
    case FKT_E_ENTROPY: return "no randomness";
    case FKT_E_STOPPED: return "stopped";
    case FKT_E_FORMAT: return "bad format";
    case FKT_E_NUMERIC: return "bad number";
    case FKT_E_MISMATCH: return "mismatch";
    case FKT_E_PEER_FORMAT: return "bad message";
    case FKT_E_PEER_AUTH: return "peer not authenticated";
    case FKT_E_TOO_FEW: return "too few peers";
    case FKT_E_BUDGET: return "privacy budget spent";
    }
    return "unknown status";
}

const char *fkt_error_text(void) { return last.text; }
const char *fkt_error_hint(void) { return last.hint; }
enum fkt_hint fkt_error_hint_code(void) { return last.code; }
const char *fkt_error_hint_value(unsigned i) { return i < 2 ? last.value[i] : ""; }
const char *fkt_version(void) { return FKT_VERSION; }

static void set_hint(enum fkt_hint code, const char *hint, int weak)
{
    snprintf(last.hint, sizeof last.hint, "%s", hint);
    last.code = code;
    last.value[0][0] = last.value[1][0] = '\0';
    last.weak = weak;
}

fkt_status fkt_fail(fkt_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(last.text, sizeof last.text, fmt, ap);
    va_end(ap);
    set_hint(FKT_HINT_NONE, "", 0);
    last.status = st;
    return st;
}

fkt_status fkt_fail_hint(fkt_status st, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(last.text, sizeof last.text, fmt, ap);
    va_end(ap);
    set_hint(FKT_HINT_NONE, hint, 0);
    last.status = st;
    return st;
}

fkt_status fkt_fail_in(fkt_status st, const char *fmt, ...)
{
    char head[256], tail[sizeof last.text];
    va_list ap;
    if (st == FKT_OK) return st;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    memcpy(tail, last.text, sizeof tail);
    tail[sizeof tail - sizeof head - 3] = '\0'; /* head + ": " + tail always fits */
    snprintf(last.text, sizeof last.text, "%s: %s", head, tail);
    return st;
}

fkt_status fkt_hint(fkt_status st, const char *hint) { return fkt_hint_code(st, FKT_HINT_NONE, hint); }

fkt_status fkt_hint_code(fkt_status st, enum fkt_hint code, const char *hint)
{
    if (st != FKT_OK && (!last.hint[0] || last.weak)) set_hint(code, hint, 0);
    return st;
}

fkt_status fkt_hint_values(fkt_status st, enum fkt_hint code, const char *first, const char *second)
{
    if (st == FKT_OK || last.code != code) return st;
    snprintf(last.value[0], sizeof last.value[0], "%s", first ? first : "");
    snprintf(last.value[1], sizeof last.value[1], "%s", second ? second : "");
    return st;
}

fkt_status fkt_hint_weakly(fkt_status st, const char *hint)
{
    if (st != FKT_OK && !last.hint[0]) set_hint(FKT_HINT_NONE, hint, 1);
    return st;
}

void fkt_failure_save(struct fkt_failure *f, fkt_status st)
{
    *f = last;
    f->status = st;
}

fkt_status fkt_failure_restore(const struct fkt_failure *f)
{
    last = *f;
    return f->status;
}
