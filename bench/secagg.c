/* SPDX-License-Identifier: Apache-2.0 */
/* secagg.c - a whole round of secure aggregation at full size, compared with floors computed from raw rates.
 *
 * Sites run in separate processes (bench/sites.c), the server in this one, on one core until unmasking. A tenth of the
 * sites is lost between SHARE and MASK, which is the most work for the server. The sum is compared with the plain sum
 * before any figure is printed.
 *
 *   floor of a site     (peers + 1) masks at the raw keystream's rate + 2 key agreements a neighbour + signatures it
 *                       must check: one for each neighbour, t for the survivors
 *   floor of the server self masks of the survivors + pair masks between lost and survivors, at the same rate, + a key
 *                       agreement for each pair + two signatures a site
 *
 * Rates of keystream, X25519 and Ed25519 are measured in the same run. The floors exclude adding, packing, hashing,
 * copying and Shamir's sharing. Cost: about half a minute for a thousand sites. */
#include "fedkt/advanced/secagg.h"

#include "bench/bench.h"
#include "bench/sites.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/threads.h"
#include "crypto/agree.h"
#include "crypto/sign.h"
#include "crypto/stream.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 128, RATE_RUNS = 10, CREWS_MAX = 64, ROWS = 6 };
#define PAPER_KIB 327.5
#define TRAFFIC_KB 45.0
#define MEMORY_MB 64.0

struct rates {
    double stream, chacha, agree, verify; /* bytes of AES-256-CTR, of ChaCha20, operations, operations per second */
};

struct round {
    struct fkt_sa_params p;
    uint8_t *roster, *lost;
    struct fkt_sa_server *server;
    struct cli_crew crew[CREWS_MAX];
    unsigned crews;
    uint8_t *buf, *out; /* a received message, one to send */
    size_t cap;
    double server_seconds;                     /* processor time of the server, until unmasking */
    double unmask_cpu, unmask_one, unmask_all; /* one core's processor time; wall clock on one core, on all */
    size_t jobs;                               /* masks that were removed */
    struct cli_site_cost *costs;
    size_t n_costs;
    double memory_mb;
};

static fkt_status measure_rates(struct rates *r)
{
    enum { BYTES = 335400, TIMES = 64 };
    struct fkt_stream *s = NULL, *other = NULL;
    uint8_t *buf = NULL, key[32] = {1}, pk[32], shared[32], sig[64], vk[32], sk[64];
    fkt_status st;
    memset(r, 0, sizeof *r);
    FKT_TRY(fkt_alloc(&buf, BYTES));
    FKT_TRY(fkt_stream_new(&s, FKT_KEYSTREAM_AES));
    FKT_TRY(fkt_stream_new(&other, FKT_KEYSTREAM_CHACHA20));
    fkt_agree_public(pk, key);
    fkt_sign_keypair(vk, sk, key);
    fkt_sign(sig, key, 32, sk);
    for (int run = 0; run < RATE_RUNS; run++) {
        double start = fkt_cpu_now();
        for (int i = 0; i < TIMES; i++) FKT_TRY(fkt_stream_bytes(s, key, buf, BYTES));
        r->stream = fmax(r->stream, (double)BYTES * TIMES / (fkt_cpu_now() - start));
        start = fkt_cpu_now();
        for (int i = 0; i < TIMES; i++) FKT_TRY(fkt_stream_bytes(other, key, buf, BYTES));
        r->chacha = fmax(r->chacha, (double)BYTES * TIMES / (fkt_cpu_now() - start));
        start = fkt_cpu_now();
        for (int i = 0; i < TIMES; i++) FKT_TRY(fkt_agree(shared, key, pk));
        r->agree = fmax(r->agree, TIMES / (fkt_cpu_now() - start));
        start = fkt_cpu_now();
        for (int i = 0; i < TIMES; i++)
            if (!fkt_verify(sig, key, 32, vk)) {
                st = fkt_fail(FKT_E_NUMERIC, "a valid signature is refused: not timed");
                goto out;
            }
        r->verify = fmax(r->verify, TIMES / (fkt_cpu_now() - start));
    }
out:
    fkt_stream_free(s);
    fkt_stream_free(other);
    fkt_free(buf);
    return st;
}

