/* SPDX-License-Identifier: Apache-2.0 */
/* federation.c - a whole federation over TLS with one server, and the cost of that server.
 *
 *   keys, task, certificate in a temporary folder -> the real `fedkt serve` as a child -> N clients of secagg.h, each
 *   with its own HTTP client and TLS connection, in this process -> release
 *
 * A fraction of the sites is lost, spread over the phases: their connections close. Before any figure is printed the
 * release is compared with the plain sum of the survivors' vectors, and every message that was acknowledged to a site
 * must be in the server's log. Sites send synthetic numbers of the right size and keep nothing on disk (bench/site.c);
 * the cost of a real site is not measured here.
 *
 *   floor of a request  an empty one over the same TLS (GET /healthz) + one check of a signature + one sync of the disk
 *   floor of the server N handshakes + an empty request and a signature for each request, + masks at the keystream's
 *                       rate; processor time, measured in the same run
 *
 * The time of a round includes waiting for lost sites until a phase's deadline; the figure excludes it. Cost: a
 * deadline for each of four phases, and the work of all sites on this machine's cores. */
#include "fedkt/advanced/federation.h"

#include "bench/bench.h"
#include "bench/log.h"
#include "bench/site.h"
#include "bench/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/private.h"
#include "base/text.h"
#include "base/threads.h"
#include "crypto/entropy.h"
#include "crypto/sign.h"
#include "crypto/stream.h"
#include "bench/load_generator.h"
#include "net/tls.h"
#include "pipeline/release.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DIM = 127, RECORDS = 16, PINGS = 200, ROWS = 7, BORROWED = 64, PATIENCE = 300, RATE_RUNS = 10 };
#define MEMORY_MB 256.0
#define LONG_PAUSE 1.0 /* seconds */

struct floors {
    double request, handshake_cpu, request_cpu, sync, verify, stream; /* seconds, and bytes per second */
};

struct world {
    const struct cli_bench *o;
    uint32_t sites, lost;
    unsigned threads;
    char folder[256], state[300], task_path[300], log[300];
    struct fkt_tls tls;
    struct fkt_task task;
    struct fkt_sa_params p;
    struct fkt_share_plan shares;
    uint8_t *roster, *secrets;
    struct cli_member *member;
    struct fkt_endpoint *side;
    struct fkt_http_client **http;
    struct cli_bench_server server;
    char url[160];
    struct floors floor;
    double *post; /* (posts) seconds of each */
    size_t posts, cap;
    uint64_t requests, handshakes, errors, *carried; /* carried (sites): bytes of bodies, both ways */
    uint32_t failed;
    char failure[256];
    double cpu, peak_mb;
    double first_post, last_post, idle, over; /* moments; idle: seconds without a message before a deadline */
};

/* ---- the sites' vectors ---- */

static uint64_t mix(uint32_t i, uint32_t j)
{
    uint64_t x = ((uint64_t)i << 32 | j) * 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9U;
    return x ^ x >> 32;
}

/* Sixteen records of length R/sqrt(2) in every direction alike, and something that differs from site to site. */
static int64_t bring(void *self, uint32_t site, uint32_t j)
{
    const struct world *w = self;
    const uint32_t m = w->task.part[0].coordinates.length, block = (m + 1) * (m + 2) / 2;
    const int64_t spread = (int64_t)(mix(site, j) % 2001) - 1000, rq = (int64_t)w->task.part[0].coordinates.rq;
    uint32_t at = j % block;
    if (at == 0) return (int64_t)RECORDS * w->shares.count_scale + spread % 8;
    if (at <= m) return spread / 8;
    at -= m + 1;
    for (uint32_t row = m; at > 0 && at >= row; row--) at -= row;
    return (at == 0 ? RECORDS * rq * rq / (2 * (int64_t)m) : 0) + spread;
}

/* ---- set-up ---- */

