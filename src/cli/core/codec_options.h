/* SPDX-License-Identifier: Apache-2.0 */
/* codec_options.h - options of codec and guide, as rows for the tables of verbs; common.h includes it. */
#ifndef FKT_CLI_CORE_CODEC_OPTIONS_H
#define FKT_CLI_CORE_CODEC_OPTIONS_H

#include "fedkt/fedkt.h"

#include "cli/core/device.h"
#include "cli/core/options.h"

/* This machine's settings for a codec with weights. */
struct cli_weights {
    const char *weights, *guide_weights;
    int dtype, low_memory, device; /* the last of CLI_DEVICE_ROW */
};
#define CLI_WEIGHTS_LINES(m)                                                                                           \
    CLI_OPT_TEXT("weights", &(m).weights, "PATH", 0,                                                                   \
                 "weights of a network: a file, or a folder with the published files (default: those that come with "  \
                 "fedkt, else the cache that 'fedkt codec pull' fills)"),                                              \
        CLI_OPT_CHOICE(                                                                                                \
            "dtype", &(m).dtype, fkt_codec_dtype_parse, "f32, bf16 or auto",                                           \
            "number format between a network's layers; auto: the faster one on this machine, bf16 on a card; "         \
            "f32 is IEEE f32, also on a card"),                                                                        \
        CLI_OPT_FLAG("low-memory", &(m).low_memory,                                                                    \
                     "use a network's weights in the mapped file as far as possible: less memory, slower")
#define CLI_GUIDE_WEIGHTS_LINE(m)                                                                                      \
    CLI_OPT_TEXT("guide-weights", &(m).guide_weights, "PATH", 0, "the same as --weights, for the guide")
#define CLI_WEIGHTS_ROWS(m)                                                                                            \
    CLI_OPT_HEAD("the networks on this machine"), CLI_WEIGHTS_LINES(m), CLI_GUIDE_WEIGHTS_LINE(m),                     \
        CLI_DEVICE_ROW((m).device)

/* What a task has when nothing is said: the networks of `demo`, `simulate` and `task new`. The guide belongs to this
 * codec (cli_guide_name): a command that names another codec, and no guide, gives the task that it gave before there
 * were guides, at any size. */
#define FKT_DEFAULT_CODEC "fedkt-ae"
#define FKT_DEFAULT_GUIDE "fedkt-guide"
#define FKT_PLAIN_CODEC "dct" /* without weights: of `codec info`, `calibrate` and `roundtrip` */

/* Codec, guide and coordinates. */
struct cli_codec {
    const char *name, *calibration;
    const char *guide, *guide_calibration; /* guide NULL: not given */
    int joined, pooled;
    struct cli_weights settings;
    uint64_t size, dim, rq;
    int filter, fit, coordinates;
    double gamma, clip;
};
#define CLI_CODEC_DEFAULTS                                                                                             \
    {                                                                                                                  \
        .name = FKT_DEFAULT_CODEC, .size = 32                                                                          \
    }
#define CLI_CODEC_ROWS(c, what)                                                                                        \
    CLI_OPT_HEAD("codec and coordinates"),                                                                             \
        CLI_OPT_TEXT("codec", &(c).name, "NAME|FILE", 0,                                                               \
                     "frozen public autoencoder: a name of 'fedkt codec list'" what),                                  \
        CLI_OPT_WHOLE("size", &(c).size, "PX", 0, "side of the images, in pixels (default: 32)"),                      \
        CLI_OPT_WHOLE("dim", &(c).dim, "D", 0,                                                                         \
                      "length of the latent, for codecs that let you choose (default: 64 for dct)"),                   \
        CLI_WEIGHTS_LINES((c).settings),                                                                               \
        CLI_OPT_TEXT("calibration", &(c).calibration, "FILE", 0,                                                       \
                     "public calibration made by 'fedkt codec calibrate' (default: built in)"),                        \
        CLI_OPT_CHOICE("filter", &(c).filter, fkt_filter_parse, "bilinear, bicubic, lanczos or box",                   \
                       "how images are scaled"),                                                                       \
        CLI_OPT_CHOICE("fit", &(c).fit, fkt_fit_parse, "crop, pad or stretch", CLI_FIT_HELP),                          \
        CLI_OPT_CHOICE("coordinates", &(c).coordinates, fkt_coordinate_parse, "gain-shape or clip",                    \
                       "record coordinates"),                                                                          \
        CLI_OPT_REAL("gamma", &(c).gamma, "G", 0,                                                                      \
                     "gain-shape: weight of the length relative to the direction (default: 0.35)"),                    \
        CLI_OPT_REAL("clip", &(c).clip, "R", 0, "clip: radius (default: the calibration's)"),                          \
        CLI_OPT_WHOLE("rq", &(c).rq, "N", 0, "integer radius, 64 to 4096 (default: 256)")

/* Beside CLI_CODEC_ROWS, for verbs that make a task. */
#define CLI_TASK_CODEC ", a file, or none (default: " FKT_DEFAULT_CODEC ", with " FKT_DEFAULT_GUIDE " as the guide)"
int cli_moments_parse(const char *word); /* "class": 0, "pooled": 1 */
/* The guide that was given; else the default one, where the codec is the default one or none. NULL: no guide. */
const char *cli_guide_name(const struct cli_codec *c);
#define CLI_GUIDE_ROWS(c)                                                                                              \
    CLI_OPT_HEAD("guide"),                                                                                             \
        CLI_OPT_TEXT("guide", &(c).guide, "NAME|FILE", 0,                                                              \
                     "frozen public encoder whose features say what an image shows; released beside the codec's "      \
                     "numbers: a name of 'fedkt codec list', a file, or none (default: " FKT_DEFAULT_GUIDE             \
                     "; none where --codec names another than " FKT_DEFAULT_CODEC ")"),                                \
        CLI_GUIDE_WEIGHTS_LINE((c).settings),                                                                          \
        CLI_OPT_TEXT("guide-calibration", &(c).guide_calibration, "FILE", 0,                                           \
                     "public calibration of the guide (default: its own)"),                                            \
        CLI_OPT_FLAG("joined", &(c).joined,                                                                            \
                     "release codec and guide as one vector, with the moments across both: more noise, larger"),       \
        CLI_OPT_CHOICE(                                                                                                \
            "moments", &(c).pooled, cli_moments_parse, "class or pooled",                                              \
            "second moments for each class, or one for all classes: for heads alone, smaller and with less "           \
            "noise")

#endif