static fkt_status set_up(struct round *r, uint32_t sites, uint32_t classes, unsigned crews)
{
    uint32_t tenth = sites / 10;
    const uint8_t round[FKT_SA_ROUND] = "benched round";
    fkt_status st;
    FKT_TRY(fkt_alloc(&r->roster, (size_t)sites * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&r->lost, sites));
    FKT_TRY(fkt_alloc(&r->costs, sites));
    for (uint32_t i = 0; i < sites; i++) {
        uint8_t seed[32], sk[FKT_SIGN_SECRET];
        cli_bench_seed(seed, i);
        fkt_sign_keypair(r->roster + (size_t)i * FKT_SA_KEY, sk, seed);
        r->lost[i] = i % 10 == 3 && i / 10 < tenth;
    }
    r->p = (struct fkt_sa_params){.sites = sites,
                                  .dropped = tenth,
                                  .corrupt = tenth,
                                  .attempts = 4,
                                  .bits = 32,
                                  .length = classes * (LENGTH + 1) * (LENGTH + 2) / 2,
                                  .bound = ((uint64_t)1 << 31) / sites - 1,
                                  .keystream = FKT_SA_KEYSTREAM_AES_256_CTR,
                                  .roster = r->roster};
    FKT_TRY(fkt_sa_find(sites, tenth, tenth, 40, 20, &r->p.degree, &r->p.threshold));
    r->cap = fkt_sa_to_site_max(&r->p);
    if (r->cap < fkt_sa_to_server_max(&r->p)) r->cap = fkt_sa_to_server_max(&r->p);
    r->crews = crews < CREWS_MAX ? crews : CREWS_MAX;
    FKT_TRY(cli_crews_start(r->crew, r->crews, &r->p, r->lost)); /* before this process has memory to copy */
    FKT_TRY(fkt_alloc(&r->buf, r->cap));
    FKT_TRY(fkt_alloc(&r->out, r->cap));
    FKT_TRY(fkt_sa_server_new(&r->server, &r->p, round, 0));
out:
    return st;
}

/* Waits for busy crews, and passes their answers to the server. */
static fkt_status hear(struct round *r)
{
    struct pollfd fds[CREWS_MAX];
    fkt_status st = FKT_OK;
    for (unsigned i = 0; i < r->crews; i++) fds[i] = (struct pollfd){r->crew[i].busy ? r->crew[i].fd : -1, POLLIN, 0};
    if (poll(fds, r->crews, -1) < 0) return FKT_OK;
    for (unsigned i = 0; i < r->crews; i++) {
        size_t len;
        double start;
        if (!fds[i].revents) continue;
        FKT_TRY(cli_crew_take(&r->crew[i], r->buf, r->cap, &len));
        if (len == 0) continue;
        start = fkt_cpu_now();
        FKT_TRY(fkt_sa_server_recv(r->server, r->crew[i].site, r->buf, len));
        r->server_seconds += fkt_cpu_now() - start;
    }
out:
    return st;
}

static int anyone_busy(const struct round *r)
{
    for (unsigned i = 0; i < r->crews; i++)
        if (r->crew[i].busy) return 1;
    return 0;
}

/* Everything until the server has all secrets that it needs. */
static fkt_status play(struct round *r)
{
    fkt_status st = FKT_OK;
    while (fkt_sa_server_state(r->server) < FKT_SA_STATE_UNMASK) {
        double start = fkt_cpu_now();
        uint32_t to;
        size_t len;
        FKT_TRY(fkt_sa_server_next(r->server, &to, r->out, r->cap, &len));
        r->server_seconds += fkt_cpu_now() - start;
        if (len > 0) {
            struct cli_crew *c = &r->crew[to % r->crews];
            while (c->busy) FKT_TRY(hear(r));
            FKT_TRY(cli_crew_give(c, to, r->out, len));
        } else if (anyone_busy(r)) {
            FKT_TRY(hear(r));
        } else { /* only the lost sites have not answered */
            start = fkt_cpu_now();
            FKT_TRY(fkt_sa_server_close(r->server));
            r->server_seconds += fkt_cpu_now() - start;
        }
    }
    if (fkt_sa_server_state(r->server) != FKT_SA_STATE_UNMASK)
        st = fkt_fail(FKT_E_STATE, "the benched round did not end well");
out:
    return st;
}

