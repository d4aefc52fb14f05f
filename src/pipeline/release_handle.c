/* SPDX-License-Identifier: Apache-2.0 */
/* release_handle.c - a release as the handle that the public header shows; see task/handle.c. */
#include "pipeline/release.h"

#include "base/alloc.h"

void fkt_release_free(struct fkt_release *r)
{
    if (!r) return;
    fkt_release_clear(r);
    fkt_free(r);
}

/* Hands *r over, or frees it where st is a failure. */
static fkt_status give(struct fkt_release **out, struct fkt_release *r, fkt_status st)
{
    if (st == FKT_OK) *out = r;
    else fkt_release_free(r);
    return st;
}

fkt_status fkt_release_make(struct fkt_release **out, const struct fkt_task *task,
                            const struct fkt_calibration *calibration, struct fkt_moments *m,
                            const struct fkt_round_facts *facts, struct fkt_ledger *ledger,
                            const uint64_t *insecure_seed)
{
    struct fkt_release *r = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&r, 1);
    if (st == FKT_OK) st = fkt_release_make_into(r, task, calibration, m, facts, ledger, insecure_seed);
    return give(out, r, st);
}

fkt_status fkt_release_gather(struct fkt_release **out, const struct fkt_task *task,
                              const struct fkt_calibration *calibration, const int64_t *total,
                              const struct fkt_round_facts *facts, int insecure_seed)
{
    struct fkt_release *r = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&r, 1);
    if (st == FKT_OK) st = fkt_release_gather_into(r, task, calibration, total, facts, insecure_seed);
    return give(out, r, st);
}

fkt_status fkt_release_load(struct fkt_release **out, const char *path)
{
    struct fkt_release *r = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&r, 1);
    if (st == FKT_OK) st = fkt_release_load_into(r, path);
    return give(out, r, st);
}

const struct fkt_task *fkt_release_task(const struct fkt_release *r) { return &r->task; }

const struct fkt_calibration *fkt_release_calibration(const struct fkt_release *r, uint32_t part)
{
    return part < r->task.parts ? &r->calibration[part] : NULL;
}

const int64_t *fkt_release_moments(const struct fkt_release *r, size_t *n)
{
    *n = fkt_task_numbers(&r->task);
    return r->moments;
}

const struct fkt_privacy_plan *fkt_release_plan(const struct fkt_release *r) { return &r->plan; }

const struct fkt_share_plan *fkt_release_shares(const struct fkt_release *r)
{
    return r->shares.counted ? &r->shares : NULL;
}

const struct fkt_sigmas *fkt_release_sigma(const struct fkt_release *r) { return &r->sigma; }
const struct fkt_round_facts *fkt_release_facts(const struct fkt_release *r) { return &r->facts; }
int fkt_release_insecure_seed(const struct fkt_release *r) { return r->insecure_seed; }
const char *fkt_release_sha256(const struct fkt_release *r) { return r->sha256; }
