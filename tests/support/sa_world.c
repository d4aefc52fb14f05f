/* SPDX-License-Identifier: Apache-2.0 */
/* sa_world.c - the sites, the server and the wire of sa_world.h. Nothing here knows what a message means, save its
 * kind; what a hook or a schedule does with it is the test's affair. */
#include "tests/support/sa_world.h"

#include "crypto/digest.h"
#include "crypto/sign.h"
#include "tests/support/check.h"

enum { SLACK = 1024 }; /* what a hook may add to a letter beyond the longest honest one */

static void *must(void *p)
{
    if (!p) abort();
    return p;
}

/* *array, of elements of `size`, gets room for one more than `n`. */
static void grow(void *array, size_t n, size_t *cap, size_t size)
{
    void **p = array;
    if (n < *cap) return;
    *cap = *cap ? 2 * *cap : 64;
    *p = must(realloc(*p, *cap * size));
}

static enum fkt_sa_kind kind_of(int to_server, const uint8_t *bytes, size_t len)
{
    struct fkt_sa_msg m = {0};
    enum fkt_sa_kind kind = FKT_SA_M_NONE;
    if (fkt_sa_msg_decode(&m, to_server, bytes, len, len) == FKT_OK) kind = m.kind;
    fkt_sa_msg_clear(&m);
    return kind;
}

static enum fkt_sa_state state_of(enum fkt_sa_kind kind)
{
    switch (kind) {
    case FKT_SA_M_ADVERTISE: return FKT_SA_STATE_ADVERTISE;
    case FKT_SA_M_OPEN: return FKT_SA_STATE_COIN;
    case FKT_SA_M_SHARES: return FKT_SA_STATE_SHARE;
    case FKT_SA_M_MASKED: return FKT_SA_STATE_MASK;
    case FKT_SA_M_CONFIRM: return FKT_SA_STATE_CONFIRM;
    case FKT_SA_M_REVEAL: return FKT_SA_STATE_REVEAL;
    default: return FKT_SA_STATE_BEGIN;
    }
}

/* ---- the three doors of a site ---- */

static fkt_status door_reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct sa_site *site = self;
    (void)session;
    site->reserved++;
    return site->refuse_reserve == FKT_OK ? FKT_OK : fkt_fail(site->refuse_reserve, "the test's ledger refuses");
}

static fkt_status door_vector(void *self, int64_t *x, uint32_t length)
{
    struct sa_site *site = self;
    site->asked++;
    memcpy(x, site->x, length * sizeof *x);
    return FKT_OK;
}

static fkt_status door_spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct sa_site *site = self;
    (void)session;
    site->spent++;
    return site->refuse_spend == FKT_OK ? FKT_OK : fkt_fail(site->refuse_spend, "the test's ledger refuses");
}

/* ---- making and ending a world ---- */

struct fkt_sa_params sa_params(uint32_t sites, uint32_t dropped, uint32_t corrupt, uint32_t degree, uint32_t threshold,
                               uint32_t length, uint32_t bits)
{
    struct fkt_sa_params p = {.sites = sites,
                              .dropped = dropped,
                              .corrupt = corrupt,
                              .attempts = 4,
                              .bits = bits,
                              .length = length,
                              .bound = (((uint64_t)1 << (bits - 1)) - 1) / sites};
    int complete = degree == 0 || degree == sites - 1;
    p.degree = complete ? sites - 1 : degree;
    p.threshold = threshold ? threshold : complete ? (sites - 1 + corrupt) / 2 + 1 : degree / 2 + 1;
    if (complete && p.threshold <= corrupt + dropped && !threshold) p.threshold = corrupt + dropped + 1;
    memset(p.task, 0x7a, sizeof p.task);
    return p;
}

static void draw_vectors(struct sa_world *w)
{
    size_t length = w->params.length;
    uint64_t bound = w->params.bound;
    w->vectors = must(calloc(w->params.sites * length, sizeof *w->vectors));
    for (uint32_t i = 0; i < w->params.sites; i++) {
        int64_t *x = w->site[i].x = w->vectors + i * length;
        for (size_t k = 0; k < length; k++) {
            x[k] = (int64_t)fkt_rng_below(&w->rng, 2 * bound + 1) - (int64_t)bound;
            if (k % 16 == 0) x[k] = (int64_t)bound; /* everyone's: sums reach the edges of the ring */
            if (k % 16 == 1) x[k] = -(int64_t)bound;
        }
    }
}

