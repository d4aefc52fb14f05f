/* SPDX-License-Identifier: Apache-2.0 */
/* calibration_images.c - which images a calibration was made of, so that a site can see its own among them.
 *
 *   digest of each image, a SHA-256 (pipeline/fingerprint.c) -> the first 8 bytes -> sorted, each once -> digests (n,
 * 8)
 *
 * A calibration travels in the clear with the mean and the covariance of its images. Made of private images, it
 * would reveal them. A site therefore compares the digests of its own images with this list before it sums them
 * (pipeline/public_images.c), and nothing about the comparison leaves it.
 *
 * The list is exact for equal pixels: no image is missed. An image that is not in it is taken for one of n with
 * probability n / 2^64, 10^-13 for a million. A Bloom filter of 10^-9 takes 43 bits an image where the list takes 64,
 * but a full one refuses everything, and nobody can see from it whether it is sound; of the list each entry can be
 * checked by whoever has the public set (docs/decisions/0009-calibration-images.md). What it cannot see: an image that
 * was compressed again with loss, scaled, or cropped.
 *
 * Cost: 8 bytes an image in the file; a search of log2(n) steps for each private image. */
#include "fedkt/advanced/calibration.h"

#include "codec/codec.h"

#include "base/alloc.h"
#include "crypto/hash.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = FKT_CALIBRATION_DIGEST };

static int compare(const void *a, const void *b) { return memcmp(a, b, BYTES); }

static void name_list(struct fkt_calibration *cal)
{
    fkt_hash_bytes_hex(cal->digests_sha256, cal->digests, (size_t)cal->n_digests * BYTES);
}

fkt_status fkt_calibration_set_images(struct fkt_calibration *cal, const uint8_t (*sha256)[32], size_t n)
{
    uint8_t *list = NULL;
    size_t kept = 0;
    fkt_status st;
    if (n == 0 || n > cal->images)
        return fkt_fail(FKT_E_ARG, "%zu digests for a calibration of %llu images", n, (unsigned long long)cal->images);
    FKT_TRY(fkt_alloc(&list, n * BYTES));
    for (size_t i = 0; i < n; i++) memcpy(list + i * BYTES, sha256[i], BYTES);
    qsort(list, n, BYTES, compare);
    for (size_t i = 0; i < n; i++)
        if (!kept || compare(list + (kept - 1) * BYTES, list + i * BYTES) != 0)
            memmove(list + kept++ * BYTES, list + i * BYTES, BYTES);
    fkt_free(cal->digests);
    cal->digests = list;
    cal->n_digests = kept;
    name_list(cal);
out:
    return st;
}

fkt_status fkt_calibration_take_digests(struct fkt_calibration *cal, const uint8_t *list, uint64_t n)
{
    fkt_status st;
    if (n == 0 || n > cal->images)
        return fkt_fail(FKT_E_FORMAT, "%llu image digests for %llu images", (unsigned long long)n,
                        (unsigned long long)cal->images);
    for (uint64_t i = 1; i < n; i++)
        if (compare(list + (i - 1) * BYTES, list + i * BYTES) >= 0)
            return fkt_fail(FKT_E_FORMAT, "image digest %llu does not follow the one before it", (unsigned long long)i);
    FKT_TRY(fkt_alloc(&cal->digests, (size_t)n * BYTES));
    memcpy(cal->digests, list, (size_t)n * BYTES);
    cal->n_digests = n;
    name_list(cal);
out:
    return st;
}

int fkt_calibration_holds(const struct fkt_calibration *cal, const uint8_t sha256[32])
{
    return cal->digests && bsearch(sha256, cal->digests, (size_t)cal->n_digests, BYTES, compare) != NULL;
}
