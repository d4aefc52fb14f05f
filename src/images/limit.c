/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - N records in all, evenly over the classes: how many of each class, and which.
 *
 * How many. Imagine the r-th record of class k as the slot (r, k), and all slots in the order of r, then of k. The
 * first N slots are kept: every class gives the same number, what small classes leave over goes to the others, and the
 * last incomplete row to the first classes.
 *
 * Which. Within a class the records with the smallest choice number (choice.c). It is made of the record's bytes, so
 * that neither names nor order decide; or, for a sum under `replace`, of the record's number in the set. There the
 * pixels of a record are what differs between neighbours, so they must not decide: what is chosen from the kept records
 * afterwards (hold-out, site) would differ for a record that takes another's place, and published counts with it.
 *
 * What one record can move, by bytes. A record more in class c adds one slot, (n_c, c), behind all others of c.
 *   - It is not among the first N: no class gives more or less. The new record may have a smaller number than the
 *     largest that class c keeps, and then takes its place: one in, one out, of the same class.
 *   - It is among the first N: class c is kept whole, so the new record comes in and no other of c goes. If there were
 *     N slots before, the last one goes out. It lies behind (n_c, c) in the order, so it belongs to another class,
 *     which gives its record with the largest number: one in, one out, of two classes.
 * So at most one record comes in and one goes out. By number, other pixels in a record move nothing at all.
 * docs/privacy.md says what that does to the promise; tests/unit/images/test_limit.c tries it. Cost: n log n
 * comparisons and, by bytes, one read of all records' bytes. */
#include "images/dataset.h"

#include "base/alloc.h"
#include "images/choice.h"

#include <stdlib.h>

/* quota (K): how many records each class keeps; their sum is limit, which is less than the number of records. */
static void share_out(size_t *quota, const size_t *count, size_t K, size_t limit)
{
    for (size_t left = limit; left;) {
        size_t open = 0, step;
        for (size_t k = 0; k < K; k++) open += quota[k] < count[k];
        step = left / open ? left / open : 1; /* open > 0, since fewer are kept than there are */
        for (size_t k = 0; k < K && left; k++) {
            size_t more = count[k] - quota[k] < step ? count[k] - quota[k] : step;
            quota[k] += more;
            left -= more;
        }
    }
}

struct candidate {
    uint64_t number;
    size_t record;
};

static int ascending(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->record > y->record) - (x->record < y->record); /* equal records, or as good as never */
}

fkt_status fkt_dataset_numbers(const struct fkt_dataset *ds, uint64_t *numbers)
{
    if (ds->limited_by_bytes)
        return fkt_fail(FKT_E_ARG, "the limit has chosen records by their bytes: their numbers depend on pixels");
    for (size_t i = 0; i < ds->n; i++) numbers[i] = ds->records[i].number;
    return FKT_OK;
}

fkt_status fkt_limit_keep(struct fkt_dataset *ds, size_t limit, int by_number)
{
    size_t *quota = NULL, *count = NULL, kept = 0;
    struct candidate *list = NULL;
    uint64_t *keys = NULL;
    uint8_t *taken = NULL;
    fkt_status st = FKT_OK;
    if (!limit || ds->n <= limit) return FKT_OK;
    FKT_TRY(fkt_alloc(&quota, ds->k));
    FKT_TRY(fkt_alloc(&count, ds->k));
    FKT_TRY(fkt_alloc(&list, ds->n));
    FKT_TRY(fkt_alloc(&keys, ds->n));
    FKT_TRY(fkt_alloc(&taken, ds->n));
    FKT_TRY(by_number ? fkt_dataset_numbers(ds, keys) : fkt_dataset_keys(ds, NULL, ds->n, 0, keys));
    ds->limited_by_bytes = !by_number;
    for (size_t i = 0; i < ds->n; i++) {
        list[i] = (struct candidate){fkt_choice(0, FKT_CHOICE_LIMIT, keys[i]), i};
        count[ds->records[i].label]++;
    }
    share_out(quota, count, ds->k, limit);
    qsort(list, ds->n, sizeof *list, ascending);
    for (size_t i = 0; i < ds->n; i++) {
        size_t *left = &quota[ds->records[list[i].record].label];
        if (!*left) continue;
        --*left;
        taken[list[i].record] = 1;
    }
    for (size_t i = 0; i < ds->n; i++) /* what is kept stays in its order */
        if (taken[i]) ds->records[kept++] = ds->records[i];
    ds->n = kept;
out:
    fkt_free(quota);
    fkt_free(count);
    fkt_free(list);
    fkt_free(keys);
    fkt_free(taken);
    return st;
}
