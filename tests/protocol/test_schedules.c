/* SPDX-License-Identifier: Apache-2.0 */
/* Random schedules: a seed of 64 bits chooses how many sites there are, the graph and all other parameters, which sites
 * are lost in which phase and how, and the delay of every message; messages overtake each other, arrive twice, arrive
 * after the deadline or never. No site is malicious. What must hold:
 *
 *   - the server ends DONE with exactly the sum over its survivors, of whom there are at least N - D, or FAILED with
 *     FKT_E_TOO_FEW; there is no other end, and it comes after a bounded number of steps;
 *   - FAILED only for a reason: on a complete graph more than D sites were disturbed, on a sparse one at least one;
 *   - with no site disturbed the sum is that of all, bit for bit;
 *   - a site that was not disturbed is not reported as lost, and ends with the server;
 *   - the checks of sa_watch.h hold, and all memory is freed.
 *
 * FEDKT_SCHEDULES=n runs seeds 0..n-1, FEDKT_SCHEDULES_FROM=s begins at s. A failure names its seed. */
#include "tests/support/check.h"
#include "tests/support/sa_watch.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { DEFAULT_SCHEDULES = 50 };
#else
enum { DEFAULT_SCHEDULES = 200 };
#endif

enum { SITES_MAX = 64, PATIENCE = 1000 };
enum mood { QUIET, LOSSES, WILD };
enum harm { UNHARMED, SILENT, DEAF, LATE, GIVEN_UP, NO_BUDGET, NO_SPEND, BAD_VECTOR, MISLAID };

struct event {
    uint64_t at, order;
    uint32_t site;
    int to_server;
    uint8_t *bytes;
    size_t len;
};

struct run {
    struct sa_world w;
    struct sa_watch v;
    struct fkt_rng rng;
    uint64_t seed, now, order;
    enum mood mood;
    int clock; /* deadlines by the clock; else phases are closed when no message is in flight */
    enum harm harm[SITES_MAX];
    enum fkt_sa_kind when[SITES_MAX]; /* the message of the site with which its harm begins */
    struct event *queue;
    size_t n, cap;
};

static struct {
    uint64_t sums, aborts, whole, messages;
} tally;

static uint64_t draw(struct run *r, uint64_t below) { return fkt_rng_below(&r->rng, below); }
static int chance(struct run *r, unsigned percent) { return draw(r, 100) < percent; }

