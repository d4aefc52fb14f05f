/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sa_talk.c - whole conversations: bytes choose who speaks, who drops out, what is repeated, delayed and altered.
 *
 *   | world | step | step | ...        a step: | what | which message or site | more |, three bytes
 *
 *   world  bit 0: sparse; bits 1-2: what is delivered first when the steps are over (oldest, any, newest)
 *   what   0-6 deliver a message      7 lose it              8 put it on the wire twice     9 alter one byte
 *          10 cut or lengthen it      11 two messages of one direction change places        12 an old message
 *          13 a site falls silent, or the transport says it did    14 a ledger refuses      15 the phase is closed
 *
 * When the steps are over, the rest is delivered and phases are closed until the server has ended. Then:
 *   - the observer of sa_watch.h has seen no honest site break a promise; all sites are honest, the wire lies;
 *   - a total is exactly the sum over the survivors, unless a vector, or what the server said, was altered on its way;
 *   - the same bytes give the same transcript. */
#include "fedkt/advanced/secagg.h"

#include "fuzz_sa.h"

#include "crypto/digest.h"

enum { HISTORY = 256, STEPS_MAX = 400 };

struct talk {
    struct sa_world w;
    struct sa_watch v;
    uint8_t transcript[32];
    struct sa_message past[HISTORY];
    size_t n_past;
    int may_differ; /* an altered vector or an altered word of the server's */
};

static void note(struct talk *t, const struct sa_message *l)
{
    struct fkt_digest d;
    fkt_digest_init(&d, "talk", NULL);
    fkt_digest_add(&d, t->transcript, 32);
    fkt_digest_add_u32(&d, l->site * 2 + (uint32_t)l->to_server);
    fkt_digest_add(&d, l->bytes, l->len);
    fkt_digest_end(&d, t->transcript);
}

static void on_message(void *self, struct sa_world *w, struct sa_message *l)
{
    struct talk *t = self;
    (void)w;
    note(t, l);
    if (t->n_past == HISTORY) return;
    t->past[t->n_past] = *l;
    t->past[t->n_past].bytes = malloc(l->len + 1);
    FUZZ_CHECK(t->past[t->n_past].bytes != NULL);
    memcpy(t->past[t->n_past++].bytes, l->bytes, l->len);
}

/* The message moves to the front, where it is delivered next. */
static void to_front(struct sa_world *w, size_t i)
{
    const struct sa_message l = w->wire[i];
    memmove(w->wire + 1, w->wire, i * sizeof *w->wire);
    w->wire[0] = l;
}

static void take_off(struct sa_world *w, size_t i)
{
    free(w->wire[i].bytes);
    memmove(w->wire + i, w->wire + i + 1, (w->on_wire - i - 1) * sizeof *w->wire);
    w->on_wire--;
}

static void altered(struct talk *t, const struct sa_message *l)
{
    if (!l->to_server || l->kind == FKT_SA_M_MASKED) t->may_differ = 1;
}

static void resize(struct sa_message *l, size_t n)
{
    uint8_t *bytes = realloc(l->bytes, n + 1);
    FUZZ_CHECK(bytes != NULL);
    if (n > l->len) memset(bytes + l->len, 0x11, n - l->len);
    l->bytes = bytes;
    l->len = n;
}

/* Good bytes, for another: a site gets what was meant for its neighbour, the server hears one call itself another. */
static void exchange(struct sa_message *a, struct sa_message *b)
{
    const struct sa_message was = *a;
    if (a->to_server != b->to_server) return;
    *a = *b;
    a->site = was.site;
    b->bytes = was.bytes;
    b->len = was.len;
    b->cap = was.cap;
    b->kind = was.kind;
}

static void on_wire(struct talk *t, const uint8_t s[3])
{
    struct sa_world *w = &t->w;
    const size_t i = s[1] % w->on_wire;
    struct sa_message *l = &w->wire[i];
    switch (s[0] & 15) {
    case 7: take_off(w, i); break;
    case 8: sa_world_post(w, l->site, l->to_server, l->bytes, l->len); break;
    case 9:
        if (l->len == 0 || s[2] == 0) break;
        altered(t, l);
        l->bytes[(s[1] * 7U + s[2]) % l->len] ^= (uint8_t)(s[2] | 1);
        break;
    case 10:
        altered(t, l);
        resize(l, s[2] & 1 ? l->len + s[2] : l->len - l->len % (s[2] + 1U));
        break;
    case 11: exchange(l, &w->wire[s[2] % w->on_wire]); break;
    default: to_front(w, i); (void)sa_world_step(w);
    }
}

