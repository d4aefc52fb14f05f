/* SPDX-License-Identifier: Apache-2.0 */
/* generate.h - labelled synthetic images from a release. */
#ifndef FEDKT_GENERATE_H
#define FEDKT_GENERATE_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"
#include "fedkt/status.h"
#include "fedkt/synth.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the images of a release with codec and guide are made. AUTO: by the fast twin where there is one for this codec,
 * guide and calibration, else NONE. ON: by the twin, or by gradient where there is none; it needs a guide. */
enum fkt_guided_kind {
    FKT_GUIDED_AUTO = 0,
    FKT_GUIDED_NONE, /* the codec's vector is decoded; the guide's is left aside */
    FKT_GUIDED_ON,
    FKT_GUIDED_GRADIENT, /* the definition: the image's own guide features are brought to the drawn ones */
    FKT_GUIDED_TWIN      /* as an answer: a decoder that takes both vectors, in one pass */
};
#define FKT_GUIDED_STEPS 25
#define FKT_GUIDED_RHO 0.02
#define FKT_GUIDED_RATE 0.1
struct fkt_guided_options {
    enum fkt_guided_kind kind; /* all but TWIN */
    uint32_t steps;            /* 0: FKT_GUIDED_STEPS; at most 10000 */
    double rho, rate;          /* 0: FKT_GUIDED_RHO, FKT_GUIDED_RATE */
};
/* How they were made. */
struct fkt_guided_facts {
    enum fkt_guided_kind kind; /* NONE, GRADIENT or TWIN */
    uint32_t steps;            /* GRADIENT, and the next two */
    double rho, rate;
    char twin_sha256[FKT_SHA256_HEX]; /* TWIN: of its file */
    char why[256];                    /* AUTO that became NONE though there is a guide: a sentence */
    int gradient_possible;            /* with why: GRADIENT would work */
};

struct fkt_generate_options {
    size_t per_class;
    uint64_t seed;
    enum fkt_export_format format;
    struct fkt_estimate_options estimate;
    size_t grid_columns; /* 0: 12 */
    int force;
    unsigned threads;
    const struct fkt_progress *progress;
    struct fkt_codec_settings settings;
    const struct fkt_pipeline
        *pipeline; /* of the same codec, calibration and coordinates; NULL: opened from the release */
    struct fkt_guided_options guided; /* zeros: AUTO */
    struct fkt_guided_facts *made;    /* filled with how they are made, before the first one; may be NULL */
    uint64_t *kept;  /* filled with how many images come from an interrupted run, before the first one; may be NULL */
    int push_layout; /* FKT_EXPORT_FOLDER alone: as a hub for datasets takes it, the images in data/, .gitattributes */
    struct fkt_publisher publisher; /* for README.md and croissant.json */
};
#define FKT_PUSH_FILES 10000 /* the most images of a class in that layout: hubs limit the files of a folder */
/* Folder with the images, metadata, README.md (dataset card), croissant.json (of FKT_EXPORT_FOLDER), certificate.json,
 * grid.png. */
FKT_API FKT_MUST_USE fkt_status fkt_generate(const struct fkt_release *r, const char *folder,
                                             const struct fkt_generate_options *options);
/* Samples for a sheet: the first `rows` classes, tiles (rows, cols, S, S, 3) into `rgb`. g: of the parts of the task's
 * layout; the first is enough where images are not guided (guided NULL: NONE). threads 0: all. */
FKT_API FKT_MUST_USE fkt_status fkt_generate_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g,
                                                   const struct fkt_guided_options *guided, uint64_t seed,
                                                   uint32_t rows, size_t cols, unsigned threads, uint8_t *rgb);

#ifdef __cplusplus
}
#endif
#endif
