/* SPDX-License-Identifier: Apache-2.0 */
/* unmask.c - subtracts the masks from the sum, once the lost sites are known (docs/protocol.md 3.7).
 *
 *   sum of x  =  sum of y over S - self stream of each i in S - pair stream of each (lost j, survivor i), with its sign
 *
 * A pair of survivors has added the same stream with both signs; a pair of lost sites has added nothing. So a job is
 * one stream: |S| self masks, and one for each survivor among the peers of each lost site. Jobs read the server and
 * write to a lane, a vector that starts at zero, so that lanes in different threads need no lock. The order of jobs and
 * the number of lanes do not change the result, since addition in the ring commutes. The caller runs the threads.
 *
 * Cost: one keystream of L words for each job, for a pair one X25519 before it; a lane is one vector. Source: Bonawitz
 * et al., CCS 2017, figure 4, round 4; the sums differ from it in the ring, Z_2^b. */
#include "secagg/server.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "crypto/entropy.h"

#include <string.h>

struct fkt_sa_lane {
    struct fkt_sa_vector v;
    struct fkt_stream *stream;
    uint8_t *done; /* bitmap over the jobs: those whose stream is in v */
    size_t jobs;
};

/* Writes the jobs, or with job NULL counts them. */
static size_t list(const struct fkt_sa_server *s, struct fkt_sa_job *job)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->p.sites; i++) {
        const uint32_t *near = fkt_sa_near(s, i);
        if (!(s->sets[i] & FKT_SA_IN_MASK)) continue;
        if (s->sets[i] & FKT_SA_SURVIVED) {
            if (job) job[n] = (struct fkt_sa_job){i, i};
            n++;
            continue;
        }
        for (uint32_t k = 0; k < s->p.degree; k++) {
            if (!(s->sets[near[k]] & FKT_SA_SURVIVED)) continue;
            if (job) job[n] = (struct fkt_sa_job){i, near[k]};
            n++;
        }
    }
    return n;
}

fkt_status fkt_sa_server_list_jobs(struct fkt_sa_server *s)
{
    size_t n = list(s, NULL);
    fkt_status st = fkt_alloc(&s->job, n);
    if (st == FKT_OK) s->jobs = list(s, s->job);
    return st;
}

size_t fkt_sa_server_jobs(const struct fkt_sa_server *s) { return s->state == FKT_SA_STATE_UNMASK ? s->jobs : 0; }

static fkt_status unmasking(const struct fkt_sa_server *s)
{
    if (s->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&s->failure);
    if (s->state == FKT_SA_STATE_UNMASK) return FKT_OK;
    return fkt_fail(FKT_E_STATE, "the round is in phase %s and not in %s", fkt_sa_state_name(s->state),
                    fkt_sa_state_name(FKT_SA_STATE_UNMASK));
}

fkt_status fkt_sa_lane_new(struct fkt_sa_lane **out, const struct fkt_sa_server *s)
{
    struct fkt_sa_lane *lane = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(unmasking(s));
    FKT_TRY(fkt_alloc(&lane, 1));
    FKT_TRY(fkt_alloc(&lane->done, fkt_bitmap_bytes(s->jobs)));
    lane->jobs = s->jobs;
    FKT_TRY(fkt_sa_vector_init(&lane->v, &s->p));
    FKT_TRY(fkt_sa_mask_stream(&lane->stream, &s->p));
    *out = lane;
    lane = NULL;
out:
    fkt_sa_lane_free(lane);
    return st;
}

void fkt_sa_lane_free(struct fkt_sa_lane *lane)
{
    if (!lane) return;
    fkt_sa_vector_clear(&lane->v);
    fkt_stream_free(lane->stream);
    fkt_free(lane->done);
    fkt_free(lane);
}

