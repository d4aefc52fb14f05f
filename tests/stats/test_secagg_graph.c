/* SPDX-License-Identifier: Apache-2.0 */
/* Rings as graph.c draws them: uniform, and with the failure rates that finder.md states. Seeds are fixed; the
 * false-alarm rates are those of a fresh seed. */
#include "fedkt/advanced/secagg.h"
#include "secagg/graph.h"
#include "tests/stats/chi2.h"
#include "tests/support/check.h"

static void draw(struct fkt_sa_graph *g, uint32_t sites, uint32_t degree, uint32_t number)
{
    const struct fkt_sa_params p = {.sites = sites, .degree = degree};
    const uint8_t session[32] = {1}, seed[32] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16)};
    CHECK_OK(fkt_sa_graph_make(g, &p, session, seed));
}

/* All 120 orders of five sites: chi-square, rejects a right shuffle once in a million. */
static void every_order_is_as_likely(void **state)
{
    uint64_t count[3125] = {0}, seen[120];
    double p[120];
    int n = 0;
    (void)state;
    for (uint32_t i = 0; i < 60000; i++) {
        struct fkt_sa_graph g;
        uint32_t code = 0;
        draw(&g, 5, 2, i);
        for (int j = 0; j < 5; j++) code = code * 5 + g.ring[j];
        count[code]++;
        fkt_sa_graph_clear(&g);
    }
    for (int i = 0; i < 3125; i++)
        if (count[i]) {
            CHECK(n < 120);
            p[n] = 1.0 / 120, seen[n++] = count[i];
        }
    CHECK(n == 120);
    CHECK(chi2_test(seen, p, n, 60000) > 1e-6);
}

/* Site 0 among 40: each other one is its neighbour in 10/39 of 20,000 rings. Sum of squared deviations over their
 * variance; counts are bound by their sum, so it is chi-square with 38 degrees of freedom times 39/38. Once in a
 * million. The same for the place of a site. */
static void every_pair_is_as_likely(void **state)
{
    const double n = 20000, q = 10.0 / 39;
    uint64_t with[40] = {0}, place[40] = {0};
    double x = 0, p[40];
    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct fkt_sa_graph g;
        uint32_t near[10];
        draw(&g, 40, 10, i);
        fkt_sa_graph_neighbours(&g, 0, near);
        for (int j = 0; j < 10; j++) with[near[j]]++;
        place[g.place[17]]++;
        fkt_sa_graph_clear(&g);
    }
    for (int j = 1; j < 40; j++) x += ((double)with[j] - n * q) * ((double)with[j] - n * q) / (n * q * (1 - q));
    CHECK(with[0] == 0);
    CHECK(chi2_tail(x * 38 / 39, 38) > 1e-6);
    CHECK(chi2_tail(x * 38 / 39, 38) < 1 - 1e-6); /* nor too uniform */
    for (int j = 0; j < 40; j++) p[j] = 1.0 / 40;
    CHECK(chi2_test(place, p, 40, n) > 1e-6);
}

static double choose(double n, double k) { return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1); }

/* P(at least x of `marked` among k of n), term by term. */
static double tail(int n, int marked, int k, int x)
{
    double sum = 0;
    for (int i = x; i <= k && i <= marked; i++)
        sum += exp(choose(marked, i) + choose(n - marked, k - i) - choose(n, k));
    return sum;
}

struct outcome { /* of one ring, sites below C corrupt, the last D lost */
    int open;    /* honest sites with 2t <= k + corrupt neighbours */
    int starved; /* live sites with fewer than t live neighbours */
    int narrow;  /* live sites with 3t/8 or fewer live ones on one side, counted for each side */
    int witnesses_open, witnesses_starved;
};

static struct outcome look(const struct fkt_sa_graph *g, uint32_t c, uint32_t d, uint32_t t)
{
    const uint32_t n = g->sites, k = g->degree;
    struct outcome o = {0};
    uint32_t near[64], bad = 0, lost = 0;
    fkt_sa_graph_witnesses(g, near);
    for (uint32_t j = 0; j < k; j++) bad += near[j] < c, lost += near[j] >= n - d;
    o.witnesses_open = 2 * t <= k + bad, o.witnesses_starved = k - lost < t;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t live[2] = {0};
        bad = 0;
        fkt_sa_graph_neighbours(g, i, near);
        for (uint32_t j = 0; j < k; j++) {
            bad += near[j] < c;
            live[fkt_sa_graph_after(g, i, near[j])] += near[j] < n - d;
        }
        o.open += i >= c && 2 * t <= k + bad;
        if (i >= n - d) continue;
        o.starved += live[0] + live[1] < t;
        o.narrow += (live[0] <= 3 * t / 8) + (live[1] <= 3 * t / 8);
    }
    return o;
}

