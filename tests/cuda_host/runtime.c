/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - memory, streams, events and graphs of the emulation. Work runs when it is submitted, so waiting is free;
 * while a stream is captured work is recorded, and a graph's launch runs what was recorded. */
#include "cuda_host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADER = 256, MAX_JOINED = 8, MAX_DEVICES = 4 };

struct fkt_host_machine fkt_host_machine = {1, 9, 0, (size_t)1 << 34, cudaSuccess, 0};
static __thread cudaError_t last_error;
static __thread int device;
static size_t used[MAX_DEVICES];

struct node {
    void (*call)(const void *);
    void *arguments;
};
struct fkt_host_graph {
    struct node *node;
    size_t n, room;
    struct fkt_host_stream *joined[MAX_JOINED];
    size_t n_joined;
};
struct fkt_host_graph_exec {
    struct fkt_host_graph copy;
};
struct fkt_host_stream {
    struct fkt_host_graph *graph; /* while it is captured */
    size_t given, waited;         /* then: what it was given; how much of that another stream waits for */
};
struct fkt_host_event {
    struct fkt_host_graph *graph;
    struct fkt_host_stream *stream;
    size_t given; /* to the stream, so far */
    struct timespec at;
};

void fkt_host_set_error(cudaError_t e) { last_error = e; }

static cudaError_t result(cudaError_t e)
{
    if (fkt_host_machine.lost) e = fkt_host_machine.lost;
    if (e) last_error = e;
    return e;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = fkt_host_machine.lost ? fkt_host_machine.lost : last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void) { return fkt_host_machine.lost ? fkt_host_machine.lost : last_error; }

static const struct {
    cudaError_t e;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
};

const char *cudaGetErrorName(cudaError_t e)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].e == e) return errors[i].name;
    return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t e)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].e == e) return errors[i].text;
    return "unknown error";
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* ---- devices ---- */
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = fkt_host_machine.devices;
    return result(*count ? cudaSuccess : cudaErrorNoDevice);
}

static int exists(int d) { return d >= 0 && d < fkt_host_machine.devices && d < MAX_DEVICES; }

cudaError_t cudaSetDevice(int d)
{
    if (!exists(d)) return result(cudaErrorInvalidDevice);
    device = d;
    return result(cudaSuccess);
}

