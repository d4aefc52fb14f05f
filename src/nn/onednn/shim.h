/* SPDX-License-Identifier: Apache-2.0 */
/* shim.h - the part of oneDNN that a plan needs, in terms that do not change with its version.
 *
 * Only dnnl*.[ch] know dnnl.h, and dnnl_v2.c and dnnl_v3.c its versions. A primitive is immutable and shared by
 * threads; a call is a primitive with the addresses of one workspace, for one thread at a time. Both are made and run
 * with an OpenMP team of one (fkt_dnn_alone), since the caller parallelises. */
#ifndef FKT_NN_ONEDNN_SHIM_H
#define FKT_NN_ONEDNN_SHIM_H

#include "nn/engine.h"

enum fkt_dnn_layout { FKT_NHWC = 0, FKT_NCHW = 1, FKT_BLOCK8 = 8, FKT_BLOCK16 = 16 };
enum fkt_dnn_isa { FKT_ISA_NONE = 0, FKT_ISA_SSE41, FKT_ISA_AVX2, FKT_ISA_AVX512, FKT_ISA_AVX512_BF16, FKT_ISA_AMX };

static inline uint32_t fkt_dnn_block(enum fkt_dnn_layout l, uint32_t channels)
{
    return l == FKT_NHWC ? channels : (uint32_t)l;
}

/* Starts the library once per process, with its instruction set capped as nn/cpu.h says; FKT_E_ARG when FEDKT_MAX_ISA
 * names none, or when AMX must be kept off but the library was in use before us. */
FKT_MUST_USE fkt_status fkt_dnn_start(void);
enum fkt_dnn_isa fkt_dnn_isa(void); /* after a start */

/* The calling thread's team becomes one; gives what it was, for fkt_dnn_together. */
int fkt_dnn_alone(void);
void fkt_dnn_together(int team);
int fkt_dnn_team(int size); /* the same with a team of this size: learning (learn_shim.h) */

struct fkt_dnn_prim;
struct fkt_dnn_call;

enum fkt_dnn_after { FKT_AFTER_NONE = 0, FKT_AFTER_RELU, FKT_AFTER_RELU6, FKT_AFTER_SILU };
struct fkt_dnn_conv {
    uint32_t batch, in_c, in_h, in_w, out_c, out_h, out_w;
    uint32_t kernel_h, kernel_w, stride, pad, pad_after, groups; /* pad_after: behind the map, beyond pad */
    enum fkt_dnn_layout in_layout, out_layout;
    enum fkt_precision precision;
    int winograd, bias;
    int plain;                /* weights stay in the order of the file */
    int sum;                  /* dst += instead of dst = */
    enum fkt_dnn_after after; /* applied last */
};

/* *out = NULL with FKT_OK: the library has nothing for this, or nothing but its reference loops. */
FKT_MUST_USE fkt_status fkt_dnn_conv_new(struct fkt_dnn_prim **out, const struct fkt_dnn_conv *want);
/* On `count` dense numbers, in place or not. */
FKT_MUST_USE fkt_status fkt_dnn_after_new(struct fkt_dnn_prim **out, size_t count, enum fkt_precision precision,
                                          enum fkt_dnn_after kind);
void fkt_dnn_prim_free(struct fkt_dnn_prim *p);
size_t fkt_dnn_weight_bytes(const struct fkt_dnn_prim *p);  /* packed; 0: it has no weights */
size_t fkt_dnn_scratch_bytes(const struct fkt_dnn_prim *p); /* of each call */
int fkt_dnn_plain(const struct fkt_dnn_prim *p);            /* 1: it reads weights in the order of the file */
const char *fkt_dnn_kernel(const struct fkt_dnn_prim *p);   /* what the library calls it */
/* `plain`: floats in the order of the file; `packed`: fkt_dnn_weight_bytes, 64-byte aligned. */
FKT_MUST_USE fkt_status fkt_dnn_pack(const struct fkt_dnn_prim *p, void *packed, const float *plain);

struct fkt_dnn_buffers {
    void *src, *dst, *scratch;
    const void *weights;
    const float *bias;
};
FKT_MUST_USE fkt_status fkt_dnn_call_new(struct fkt_dnn_call **out, const struct fkt_dnn_prim *p,
                                         const struct fkt_dnn_buffers *b); /* borrows all of it */
void fkt_dnn_call_free(struct fkt_dnn_call *c);
FKT_MUST_USE fkt_status fkt_dnn_call_run(struct fkt_dnn_call *c);

#endif
