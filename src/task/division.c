/* SPDX-License-Identifier: Apache-2.0 */
/* division.c - a task in cohorts: who is in which, and how the tasks of its cohorts are bound to each other.
 *
 *   roster of all sites, fixed first     seed, public randomness of a later time
 *            \______________________________/
 *       cohort of a site = floor(number * h / 2^64), h from SHA-256(domain, seed, its key)
 *
 *   task of the sum    "cohorts": {number, sites, records, seed, roster_sha256}, no federation
 *   task of cohort c   the same and "index": c, with the federation of its sites and a server
 *
 * A site is assigned by its own key alone. So a reader of one cohort's task, a site above all, checks all of its roster
 * without the keys of other cohorts, and does so whenever a task is read: a key that belongs elsewhere makes the task
 * invalid. The task's hash, which every message of the protocol binds, covers the block: sites of one cohort cannot be
 * shown different divisions. Cohorts whose tasks of the sum differ are not added up (pipeline/sum.c).
 *
 * Whoever has the tasks of all cohorts compares their rosters with the block's hash: no enrolled site was left out. The
 * server of all cohorts and fedkt verify do.
 *
 * What the block cannot prove: that the seed is younger than the roster, and, to a reader of one cohort's task, that no
 * enrolled site was left out (docs/scale.md). Source of the rule: decision 0028, proof of what it covers:
 * src/privacy/cohorts.md, step 6. */
#include "task/division.h"

#include "task/federation.h"
#include "task/service.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/hash.h"

#include <stdlib.h>
#include <string.h>

#define DOMAIN "fedkt.cohort/1\n"
#define SITES_MAX (UINT32_C(1) << 30) /* fkt_privacy_cohorts counts below 2^31 */
#define SEED_BITS 53                  /* an insecure seed in a task is below 2^53 */

uint32_t fkt_division_cohort(const uint8_t seed[32], uint32_t number, const uint8_t key[FKT_SA_KEY])
{
    struct fkt_hash h;
    uint8_t out[FKT_HASH_BYTES];
    uint64_t high = 0, low = 0;
    fkt_hash_init(&h);
    fkt_hash_add(&h, DOMAIN, sizeof DOMAIN - 1);
    fkt_hash_add(&h, seed, 32);
    fkt_hash_add(&h, key, FKT_SA_KEY);
    fkt_hash_end(&h, out);
    for (int i = 0; i < 4; i++) {
        high = high << 8 | out[i];
        low = low << 8 | out[4 + i];
    }
    return (uint32_t)((high * number + (low * number >> 32)) >> 32); /* high * number < 2^64 - 2^33 */
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, FKT_SA_KEY); }

fkt_status fkt_division_roster(uint8_t out[32], const uint8_t *keys, uint32_t n)
{
    struct fkt_hash h;
    char line[2 * FKT_SA_KEY + 1];
    uint8_t *sorted = NULL;
    fkt_status st = fkt_alloc(&sorted, (size_t)n * FKT_SA_KEY);
    if (st != FKT_OK) return st;
    memcpy(sorted, keys, (size_t)n * FKT_SA_KEY);
    qsort(sorted, n, FKT_SA_KEY, by_bytes);
    fkt_hash_init(&h);
    for (uint32_t i = 0; i < n; i++) {
        fkt_hex(line, sorted + (size_t)i * FKT_SA_KEY, FKT_SA_KEY);
        fkt_hash_add(&h, line, sizeof line - 1);
        fkt_hash_add(&h, "\n", 1);
    }
    fkt_hash_end(&h, out);
    fkt_free(sorted);
    return FKT_OK;
}

fkt_status fkt_division_keys_add(struct fkt_division_keys *k, const struct fkt_federation *cohort)
{
    fkt_status st;
    if (cohort->sites > SITES_MAX - k->n) return fkt_fail(FKT_E_MISMATCH, "the cohorts have too many sites together");
    FKT_TRY(fkt_realloc(&k->key, ((size_t)k->n + cohort->sites) * FKT_SA_KEY));
    memcpy(k->key + (size_t)k->n * FKT_SA_KEY, cohort->roster, (size_t)cohort->sites * FKT_SA_KEY);
    k->n += cohort->sites;
out:
    return st;
}

fkt_status fkt_division_keys_check(const struct fkt_division_keys *k, const struct fkt_division *d)
{
    uint8_t all[sizeof d->roster_sha256];
    fkt_status st;
    if (k->n != d->sites)
        return fkt_fail(FKT_E_MISMATCH, "the rosters of all cohorts have %u sites, and the division has %u", k->n,
                        d->sites);
    FKT_TRY(fkt_division_roster(all, k->key, k->n));
    if (memcmp(all, d->roster_sha256, sizeof all) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "the rosters of all cohorts do not have the hash of the division's roster");
out:
    return st;
}

