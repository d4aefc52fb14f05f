/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a network prepared to run on a card: steps, buffers, weights. Private to nn/cuda/.
 *
 *   operations --nn/fuse.c, plan_shortcut.c--> groups --plan.c, plan_conv.c--> steps over buffers
 *     --nn/arena.c--> offsets in a workspace's block            plan_weights.c: slots -> one block of weights
 *                                                               run.c, run_steps.c: workspaces, and the run
 *
 * Values are NHWC. A value may be stored with more channels than it has, the rest zeros: the network's input where
 * only convolutions read it, and what a convolution gives to the output (conv.h says how many it wants). */
#ifndef FKT_NN_CUDA_PLAN_H
#define FKT_NN_CUDA_PLAN_H

#include "nn/arena.h"
#include "nn/cuda/conv.h"
#include "nn/cuda/gemm.h"
#include "nn/fuse.h"

#define FKT_CUDA_NOWHERE SIZE_MAX

/* A value: its shape (t.data is filled in when it runs) and its place. */
struct fkt_cuda_value {
    struct fkt_cuda_tensor t;
    uint32_t buffer; /* FKT_NONE: no such operand */
};

enum fkt_cuda_step_kind {
    FKT_CUDA_STEP_OP = 0,   /* a kernel of kernels.h, by `op` */
    FKT_CUDA_STEP_CONV,     /* conv.h */
    FKT_CUDA_STEP_GEMM,     /* gemm.h */
    FKT_CUDA_STEP_EPILOGUE, /* dst = act(dst + src[1]), in place */
    FKT_CUDA_STEP_WIDEN,    /* src[0], and zeros in further channels */
    FKT_CUDA_STEP_CROP,     /* the first channels of src[0] */
    FKT_CUDA_STEP_DOWN,     /* unshuffle(src[0]) + group mean(unshuffle(src[1])) */
    FKT_CUDA_STEP_UP        /* shuffle(src[0] + repeat(src[1])) */
};

struct fkt_cuda_step {
    enum fkt_cuda_step_kind kind;
    const struct fkt_op *op; /* the operation whose name an error gives */
    struct fkt_cuda_value src[2], dst;
    uint32_t scratch;           /* buffer */
    struct fkt_cuda_conv *conv; /* CONV */
    struct fkt_cuda_gemm *gemm; /* GEMM; owned */
    size_t weights, bias;       /* bytes into the block of weights, or FKT_CUDA_NOWHERE */
    enum fkt_cuda_act act;
    int glu;           /* a depthwise convolution: the gated unit follows */
    float reach, most; /* largest weight times how many go into one sum; largest bias; 0: it has none */
};

/* Numbers still to be copied into the block of weights. */
enum fkt_cuda_order {
    FKT_CUDA_VECTOR = 0, /* float, as in the slot */
    FKT_CUDA_KRSC,       /* (out, kh, kw, in) in the plan's precision, padded to `out` and `in` */
    FKT_CUDA_LINEAR,     /* (out, h, w, c) from (out, c h w), the same */
    FKT_CUDA_RSC,        /* (kh, kw, c) float: depthwise */
    FKT_CUDA_FLOATS      /* (out, in) float: 1x1 in groups */
};
struct fkt_cuda_packing {
    enum fkt_cuda_order order;
    uint32_t slot;    /* FKT_NO_SLOT: `numbers` are all there is */
    size_t at, bytes; /* in the block */
    size_t step;      /* whose they are */
    uint32_t out, in; /* channels as stored */
    uint32_t h, w;    /* of the window, or of the map */
    uint32_t lead;    /* KRSC: the window's first rows and columns that are zero; h and w count them */
    float *numbers;   /* owned; a factor for each output channel, or a vector's numbers; may be NULL */
};

struct fkt_cuda_plan {
    struct fkt_cuda_device *device;
    const struct fkt_net *net; /* borrowed */
    const struct fkt_weights *file;
    struct fkt_engine_spec spec;
    struct fkt_engine_facts *facts; /* while planning */
    struct fkt_cuda_step *step;
    size_t n_steps, step_room;
    struct fkt_buffer *buffer;
    size_t n_buffers, buffer_room;
    struct fkt_cuda_packing *packing; /* while planning */
    size_t n_packings, packing_room;
    void *block; /* weights, on the card */
    size_t block_bytes;
    size_t table; /* of the spec's pixels_in, in the block */
    struct fkt_cuda_value input, output;
    struct fkt_shape in_shape, out_shape;
    size_t arena_bytes;
    _Atomic int *checked; /* owned; 1: a batch ran, and all of its numbers were finite */
};

