/* SPDX-License-Identifier: Apache-2.0 */
/* conv_graph.c - builds an operation graph with cuDNN's descriptors, chooses its engine, executes it.
 *
 * A forward graph is  convolution [+ bias] [+ add] [activation]  with float between the operations and the spec's
 * precision at its ends. cuDNN's heuristic lists engines, best first, and a second list has those that always work;
 * the first engine that meets our conditions and accepts the graph is taken. Nothing is timed. Conditions:
 *   - not marked as non-deterministic (FEDKT_CUDA_ANY_ALGORITHM=1 lifts this, to measure what it costs: bench/gpu.py),
 *     no sums in reduced precision, no Fourier transform;
 *   - in f32 no tensor cores and no conversion of inputs: both mean TF32, which has 10 bits of mantissa;
 *   - at most 1 GiB of workspace; forward in bf16 at most 64 KiB where there is such an engine: those that need more
 *     divide the sums of some results and not of others, so that an image's result would depend on its place in the
 *     batch. A build that allowed none at all took 74 ms for 1,000 images through DC-AE's encoder, the one before it,
 *     without the rule, 60 ms; that the rule is the cause is presumed, not shown (docs/results.md).
 * Source: NVIDIA cuDNN, "Graph API", backend descriptor types. */
#include "nn/cuda/conv_graph.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UID_X = 'x', UID_W = 'w', UID_Y = 'y', UID_BIAS = 'b', UID_ADD = 'a', UID_BETWEEN = 256, CONFIGS_MAX = 64 };
static const int64_t WORKSPACE_MAX = (int64_t)1 << 30, WORKSPACE_SMALL = (int64_t)1 << 16;

/* While building. The first failure of the library or of memory stays; after it the calls do nothing. */
struct build {
    struct fkt_cuda_graph *g;
    const struct fkt_cuda_api *api;
    const struct fkt_cuda_conv_spec *spec;
    cudnnStatus_t failed;
    fkt_status st;
    int64_t between; /* id of the next value between two operations */
    int64_t workspace_max;
};

static int fine(const struct build *b) { return b->failed == CUDNN_STATUS_SUCCESS && b->st == FKT_OK; }

static cudnnBackendDescriptor_t make(struct build *b, cudnnBackendDescriptorType_t type)
{
    struct fkt_cuda_graph *g = b->g;
    cudnnBackendDescriptor_t d = NULL;
    if (!fine(b)) return NULL;
    if (g->n_made == g->room) {
        b->st = fkt_realloc(&g->made, g->room + 64);
        if (b->st != FKT_OK) return NULL;
        g->room += 64;
    }
    b->failed = b->api->cudnnBackendCreateDescriptor(type, &d);
    if (!fine(b)) return NULL;
    g->made[g->n_made++] = d;
    return d;
}

static void set(struct build *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *x)
{
    if (fine(b)) b->failed = b->api->cudnnBackendSetAttribute(d, name, type, n, x);
}

static void set_one(struct build *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    cudnnBackendDescriptor_t x)
{
    set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
}

static void finish(struct build *b, cudnnBackendDescriptor_t d)
{
    if (fine(b)) b->failed = b->api->cudnnBackendFinalize(d);
}