#define HOLDS(r, cond)                                                                                                 \
    do {                                                                                                               \
        if (!(cond)) fail_msg("seed %llu: not true: %s", (unsigned long long)(r)->seed, #cond);                        \
    } while (0)

/* ---- parameters ---- */

static uint32_t draw_sites(struct run *r)
{
    const uint64_t kind = draw(r, 100);
    if (kind < 70) return 3 + (uint32_t)draw(r, 6);
    if (kind < 90) return 9 + (uint32_t)draw(r, 8);
    if (kind < 98) return 17 + (uint32_t)draw(r, 16);
    return 33 + (uint32_t)draw(r, SITES_MAX - 32);
}

static uint32_t least_threshold(uint32_t n, uint32_t d, uint32_t c)
{
    const uint32_t half = (n - 1 + c) / 2 + 1;
    return half > c + d ? half : c + d + 1;
}

/* D, C and t for a complete graph: D up to the most that leaves a threshold between the rules of section 1. */
static void draw_complete(struct run *r, struct fkt_sa_params *p)
{
    const uint32_t n = p->sites, c = (uint32_t)draw(r, n / 4 + 1);
    uint32_t most = 0, least;
    while (n >= most + 1 + c + 2 && least_threshold(n, most + 1, c) <= n - 1 - (most + 1)) most++;
    p->degree = n - 1;
    p->corrupt = c;
    p->dropped = (uint32_t)draw(r, most + 1);
    least = least_threshold(n, p->dropped, c);
    p->threshold = least + (uint32_t)draw(r, n - p->dropped - least);
}

static void draw_sparse(struct run *r, struct fkt_sa_params *p)
{
    const uint32_t n = p->sites;
    uint32_t most = (n - 2) / 2 < 8 ? (n - 2) / 2 : 8;
    int64_t again;
    p->degree = 2 * (1 + (uint32_t)draw(r, most));
    p->threshold = p->degree / 2 + 1 + (uint32_t)draw(r, (p->degree / 2 + 1) / 2);
    do {
        p->dropped = (uint32_t)draw(r, n / 3 + 1);
        p->corrupt = (uint32_t)draw(r, n / 4 + 1);
        again = ((int64_t)n - 2 * p->dropped - p->corrupt) * (p->degree - p->threshold + 1) -
                (int64_t)p->dropped * (p->degree - p->threshold);
    } while (n < p->dropped + p->corrupt + 2 || again <= 0);
}

static struct fkt_sa_params draw_params(struct run *r)
{
    struct fkt_sa_params p = {.sites = draw_sites(r)};
    uint64_t most;
    if (p.sites >= 4 && chance(r, p.sites > 16 ? 80 : 50)) draw_sparse(r, &p);
    else draw_complete(r, &p);
    p.attempts = 1 + (uint32_t)draw(r, 4);
    p.length = chance(r, 90) ? 1 + (uint32_t)draw(r, 40) : 1 + (uint32_t)draw(r, 700);
    p.keystream = chance(r, 50) ? FKT_SA_KEYSTREAM_AES_256_CTR : FKT_SA_KEYSTREAM_CHACHA20;
    p.bits = 8 + (uint32_t)draw(r, 55);
    most = (((uint64_t)1 << (p.bits - 1)) - 1) / p.sites;
    p.bound = chance(r, 50) ? most : 1 + draw(r, most);
    for (size_t i = 0; i < sizeof p.task; i++) p.task[i] = (uint8_t)draw(r, 256);
    return p;
}

/* ---- which sites are disturbed, and how ---- */

static void draw_harms(struct run *r)
{
    const uint32_t n = r->w.params.sites, d = r->w.params.dropped;
    const uint64_t most = d + (uint64_t)chance(r, 20); /* one too many now and then */
    const uint64_t victims = r->mood == LOSSES && most ? 1 + draw(r, most) : 0;
    for (uint64_t i = 0; i < victims; i++) {
        const uint32_t site = (uint32_t)draw(r, n);
        const enum harm how = (enum harm)(SILENT + draw(r, BAD_VECTOR));
        struct sa_site *s = &r->w.site[site];
        if (r->harm[site]) continue;
        r->harm[site] = how;
        r->when[site] = (enum fkt_sa_kind)(FKT_SA_M_ADVERTISE + draw(r, 6));
        if (how == NO_BUDGET) s->refuse_reserve = FKT_E_BUDGET;
        if (how == NO_SPEND) s->refuse_spend = FKT_E_BUDGET;
        if (how == BAD_VECTOR) s->x[draw(r, r->w.params.length)] = (int64_t)r->w.params.bound + 1;
    }
}

static unsigned harmed(const struct run *r)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < r->w.params.sites; i++) n += r->harm[i] != UNHARMED;
    return n;
}

/* ---- messages in flight ---- */

static void enqueue(struct run *r, const struct sa_message *l, uint64_t at)
{
    struct event e = {at, r->order++, l->site, l->to_server, malloc(l->len + 1), l->len};
    assert_non_null(e.bytes);
    memcpy(e.bytes, l->bytes, l->len);
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->queue = realloc(r->queue, r->cap * sizeof *r->queue);
        assert_non_null(r->queue);
    }
    r->queue[r->n++] = e;
}

static struct event dequeue(struct run *r)
{
    size_t first = 0;
    struct event e;
    for (size_t i = 1; i < r->n; i++) {
        const struct event *a = &r->queue[i], *b = &r->queue[first];
        if (a->at < b->at || (a->at == b->at && a->order < b->order)) first = i;
    }
    e = r->queue[first];
    r->queue[first] = r->queue[--r->n];
    return e;
}

/* What happens to a message of a disturbed site. Returns 0 when it is not sent, else its delay. */
static uint64_t harm_message(struct run *r, const struct sa_message *l)
{
    struct sa_site *s = &r->w.site[l->site];
    if (!l->to_server || l->kind < r->when[l->site] || l->kind == FKT_SA_M_LEAVE) return 1;
    switch (r->harm[l->site]) {
    case SILENT: s->gone = 1; return 0;
    case DEAF: s->gone = 1; return 1; /* its last message arrives */
    case LATE: return 2 * PATIENCE + draw(r, 3 * PATIENCE);
    case GIVEN_UP:
        s->gone = 1;
        (void)sa_world_tell(&r->w, SA_LOST, l->site, NULL, 0);
        return 0;
    default: return 1;
    }
}

