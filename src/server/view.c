/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - what a site is given when it asks, and what people are shown.
 *
 * A site says which message of which round it has. In a round it gets the newest one for it unless it has that already;
 * of a round that failed, and of that one alone, it gets the word that it was aborted. With nothing to give, it is told
 * whether it is out of the round that it asked about. Asking is being present (host_time.c). */
#include "server/server.h"

#include <string.h>

/* The number of a round by its name; 0: not one of ours. */
static uint32_t round_of(const struct fkt_host *h, const uint8_t *name)
{
    for (uint32_t i = h->round; i > 0; i--)
        if (!memcmp(h->past[i - 1].name, name, FKT_SA_ROUND)) return i;
    return 0;
}

/* How a site stands in a round that it asks about. */
static fkt_status lost_in(const struct fkt_host *h, const struct fkt_host_seat *seat, uint32_t round)
{
    if (!round) return FKT_E_STATE;
    if (round == h->round && seat->status != FKT_OK) return seat->status;
    return h->past[round - 1].ended;
}

fkt_status fkt_host_collect(void *self, uint32_t site, const uint8_t *round, uint32_t after, struct fkt_letter *out)
{
    static const uint8_t none[FKT_SA_ROUND];
    struct fkt_host *h = self;
    struct fkt_host_seat *seat;
    uint32_t asked;
    int has;
    memset(out, 0, sizeof *out);
    out->stage = h->stage;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    if (site >= h->params.sites) return fkt_fail(FKT_E_ARG, "there is no site %u", site);
    if (round && !memcmp(round, none, sizeof none)) round = NULL;
    seat = &h->seat[site];
    seat->seen = h->elapsed + 1;
    asked = round ? round_of(h, round) : 0;
    has = asked == h->round && after >= seat->index;
    if (seat->mail && !has && (h->stage == FKT_BOX_RUNNING || asked == h->round)) {
        memcpy(out->round, h->past[h->round - 1].name, FKT_SA_ROUND);
        out->index = seat->index;
        out->bytes = seat->mail;
        out->len = seat->mail_len;
    } else if (round) {
        out->lost = lost_in(h, seat, asked);
    }
    return FKT_OK;
}

static uint8_t seat_of(const struct fkt_host *h, uint32_t site)
{
    const struct fkt_host_seat *seat = &h->seat[site];
    switch (h->stage) {
    case FKT_BOX_RUNNING: return seat->status != FKT_OK ? FKT_SEAT_LOST : seat->heard ? FKT_SEAT_HEARD : FKT_SEAT_ASKED;
    case FKT_BOX_FINISHING:
    case FKT_BOX_RELEASED: return seat->counted ? FKT_SEAT_COUNTED : FKT_SEAT_LOST;
    default: return fkt_host_present(h, site) ? FKT_SEAT_READY : FKT_SEAT_AWAY;
    }
}

void fkt_host_view(void *self, struct fkt_box_view *out)
{
    struct fkt_host *h = self;
    const int running = h->stage == FKT_BOX_RUNNING;
    memset(out, 0, sizeof *out);
    out->stage = h->stage;
    out->phase = h->server ? fkt_sa_state_name(h->phase) : "";
    out->round = h->round;
    out->sites = h->params.sites;
    out->needed = h->params.sites - h->params.dropped;
    for (uint32_t i = 0; i < h->params.sites; i++) {
        out->ready += (uint32_t)fkt_host_present(h, i);
        h->seats_shown[i] = seat_of(h, i);
    }
    out->seat = h->seats_shown;
    out->expected = running ? h->census.expected : 0;
    out->heard = running ? h->census.heard : 0;
    out->lost = h->lost;
    out->survivors = h->survivors;
    out->stage_since = h->stage_since;
    out->phase_since = running ? h->phase_since : 0;
    if (out->phase_since) out->phase_until = h->now_ms + fkt_host_phase_left(h);
    out->overdue = running && h->overdue;
    out->messages = h->messages + h->round_messages;
    out->message_bytes = h->bytes + h->round_bytes;
    out->audit_entries = h->log.settled.entry;
    memcpy(out->refused, h->refused, sizeof out->refused);
    out->reason = h->reason;
    out->comparing = h->stage == FKT_BOX_FINISHING && h->comparing;
    out->release_sha256 = h->stage == FKT_BOX_RELEASED ? h->finish.sha256 : "";
}

void fkt_host_head(void *self, uint64_t *entry, char sha256[65])
{
    const struct fkt_host *h = self;
    *entry = h->log.settled.entry;
    memcpy(sha256, h->log.settled.sha256, FKT_HASH_HEX);
}

const char *fkt_host_file(void *self, const char *name)
{
    static const char *const names[] = {[FKT_HOST_RELEASE] = "release.safetensors",
                                        [FKT_HOST_CERTIFICATE] = "certificate.json",
                                        [FKT_HOST_AUDIT] = "audit.jsonl",
                                        [FKT_HOST_GRID] = "grid.png"};
    const struct fkt_host *h = self;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) != 0) continue;
        if (h->stage == FKT_BOX_RELEASED) return i == FKT_HOST_GRID && h->finish.bare ? NULL : h->path[i];
        return h->stage == FKT_BOX_GIVEN_UP && i == FKT_HOST_AUDIT ? h->path[i] : NULL;
    }
    return NULL;
}