/* While planning: where each value is, and how long it is needed. */
struct fkt_cuda_draft {
    struct fkt_cuda_plan *plan;
    const struct fkt_shape *shape; /* (n_ops + 1) */
    struct fkt_cuda_value *place;  /* (n_ops + 1) */
    struct fkt_group *group;       /* (n_ops) */
    uint32_t (*shortcut)[2];       /* (n_ops) the sources of an addition that is DOWN or UP; FKT_NONE: it is not */
    uint32_t *readers, *last;      /* (n_ops + 1) how many read it; the last operation with a step that does */
    uint8_t *padded;               /* (n_ops + 1) 1: may be stored with more channels */
};

/* plan.c */
FKT_MUST_USE fkt_status fkt_cuda_plan_build(struct fkt_cuda_plan *p, const struct fkt_shape *shapes);
void fkt_cuda_plan_clear(struct fkt_cuda_plan *p); /* what it owns, but not *p */
/* A new buffer for a map of this shape, stored with `c` channels. */
FKT_MUST_USE fkt_status fkt_cuda_draft_value(struct fkt_cuda_draft *d, struct fkt_cuda_value *out, struct fkt_shape s,
                                             uint32_t c);
FKT_MUST_USE fkt_status fkt_cuda_draft_scratch(struct fkt_cuda_draft *d, uint32_t *buffer, size_t bytes);
/* Takes ownership of step->gemm, also when it fails. */
FKT_MUST_USE fkt_status fkt_cuda_draft_step(struct fkt_cuda_draft *d, const struct fkt_cuda_step *step);
struct fkt_cuda_step fkt_cuda_draft_empty(enum fkt_cuda_step_kind kind, const struct fkt_op *op);

FKT_MUST_USE fkt_status fkt_cuda_draft_conv(struct fkt_cuda_draft *d, uint32_t head); /* plan_conv.c; LINEAR too */
void fkt_cuda_draft_shortcuts(struct fkt_cuda_draft *d);                              /* plan_shortcut.c */
void fkt_cuda_draft_padding(struct fkt_cuda_draft *d);

/* plan_weights.c. The next step of the plan gets them; *at: in the block. */
FKT_MUST_USE fkt_status fkt_cuda_plan_vector(struct fkt_cuda_plan *p, uint32_t slot, size_t *at);
FKT_MUST_USE fkt_status fkt_cuda_plan_floats(struct fkt_cuda_plan *p, const float *x, size_t n, size_t *at);
/* A batch norm as x * scale + shift; both are the caller's. */
FKT_MUST_USE fkt_status fkt_cuda_plan_scale(const struct fkt_cuda_plan *p, const struct fkt_op *norm, float **scale,
                                            float **shift);
/* Weights and bias of a convolution or linear map with the norm (may be NULL) folded in, stored with `out` and `in`
 * channels. */
FKT_MUST_USE fkt_status fkt_cuda_plan_weights(struct fkt_cuda_plan *p, const struct fkt_op *op,
                                              const struct fkt_op *norm, const struct fkt_cuda_packing *how,
                                              struct fkt_cuda_step *step);
FKT_MUST_USE fkt_status fkt_cuda_plan_upload(struct fkt_cuda_plan *p);

/* run_steps.c: queues one step. */
FKT_MUST_USE fkt_status fkt_cuda_step_run(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s, char *arena,
                                          cudaStream_t stream);
struct fkt_cuda_tensor fkt_cuda_value_at(const struct fkt_cuda_plan *p, const struct fkt_cuda_value *v, char *arena);
/* Queue checks: where a number is not finite or may not become one, *bad is set. */
FKT_MUST_USE fkt_status fkt_cuda_step_check_before(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s,
                                                   char *arena, int *bad, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_step_check_after(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s,
                                                  char *arena, int *bad, cudaStream_t stream);

#endif