static fkt_status make_folder(struct world *w)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(w->folder, sizeof w->folder, "%s/fedkt-bench-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(w->folder)) {
        w->folder[0] = '\0';
        return fkt_fail(FKT_E_IO, "cannot make a temporary folder");
    }
    snprintf(w->state, sizeof w->state, "%s/state", w->folder);
    snprintf(w->task_path, sizeof w->task_path, "%s/task.json", w->folder);
    snprintf(w->log, sizeof w->log, "%s/server.log", w->folder);
    return FKT_OK;
}

static fkt_status make_task(struct world *w, uint32_t classes, uint32_t dim, uint32_t phase)
{
    struct fkt_codec_spec spec = {.name = "dct", .size = 32, .dim = dim};
    struct fkt_service_choices service = {.address = "https://127.0.0.1:8443",
                                          .pin = w->tls.pin,
                                          .gather_seconds = 5,
                                          .phase_seconds = phase,
                                          .rounds = 1};
    struct fkt_federation_choices federation = {.sites = w->sites, .records = RECORDS, .roster = w->roster};
    struct fkt_task_choices c = {.name = "benched federation",
                                 .n_classes = classes,
                                 .privacy = {.epsilon = 1, .delta = 1e-5},
                                 .federation = &federation,
                                 .service = &service};
    const uint32_t tenth = (w->sites + 9) / 10;
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    char(*text)[16] = NULL, operator_key[FKT_SIGN_PUBLIC];
    const char **names = NULL;
    uint8_t secret[FKT_SA_SECRET];
    fkt_status st;
    federation.dropped = w->lost > tenth ? w->lost : tenth;
    federation.corrupt = tenth;
    FKT_TRY(fkt_alloc(&text, classes));
    FKT_TRY(fkt_alloc(&names, classes));
    for (uint32_t k = 0; k < classes; k++) {
        snprintf(text[k], sizeof text[k], "class-%u", k);
        names[k] = text[k];
    }
    c.classes = names;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&cal, codec));
    FKT_TRY(fkt_task_make_into(&w->task, &c, &(struct fkt_part_choice){.codec = codec, .calibration = &cal}, 1));
    FKT_TRY(fkt_sa_identity((uint8_t *)operator_key, secret, NULL));
    FKT_TRY(fkt_task_sign(&w->task, secret));
    FKT_TRY(fkt_task_save(&w->task, w->task_path, 0));
    FKT_TRY(fkt_federation_open(&w->task, &w->p, &w->shares));
out:
    fkt_wipe(secret, sizeof secret);
    fkt_codec_free(codec);
    fkt_calibration_clear(&cal);
    fkt_free(names);
    fkt_free(text);
    return st;
}

/* The lost are spread evenly over the roster and in turn over the phases from SHARE on: on a sparse graph a loss
 * before that may cost a throw of the coin, which is another measurement. */
static enum fkt_sa_state fate(const struct world *w, uint32_t site)
{
    static const enum fkt_sa_state phases[] = {FKT_SA_STATE_SHARE, FKT_SA_STATE_MASK, FKT_SA_STATE_CONFIRM,
                                               FKT_SA_STATE_REVEAL};
    const uint64_t before = (uint64_t)site * w->lost / w->sites, after = (uint64_t)(site + 1) * w->lost / w->sites;
    return before == after ? FKT_SA_STATE_BEGIN : phases[before % CLI_COUNT(phases)];
}

static fkt_status make_sites(struct world *w)
{
    struct timespec t;
    fkt_status st;
    FKT_TRY(fkt_alloc(&w->member, w->sites));
    FKT_TRY(fkt_alloc(&w->side, w->sites));
    FKT_TRY(fkt_alloc(&w->http, w->sites));
    FKT_TRY(fkt_alloc(&w->carried, w->sites));
    clock_gettime(CLOCK_REALTIME, &t);
    for (uint32_t i = 0; i < w->sites; i++) {
        struct cli_member *m = &w->member[i];
        struct fkt_http_client_spec spec = {.site = i,
                                            .site_side = &w->side[i],
                                            .secret = w->secrets + (size_t)i * FKT_SA_SECRET,
                                            .task = w->p.task,
                                            .patience_seconds = PATIENCE,
                                            .clock = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000};
        cli_member_init(m, &w->p, i, spec.secret);
        m->gone = fate(w, i);
        m->number = bring;
        m->self = w;
        cli_member_endpoint(m, &w->side[i]);
        FKT_TRY(fkt_http_client_new(&w->http[i], &spec));
    }
out:
    return st;
}

