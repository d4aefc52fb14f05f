/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - a network prepared for learning: steps, buffers, arrays. Private to nn/onednn/.
 *
 *   operations --learn_plan.c--> forward steps --learn_back.c--> backward steps --nn/arena.c--> offsets in one block
 *                learn_conv.c: which kernels; learn_arrays.c: weights and the four arrays beside them
 *                learn_norm.c, learn_loops.c, learn_act.c: operations outside oneDNN; learn_run.c: the backend */
#ifndef FKT_NN_ONEDNN_LEARN_H
#define FKT_NN_ONEDNN_LEARN_H

#include "nn/backprop.h"
#include "nn/learner.h"
#include "nn/onednn/learn_shim.h"
#include "nn/onednn/plan.h"

/* The memory layout of maps of one shape: strides in elements, channels in blocks of `lanes`, the last one padded. */
struct fkt_field {
    size_t images, blocks, pixels;
    size_t image, block, pixel; /* strides */
    unsigned lanes;             /* 8 or 16 */
    int half;                   /* bfloat16 */
};

/* One batch norm. Arrays of blocks * lanes floats. */
struct fkt_norm {
    const struct fkt_op *op;
    struct fkt_field field;
    uint32_t channels;                                                   /* without padding */
    float *weight, *bias, *mean, *var, *weight_gradient, *bias_gradient; /* the learner's */
    float *centre, *scale, *a, *b, *p, *r; /* letters as in learn_norm.c; the first is owned, with the others in it */
    double *part;                          /* owned: (blocks, threads, 2, lanes) sums; NULL where frozen */
    int frozen;                            /* by the stored mean and var; a backward has no sums */
};

/* Operands are data; those that a step does not have are NULL. */
struct fkt_norm_maps {
    const void *x, *z; /* the norm's source, and what is added to its result */
    void *y;           /* the result; in the backward, read for the ReLU's mask where there was a z, else NULL */
    int relu;
    const void *g, *h; /* gradients by y, to be added up */
    void *e;           /* their sum under the ReLU's mask: the gradient by z; may be g or h */
    void *d;           /* the gradient by x; may be x */
};
void fkt_norm_forward(struct fkt_norm *n, const struct fkt_norm_maps *m, float momentum, unsigned threads);
void fkt_norm_backward(struct fkt_norm *n, const struct fkt_norm_maps *m, unsigned threads);

/* learn_loops.c. Elementwise, in place or not, any of the last pointers may be one of the first. */
void fkt_loop_sum(void *y, const void *a, const void *b /* or NULL */, int relu, size_t n, int half, unsigned threads);
void fkt_loop_mask(void *d, const void *g, const void *h /* or NULL */, const void *y /* or NULL: no ReLU */, size_t n,
                   int half, unsigned threads);
void fkt_loop_mean(void *y, const void *x, const struct fkt_field *f, unsigned threads);      /* y: one pixel each */
void fkt_loop_mean_back(void *d, const void *g, const struct fkt_field *f, unsigned threads); /* f: of d */
/* Where a map of x holds a NaN, the first pixel of that map of y becomes one. */
void fkt_loop_mark(void *y, const struct fkt_field *to, const void *x, const struct fkt_field *f, unsigned threads);
struct fkt_learned_blocks {
    float *weight, *velocity, *second; /* second: Adam alone */
    const float *gradient, *average;   /* average: of a step that pulls */
};
void fkt_loop_step(const struct fkt_learned_blocks *b, size_t n, const struct fkt_optimizer *k, unsigned threads);
void fkt_loop_average(float *average, const float *w, size_t n, float decay, unsigned threads);

enum fkt_learn_step_kind {
    FKT_LEARN_STEP_CALL = 0, /* a task of oneDNN: x or d is its source, y or g its result */
    FKT_LEARN_STEP_NORM,
    FKT_LEARN_STEP_NORM_BACK,
    FKT_LEARN_STEP_SUM,  /* y = x + z, or x, with or without a ReLU */
    FKT_LEARN_STEP_MASK, /* d = g + h where y > 0 */
    FKT_LEARN_STEP_MEAN,
    FKT_LEARN_STEP_MEAN_BACK,
    FKT_LEARN_STEP_MARK,    /* after a max-pool, x to y: the library's max-pool loses NaN */
    FKT_LEARN_STEP_CLEAR,   /* gradients of an operation that the result does not depend on */
    FKT_LEARN_STEP_ACT,     /* frozen: an operation of nn/act.h, y from x and z */
    FKT_LEARN_STEP_ACT_BACK /* frozen: d from g and x */
};

