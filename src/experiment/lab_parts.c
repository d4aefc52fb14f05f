/* SPDX-License-Identifier: Apache-2.0 */
/* lab_parts.c - codec and guide of an arm with their public calibrations.
 *
 * A network that comes with the program has calibrations. Another one, and one that is cut to its top directions (the
 * paper's PCA rows), is calibrated on the public set tiny-imagenet-12k of the folder of data, once: the file is kept
 * beside the encodings. All of a run are of the same images.
 *
 * --weights names one place, and weights of two codecs may have the same shapes: a second codec that finds the weights
 * of the first one there is refused. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "base/file.h"
#include "codec/codec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC_SET "tiny-imagenet-12k"

enum { NAME = 128 };

static void name_of(const struct fkt_codec *codec, uint32_t top, const char *ending, char out[NAME])
{
    snprintf(out, NAME, FKT_CALIBRATION_INPUT "%s-%u-%u-%u%s", fkt_codec_name(codec), fkt_codec_size(codec),
             fkt_codec_dim(codec), top, ending);
}

/* The images that it was made of, not its numbers: those differ in their last bits from machine to machine. */
static fkt_status use(struct fkt_lab *lab, const struct fkt_codec *codec, uint32_t top,
                      const struct fkt_calibration *cal)
{
    char name[NAME];
    name_of(codec, top, "", name);
    return cal->digests_sha256[0] ? fkt_lab_use(lab, name, cal->digests_sha256) : FKT_OK;
}

/* All calibrations that do not come with the program are made of the same images. */
static fkt_status check_images(struct fkt_lab *lab, const struct fkt_calibration *cal, const char *name)
{
    if (!cal->digests_sha256[0]) return FKT_OK;
    if (!lab->calibrated_on[0]) {
        memcpy(lab->calibrated_on, cal->digests_sha256, sizeof lab->calibrated_on);
        snprintf(lab->calibrated_first, sizeof lab->calibrated_first, "%s", name);
    }
    if (!strcmp(lab->calibrated_on, cal->digests_sha256)) return FKT_OK;
    return fkt_fail_hint(
        FKT_E_MISMATCH,
        "delete the one of them that is not of the public set that you want, and the cells made with it",
        "'%s' and '%s', beside the encodings, are made from different images", lab->calibrated_first, name);
}

static fkt_status save(struct fkt_lab *lab, const struct fkt_calibration *cal, const char *file)
{
    const fkt_status st = fkt_calibration_save(cal, file, 1);
    if (st != FKT_OK) lab->unwritable = 1;
    return st;
}

static fkt_status calibrate(struct fkt_lab *lab, const struct fkt_codec *codec, uint32_t top, const char *file,
                            struct fkt_calibration *out)
{
    const struct fkt_pipeline_options options = {
        .threads = lab->options.threads, .progress = lab->options.progress, .encodings = lab->encodings};
    struct fkt_dataset *ds = NULL;
    char sha256[FKT_SHA256_HEX], *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_fail_in(fkt_lab_find(lab, PUBLIC_SET, &path), "codec '%s' must be calibrated on a public set",
                        fkt_codec_name(codec)));
    FKT_TRY(fkt_lab_unlabelled(lab, PUBLIC_SET, &ds, sha256));
    FKT_TRY(fkt_calibrate(out, codec, ds, FKT_FILTER_BILINEAR, top, PUBLIC_SET, &options));
    FKT_TRY(check_images(lab, out, strrchr(file, '/') + 1));
    FKT_TRY(fkt_lab_note_unlabelled(lab, PUBLIC_SET, ds, sha256));
    FKT_TRY(save(lab, out, file));
out:
    fkt_free(path);
    fkt_dataset_free(ds);
    return st;
}

static fkt_status calibration_of(struct fkt_lab *lab, const struct fkt_codec *codec, uint32_t top,
                                 struct fkt_calibration *out)
{
    char name[NAME], *file = NULL;
    fkt_status st;
    if (!top && fkt_calibration_embedded(out, codec) == FKT_OK) return FKT_OK;
    name_of(codec, top, ".safetensors", name);
    FKT_TRY(fkt_path_join(&file, lab->folder, name));
    if (access(file, R_OK) == 0) FKT_TRY(fkt_calibration_load(out, file));
    else FKT_TRY(calibrate(lab, codec, top, file, out));
    FKT_TRY(fkt_calibration_check(out, codec));
    FKT_TRY(check_images(lab, out, name));
out:
    fkt_free(file);
    return st;
}

static fkt_status note_weights(struct fkt_lab *lab, const char *codec, const char *sha256)
{
    struct fkt_lab_weights *w = lab->weights, *end = w + lab->n_weights;
    char name[NAME];
    while (w < end && strcmp(w->sha256, sha256) != 0) w++;
    if (w < end && strcmp(w->codec, codec) != 0)
        return fkt_fail_hint(
            FKT_E_MISMATCH, "give the weights of one codec, and take its arms alone; those of the other in another run",
            "codecs '%s' and '%s' have found the same weights", w->codec, codec);
    if (w == end && lab->n_weights < FKT_LAB_CODECS) {
        snprintf(w->codec, sizeof w->codec, "%s", codec);
        snprintf(w->sha256, sizeof w->sha256, "%s", sha256);
        lab->n_weights++;
    }
    snprintf(name, sizeof name, FKT_WEIGHTS_INPUT "%.64s", codec);
    return fkt_lab_use(lab, name, sha256);
}

/* An identity ends with the hash of the weights, where there are any. */
static fkt_status check_weights(struct fkt_lab *lab, const struct fkt_codec *codec)
{
    static const char key[] = " weights=";
    const char *at = strstr(fkt_codec_identity(codec), key);
    return at ? note_weights(lab, fkt_codec_name(codec), at + strlen(key)) : FKT_OK;
}

static fkt_status open_part(struct fkt_lab *lab, const struct fkt_arm *a, const char *name, uint32_t size, int guide,
                            struct fkt_sweep_spec *spec)
{
    const struct fkt_codec_spec wanted = {
        .name = name,
        .size = size,
        .dim = guide ? 0 : a->dim,
        .settings = {.weights = fkt_codec_has_calibration(name) ? NULL : lab->options.weights,
                     .device = lab->options.device}};
    const uint32_t p = spec->parts++;
    fkt_status st;
    FKT_TRY(fkt_codec_open(&spec->codec[p], &wanted));
    FKT_TRY(check_weights(lab, spec->codec[p]));
    FKT_TRY(calibration_of(lab, spec->codec[p], guide ? 0 : a->top, spec->calibration[p]));
    FKT_TRY(use(lab, spec->codec[p], guide ? 0 : a->top, spec->calibration[p]));
    spec->part[p] = (struct fkt_part_choice){.coordinates = a->coordinates};
out:
    return st;
}

fkt_status fkt_lab_parts(struct fkt_lab *lab, const struct fkt_arm *arm, uint32_t size, struct fkt_sweep_spec *spec)
{
    fkt_status st = FKT_OK;
    spec->parts = 0;
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) spec->codec[p] = NULL;
    if (arm->codec) FKT_TRY(open_part(lab, arm, arm->codec, size, 0, spec));
    if (arm->guide) FKT_TRY(open_part(lab, arm, arm->guide, size, 1, spec));
out:
    if (st != FKT_OK)
        for (uint32_t p = 0; p < spec->parts; p++) {
            fkt_codec_free(spec->codec[p]);
            spec->codec[p] = NULL;
        }
    return st;
}