static void close_world(struct world *w)
{
    cli_bench_server_clear(&w->server);
    for (uint32_t i = 0; w->http && i < w->sites; i++) fkt_http_client_free(w->http[i]);
    for (uint32_t i = 0; w->member && i < w->sites; i++) cli_member_clear(&w->member[i]);
    fkt_free(w->http);
    fkt_free(w->carried);
    fkt_free(w->member);
    fkt_free(w->side);
    fkt_free(w->roster);
    fkt_free(w->secrets);
    fkt_free(w->post);
    fkt_task_clear(&w->task);
    fkt_tls_clear(&w->tls);
    if (w->folder[0]) fkt_remove_tree(w->folder);
}

/* ---- floors ---- */

static double quantile(double *of, size_t n, double q)
{
    size_t at = (size_t)ceil(q * (double)n);
    fkt_bench_sort(of, n);
    return n ? of[at > 0 ? at - 1 : 0] : NAN;
}

/* Median time to sync 4 KB to the disk of the server's journal. */
static fkt_status measure_sync(struct world *w)
{
    static const char page[4096];
    double took[PINGS];
    char path[300];
    int fd;
    snprintf(path, sizeof path, "%s/sync", w->folder);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (size_t i = 0; i < PINGS; i++) {
        double start = fkt_now();
        if (fd < 0 || write(fd, page, sizeof page) != (ssize_t)sizeof page || fdatasync(fd) != 0) {
            if (fd >= 0) close(fd);
            return fkt_io_fail("write", path);
        }
        took[i] = fkt_now() - start;
    }
    close(fd);
    w->floor.sync = quantile(took, PINGS, 0.5);
    return FKT_OK;
}

static fkt_status measure_rates(struct floors *f)
{
    enum { BYTES = 1 << 20, TIMES = 64 };
    struct fkt_stream *s = NULL;
    uint8_t *buf = NULL, key[32] = {1}, sig[FKT_SIGN_BYTES], vk[FKT_SIGN_PUBLIC], sk[FKT_SIGN_SECRET];
    int right = 1;
    fkt_status st;
    f->verify = HUGE_VAL;
    FKT_TRY(fkt_alloc(&buf, BYTES));
    FKT_TRY(fkt_stream_new(&s, FKT_KEYSTREAM_AES));
    fkt_sign_keypair(vk, sk, key);
    fkt_sign(sig, key, 32, sk);
    for (int run = 0; run < RATE_RUNS; run++) {
        double start = fkt_cpu_now();
        FKT_TRY(fkt_stream_bytes(s, key, buf, BYTES));
        f->stream = fmax(f->stream, BYTES / (fkt_cpu_now() - start));
        start = fkt_cpu_now();
        for (int i = 0; i < TIMES; i++) right &= fkt_verify(sig, key, 32, vk);
        f->verify = fmin(f->verify, (fkt_cpu_now() - start) / TIMES);
    }
    if (!right) st = fkt_fail(FKT_E_NUMERIC, "a valid signature is refused: not timed");
out:
    fkt_stream_free(s);
    fkt_free(buf);
    return st;
}

