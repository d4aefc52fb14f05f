/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl.c - shim.h on oneDNN 2.x and 3.x. Only dnnl*.[ch] know dnnl.h; what differs between the versions is in dnnl_v2.c
 * and dnnl_v3.c.
 *
 * Source: oneDNN 2.6 and 3.2 developer guides (convolution, eltwise, attributes: post-ops and user scratchpads).
 *
 * The library does not report a slow kernel: where it has none for a shape or layout it runs scalar reference loops,
 * three hundred times slower. So a primitive whose implementation is called "ref" is returned as NULL, and the planner
 * tries another layout. The caller supplies scratchpads: the library's own would be one per primitive and thread. */
#include "nn/onednn/dnnl_api.h"

#include "base/alloc.h"
#include "nn/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GNU OpenMP's own two functions: omp.h comes with gcc alone, and clang builds this too. */
int omp_get_max_threads(void);
void omp_set_num_threads(int n);

struct fkt_dnn_prim {
    dnnl_primitive_t primitive;
    struct fkt_dnn_desc src, dst, weights, bias, scratch;
    struct fkt_dnn_desc file; /* of the weights as they come */
    char kernel[64];
};

enum { ARGS = 5 };
struct fkt_dnn_call {
    dnnl_primitive_t primitive; /* the prim's */
    dnnl_stream_t stream;
    dnnl_exec_arg_t arg[ARGS]; /* src and dst first */
    int n_args;
};

static struct {
    pthread_once_t once;
    dnnl_engine_t engine; /* as old as the process */
    enum fkt_dnn_isa isa;
    struct fkt_failure failure;
} lib = {.once = PTHREAD_ONCE_INIT};

static const struct isa {
    const char *name;
    dnnl_cpu_isa_t flag;
} isas[] = {
    [FKT_ISA_NONE] = {"none", DNN_ISA_ANY},
    [FKT_ISA_SSE41] = {"sse41", dnnl_cpu_isa_sse41},
    [FKT_ISA_AVX2] = {"avx2", dnnl_cpu_isa_avx2},
    [FKT_ISA_AVX512] = {"avx512", dnnl_cpu_isa_avx512_core},
    [FKT_ISA_AVX512_BF16] = {"avx512_bf16", dnnl_cpu_isa_avx512_core_bf16},
    [FKT_ISA_AMX] = {"amx", dnnl_cpu_isa_avx512_core_amx},
};

fkt_status fkt_dnn_check(dnnl_status_t s, const char *what)
{
    if (s == dnnl_success) return FKT_OK;
    if (s == dnnl_out_of_memory) return fkt_fail(FKT_E_NOMEM, "out of memory: oneDNN cannot %s", what);
    return fkt_fail(FKT_E_STATE, "oneDNN cannot %s (status %d)", what, (int)s);
}

static fkt_status wanted_cap(enum fkt_dnn_isa *out)
{
    const char *name = getenv("FEDKT_MAX_ISA");
    *out = FKT_ISA_AMX;
    if (!name || !*name) return FKT_OK;
    for (int i = FKT_ISA_SSE41; i <= FKT_ISA_AMX; i++)
        if (!strcmp(name, isas[i].name)) {
            *out = (enum fkt_dnn_isa)i;
            return FKT_OK;
        }
    return fkt_fail_hint(FKT_E_ARG, "give sse41, avx2, avx512, avx512_bf16 or amx, or unset it",
                         "FEDKT_MAX_ISA is '%s', which is not an instruction set", name);
}

/* The cap can only be set before the library's first use, so it is set here, from the environment and the processor. */
static fkt_status start(void)
{
    struct fkt_cpu_facts facts;
    enum fkt_dnn_isa cap;
    dnnl_cpu_isa_t have;
    fkt_status st;
    FKT_TRY(wanted_cap(&cap));
    fkt_cpu_facts(&facts);
    if (!fkt_amx_usable(&facts) && cap == FKT_ISA_AMX) cap = FKT_ISA_AVX512_BF16;
    if (cap != FKT_ISA_AMX && dnnl_set_max_cpu_isa(isas[cap].flag) != dnnl_success)
        return fkt_fail_hint(FKT_E_STATE, "make the first network before other code in the process uses oneDNN",
                             "oneDNN is already in use and cannot be limited to '%s'", isas[cap].name);
    DNN_TRY(dnnl_engine_create(&lib.engine, dnnl_cpu, 0), "start");
    have = dnnl_get_effective_cpu_isa();
    for (int i = FKT_ISA_SSE41; i <= FKT_ISA_AMX; i++)
        if ((have & isas[i].flag) == isas[i].flag) lib.isa = (enum fkt_dnn_isa)i;
out:
    return st;
}