struct work {
    const struct fkt_sa_server *server;
    struct fkt_sa_lane **lanes;
};

static fkt_status one_job(void *ctx, size_t item, unsigned worker)
{
    struct work *w = ctx;
    return fkt_sa_server_job(w->server, item, w->lanes[worker]);
}

/* All masks twice: on one core for the figure, on all of them for the sum. */
static fkt_status unmask(struct round *r, unsigned threads)
{
    struct fkt_sa_lane **lanes = NULL, *alone = NULL;
    struct work w = {r->server, NULL};
    double start, cpu;
    fkt_status st;
    FKT_TRY(fkt_alloc(&lanes, threads));
    FKT_TRY(fkt_sa_lane_new(&alone, r->server));
    r->jobs = fkt_sa_server_jobs(r->server);
    start = fkt_now();
    cpu = fkt_cpu_now();
    for (size_t i = 0; i < r->jobs; i++) FKT_TRY(fkt_sa_server_job(r->server, i, alone));
    r->unmask_cpu = fkt_cpu_now() - cpu;
    r->unmask_one = fkt_now() - start;
    w.lanes = lanes;
    for (unsigned i = 0; i < threads; i++) FKT_TRY(fkt_sa_lane_new(&lanes[i], r->server));
    start = fkt_now();
    FKT_TRY(fkt_parallel(threads, r->jobs, one_job, &w, NULL, "unmasking"));
    r->unmask_all = fkt_now() - start;
    start = fkt_cpu_now();
    FKT_TRY(fkt_sa_server_finish(r->server, lanes, threads));
    r->server_seconds += fkt_cpu_now() - start;
out:
    fkt_sa_lane_free(alone);
    for (unsigned i = 0; lanes && i < threads; i++) fkt_sa_lane_free(lanes[i]);
    fkt_free(lanes);
    return st;
}

static fkt_status check_sum(const struct round *r)
{
    const int64_t *total;
    const uint8_t *survivors;
    fkt_status st = fkt_sa_server_total(r->server, &total, &survivors);
    if (st != FKT_OK) return st;
    for (uint32_t i = 0; i < r->p.sites; i++)
        if (survivors[i] != !r->lost[i]) return fkt_fail(FKT_E_NUMERIC, "site %u is on the wrong side: not timed", i);
    for (uint32_t j = 0; j < r->p.length; j += 1 + r->p.length / 1024) {
        int64_t want = 0;
        for (uint32_t i = 0; i < r->p.sites; i++)
            if (survivors[i]) want += cli_bench_number(&r->p, i, j);
        if (total[j] != want) return fkt_fail(FKT_E_NUMERIC, "entry %u of the sum is wrong: not timed", j);
    }
    return FKT_OK;
}