struct fkt_learn_step {
    enum fkt_learn_step_kind kind;
    const struct fkt_op *op;
    uint32_t x, z, y, g, h, e, d; /* buffers, FKT_NONE: no such operand; letters as in fkt_norm_maps */
    uint32_t keep, scratch;       /* buffers, of a task */
    int relu;
    struct fkt_dnn_task *task; /* owned; NULL for the gradient of weights: then the home of op->weight is used */
    enum fkt_dnn_way way;      /* of the task */
    uint32_t copy;             /* weights of the task: FKT_NONE: the masters (or their gradients) */
    uint32_t norm;
    struct fkt_field field;                /* of x, or of d */
    struct fkt_field to;                   /* of y, where that has another shape: MARK */
    struct fkt_act source, second, result; /* of x or d, z, y or g: ACT and ACT_BACK, without data */
    uint32_t first;                        /* ACT_BACK of a concatenation: the first of its channels that d has */
};

/* The arrays of a slot. Offsets are in floats and the same in all five blocks. */
struct fkt_array {
    size_t offset, count; /* count: padding included */
    struct fkt_dnn_task
        *home; /* owned: weights of a convolution: the task that writes their gradient; NULL: a vector */
    uint32_t shape[FKT_SLOT_RANK]; /* of home: padded */
    uint32_t groups;               /* > 1: other inputs of a result have weight 0 in home */
    int statistic;                 /* mean or var of a batch norm */
};

/* Weights in the layout of a kernel that cannot read the masters. */
struct fkt_copy {
    uint32_t slot;
    struct fkt_dnn_task *task; /* owned */
    size_t offset, bytes;
    uint32_t scratch; /* buffer */
};

struct fkt_learn {
    const struct fkt_net *net; /* borrowed */
    struct fkt_learner_spec spec;
    unsigned threads;
    enum fkt_dnn_layout layout;
    unsigned lanes; /* of a block of channels */
    struct fkt_learn_step *step;
    size_t n_steps, step_room, n_ahead; /* the first n_ahead are the forward */
    struct fkt_buffer *buffer;
    size_t n_buffers, buffer_room;
    struct fkt_norm *norm;
    size_t n_norms;
    struct fkt_array *array;           /* (n_slots) */
    float *learned[FKT_LEARNED_KINDS]; /* (floats) of weights and average, (parameters) of the others */
    size_t parameters, floats;         /* parameters first, then statistics */
    struct fkt_copy *copy;
    size_t n_copies, copy_room, copy_bytes;
    uint8_t *arena, *copies;                                        /* on cache lines, in ... */
    uint8_t *owned[FKT_LEARNED_KINDS], *owned_arena, *owned_copies; /* ... what is to be freed */
    size_t arena_bytes;
    struct fkt_act input, output;
    uint32_t in_buffer, out_buffer, dout_buffer; /* dout: FKT_NONE where nothing learns */
    uint32_t din_buffer;                         /* frozen */
    int stale;                                   /* masters have changed since the copies were made */
};

/* While planning. */
struct fkt_learn_draft {
    struct fkt_learn *l;
    const struct fkt_shape *shape; /* (n_ops + 1) */
    struct fkt_learner_facts *facts;
    int plain_input;       /* value 0 is NCHW */
    uint32_t *buffer;      /* (n_ops + 1) of a value */
    uint32_t *uses;        /* (n_ops + 1) how many backward steps will still read it */
    uint32_t *norm, *keep; /* (n_ops) number of a norm; what a pooling left for its backward */
    struct fkt_backprop b;
};

FKT_MUST_USE fkt_status fkt_learn_plan(struct fkt_learn *l, const struct fkt_shape *shapes,
                                       struct fkt_learner_facts *facts);