/* The idle server's time for empty requests, over one connection and over new ones. */
static fkt_status measure_floors(struct world *w)
{
    struct fkt_load_spec spec = {.address = w->url, .pin = w->tls.pin};
    double took[PINGS], cpu[3], peak;
    fkt_status st;
    FKT_TRY(measure_rates(&w->floor));
    FKT_TRY(measure_sync(w));
    FKT_TRY(fkt_load_ping(&spec, "/healthz", 0, took, PINGS / 10));
    FKT_TRY(cli_bench_server_usage(&w->server, &cpu[0], &peak));
    for (int i = 0; i < RATE_RUNS; i++) FKT_TRY(fkt_load_ping(&spec, "/healthz", 0, took, PINGS));
    w->floor.request = quantile(took, PINGS, 0.5);
    FKT_TRY(cli_bench_server_usage(&w->server, &cpu[1], &peak));
    FKT_TRY(fkt_load_ping(&spec, "/healthz", 1, took, PINGS));
    FKT_TRY(cli_bench_server_usage(&w->server, &cpu[2], &peak));
    w->floor.request_cpu = (cpu[1] - cpu[0]) / (PINGS * RATE_RUNS);
    w->floor.handshake_cpu = fmax((cpu[2] - cpu[1]) / PINGS - w->floor.request_cpu, 0);
out:
    return st;
}

/* ---- the round ---- */

/* The log's clock ticks a few times a second, so times are taken on this side. A message that comes long after the
 * last one was delayed by a deadline: all present sites had answered. */
static void keep_time(struct world *w, const struct fkt_load_done *d)
{
    const double now = fkt_now();
    if (d->post && !w->first_post) w->first_post = now - d->seconds;
    if (!d->post && d->code == 200 && w->last_post && now - w->last_post > LONG_PAUSE) {
        w->idle += now - w->last_post;
        w->last_post = now;
    }
    if (d->post) w->last_post = now;
}

static void on_done(void *self, const struct fkt_load_done *d)
{
    struct world *w = self;
    keep_time(w, d);
    w->requests++;
    w->handshakes += d->handshake > 0;
    w->carried[d->who] += d->up + d->down;
    if (d->code / 100 != 2 && d->code != 410 && d->code != 401) w->errors++;
    if (!d->post || d->code / 100 != 2) return;
    if (w->posts == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 1024;
        if (fkt_realloc(&w->post, cap) != FKT_OK) return;
        w->cap = cap;
    }
    w->post[w->posts++] = d->seconds - d->handshake;
}

static void on_end(void *self, const struct fkt_load_end *e)
{
    struct world *w = self;
    if (!w->over && w->member[e->who].stage == FKT_STAGE_RELEASED) w->over = fkt_now();
    if (e->st == FKT_OK) return;
    if (!w->failed++) snprintf(w->failure, sizeof w->failure, "site %u: %s", e->who, e->sentence);
}

static fkt_status play(struct world *w)
{
    struct fkt_load_spec spec = {.address = w->url,
                                 .pin = w->tls.pin,
                                 .couriers = w->http,
                                 .n = w->sites,
                                 .answer_max = fkt_sa_to_site_max(&w->p) + 4096,
                                 .workers = w->threads,
                                 .done = on_done,
                                 .ended = on_end,
                                 .self = w};
    double before, peak;
    fkt_status st;
    FKT_TRY(cli_bench_server_usage(&w->server, &before, &peak));
    FKT_TRY(fkt_load_run(&spec));
    FKT_TRY(cli_bench_server_usage(&w->server, &w->cpu, &w->peak_mb));
    w->cpu -= before;
    if (w->failed) st = fkt_fail(FKT_E_NUMERIC, "%u sites failed, the first as %s", w->failed, w->failure);
out:
    return st;
}

