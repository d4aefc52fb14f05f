/* SPDX-License-Identifier: Apache-2.0 */
/* records.c - which images some sums contain: a set of digests (fingerprint.c), 16 bytes each, and their labels.
 *
 *   pipeline --(digest, label)--> seen before? --no--> counted, added to the set
 *                                  \--yes--> an exact copy: not counted
 *   set --distinct digests, ascending--> moments file, ledger
 *
 * The noise is sized for a record that enters a release once. So records with the same pixels and the same label count
 * once, whichever of them is read first: their numbers are the same. That weakens no promise: with neighbours by
 * `add-remove` a copy more or less changes nothing, and with `replace-any` a swap for a copy is a removal. Under
 * `replace` the counts are published exactly, and a record that was swapped for a copy of another would show in them:
 * there copies count, as records of their own. An image under two labels is two records with one digest.
 *
 * The set is a table with open addressing; a digest is its own hash. Cost: some 40 bytes a record. */
#include "pipeline/records.h"

#include "base/alloc.h"
#include "crypto/entropy.h"
#include "crypto/hash.h"
#include "pipeline/fingerprint.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN "fedkt records v2" /* with its NUL */
enum { FIRST_SIZE = 1024 };

struct slot {
    struct fkt_record_digest digest;
    uint32_t label;
    uint32_t used;
};

struct fkt_records {
    pthread_mutex_t lock;
    int copies_count;
    struct slot *slots; /* (size) a power of two */
    size_t size, n;
    size_t copies;
    struct fkt_record_digest *list; /* (n_list) of the images, when n_listed of the records were in it */
    size_t n_list, n_listed;
};

fkt_status fkt_records_new(struct fkt_records **out, enum fkt_adjacency adjacency)
{
    struct fkt_records *r = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&r, 1));
    FKT_TRY(fkt_alloc(&r->slots, FIRST_SIZE));
    r->size = FIRST_SIZE;
    r->copies_count = fkt_adjacency_counts_public(adjacency);
    pthread_mutex_init(&r->lock, NULL);
    *out = r;
    r = NULL;
out:
    fkt_free(r);
    return st;
}

void fkt_records_free(struct fkt_records *r)
{
    if (!r) return;
    pthread_mutex_destroy(&r->lock);
    fkt_wipe(r->slots, r->size * sizeof *r->slots);
    fkt_free(r->slots);
    if (r->list) fkt_wipe(r->list, r->n_list * sizeof *r->list);
    fkt_free(r->list);
    fkt_free(r);
}

/* The slot that holds the record, or where it would go. */
static struct slot *find(struct slot *slots, size_t size, const struct fkt_record_digest *digest, uint32_t label)
{
    uint64_t at;
    memcpy(&at, digest, sizeof at);
    for (size_t i = (size_t)at;; i++) {
        struct slot *s = &slots[i & (size - 1)];
        if (!s->used || (s->label == label && !memcmp(&s->digest, digest, sizeof *digest))) return s;
    }
}

static fkt_status grow(struct fkt_records *r)
{
    struct slot *wide = NULL;
    fkt_status st;
    if (2 * (r->n + 1) <= r->size) return FKT_OK;
    st = fkt_alloc(&wide, 2 * r->size);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < r->size; i++)
        if (r->slots[i].used) *find(wide, 2 * r->size, &r->slots[i].digest, r->slots[i].label) = r->slots[i];
    fkt_wipe(r->slots, r->size * sizeof *r->slots);
    fkt_free(r->slots);
    r->slots = wide;
    r->size *= 2;
    return FKT_OK;
}

static fkt_status add_one(struct fkt_records *r, const struct fkt_record_digest *digest, uint32_t label, int *is_new)
{
    struct slot *s;
    fkt_status st = grow(r);
    if (st != FKT_OK) return st;
    s = find(r->slots, r->size, digest, label);
    *is_new = !s->used;
    if (s->used) return FKT_OK;
    *s = (struct slot){*digest, label, 1};
    r->n++;
    return FKT_OK;
}

