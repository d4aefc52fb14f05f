/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - many sites in one process: partition the records, let each site compute its moments, add the integers
 * up.
 *
 * Large sites go one after the other with all threads inside, small ones side by side with a thread each, so that
 * neither a site with half of the records nor a thousand sites with ten leave threads idle. Each works on its own
 * records with its own moments. Memory: one site's moments per worker and one total per worker, never one per site. The
 * sum is exact, so neither the partition nor the schedule can change it (tests/invariance). */
#include "fedkt/round.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/meter.h"
#include "base/rng.h"
#include "base/threads.h"
#include "round/walk.h"

#include <math.h>
#include <string.h>

struct pool;
struct lane { /* what one worker gathers */
    struct pool *pool;
    struct fkt_progress hook; /* counts the images of this lane's site into the pool's meter */
    uint64_t seen;            /* of that site, by the meter so far */
    struct fkt_moments *total;
    struct fkt_norms norms;
    struct fkt_skipped skipped;
    double moments_seconds, merge_seconds;
};

struct pool {
    const struct fkt_simulation_spec *spec;
    struct fkt_simulation *sim;
    size_t *order, *first; /* records of site s: order[first[s] .. first[s+1]) */
    uint32_t *site;        /* (sites) large ones first */
    uint32_t large;        /* how many of them go one after the other */
    struct lane *lanes;
    struct fkt_meter meter; /* of the images of all sites together */
};

/* Stable counting sort of the records by their owner. */
static fkt_status sort_by_owner(struct pool *p)
{
    const struct fkt_simulation_spec *spec = p->spec;
    struct fkt_simulation *sim = p->sim;
    size_t *next = NULL, K = fkt_dataset_classes(spec->data);
    fkt_status st;
    FKT_TRY(fkt_alloc(&p->order, spec->n_train));
    FKT_TRY(fkt_alloc(&p->first, (size_t)sim->sites + 1));
    FKT_TRY(fkt_alloc(&next, (size_t)sim->sites));
    for (size_t i = 0; i < spec->n_train; i++) p->first[sim->owner[i] + 1]++;
    for (uint32_t s = 0; s < sim->sites; s++) p->first[s + 1] += p->first[s];
    for (uint32_t s = 0; s < sim->sites; s++) next[s] = p->first[s];
    for (size_t i = 0; i < spec->n_train; i++) {
        uint32_t s = sim->owner[i];
        p->order[next[s]++] = spec->train[i];
        sim->counts[s * K + fkt_dataset_label(spec->data, spec->train[i])]++;
    }
out:
    fkt_free(next);
    return st;
}

static fkt_status partition(struct fkt_simulation *sim, const struct fkt_simulation_spec *spec)
{
    uint32_t *labels = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&labels, spec->n_train));
    for (size_t i = 0; i < spec->n_train; i++) labels[i] = fkt_dataset_label(spec->data, spec->train[i]);
    FKT_TRY(fkt_partition(sim->owner, labels, spec->n_train, fkt_dataset_classes(spec->data), &spec->partition));
out:
    fkt_free(labels);
    return st;
}

/* Whom we hear: a random share of the sites takes part, and of those a random share is lost before its upload. */
static fkt_status choose_survivors(struct fkt_simulation *sim, const struct fkt_simulation_spec *spec)
{
    struct fkt_rng r;
    size_t *order = NULL;
    uint32_t parts, lost;
    fkt_status st;
    if (!(spec->participation > 0 && spec->participation <= 1))
        return fkt_fail(FKT_E_ARG, "participation must be above 0 and at most 1");
    if (!(spec->dropout >= 0 && spec->dropout < 1))
        return fkt_fail(FKT_E_ARG, "dropout must be at least 0 and below 1");
    FKT_TRY(fkt_alloc(&order, sim->sites));
    for (uint32_t s = 0; s < sim->sites; s++) order[s] = s;
    fkt_rng_init(&r, spec->seed, 0x73697465); /* "site" */
    fkt_rng_shuffle(&r, order, sim->sites);
    parts = (uint32_t)fmax(1, round(spec->participation * sim->sites));
    lost = (uint32_t)round(spec->dropout * parts);
    sim->survivors = parts > lost ? parts - lost : 1;
    for (uint32_t i = 0; i < sim->survivors; i++) sim->survived[order[i]] = 1;
out:
    fkt_free(order);
    return st;
}

/* A large site has two batches for each thread. With fewer sites than threads all are. */
static fkt_status sort_by_size(struct pool *p, unsigned threads)
{
    size_t large = 2 * threads * fkt_walk_batch(fkt_walk_codec(p->spec->walk));
    uint32_t sites = p->sim->sites, n = 0;
    fkt_status st = fkt_alloc(&p->site, sites);
    for (int small = 0; small < 2 && st == FKT_OK; small++) {
        for (uint32_t s = 0; s < sites; s++)
            if ((threads > 1 && (sites < threads || p->first[s + 1] - p->first[s] >= large)) != small) p->site[n++] = s;
        if (!small) p->large = n;
    }
    return st;
}

static int lane_step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct lane *l = self;
    uint64_t more = done - l->seen;
    (void)what;
    (void)total;
    l->seen = done;
    return fkt_meter_add(&l->pool->meter, more) != FKT_OK;
}