fkt_status sa_world_init(struct sa_world *w, const struct fkt_sa_params *p, uint64_t seed)
{
    struct fkt_entropy_seeded keys;
    struct fkt_entropy e;
    fkt_status st = FKT_OK;
    memset(w, 0, sizeof *w);
    w->params = *p;
    w->seed = seed;
    w->keep_log = 1;
    fkt_rng_init(&w->rng, seed, 0);
    fkt_entropy_seeded_init(&keys, seed, 0);
    fkt_entropy_seeded(&e, &keys);
    w->roster = must(calloc(p->sites, FKT_SA_KEY));
    w->site = must(calloc(p->sites, sizeof *w->site));
    w->params.roster = w->roster;
    FKT_TRY(e.fill(e.self, w->round, sizeof w->round));
    draw_vectors(w);
    for (uint32_t i = 0; i < p->sites; i++) {
        struct sa_site *site = &w->site[i];
        uint8_t sign_seed[FKT_SIGN_SEED];
        site->world = w;
        site->silent_from = FKT_SA_STATE_DONE;
        site->doors = (struct fkt_sa_site){door_reserve, door_vector, door_spend, site};
        fkt_entropy_seeded_init(&site->seeded, seed, 1 + (uint64_t)i);
        fkt_entropy_seeded(&site->entropy, &site->seeded);
        FKT_TRY(e.fill(e.self, sign_seed, sizeof sign_seed));
        fkt_sign_keypair(w->roster + (size_t)i * FKT_SA_KEY, site->secret, sign_seed);
    }
    for (uint32_t i = 0; i < p->sites; i++)
        FKT_TRY(fkt_sa_client_new(&w->site[i].client, &w->params, i, w->site[i].secret, &w->site[i].doors,
                                  &w->site[i].entropy));
    FKT_TRY(fkt_sa_server_new(&w->server, &w->params, w->round, 0));
out:
    if (st != FKT_OK) sa_world_release(w);
    return st;
}

void sa_world_release(struct sa_world *w)
{
    for (uint32_t i = 0; w->site && i < w->params.sites; i++) fkt_sa_client_free(w->site[i].client);
    for (size_t i = 0; i < w->on_wire; i++) free(w->wire[i].bytes);
    for (size_t i = 0; i < w->logged; i++) free(w->log[i].bytes);
    fkt_sa_server_free(w->server);
    free(w->wire);
    free(w->log);
    free(w->site);
    free(w->roster);
    free(w->vectors);
    memset(w, 0, sizeof *w);
}

void sa_world_kill(struct sa_world *w, uint32_t site, enum fkt_sa_state silent_from)
{
    w->site[site].silent_from = silent_from;
}

uint64_t sa_world_draw(struct sa_world *w, uint64_t below) { return fkt_rng_below(&w->rng, below); }

/* ---- the wire ---- */

static void put(struct sa_world *w, const struct sa_message *message)
{
    struct sa_message own = *message;
    own.bytes = must(malloc(own.len + 1));
    own.cap = own.len + 1;
    memcpy(own.bytes, message->bytes, own.len);
    grow(&w->wire, w->on_wire, &w->wire_cap, sizeof *w->wire);
    w->wire[w->on_wire++] = own;
}

void sa_world_post(struct sa_world *w, uint32_t site, int to_server, const uint8_t *bytes, size_t len)
{
    struct sa_message message = {
        .site = site, .to_server = to_server, .kind = kind_of(to_server, bytes, len), .len = len};
    message.bytes = must(malloc(len + 1));
    memcpy(message.bytes, bytes, len);
    put(w, &message);
    free(message.bytes);
}

/* Something was said: the hook sees it, and then it is on the wire as often as the hook wants. */
static void say(struct sa_world *w, uint32_t site, int to_server, uint8_t *bytes, size_t len, size_t cap)
{
    struct sa_message message = {.site = site,
                                 .to_server = to_server,
                                 .bytes = bytes,
                                 .len = len,
                                 .cap = cap,
                                 .copies = 1,
                                 .kind = kind_of(to_server, bytes, len)};
    uint64_t *sum = to_server ? &w->sent_up : &w->sent_down, *most = to_server ? &w->largest_up : &w->largest_down;
    *sum += len;
    if (len > *most) *most = len;
    if (w->hook) w->hook(w->self, w, &message);
    for (unsigned i = 0; i < message.copies; i++) put(w, &message);
}

static fkt_status pump_server(struct sa_world *w, struct fkt_sa_server *server, uint8_t said[32], int post)
{
    size_t cap = fkt_sa_to_site_max(&w->params), len;
    uint8_t *bytes = must(malloc(cap + SLACK));
    uint32_t to = 0;
    fkt_status st;
    while ((st = fkt_sa_server_next(server, &to, bytes, cap, &len)) == FKT_OK && len) {
        struct fkt_digest d;
        fkt_digest_init(&d, "said", NULL);
        fkt_digest_add(&d, said, 32);
        fkt_digest_add_u32(&d, to);
        fkt_digest_add(&d, bytes, len);
        fkt_digest_end(&d, said);
        if (post) say(w, to, 0, bytes, len, cap + SLACK);
    }
    free(bytes);
    return st;
}

