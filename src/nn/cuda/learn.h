/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - a network prepared for learning on a card: steps, buffers, arrays. Private to nn/cuda/.
 *
 *   operations --learn_plan.c--> forward steps --learn_back.c--> backward steps --arena.c--> offsets in one block
 *                learn_product.c: convolutions and linear maps; learn_arrays.c: weights and the arrays beside them
 *                learn_run.c: the backend; learn_epoch.c: steps without the host; learn_frozen.c: by the input
 *                learn_aside.c: gradients of weights beside the rest
 *
 * All values are NHWC with channels padded to a multiple of 8 (`align`). */
#ifndef FKT_NN_CUDA_LEARN_H
#define FKT_NN_CUDA_LEARN_H

#include "nn/arena.h"
#include "nn/backprop.h"
#include "nn/cuda/conv.h"
#include "nn/cuda/cuda.h"
#include "nn/cuda/gemm.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/kernels_learn.h"
#include "nn/learner.h"

/* A convolution or a linear map in one direction. */
struct fkt_cuda_product {
    struct fkt_cuda_conv *conv; /* owned; one of the two */
    struct fkt_cuda_gemm *gemm;
};

enum fkt_cuda_step_kind {
    FKT_CUDA_STEP_PRODUCT = 0, /* by its way: x, y | d, g | x, g */
    FKT_CUDA_STEP_COLUMNS,     /* a bias's gradient: sums of g */
    FKT_CUDA_STEP_NORM,
    FKT_CUDA_STEP_NORM_BACK,
    FKT_CUDA_STEP_SUM,  /* y = x + z, or x, with or without a ReLU */
    FKT_CUDA_STEP_MASK, /* d = g + h where y > 0 */
    FKT_CUDA_STEP_MEAN,
    FKT_CUDA_STEP_MEAN_BACK,
    FKT_CUDA_STEP_POOL,
    FKT_CUDA_STEP_POOL_BACK,
    FKT_CUDA_STEP_CLEAR,      /* gradients of an operation that the result does not depend on */
    FKT_CUDA_STEP_FROZEN,     /* learn_frozen.c: operation `op` from x (and z) to y */
    FKT_CUDA_STEP_FROZEN_BACK /* from g to d, the gradient by operand `side`; `more`: it is added */
};

struct fkt_cuda_step {
    enum fkt_cuda_step_kind kind;
    const struct fkt_op *op;
    uint32_t value;               /* whose shape the maps have: the result's, or of d */
    uint32_t x, z, y, g, h, e, d; /* buffers, FKT_NONE: no such operand; letters as in fkt_cuda_norm_maps */
    uint32_t keep, scratch;       /* buffers: places of a pooling; partial sums and other scratch */
    int relu, side, more;
    enum fkt_cuda_act act; /* FROZEN: of the result; FROZEN_BACK by the result: whose mask */
    enum fkt_cuda_way way;
    struct fkt_cuda_product product; /* owned */
    uint32_t norm;
    int aside;     /* runs on the second stream (learn_aside.c) */
    uint32_t wait; /* so many steps aside must be done before this one */
};

/* The arrays of a slot. Offsets are in floats and the same in all blocks. (out, in, window) in files, with window the
 * pixels of a kernel or of a linear map's source; (out, window, in) here, out and in padded. */
struct fkt_cuda_array {
    size_t offset, count; /* count: padding included; 0: no operation reads it */
    uint32_t out, in, window, padded_out, padded_in;
    uint32_t groups;     /* > 1: frozen: the others of a result's inputs have weight 0 */
    uint32_t side, lead; /* of a kernel: its side in files; here it has `lead` more rows and columns in front, zeros */
    int depthwise;       /* frozen: (window, out) here */
    int statistic;       /* mean or var of a batch norm */
};

