/* SPDX-License-Identifier: Apache-2.0 */
/* public_images.c - private images must not be among those that the calibration was made of.
 *
 * A calibration publishes the mean and the covariance of its images without noise. If private images are among them,
 * noise on the moments does not help (docs/privacy.md, "What the calibration may be made of"). So the site
 * searches its own images in the calibration's list before it encodes any; the comparison and its result stay at the
 * site. All of them are compared before the message, so that it states their number.
 *
 * Every part has a calibration, and all are searched. Cost: every image is decoded once more, if a calibration was made
 * of images. */
#include "pipeline/public_images.h"

#include "fedkt/advanced/calibration.h"

#include "base/alloc.h"
#include "ranks/ranks.h"
#include "codec/codec.h"

static int made_of_images(const struct fkt_pipeline *w)
{
    for (uint32_t p = 0; p < w->task.parts; p++)
        if (w->calibration[p].images) return 1;
    return 0;
}

fkt_status fkt_public_images_comparable(const struct fkt_pipeline *w)
{
    for (uint32_t p = 0; p < w->task.parts; p++) {
        const struct fkt_calibration *cal = &w->calibration[p];
        if (cal->images && !cal->digests)
            return fkt_fail_hint(FKT_E_STATE, "open the task with the file of its calibration",
                                 "the calibration from '%s' is here without the digests of its images, so that private "
                                 "images cannot be compared with them",
                                 cal->source);
    }
    return FKT_OK;
}

static fkt_status refuse(const struct fkt_calibration *cal, size_t found, size_t n, const char *first)
{
    char called[FKT_CALIBRATION_CALLED];
    return fkt_fail_hint(FKT_E_MISMATCH,
                         "a calibration is published: remove these images from the private set, or calibrate "
                         "on other, public images and make a new task",
                         "%zu of %zu private images %s among those that %s was made of; the first is '%s'", found, n,
                         found == 1 ? "is" : "are", fkt_calibration_called(cal, called), first);
}

/* How many of n digests a calibration holds, and the first of them. Those that are bad are not compared. */
static size_t search(const struct fkt_calibration *cal, const uint8_t *digests, const uint8_t *bad, size_t n,
                     size_t *first)
{
    size_t found = 0;
    for (size_t i = n; i-- > 0;)
        if (!(bad && bad[i]) && cal->images && fkt_calibration_holds(cal, digests + i * FKT_HASH_BYTES)) {
            found++;
            *first = i;
        }
    return found;
}

/* By part: how many of the records a calibration holds, and the place of the first in idx. */
struct found {
    uint64_t n[FKT_PARTS_MAX], first[FKT_PARTS_MAX];
};

/* In this rank's shard of idx[0..n-1]. */
static fkt_status search_shard(struct found *out, const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                               const size_t *idx, size_t n, const struct fkt_pipeline_options *options)
{
    struct fkt_pipeline_options watched = *options;
    struct fkt_ranks_watch watch;
    struct fkt_digest *digests = NULL;
    uint8_t *bad = NULL;
    size_t first, end, *shard = NULL;
    fkt_status st;
    fkt_ranks_shard(options->ranks, n, &first, &end);
    fkt_ranks_watch(&watch, options->ranks, options->progress);
    watched.progress = &watch.hook;
    FKT_TRY(fkt_alloc(&shard, end - first + 1));
    for (size_t i = first; i < end; i++) shard[i - first] = idx ? idx[i] : i;
    FKT_TRY(fkt_records_digests(ds, shard, end - first, &watched, &digests, &bad));
    for (uint32_t p = 0; p < w->task.parts; p++) {
        size_t at = 0;
        out->n[p] = search(&w->calibration[p], (const uint8_t *)digests, bad, end - first, &at);
        out->first[p] = first + at;
    }
out:
    fkt_free(shard);
    fkt_free(digests);
    fkt_free(bad);
    return st;
}

/* Of all ranks, on all ranks. */
static fkt_status gather_found(struct found *f, struct fkt_ranks *r)
{
    struct found one;
    fkt_status st = FKT_OK;
    if (!fkt_ranks_several(r)) return FKT_OK;
    if (r->rank) FKT_TRY(fkt_ranks_send(r, 0, f, sizeof *f));
    for (uint32_t from = 1; !r->rank && from < r->size; from++) {
        FKT_TRY(fkt_ranks_recv(r, from, &one, sizeof one));
        for (int p = 0; p < FKT_PARTS_MAX; p++) {
            if (one.n[p] && !f->n[p]) f->first[p] = one.first[p]; /* shards are in order */
            f->n[p] += one.n[p];
        }
    }
    FKT_TRY(fkt_ranks_broadcast(r, f, sizeof *f));
out:
    return st;
}

fkt_status fkt_public_images_refuse(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx,
                                    size_t n, const struct fkt_pipeline_options *options)
{
    struct found f = {{0}, {0}};
    fkt_status st;
    if (!made_of_images(w)) return FKT_OK;
    st = fkt_public_images_comparable(w);
    if (st == FKT_OK) st = search_shard(&f, w, ds, idx, n, options);
    FKT_TRY(fkt_ranks_agree(options->ranks, st));
    FKT_TRY(gather_found(&f, options->ranks));
    for (uint32_t p = 0; st == FKT_OK && p < w->task.parts; p++) {
        const size_t at = (size_t)f.first[p];
        if (f.n[p]) st = refuse(&w->calibration[p], (size_t)f.n[p], n, fkt_dataset_name(ds, idx ? idx[at] : at));
    }
    FKT_TRY(fkt_ranks_agree(options->ranks, st));
out:
    return st;
}

fkt_status fkt_public_images_refuse_rows(const struct fkt_pipeline *w, const uint8_t *sha256, size_t n)
{
    char name[40];
    fkt_status st;
    if (!made_of_images(w)) return FKT_OK;
    FKT_TRY(fkt_public_images_comparable(w));
    for (uint32_t p = 0; p < w->task.parts; p++) {
        size_t first = 0, found = search(&w->calibration[p], sha256, NULL, n, &first);
        snprintf(name, sizeof name, "latent %zu", first);
        if (found) FKT_TRY(refuse(&w->calibration[p], found, n, name));
    }
out:
    return st;
}
