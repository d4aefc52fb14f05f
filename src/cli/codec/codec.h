/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - options of `fedkt codec`, and the functions of its words: one file each. */
#ifndef FKT_CLI_CODEC_CODEC_H
#define FKT_CLI_CODEC_CODEC_H

#include "cli/core/common.h"

struct codec_asked {
    struct cli_data data;
    struct cli_codec codec;
    struct cli_run run;
    int codec_given;                        /* a codec was given */
    int size_given;                         /* a size was given */
    const char *public_set;                 /* calibrate: its images; it never uses `data` */
    const char *out, *source, *image;       /* calibrate, roundtrip */
    const char *hub, *revision, *authority; /* pull */
    uint64_t top, stall;
};

/* The given calibration, or the codec's own; *there becomes 0 when there is neither. */
FKT_MUST_USE fkt_status cli_codec_calibration(const struct codec_asked *a, const struct fkt_codec *codec,
                                              struct fkt_calibration *cal, int *there);

fkt_status cli_codec_list(const struct codec_asked *a);
fkt_status cli_codec_info(const struct codec_asked *a);
fkt_status cli_codec_pull(const struct codec_asked *a);
fkt_status cli_codec_verify(const struct codec_asked *a);
fkt_status cli_codec_calibrate(const struct codec_asked *a);
fkt_status cli_codec_roundtrip(const struct codec_asked *a);

#endif