struct fkt_cuda_learn {
    const struct fkt_net *net; /* borrowed */
    struct fkt_learner_spec spec;
    struct fkt_cuda_device *device;
    cudaStream_t stream;
    struct fkt_shape *shape; /* (n_ops + 1) */
    uint32_t align;
    struct fkt_cuda_step *step;
    size_t n_steps, step_room, n_ahead; /* the first n_ahead are the forward */
    struct fkt_buffer *buffer;
    size_t n_buffers, buffer_room;
    struct fkt_cuda_norm *norm; /* (n_ops) pointers are set when memory is there */
    size_t n_norms;
    struct fkt_cuda_array *array;      /* (n_slots) */
    float *learned[FKT_LEARNED_KINDS]; /* on the card: (floats); gradient, velocity, second: (parameters) */
    uint16_t *copies;                  /* bf16: (parameters) as kernels read them */
    size_t parameters, floats;         /* parameters first, then statistics; both multiples of 64 */
    float *norm_floats;                /* on the card: what belongs to batch norms */
    uint8_t *arena;                    /* on the card */
    size_t arena_bytes, workspace_bytes[2], norm_count;
    void *workspace[2];  /* of a stream's convolutions */
    cudaStream_t beside; /* of steps aside */
    cudaEvent_t *ready;  /* (2 n_aside) what a step aside reads is there; then, its own end */
    size_t n_aside;
    float *planes, *staging; /* the larger of input and output as floats: on the card, and pinned */
    size_t plane_floats;
    uint32_t in_buffer, out_buffer, dout_buffer, din_buffer; /* dout: FKT_NONE where nothing learns */
    int stale;                                               /* weights have changed since the copies were made */
    struct fkt_cuda_resident *resident;                      /* learn_epoch.c; NULL until images are held */
};

/* While planning. */
struct fkt_cuda_draft {
    struct fkt_cuda_learn *l;
    struct fkt_learner_facts *facts;
    uint32_t *buffer;      /* (n_ops + 1) of a value */
    uint32_t *uses;        /* (n_ops + 1) how many backward steps will still read it */
    uint32_t *norm, *keep; /* (n_ops) number of a norm; what a pooling left for its backward */
    struct fkt_backprop b;
};

/* learn_plan.c */
FKT_MUST_USE fkt_status fkt_cuda_learn_plan(struct fkt_cuda_learn *l, struct fkt_learner_facts *facts);
FKT_MUST_USE fkt_status fkt_cuda_draft_buffer(struct fkt_cuda_draft *s, uint32_t *out, size_t bytes); /* 0: FKT_NONE */
FKT_MUST_USE fkt_status fkt_cuda_draft_map(struct fkt_cuda_draft *s, uint32_t *out, uint32_t value);  /* large as it */
struct fkt_cuda_step fkt_cuda_step_of(enum fkt_cuda_step_kind kind, const struct fkt_op *op, uint32_t value);
/* Takes ownership of the step's product, also when it fails. */
FKT_MUST_USE fkt_status fkt_cuda_learn_add_step(struct fkt_cuda_draft *s, const struct fkt_cuda_step *step);
/* learn_back.c, learn_frozen.c */
FKT_MUST_USE fkt_status fkt_cuda_draft_back(struct fkt_cuda_draft *s);
FKT_MUST_USE fkt_status fkt_cuda_draft_frozen(struct fkt_cuda_draft *s); /* all steps of a frozen network */
int fkt_cuda_is_depthwise(const struct fkt_cuda_learn *l, const struct fkt_op *op);
uint32_t fkt_cuda_frozen_align(const struct fkt_net *net, const struct fkt_shape *shape);
FKT_MUST_USE fkt_status fkt_cuda_frozen_run(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k);
FKT_MUST_USE fkt_status fkt_cuda_frozen_fold(struct fkt_cuda_learn *l); /* stored statistics to factors */

/* learn_aside.c */
FKT_MUST_USE fkt_status fkt_cuda_draft_aside(struct fkt_cuda_draft *s); /* after all steps, before they get memory */
FKT_MUST_USE fkt_status fkt_cuda_aside_new(struct fkt_cuda_learn *l);
void fkt_cuda_aside_free(struct fkt_cuda_learn *l);
FKT_MUST_USE fkt_status fkt_cuda_learn_steps(struct fkt_cuda_learn *l, size_t from, size_t to); /* queues them */
#ifdef FKT_CUDA_HOST
extern int fkt_cuda_aside_late; /* tests: 1: steps aside run as late as they may */
#endif

/* learn_product.c. `act`, forward alone: fused. */
FKT_MUST_USE fkt_status fkt_cuda_product_new(struct fkt_cuda_product *out, struct fkt_cuda_learn *l, uint32_t i,
                                             enum fkt_cuda_way way, enum fkt_cuda_act act);
FKT_MUST_USE fkt_status fkt_cuda_product_run(const struct fkt_cuda_learn *l, const struct fkt_cuda_step *k);
void fkt_cuda_product_free(struct fkt_cuda_product *p);

