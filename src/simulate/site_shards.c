/* SPDX-License-Identifier: Apache-2.0 */
/* site_shards.c - the sites of a simulation over several ranks.
 *
 *   records of the surviving sites, site by site --shards--> rows --those that count--> moments of each site
 *   every rank: a total --tree--> rank 0          other ranks: their sites' moments --> rank 0, which adds them
 *
 * A shard is a range of records and not of sites, so that ranks have equal work whatever the partition; the first and
 * the last site of a shard may be shared with a neighbour, and rank 0 adds their parts. The total is reduced first,
 * with its checks: a site's counts are at most the total's, so no entry of a site can overflow afterwards. Which site
 * counts an image that several have does not change the total.
 * Memory: as without ranks, plus four bytes a record. */
#include "simulate/site_shards.h"

#include "fedkt/advanced/moments.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/wipe.h"
#include "pipeline/rows.h"
#include "simulate/site_moments.h"

#include <string.h>

#define LAST UINT32_MAX /* in place of a site: there are no more */

struct shard {
    struct fkt_simulation *sim;
    const struct fkt_pipeline *pipeline;
    size_t *idx;    /* (n) records of the surviving sites */
    uint32_t *site; /* (n) whose they are */
    size_t n;
    struct fkt_moments *moments; /* of the current site; NULL: none yet */
    uint32_t current;
    uint8_t *here;   /* (parts) 1: this rank has moments of that site */
    int64_t *buffer; /* (2, numbers) */
    size_t numbers;
};

static fkt_status list_records(struct shard *s, const size_t *order, const size_t *first)
{
    const struct fkt_simulation *sim = s->sim;
    size_t all = 0;
    fkt_status st;
    for (uint32_t i = 0; i < sim->sites; i++)
        if (sim->survived[i]) all += first[i + 1] - first[i];
    FKT_TRY(fkt_alloc(&s->idx, all));
    FKT_TRY(fkt_alloc(&s->site, all));
    for (uint32_t i = 0; i < sim->sites; i++)
        for (size_t r = first[i]; sim->survived[i] && r < first[i + 1]; r++) {
            s->idx[s->n] = order[r];
            s->site[s->n++] = i;
        }
out:
    return st;
}

/* The current site is complete, as far as this rank has it. */
static fkt_status end_site(struct shard *s)
{
    const int64_t *packed;
    fkt_status st = FKT_OK;
    if (!s->moments) return FKT_OK;
    if (s->sim->site_moments) {
        const uint32_t slot = fkt_simulation_place(s->sim, s->current);
        FKT_TRY(fkt_moments_packed(s->moments, &packed));
        FKT_TRY(fkt_site_moments_put(s->sim->site_moments, slot, packed));
        s->here[slot] = 1;
    }
    FKT_TRY(fkt_moments_merge(s->sim->total, s->moments));
out:
    fkt_moments_free(s->moments);
    s->moments = NULL;
    return st;
}

static fkt_status add_rows(void *ctx, const struct fkt_rows_part *p)
{
    struct shard *s = ctx;
    const size_t m = fkt_pipeline_length(s->pipeline);
    fkt_status st = FKT_OK;
    for (size_t i = 0, end; i < p->n; i = end) {
        const uint32_t site = s->site[p->place[i]];
        for (end = i; end < p->n && s->site[p->place[end]] == site; end++) continue;
        if (s->moments && site != s->current) FKT_TRY(end_site(s));
        if (!s->moments) FKT_TRY(fkt_pipeline_moments_new(s->pipeline, &s->moments));
        s->current = site;
        FKT_TRY(fkt_moments_add(s->moments, p->label + i, p->q + i * m, end - i));
    }
out:
    return st;
}

/* pre: the total was reduced, so sums of a site's parts stay below 2^61 */
static fkt_status add_to_site(struct shard *s, uint32_t slot, const int64_t *more)
{
    int64_t *sum = s->buffer;
    fkt_status st = fkt_site_moments_get(s->sim->site_moments, slot, sum);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < s->numbers; i++) sum[i] += more[i];
    return fkt_site_moments_put(s->sim->site_moments, slot, sum);
}

