/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - a task: everything that must be the same at every site, and its hash.
 *
 * A task names the classes, the image size, the parts of a record vector and the privacy parameters. A part is made by
 * one frozen public network: a codec, from which images come, or a guide, an encoder without a decoder; it has its own
 * calibration and coordinates. With a federation (federation.h) a task also names the sites; with a service (service.h)
 * it names the server, and the operator signs it. Sites compare tasks by the SHA-256 of their canonical JSON.
 *
 * Parts are released side by side, or joined: then the moments take them as one vector, w = (w_1, ..., w_P) in the ball
 * of R^2 = sum of R_p^2, and hold the products across parts too. fkt_task_layout says where each number stands: its
 * parts are those of the task, or one for a joined task.
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

enum fkt_part_kind { FKT_PART_CODEC = 0, FKT_PART_GUIDE };

/* One part of the record vector, as the task names it. */
struct fkt_task_part {
    enum fkt_part_kind kind;
    char name[64];      /* for fkt_codec_spec */
    uint32_t dim;       /* D */
    char identity[256]; /* of its network */
    char sha256[65];    /* of the identity */
    char calibration_source[128];
    uint64_t calibration_images;
    char calibration_sha256[65];
    struct fkt_coordinates coordinates;
};

/* What a person chooses for one part; its kind follows from the network. */
struct fkt_part_choice {
    const struct fkt_codec *codec;
    const struct fkt_calibration *calibration;
    enum fkt_coordinate_kind coordinates;
    double gamma;                   /* 0: default */
    double clip;                    /* 0: the calibration's radius */
    uint32_t rq;                    /* 0: default; joined parts have the same */
    double split_sum, split_moment; /* of the budget split; 0 in all parts: the default. Joined: they add up */
};

/* What a person chooses; everything else in a task is derived. */
struct fkt_task_choices {
    const char *name;           /* NULL: "unnamed" */
    const char *const *classes; /* borrowed */
    uint32_t n_classes;
    enum fkt_filter filter;
    enum fkt_fit fit;
    int joined;                      /* 1: the parts count as one vector */
    int pooled;                      /* 1: second moments over all classes together: heads, and no images */
    struct fkt_privacy_spec privacy; /* split_count alone of its split is read (0 and no split in any part: the
                                        default); parts, radii and `pooled` are derived */
    const struct fkt_federation_choices *federation; /* NULL: none */
    const struct fkt_service_choices *service;       /* NULL: none */
    int accept_weak;                                 /* 1: a weak promise is made, and the task says so; 0: FKT_E_ARG */
};
/* These give *out, freed with fkt_task_free. parts (n): a codec, a guide, or a codec and then a guide. */
FKT_API FKT_MUST_USE fkt_status fkt_task_make(struct fkt_task **out, const struct fkt_task_choices *choices,
                                              const struct fkt_part_choice *parts, uint32_t n);
/* Hostile input; unknown keys are refused, and so is a part that this version does not have. */
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
FKT_API uint32_t fkt_task_parts(const struct fkt_task *t);
FKT_API const struct fkt_task_part *fkt_task_part(const struct fkt_task *t, uint32_t p); /* NULL when p >= parts */
FKT_API const struct fkt_task_part *fkt_task_part_of(const struct fkt_task *t,
                                                     enum fkt_part_kind kind); /* NULL: none */
FKT_API int fkt_task_joined(const struct fkt_task *t);
FKT_API const struct fkt_moments_layout *fkt_task_layout(const struct fkt_task *t); /* of moments and releases */
FKT_API const struct fkt_privacy_spec *fkt_task_privacy(const struct fkt_task *t);  /* its radii are the layout's Rq */
FKT_API const struct fkt_federation *fkt_task_federation(const struct fkt_task *t); /* NULL: none */
FKT_API const struct fkt_division *fkt_task_division(const struct fkt_task *t);     /* NULL: not in cohorts */
FKT_API const struct fkt_service *fkt_task_service(const struct fkt_task *t);       /* NULL: none */
FKT_API const struct fkt_signature *fkt_task_signature(const struct fkt_task *t);   /* NULL: the task is not signed */
/* Sound or weak (privacy.h), and why; the records are bounded by what all sites may hold of all classes. It follows
 * from the task, whose JSON carries the word "weak" under its signature: one that is weak and does not say so is
 * refused when it is read, and so is one that says so and is not. */
FKT_API enum fkt_promise fkt_task_promise(const struct fkt_task *t, char why[FKT_PROMISE_WORDS] /* may be NULL */);
FKT_API const char *fkt_part_name(enum fkt_part_kind k); /* "codec", "guide" */

#ifdef __cplusplus
}
#endif
#endif
