/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - many sites in one process: partitions the records, computes each site's moments, and adds them up in
 * rounds.
 *
 * Large sites run in sequence with all threads, small ones in parallel with a thread each, so that threads are not
 * idle with one large site or with a thousand small ones. Memory: one site's moments per worker and one total per
 * worker; the rounds' inputs are kept in memory or in a file (site_moments.c). The plain sum is exact, so neither
 * the partition nor the schedule changes it, and a round without noise gives the same integers (tests/invariance). */
#include "fedkt/advanced/simulate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/meter.h"
#include "base/rng.h"
#include "base/threads.h"
#include "base/wipe.h"
#include "pipeline/public_images.h"
#include "ranks/ranks.h"
#include "simulate/site_moments.h"
#include "simulate/site_shards.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITE_MOMENTS_MEMORY (UINT64_C(256) << 20)

struct pool;
struct lane { /* the results of one worker */
    struct pool *pool;
    struct fkt_progress hook; /* adds this lane's images to the total progress */
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
    uint32_t large;        /* how many of them run in sequence */
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

fkt_status fkt_simulation_keys(const struct fkt_dataset *ds, enum fkt_adjacency adjacency, unsigned threads,
                               uint64_t *keys)
{
    if (!fkt_adjacency_counts_public(adjacency)) return fkt_dataset_keys(ds, NULL, 0, threads, keys);
    return fkt_dataset_numbers(ds, keys);
}

static fkt_status partition(struct fkt_simulation *sim, const struct fkt_simulation_spec *spec)
{
    const enum fkt_adjacency adjacency = fkt_pipeline_task(spec->pipeline)->privacy.adjacency;
    const uint64_t *keys = spec->keys;
    uint64_t *made = NULL, *mine = NULL;
    uint32_t *labels = NULL;
    fkt_status st;
    if (!keys) {
        FKT_TRY(fkt_alloc(&made, fkt_dataset_size(spec->data)));
        FKT_TRY(fkt_simulation_keys(spec->data, adjacency, spec->threads, made));
        keys = made;
    }
    FKT_TRY(fkt_alloc(&labels, spec->n_train));
    FKT_TRY(fkt_alloc(&mine, spec->n_train));
    for (size_t i = 0; i < spec->n_train; i++) {
        labels[i] = fkt_dataset_label(spec->data, spec->train[i]);
        mine[i] = keys[spec->train[i]];
    }
    FKT_TRY(fkt_partition(sim->owner, labels, mine, spec->n_train, fkt_dataset_classes(spec->data), &spec->partition));
out:
    fkt_free(made);
    fkt_free(mine);
    fkt_free(labels);
    return st;
}

/* How many of `parts` sites are lost in one phase: the rounded cumulative fraction up to this phase minus that
 * before it, so that many small fractions lose as many sites as their sum. */
static uint32_t lost_in(const struct fkt_simulation_spec *spec, int phase, uint32_t parts)
{
    double before = 0;
    for (int p = 0; p < phase; p++) before += spec->dropout[p];
    return (uint32_t)(round((before + spec->dropout[phase]) * parts + 1e-9) - round(before * parts + 1e-9));
}

fkt_status fkt_simulation_size(const struct fkt_simulation_spec *spec, uint32_t *parts, uint32_t *lost)
{
    double sum = 0;
    if (!(spec->participation > 0 && spec->participation <= 1))
        return fkt_fail(FKT_E_ARG, "participation must be above 0 and at most 1");
    *parts = (uint32_t)fmax(1, round(spec->participation * spec->partition.sites));
    *lost = 0;
    for (int phase = 0; phase <= FKT_SA_STATE_REVEAL; phase++) {
        if (!(spec->dropout[phase] >= 0 && spec->dropout[phase] < 1))
            return fkt_fail(FKT_E_ARG, "dropout must be at least 0 and below 1");
        sum += spec->dropout[phase];
        if (sum > 1 + 1e-9) return fkt_fail(FKT_E_ARG, "dropout adds up to more than 1 over its phases");
        *lost += lost_in(spec, phase, *parts);
        if (*lost >= *parts)
            return fkt_fail_hint(FKT_E_ARG, "let fewer be lost", "all %u sites that take part are lost", *parts);
    }
    return FKT_OK;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t fkt_simulation_place(const struct fkt_simulation *sim, uint32_t site)
{
    const uint32_t *at = bsearch(&site, sim->roster, sim->parts, sizeof site, ascending);
    return (uint32_t)(at - sim->roster);
}

/* Chooses the sites: a random fraction takes part; the last of those in the random order are lost before their
 * vectors count, phase by phase, and the last of the rest afterwards. */
static fkt_status choose_survivors(struct fkt_simulation *sim, const struct fkt_simulation_spec *spec)
{
    struct fkt_rng r;
    size_t *order = NULL, next;
    uint32_t lost, early = 0;
    fkt_status st;
    FKT_TRY(fkt_simulation_size(spec, &sim->parts, &lost));
    for (int phase = 0; phase <= FKT_SA_STATE_MASK; phase++) early += lost_in(spec, phase, sim->parts);
    sim->survivors = sim->parts - early;
    FKT_TRY(fkt_alloc(&order, sim->sites));
    FKT_TRY(fkt_alloc(&sim->roster, sim->parts));
    FKT_TRY(fkt_alloc(&sim->lost, lost));
    for (uint32_t s = 0; s < sim->sites; s++) order[s] = s;
    fkt_rng_init(&r, spec->seed, 0x73697465); /* "site" */
    fkt_rng_shuffle(&r, order, sim->sites);
    for (uint32_t i = 0; i < sim->parts; i++) sim->roster[i] = (uint32_t)order[i];
    qsort(sim->roster, sim->parts, sizeof *sim->roster, ascending);
    for (uint32_t i = 0; i < sim->survivors; i++) sim->survived[order[i]] = 1;
    next = sim->parts - lost; /* those lost in CONFIRM and REVEAL come first: they stay in the total */
    for (int turn = 0, phase = FKT_SA_STATE_CONFIRM; turn < FKT_SA_STATE_REVEAL; turn++) {
        for (uint32_t n = lost_in(spec, phase, sim->parts); n > 0; n--)
            sim->lost[sim->n_lost++] = (struct fkt_federate_loss){fkt_simulation_place(sim, (uint32_t)order[next++]),
                                                                  (enum fkt_sa_state)phase};
        phase = phase == FKT_SA_STATE_REVEAL ? FKT_SA_STATE_ADVERTISE : phase + 1;
    }
out:
    fkt_free(order);
    return st;
}

/* A large site has two batches for each thread. With fewer sites than threads all are large. */
static fkt_status sort_by_size(struct pool *p, unsigned threads)
{
    size_t large = 2 * threads * fkt_pipeline_batch_all(p->spec->pipeline);
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

static fkt_status pipeline_site(struct pool *p, uint32_t s, struct lane *lane, unsigned threads)
{
    struct fkt_moments *m = NULL;
    size_t n = p->first[s + 1] - p->first[s];
    struct fkt_pipeline_options o = {.threads = threads,
                                     .progress = &lane->hook,
                                     .skipped = p->spec->skipped ? &lane->skipped : NULL,
                                     .norms = &lane->norms,
                                     .records = p->spec->records,
                                     .encodings = p->spec->encodings,
                                     .moments_seconds = &lane->moments_seconds};
    const int64_t *packed;
    double start;
    fkt_status st = FKT_OK;
    if (!p->sim->survived[s]) return fkt_meter_add(&p->meter, n);
    lane->seen = 0;
    FKT_TRY(fkt_pipeline_moments_new(p->spec->pipeline, &m));
    FKT_TRY(fkt_pipeline_moments_compared(p->spec->pipeline, p->spec->data, p->order + p->first[s], n, m, &o));
    start = fkt_now();
    if (p->sim->site_moments) {
        FKT_TRY(fkt_moments_packed(m, &packed));
        FKT_TRY(fkt_site_moments_put(p->sim->site_moments, fkt_simulation_place(p->sim, s), packed));
    }
    FKT_TRY(fkt_moments_merge(lane->total, m));
    lane->merge_seconds += fkt_now() - start;
out:
    fkt_moments_free(m);
    return st;
}

static fkt_status small_site(void *ctx, size_t item, unsigned worker)
{
    struct pool *p = ctx;
    return pipeline_site(p, p->site[p->large + item], &p->lanes[worker], 1);
}

static fkt_status gather(struct pool *p, unsigned lanes)
{
    struct fkt_simulation *sim = p->sim;
    double start = fkt_now();
    fkt_status st;
    FKT_TRY(fkt_pipeline_moments_new(p->spec->pipeline, &sim->total));
    for (unsigned i = 0; i < lanes; i++) {
        struct lane *l = &p->lanes[i];
        FKT_TRY(fkt_moments_merge(sim->total, l->total));
        for (int b = 0; b < FKT_NORM_BINS; b++) sim->norms.bins[b] += l->norms.bins[b];
        sim->seconds_moments += l->moments_seconds;
        sim->seconds_aggregate += l->merge_seconds;
        if (p->spec->skipped) FKT_TRY(fkt_skipped_merge(p->spec->skipped, &l->skipped));
    }
    sim->seconds_aggregate += fkt_now() - start;
out:
    return st;
}

static fkt_status count_records(struct fkt_simulation *sim)
{
    const uint32_t classes = fkt_moments_classes(sim->total);
    const int64_t *packed;
    fkt_status st = fkt_moments_packed(sim->total, &packed);
    for (uint32_t k = 0; st == FKT_OK && k < classes; k++)
        sim->records += (uint64_t)packed[fkt_layout_count(fkt_moments_layout(sim->total), classes, k)];
    return st;
}

/* Every site on the threads of this process. */
static fkt_status walk_sites(struct pool *p, unsigned threads)
{
    struct fkt_simulation *sim = p->sim;
    const unsigned lanes = sim->sites < threads ? sim->sites : threads;
    double start;
    fkt_status st;
    FKT_TRY(sort_by_size(p, threads));
    FKT_TRY(fkt_alloc(&p->lanes, lanes));
    for (unsigned i = 0; i < lanes; i++) {
        p->lanes[i].pool = p;
        p->lanes[i].hook = (struct fkt_progress){lane_step, &p->lanes[i]};
        p->lanes[i].norms = sim->norms;
        FKT_TRY(fkt_pipeline_moments_new(p->spec->pipeline, &p->lanes[i].total));
    }
    start = fkt_now();
    for (uint32_t i = 0; i < p->large; i++) FKT_TRY(pipeline_site(p, p->site[i], &p->lanes[0], threads));
    FKT_TRY(fkt_parallel(lanes, sim->sites - p->large, small_site, p, NULL, "encoding"));
    sim->seconds_encode = fkt_now() - start;
    FKT_TRY(gather(p, lanes));
    sim->seconds_moments /= threads;
    sim->seconds_encode -= sim->seconds_moments;
out:
    for (unsigned i = 0; p->lanes && i < lanes; i++) {
        fkt_moments_free(p->lanes[i].total);
        fkt_skipped_clear(&p->lanes[i].skipped);
    }
    fkt_free(p->lanes);
    return st;
}

fkt_status fkt_simulate(struct fkt_simulation *out, const struct fkt_simulation_spec *spec)
{
    const struct fkt_task *task = fkt_pipeline_task(spec->pipeline);
    const struct fkt_calibration *cal = fkt_pipeline_calibration(spec->pipeline, 0);
    unsigned threads = spec->threads ? spec->threads : fkt_cpu_count();
    struct pool p = {.spec = spec, .sim = out};
    fkt_status st;

    memset(out, 0, sizeof *out);
    out->sites = spec->partition.sites;
    if (out->sites < 1 || spec->n_train < 1)
        return fkt_fail(FKT_E_ARG, "a simulation needs at least one site and one record");
    st = fkt_pipeline_can_encode(spec->pipeline);
    if (st != FKT_OK) return st;
    st = fkt_public_images_refuse(
        spec->pipeline, spec->data, spec->train, spec->n_train,
        &(struct fkt_pipeline_options){.threads = threads, .progress = spec->progress, .ranks = spec->ranks});
    if (st != FKT_OK) return st;
    fkt_meter_init(&p.meter, spec->progress, "encoding", spec->n_train);
    out->norms.lo = cal->log_mean - 1.5 * cal->log_spread;
    out->norms.hi = cal->log_mean + 1.5 * cal->log_spread;
    out->bytes_per_site = (uint64_t)fkt_task_numbers(task) * sizeof(int64_t);
    FKT_TRY(fkt_alloc(&out->owner, spec->n_train));
    FKT_TRY(fkt_alloc(&out->survived, out->sites));
    FKT_TRY(fkt_alloc(&out->counts, (size_t)out->sites * task->n_classes));
    FKT_TRY(partition(out, spec));
    FKT_TRY(choose_survivors(out, spec));
    if (spec->keep)
        FKT_TRY(fkt_site_moments_new(&out->site_moments, out->parts, fkt_task_numbers(task), SITE_MOMENTS_MEMORY));
    FKT_TRY(sort_by_owner(&p));
    if (fkt_ranks_several(spec->ranks)) FKT_TRY(fkt_site_shards(out, spec, p.order, p.first));
    else FKT_TRY(walk_sites(&p, threads));
    FKT_TRY(count_records(out));
out:
    fkt_free(p.order);
    fkt_free(p.first);
    fkt_free(p.site);
    fkt_meter_clear(&p.meter);
    if (st != FKT_OK) fkt_simulation_clear(out);
    return st;
}

static fkt_status from_site_moments(void *self, uint32_t site, int64_t *exact)
{
    return fkt_site_moments_get(self, site, exact);
}

fkt_status fkt_simulation_aggregate(struct fkt_federate_result *out, const struct fkt_simulation *sim,
                                    const struct fkt_simulation_round *round)
{
    struct fkt_federate_spec spec = {.task = round->task,
                                     .secrets = round->secrets,
                                     .moments = from_site_moments,
                                     .self = sim->site_moments,
                                     .lost = sim->lost,
                                     .n_lost = sim->n_lost,
                                     .insecure_seed = round->insecure_seed,
                                     .threads = round->threads,
                                     .progress = round->progress};
    memset(out, 0, sizeof *out);
    if (!sim->site_moments) return fkt_fail(FKT_E_STATE, "the simulation did not keep its sites' moments");
    if (round->task->federation.sites != sim->parts)
        return fkt_fail(FKT_E_MISMATCH, "%u sites take part, but the task's federation has %u", sim->parts,
                        round->task->federation.sites);
    return fkt_federate(out, &spec);
}

void fkt_simulation_clear(struct fkt_simulation *s)
{
    fkt_free(s->roster);
    fkt_free(s->lost);
    fkt_site_moments_free(s->site_moments);
    fkt_free(s->survived);
    fkt_free(s->owner);
    fkt_free_secret(s->counts);
    fkt_moments_free(s->total);
    memset(s, 0, sizeof *s);
}