static fkt_status walk_site(struct pool *p, uint32_t s, struct lane *lane, unsigned threads)
{
    struct fkt_moments *m = NULL;
    size_t n = p->first[s + 1] - p->first[s];
    struct fkt_walk_options o = {.threads = threads,
                                 .progress = &lane->hook,
                                 .skipped = p->spec->skipped ? &lane->skipped : NULL,
                                 .norms = &lane->norms,
                                 .moments_seconds = &lane->moments_seconds};
    double start;
    fkt_status st = FKT_OK;
    if (!p->sim->survived[s]) return fkt_meter_add(&p->meter, n);
    lane->seen = 0;
    FKT_TRY(fkt_walk_moments_new(p->spec->walk, &m));
    FKT_TRY(fkt_walk_moments(p->spec->walk, p->spec->data, p->order + p->first[s], n, m, &o));
    start = fkt_now();
    FKT_TRY(fkt_moments_merge(lane->total, m));
    lane->merge_seconds += fkt_now() - start;
out:
    fkt_moments_free(m);
    return st;
}

static fkt_status small_site(void *ctx, size_t item, unsigned worker)
{
    struct pool *p = ctx;
    return walk_site(p, p->site[p->large + item], &p->lanes[worker], 1);
}

static fkt_status gather(struct pool *p, unsigned lanes)
{
    struct fkt_simulation *sim = p->sim;
    double start = fkt_now();
    fkt_status st;
    FKT_TRY(fkt_walk_moments_new(p->spec->walk, &sim->total));
    for (unsigned i = 0; i < lanes; i++) {
        struct lane *l = &p->lanes[i];
        FKT_TRY(fkt_moments_merge(sim->total, l->total));
        for (int b = 0; b < FKT_NORM_BINS; b++) sim->norms.bins[b] += l->norms.bins[b];
        sim->seconds_moments += l->moments_seconds;
        sim->seconds_aggregate += l->merge_seconds;
        for (const char *s = l->skipped.names; s && *s;) { /* whole lines move over */
            const char *end = strchr(s, '\n');
            char line[1024];
            snprintf(line, sizeof line, "%.*s", (int)(end - s), s);
            FKT_TRY(fkt_skipped_add(p->spec->skipped, line));
            l->skipped.count--;
            s = end + 1;
        }
        if (p->spec->skipped) p->spec->skipped->count += l->skipped.count;
    }
    sim->seconds_aggregate += fkt_now() - start;
out:
    return st;
}

fkt_status fkt_simulate(struct fkt_simulation *out, const struct fkt_simulation_spec *spec)
{
    const struct fkt_task *task = fkt_walk_task(spec->walk);
    const struct fkt_calibration *cal = fkt_walk_calibration(spec->walk);
    unsigned threads = spec->threads ? spec->threads : fkt_cpu_count(), lanes;
    struct pool p = {.spec = spec, .sim = out};
    double start;
    fkt_status st;

    memset(out, 0, sizeof *out);
    out->sites = spec->partition.sites;
    if (out->sites < 1 || spec->n_train < 1)
        return fkt_fail(FKT_E_ARG, "a simulation needs at least one site and one record");
    if (!fkt_walk_codec(spec->walk)) return fkt_walk_no_codec(spec->walk);
    lanes = out->sites < threads ? out->sites : threads;
    fkt_meter_init(&p.meter, spec->progress, "encoding", spec->n_train);
    out->norms.lo = cal->log_mean - 1.5 * cal->log_spread;
    out->norms.hi = cal->log_mean + 1.5 * cal->log_spread;
    out->bytes_per_site = (uint64_t)task->n_classes * fkt_moments_block(task->coordinates.length) * sizeof(int64_t);
    FKT_TRY(fkt_alloc(&out->owner, spec->n_train));
    FKT_TRY(fkt_alloc(&out->survived, out->sites));
    FKT_TRY(fkt_alloc(&out->counts, (size_t)out->sites * task->n_classes));
    FKT_TRY(partition(out, spec));
    FKT_TRY(choose_survivors(out, spec));
    FKT_TRY(sort_by_owner(&p));
    FKT_TRY(sort_by_size(&p, threads));
    FKT_TRY(fkt_alloc(&p.lanes, lanes));
    for (unsigned i = 0; i < lanes; i++) {
        p.lanes[i].pool = &p;
        p.lanes[i].hook = (struct fkt_progress){lane_step, &p.lanes[i]};
        p.lanes[i].norms = out->norms;
        FKT_TRY(fkt_walk_moments_new(spec->walk, &p.lanes[i].total));
    }
    start = fkt_now();
    for (uint32_t i = 0; i < p.large; i++) FKT_TRY(walk_site(&p, p.site[i], &p.lanes[0], threads));
    FKT_TRY(fkt_parallel(lanes, out->sites - p.large, small_site, &p, NULL, "encoding"));
    out->seconds_encode = fkt_now() - start;
    FKT_TRY(gather(&p, lanes));
    out->seconds_moments /= threads;
    out->seconds_encode -= out->seconds_moments;
    for (uint32_t s = 0; s < out->sites; s++)
        if (out->survived[s]) out->records += p.first[s + 1] - p.first[s];
    if (spec->skipped) out->records -= spec->skipped->count;
out:
    for (unsigned i = 0; p.lanes && i < lanes; i++) {
        fkt_moments_free(p.lanes[i].total);
        fkt_skipped_release(&p.lanes[i].skipped);
    }
    fkt_free(p.lanes);
    fkt_free(p.order);
    fkt_free(p.first);
    fkt_free(p.site);
    fkt_meter_release(&p.meter);
    if (st != FKT_OK) fkt_simulation_release(out);
    return st;
}

void fkt_simulation_release(struct fkt_simulation *s)
{
    fkt_free(s->survived);
    fkt_free(s->owner);
    fkt_free(s->counts);
    fkt_moments_free(s->total);
    memset(s, 0, sizeof *s);
}
