/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c - convolutions by cuDNN: which graph runs, and what our own kernels add to it.
 *
 * A forward convolution runs as one graph with everything fused where cuDNN has a fast engine for that, else as a bare
 * convolution and one kernel for bias, addition and activation. What is fast was measured on an H200 (cuDNN 9.19): in
 * f32 an engine for anything but bias and ReLU reaches 1 TFLOP/s of 35; in bf16 an engine for an image's channels takes
 * 292 us where the bare one takes 155 and the kernel 62 (1024 images of 32 px, 64 channels out). ReLU6 is always in the
 * kernel: whether an engine takes it is not measured. Gradients of weights
 * are float. From bf16 cuDNN may give them only in bf16; then they are made in the workspace, rounded once, and
 * widened.
 *
 * A graph depends on its spec and on the card, takes up to a second to make (engines are compiled), and is a few
 * kilobytes: it is kept until the process ends, and equal convolutions of all networks share it.
 *
 * FEDKT_CUDA_FUSION=off in the environment leaves graphs bare: for measurements of what fusion brings. */
#include "nn/cuda/conv.h"
#include "nn/cuda/conv_graph.h"
#include "nn/cuda/kernels.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

struct fkt_cuda_conv {
    struct fkt_cuda_conv *next; /* of all that were made */
    const struct fkt_cuda_device *device;
    struct fkt_cuda_conv_spec spec;
    struct fkt_cuda_graph *graph;
    int fused; /* the graph has bias, addition and activation */
    int wide;  /* gradients of weights come in bf16 */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all */
static struct fkt_cuda_conv *all;

int fkt_cuda_conv_channels(int c, enum fkt_precision precision)
{
    int unit = precision == FKT_PRECISION_BF16 ? 8 : 4;
    return (c + unit - 1) / unit * unit;
}

static int same(const struct fkt_cuda_conv_spec *a, const struct fkt_cuda_conv_spec *b)
{
    return a->n == b->n && a->h == b->h && a->w == b->w && a->c == b->c && a->k == b->k && a->kernel == b->kernel &&
           a->stride == b->stride && a->pad == b->pad && a->groups == b->groups && a->precision == b->precision &&
           a->way == b->way && !a->bias == !b->bias && !a->add == !b->add && a->act == b->act;
}

static int fusion_wanted(void)
{
    const char *s = getenv("FEDKT_CUDA_FUSION");
    return !s || strcmp(s, "off") != 0;
}

/* See the top of the file. */
static int fusion_pays(const struct fkt_cuda_conv_spec *s)
{
    if (s->act == FKT_CUDA_ACT_RELU6) return 0;
    if (s->precision == FKT_PRECISION_F32) return s->bias && !s->add && s->act != FKT_CUDA_ACT_SILU;
    return s->c > 8;
}

static size_t weights_of(const struct fkt_cuda_conv_spec *s)
{
    return (size_t)s->k * (size_t)(s->c / s->groups) * (size_t)s->kernel * (size_t)s->kernel;
}

/* The bytes of the graph's own workspace, so that what follows it is aligned. */
static size_t before_weights(const struct fkt_cuda_conv *c)
{
    return (c->graph->workspace + ALIGN - 1) / ALIGN * ALIGN;
}

static fkt_status choose(struct fkt_cuda_conv *c, struct fkt_cuda_handles *h, const char **why)
{
    const struct fkt_cuda_conv_spec *s = &c->spec;
    struct fkt_cuda_conv_spec bare = *s;
    int extra = s->bias || s->add || s->act != FKT_CUDA_ACT_NONE, bf16 = s->precision == FKT_PRECISION_BF16;
    fkt_status st = FKT_OK;
    bare.bias = bare.add = 0;
    bare.act = FKT_CUDA_ACT_NONE;
    c->fused = extra && fusion_wanted() && fusion_pays(s);
    if (c->fused)
        FKT_TRY(fkt_cuda_graph_new(&c->graph, h, s, s->precision, bf16 ? FKT_CUDA_TENSOR_ENGINE : FKT_CUDA_ANY_ENGINE,
                                   why));
    if (c->graph) goto out;
    c->fused = 0;
    if (s->way == FKT_CUDA_BACK_WEIGHTS && bf16) {
        FKT_TRY(fkt_cuda_graph_new(&c->graph, h, &bare, FKT_PRECISION_F32, FKT_CUDA_TENSOR_ENGINE, why));
        if (c->graph) goto out;
        c->wide = 1;
    }
    FKT_TRY(fkt_cuda_graph_new(&c->graph, h, &bare, s->precision, FKT_CUDA_ANY_ENGINE, why));
out:
    return st;
}

static fkt_status make(struct fkt_cuda_conv **out, struct fkt_cuda_device *d, const struct fkt_cuda_conv_spec *s)
{
    static const char *const way[] = {"a convolution", "the input's gradient of a convolution",
                                      "the weights' gradient of a convolution"};
    struct fkt_cuda_handles *h = fkt_cuda_handles(d);
    struct fkt_cuda_conv *c = NULL;
    const char *why = "";
    fkt_status st;
    FKT_TRY(fkt_alloc(&c, 1));
    c->device = d;
    c->spec = *s;
    pthread_mutex_lock(&h->lock);
    st = choose(c, h, &why);
    pthread_mutex_unlock(&h->lock);
    if (st == FKT_OK && !c->graph)
        st = fkt_fail_hint(FKT_E_STATE, "use the processor instead",
                           "cuDNN cannot compute %s of %d x %d x %d x %d to %d channels, window %d, stride %d: %s",
                           way[s->way], s->n, s->h, s->w, s->c, s->k, s->kernel, s->stride, why);
    if (st != FKT_OK) goto out;
    c->next = all;
    all = *out = c;
    c = NULL;
out:
    fkt_free(c);
    return st;
}

fkt_status fkt_cuda_conv_new(struct fkt_cuda_conv **out, struct fkt_cuda_device *d, const struct fkt_cuda_conv_spec *s)
{
    fkt_status st = FKT_OK;
    *out = NULL;
    pthread_mutex_lock(&lock);
    for (struct fkt_cuda_conv *c = all; c && !*out; c = c->next)
        if (c->device == d && same(&c->spec, s)) *out = c;
    if (!*out) st = make(out, d, s);
    pthread_mutex_unlock(&lock);
    return st;
}

size_t fkt_cuda_conv_workspace(const struct fkt_cuda_conv *c)
{
    return c->wide ? before_weights(c) + weights_of(&c->spec) * 2 : c->graph->workspace;
}

static fkt_status gradient_in_bf16(const struct fkt_cuda_conv *c, void *x, float *w, void *y, void *workspace,
                                   cudaStream_t stream)
{
    void *narrow = (char *)workspace + before_weights(c);
    int k = c->spec.k, n = (int)(weights_of(&c->spec) / (size_t)k);
    struct fkt_cuda_tensor to = {w, 1, 1, k, n, FKT_PRECISION_F32}, from = {narrow, 1, 1, k, n, FKT_PRECISION_BF16};
    fkt_status st;
    FKT_TRY(fkt_cuda_graph_run(c->graph, x, narrow, NULL, NULL, y, workspace, stream));
    FKT_TRY(fkt_cuda_cast(&to, &from, stream));
out:
    return st;
}

fkt_status fkt_cuda_conv_run(const struct fkt_cuda_conv *c, void *x, void *w, const float *bias, const void *add,
                             void *y, void *workspace, cudaStream_t stream)
{
    const struct fkt_cuda_conv_spec *s = &c->spec;
    struct fkt_cuda_tensor to = {y,
                                 s->n,
                                 (s->h + 2 * s->pad - s->kernel) / s->stride + 1,
                                 (s->w + 2 * s->pad - s->kernel) / s->stride + 1,
                                 s->k,
                                 s->precision};
    fkt_status st;
    if (c->wide) return gradient_in_bf16(c, x, w, y, workspace, stream);
    FKT_TRY(fkt_cuda_graph_run(c->graph, x, w, bias, add, y, workspace, stream));
    if (!c->fused && (s->bias || s->add || s->act != FKT_CUDA_ACT_NONE))
        FKT_TRY(fkt_cuda_epilogue(&to, s->bias ? bias : NULL, s->add ? add : NULL, s->act, stream));
out:
    return st;
}

/* It stays: see above. */
void fkt_cuda_conv_free(struct fkt_cuda_conv *c) { (void)c; }

void fkt_cuda_conv_forget(void)
{
    pthread_mutex_lock(&lock);
    while (all) {
        struct fkt_cuda_conv *c = all;
        all = c->next;
        fkt_cuda_graph_free(c->graph);
        fkt_free(c);
    }
    pthread_mutex_unlock(&lock);
}
