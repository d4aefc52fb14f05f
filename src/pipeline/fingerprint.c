/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.c - a digest for each image of a dataset, and one for a labelled set of them.
 *
 *   image -> SHA-256(width, height, RGB of the original)       16-bit samples: images/decode.h, fkt_pixels_digest
 *
 * A digest is made before any task, so size, class order, Rq and codec do not enter; nor do labels, file names and the
 * stated depth of 16-bit samples. What it cannot detect is in docs/threat-model.md: one changed pixel, or the same
 * image compressed again, gives another digest. It is computed from private pixels and must be kept as private as they
 * are. Used by records.c.
 *
 * The output of `generate` is identified by its images and their labels: labels could have been changed by a network
 * that was trained on real records. So the fingerprint covers the images of each class and the class's name; if an
 * archive has numbers instead of names, the caller gives the names.
 *
 *   digests of one class -> sort -> SHA-256(domain, name, n, digests) -> sort -> SHA-256(domain, classes, those)
 *
 * Cost: decoding every image once; 32 bytes of memory a record, 36 with labels. */
#include "pipeline/fingerprint.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "images/dataset.h"

#include <stdlib.h>
#include <string.h>

#define OF_CLASS "fedkt pictures of a class v1" /* with its NUL, like the other */
#define OF_CLASSES "fedkt labelled pictures v1"
#define OF_IMAGES "fedkt unlabelled images v1"

void fkt_fingerprint_pixels(struct fkt_digest *out, const uint8_t *rgb, uint32_t width, uint32_t height)
{
    struct fkt_hash h;
    fkt_hash_init(&h);
    fkt_hash_add_u64(&h, width);
    fkt_hash_add_u64(&h, height);
    fkt_hash_add(&h, rgb, (size_t)3 * width * height);
    fkt_hash_end(&h, out->bytes);
}

void fkt_fingerprint_image(struct fkt_digest *out, const uint8_t *rgb, uint32_t width, uint32_t height,
                           const struct fkt_facts *facts)
{
    if (facts->wide) memcpy(out->bytes, facts->sha256, sizeof out->bytes);
    else fkt_fingerprint_pixels(out, rgb, width, height);
}

static int compare(const void *a, const void *b) { return memcmp(a, b, sizeof(struct fkt_digest)); }

static int compare_labelled(const void *a, const void *b)
{
    const struct fkt_labelled *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    return compare(&x->image, &y->image);
}

void fkt_unlabelled_end(struct fkt_digest *list, size_t n, char out[FKT_SHA256_HEX])
{
    struct fkt_hash h;
    qsort(list, n, sizeof *list, compare);
    fkt_hash_init(&h);
    fkt_hash_add(&h, OF_IMAGES, sizeof OF_IMAGES);
    fkt_hash_add_u64(&h, n);
    fkt_hash_add(&h, list, n * sizeof *list);
    fkt_hash_hex(&h, out);
}

static void add_all(struct fkt_hash *h, const struct fkt_labelled *list, size_t n)
{
    fkt_hash_add_u64(h, n);
    for (size_t i = 0; i < n; i++) fkt_hash_add(h, &list[i].image, sizeof list[i].image);
}

void fkt_labelled_end(struct fkt_labelled *list, size_t n, const char *const *names, char out[FKT_SHA256_HEX])
{
    struct fkt_hash h;
    struct fkt_digest whole;
    size_t classes = 0, end;
    qsort(list, n, sizeof *list, compare_labelled);
    for (size_t from = 0; from < n; from = end) { /* a class's digest takes the place of one of its images */
        for (end = from; end < n && list[end].label == list[from].label; end++) continue;
        fkt_hash_init(&h);
        fkt_hash_add(&h, OF_CLASS, sizeof OF_CLASS);
        fkt_hash_add(&h, names[list[from].label], strlen(names[list[from].label]) + 1);
        add_all(&h, list + from, end - from);
        fkt_hash_end(&h, whole.bytes);
        list[classes++] = (struct fkt_labelled){.image = whole};
    }
    qsort(list, classes, sizeof *list, compare_labelled);
    fkt_hash_init(&h);
    fkt_hash_add(&h, OF_CLASSES, sizeof OF_CLASSES);
    add_all(&h, list, classes);
    fkt_hash_hex(&h, out);
}

struct job {
    const struct fkt_dataset *ds;
    const size_t *idx;
    int skip_bad;
    struct fkt_digest *digests; /* (n) */
    uint8_t *bad;               /* (n) 1: could not be read */
};

static fkt_status hash_record(void *ctx, size_t i, unsigned worker)
{
    struct job *j = ctx;
    uint8_t *rgb = NULL;
    uint32_t width = 0, height = 0;
    struct fkt_facts facts;
    fkt_status st;
    (void)worker;
    st = fkt_dataset_read_whole(j->ds, j->idx ? j->idx[i] : i, &rgb, &width, &height, &facts);
    if (j->skip_bad && (st == FKT_E_FORMAT || st == FKT_E_IO)) {
        j->bad[i] = 1;
        return FKT_OK;
    }
    FKT_TRY(st);
    fkt_fingerprint_image(&j->digests[i], rgb, width, height, &facts);
out:
    fkt_image_free(rgb);
    return st;
}

/* Gives j->digests and j->bad, also on failure. */
static fkt_status hash_all(struct job *j, size_t n, const struct fkt_pipeline_options *options)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&j->digests, n ? n : 1));
    FKT_TRY(fkt_alloc(&j->bad, n ? n : 1));
    FKT_TRY(fkt_parallel(options ? options->threads : 0, n, hash_record, j, options ? options->progress : NULL,
                         "fingerprint"));
out:
    return st;
}

fkt_status fkt_records_digests(const struct fkt_dataset *ds, const size_t *idx, size_t n,
                               const struct fkt_pipeline_options *options, struct fkt_digest **digests, uint8_t **bad)
{
    struct job j = {.ds = ds, .idx = idx, .skip_bad = 1};
    fkt_status st = hash_all(&j, n, options);
    *digests = j.digests;
    *bad = j.bad;
    return st;
}

fkt_status fkt_labelled_fingerprint(const struct fkt_dataset *ds, const size_t *idx, size_t n, const char *const *names,
                                    const struct fkt_pipeline_options *options, char out[FKT_SHA256_HEX])
{
    struct job j = {.ds = ds, .idx = idx};
    struct fkt_labelled *list = NULL;
    fkt_status st;
    if (!idx) n = fkt_dataset_size(ds);
    FKT_TRY(fkt_alloc(&list, n ? n : 1));
    FKT_TRY(hash_all(&j, n, options));
    for (size_t i = 0; i < n; i++)
        list[i] = (struct fkt_labelled){j.digests[i], fkt_dataset_label(ds, idx ? idx[i] : i)};
    fkt_labelled_end(list, n, names, out);
out:
    fkt_free(list);
    fkt_free(j.digests);
    fkt_free(j.bad);
    return st;
}