/* 20,000 rings at parameters so weak that failures occur. The mean number of sites with each kind of failure is what
 * the tails say, within six standard errors (a right ring fails one of the three about once in 1e8 runs; the errors are
 * those measured). The rings with any failure are no more than the bounds of the finder plus six standard errors, and
 * not none. */
static void as_dangerous_as_computed(void **state)
{
    const uint32_t n = 200, c = 20, d = 20, rings = 20000;
    double mean[3] = {0}, square[3] = {0}, unsafe = 0, failed = 0, want[3];
    uint32_t k, t;
    (void)state;
    CHECK_OK(fkt_sa_find(n, c, d, 1, 1, &k, &t));
    CHECK(k <= 64 && k <= c + d);
    for (uint32_t i = 0; i < rings; i++) {
        struct fkt_sa_graph g;
        struct outcome o;
        draw(&g, n, k, i);
        o = look(&g, c, d, t);
        const double x[3] = {o.open, o.starved, o.narrow};
        for (int e = 0; e < 3; e++) mean[e] += x[e] / rings, square[e] += x[e] * x[e] / rings;
        unsafe += o.open || o.witnesses_open;
        failed += o.starved || o.narrow || o.witnesses_starved;
        fkt_sa_graph_clear(&g);
    }
    want[0] = (n - c) * tail((int)n - 1, (int)c, (int)k, (int)(2 * t - k));
    want[1] = (n - d) * tail((int)n - 1, (int)d, (int)k, (int)(k - t + 1));
    want[2] = 2 * (n - d) * tail((int)n - 1, (int)d, (int)k / 2, (int)(k / 2 - 3 * t / 8));
    for (int e = 0; e < 3; e++) {
        CHECK(mean[e] > 0);
        CHECK_NEAR(mean[e], want[e], 6 * sqrt((square[e] - mean[e] * mean[e]) / rings));
    }
    CHECK(unsafe > 0 && unsafe / rings <= 0.25 + 6 * sqrt(0.25 * 0.75 / rings));
    CHECK(failed > 0 && failed / rings <= 0.5 + 6 * sqrt(0.25 / rings));
}

/* ---- the server cuts the ring, with ghosts or without ----
 *
 * It wants the sum over an arc. `gap` places before and after it hold corrupt sites, and all honest sites there are
 * lost; the honest sites beyond are survivors. With gap < k/2 sites of the arc have some of these as neighbours: they
 * are ghosts, and the server has claimed to the arc that they never shared. */

enum place { OF_ARC, OF_GAP, CORRUPT, BEYOND };

struct cut {
    const struct fkt_sa_graph *g;
    uint32_t c, d, t;
    enum place at[64];
};

static enum place beside(const struct cut *u, uint32_t p, int step)
{
    return u->at[(p + u->g->sites + (uint32_t)step) % u->g->sites];
}

/* How many within k/2 of place p are `what`; both sides, or with `sign` one of them. */
static uint32_t around(const struct cut *u, uint32_t p, enum place what, int sign)
{
    const int half = (int)u->g->degree / 2;
    uint32_t n = 0;
    for (int i = sign > 0 ? 1 : -half; i <= (sign < 0 ? -1 : half); i++) n += i != 0 && beside(u, p, i) == what;
    return n;
}

static int survivors_beside(const struct cut *u, uint32_t p, int sign)
{
    return (int)(around(u, p, OF_ARC, sign) + around(u, p, BEYOND, sign) + around(u, p, CORRUPT, sign));
}

/* docs/protocol.md 3.5. shorter: the whole arc received a list without the ghosts; else only the sites next to one. */
static int tells(const struct cut *u, uint32_t p, int shorter)
{
    const int t = (int)u->t;
    if (u->at[p] == CORRUPT) return 1;
    if (u->at[p] == OF_GAP || (u->at[p] == OF_ARC && (shorter || around(u, p, BEYOND, 0)))) return 0;
    return survivors_beside(u, p, 0) >= t && survivors_beside(u, p, 1) > 3 * t / 8 &&
           survivors_beside(u, p, -1) > 3 * t / 8;
}