fkt_status fkt_sa_server_job(const struct fkt_sa_server *s, size_t job, struct fkt_sa_lane *lane)
{
    uint32_t site, other;
    uint8_t key[32];
    fkt_status st;
    FKT_TRY(unmasking(s));
    if (job >= s->jobs || lane->jobs != s->jobs)
        return fkt_fail(FKT_E_ARG, "there is no job %zu among %zu in this lane", job, lane->jobs);
    if (fkt_bitmap_get(lane->done, job)) return fkt_fail(FKT_E_STATE, "job %zu is done in this lane already", job);
    site = s->job[job].site;
    other = s->job[job].other;
    if (site == other) fkt_sa_self_key(key, s->slot[site].secret, s->session, site);
    else {
        FKT_TRY(fkt_sa_pair_key(key, s->slot[site].secret, s->slot[other].mask_key, s->session, s->seed, site, other));
        fkt_sa_stream_key(key, key, s->delivered_hash);
    }
    /* a survivor has added the streams of larger numbers and subtracted those of smaller ones */
    FKT_TRY(fkt_sa_vector_mask(&lane->v, lane->stream, key, site >= other));
    fkt_bitmap_set(lane->done, job);
out:
    fkt_wipe(key, sizeof key);
    return st;
}

/* protocol.md 3.7, the end: |total| <= |S| * B < 2^(b-1), so the product does not wrap. Only the total is checked, not
 * the sites: one site can add anything that keeps the total in range. */
static fkt_status in_range(const struct fkt_sa_server *s, const int64_t *total)
{
    int64_t most = (int64_t)(s->census.masked * s->p.bound);
    uint32_t bad = 0;
    for (uint32_t i = 0; i < s->p.length; i++) bad += total[i] > most || total[i] < -most;
    if (!bad) return FKT_OK;
    return fkt_fail_hint(FKT_E_PEER_AUTH, "a site sent a vector out of its bound, or its masks do not cancel",
                         "%u of the %u numbers of the total exceed the bound for %u sites", bad, s->p.length,
                         s->census.masked);
}

/* A stream subtracted twice or not at all gives numbers that look like a total. */
static fkt_status each_once(const struct fkt_sa_server *s, struct fkt_sa_lane *const *lanes, size_t n)
{
    for (size_t job = 0; job < s->jobs; job++) {
        size_t times = 0;
        for (size_t i = 0; i < n; i++) times += lanes[i]->jobs == s->jobs && fkt_bitmap_get(lanes[i]->done, job);
        if (times != 1) return fkt_fail(FKT_E_STATE, "job %zu of %zu is done %zu times", job, s->jobs, times);
    }
    return FKT_OK;
}

fkt_status fkt_sa_server_finish(struct fkt_sa_server *s, struct fkt_sa_lane *const *lanes, size_t n)
{
    int64_t *total = NULL;
    uint8_t *survived = NULL;
    fkt_status st;
    FKT_TRY(unmasking(s));
    FKT_TRY(each_once(s, lanes, n));
    FKT_TRY(fkt_alloc(&total, s->p.length));
    FKT_TRY(fkt_alloc(&survived, s->p.sites));
    for (size_t i = 0; i < n; i++) fkt_sa_vector_add(&s->sum, &lanes[i]->v);
    fkt_sa_vector_signed(&s->sum, total);
    st = in_range(s, total);
    if (st != FKT_OK) {
        fkt_sa_server_fail(s, st);
        goto out;
    }
    for (uint32_t i = 0; i < s->p.sites; i++) survived[i] = (s->sets[i] & FKT_SA_SURVIVED) != 0;
    fkt_sa_server_wipe(s);
    s->total = total;
    s->survived = survived;
    s->state = FKT_SA_STATE_DONE;
    total = NULL;
    survived = NULL;
out:
    fkt_free_secret(total);
    fkt_free(survived);
    return st;
}

fkt_status fkt_sa_server_unmask(struct fkt_sa_server *s)
{
    struct fkt_sa_lane *lane = NULL;
    fkt_status st;
    FKT_TRY(unmasking(s));
    FKT_TRY(fkt_sa_lane_new(&lane, s));
    for (size_t i = 0; i < s->jobs; i++) FKT_TRY(fkt_sa_server_job(s, i, lane));
    FKT_TRY(fkt_sa_server_finish(s, &lane, 1));
out:
    fkt_sa_lane_free(lane);
    return st;
}

fkt_status fkt_sa_server_total(const struct fkt_sa_server *s, const int64_t **total, const uint8_t **survivors)
{
    *total = NULL;
    *survivors = NULL;
    if (s->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&s->failure);
    if (s->state != FKT_SA_STATE_DONE) return fkt_fail(FKT_E_STATE, "the total is not available yet");
    *total = s->total;
    *survivors = s->survived;
    return FKT_OK;
}
