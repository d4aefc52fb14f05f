/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/memory_mailbox.h"

#include "base/alloc.h"
#include "base/status.h"
#include "crypto/hash.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const uint8_t memory_mailbox_round[FKT_MAILBOX_ROUND] = {0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static fkt_status echo(struct memory_mailbox *b, struct box_slot *s, const uint8_t *msg, size_t len)
{
    fkt_status st = fkt_realloc(&s->message, len);
    if (st != FKT_OK) return st;
    memcpy(s->message, msg, len);
    s->len = len;
    s->index++;
    b->taken++;
    b->bytes += len;
    b->entries++;
    return FKT_OK;
}

static fkt_status deliver(void *self, uint32_t site, const uint8_t *msg, size_t len)
{
    struct memory_mailbox *b = self;
    struct box_slot *s = &b->slots[site];
    b->settled = 0;
    if (len == 0) return fkt_fail(FKT_E_PEER_FORMAT, "an empty message");
    if (msg[0] == 'X') return fkt_fail(FKT_E_IO, "the disk is full");
    if (b->stage >= FKT_STAGE_RELEASED) return fkt_fail(FKT_E_STATE, "the task is over");
    if (msg[0] == 'F') {
        s->lost = 1;
        return fkt_fail(FKT_E_PEER_FORMAT, "a false message");
    }
    if (!strchr("TRGW", msg[0])) return fkt_fail(FKT_E_STATE, "not wanted");
    if (msg[0] == 'W') b->work = 1, b->stage = FKT_STAGE_FINISHING;
    if (msg[0] == 'R') b->stage = FKT_STAGE_RELEASED;
    if (msg[0] == 'G') b->stage = FKT_STAGE_GIVEN_UP;
    if (msg[0] == 'T') b->stage = FKT_STAGE_RUNNING;
    return echo(b, s, msg, len);
}

static fkt_status collect(void *self, uint32_t site, const uint8_t *round, uint32_t after, struct fkt_message *out)
{
    struct memory_mailbox *b = self;
    const struct box_slot *s = &b->slots[site];
    b->collects++;
    b->slots[site].present = 1;
    b->settled = 0;
    memset(out, 0, sizeof *out);
    memcpy(out->round, memory_mailbox_round, FKT_MAILBOX_ROUND);
    out->stage = b->stage;
    if (b->stage >= FKT_STAGE_RELEASED) return FKT_OK;
    if (s->lost && round && memcmp(round, memory_mailbox_round, FKT_MAILBOX_ROUND) == 0) out->lost = FKT_E_PEER_FORMAT;
    if (s->lost || s->index == 0) return FKT_OK;
    if (round && memcmp(round, memory_mailbox_round, FKT_MAILBOX_ROUND) == 0 && after >= s->index) return FKT_OK;
    out->index = s->index;
    out->bytes = s->message;
    out->len = s->len;
    return FKT_OK;
}

static fkt_status refuse(void *self, uint32_t site, enum fkt_refusal why)
{
    struct memory_mailbox *b = self;
    b->refused[why]++;
    b->last_refused = site;
    b->entries++;
    b->settled = 0;
    return FKT_OK;
}

static fkt_status tick(void *self, uint64_t now_ms)
{
    (void)now_ms;
    ((struct memory_mailbox *)self)->ticks++;
    return FKT_OK;
}

static fkt_status settle(void *self)
{
    struct memory_mailbox *b = self;
    if (b->fail_settle) return fkt_fail(FKT_E_IO, "cannot sync");
    b->settled = 1;
    b->settles++;
    return FKT_OK;
}

/* As the host does: it says so once. */
static int has_work(void *self)
{
    struct memory_mailbox *b = self;
    if (b->work != 1) return 0;
    b->work = 2;
    return 1;
}

static fkt_status work(void *self)
{
    (void)self; /* it runs beside the rest and touches none of it */
    usleep(50000);
    return FKT_OK;
}

static fkt_status worked(void *self, fkt_status st)
{
    struct memory_mailbox *b = self;
    b->work = 2;
    b->stage = FKT_STAGE_RELEASED;
    return st;
}

static void view(void *self, struct fkt_mailbox_view *out)
{
    struct memory_mailbox *b = self;
    memset(out, 0, sizeof *out);
    out->stage = b->stage;
    out->phase = b->stage == FKT_STAGE_RUNNING ? "mask" : "";
    out->sites = b->sites;
    for (uint32_t i = 0; i < b->sites; i++) {
        const struct box_slot *s = &b->slots[i];
        b->slot_view[i] = s->lost ? FKT_SITE_LOST : s->index ? FKT_SITE_HEARD : s->present ? FKT_SITE_READY : 0;
        out->lost += s->lost != 0;
    }
    out->slot = b->slot_view;
    out->messages = b->taken;
    out->message_bytes = b->bytes;
    out->log_entries = b->entries;
    out->refused = b->refused;
    out->n_refused = FKT_REFUSALS;
    out->reason = out->release_sha256 = "";
}

static void head(void *self, uint64_t *entry, char sha256[65])
{
    struct memory_mailbox *b = self;
    *entry = b->entries + 1;
    fkt_hash_bytes_hex(sha256, entry, sizeof *entry);
}

static const char *file(void *self, const char *name)
{
    struct memory_mailbox *b = self;
    if (!b->folder[0] || b->stage != FKT_STAGE_RELEASED) return NULL;
    snprintf(b->path, sizeof b->path, "%s/%s", b->folder, name);
    return access(b->path, R_OK) == 0 ? b->path : NULL;
}

fkt_status memory_mailbox_init(struct memory_mailbox *b, struct fkt_mailbox *out, uint32_t sites, const char *folder)
{
    fkt_status st;
    memset(b, 0, sizeof *b);
    FKT_TRY(fkt_alloc(&b->slots, sites));
    FKT_TRY(fkt_alloc(&b->slot_view, sites));
    b->sites = sites;
    if (folder) snprintf(b->folder, sizeof b->folder, "%s", folder);
    *out = (struct fkt_mailbox){b,      sites,    BOX_MESSAGE, deliver, collect, refuse, tick,
                                settle, has_work, work,        worked,  view,    head,   file};
out:
    return st;
}

void memory_mailbox_release(struct memory_mailbox *b)
{
    for (uint32_t i = 0; i < b->sites; i++) fkt_free(b->slots[i].message);
    fkt_free(b->slots);
    fkt_free(b->slot_view);
}
