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

fkt_status fkt_public_images_refuse(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx,
                                    size_t n, const struct fkt_pipeline_options *options)
{
    struct fkt_digest *digests = NULL;
    uint8_t *bad = NULL;
    fkt_status st;
    if (!made_of_images(w)) return FKT_OK;
    FKT_TRY(fkt_public_images_comparable(w));
    FKT_TRY(fkt_records_digests(ds, idx, n, options, &digests, &bad));
    for (uint32_t p = 0; p < w->task.parts; p++) {
        size_t first = 0, found = search(&w->calibration[p], (const uint8_t *)digests, bad, n, &first);
        if (found) FKT_TRY(refuse(&w->calibration[p], found, n, fkt_dataset_name(ds, idx ? idx[first] : first)));
    }
out:
    fkt_free(digests);
    fkt_free(bad);
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
