/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.c - a name for some records that no task changes.
 *
 *   record i -> SHA-256(width, height, RGB of the original) -> sort -> SHA-256(domain, n, digests)
 *
 * A ledger that knows records by their moments takes the same pictures under another size, class order, Rq or codec
 * for new ones. This name is made before any of that. Labels and file names are left out, so that relabelling or
 * renaming is no way round the account; duplicates count as often as they stand. What it cannot see is in
 * docs/threat-model.md: one record more or less, or one changed pixel, is another name. Digests are sorted, so the name
 * tells nothing about the order, but it is computed from private pixels and is as private as a hash of them can be.
 * Cost: decoding every image once; 32 bytes of memory a record. */
#include "round/walk.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "crypto/hash.h"

#include <stdlib.h>
#include <string.h>

#define DOMAIN "fedkt records v1" /* with its NUL */

struct digest {
    uint8_t bytes[FKT_HASH_BYTES];
};

struct job {
    const struct fkt_dataset *ds;
    const size_t *idx;
    int skip_bad;
    struct digest *digests; /* (n) */
    uint8_t *bad;           /* (n) 1: could not be read */
};

static fkt_status hash_record(void *ctx, size_t i, unsigned worker)
{
    struct job *j = ctx;
    struct fkt_hash h;
    uint8_t *rgb = NULL;
    uint32_t width = 0, height = 0;
    fkt_status st;
    (void)worker;
    st = fkt_dataset_read_original(j->ds, j->idx ? j->idx[i] : i, &rgb, &width, &height);
    if (j->skip_bad && (st == FKT_E_FORMAT || st == FKT_E_IO)) {
        j->bad[i] = 1;
        return FKT_OK;
    }
    FKT_TRY(st);
    fkt_hash_init(&h);
    fkt_hash_add_u64(&h, width);
    fkt_hash_add_u64(&h, height);
    fkt_hash_add(&h, rgb, (size_t)3 * width * height);
    fkt_hash_end(&h, j->digests[i].bytes);
out:
    fkt_image_free(rgb);
    return st;
}

static int compare(const void *a, const void *b) { return memcmp(a, b, sizeof(struct digest)); }

fkt_status fkt_records_fingerprint(const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                   const struct fkt_walk_options *options, char out[FKT_SHA256_HEX])
{
    struct job j = {.ds = ds, .idx = idx, .skip_bad = options && options->skipped};
    struct fkt_hash h;
    size_t good = 0;
    fkt_status st;
    if (!idx) n = fkt_dataset_size(ds);
    FKT_TRY(fkt_alloc(&j.digests, n ? n : 1));
    FKT_TRY(fkt_alloc(&j.bad, n ? n : 1));
    FKT_TRY(fkt_parallel(options ? options->threads : 0, n, hash_record, &j, options ? options->progress : NULL,
                         "fingerprint"));
    for (size_t i = 0; i < n; i++)
        if (!j.bad[i]) j.digests[good++] = j.digests[i];
    qsort(j.digests, good, sizeof *j.digests, compare);
    fkt_hash_init(&h);
    fkt_hash_add(&h, DOMAIN, sizeof DOMAIN);
    fkt_hash_add_u64(&h, good);
    fkt_hash_add(&h, j.digests, good * sizeof *j.digests);
    fkt_hash_hex(&h, out);
out:
    fkt_free(j.digests);
    fkt_free(j.bad);
    return st;
}