static void pump_site(struct sa_world *w, uint32_t i)
{
    struct sa_site *site = &w->site[i];
    size_t cap = fkt_sa_to_server_max(&w->params), len;
    uint8_t *bytes;
    if (site->gone || !(fkt_sa_client_wants(site->client) & FKT_SA_SEND)) return;
    bytes = must(malloc(cap + SLACK));
    while (!site->gone && fkt_sa_client_wants(site->client) & FKT_SA_SEND) {
        enum fkt_sa_state state;
        fkt_status st = fkt_sa_client_send(site->client, bytes, cap, &len);
        if (st != FKT_OK) site->status = st;
        if (st != FKT_OK || len == 0) break;
        state = state_of(kind_of(1, bytes, len));
        if (state >= site->silent_from) site->gone = 1;
        else say(w, i, 1, bytes, len, cap + SLACK);
    }
    free(bytes);
}

void sa_world_pump(struct sa_world *w)
{
    CHECK_OK(pump_server(w, w->server, w->said, 1));
    for (uint32_t i = 0; i < w->params.sites; i++) pump_site(w, i);
}

static fkt_status tell(struct fkt_sa_server *server, enum sa_event event, uint32_t from, const uint8_t *bytes,
                       size_t len)
{
    switch (event) {
    case SA_RECV: return fkt_sa_server_recv(server, from, bytes, len);
    case SA_CLOSE: return fkt_sa_server_close(server);
    default: return fkt_sa_server_lost(server, from);
    }
}

fkt_status sa_world_tell(struct sa_world *w, enum sa_event event, uint32_t from, const uint8_t *bytes, size_t len)
{
    struct sa_log_entry entry = {.event = event, .from = from, .len = len};
    struct fkt_failure f;
    entry.answer = tell(w->server, event, from, bytes, len);
    fkt_failure_save(&f, entry.answer);
    if (w->keep_log) {
        entry.bytes = must(malloc(len + 1));
        if (len) memcpy(entry.bytes, bytes, len);
        grow(&w->log, w->logged, &w->log_cap, sizeof *w->log);
        w->log[w->logged++] = entry;
    }
    CHECK_OK(pump_server(w, w->server, w->said, 1));
    return fkt_failure_restore(&f);
}

/* ---- moving ---- */

/* The letter whose turn it is; the delays of those that stood before it run down. */
static size_t choose(struct sa_world *w)
{
    size_t ready = 0, pick = 0, skip;
    unsigned least = UINT32_MAX;
    for (size_t i = 0; i < w->on_wire; i++) {
        ready += w->wire[i].delay == 0;
        if (w->wire[i].delay < least) least = w->wire[i].delay;
    }
    if (ready == 0)
        for (size_t i = 0; i < w->on_wire; i++) ready += (w->wire[i].delay -= least) == 0;
    skip = w->order == SA_ANY ? (size_t)fkt_rng_below(&w->rng, ready) : w->order == SA_LAST_IN ? ready - 1 : 0;
    for (; w->wire[pick].delay || skip--; pick++) {}
    for (size_t i = 0; i < w->on_wire; i++)
        if (w->wire[i].delay) w->wire[i].delay--;
    return pick;
}

static void deliver(struct sa_world *w, const struct sa_message *message)
{
    struct sa_site *site = &w->site[message->site];
    fkt_status st;
    w->steps++;
    if (message->to_server) {
        st = sa_world_tell(w, SA_RECV, message->site, message->bytes, message->len);
        (void)st; /* stands in the log */
        return;
    }
    if (site->gone) return;
    if (message->kind == FKT_SA_M_ABORTED) site->told_to_abort = 1;
    site->status = fkt_sa_client_recv(site->client, message->bytes, message->len);
    pump_site(w, message->site);
}

static int one_message(struct sa_world *w)
{
    struct sa_message message;
    size_t at;
    if (w->on_wire == 0) return 0;
    at = choose(w);
    message = w->wire[at];
    memmove(w->wire + at, w->wire + at + 1, (w->on_wire - at - 1) * sizeof *w->wire);
    w->on_wire--;
    deliver(w, &message);
    free(message.bytes);
    return 1;
}