/* Every message passes here before it is sent, and goes into the queue instead. */
static void on_message(void *self, struct sa_world *w, struct sa_message *l)
{
    struct run *r = self;
    const uint64_t travel = 1 + draw(r, 40);
    uint64_t late = 1;
    (void)w;
    l->copies = 0;
    tally.messages++;
    if (r->mood == WILD) {
        if (chance(r, 2)) late = chance(r, 50) ? 0 : PATIENCE + draw(r, 2 * PATIENCE);
        if (late != 1) r->harm[l->site] = MISLAID;
        if (chance(r, 3)) { /* once more, at any time: a site that has gone on since must stop */
            if (!l->to_server) r->harm[l->site] = MISLAID;
            enqueue(r, l, r->now + travel + draw(r, 2 * PATIENCE));
        }
    } else if (r->harm[l->site]) {
        late = harm_message(r, l);
    }
    if (late == 0) return;
    enqueue(r, l, r->now + travel + late);
    /* twice: to a site at once, before anything else can reach it; to the server whenever */
    if (chance(r, 10)) enqueue(r, l, r->now + travel + late + (l->to_server ? draw(r, 3 * PATIENCE) : 0));
}

/* ---- the clock ---- */

static int waits(const struct run *r)
{
    const enum fkt_sa_state s = fkt_sa_server_state(r->w.server);
    return s != FKT_SA_STATE_UNMASK && s != FKT_SA_STATE_DONE && s != FKT_SA_STATE_FAILED;
}

static void tick(struct run *r)
{
    fkt_status st;
    if (!r->clock || !waits(r)) return;
    st = fkt_sa_server_tick(r->w.server, r->now);
    HOLDS(r, st == FKT_OK || (st == FKT_E_TOO_FEW && !waits(r)));
    sa_world_pump(&r->w);
}

static void deliver_next(struct run *r)
{
    struct event e = dequeue(r);
    if (e.at > r->now) r->now = e.at;
    tick(r);
    sa_world_post(&r->w, e.site, e.to_server, e.bytes, e.len);
    while (r->w.on_wire) sa_world_step(&r->w);
    free(e.bytes);
}

/* Without a clock a phase ends when nothing more can come in time: what is later than the patience comes after it. */
static int all_late(const struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->queue[i].at <= r->now + PATIENCE) return 0;
    return 1;
}

static void play(struct run *r)
{
    const uint64_t bound = 40 * ((uint64_t)r->w.params.sites + 4);
    uint64_t steps = 0;
    sa_world_pump(&r->w);
    while (waits(r)) {
        HOLDS(r, steps++ < bound);
        if (!r->clock && all_late(r)) {
            fkt_status st = sa_world_tell(&r->w, SA_CLOSE, 0, NULL, 0);
            HOLDS(r, st == FKT_OK || (st == FKT_E_TOO_FEW && !waits(r)));
        } else if (r->n) {
            deliver_next(r);
        } else {
            r->now += PATIENCE + 1;
            tick(r); /* the first tick of a phase starts its clock */
            r->now += PATIENCE + 1;
            tick(r);
        }
    }
}

/* ---- the end ---- */

static void unmask(struct run *r)
{
    struct fkt_sa_server *s = r->w.server;
    struct fkt_sa_lane *lane[3] = {NULL};
    const size_t jobs = fkt_sa_server_jobs(s), lanes = 1 + draw(r, 3);
    size_t *order;
    if (fkt_sa_server_state(s) != FKT_SA_STATE_UNMASK) return;
    if (chance(r, 50)) {
        CHECK_OK(fkt_sa_server_unmask(s));
        return;
    }
    order = malloc(jobs * sizeof *order);
    assert_non_null(order);
    for (size_t i = 0; i < jobs; i++) order[i] = i;
    fkt_rng_shuffle(&r->rng, order, jobs);
    for (size_t i = 0; i < lanes; i++) CHECK_OK(fkt_sa_lane_new(&lane[i], s));
    for (size_t i = 0; i < jobs; i++) CHECK_OK(fkt_sa_server_job(s, order[i], lane[draw(r, lanes)]));
    CHECK_OK(fkt_sa_server_finish(s, lane, lanes));
    for (size_t i = 0; i < lanes; i++) fkt_sa_lane_free(lane[i]);
    free(order);
}

static void check_total(struct run *r)
{
    const struct fkt_sa_params *p = &r->w.params;
    const int64_t *total;
    const uint8_t *survivors;
    uint32_t n = 0;
    CHECK_OK(fkt_sa_server_total(r->w.server, &total, &survivors));
    for (uint32_t i = 0; i < p->sites; i++) {
        n += survivors[i];
        if (survivors[i]) HOLDS(r, r->v.site[i].said[FKT_SA_M_MASKED] == 1);
        if (!r->harm[i] && fkt_sa_complete(p)) HOLDS(r, survivors[i]);
    }
    HOLDS(r, n >= (harmed(r) ? p->sites - p->dropped : p->sites));
    for (uint32_t k = 0; k < p->length; k++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < p->sites; i++) sum += survivors[i] ? r->w.site[i].x[k] : 0;
        HOLDS(r, total[k] == sum);
    }
    tally.sums++;
    tally.whole += n == p->sites;
}

