/* SPDX-License-Identifier: Apache-2.0 */
/* personal_split.c - distributes the records of a set over sites, and chooses each site's test records.
 *
 *   data  --partition-->  site 0 [ train | test ]  site 1 [ train | test ] ...     the sites' own test records
 *   data  --partition-->  site 0 [ train ] ...   test set   --class by class-->  site 0 [ test ] ...
 *
 * The paper follows PFLlib's protocol: a site is evaluated on records of its own, a quarter of them. Where we differ:
 * PFLlib splits a site's shuffled records without regard to classes, so a class may be in the test records only; here
 * each class of each site is split separately (stratified) and keeps at least one record for training. A class with a
 * single record is therefore trained on and not evaluated.
 *
 * The second form is for sets that come with a test split. The release is then made from exactly the sites' training
 * records, and no test record is in either; a site is still evaluated on its own mixture of classes, since each class
 * is divided in proportion to the sites' records of it.
 *
 * The split depends on a record's index and on shuffles, so one more record moves others. No private sum is computed
 * from these parts: models trained on them are marked as not private. Cost: n + sites * classes. */
#include "learning/personal.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <string.h>

enum { STREAM_SPLIT = 0x7370, STREAM_SHARE = 0x7368 }; /* of the seed; personal.c and personal_site.c have others */
#define NOBODY UINT32_MAX

/* Records with take[i] == which (take NULL: all) and an owner, by owner: a counting sort. */
static fkt_status gather(struct fkt_personal_part *part, uint32_t sites, const uint32_t *owner, size_t n,
                         const uint8_t *take, uint8_t which)
{
    size_t *at = NULL, total = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&part->start, (size_t)sites + 1));
    FKT_TRY(fkt_alloc(&at, sites));
    for (size_t i = 0; i < n; i++)
        if (owner[i] != NOBODY && (!take || take[i] == which)) at[owner[i]]++;
    for (uint32_t s = 0; s < sites; s++) {
        part->start[s] = total;
        total += at[s];
        at[s] = part->start[s];
    }
    part->start[sites] = total;
    FKT_TRY(fkt_alloc(&part->record, total));
    for (size_t i = 0; i < n; i++)
        if (owner[i] != NOBODY && (!take || take[i] == which)) part->record[at[owner[i]]++] = i;
out:
    fkt_free(at);
    return st;
}

static void part_release(struct fkt_personal_part *part)
{
    fkt_free(part->record);
    fkt_free(part->start);
}

/* ---- the sites' own records ---- */

/* A class that is held out completely returns its first record. */
static void keep_one(uint8_t *held, const uint32_t *label, size_t n, size_t classes, uint8_t *kept)
{
    memset(kept, 0, classes);
    for (size_t i = 0; i < n; i++)
        if (!held[i]) kept[label[i]] = 1;
    for (size_t i = 0; i < n; i++)
        if (!kept[label[i]]) {
            held[i] = 0;
            kept[label[i]] = 1;
        }
}

/* held (n) becomes 1 for test records. */
static fkt_status hold_out(uint8_t *held, const struct fkt_personal_labels *data, const struct fkt_personal_part *all,
                           uint32_t sites, double share, uint64_t seed)
{
    uint32_t *label = NULL;
    uint8_t *mine = NULL, *kept = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&label, data->n));
    FKT_TRY(fkt_alloc(&mine, data->n));
    FKT_TRY(fkt_alloc(&kept, data->classes));
    for (uint32_t s = 0; s < sites; s++) {
        const size_t *record = all->record + all->start[s];
        size_t n = all->start[s + 1] - all->start[s];
        struct fkt_rng rng;
        fkt_rng_init(&rng, seed, (uint64_t)STREAM_SPLIT << 32 | s);
        for (size_t i = 0; i < n; i++) label[i] = data->label[record[i]];
        FKT_TRY(fkt_split_stratified(mine, label, n, data->classes, share, fkt_rng_u64(&rng)));
        keep_one(mine, label, n, data->classes, kept);
        for (size_t i = 0; i < n; i++) held[record[i]] = mine[i];
    }
out:
    fkt_free(label);
    fkt_free(mine);
    fkt_free(kept);
    return st;
}

/* ---- records of a test set ---- */

/* order (count): the test records of class k; held (sites): records of it that each site has. The part of the sites
 * up to s ends at floor(count * held up to s / all held): in integers, so that no record is lost or assigned twice. */