/* Checks that the release is the sum of the survivors' vectors, and that acknowledged messages are in the log. */
static fkt_status check(const struct world *w, const struct cli_bench_log *log)
{
    struct fkt_release r = {0};
    const uint32_t m = w->task.part[0].coordinates.length, block = (m + 1) * (m + 2) / 2;
    char path[400];
    fkt_status st;
    snprintf(path, sizeof path, "%s/public/release.safetensors", w->state);
    FKT_TRY(fkt_release_load_into(&r, path));
    for (uint32_t i = 0; i < w->sites; i++) {
        const enum fkt_sa_state gone = w->member[i].gone;
        if (log->survived[i] != (gone == FKT_SA_STATE_BEGIN || gone > FKT_SA_STATE_MASK) ||
            log->taken[i] < w->member[i].taken) {
            st = fkt_fail(FKT_E_NUMERIC, "site %u is on the wrong side, or lost an acknowledged message: not timed", i);
            goto out;
        }
    }
    for (uint32_t j = 0; j < w->p.length; j++) {
        const int64_t scale = j % block ? 1 : w->shares.count_scale;
        int64_t want = 0;
        for (uint32_t i = 0; i < w->sites; i++)
            if (log->survived[i]) want += bring((void *)(uintptr_t)w, i, j);
        if ((want + scale / 2) / scale != r.moments[j] && (scale == 1 || want > 0)) {
            st = fkt_fail(FKT_E_NUMERIC, "number %u of the release is wrong: not timed", j);
            goto out;
        }
    }
out:
    fkt_release_clear(&r);
    return st;
}

/* ---- figures ---- */

static void row(struct fkt_bench_row **at, const char *what, const struct world *w, double value, const char *unit,
                double bound, const char *bound_name, const char *note)
{
    struct fkt_bench_row *b = (*at)++;
    memset(b, 0, sizeof *b);
    snprintf(b->name, sizeof b->name, "federation/%s N=%u", what, w->sites);
    b->value = value;
    b->bound = bound;
    b->ratio_to_bound = value / bound;
    snprintf(b->unit, sizeof b->unit, "%s", unit);
    snprintf(b->bound_name, sizeof b->bound_name, "%s", bound_name);
    snprintf(b->note, sizeof b->note, "%s", note);
}

/* Of a site that stayed, the mean. */
static double traffic(const struct world *w)
{
    double all = 0;
    for (uint32_t i = 0; i < w->sites; i++)
        if (w->member[i].gone == FKT_SA_STATE_BEGIN) all += (double)w->carried[i];
    return all / (w->sites - w->lost);
}

static void fill_rows(struct world *w, const struct cli_bench_log *log, struct fkt_bench_row **at)
{
    const struct floors *f = &w->floor;
    const double request = f->request + f->verify + f->sync, packed = (double)fkt_sa_packed(w->p.length, w->p.bits);
    const double pairs = (double)w->lost / 2 * w->p.degree, mask = 4.0 * w->p.length / f->stream;
    const double cpu = (double)w->sites * f->handshake_cpu + (double)w->requests * (f->request_cpu + f->verify) +
                       (log->survivors + pairs) * mask;
    const double round = w->last_post - w->first_post, busy = round - w->idle;
    char note[160];
    snprintf(note, sizeof note, "of %zu messages; empty request %.2f ms, signature %.3f, sync of the disk %.2f",
             w->posts, 1e3 * f->request, 1e3 * f->verify, 1e3 * f->sync);
    row(at, "post p50", w, 1e3 * quantile(w->post, w->posts, 0.5), "ms", 1e3 * request,
        "empty request, signature, sync", note);
    row(at, "post p99", w, 1e3 * quantile(w->post, w->posts, 0.99), "ms", 1e3 * request,
        "empty request, signature, sync", "sites and server share this machine's cores");
    row(at, "memory", w, w->peak_mb, "MB", MEMORY_MB, "target", "peak RSS of the server");
    snprintf(note, sizeof note, "%llu requests, %llu handshakes of %.2f ms, %u survivors",
             (unsigned long long)w->requests, (unsigned long long)w->handshakes, 1e3 * f->handshake_cpu,
             log->survivors);
    row(at, "server cpu", w, w->cpu, "s", cpu, "handshakes, requests, signatures, masks", note);
    snprintf(note, sizeof note, "%.1f s with the deadlines of lost sites; %.1f s from the last message to the release",
             round, w->over - w->last_post);
    row(at, "round", w, busy, "s", cpu / w->threads, "the server's floor over the cores", note);
    snprintf(note, sizeof note, "%u lost; %llu bad answers; %u refused", w->lost, (unsigned long long)w->errors,
             log->refused);
    row(at, "traffic", w, 1e-3 * traffic(w), "KB", packed * 1e-3, "the packed vector", note);
}