void fkt_division_keys_clear(struct fkt_division_keys *k)
{
    fkt_free(k->key);
    memset(k, 0, sizeof *k);
}

uint32_t fkt_division_number(uint32_t sites, uint32_t size)
{
    const uint64_t n = size ? ((uint64_t)sites + size / 2) / size : 1;
    return n > 1 ? (uint32_t)n : 1;
}

uint64_t fkt_division_seed(uint64_t seed, uint32_t index)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15); /* steps that come back after 2^53 cohorts and not before */
    return index ? (seed + index * odd) & ((UINT64_C(1) << SEED_BITS) - 1) : seed;
}

uint32_t fkt_division_share(uint32_t of_all, uint32_t sites, uint32_t all)
{
    return (uint32_t)(((uint64_t)of_all * sites + all - 1) / all);
}

fkt_status fkt_division_lists(struct fkt_division_lists *out, const struct fkt_division *d, const uint8_t *keys)
{
    uint32_t *cohort = NULL, *next = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_alloc(&out->site, d->sites));
    FKT_TRY(fkt_alloc(&out->first, (size_t)d->number + 1));
    FKT_TRY(fkt_alloc(&cohort, d->sites));
    FKT_TRY(fkt_alloc(&next, d->number));
    for (uint32_t i = 0; i < d->sites; i++) {
        cohort[i] = fkt_division_cohort(d->seed, d->number, keys + (size_t)i * FKT_SA_KEY);
        out->first[cohort[i] + 1]++;
    }
    for (uint32_t c = 0; c < d->number; c++) {
        if (out->first[c + 1] < 3) {
            st = fkt_fail_hint(FKT_E_ARG, "make fewer, larger cohorts",
                               "cohort %u of %u would have %u of %u sites; a federation has at least 3", c, d->number,
                               out->first[c + 1], d->sites);
            goto out;
        }
        out->first[c + 1] += out->first[c];
        next[c] = out->first[c];
    }
    for (uint32_t i = 0; i < d->sites; i++) out->site[next[cohort[i]]++] = i;
out:
    fkt_free(cohort);
    fkt_free(next);
    if (st != FKT_OK) fkt_division_lists_clear(out);
    return st;
}

void fkt_division_lists_clear(struct fkt_division_lists *l)
{
    fkt_free(l->site);
    fkt_free(l->first);
    memset(l, 0, sizeof *l);
}

/* ---- the block in a task ---- */

/* Of a cohort: its roster and its federation. */
static fkt_status check_cohort(const struct fkt_task *t)
{
    const struct fkt_division *d = &t->division;
    const struct fkt_federation *f = &t->federation;
    char hex[2 * FKT_SA_KEY + 1];
    if (!f->sites) return fkt_fail(FKT_E_ARG, "cohorts: cohort %u has no federation", d->index);
    if (f->noise != FKT_NOISE_PLACE_DISTRIBUTED)
        return fkt_fail_hint(FKT_E_ARG, "let every site add its noise share",
                             "cohorts: the noise must be distributed, since the operator sees every cohort's total");
    if (f->records != d->records || f->sites > d->sites)
        return fkt_fail(FKT_E_ARG, "cohorts: cohort %u has %u of %u sites with %llu records each, not %llu", d->index,
                        f->sites, d->sites, (unsigned long long)f->records, (unsigned long long)d->records);
    for (uint32_t i = 0; i < f->sites; i++) {
        const uint8_t *key = f->roster + (size_t)i * FKT_SA_KEY;
        const uint32_t c = fkt_division_cohort(d->seed, d->number, key);
        if (c == d->index) continue;
        fkt_hex(hex, key, FKT_SA_KEY);
        return fkt_fail_hint(FKT_E_ARG, "do not take part: whoever made this task has moved sites between cohorts",
                             "cohorts: site %u (%.16s...) is in the roster of cohort %u and belongs to cohort %u", i,
                             hex, d->index, c);
    }
    return FKT_OK;
}

