/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - what was asked of `fedkt codec`, and who answers: one file per word. */
#ifndef FKT_CLI_CODEC_CODEC_H
#define FKT_CLI_CODEC_CODEC_H

#include "cli/core/common.h"

struct codec_asked {
    struct cli_data data;
    struct cli_codec codec;
    struct cli_run run;
    int codec_given;                        /* a codec was named */
    int size_given;                         /* so was a size */
    const char *public_set;                 /* calibrate: its images; data is never taken for them */
    const char *out, *source, *image;       /* calibrate, roundtrip */
    const char *hub, *revision, *authority; /* pull */
    uint64_t top, stall;
};

/* The calibration that was asked for, or the codec's own; *there becomes 0 when there is neither. */
FKT_MUST_USE fkt_status cli_codec_calibration(const struct codec_asked *a, const struct fkt_codec *codec,
                                              struct fkt_calibration *cal, int *there);

fkt_status cli_codec_list(const struct codec_asked *a);
fkt_status cli_codec_info(const struct codec_asked *a);
fkt_status cli_codec_pull(const struct codec_asked *a);
fkt_status cli_codec_verify(const struct codec_asked *a);
fkt_status cli_codec_calibrate(const struct codec_asked *a);
fkt_status cli_codec_roundtrip(const struct codec_asked *a);

#endif