static void start_once(void) { fkt_failure_save(&lib.failure, start()); }

fkt_status fkt_dnn_start(void)
{
    pthread_once(&lib.once, start_once);
    return lib.failure.status == FKT_OK ? FKT_OK : fkt_failure_restore(&lib.failure);
}

const char *fkt_cpu_library(void)
{
    static _Thread_local char text[48];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

enum fkt_dnn_isa fkt_dnn_isa(void) { return lib.isa; }
dnnl_engine_t fkt_dnn_engine(void) { return lib.engine; }

fkt_status fkt_cpu_isa(const char **name)
{
    fkt_status st = fkt_dnn_start();
    *name = isas[st == FKT_OK ? lib.isa : FKT_ISA_NONE].name;
    return st;
}

fkt_status fkt_cpu_amx(int *usable)
{
    fkt_status st = fkt_dnn_start();
    *usable = st == FKT_OK && lib.isa == FKT_ISA_AMX;
    return st;
}

fkt_status fkt_cpu_bf16(int *possible)
{
    fkt_status st = fkt_dnn_start();
    *possible = st == FKT_OK && lib.isa >= FKT_ISA_AVX512;
    return st;
}

int fkt_dnn_team(int size)
{
    int team = omp_get_max_threads();
    if (team != size) omp_set_num_threads(size);
    return team;
}

int fkt_dnn_alone(void) { return fkt_dnn_team(1); }

void fkt_dnn_together(int team)
{
    if (team != 1) omp_set_num_threads(team);
}

dnnl_format_tag_t fkt_dnn_tag(enum fkt_dnn_layout l)
{
    switch (l) {
    case FKT_NHWC: return dnnl_nhwc;
    case FKT_BLOCK8: return dnnl_nChw8c;
    case FKT_BLOCK16: return dnnl_nChw16c;
    case FKT_NCHW: break;
    }
    return dnnl_nchw;
}

dnnl_data_type_t fkt_dnn_type(enum fkt_precision p) { return p == FKT_PRECISION_BF16 ? dnnl_bf16 : dnnl_f32; }

/* The weights as the file has them, and as the operation may have them. */
static dnnl_status_t weight_descs(struct fkt_dnn_desc *file, struct fkt_dnn_desc *wanted, const struct fkt_dnn_conv *k)
{
    int64_t g = k->groups, o = k->out_c / g, c = k->in_c / g;
    dnnl_dims_t plain = {o, c, k->kernel_h, k->kernel_w}, grouped = {g, o, c, k->kernel_h, k->kernel_w};
    int rank = g > 1 ? 5 : 4;
    dnnl_format_tag_t tag = g > 1 ? dnnl_goihw : dnnl_oihw;
    int64_t *dims = g > 1 ? grouped : plain;
    dnnl_status_t s = fkt_dnn_desc_init(file, rank, dims, dnnl_f32, tag);
    if (s != dnnl_success) return s;
    return fkt_dnn_desc_init(wanted, rank, dims, fkt_dnn_type(k->precision), k->plain ? tag : dnnl_format_tag_any);
}

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *out, struct fkt_dnn_prim *p, const struct fkt_dnn_conv *k,
                                   const_dnnl_primitive_attr_t attr)
{
    const dnnl_dims_t in = {k->batch, k->in_c, k->in_h, k->in_w}, to = {k->batch, k->out_c, k->out_h, k->out_w};
    const dnnl_dims_t vector = {k->out_c};
    const dnnl_data_type_t type = fkt_dnn_type(k->precision);
    struct fkt_dnn_desc wanted = {0};
    const struct fkt_dnn_window w = {.algorithm = k->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
                                     .src = &p->src,
                                     .weights = &wanted,
                                     .bias = &p->bias,
                                     .dst = &p->dst,
                                     .strides = {k->stride, k->stride},
                                     .pads = {k->pad, k->pad},
                                     .ends = {k->pad + k->pad_after, k->pad + k->pad_after}};
    dnnl_status_t s = fkt_dnn_desc_init(&p->src, 4, in, type, fkt_dnn_tag(k->in_layout));
    if (s == dnnl_success) s = fkt_dnn_desc_init(&p->dst, 4, to, type, fkt_dnn_tag(k->out_layout));
    if (s == dnnl_success && k->bias) s = fkt_dnn_desc_init(&p->bias, 1, vector, dnnl_f32, dnnl_x);
    if (s == dnnl_success) s = weight_descs(&p->file, &wanted, k);
    if (s == dnnl_success) s = fkt_dnn_conv_forward(out, dnnl_forward_inference, &w, attr);
    fkt_dnn_desc_clear(&wanted);
    return s;
}

