/* SPDX-License-Identifier: Apache-2.0 */
/* family_config.h - what a config.json beside weights says of them. */
#ifndef FKT_CODEC_FAMILY_CONFIG_H
#define FKT_CODEC_FAMILY_CONFIG_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { FKT_CONFIG_STAGES = 16, FKT_CONFIG_WORD = 48 };
#define FKT_CONFIG_BYTES_MAX (1U << 20)

/* A list of numbers or words; count 0: not said. A single word stands for every stage (one = 1). */
struct fkt_config_numbers {
    uint32_t count, at[FKT_CONFIG_STAGES];
};
struct fkt_config_words {
    uint32_t count;
    int one;
    char at[FKT_CONFIG_STAGES][FKT_CONFIG_WORD];
};

/* Zero, empty and -1 mean: not said. */
struct fkt_family_config {
    int present;
    char class_name[FKT_CONFIG_WORD], model_name[FKT_CONFIG_WORD];
    uint32_t in_channels, out_channels, latent_channels, head;
    double scaling, shift; /* NaN: not said */
    struct fkt_config_numbers widths[2], depths[2];
    int shortcut[2]; /* at the latent end of encoder and decoder */
    char conv_act[FKT_CONFIG_WORD], act[FKT_CONFIG_WORD];
    char down[FKT_CONFIG_WORD], up[FKT_CONFIG_WORD];
    struct fkt_config_words norms, acts; /* of the decoder's stages */
};

void fkt_family_config_init(struct fkt_family_config *c);
/* Hostile input: keys that are not known are passed over; a known key of another type or out of range is refused. */
FKT_MUST_USE fkt_status fkt_family_config_parse(struct fkt_family_config *c, const char *text, size_t len,
                                                const char *name);

#endif
