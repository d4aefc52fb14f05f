/* SPDX-License-Identifier: Apache-2.0 */
/* small_federation.h - a task of two classes and nine numbers a record for a handful of sites, and what they bring. */
#ifndef FKT_TEST_SMALL_FEDERATION_H
#define FKT_TEST_SMALL_FEDERATION_H

#include "base/rng.h"
#include "fedkt/advanced/simulate.h"
#include "task/task.h"
#include "tests/support/check.h"

enum { FED_SITES_MAX = 80, FED_CLASSES = 2, FED_LENGTH = 9, FED_BLOCK = (FED_LENGTH + 1) * (FED_LENGTH + 2) / 2 };

struct small_federation {
    struct fkt_task task;
    struct fkt_calibration calibration;
    uint8_t roster[FED_SITES_MAX * FKT_SA_KEY], secrets[FED_SITES_MAX * FKT_SA_SECRET];
};

/* Keys from a fixed seed; records 0: the default of 16. */
static inline fkt_status small_federation_init(struct small_federation *f, struct fkt_federation_choices c,
                                               double epsilon)
{
    static const char *const classes[FED_CLASSES] = {"cat", "dog"};
    const uint64_t seed = 4;
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_task_choices choices = {.name = "small",
                                       .classes = classes,
                                       .n_classes = FED_CLASSES,
                                       .privacy = {.epsilon = epsilon, .delta = 1e-5},
                                       .federation = &c,
                                       .accept_weak = epsilon > FKT_PROMISE_EPSILON};
    struct fkt_codec *codec = NULL;
    fkt_status st;
    memset(f, 0, sizeof *f);
    FKT_TRY(fkt_federation_keys(f->roster, f->secrets, c.sites < FED_SITES_MAX ? c.sites : FED_SITES_MAX, &seed));
    c.roster = f->roster;
    if (!c.records) c.records = 16;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&f->calibration, codec));
    FKT_TRY(fkt_task_make_into(&f->task, &choices,
                               &(struct fkt_part_choice){.codec = codec, .calibration = &f->calibration}, 1));
out:
    fkt_codec_free(codec);
    if (st != FKT_OK) fkt_calibration_clear(&f->calibration);
    return st;
}

static inline void small_federation_release(struct small_federation *f)
{
    fkt_task_clear(&f->task);
    fkt_calibration_clear(&f->calibration);
}

/* The exact moments of a site: site mod 5 records, drawn from its number. Of the shape that fkt_federate asks with. */
static inline fkt_status small_moments(void *self, uint32_t site, int64_t *exact)
{
    struct fkt_rng r;
    (void)self;
    fkt_rng_init(&r, 77, site);
    memset(exact, 0, FED_CLASSES * FED_BLOCK * sizeof *exact);
    for (uint32_t n = 0; n < site % 5; n++) {
        int64_t q[FED_LENGTH], *b = exact + fkt_rng_below(&r, FED_CLASSES) * FED_BLOCK, *m = b + 1 + FED_LENGTH;
        for (int i = 0; i < FED_LENGTH; i++) q[i] = (int64_t)fkt_rng_below(&r, 161) - 80; /* 9 * 80^2 < 256^2 */
        b[0]++;
        for (int i = 0; i < FED_LENGTH; i++) b[1 + i] += q[i];
        for (int i = 0; i < FED_LENGTH; i++)
            for (int j = i; j < FED_LENGTH; j++) *m++ += q[i] * q[j];
    }
    return FKT_OK;
}

#endif
