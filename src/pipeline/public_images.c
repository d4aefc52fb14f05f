/* SPDX-License-Identifier: Apache-2.0 */
/* public_images.c - private images must not be among those that the calibration was made of.
 *
 * A calibration publishes the mean and the covariance of its images without noise. If private images are among them,
 * noise on the moments does not help (docs/privacy.md, "What the calibration may be made of"). So the site
 * searches its own images in the calibration's list before it encodes any; the comparison and its result stay at the
 * site. All of them are compared before the message, so that it states their number.
 *
 * Cost: every image is decoded once more, if the calibration was made of images. */
#include "pipeline/public_images.h"

#include "fedkt/advanced/calibration.h"

#include "base/alloc.h"
#include "codec/codec.h"

fkt_status fkt_public_images_comparable(const struct fkt_pipeline *w)
{
    const struct fkt_calibration *cal = &w->calibration;
    if (cal->images == 0 || cal->digests) return FKT_OK;
    return fkt_fail_hint(FKT_E_STATE, "open the task with the file of its calibration",
                         "the calibration from '%s' is here without the digests of its images, so that private images "
                         "cannot be compared with them",
                         cal->source);
}

static fkt_status refuse(const struct fkt_pipeline *w, size_t found, size_t n, const char *first)
{
    char called[FKT_CALIBRATION_CALLED];
    return fkt_fail_hint(FKT_E_MISMATCH,
                         "a calibration is published: remove these images from the private set, or calibrate "
                         "on other, public images and make a new task",
                         "%zu of %zu private images %s among those that %s was made of; the first is '%s'", found, n,
                         found == 1 ? "is" : "are", fkt_calibration_called(&w->calibration, called), first);
}

fkt_status fkt_public_images_refuse(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx,
                                    size_t n, const struct fkt_pipeline_options *options)
{
    struct fkt_digest *digests = NULL;
    uint8_t *bad = NULL;
    size_t found = 0, first = 0;
    fkt_status st;
    if (w->calibration.images == 0) return FKT_OK;
    FKT_TRY(fkt_public_images_comparable(w));
    FKT_TRY(fkt_records_digests(ds, idx, n, options, &digests, &bad));
    for (size_t i = n; i-- > 0;)
        if (!bad[i] && fkt_calibration_holds(&w->calibration, digests[i].bytes)) {
            found++;
            first = idx ? idx[i] : i;
        }
    if (found) st = refuse(w, found, n, fkt_dataset_name(ds, first));
out:
    fkt_free(digests);
    fkt_free(bad);
    return st;
}

fkt_status fkt_public_images_refuse_rows(const struct fkt_pipeline *w, const uint8_t *sha256, size_t n)
{
    size_t found = 0, first = 0;
    char name[40];
    fkt_status st;
    if (w->calibration.images == 0) return FKT_OK;
    FKT_TRY(fkt_public_images_comparable(w));
    for (size_t i = n; i-- > 0;)
        if (fkt_calibration_holds(&w->calibration, sha256 + i * FKT_HASH_BYTES)) {
            found++;
            first = i;
        }
    snprintf(name, sizeof name, "latent %zu", first);
    if (found) st = refuse(w, found, n, name);
out:
    return st;
}