static void check_sites(struct run *r)
{
    const int done = fkt_sa_server_state(r->w.server) == FKT_SA_STATE_DONE, complete = fkt_sa_complete(&r->w.params);
    for (uint32_t i = 0; i < r->w.params.sites; i++) {
        const enum fkt_sa_state s = fkt_sa_client_state(r->w.site[i].client);
        const fkt_status lost = fkt_sa_server_site(r->w.server, i);
        if (r->harm[i]) continue;
        /* a site that is left with too few neighbours cannot go on: on a complete graph only when nobody can */
        HOLDS(r, lost == FKT_OK || (lost == FKT_E_TOO_FEW && harmed(r) > 0 && !(complete && done)));
        if (done) HOLDS(r, s == FKT_SA_STATE_DONE || lost != FKT_OK);
        else HOLDS(r, s == FKT_SA_STATE_DONE || s == FKT_SA_STATE_FAILED);
    }
}

static void evaluate(struct run *r)
{
    const enum fkt_sa_state s = fkt_sa_server_state(r->w.server);
    const int64_t *total;
    const uint8_t *survivors;
    if (r->v.broken[0]) fail_msg("seed %llu: %s", (unsigned long long)r->seed, r->v.broken);
    HOLDS(r, s == FKT_SA_STATE_DONE || s == FKT_SA_STATE_FAILED);
    if (s == FKT_SA_STATE_DONE) {
        check_total(r);
    } else {
        HOLDS(r, fkt_sa_server_total(r->w.server, &total, &survivors) == FKT_E_TOO_FEW);
        HOLDS(r, harmed(r) > (fkt_sa_complete(&r->w.params) ? r->w.params.dropped : 0));
        tally.aborts++;
    }
    check_sites(r);
}

static void init(struct run *r, uint64_t seed)
{
    struct fkt_sa_params p;
    memset(r, 0, sizeof *r);
    r->seed = seed;
    fkt_rng_init(&r->rng, seed, 7);
    p = draw_params(r);
    r->mood = chance(r, 20) ? QUIET : chance(r, 70) ? LOSSES : WILD;
    r->clock = chance(r, 60);
    r->now = draw(r, 1000000);
    if (sa_world_init(&r->w, &p, seed) != FKT_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, fkt_error_text());
    r->w.hook = on_message;
    r->w.self = r;
    r->w.keep_log = !r->clock && p.sites < 9;
    if (r->clock) {
        fkt_sa_server_free(r->w.server);
        CHECK_OK(fkt_sa_server_new(&r->w.server, &r->w.params, r->w.round, PATIENCE));
    }
    assert_int_equal(sa_watch_init(&r->v, &r->w), 0);
    r->v.honest_only = 1;
    draw_harms(r);
}

static void one(uint64_t seed)
{
    const size_t live = fkt_alloc_live();
    struct run r;
    init(&r, seed);
    play(&r);
    unmask(&r);
    while (r.n) deliver_next(&r); /* what comes after the end changes nothing */
    evaluate(&r);
    if (r.w.keep_log) CHECK_OK(sa_world_replay(&r.w));
    sa_watch_release(&r.v);
    sa_world_release(&r.w);
    free(r.queue);
    if (fkt_alloc_live() != live) fail_msg("seed %llu: memory was not given back", (unsigned long long)seed);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_schedules(void **state)
{
    const uint64_t from = setting("FEDKT_SCHEDULES_FROM", 0), n = setting("FEDKT_SCHEDULES", DEFAULT_SCHEDULES);
    (void)state;
    for (uint64_t seed = from; seed < from + n; seed++) one(seed);
    print_message("%llu schedules from seed %llu: %llu sums (%llu of all sites), %llu clean aborts, %llu letters\n",
                  (unsigned long long)n, (unsigned long long)from, (unsigned long long)tally.sums,
                  (unsigned long long)tally.whole, (unsigned long long)tally.aborts,
                  (unsigned long long)tally.messages);
    assert_true(tally.sums + tally.aborts == n);
    if (n >= DEFAULT_SCHEDULES) assert_true(tally.aborts > 0 && tally.whole > 0 && tally.sums > tally.whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