/* An activation as the library names it. */
struct eltwise {
    dnnl_alg_kind_t algorithm;
    float alpha, beta;
};

static struct eltwise eltwise_of(enum fkt_dnn_after after)
{
    switch (after) {
    case FKT_AFTER_RELU6: return (struct eltwise){dnnl_eltwise_clip, 0.0f, 6.0f};
    case FKT_AFTER_SILU: return (struct eltwise){dnnl_eltwise_swish, 1.0f, 0.0f};
    default: return (struct eltwise){dnnl_eltwise_relu, 0.0f, 0.0f};
    }
}

static dnnl_status_t append(dnnl_post_ops_t ops, int sum, enum fkt_dnn_after after)
{
    const struct eltwise e = eltwise_of(after);
    dnnl_status_t s = dnnl_success;
    if (sum) s = fkt_dnn_append_sum(ops);
    if (s == dnnl_success && after) s = fkt_dnn_append_eltwise(ops, e.algorithm, e.alpha, e.beta);
    return s;
}

static dnnl_status_t attributes(dnnl_primitive_attr_t *out, int sum, enum fkt_dnn_after after)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s = dnnl_primitive_attr_create(out);
    if (s == dnnl_success) s = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (s == dnnl_success) s = dnnl_post_ops_create(&ops);
    if (s == dnnl_success) s = append(ops, sum, after);
    if (s == dnnl_success) s = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return s;
}

/* From the description of an operation (s: what came of describing it) to a primitive; *usable = 0 where there is none
 * but the reference. */
static fkt_status finish(struct fkt_dnn_prim *p, const_dnnl_primitive_desc_t pd, dnnl_status_t s, int has_weights,
                         int *usable)
{
    const char *kernel = "";
    fkt_status st = FKT_OK;
    *usable = 0;
    if (s == dnnl_unimplemented) return FKT_OK;
    DNN_TRY(s, "describe an operation");
    DNN_TRY(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &kernel), "name a kernel");
    if (!strncmp(kernel, "ref", 3)) goto out;
    snprintf(p->kernel, sizeof p->kernel, "%s", kernel);
    if (has_weights) DNN_TRY(fkt_dnn_desc_query(&p->weights, pd, dnnl_query_weights_md), "describe weights");
    DNN_TRY(fkt_dnn_desc_query(&p->scratch, pd, dnnl_query_scratchpad_md), "describe a scratchpad");
    DNN_TRY(dnnl_primitive_create(&p->primitive, pd), "make an operation");
    *usable = 1;
out:
    return st;
}

fkt_status fkt_dnn_conv_new(struct fkt_dnn_prim **out, const struct fkt_dnn_conv *want)
{
    struct fkt_dnn_prim *p = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t s;
    int usable = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&p, 1));
    DNN_TRY(attributes(&attr, want->sum, want->after), "describe what follows a convolution");
    s = describe_conv(&pd, p, want, attr);
    FKT_TRY(finish(p, pd, s, 1, &usable));
    if (usable) {
        *out = p;
        p = NULL;
    }
out:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    fkt_dnn_prim_free(p);
    return st;
}

fkt_status fkt_dnn_after_new(struct fkt_dnn_prim **out, size_t count, enum fkt_precision precision,
                             enum fkt_dnn_after kind)
{
    struct fkt_dnn_prim *p = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_dims_t dims = {(int64_t)count};
    const struct eltwise e = eltwise_of(kind);
    dnnl_status_t s;
    int usable = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&p, 1));
    DNN_TRY(fkt_dnn_desc_init(&p->src, 1, dims, fkt_dnn_type(precision), dnnl_x), "describe an array");
    DNN_TRY(fkt_dnn_desc_copy(&p->dst, &p->src), "describe an array");
    DNN_TRY(attributes(&attr, 0, FKT_AFTER_NONE), "describe an activation");
    s = fkt_dnn_eltwise(&pd, e.algorithm, &p->src, e.alpha, e.beta, attr);
    FKT_TRY(finish(p, pd, s, 0, &usable));
    if (usable) {
        *out = p;
        p = NULL;
    }
out:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    fkt_dnn_prim_free(p);
    return st;
}