cudaError_t cudaGetDevice(int *d)
{
    *d = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int d)
{
    if (!exists(d)) return result(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulated card %d", d);
    p->totalGlobalMem = fkt_host_machine.memory;
    p->sharedMemPerBlock = 48 * 1024;
    p->major = fkt_host_machine.major;
    p->minor = fkt_host_machine.minor;
    p->multiProcessorCount = 4;
    p->maxThreadsPerBlock = 1024;
    p->warpSize = 32;
    return result(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int d)
{
    if (!exists(d)) return result(cudaErrorInvalidDevice);
    switch (attr) {
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 * 1024; break;
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    case cudaDevAttrComputeCapabilityMajor: *value = fkt_host_machine.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = fkt_host_machine.minor; break;
    default: return result(cudaErrorInvalidValue);
    }
    return result(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void) { return result(cudaSuccess); }

/* ---- memory ---- */
size_t fkt_host_memory_used(void) { return __atomic_load_n(&used[device], __ATOMIC_RELAXED); }

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    size_t taken = fkt_host_memory_used();
    *total = fkt_host_machine.memory;
    *available = taken < *total ? *total - taken : 0;
    return result(cudaSuccess);
}

/* New memory holds NaN, so that a result that read it unwritten shows. */
static void *allocate(size_t bytes)
{
    void *p = NULL;
    if (bytes > SIZE_MAX - HEADER || posix_memalign(&p, HEADER, bytes + HEADER)) return NULL;
    ((size_t *)p)[0] = bytes;
    ((size_t *)p)[1] = (size_t)device;
    memset((char *)p + HEADER, 0xff, bytes);
    return (char *)p + HEADER;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    size_t taken = __atomic_add_fetch(&used[device], bytes, __ATOMIC_RELAXED);
    *p = fkt_host_machine.lost || taken > fkt_host_machine.memory ? NULL : allocate(bytes);
    if (*p) return cudaSuccess;
    __atomic_sub_fetch(&used[device], bytes, __ATOMIC_RELAXED);
    return result(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *p)
{
    if (p) {
        size_t *head = (size_t *)((char *)p - HEADER);
        __atomic_sub_fetch(&used[head[1]], head[0], __ATOMIC_RELAXED);
        free(head);
    }
    return result(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    *p = allocate(bytes);
    return result(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }

cudaError_t cudaFreeHost(void *p)
{
    if (p) free((char *)p - HEADER);
    return result(cudaSuccess);
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    int value; /* where `from` is NULL */
};
static void do_copy(const void *p)
{
    const struct copy *c = p;
    if (c->from) memmove(c->to, c->from, c->bytes);
    else memset(c->to, c->value, c->bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct copy c = {to, from, bytes, 0};
    (void)kind;
    if (!bytes) return result(cudaSuccess);
    if (!to || !from) return result(cudaErrorInvalidValue);
    fkt_host_submit(stream, do_copy, &c, sizeof c);
    return result(cudaSuccess);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    struct copy c = {to, NULL, bytes, value};
    if (!bytes) return result(cudaSuccess);
    if (!to) return result(cudaErrorInvalidValue);
    fkt_host_submit(stream, do_copy, &c, sizeof c);
    return result(cudaSuccess);
}
cudaError_t cudaMemset(void *to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, NULL); }

/* ---- streams and events ---- */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    (void)flags;
    *s = calloc(1, sizeof **s);
    return result(*s ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaStreamCreate(cudaStream_t *s) { return cudaStreamCreateWithFlags(s, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority)
{
    (void)priority;
    return cudaStreamCreateWithFlags(s, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return result(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    free(s);
    return result(cudaSuccess);
}

/* A capture must not be waited for: on a card that invalidates it. */
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return result(s && s->graph ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t s) { return cudaStreamSynchronize(s); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    (void)flags;
    *e = calloc(1, sizeof **e);
    return result(*e ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    free(e);
    return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    e->graph = s ? s->graph : NULL;
    e->stream = s;
    e->given = s ? s->given : 0;
    clock_gettime(CLOCK_MONOTONIC, &e->at);
    return result(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    return result(e->graph ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t e) { return cudaEventSynchronize(e); }

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)((double)(to->at.tv_sec - from->at.tv_sec) * 1e3 + (double)(to->at.tv_nsec - from->at.tv_nsec) / 1e6);
    return result(cudaSuccess);
}

/* A stream that waits for an event of a captured one joins its capture. */
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void)flags;
    if (!s || !e->graph) return result(cudaSuccess);
    if (s->graph == e->graph) {
        if (e->stream->waited < e->given) e->stream->waited = e->given;
        return result(cudaSuccess);
    }
    if (s->graph || e->graph->n_joined == MAX_JOINED) return result(cudaErrorStreamCaptureUnsupported);
    s->graph = e->graph;
    s->given = 1; /* having joined is to be waited for */
    s->waited = 0;
    e->graph->joined[e->graph->n_joined++] = s;
    return result(cudaSuccess);
}

/* ---- graphs ---- */
void fkt_host_submit(cudaStream_t s, void (*call)(const void *), const void *arguments, size_t bytes)
{
    struct fkt_host_graph *g = s ? s->graph : NULL;
    if (fkt_host_machine.lost) return;
    if (g) s->given++;
    if (!g) {
        call(arguments);
        return;
    }
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 64;
        g->node = realloc(g->node, g->room * sizeof *g->node);
        if (!g->node) abort();
    }
    g->node[g->n].call = call;
    g->node[g->n].arguments = aligned_alloc(16, (bytes + 15) / 16 * 16);
    if (!g->node[g->n].arguments) abort();
    memcpy(g->node[g->n++].arguments, arguments, bytes);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    if (!s || s->graph) return result(cudaErrorStreamCaptureUnsupported);
    s->graph = calloc(1, sizeof *s->graph);
    if (!s->graph) return result(cudaErrorMemoryAllocation);
    s->graph->joined[s->graph->n_joined++] = s;
    return result(cudaSuccess);
}

/* A stream that joined and that nobody waited for is a fault. */
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    int left = 0;
    *graph = s ? s->graph : NULL;
    if (!*graph) return result(cudaErrorStreamCaptureUnsupported);
    for (size_t i = 0; i < (*graph)->n_joined; i++) {
        const struct fkt_host_stream *other = (*graph)->joined[i];
        (*graph)->joined[i]->graph = NULL;
        left |= other != s && other->waited < other->given;
    }
    if (!left) return result(cudaSuccess);
    (void)cudaGraphDestroy(*graph);
    *graph = NULL;
    return result(cudaErrorStreamCaptureUnjoined);
}

static void graph_clear(struct fkt_host_graph *g)
{
    for (size_t i = 0; i < g->n; i++) free(g->node[i].arguments);
    free(g->node);
}

/* The graph's nodes move to the executable one; instantiating it again would find none, and nobody does. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    if (!*exec) return result(cudaErrorMemoryAllocation);
    (*exec)->copy = *graph;
    memset(graph, 0, sizeof *graph);
    return result(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    if (s && s->graph) return result(cudaErrorStreamCaptureUnsupported);
    for (size_t i = 0; i < exec->copy.n && !fkt_host_machine.lost; i++)
        exec->copy.node[i].call(exec->copy.node[i].arguments);
    return result(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (graph) graph_clear(graph);
    free(graph);
    return result(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    if (exec) graph_clear(&exec->copy);
    free(exec);
    return result(cudaSuccess);
}