static void share_class(uint32_t *owner, const size_t *order, size_t count, const uint64_t *held, uint32_t sites,
                        size_t classes)
{
    uint64_t total = 0, upto = 0;
    size_t i = 0;
    for (uint32_t s = 0; s < sites; s++) total += held[s * classes];
    for (uint32_t s = 0; s < sites && total; s++) {
        upto += held[s * classes];
        for (; i < (size_t)((unsigned __int128)count * upto / total); i++) owner[order[i]] = s;
    }
}

static fkt_status share_out(uint32_t *owner, const struct fkt_personal_labels *test,
                            const struct fkt_personal_labels *data, const struct fkt_personal_part *train,
                            uint32_t sites, uint64_t seed)
{
    uint64_t *held = NULL; /* (sites, classes) */
    size_t *order = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&held, sites * data->classes));
    FKT_TRY(fkt_alloc(&order, test->n));
    for (uint32_t s = 0; s < sites; s++)
        for (size_t i = train->start[s]; i < train->start[s + 1]; i++)
            held[s * data->classes + data->label[train->record[i]]]++;
    for (size_t i = 0; i < test->n; i++) owner[i] = NOBODY;
    for (size_t k = 0; k < data->classes; k++) {
        struct fkt_rng rng;
        size_t count = 0;
        for (size_t i = 0; i < test->n; i++)
            if (test->label[i] == k) order[count++] = i;
        fkt_rng_init(&rng, seed, (uint64_t)STREAM_SHARE << 32 | k);
        fkt_rng_shuffle(&rng, order, count);
        share_class(owner, order, count, held + k, sites, data->classes);
    }
out:
    fkt_free(held);
    fkt_free(order);
    return st;
}

/* ---- both ---- */

static fkt_status split_own(struct fkt_personal_split *out, const struct fkt_personal_labels *data,
                            const uint32_t *owner, double share, uint64_t seed)
{
    struct fkt_personal_part all = {0};
    uint8_t *held = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&held, data->n));
    FKT_TRY(gather(&all, out->sites, owner, data->n, NULL, 0));
    FKT_TRY(hold_out(held, data, &all, out->sites, share, seed));
    FKT_TRY(gather(&out->train, out->sites, owner, data->n, held, 0));
    FKT_TRY(gather(&out->test, out->sites, owner, data->n, held, 1));
out:
    fkt_free(held);
    part_release(&all);
    return st;
}

static fkt_status split_test(struct fkt_personal_split *out, const struct fkt_personal_labels *data,
                             const uint32_t *owner, const struct fkt_personal_labels *test, uint64_t seed)
{
    uint32_t *evaluate = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&evaluate, test->n));
    FKT_TRY(gather(&out->train, out->sites, owner, data->n, NULL, 0));
    FKT_TRY(share_out(evaluate, test, data, &out->train, out->sites, seed));
    FKT_TRY(gather(&out->test, out->sites, evaluate, test->n, NULL, 0));
out:
    fkt_free(evaluate);
    return st;
}

fkt_status fkt_personal_split_init(struct fkt_personal_split *out, const struct fkt_personal_labels *data,
                                   const struct fkt_personal_labels *test, const struct fkt_partition_spec *partition,
                                   double holdout, uint64_t seed)
{
    uint32_t *owner = NULL;
    uint64_t *keys = NULL;
    fkt_status st;
    *out = (struct fkt_personal_split){.sites = partition->sites};
    if (!test && !(holdout >= 0 && holdout < 1)) /* NaN too */
        return fkt_fail(FKT_E_ARG, "a fraction of %g cannot be held out: it must be at least 0 and below 1", holdout);
    FKT_TRY(fkt_alloc(&owner, data->n));
    FKT_TRY(fkt_alloc(&keys, data->n));
    for (size_t i = 0; i < data->n; i++) keys[i] = i;
    FKT_TRY(fkt_partition(owner, data->label, keys, data->n, data->classes, partition));
    FKT_TRY(test ? split_test(out, data, owner, test, seed) : split_own(out, data, owner, holdout, seed));
out:
    fkt_free(owner);
    fkt_free(keys);
    if (st != FKT_OK) fkt_personal_split_clear(out);
    return st;
}

void fkt_personal_split_clear(struct fkt_personal_split *s)
{
    part_release(&s->train);
    part_release(&s->test);
    memset(s, 0, sizeof *s);
}