/* The places: an arc of `length` from `start`. 0 when an end of it is corrupt, or more than D would be lost. */
static int lay(struct cut *u, uint32_t start, uint32_t length, uint32_t gap)
{
    const uint32_t n = u->g->sites;
    uint32_t lost = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t p = (start + i) % n;
        u->at[p] = u->g->ring[p] < u->c               ? CORRUPT
                   : i < length                       ? OF_ARC
                   : i < length + gap || i >= n - gap ? OF_GAP
                                                      : BEYOND;
        lost += u->at[p] == OF_GAP;
    }
    return lost <= u->d && u->at[start] == OF_ARC && u->at[(start + length - 1) % n] == OF_ARC;
}

/* The server obtains the sum over the arc: every site of it has t peers, and t neighbours reveal every secret. */
static int had(const struct cut *u, int shorter)
{
    const int half = (int)u->g->degree / 2;
    for (uint32_t p = 0; p < u->g->sites; p++) {
        uint32_t told = 0;
        if (u->at[p] != OF_ARC && u->at[p] != OF_GAP) continue;
        if (u->at[p] == OF_ARC && around(u, p, OF_ARC, 0) + around(u, p, OF_GAP, 0) + around(u, p, CORRUPT, 0) < u->t)
            return 0;
        for (int i = -half; i <= half; i++)
            told += i && tells(u, (p + u->g->sites + (uint32_t)i) % u->g->sites, shorter);
        if (told < u->t) return 0;
    }
    return 1;
}

/* finder.md 3, once more. */
static double cut_bound(int n, int c, int d, int k, int t)
{
    const int over = t - k / 2, side = 3 * t / 8;
    const double both = tail(n - 2, c, k, k > d ? k - d : 0);
    double edge = 0;
    int x = over;
    for (; 2 * x < over + side; x++) edge += tail(n - 2, c, k / 2, x) * tail(n - 2, c, side - x, over + side - 2 * x);
    edge += tail(n - 2, c, k / 2, x);
    return edge * edge < both ? edge * edge : both;
}

struct haul {              /* arcs of a ring whose sum the server can obtain */
    double plain;          /* without ghosts */
    double ghosts;         /* with ghosts, if masks did not depend on the list of the delivered */
    double ghosts_at_once; /* with ghosts in no list of the arc */
};

static struct haul haul_of(const struct fkt_sa_graph *g, uint32_t c, uint32_t d, uint32_t t, uint32_t length)
{
    struct cut u = {.g = g, .c = c, .d = d, .t = t};
    struct haul h = {0};
    for (uint32_t start = 0; start < g->sites; start++) {
        int any = 0, at_once = 0;
        h.plain += lay(&u, start, length, g->degree / 2) && had(&u, 0);
        for (uint32_t gap = 0; gap < g->degree / 2; gap++) {
            if (!lay(&u, start, length, gap)) continue;
            any |= had(&u, 0);
            if (!had(&u, 1)) continue;
            at_once = 1; /* finder.md 1: then everyone in the arc is surrounded */
            for (uint32_t p = 0; p < g->sites; p++)
                CHECK(u.at[p] != OF_ARC || 2 * t <= g->degree + around(&u, p, CORRUPT, 0));
        }
        h.ghosts += any, h.ghosts_at_once += at_once;
    }
    return h;
}

/* 1,000 rings, arcs of half a ring from every place. Without ghosts the server obtains no more of them than finder.md 3
 * says (plus six standard errors: a false alarm in 1e8 runs), and some. If masks did not depend on the list of the
 * delivered, ghosts would give more. Since they do, masks cancel only in an arc that received one list, and no site in
 * it that finds a ghost among the survivors reveals anything. With half the sites corrupt short arcs are still
 * obtained, all of whose sites are surrounded. */
static void cut_with_ghosts_and_without(void **state)
{
    const uint32_t n = 48, k = 12, rings = 1000;
    double plain = 0, square = 0, ghosts = 0, surrounded = 0, bound;
    (void)state;
    for (uint32_t r = 0; r < rings; r++) {
        struct fkt_sa_graph g;
        struct haul h;
        draw(&g, n, k, r);
        h = haul_of(&g, 12, 9, 8, n / 2);
        plain += h.plain / rings, square += h.plain * h.plain / rings, ghosts += h.ghosts / rings;
        CHECK(h.ghosts_at_once == 0);
        surrounded += haul_of(&g, n / 2, 9, 8, 4).ghosts_at_once;
        fkt_sa_graph_clear(&g);
    }
    bound = n * cut_bound(n, 12, 9, (int)k, 8);
    CHECK(plain > 0 && plain <= bound + 6 * sqrt((square - plain * plain) / rings));
    CHECK(ghosts > bound);
    CHECK(surrounded > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_is_as_likely), cmocka_unit_test(every_pair_is_as_likely),
        cmocka_unit_test(as_dangerous_as_computed), cmocka_unit_test(cut_with_ghosts_and_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