/* Dimensions are (n, c, h, w), or (k, c, kh, kw); channels are next to each other in memory. */
static cudnnBackendDescriptor_t tensor(struct build *b, int64_t uid, const int64_t dim[4], cudnnDataType_t type)
{
    cudnnBackendDescriptor_t t = make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t stride[4] = {dim[1] * dim[2] * dim[3], 1, dim[1] * dim[3], dim[1]}, align = 16;
    bool inner = uid >= UID_BETWEEN;
    set(b, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(b, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    set(b, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set(b, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(b, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set(b, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner);
    finish(b, t);
    return t;
}

static cudnnDataType_t type_of(enum fkt_precision p)
{
    return p == FKT_PRECISION_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static cudnnBackendDescriptor_t window(struct build *b)
{
    const struct fkt_cuda_conv_spec *s = b->spec;
    cudnnBackendDescriptor_t c = make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t two = 2, one[2] = {1, 1}, pad[2] = {s->pad, s->pad}, stride[2] = {s->stride, s->stride};
    set(b, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    set(b, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(b, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &two);
    set(b, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
    set(b, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    set(b, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(b, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    finish(b, c);
    return c;
}

/* The convolution, in the direction of the spec. */
static cudnnBackendDescriptor_t convolution(struct build *b, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t w,
                                            cudnnBackendDescriptor_t y)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
    } way[] = {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
               {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
               {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
    const int i = (int)b->spec->way;
    cudnnBackendDescriptor_t c = window(b), o = make(b, way[i].type);
    float one = 1, zero = 0; /* of the type of the sums: as double they are read as 0 */
    set_one(b, o, way[i].conv, c);
    set_one(b, o, way[i].x, x);
    set_one(b, o, way[i].w, w);
    set_one(b, o, way[i].y, y);
    set(b, o, way[i].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(b, o, way[i].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish(b, o);
    return o;
}

/* y = x + operand, or y = mode(x) where operand is NULL. */
static cudnnBackendDescriptor_t pointwise(struct build *b, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                          cudnnBackendDescriptor_t operand, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t p = make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), o;
    cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT;
    double beta = 1;
    set(b, p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(b, p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &arithmetic);
    if (mode == CUDNN_POINTWISE_SWISH_FWD) set(b, p, CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, 1, &beta);
    finish(b, p);
    o = make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_one(b, o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
    set_one(b, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (operand) set_one(b, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, operand);
    set_one(b, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finish(b, o);
    return o;
}

/* All operations of the graph in `op`; gives how many. */
static int operations(struct build *b, enum fkt_precision weights, cudnnBackendDescriptor_t op[4])
{
    const struct fkt_cuda_conv_spec *s = b->spec;
    const cudnnDataType_t io = type_of(s->precision), f32 = CUDNN_DATA_FLOAT;
    const int64_t in[4] = {s->n, s->c, s->h, s->w}, bias[4] = {1, s->k, 1, 1};
    const int64_t filter[4] = {s->k, s->c / s->groups, s->kernel, s->kernel};
    const int64_t to[4] = {s->n, s->k, (s->h + 2 * s->pad - s->kernel) / s->stride + 1,
                           (s->w + 2 * s->pad - s->kernel) / s->stride + 1};
    int left = (s->bias != 0) + (s->add != 0) + (s->act != FKT_CUDA_ACT_NONE), n = 0;
    cudnnBackendDescriptor_t x = tensor(b, UID_X, in, io), w = tensor(b, UID_W, filter, type_of(weights)), y, next;
    y = left ? tensor(b, b->between++, to, f32) : tensor(b, UID_Y, to, io);
    op[n++] = convolution(b, x, w, y);
    if (s->bias) {
        next = --left ? tensor(b, b->between++, to, f32) : tensor(b, UID_Y, to, io);
        op[n++] = pointwise(b, CUDNN_POINTWISE_ADD, y, tensor(b, UID_BIAS, bias, f32), next);
        y = next;
    }
    if (s->add) {
        next = --left ? tensor(b, b->between++, to, f32) : tensor(b, UID_Y, to, io);
        op[n++] = pointwise(b, CUDNN_POINTWISE_ADD, y, tensor(b, UID_ADD, to, io), next);
        y = next;
    }
    if (s->act != FKT_CUDA_ACT_NONE)
        op[n++] = pointwise(b, s->act == FKT_CUDA_ACT_RELU ? CUDNN_POINTWISE_RELU_FWD : CUDNN_POINTWISE_SWISH_FWD, y,
                            NULL, tensor(b, UID_Y, to, io));
    return n;
}

static int must_repeat(void)
{
    const char *s = getenv("FEDKT_CUDA_ANY_ALGORITHM");
    return !s || strcmp(s, "1") != 0;
}

static int allowed(struct build *b, cudnnBackendDescriptor_t config, enum fkt_cuda_graph_choice choice)
{
    cudnnBackendDescriptor_t engine = make(b, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    int tensor_cores = 0, f32 = b->spec->precision == FKT_PRECISION_F32;
    if (!fine(b)) return 0;
    if (b->api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                         &engine) != CUDNN_STATUS_SUCCESS)
        return 0;
    n = 0;
    if (b->api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                         CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note) != CUDNN_STATUS_SUCCESS)
        return 0;
    for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        if (note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && must_repeat()) return 0;
        if (note[i] == CUDNN_NUMERICAL_NOTE_FFT || note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
            return 0;
        if (note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) tensor_cores = 1;
        if (f32 && note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) return 0;
    }
    return f32 ? !tensor_cores : choice == FKT_CUDA_ANY_ENGINE || tensor_cores;
}

/* 1: the engine accepts the graph, and g->plan is set. A refusal is no failure. */
static int accepts(struct build *b, cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t plan = make(b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t bytes = 0, n = 0;
    set(b, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &b->g->h->cudnn);
    set_one(b, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (!fine(b) || b->api->cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) return 0;
    if (b->api->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                         &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > b->workspace_max)
        return 0;
    b->g->plan = plan;
    b->g->workspace = bytes > 0 ? (size_t)bytes : 0;
    return 1;
}

/* Tries the engines of one of the library's lists, in its order. A list that cannot be made is empty. */
static void choose(struct build *b, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                   enum fkt_cuda_graph_choice choice)
{
    cudnnBackendDescriptor_t list = make(b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), config[CONFIGS_MAX];
    int64_t n = 0, got = 0;
    set_one(b, list, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(b, list, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!fine(b) || b->api->cudnnBackendFinalize(list) != CUDNN_STATUS_SUCCESS) return;
    if (b->api->cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n,
                                         NULL) != CUDNN_STATUS_SUCCESS)
        return;
    if (n > CONFIGS_MAX) n = CONFIGS_MAX;
    for (int64_t i = 0; i < n; i++) config[i] = make(b, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!n || !fine(b) ||
        b->api->cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &got,
                                         config) != CUDNN_STATUS_SUCCESS)
        return;
    for (int64_t i = 0; i < got && i < n && !b->g->plan; i++)
        if (allowed(b, config[i], choice)) (void)accepts(b, config[i]);
}

fkt_status fkt_cuda_graph_new(struct fkt_cuda_graph **out, struct fkt_cuda_handles *h,
                              const struct fkt_cuda_conv_spec *s, enum fkt_precision weights,
                              enum fkt_cuda_graph_choice choice, const char **why)
{
    struct build b = {.api = h->api,
                      .spec = s,
                      .failed = CUDNN_STATUS_SUCCESS,
                      .st = FKT_OK,
                      .between = UID_BETWEEN,
                      .workspace_max = WORKSPACE_SMALL};
    cudnnBackendDescriptor_t op[4] = {NULL, NULL, NULL, NULL}, graph;
    int n;
    *out = NULL;
    b.st = fkt_alloc(&b.g, 1);
    if (b.st != FKT_OK) return b.st;
    b.g->h = h;
    b.g->bias = s->bias;
    b.g->add = s->add;
    n = operations(&b, weights, op);
    graph = make(&b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(&b, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &h->cudnn);
    set(&b, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, op);
    finish(&b, graph);
    if (s->way == FKT_CUDA_FORWARD && s->precision == FKT_PRECISION_BF16) choose(&b, graph, CUDNN_HEUR_MODE_A, choice);
    b.workspace_max = WORKSPACE_MAX;
    if (fine(&b) && !b.g->plan) choose(&b, graph, CUDNN_HEUR_MODE_A, choice);
    if (choice == FKT_CUDA_ANY_ENGINE && fine(&b) && !b.g->plan) choose(&b, graph, CUDNN_HEUR_MODE_FALLBACK, choice);
    if (b.st == FKT_OK && b.g->plan) *out = b.g;
    else fkt_cuda_graph_free(b.g);
    *why = b.failed == CUDNN_STATUS_SUCCESS ? "no engine" : h->api->cudnnGetErrorString(b.failed);
    return b.st;
}

void fkt_cuda_graph_free(struct fkt_cuda_graph *g)
{
    if (!g) return;
    for (size_t i = g->n_made; i-- > 0;) (void)g->h->api->cudnnBackendDestroyDescriptor(g->made[i]);
    fkt_free(g->made);
    fkt_free(g);
}

fkt_status fkt_cuda_graph_run(const struct fkt_cuda_graph *g, void *x, void *w, const float *bias, const void *add,
                              void *y, void *workspace, cudaStream_t stream)
{
    const struct fkt_cuda_api *api = g->h->api;
    int64_t uid[5] = {UID_X, UID_W, UID_Y, 0, 0}, n = 3;
    void *at[5] = {x, w, y, NULL, NULL};
    cudnnBackendDescriptor_t pack = NULL;
    cudnnHandle_t handle;
    cudnnStatus_t e;
    if (g->bias) {
        at[n] = (void *)(uintptr_t)bias; /* the library takes everything as writable */
        uid[n++] = UID_BIAS;
    }
    if (g->add) {
        at[n] = (void *)(uintptr_t)add;
        uid[n++] = UID_ADD;
    }
    e = api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
#define THEN(call)                                                                                                     \
    if (e == CUDNN_STATUS_SUCCESS) e = (call)
    THEN(api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid));
    THEN(api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at));
    THEN(api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
    THEN(api->cudnnBackendFinalize(pack));
    pthread_mutex_lock(&g->h->lock);
    handle = fkt_cuda_dnn_of(g->h, stream);
    THEN(handle ? api->cudnnBackendExecute(handle, g->plan, pack) : CUDNN_STATUS_BAD_PARAM);
    pthread_mutex_unlock(&g->h->lock);
#undef THEN
    if (pack) (void)api->cudnnBackendDestroyDescriptor(pack);
    if (e == CUDNN_STATUS_SUCCESS) return FKT_OK;
    return fkt_fail_hint(FKT_E_STATE, "use the processor instead", "cuDNN failed in a convolution: %s",
                         api->cudnnGetErrorString(e));
}
