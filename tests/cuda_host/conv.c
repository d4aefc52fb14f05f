/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c - nn/cuda/conv.h in plain loops; sums in double. */
#include "nn/cuda/conv.h"

#include "cuda_host.h"
#include "loops.h"

#include "base/alloc.h"

struct fkt_cuda_conv {
    struct fkt_cuda_conv_spec s;
};

struct call {
    struct fkt_cuda_conv_spec s;
    void *x, *w, *y;
    const float *bias;
    const void *add;
};

/* Of one pair of positions: a result, an input, and where the window has its weights. */
struct pair {
    size_t y, x, w;
};

int fkt_cuda_conv_channels(int c, enum fkt_precision precision)
{
    int unit = precision == FKT_PRECISION_BF16 ? 8 : 4;
    return (c + unit - 1) / unit * unit;
}

fkt_status fkt_cuda_conv_new(struct fkt_cuda_conv **out, struct fkt_cuda_device *d, const struct fkt_cuda_conv_spec *s)
{
    fkt_status st;
    (void)d;
    *out = NULL;
    FKT_TRY(fkt_alloc(out, 1));
    (*out)->s = *s;
out:
    return st;
}

/* A few bytes, so that callers must provide what they are asked for. */
size_t fkt_cuda_conv_workspace(const struct fkt_cuda_conv *c) { return c->s.way == FKT_CUDA_FORWARD ? 0 : 256; }

static size_t side(int x, const struct fkt_cuda_conv_spec *s)
{
    return (size_t)((x + 2 * s->pad - s->kernel) / s->stride + 1);
}

static int next_place(size_t at[5], const size_t end[5])
{
    for (int i = 4; i >= 0; i--) {
        if (++at[i] < end[i]) return 1;
        at[i] = 0;
    }
    return 0;
}

/* Calls `with` for every result pixel and window position inside the map: first channels of each. */
static void each_pair(const struct call *k, const float *x, const float *w, const float *y, double *sum,
                      void (*with)(const struct call *, const float *, const float *, const float *, double *,
                                   struct pair))
{
    const struct fkt_cuda_conv_spec *s = &k->s;
    size_t end[5] = {(size_t)s->n, side(s->h, s), side(s->w, s), (size_t)s->kernel, (size_t)s->kernel}, at[5] = {0};
    size_t per = (size_t)(s->c / s->groups);
    do {
        size_t iy = at[1] * (size_t)s->stride + at[3] - (size_t)s->pad; /* huge outside */
        size_t ix = at[2] * (size_t)s->stride + at[4] - (size_t)s->pad;
        struct pair p = {((at[0] * end[1] + at[1]) * end[2] + at[2]) * (size_t)s->k,
                         ((at[0] * (size_t)s->h + iy) * (size_t)s->w + ix) * (size_t)s->c,
                         (at[3] * end[4] + at[4]) * per};
        if (iy < (size_t)s->h && ix < (size_t)s->w) with(k, x, w, y, sum, p);
    } while (next_place(at, end));
}

static void forward(const struct call *k, const float *x, const float *w, const float *y, double *sum, struct pair p)
{
    size_t per = (size_t)(k->s.c / k->s.groups), outs = (size_t)(k->s.k / k->s.groups);
    size_t step = (size_t)(k->s.kernel * k->s.kernel) * per;
    (void)y;
    for (size_t o = 0; o < (size_t)k->s.k; o++) {
        const float *a = x + p.x + o / outs * per, *b = w + p.w + o * step;
        double total = 0;
        for (size_t c = 0; c < per; c++) total += (double)a[c] * (double)b[c];
        sum[p.y + o] += total;
    }
}

static void back_data(const struct call *k, const float *x, const float *w, const float *y, double *sum, struct pair p)
{
    size_t per = (size_t)(k->s.c / k->s.groups), outs = (size_t)(k->s.k / k->s.groups);
    size_t step = (size_t)(k->s.kernel * k->s.kernel) * per;
    (void)x;
    for (size_t o = 0; o < (size_t)k->s.k; o++) {
        double *to = sum + p.x + o / outs * per;
        for (size_t c = 0; c < per; c++) to[c] += (double)y[p.y + o] * (double)w[p.w + o * step + c];
    }
}

static void back_weights(const struct call *k, const float *x, const float *w, const float *y, double *sum,
                         struct pair p)
{
    size_t per = (size_t)(k->s.c / k->s.groups), outs = (size_t)(k->s.k / k->s.groups);
    size_t step = (size_t)(k->s.kernel * k->s.kernel) * per;
    (void)w;
    for (size_t o = 0; o < (size_t)k->s.k; o++) {
        double *to = sum + p.w + o * step;
        for (size_t c = 0; c < per; c++) to[c] += (double)y[p.y + o] * (double)x[p.x + o / outs * per + c];
    }
}

static void run(const void *arguments)
{
    const struct call *k = arguments;
    const struct fkt_cuda_conv_spec *s = &k->s;
    size_t nx = (size_t)s->n * (size_t)s->h * (size_t)s->w * (size_t)s->c;
    size_t ny = (size_t)s->n * side(s->h, s) * side(s->w, s) * (size_t)s->k;
    size_t nw = (size_t)s->k * (size_t)(s->kernel * s->kernel) * (size_t)(s->c / s->groups);
    float *x = NULL, *w = NULL, *y = NULL;
    size_t count = s->way == FKT_CUDA_FORWARD ? ny : s->way == FKT_CUDA_BACK_DATA ? nx : nw;
    double *sum = calloc(count + 1, sizeof *sum);
    if (!sum) abort();
    if (s->way != FKT_CUDA_BACK_DATA) x = fkt_loop_floats(k->x, nx, s->precision);
    if (s->way != FKT_CUDA_BACK_WEIGHTS) w = fkt_loop_floats(k->w, nw, s->precision);
    if (s->way != FKT_CUDA_FORWARD) y = fkt_loop_floats(k->y, ny, s->precision);
    each_pair(k, x, w, y, sum,
              s->way == FKT_CUDA_FORWARD     ? forward
              : s->way == FKT_CUDA_BACK_DATA ? back_data
                                             : back_weights);
    for (size_t i = 0; i < count; i++) {
        if (s->way == FKT_CUDA_FORWARD) {
            if (s->bias) sum[i] += (double)k->bias[i % (size_t)s->k];
            if (s->add) sum[i] += fkt_loop_get(k->add, i, s->precision);
            fkt_loop_put(k->y, i, s->precision, fkt_loop_act(sum[i], s->act));
        } else if (s->way == FKT_CUDA_BACK_DATA) {
            fkt_loop_put(k->x, i, s->precision, sum[i]);
        } else {
            ((float *)k->w)[i] = (float)sum[i];
        }
    }
    free(x);
    free(w);
    free(y);
    free(sum);
}

fkt_status fkt_cuda_conv_run(const struct fkt_cuda_conv *c, void *x, void *w, const float *bias, const void *add,
                             void *y, void *workspace, cudaStream_t stream)
{
    struct call k = {c->s, x, w, y, bias, add};
    if (!fkt_host_stream_known(stream)) return fkt_fail(FKT_E_ARG, "a convolution on a stream without a handle");
    if (fkt_cuda_conv_workspace(c) && !workspace) return fkt_fail(FKT_E_ARG, "a convolution without its workspace");
    fkt_host_submit(stream, run, &k, sizeof k);
    return fkt_cuda_check(cudaGetLastError(), "running a convolution");
}

void fkt_cuda_conv_free(struct fkt_cuda_conv *c) { fkt_free(c); }