static int open_phase(const struct sa_world *w)
{
    enum fkt_sa_state state = fkt_sa_server_state(w->server);
    return state != FKT_SA_STATE_UNMASK && state != FKT_SA_STATE_DONE && state != FKT_SA_STATE_FAILED;
}

int sa_world_step(struct sa_world *w)
{
    if (w->steps == 0 && w->on_wire == 0) sa_world_pump(w);
    if (one_message(w)) return 1;
    if (!open_phase(w)) return 0;
    return sa_world_tell(w, SA_CLOSE, 0, NULL, 0) == FKT_OK || w->on_wire > 0;
}

void sa_world_finish_wire(struct sa_world *w)
{
    while (one_message(w)) {}
}

/* What every call answers after a failure. */
static fkt_status last_word(const struct sa_world *w)
{
    const int64_t *total;
    const uint8_t *survivors;
    if (fkt_sa_server_state(w->server) != FKT_SA_STATE_FAILED) return FKT_OK;
    return fkt_sa_server_total(w->server, &total, &survivors);
}

fkt_status sa_world_run_to_unmask(struct sa_world *w)
{
    while (open_phase(w) && sa_world_step(w)) {}
    return last_word(w);
}

fkt_status sa_world_run(struct sa_world *w)
{
    fkt_status st = sa_world_run_to_unmask(w);
    if (st == FKT_OK && fkt_sa_server_state(w->server) == FKT_SA_STATE_UNMASK) st = fkt_sa_server_unmask(w->server);
    return st;
}

/* ---- evaluating ---- */

void sa_world_check(struct sa_world *w)
{
    const int64_t *total;
    const uint8_t *survivors;
    uint32_t n = 0;
    CHECK_OK(fkt_sa_server_total(w->server, &total, &survivors));
    for (uint32_t i = 0; i < w->params.sites; i++) n += survivors[i];
    CHECK(n >= w->params.sites - w->params.dropped);
    for (uint32_t k = 0; k < w->params.length; k++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < w->params.sites; i++) sum += survivors[i] ? w->site[i].x[k] : 0;
        if (total[k] != sum)
            fail_msg("number %u of the total is %lld, not %lld", k, (long long)total[k], (long long)sum);
    }
}

static int of_memory(fkt_status st) { return st == FKT_E_NOMEM; }

/* Ends as the first server did, with the same words on the way. */
static void compare(const struct sa_world *w, const struct fkt_sa_server *again, const uint8_t said[32])
{
    const int64_t *a, *b;
    const uint8_t *sa, *sb;
    struct fkt_sa_census ca, cb;
    CHECK(fkt_sa_server_state(again) == fkt_sa_server_state(w->server));
    assert_memory_equal(said, w->said, 32);
    fkt_sa_server_census(w->server, &ca);
    fkt_sa_server_census(again, &cb);
    assert_memory_equal(&ca, &cb, sizeof ca);
    for (uint32_t i = 0; i < w->params.sites; i++)
        CHECK(fkt_sa_server_site(again, i) == fkt_sa_server_site(w->server, i));
    if (fkt_sa_server_state(again) != FKT_SA_STATE_DONE) return;
    CHECK_OK(fkt_sa_server_total(w->server, &a, &sa));
    CHECK_OK(fkt_sa_server_total(again, &b, &sb));
    assert_memory_equal(a, b, w->params.length * sizeof *a);
    assert_memory_equal(sa, sb, w->params.sites);
}

fkt_status sa_world_replay(const struct sa_world *w)
{
    struct fkt_sa_server *again = NULL;
    uint8_t said[32] = {0};
    fkt_status st;
    FKT_TRY(fkt_sa_server_new(&again, &w->params, w->round, 0));
    FKT_TRY(pump_server((struct sa_world *)w, again, said, 0));
    for (size_t i = 0; i < w->logged; i++) {
        const struct sa_log_entry *e = &w->log[i];
        fkt_status answer = tell(again, e->event, e->from, e->bytes, e->len);
        if (of_memory(answer)) {
            st = fkt_sa_server_state(again) == FKT_SA_STATE_FAILED ? answer : FKT_E_STATE;
            goto out;
        }
        if (answer != e->answer)
            fail_msg("event %zu: '%s', not '%s'", i, fkt_status_name(answer), fkt_status_name(e->answer));
        FKT_TRY(pump_server((struct sa_world *)w, again, said, 0));
    }
    if (fkt_sa_server_state(again) == FKT_SA_STATE_UNMASK && fkt_sa_server_state(w->server) == FKT_SA_STATE_DONE) {
        st = fkt_sa_server_unmask(again);
        if (of_memory(st)) goto out;
    }
    compare(w, again, said);
    st = FKT_OK;
out:
    fkt_sa_server_free(again);
    return st;
}