static void step(struct talk *t, const uint8_t s[3])
{
    struct sa_world *w = &t->w;
    const uint32_t site = s[1] % w->params.sites;
    fkt_status st = FKT_OK;
    switch (s[0] & 15) {
    case 12:
        if (!t->n_past) break;
        sa_world_post(w, s[2] & 0x80 ? s[2] % w->params.sites : t->past[s[1] % t->n_past].site,
                      t->past[s[1] % t->n_past].to_server, t->past[s[1] % t->n_past].bytes,
                      t->past[s[1] % t->n_past].len);
        break;
    case 13:
        w->site[site].gone = 1;
        if (s[2] & 1) st = sa_world_tell(w, SA_LOST, site, NULL, 0);
        break;
    case 14:
        if (s[2] & 1) w->site[site].refuse_reserve = FKT_E_BUDGET;
        else w->site[site].refuse_spend = FKT_E_BUDGET;
        break;
    case 15: st = sa_world_tell(w, SA_CLOSE, 0, NULL, 0); break;
    default:
        if (w->on_wire) on_wire(t, s);
    }
    FUZZ_CHECK(st == FKT_OK || fkt_error_text()[0] != '\0');
}

static void check_total(const struct talk *t)
{
    const struct sa_world *w = &t->w;
    const int64_t *total;
    const uint8_t *survivors;
    uint32_t n = 0;
    FUZZ_CHECK(fkt_sa_server_total(w->server, &total, &survivors) == FKT_OK);
    for (uint32_t i = 0; i < w->params.sites; i++) n += survivors[i];
    FUZZ_CHECK(n >= w->params.sites - w->params.dropped);
    for (uint32_t k = 0; k < w->params.length && !t->may_differ; k++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < w->params.sites; i++) sum += survivors[i] ? w->site[i].x[k] : 0;
        FUZZ_CHECK(total[k] == sum);
    }
}

static void finish(struct talk *t)
{
    struct sa_world *w = &t->w;
    fkt_status st = sa_world_run(w);
    const enum fkt_sa_state s = fkt_sa_server_state(w->server);
    FUZZ_CHECK(st == FKT_OK ? s == FKT_SA_STATE_DONE : s == FKT_SA_STATE_FAILED);
    sa_world_finish_wire(w);
    if (st == FKT_OK) check_total(t);
    if (t->v.broken[0]) fprintf(stderr, "%s\n", t->v.broken);
    FUZZ_CHECK(t->v.broken[0] == '\0');
    for (uint32_t i = 0; i < w->params.sites; i++) {
        const struct sa_site *site = &w->site[i];
        FUZZ_CHECK(site->reserved <= 1 && site->asked <= site->reserved && site->spent <= site->asked);
    }
}

static void run(const uint8_t *data, size_t size, uint8_t transcript[32])
{
    const struct fkt_sa_params p = fuzz_sa_params(size && data[0] & 1);
    struct talk t;
    memset(&t, 0, sizeof t);
    FUZZ_CHECK(sa_world_init(&t.w, &p, 9) == FKT_OK);
    t.w.hook = on_message;
    t.w.self = &t;
    t.w.keep_log = 0;
    t.w.order = size ? (enum sa_order)((data[0] >> 1 & 3) % 3) : SA_FIRST_IN;
    FUZZ_CHECK(sa_watch_init(&t.v, &t.w) == 0);
    sa_world_pump(&t.w);
    for (size_t at = 1; at + 3 <= size && at < 3 * STEPS_MAX; at += 3) step(&t, data + at);
    finish(&t);
    memcpy(transcript, t.transcript, 32);
    for (size_t i = 0; i < t.n_past; i++) free(t.past[i].bytes);
    sa_watch_release(&t.v);
    sa_world_release(&t.w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t first[32], again[32];
    run(data, size, first);
    run(data, size, again);
    FUZZ_CHECK(memcmp(first, again, sizeof first) == 0);
    return 0;
}