static fkt_status check(const struct fkt_task *t)
{
    const struct fkt_division *d = &t->division;
    if (d->number < 2 || d->sites > SITES_MAX || d->number > d->sites / 3)
        return fkt_fail_hint(FKT_E_ARG, "a cohort has at least three sites, and a task two cohorts",
                             "cohorts: %u cohorts of %u sites are not possible", d->number, d->sites);
    if (d->index != FKT_DIVISION_WHOLE && d->index >= d->number)
        return fkt_fail(FKT_E_ARG, "cohorts: there is no cohort %u of %u", d->index, d->number);
    if (d->index != FKT_DIVISION_WHOLE) return check_cohort(t);
    if (t->federation.sites) return fkt_fail(FKT_E_ARG, "cohorts: a task with a federation says which cohort it is of");
    return FKT_OK;
}

json_t *fkt_division_json(const struct fkt_division *d)
{
    char seed[2 * sizeof d->seed + 1], roster[2 * sizeof d->roster_sha256 + 1];
    json_t *index = NULL;
    if (d->index != FKT_DIVISION_WHOLE && !(index = json_integer(d->index))) return NULL;
    fkt_hex(seed, d->seed, sizeof d->seed);
    fkt_hex(roster, d->roster_sha256, sizeof d->roster_sha256);
    return json_pack("{s:I s:I s:I s:s s:s s:o*}", "number", (json_int_t)d->number, "sites", (json_int_t)d->sites,
                     "records", (json_int_t)d->records, "seed", seed, "roster_sha256", roster, "index", index);
}

fkt_status fkt_division_take(struct fkt_task *t, const json_t *j)
{
    struct fkt_division *d = &t->division;
    const char *seed, *roster;
    json_int_t number, sites, records;
    json_t *index = NULL;
    json_error_t e;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:I s:I s:I s:s s:s s?o}", "number", &number, "sites",
                       &sites, "records", &records, "seed", &seed, "roster_sha256", &roster, "index", &index) != 0)
        return fkt_fail(FKT_E_FORMAT, "cohorts: %s", e.text);
    if (number < 0 || number > UINT32_MAX || sites < 0 || sites > UINT32_MAX || records < 1 ||
        (index &&
         (!json_is_integer(index) || json_integer_value(index) < 0 || json_integer_value(index) >= FKT_DIVISION_WHOLE)))
        return fkt_fail(FKT_E_FORMAT, "cohorts: a number is out of range");
    if (!fkt_unhex(d->seed, seed, sizeof d->seed) || !fkt_unhex(d->roster_sha256, roster, sizeof d->roster_sha256))
        return fkt_fail(FKT_E_FORMAT, "cohorts: seed or roster is not 64 lower-case hexadecimal digits");
    d->number = (uint32_t)number;
    d->sites = (uint32_t)sites;
    d->records = (uint64_t)records;
    d->index = index ? (uint32_t)json_integer_value(index) : FKT_DIVISION_WHOLE;
    return check(t);
}

/* ---- tasks ---- */

fkt_status fkt_task_divide(struct fkt_task *t, const struct fkt_division *d, int accept_weak)
{
    char why[FKT_PROMISE_WORDS];
    fkt_status st;
    t->division = *d;
    t->division.index = FKT_DIVISION_WHOLE;
    FKT_TRY(check(t));
    if (fkt_task_promise(t, why) == FKT_PROMISE_WEAK && !accept_weak)
        return fkt_fail_hint(FKT_E_ARG, "accept it as weak to go on: all output is then marked weak",
                             "the promise is too weak to be called private: %s", why);
    FKT_TRY(fkt_task_seal(t));
out:
    return st;
}

fkt_status fkt_task_cohort(struct fkt_task *out, const struct fkt_task *whole, uint32_t index,
                           const struct fkt_federation_choices *federation, const struct fkt_service_choices *service)
{
    fkt_status st;
    FKT_TRY(fkt_task_copy(out, whole));
    out->division.index = index;
    FKT_TRY(fkt_federation_make(out, federation));
    FKT_TRY(check(out));
    if (service) FKT_TRY(fkt_service_make(out, service));
    FKT_TRY(fkt_task_seal(out));
out:
    if (st != FKT_OK) fkt_task_clear(out);
    return st;
}

fkt_status fkt_task_whole(struct fkt_task *out, const struct fkt_task *cohort)
{
    fkt_status st;
    if (!cohort->division.number) return fkt_fail(FKT_E_ARG, "task '%s' is not in cohorts", cohort->name);
    FKT_TRY(fkt_task_copy(out, cohort));
    fkt_service_clear(&out->service, out->federation.sites);
    fkt_federation_clear(&out->federation);
    memset(&out->signature, 0, sizeof out->signature);
    out->division.index = FKT_DIVISION_WHOLE;
    FKT_TRY(fkt_task_seal(out));
out:
    if (st != FKT_OK) fkt_task_clear(out);
    return st;
}
