/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - the published members of the two families, and what each name promises.
 *
 * A name fixes latent channels and reduction; weights that say otherwise are another codec's. Two short names, "tiny"
 * and "dc-ae", promise nothing and take whatever the weights say. The latent scales are those that diffusers' configs
 * carry; efficientvit's files have none, so that the name must give it. */
#include "codec/family.h"

#include <string.h>

static const struct fkt_member members[] = {
    {"taesd", "taesd", 4, 8, 1},
    {"taesdxl", "taesd", 4, 8, 1},
    {"taesd3", "taesd", 16, 8, 1},
    {"taef1", "taesd", 16, 8, 1},
    {"tiny", "taesd", 0, 0, 1},
    {"dc-ae-f32c32-in", "dc-ae", 32, 32, 0.3189},
    {"dc-ae-f32c32-mix", "dc-ae", 32, 32, 0.4552},
    {"dc-ae-f32c32-sana", "dc-ae", 32, 32, 0.41407},
    {"dc-ae-f64c128-in", "dc-ae", 128, 64, 0.2889},
    {"dc-ae-f64c128-mix", "dc-ae", 128, 64, 0.4538},
    {"dc-ae-f128c512-in", "dc-ae", 512, 128, 0.4883},
    {"dc-ae-f128c512-mix", "dc-ae", 512, 128, 0.3620},
    {"dc-ae", "dc-ae", 0, 0, 1},
};

const struct fkt_member *fkt_member_at(size_t i) { return i < sizeof members / sizeof *members ? &members[i] : NULL; }

const struct fkt_member *fkt_member_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strlen(members[i].name) == length && !memcmp(members[i].name, name, length)) return &members[i];
    return NULL;
}