static fkt_status give_sites(struct shard *s, struct fkt_ranks *r, fkt_status *own)
{
    const uint32_t last = LAST;
    fkt_status st = FKT_OK;
    for (uint32_t slot = 0; slot < s->sim->parts && *own == FKT_OK; slot++) {
        if (!s->here[slot]) continue;
        *own = fkt_site_moments_get(s->sim->site_moments, slot, s->buffer);
        if (*own != FKT_OK) break;
        FKT_TRY(fkt_ranks_send(r, 0, &slot, sizeof slot));
        FKT_TRY(fkt_ranks_send(r, 0, s->buffer, s->numbers * sizeof *s->buffer));
    }
    FKT_TRY(fkt_ranks_send(r, 0, &last, sizeof last));
out:
    return st;
}

static fkt_status take_sites(struct shard *s, struct fkt_ranks *r, uint32_t from, fkt_status *own)
{
    int64_t *more = s->buffer + s->numbers;
    uint32_t slot;
    fkt_status st;
    for (;;) {
        FKT_TRY(fkt_ranks_recv(r, from, &slot, sizeof slot));
        if (slot == LAST) return FKT_OK;
        if (slot >= s->sim->parts) return fkt_fail(FKT_E_STATE, "rank %u has a site that is not in the roster", from);
        FKT_TRY(fkt_ranks_recv(r, from, more, s->numbers * sizeof *more));
        if (*own == FKT_OK) *own = add_to_site(s, slot, more);
    }
out:
    return st;
}

/* The sites' moments of all ranks to rank 0. */
static fkt_status gather_sites(struct shard *s, struct fkt_ranks *r)
{
    fkt_status own = FKT_OK, st = FKT_OK;
    if (!s->sim->site_moments) return FKT_OK;
    if (r->rank) FKT_TRY(give_sites(s, r, &own));
    for (uint32_t from = 1; !r->rank && from < r->size; from++) FKT_TRY(take_sites(s, r, from, &own));
    FKT_TRY(fkt_ranks_agree(r, own));
out:
    return st;
}

static fkt_status prepare(struct shard *s, const size_t *order, const size_t *first)
{
    fkt_status st;
    FKT_TRY(list_records(s, order, first));
    FKT_TRY(fkt_alloc(&s->here, s->sim->parts));
    FKT_TRY(fkt_alloc(&s->buffer, 2 * s->numbers));
    FKT_TRY(fkt_pipeline_moments_new(s->pipeline, &s->sim->total));
out:
    return st;
}

fkt_status fkt_site_shards(struct fkt_simulation *sim, const struct fkt_simulation_spec *spec, const size_t *order,
                           const size_t *first)
{
    const struct fkt_pipeline_options options = {.threads = spec->threads,
                                                 .progress = spec->progress,
                                                 .skipped = spec->skipped,
                                                 .norms = &sim->norms,
                                                 .encodings = spec->encodings,
                                                 .ranks = spec->ranks};
    struct shard s = {
        .sim = sim, .pipeline = spec->pipeline, .numbers = fkt_task_numbers(fkt_pipeline_task(spec->pipeline))};
    struct fkt_rows *rows = NULL;
    double start = fkt_now();
    fkt_status st = prepare(&s, order, first);
    if (st == FKT_OK)
        st = fkt_rows_walk(&rows, FKT_ROWS_Q, spec->pipeline, spec->data, s.idx, s.n, &options, "encoding");
    FKT_TRY(fkt_ranks_agree(spec->ranks, st));
    sim->seconds_encode = fkt_now() - start;
    start = fkt_now();
    FKT_TRY(fkt_rows_counted(rows, spec->ranks, spec->records, add_rows, &s));
    FKT_TRY(fkt_ranks_agree(spec->ranks, end_site(&s)));
    sim->seconds_moments = fkt_now() - start;
    start = fkt_now();
    FKT_TRY(fkt_moments_reduce(sim->total, spec->ranks));
    FKT_TRY(gather_sites(&s, spec->ranks));
    FKT_TRY(fkt_rows_gather_notes(spec->ranks, spec->skipped, &sim->norms));
    sim->seconds_aggregate = fkt_now() - start;
out:
    fkt_rows_free(rows);
    fkt_moments_free(s.moments);
    fkt_free(s.idx);
    fkt_free(s.site);
    fkt_free(s.here);
    fkt_free_secret(s.buffer);
    return st;
}