static fkt_status raise_files(uint32_t sites)
{
    struct rlimit r;
    const rlim_t want = (rlim_t)sites + BORROWED + 64;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want) return FKT_OK;
    r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > 2 * want ? 2 * want : r.rlim_max;
    if (r.rlim_cur < want || setrlimit(RLIMIT_NOFILE, &r) != 0)
        return fkt_fail_hint(FKT_E_IO, "raise it with 'ulimit -n'", "%u sites need more open files than are allowed",
                             sites);
    return FKT_OK;
}

static fkt_status measure(struct world *w, uint32_t classes, uint32_t dim, uint32_t phase, struct fkt_bench_row **at)
{
    const char *words[] = {"fedkt",       "serve",  "--task", w->task_path,  "--state", w->state, "--listen",
                           "127.0.0.1:0", "--json", "--stay", "--per-class", "1",       NULL};
    struct cli_bench_log log = {0};
    char path[400];
    fkt_status st;
    FKT_TRY(raise_files(w->sites));
    FKT_TRY(make_folder(w));
    FKT_TRY(fkt_private_folder(w->state));
    FKT_TRY(fkt_tls_own(&w->tls, w->state, "127.0.0.1"));
    FKT_TRY(fkt_alloc(&w->roster, (size_t)w->sites * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&w->secrets, (size_t)w->sites * FKT_SA_SECRET));
    FKT_TRY(fkt_federation_keys(w->roster, w->secrets, w->sites, NULL));
    FKT_TRY(make_task(w, classes, dim, phase));
    FKT_TRY(cli_bench_server_start(&w->server, words, w->log));
    snprintf(w->url, sizeof w->url, "https://%s", w->server.address);
    FKT_TRY(measure_floors(w));
    FKT_TRY(make_sites(w));
    FKT_TRY(play(w));
    FKT_TRY(cli_bench_server_stop(&w->server));
    snprintf(path, sizeof path, "%s/public/transparency.jsonl", w->state);
    FKT_TRY(cli_bench_log_read(&log, path, w->sites));
    FKT_TRY(check(w, &log));
    fill_rows(w, &log, at);
out:
    cli_bench_log_clear(&log);
    close_world(w);
    return st;
}

fkt_status fkt_bench_federation(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    static const uint32_t usual[] = {20, 100};
    const uint32_t classes = o->classes ? (uint32_t)o->classes : 10, dim = o->dim ? (uint32_t)o->dim : DIM;
    struct fkt_bench_row *at = rows;
    unsigned threads;
    fkt_status st;
    *n = 0;
    FKT_TRY(cli_threads(o->run.threads, &threads));
    if (o->sites != 0 && (o->sites < 10 || o->sites > FKT_SA_SITES_MAX)) {
        st = fkt_fail(FKT_E_ARG, "--sites must be in 10..%u", FKT_SA_SITES_MAX);
        goto out;
    }
    if (o->classes > 1000 || o->dim > 1024 || !(o->dropout >= 0 && o->dropout <= 0.3)) {
        st = fkt_fail(FKT_E_ARG, "--classes must be at most 1000, --dim at most 1024, --dropout at most 0.3");
        goto out;
    }
    for (size_t i = 0; i < (o->sites ? 1 : CLI_COUNT(usual)) && (size_t)(rows + cap - at) >= ROWS; i++) {
        struct world w = {.o = o,
                          .sites = o->sites ? (uint32_t)o->sites : usual[i],
                          .threads = threads ? threads : fkt_cpu_count(),
                          .server = {.out = -1}};
        const uint32_t phase = o->phase_seconds ? (uint32_t)o->phase_seconds : 10 + w.sites / 10;
        w.lost = (uint32_t)ceil(o->dropout * w.sites);
        FKT_TRY(measure(&w, classes, dim, phase, &at));
    }
    *n = (size_t)(at - rows);
out:
    return st;
}