fkt_status fkt_records_add(struct fkt_records *r, const struct fkt_digest *digests, const uint32_t *labels, size_t n,
                           uint8_t *counts)
{
    struct fkt_record_digest one;
    int is_new;
    fkt_status st = FKT_OK;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < n; i++) {
        memcpy(&one, &digests[i], sizeof one);
        FKT_TRY(add_one(r, &one, labels[i], &is_new));
        r->copies += !is_new;
        counts[i] = is_new || r->copies_count;
    }
out:
    pthread_mutex_unlock(&r->lock);
    return st;
}

fkt_status fkt_records_add_image(struct fkt_records *r, const struct fkt_record_digest *digest)
{
    int is_new;
    return add_one(r, digest, 0, &is_new);
}

/* Unreadable images are marked; unless they are to be skipped, the first one is an error. */
static fkt_status why_bad(const struct fkt_dataset *ds, size_t i)
{
    uint8_t *rgb = NULL;
    uint32_t width, height;
    fkt_status st = fkt_dataset_read_original(ds, i, &rgb, &width, &height);
    fkt_image_free(rgb);
    return st != FKT_OK ? st : fkt_fail(FKT_E_IO, "'%s' changed while it was read", fkt_dataset_name(ds, i));
}

fkt_status fkt_records_read(struct fkt_records *r, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                            const struct fkt_pipeline_options *options)
{
    struct fkt_digest *digests = NULL;
    uint8_t *bad = NULL, counts;
    fkt_status st;
    if (!idx) n = fkt_dataset_size(ds);
    FKT_TRY(fkt_records_digests(ds, idx, n, options, &digests, &bad));
    for (size_t i = 0; i < n; i++) {
        const size_t at = idx ? idx[i] : i;
        const uint32_t label = fkt_dataset_label(ds, at);
        if (bad[i] && !(options && options->skipped)) FKT_TRY(why_bad(ds, at));
        if (!bad[i]) FKT_TRY(fkt_records_add(r, &digests[i], &label, 1, &counts));
    }
out:
    fkt_free(digests);
    fkt_free(bad);
    return st;
}

size_t fkt_records_copies(const struct fkt_records *r) { return r->copies; }

static int compare(const void *a, const void *b) { return memcmp(a, b, FKT_RECORD_DIGEST); }

fkt_status fkt_records_list(struct fkt_records *r, const struct fkt_record_digest **out, size_t *n)
{
    struct fkt_record_digest *list = NULL;
    size_t all = 0, distinct = 0;
    fkt_status st = FKT_OK;
    if (r->list && r->n_listed == r->n) goto out;
    FKT_TRY(fkt_alloc(&list, r->n + 1));
    for (size_t i = 0; i < r->size; i++)
        if (r->slots[i].used) list[all++] = r->slots[i].digest;
    qsort(list, all, sizeof *list, compare);
    for (size_t i = 0; i < all; i++)
        if (!i || compare(&list[i], &list[i - 1]) != 0) list[distinct++] = list[i];
    if (r->list) fkt_wipe(r->list, r->n_list * sizeof *r->list);
    fkt_free(r->list);
    r->list = list;
    r->n_list = distinct;
    r->n_listed = r->n;
out:
    *out = r->list;
    *n = r->n_list;
    return st;
}

fkt_status fkt_records_merge(struct fkt_records *into, struct fkt_records *more, size_t *shared)
{
    const struct fkt_record_digest *a, *b;
    size_t n_a, n_b, i = 0, j = 0;
    fkt_status st;
    *shared = 0;
    FKT_TRY(fkt_records_list(into, &a, &n_a));
    FKT_TRY(fkt_records_list(more, &b, &n_b));
    while (i < n_a && j < n_b) {
        const int c = compare(&a[i], &b[j]);
        *shared += c == 0;
        i += c <= 0;
        j += c >= 0;
    }
    for (size_t k = 0; k < n_b; k++) FKT_TRY(fkt_records_add_image(into, &b[k]));
    into->copies += more->copies;
out:
    return st;
}

void fkt_records_name(char out[FKT_SHA256_HEX], const struct fkt_record_digest *digests, size_t n)
{
    struct fkt_hash h;
    fkt_hash_init(&h);
    fkt_hash_add(&h, DOMAIN, sizeof DOMAIN);
    fkt_hash_add_u64(&h, n);
    fkt_hash_add(&h, digests, n * sizeof *digests);
    fkt_hash_hex(&h, out);
}
