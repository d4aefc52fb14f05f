/* SPDX-License-Identifier: Apache-2.0 */
/* choice.h - the number by which a record is chosen, for the images module alone. */
#ifndef FKT_IMAGES_CHOICE_H
#define FKT_IMAGES_CHOICE_H

#include <stdint.h>

/* What a choice is for. Choices with different purposes are independent of each other. The numbers are fixed for ever:
 * another number gives other splits and partitions. */
enum fkt_choice_purpose {
    FKT_CHOICE_LIMIT = 0x6c696d,
    FKT_CHOICE_HOLDOUT = 0x686f6c,
    FKT_CHOICE_SITE = 0x736974,
    FKT_CHOICE_PROPORTIONS = 0x736861, /* of a class over the sites; its "key" is the number of the draw */
    FKT_CHOICE_CIRCLE = 0x636972       /* order of the classes; not a choice of records */
};

/* Uniform in 0 .. 2^64 - 1 over keys; the same on every machine. */
uint64_t fkt_choice(uint64_t seed, enum fkt_choice_purpose purpose, uint64_t key);
/* The same in [0, 1), 53 bits. */
double fkt_choice_unit(uint64_t seed, enum fkt_choice_purpose purpose, uint64_t key);

#endif