/* learn_arrays.c */
FKT_MUST_USE fkt_status fkt_cuda_arrays_lay_out(struct fkt_cuda_learn *l);
uint64_t fkt_cuda_arrays_bytes(const struct fkt_cuda_learn *l); /* all but second moments and the average */
FKT_MUST_USE fkt_status fkt_cuda_arrays_new(struct fkt_cuda_learn *l);
void fkt_cuda_arrays_free(struct fkt_cuda_learn *l);
/* Memory of the second moments or the average, zeroed, once. */
FKT_MUST_USE fkt_status fkt_cuda_arrays_have(struct fkt_cuda_learn *l, enum fkt_learned what);
FKT_MUST_USE fkt_status fkt_cuda_arrays_write(struct fkt_cuda_learn *l, enum fkt_learned what, uint32_t slot,
                                              const float *x);
FKT_MUST_USE fkt_status fkt_cuda_arrays_read(const struct fkt_cuda_learn *l, enum fkt_learned what, uint32_t slot,
                                             float *x);
FKT_MUST_USE fkt_status fkt_cuda_arrays_refresh(struct fkt_cuda_learn *l); /* copies, where they are stale */
struct fkt_cuda_slots fkt_cuda_arrays_slots(const struct fkt_cuda_learn *l);

/* learn_run.c. Copies between pageable memory and the card, in the order of the stream; they wait for it. cudaMemcpy
 * would not: it may return before its last bytes arrive, and the stream does not wait for it. */
FKT_MUST_USE fkt_status fkt_cuda_learn_send(const struct fkt_cuda_learn *l, void *to, const void *from, size_t bytes);
FKT_MUST_USE fkt_status fkt_cuda_learn_fetch(const struct fkt_cuda_learn *l, void *to, const void *from, size_t bytes);
FKT_MUST_USE fkt_status fkt_cuda_learn_run(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k); /* queues it */
struct fkt_cuda_planned fkt_cuda_planned_of(const struct fkt_optimizer *o, float average);

/* learn_epoch.c: the four functions of nn/learner.h. */
FKT_MUST_USE fkt_status fkt_cuda_learn_hold(void *self, const struct fkt_held *images);
FKT_MUST_USE fkt_status fkt_cuda_learn_plan_epoch(void *self, const struct fkt_epoch_steps *e);
FKT_MUST_USE fkt_status fkt_cuda_learn_train(void *self, uint64_t steps);
FKT_MUST_USE fkt_status fkt_cuda_learn_collect(void *self, double *loss, uint64_t *hits, uint64_t *first_bad);
void fkt_cuda_resident_free(struct fkt_cuda_learn *l);

/* ---- short words ---- */
static inline cudaStream_t fkt_cuda_stream_of(const struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    return k->aside ? l->beside : l->stream;
}
static inline uint32_t fkt_cuda_padded(const struct fkt_cuda_learn *l, uint32_t channels)
{
    return (channels + l->align - 1) / l->align * l->align;
}
static inline struct fkt_cuda_tensor fkt_cuda_learn_tensor(const struct fkt_cuda_learn *l, uint32_t value, uint32_t b)
{
    const struct fkt_shape s = l->shape[value];
    return (struct fkt_cuda_tensor){b == FKT_NONE ? NULL : l->arena + l->buffer[b].offset,
                                    (int)l->spec.batch,
                                    (int)s.h,
                                    (int)s.w,
                                    (int)fkt_cuda_padded(l, s.c),
                                    l->spec.precision};
}
static inline void *fkt_cuda_learn_at(const struct fkt_cuda_learn *l, uint32_t b)
{
    return b == FKT_NONE ? NULL : l->arena + l->buffer[b].offset;
}
static inline float *fkt_cuda_array_at(const struct fkt_cuda_learn *l, enum fkt_learned what, uint32_t slot)
{
    return slot == FKT_NO_SLOT ? NULL : l->learned[what] + l->array[slot].offset;
}
static inline struct fkt_cuda_rows fkt_cuda_learn_rows(const struct fkt_cuda_learn *l, uint32_t value)
{
    const struct fkt_shape s = l->shape[value];
    return (struct fkt_cuda_rows){(size_t)l->spec.batch * s.h * s.w, (int)fkt_cuda_padded(l, s.c), l->spec.precision};
}

#endif
