/* SPDX-License-Identifier: Apache-2.0 */
/* choice.c - which records are taken: a function of each record alone.
 *
 *   stored bytes --BLAKE2b--> key (64 bits) --mixed with seed and purpose--> a uniform number --> held out? which site?
 *
 * A private sum is computed from the records that a rule has chosen. If the rule shuffles them, one record more moves
 * others, and the sum changes by several records where the sensitivity allows for one. Here the choice of a record
 * depends on the public seed and on its own bytes alone, not on its name, its position or the other records. Equal
 * records are chosen alike.
 *
 * Consequence: sizes are not exact. A hold-out of F takes a binomial number of records with mean F*n.
 *
 * The hash is not secret and need not be collision-free: two records with one key go the same way, which changes no
 * sensitivity. BLAKE2b is used because its output is uniform for every input, whatever structure files have. A record
 * that cannot be read has the key of no bytes; its reader reports it later. Cost: one read of each record's bytes. */
#include "images/choice.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/threads.h"
#include "crypto/hash.h"
#include "images/dataset.h"

#include <string.h>

uint64_t fkt_choice(uint64_t seed, enum fkt_choice_purpose purpose, uint64_t key)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, (uint64_t)purpose);
    fkt_rng_init(&rng, fkt_rng_u64(&rng), key);
    return fkt_rng_u64(&rng);
}

double fkt_choice_unit(uint64_t seed, enum fkt_choice_purpose purpose, uint64_t key)
{
    return (double)(fkt_choice(seed, purpose, key) >> 11) * 0x1p-53;
}

uint64_t fkt_record_key(const void *bytes, size_t len)
{
    uint8_t digest[FKT_HASH_BYTES];
    uint64_t key = 0;
    fkt_hash_long(digest, bytes, len);
    for (int i = 0; i < 8; i++) key |= (uint64_t)digest[i] << 8 * i;
    return key;
}

fkt_status fkt_stored_reserve(struct fkt_stored *s, size_t len)
{
    if (len > s->room || !s->bytes) {
        size_t room = len + len / 2;
        fkt_free(s->bytes);
        s->bytes = NULL;
        fkt_status st = fkt_alloc(&s->bytes, room);
        if (st != FKT_OK) return st;
        s->room = room;
    }
    s->len = len;
    return FKT_OK;
}

struct job {
    const struct fkt_dataset *ds;
    const size_t *idx;
    struct fkt_stored *stored; /* one for each thread */
    uint64_t *keys;
};

static fkt_status key_of(void *ctx, size_t i, unsigned worker)
{
    const struct job *j = ctx;
    const struct fkt_dataset *ds = j->ds;
    struct fkt_stored *s = &j->stored[worker];
    fkt_status st = ds->vt->stored(ds->self, ds->records[j->idx ? j->idx[i] : i].raw, s);
    if (st == FKT_OK) j->keys[i] = fkt_record_key(s->bytes, s->len);
    else if (st == FKT_E_FORMAT || st == FKT_E_IO) j->keys[i] = fkt_record_key(NULL, 0);
    else return st;
    return FKT_OK;
}

fkt_status fkt_dataset_keys(const struct fkt_dataset *ds, const size_t *idx, size_t n, unsigned threads, uint64_t *keys)
{
    struct job j = {ds, idx, NULL, keys};
    fkt_status st;
    for (size_t i = 0; idx && i < n; i++)
        if (idx[i] >= ds->n) return fkt_fail(FKT_E_ARG, "there is no record %zu: the set has %zu", idx[i], ds->n);
    if (!threads) threads = fkt_cpu_count();
    FKT_TRY(fkt_alloc(&j.stored, threads));
    FKT_TRY(fkt_parallel(threads, idx ? n : ds->n, key_of, &j, NULL, "hashing"));
out:
    for (unsigned i = 0; j.stored && i < threads; i++) fkt_free(j.stored[i].bytes);
    fkt_free(j.stored);
    return st;
}

fkt_status fkt_split_holdout(uint8_t *held, const uint64_t *keys, size_t n, double fraction, uint64_t seed)
{
    if (!(fraction >= 0 && fraction <= 1))
        return fkt_fail(FKT_E_ARG, "a fraction of %g cannot be held out: 0 to 1", fraction);
    for (size_t i = 0; i < n; i++) held[i] = fkt_choice_unit(seed, FKT_CHOICE_HOLDOUT, keys[i]) < fraction;
    return FKT_OK;
}
