/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a network prepared to run: steps, buffers, packed weights. Private to nn/onednn/.
 *
 *   operations --nn/fuse.c--> groups --plan.c, conv.c--> steps over buffers --lifetimes.c--> offsets in a workspace
 *                                   weights.c: slots -> packed weights                run.c: workspaces, and the run
 *                                                                                     check_finite.c: its first run */
#ifndef FKT_NN_ONEDNN_PLAN_H
#define FKT_NN_ONEDNN_PLAN_H

#include "nn/act.h"
#include "nn/arena.h"
#include "nn/fuse.h"
#include "nn/onednn/shim.h"

/* A value in memory: its shape (act.data is filled in when it runs) and its place. */
struct fkt_value_place {
    struct fkt_act act;
    uint32_t buffer; /* FKT_NONE: no such operand */
    size_t offset;   /* bytes into the buffer */
};

enum fkt_step_kind { FKT_STEP_CALL = 0, FKT_STEP_COPY, FKT_STEP_GLUE };

struct fkt_step {
    enum fkt_step_kind kind;
    const struct fkt_op *op; /* what is done; NULL: an activation or a copy */
    struct fkt_value_place src[2], dst;
    uint32_t scratch;          /* buffer */
    struct fkt_dnn_prim *prim; /* CALL; owned */
    const void *weights;       /* CALL: packed; GLUE: a float per channel */
    const float *bias;
    float reach; /* CALL: largest weight times how many go into one sum; 0: it has none */
};

/* Weights still to be packed from the file into the plan. */
struct fkt_packing {
    uint32_t slot;
    size_t step;                     /* whose weights they are */
    int phases;                      /* see conv.c */
    const float *scale;              /* a float per output channel, or NULL */
    const struct fkt_dnn_prim *prim; /* of a step */
    void *packed;
};

struct fkt_plan {
    const struct fkt_net *net; /* borrowed */
    const struct fkt_weights *file;
    struct fkt_engine_spec spec;
    struct fkt_engine_facts *facts; /* while planning */
    enum fkt_dnn_layout layout;
    struct fkt_step *step;
    size_t n_steps, step_room;
    struct fkt_buffer *buffer;
    size_t n_buffers, buffer_room;
    void **owned; /* weights */
    size_t n_owned, owned_room;
    struct fkt_packing *packing; /* while planning */
    size_t n_packings, packing_room;
    struct fkt_value_place input, output;
    size_t arena_bytes;
};

/* While planning: where each value is, and how long it is needed. */
struct fkt_draft {
    struct fkt_plan *plan;
    const struct fkt_shape *shape; /* (n_ops + 1) */
    struct fkt_value_place *place; /* (n_ops + 1) */
    struct fkt_group *group;       /* (n_ops) */
    uint32_t *readers, *last;      /* (n_ops + 1) how many read it; the last operation with a step that does */
};

FKT_MUST_USE fkt_status fkt_plan_build(struct fkt_plan *p, const struct fkt_shape *shapes);

/* A new buffer for a map of this shape in a layout. */
FKT_MUST_USE fkt_status fkt_draft_value(struct fkt_draft *d, struct fkt_value_place *out, struct fkt_shape shape,
                                        enum fkt_dnn_layout layout);
FKT_MUST_USE fkt_status fkt_draft_scratch(struct fkt_draft *d, uint32_t *buffer, size_t bytes);
/* Takes ownership of step->prim, also when it fails. */
FKT_MUST_USE fkt_status fkt_draft_step(struct fkt_draft *d, const struct fkt_step *step);
FKT_MUST_USE fkt_status fkt_draft_copy(struct fkt_draft *d, const struct fkt_value_place *dst,
                                       const struct fkt_value_place *src);
enum fkt_dnn_after fkt_draft_after_kind(enum fkt_op_kind kind); /* RELU, RELU6, SILU */
/* ReLU, ReLU6 or SiLU over all lanes of src. */
FKT_MUST_USE fkt_status fkt_draft_after(struct fkt_draft *d, const struct fkt_value_place *dst,
                                        const struct fkt_value_place *src, enum fkt_dnn_after kind);
/* 1: nothing reads the value after the group that ends with operation `end`, so its buffer may be written. */
int fkt_draft_dead(const struct fkt_draft *d, uint32_t value, uint32_t end);
FKT_MUST_USE fkt_status fkt_draft_conv(struct fkt_draft *d, uint32_t head); /* conv.c */

/* weights.c. The plan owns the blocks. */
FKT_MUST_USE fkt_status fkt_plan_vector(struct fkt_plan *p, uint32_t slot, const float **out);
/* A batch norm as x * scale + shift. */
FKT_MUST_USE fkt_status fkt_plan_scale(struct fkt_plan *p, const struct fkt_op *norm, const float **scale,
                                       const float **shift);
/* Weights and bias (NULL where there is none) of a convolution, with the norm (may be NULL) folded in, into *step: it
 * must be the next one of the plan, and own `prim` by the time of fkt_plan_pack. */
FKT_MUST_USE fkt_status fkt_plan_weights(struct fkt_plan *p, const struct fkt_op *conv, const struct fkt_op *norm,
                                         int phases, const struct fkt_dnn_prim *prim, struct fkt_step *step);
FKT_MUST_USE fkt_status fkt_plan_pack(struct fkt_plan *p);

/* check_finite.c: FKT_E_NUMERIC names the step when a number is not finite, or may not be. */
float fkt_check_finite_largest(const float *x, size_t n); /* of absolute values; NaN is larger than all */
FKT_MUST_USE fkt_status fkt_check_finite_before(const struct fkt_plan *p, size_t step, const struct fkt_act *src);
FKT_MUST_USE fkt_status fkt_check_finite_after(const struct fkt_plan *p, size_t step, const struct fkt_act *dst);

FKT_MUST_USE fkt_status fkt_arena(struct fkt_plan *p); /* gives every buffer its offset */

#endif