void fkt_dnn_prim_free(struct fkt_dnn_prim *p)
{
    if (!p) return;
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    fkt_dnn_desc_clear(&p->src);
    fkt_dnn_desc_clear(&p->dst);
    fkt_dnn_desc_clear(&p->weights);
    fkt_dnn_desc_clear(&p->bias);
    fkt_dnn_desc_clear(&p->scratch);
    fkt_dnn_desc_clear(&p->file);
    fkt_free(p);
}

size_t fkt_dnn_weight_bytes(const struct fkt_dnn_prim *p)
{
    return p->weights.there ? dnnl_memory_desc_get_size(DNN_DESC(&p->weights)) : 0;
}

size_t fkt_dnn_scratch_bytes(const struct fkt_dnn_prim *p)
{
    return p->scratch.there ? dnnl_memory_desc_get_size(DNN_DESC(&p->scratch)) : 0;
}

int fkt_dnn_plain(const struct fkt_dnn_prim *p)
{
    return dnnl_memory_desc_equal(DNN_DESC(&p->weights), DNN_DESC(&p->file));
}
const char *fkt_dnn_kernel(const struct fkt_dnn_prim *p) { return p->kernel; }

fkt_status fkt_dnn_execute(dnnl_primitive_t p, dnnl_stream_t stream, int n, const dnnl_exec_arg_t *args)
{
    fkt_status st;
    DNN_TRY(dnnl_primitive_execute(p, stream, n, args), "run an operation");
    DNN_TRY(dnnl_stream_wait(stream), "finish an operation");
out:
    return st;
}

fkt_status fkt_dnn_pack(const struct fkt_dnn_prim *p, void *packed, const float *plain)
{
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    fkt_status st;
    DNN_TRY(dnnl_memory_create(&from, DNN_DESC(&p->file), lib.engine, (void *)(uintptr_t)plain), "address weights");
    DNN_TRY(dnnl_memory_create(&to, DNN_DESC(&p->weights), lib.engine, packed), "address weights");
    DNN_TRY(dnnl_stream_create(&stream, lib.engine, dnnl_stream_default_flags), "open a stream");
    DNN_TRY(dnnl_reorder_primitive_desc_create(&pd, DNN_DESC(&p->file), lib.engine, DNN_DESC(&p->weights), lib.engine,
                                               NULL),
            "pack weights");
    DNN_TRY(dnnl_primitive_create(&reorder, pd), "pack weights");
    args[0].memory = from;
    args[1].memory = to;
    FKT_TRY(fkt_dnn_execute(reorder, stream, 2, args));
out:
    if (reorder) dnnl_primitive_destroy(reorder);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (stream) dnnl_stream_destroy(stream);
    if (to) dnnl_memory_destroy(to);
    if (from) dnnl_memory_destroy(from);
    return st;
}

static fkt_status attach(struct fkt_dnn_call *c, int arg, const struct fkt_dnn_desc *desc, const void *data)
{
    dnnl_exec_arg_t *a = &c->arg[c->n_args];
    fkt_status st;
    if (!desc->there) return FKT_OK;
    a->arg = arg;
    DNN_TRY(dnnl_memory_create(&a->memory, DNN_DESC(desc), lib.engine, (void *)(uintptr_t)data), "address memory");
    c->n_args++;
out:
    return st;
}

fkt_status fkt_dnn_call_new(struct fkt_dnn_call **out, const struct fkt_dnn_prim *p, const struct fkt_dnn_buffers *b)
{
    struct fkt_dnn_call *c = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&c, 1));
    c->primitive = p->primitive;
    DNN_TRY(dnnl_stream_create(&c->stream, lib.engine, dnnl_stream_default_flags), "open a stream");
    FKT_TRY(attach(c, DNNL_ARG_SRC, &p->src, b->src));
    FKT_TRY(attach(c, DNNL_ARG_DST, &p->dst, b->dst));
    FKT_TRY(attach(c, DNNL_ARG_WEIGHTS, &p->weights, b->weights));
    FKT_TRY(attach(c, DNNL_ARG_BIAS, &p->bias, b->bias));
    FKT_TRY(attach(c, DNNL_ARG_SCRATCHPAD, &p->scratch, b->scratch));
    *out = c;
    c = NULL;
out:
    fkt_dnn_call_free(c);
    return st;
}

void fkt_dnn_call_free(struct fkt_dnn_call *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_args; i++) dnnl_memory_destroy(c->arg[i].memory);
    if (c->stream) dnnl_stream_destroy(c->stream);
    fkt_free(c);
}

fkt_status fkt_dnn_call_run(struct fkt_dnn_call *c)
{
    return fkt_dnn_execute(c->primitive, c->stream, c->n_args, c->arg);
}
