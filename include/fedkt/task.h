/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - a task: everything that must be the same at every site, and its hash.
 *
 * A task names the classes, the image size, the codec and its calibration, the coordinates and the privacy parameters.
 * With a federation (federation.h) it also names the sites; with a service (service.h) it names the server, and the
 * operator signs it. Sites compare tasks by the SHA-256 of their canonical JSON.
 */
#ifndef FEDKT_TASK_H
#define FEDKT_TASK_H

#include "fedkt/codec.h"
#include "fedkt/federation.h"
#include "fedkt/image.h"
#include "fedkt/moments.h"
#include "fedkt/privacy.h"
#include "fedkt/service.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_task {
    char name[128];
    char **classes; /* (n_classes) owned; indices are labels */
    uint32_t n_classes;
    uint32_t size; /* S */
    enum fkt_filter filter;
    enum fkt_fit fit;
    char codec[64];
    uint32_t codec_dim; /* D */
    char codec_identity[256];
    char codec_sha256[FKT_SHA256_HEX];
    char calibration_source[128];
    uint64_t calibration_images;
    char calibration_sha256[FKT_SHA256_HEX];
    struct fkt_coordinates coordinates;
    struct fkt_privacy_spec privacy;  /* radius = Rq */
    struct fkt_federation federation; /* sites 0: none */
    struct fkt_service service;       /* address "": none; only with a federation */
    struct fkt_signature signature;   /* not part of the canonical JSON */
    char sha256[FKT_SHA256_HEX];      /* of the canonical JSON */
};

/* What a person chooses; everything else in a task is derived. */
struct fkt_task_choices {
    const char *name;           /* NULL: "unnamed" */
    const char *const *classes; /* borrowed */
    uint32_t n_classes;
    enum fkt_filter filter;
    enum fkt_fit fit;
    enum fkt_coordinate_kind coordinates;
    double gamma;                                    /* 0: default */
    double clip;                                     /* 0: the calibration's radius */
    uint32_t rq;                                     /* 0: default */
    struct fkt_privacy_spec privacy;                 /* radius ignored; split all 0: the default 1/24/75 */
    const struct fkt_federation_choices *federation; /* NULL: none */
    const struct fkt_service_choices *service;       /* NULL: none */
    int accept_weak;                                 /* 1: a weak promise is made, and the task says so; 0: FKT_E_ARG */
};
FKT_API FKT_MUST_USE fkt_status fkt_task_make(struct fkt_task *out, const struct fkt_task_choices *choices,
                                              const struct fkt_codec *codec, const struct fkt_calibration *calibration);
FKT_API FKT_MUST_USE fkt_status fkt_task_parse(struct fkt_task *out, const char *json,
                                               size_t len); /* hostile input; unknown keys refused */
FKT_API FKT_MUST_USE fkt_status fkt_task_load(struct fkt_task *out, const char *path);
FKT_API FKT_MUST_USE fkt_status fkt_task_save(const struct fkt_task *t, const char *path, int force);
FKT_API void fkt_task_clear(struct fkt_task *t);
/* Sound or weak (privacy.h), and why; the records are bounded by what all sites may hold of all classes. It follows
 * from the task, whose JSON carries the word "weak" under its signature: one that is weak and does not say so is
 * refused when it is read, and so is one that says so and is not. */
FKT_API enum fkt_promise fkt_task_promise(const struct fkt_task *t, char why[FKT_PROMISE_WORDS] /* may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