static int by_seconds(const void *a, const void *b)
{
    const struct cli_site_cost *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static void row(struct fkt_bench_row **at, const char *what, const struct round *r, double value, const char *unit,
                double bound, const char *bound_name, const char *note)
{
    struct fkt_bench_row *b = (*at)++;
    memset(b, 0, sizeof *b);
    snprintf(b->name, sizeof b->name, "secagg/%s N=%u K=%u", what, r->p.sites,
             r->p.length / ((LENGTH + 1) * (LENGTH + 2) / 2));
    b->value = value;
    b->bound = bound;
    b->ratio_to_bound = value / bound;
    snprintf(b->unit, sizeof b->unit, "%s", unit);
    snprintf(b->bound_name, sizeof b->bound_name, "%s", bound_name);
    snprintf(b->note, sizeof b->note, "%s", note);
}

static void fill_rows(const struct round *r, const struct rates *rate, unsigned threads, struct fkt_bench_row **at)
{
    const struct fkt_sa_params *p = &r->p;
    const struct cli_site_cost *c = &r->costs[r->n_costs / 2];
    double mask = 4.0 * p->length / rate->stream, packed = (double)fkt_sa_packed(p->length, p->bits);
    double site = (p->degree + 1) * mask + 2.0 * p->degree / rate->agree + (p->degree + p->threshold) / rate->verify;
    size_t pairs = r->jobs - (p->sites - p->dropped);
    double server = (double)r->jobs * mask + (double)pairs / rate->agree + 2.0 * p->sites / rate->verify;
    char note[160];
    snprintf(note, sizeof note,
             "median of %zu sites, k=%u t=%u; AES-256-CTR %.2f GB/s (ChaCha20 %.2f), X25519 %.0f/s, Ed25519 %.0f/s",
             r->n_costs, p->degree, p->threshold, rate->stream * 1e-9, rate->chacha * 1e-9, rate->agree, rate->verify);
    row(at, "site", r, 1e3 * c->seconds, "ms", 1e3 * site, "masks, agreements, signatures", note);
    row(at, "traffic", r, ((double)(c->up + c->down) - packed) * 1e-3, "KB", TRAFFIC_KB, "target",
        "up and down, beside the packed vector");
    row(at, "vector", r, packed / 1024, "KiB", PAPER_KIB * p->length / 83850, "paper's 32-bit floats",
        "packed, 32 bits");
    snprintf(note, sizeof note, "one core, %u lost, %zu pair masks; unmasking %.2f s of it", p->dropped, pairs,
             r->unmask_cpu);
    row(at, "server", r, r->server_seconds + r->unmask_cpu, "s", server, "masks, agreements, signatures", note);
    snprintf(note, sizeof note, "%u threads", threads);
    row(at, "unmask", r, r->unmask_all, "s", r->unmask_one / threads, "one core's time over the threads", note);
    row(at, "memory", r, r->memory_mb, "MB", MEMORY_MB, "target", "peak RSS of the server's process");
}

/* Resets the peak of earlier work in this process; if that is impossible the figure is too high. */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

static fkt_status measure(uint32_t sites, uint32_t classes, unsigned threads, const struct rates *rate,
                          struct fkt_bench_row **at)
{
    struct round r = {0};
    fkt_status st;
    reset_peak();
    FKT_TRY(set_up(&r, sites, classes, threads));
    FKT_TRY(play(&r));
    FKT_TRY(cli_crews_end(r.crew, r.crews, r.costs, &r.n_costs));
    FKT_TRY(unmask(&r, threads));
    r.memory_mb = fkt_bench_memory();
    FKT_TRY(check_sum(&r));
    qsort(r.costs, r.n_costs, sizeof *r.costs, by_seconds);
    fill_rows(&r, rate, threads, at);
out:
    cli_crews_kill(r.crew, r.crews);
    fkt_sa_server_free(r.server);
    fkt_free(r.roster);
    fkt_free(r.lost);
    fkt_free(r.costs);
    fkt_free(r.buf);
    fkt_free(r.out);
    return st;
}

fkt_status fkt_bench_secagg(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    static const uint32_t usual[] = {20, 100, 1000};
    uint32_t one = (uint32_t)o->sites, classes = o->classes ? (uint32_t)o->classes : 10;
    unsigned threads;
    struct fkt_bench_row *at = rows;
    struct rates rate;
    fkt_status st;
    *n = 0;
    FKT_TRY(cli_threads(o->run.threads, &threads));
    if (threads == 0) threads = fkt_cpu_count();
    if (threads > CREWS_MAX) threads = CREWS_MAX;
    if (o->sites != 0 && (o->sites < 10 || o->sites > FKT_SA_SITES_MAX)) {
        st = fkt_fail(FKT_E_ARG, "--sites must be in 10..%u", FKT_SA_SITES_MAX);
        goto out;
    }
    if (o->classes > 1000) {
        st = fkt_fail(FKT_E_ARG, "--classes must be at most 1000");
        goto out;
    }
    FKT_TRY(measure_rates(&rate));
    for (size_t i = 0; i < (one ? 1 : CLI_COUNT(usual)) && (size_t)(rows + cap - at) >= ROWS; i++)
        FKT_TRY(measure(one ? one : usual[i], classes, threads, &rate, &at));
    *n = (size_t)(at - rows);
out:
    return st;
}