FKT_MUST_USE fkt_status fkt_learn_draft_back(struct fkt_learn_draft *s); /* learn_back.c */

FKT_MUST_USE fkt_status fkt_learn_draft_buffer(struct fkt_learn_draft *s, uint32_t *out,
                                               size_t bytes); /* 0: FKT_NONE */
FKT_MUST_USE fkt_status fkt_learn_draft_map(struct fkt_learn_draft *s, uint32_t *out,
                                            uint32_t value); /* as large as it */
struct fkt_learn_step fkt_learn_step_of(enum fkt_learn_step_kind kind, const struct fkt_op *op);
/* Takes ownership of the step's task, also when it fails. */
FKT_MUST_USE fkt_status fkt_learn_draft_step(struct fkt_learn_draft *s, const struct fkt_learn_step *step);
struct fkt_field fkt_learn_draft_field(const struct fkt_learn_draft *s, uint32_t value);
uint32_t fkt_learn_draft_channels(const struct fkt_learn_draft *s, uint32_t value); /* padded */
enum fkt_dnn_layout fkt_learn_draft_layout(const struct fkt_learn_draft *s, uint32_t value);
/* 1 when the backward of this kind reads the operation's source. */
int fkt_learn_draft_keeps(const struct fkt_learn_draft *s, enum fkt_op_kind kind);
FKT_MUST_USE fkt_status fkt_learn_draft_pool_task(const struct fkt_learn_draft *s, uint32_t i, enum fkt_dnn_way way,
                                                  struct fkt_dnn_task **out);

struct fkt_act fkt_learn_draft_act_of(const struct fkt_learn_draft *s, uint32_t value); /* without data */

/* learn_act.c: the operations of nn/act.h in a frozen network, which know neither oneDNN nor a learner. */
int fkt_learn_is_act(enum fkt_op_kind kind);
int fkt_learn_act_reads_source(enum fkt_op_kind kind); /* in the backward */
FKT_MUST_USE fkt_status fkt_learn_draft_act(struct fkt_learn_draft *s, uint32_t i);
/* From the gradient g of its result to that of input k (0 or 1), *d. */
FKT_MUST_USE fkt_status fkt_learn_draft_act_back(struct fkt_learn_draft *s, uint32_t i, int k, uint32_t g, uint32_t *d);
void fkt_learn_act_run(const struct fkt_learn *l, const struct fkt_learn_step *k, const struct fkt_norm_maps *m);

/* learn_conv.c: operation `i`, a convolution or linear map. Back: from the gradient g of its result to that of its
 * source, *d, FKT_NONE where it is not needed. */
FKT_MUST_USE fkt_status fkt_learn_draft_conv(struct fkt_learn_draft *s, uint32_t i);
FKT_MUST_USE fkt_status fkt_learn_draft_conv_back(struct fkt_learn_draft *s, uint32_t i, uint32_t g, uint32_t *d);

/* learn_arrays.c */
void fkt_arrays_lay_out(struct fkt_learn *l);                /* offsets; steps must exist */
uint64_t fkt_arrays_bytes(const struct fkt_learn *l);        /* all but the average */
FKT_MUST_USE fkt_status fkt_arrays_new(struct fkt_learn *l); /* memory of the first three and of copies */
FKT_MUST_USE fkt_status fkt_arrays_have(struct fkt_learn *l, enum fkt_learned what); /* memory of any, once */
FKT_MUST_USE fkt_status fkt_arrays_write(struct fkt_learn *l, enum fkt_learned what, uint32_t slot, const float *x);
FKT_MUST_USE fkt_status fkt_arrays_read(const struct fkt_learn *l, enum fkt_learned what, uint32_t slot, float *x);
FKT_MUST_USE fkt_status fkt_arrays_refresh(struct fkt_learn *l); /* copies, where they are stale */
/* Zeroed bytes from a cache line on; free *block. */
FKT_MUST_USE fkt_status fkt_learn_block(uint8_t **block, uint8_t **base, size_t bytes);
static inline float *fkt_array_at(const struct fkt_learn *l, enum fkt_learned what, uint32_t slot)
{
    return slot == FKT_NO_SLOT ? NULL : l->learned[what] + l->array[slot].offset;
}

#endif
