/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - what a site is given when it asks, and what people are shown.
 *
 * A site says which message of which round it has. In a round it gets the newest message for it, unless it has that
 * one; of a failed round, and only of that one, it gets the notice that it was aborted. Otherwise it is told whether
 * it is lost in the round that it asked about. A site that asks counts as present (deadlines.c). */
#include "server/server.h"

#include <string.h>

/* The number of a round by its name; 0: not one of ours. */
static uint32_t round_of(const struct fkt_server *h, const uint8_t *name)
{
    for (uint32_t i = h->round; i > 0; i--)
        if (!memcmp(h->past[i - 1].name, name, FKT_SA_ROUND)) return i;
    return 0;
}

/* The status of a site in a round that it asks about. */
static fkt_status lost_in(const struct fkt_server *h, const struct fkt_server_set_status *slot, uint32_t round)
{
    if (!round) return FKT_E_STATE;
    if (round == h->round && slot->status != FKT_OK) return slot->status;
    return h->past[round - 1].ended;
}

fkt_status fkt_server_collect(void *self, uint32_t site, const uint8_t *round, uint32_t after, struct fkt_message *out)
{
    static const uint8_t none[FKT_SA_ROUND];
    struct fkt_server *h = self;
    struct fkt_server_set_status *slot;
    uint32_t asked;
    int has;
    memset(out, 0, sizeof *out);
    out->stage = h->stage;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    if (site >= h->params.sites) return fkt_fail(FKT_E_ARG, "there is no site %u", site);
    if (round && !memcmp(round, none, sizeof none)) round = NULL;
    slot = &h->slot[site];
    slot->seen = h->elapsed + 1;
    asked = round ? round_of(h, round) : 0;
    has = asked == h->round && after >= slot->index;
    if (slot->mail && !has && (h->stage == FKT_STAGE_RUNNING || asked == h->round)) {
        memcpy(out->round, h->past[h->round - 1].name, FKT_SA_ROUND);
        out->index = slot->index;
        out->bytes = slot->mail;
        out->len = slot->mail_len;
    } else if (round) {
        out->lost = lost_in(h, slot, asked);
    }
    return FKT_OK;
}

static uint8_t slot_of(const struct fkt_server *h, uint32_t site)
{
    const struct fkt_server_set_status *slot = &h->slot[site];
    switch (h->stage) {
    case FKT_STAGE_RUNNING:
        return slot->status != FKT_OK ? FKT_SITE_LOST : slot->heard ? FKT_SITE_HEARD : FKT_SITE_ASKED;
    case FKT_STAGE_FINISHING:
    case FKT_STAGE_RELEASED: return slot->counted ? FKT_SITE_COUNTED : FKT_SITE_LOST;
    default: return fkt_server_present(h, site) ? FKT_SITE_READY : FKT_SITE_AWAY;
    }
}

void fkt_server_view(void *self, struct fkt_mailbox_view *out)
{
    struct fkt_server *h = self;
    const int running = h->stage == FKT_STAGE_RUNNING;
    memset(out, 0, sizeof *out);
    out->stage = h->stage;
    out->phase = h->server ? fkt_sa_state_name(h->phase) : "";
    out->round = h->round;
    out->sites = h->params.sites;
    out->needed = h->params.sites - h->params.dropped;
    for (uint32_t i = 0; i < h->params.sites; i++) {
        out->ready += (uint32_t)fkt_server_present(h, i);
        h->slots_shown[i] = slot_of(h, i);
    }
    out->slot = h->slots_shown;
    out->expected = running ? h->census.expected : 0;
    out->heard = running ? h->census.heard : 0;
    out->lost = h->lost;
    out->survivors = h->survivors;
    out->stage_since = h->stage_since;
    out->phase_since = running ? h->phase_since : 0;
    if (out->phase_since) out->phase_until = h->now_ms + fkt_server_phase_left(h);
    out->overdue = running && h->overdue;
    out->messages = h->messages + h->round_messages;
    out->message_bytes = h->bytes + h->round_bytes;
    out->log_entries = h->log.settled.entry;
    out->refused = h->refused;
    out->n_refused = FKT_REFUSALS;
    out->reason = h->reason;
    out->comparing = h->stage == FKT_STAGE_FINISHING && h->comparing;
    out->release_sha256 = h->stage == FKT_STAGE_RELEASED ? h->finish.sha256 : "";
}

void fkt_server_head(void *self, uint64_t *entry, char sha256[65])
{
    const struct fkt_server *h = self;
    *entry = h->log.settled.entry;
    memcpy(sha256, h->log.settled.sha256, FKT_HASH_HEX);
}

const char *fkt_server_file(void *self, const char *name)
{
    static const char *const names[] = {[FKT_SERVER_RELEASE] = "release.safetensors",
                                        [FKT_SERVER_CERTIFICATE] = "certificate.json",
                                        [FKT_SERVER_LOG] = "transparency.jsonl",
                                        [FKT_SERVER_GRID] = "grid.png"};
    const struct fkt_server *h = self;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) != 0) continue;
        if (h->stage == FKT_STAGE_RELEASED) return i == FKT_SERVER_GRID && h->finish.bare ? NULL : h->path[i];
        return h->stage == FKT_STAGE_GIVEN_UP && i == FKT_SERVER_LOG ? h->path[i] : NULL;
    }
    return NULL;
}
