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

struct fkt_task; /* a handle; only read, it may be shared by threads */

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
    struct fkt_privacy_spec privacy;                 /* parts and radius ignored; split all 0: 1/24/75 */
    const struct fkt_federation_choices *federation; /* NULL: none */
    const struct fkt_service_choices *service;       /* NULL: none */
    int accept_weak;                                 /* 1: a weak promise is made, and the task says so; 0: FKT_E_ARG */
};
/* These give *out, freed with fkt_task_free. */
FKT_API FKT_MUST_USE fkt_status fkt_task_make(struct fkt_task **out, const struct fkt_task_choices *choices,
                                              const struct fkt_codec *codec, const struct fkt_calibration *calibration);
/* Hostile input; unknown keys are refused. */
FKT_API FKT_MUST_USE fkt_status fkt_task_parse(struct fkt_task **out, const char *json, size_t len);
FKT_API FKT_MUST_USE fkt_status fkt_task_load(struct fkt_task **out, const char *path);
FKT_API FKT_MUST_USE fkt_status fkt_task_save(const struct fkt_task *t, const char *path, int force);
FKT_API void fkt_task_free(struct fkt_task *t);

/* What the task says. Strings and structs are borrowed from it. */
FKT_API const char *fkt_task_name(const struct fkt_task *t);
FKT_API const char *fkt_task_sha256(const struct fkt_task *t);            /* of the canonical JSON, as hex */
FKT_API uint32_t fkt_task_classes(const struct fkt_task *t);              /* K */
FKT_API const char *fkt_task_class(const struct fkt_task *t, uint32_t k); /* the name of label k; "" when k >= K */
FKT_API uint32_t fkt_task_size(const struct fkt_task *t);                 /* S */
FKT_API enum fkt_filter fkt_task_filter(const struct fkt_task *t);
FKT_API enum fkt_fit fkt_task_fit(const struct fkt_task *t);
FKT_API const char *
fkt_task_codec(const struct fkt_task *t); /* its name, for fkt_codec_spec; then D and the identity */
FKT_API uint32_t fkt_task_codec_dim(const struct fkt_task *t);
FKT_API const char *fkt_task_codec_identity(const struct fkt_task *t);
FKT_API const char *fkt_task_calibration_source(const struct fkt_task *t);
FKT_API const char *fkt_task_calibration_sha256(const struct fkt_task *t);
FKT_API const struct fkt_coordinates *fkt_task_coordinates(const struct fkt_task *t);
FKT_API const struct fkt_privacy_spec *fkt_task_privacy(const struct fkt_task *t);  /* its radius is Rq */
FKT_API const struct fkt_federation *fkt_task_federation(const struct fkt_task *t); /* NULL: none */
FKT_API const struct fkt_service *fkt_task_service(const struct fkt_task *t);       /* NULL: none */
FKT_API const struct fkt_signature *fkt_task_signature(const struct fkt_task *t);   /* NULL: the task is not signed */
/* Sound or weak (privacy.h), and why; the records are bounded by what all sites may hold of all classes. It follows
 * from the task, whose JSON carries the word "weak" under its signature: one that is weak and does not say so is
 * refused when it is read, and so is one that says so and is not. */
FKT_API enum fkt_promise fkt_task_promise(const struct fkt_task *t, char why[FKT_PROMISE_WORDS] /* may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
