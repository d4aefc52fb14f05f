/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - the options of `fedkt task new` that describe a server: its address, certificate and deadlines. */
#include "cli/task/service.h"

#include "base/text.h"
#include "net/tls.h"

#include <string.h>
#include <time.h>

#define DAY UINT64_C(86400)
#define DAYS_MAX 36525 /* a hundred years */

static fkt_status no_date(const char *text)
{
    return fkt_fail(FKT_E_ARG, "--expires: '%s' is not a day like 2026-12-31, a number of days like 30d, or 'never'",
                    text);
}

/* "YYYY-MM-DD" that is a valid day; else 0. */
static int is_day(const char *text, time_t *begin)
{
    static const char shape[] = "0000-00-00";
    struct tm tm = {0}, back;
    int year, month, day;
    if (strlen(text) != sizeof shape - 1) return 0;
    for (size_t i = 0; i < sizeof shape - 1; i++)
        if (shape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i]) return 0;
    if (sscanf(text, "%4d-%2d-%2d", &year, &month, &day) != 3) return 0;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    *begin = timegm(&tm);
    return gmtime_r(begin, &back) && back.tm_year == year - 1900 && back.tm_mon == month - 1 && back.tm_mday == day;
}

fkt_status cli_expires(const char *text, uint64_t now, uint64_t *out)
{
    size_t n = strlen(text);
    char digits[16];
    uint64_t days;
    time_t begin;
    if (!strcmp(text, "never")) {
        *out = 0;
        return FKT_OK;
    }
    if (n > 1 && n < sizeof digits && text[n - 1] == 'd') {
        snprintf(digits, sizeof digits, "%.*s", (int)n - 1, text);
        if (fkt_parse_u64(&days, digits, DAYS_MAX) != FKT_OK || days < 1) return no_date(text);
        *out = now + days * DAY;
        return FKT_OK;
    }
    if (!is_day(text, &begin)) return no_date(text);
    if (begin < 0 || (uint64_t)begin + DAY <= now) return fkt_fail(FKT_E_ARG, "--expires: %s is in the past", text);
    *out = (uint64_t)begin + DAY - 1;
    return FKT_OK;
}

fkt_status cli_service_choices(const struct cli_service_asked *a, const struct fkt_roster *roster, uint64_t now,
                               struct cli_service *out)
{
    struct fkt_service_choices *c = &out->choices;
    fkt_status st = FKT_OK;
    memset(out, 0, sizeof *out);
    if (!a->server && (a->certificate || a->expires || a->gather || a->phase || a->rounds || a->seeded))
        return fkt_fail(FKT_E_ARG, "certificate, deadlines and an insecure seed need a server: give --server");
    if (!a->server) return FKT_OK;
    if (!roster->n) return fkt_fail(FKT_E_ARG, "a server needs the keys of its sites: give --roster");
    if (a->gather > UINT32_MAX || a->phase > UINT32_MAX || a->rounds > UINT32_MAX)
        return fkt_fail(FKT_E_ARG, "--gather-seconds and --phase-seconds are at most 604800, --rounds at most 64");
    c->address = a->server;
    c->gather_seconds = (uint32_t)a->gather;
    c->phase_seconds = (uint32_t)a->phase;
    c->rounds = (uint32_t)a->rounds;
    c->insecure_seed = a->seeded ? &a->seed : NULL;
    FKT_TRY(cli_expires(a->expires ? a->expires : CLI_EXPIRES, now, &c->expires));
    FKT_TRY(fkt_roster_apply(roster, NULL, c));
    if (a->certificate) {
        FKT_TRY(fkt_tls_pin_of(out->pin, a->certificate));
        c->pin = out->pin;
    }
out:
    return st;
}
