/* SPDX-License-Identifier: Apache-2.0 */
/* small_service.h - a small federation (small_federation.h) with a server: three named sites and an operator's key. */
#ifndef FKT_TEST_SMALL_SERVICE_H
#define FKT_TEST_SMALL_SERVICE_H

#include "tests/support/small_federation.h"

#define SERVICE_PIN "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

/* choices NULL: "https://fedkt.example.org:8443", pinned, three names, no seed. */
static inline fkt_status small_service_init(struct small_federation *f, const struct fkt_service_choices *choices)
{
    static const char *const names[] = {"North clinic", "South clinic", "Hôpital Saint-Louis"};
    static const char *const classes[FED_CLASSES] = {"cat", "dog"};
    static const struct fkt_service_choices usual = {
        .address = "https://fedkt.example.org:8443", .pin = SERVICE_PIN, .expires = 1798761599, .names = names};
    struct fkt_federation_choices c = {.sites = 3, .corrupt = 1, .records = 16};
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_task_choices t = {.name = "served",
                                 .classes = classes,
                                 .n_classes = FED_CLASSES,
                                 .privacy = {.epsilon = 10, .delta = 1e-5},
                                 .federation = &c,
                                 .service = choices ? choices : &usual};
    const uint64_t seed = 4;
    struct fkt_codec *codec = NULL;
    fkt_status st;
    memset(f, 0, sizeof *f);
    FKT_TRY(fkt_federation_keys(f->roster, f->secrets, 4, &seed)); /* the fourth is the operator's */
    c.roster = f->roster;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&f->calibration, codec));
    FKT_TRY(
        fkt_task_make_into(&f->task, &t, &(struct fkt_part_choice){.codec = codec, .calibration = &f->calibration}, 1));
out:
    fkt_codec_free(codec);
    if (st != FKT_OK) fkt_calibration_clear(&f->calibration);
    return st;
}

static inline const uint8_t *small_operator(const struct small_federation *f) { return f->secrets + 3 * FKT_SA_SECRET; }

#endif
