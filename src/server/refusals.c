/* SPDX-License-Identifier: Apache-2.0 */
/* refusals.c - refused requests, in few log lines however many there are.
 *
 * Anybody who can reach the server can cause refusals, and the log is permanent. So the first refusal of a site for
 * a reason gets its line at once, further ones of the same minute are one line at the end of the minute, and an hour
 * has at most HOUR_LINES of them: the rest is logged at the end of the hour by reason alone, without a site.
 * Refusals after a valid signature have a quota of their own: unauthenticated requests must not hide the use of a
 * stolen key. The sums are exact except for refusals without a line at a crash. Memory: five bytes for each site and
 * reason. */
#include "server/server.h"

#include <string.h>

#define MINUTE_MS 60000U
#define HOUR_MS 3600000U
#define HOUR_LINES 240U

static size_t cell(uint32_t site, uint32_t why) { return (size_t)site * FKT_REFUSALS + why; }

/* docs/http.md 2.2: these two are checked last, when the signature has been verified. */
static int proven(uint32_t why) { return why == FKT_REFUSAL_REPLAYED || why == FKT_REFUSAL_TOO_OFTEN; }

static fkt_status tell(struct fkt_server *h, uint32_t site, uint32_t why, uint64_t times)
{
    json_t *who = site < h->params.sites ? json_integer((json_int_t)site) : json_null();
    fkt_status st;
    FKT_TRY(fkt_server_note(h, "refused",
                            json_pack("{s:o s:s s:I}", "site", who, "why", fkt_refusal_name((enum fkt_refusal)why),
                                      "times", (json_int_t)times)));
    FKT_TRY(fkt_journal_count(h->journal, (enum fkt_refusal)why, times));
out:
    return st;
}

fkt_status fkt_server_refuse(void *self, uint32_t site, enum fkt_refusal why)
{
    struct fkt_server *h = self;
    struct fkt_refusals *r = &h->refusals;
    size_t at;
    fkt_status st;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    if ((unsigned)why >= FKT_REFUSALS) return fkt_fail(FKT_E_ARG, "there is no such refusal");
    h->refused[why]++;
    if (!h->ticked || h->log.ended) return FKT_OK;
    if (site > h->params.sites) site = h->params.sites;
    at = cell(site, why);
    if (r->said[at] || r->lines[proven(why)] >= HOUR_LINES) {
        if (r->times[at] < UINT32_MAX) r->times[at]++;
        return FKT_OK;
    }
    r->said[at] = 1;
    r->lines[proven(why)]++;
    st = tell(h, site, why, 1);
    return st == FKT_OK ? st : fkt_server_break(h, st);
}

static fkt_status end_minute(struct fkt_server *h)
{
    struct fkt_refusals *r = &h->refusals;
    fkt_status st = FKT_OK;
    for (uint32_t site = 0; site <= h->params.sites; site++)
        for (uint32_t why = 0; why < FKT_REFUSALS; why++) {
            const size_t at = cell(site, why);
            const uint32_t times = r->times[at];
            r->said[at] = 0;
            r->times[at] = 0;
            if (!times) continue;
            if (r->lines[proven(why)] >= HOUR_LINES) {
                r->rest[why] += times;
                continue;
            }
            r->lines[proven(why)]++;
            FKT_TRY(tell(h, site, why, times));
        }
    r->minute = h->elapsed;
out:
    return st;
}

static fkt_status end_hour(struct fkt_server *h)
{
    struct fkt_refusals *r = &h->refusals;
    fkt_status st = FKT_OK;
    for (uint32_t why = 0; why < FKT_REFUSALS; why++) {
        const uint64_t times = r->rest[why];
        r->rest[why] = 0;
        if (times) FKT_TRY(tell(h, FKT_MAILBOX_NOBODY, why, times));
    }
    r->lines[0] = r->lines[1] = 0;
    r->hour = h->elapsed;
out:
    return st;
}

fkt_status fkt_refusals_flush(struct fkt_server *h)
{
    fkt_status st = end_minute(h);
    return st == FKT_OK ? end_hour(h) : st;
}

fkt_status fkt_refusals_tick(struct fkt_server *h)
{
    fkt_status st = FKT_OK;
    if (h->log.ended) return FKT_OK;
    if (h->elapsed - h->refusals.minute >= MINUTE_MS) FKT_TRY(end_minute(h));
    if (h->elapsed - h->refusals.hour >= HOUR_MS) FKT_TRY(end_hour(h));
out:
    return st;
}
