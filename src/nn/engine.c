/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - one plan, many workspaces: any number of threads run the same network at once.
 *
 * A call takes a free workspace (or makes one), uses it alone, and returns it: there are as many workspaces as threads
 * ever ran at the same time, or as many as the backend allows. Batches are cut to the plan's batch and the last one is
 * padded (with zeros, or as `begin` does it), since libraries choose kernels by batch size and an image must go through
 * the same kernels wherever it is in a batch.
 *
 * Where a backend has begin and finish, a call of several batches takes a second workspace if one can be had at once,
 * and begins a batch before it finishes the one before it:
 *
 *   begin 0, begin 1, finish 0, begin 2, finish 1, ...
 *
 * It never waits for the second: two threads that hold one each would wait for ever.
 *
 * A backend that does not know bytes gets floats: pixels by the table on the way in, and on the way out clamped and
 * rounded half up. */
#include "nn/engine.h"

#include "base/alloc.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

struct workspace {
    struct workspace *next;
    void *work;       /* the backend's */
    float *in, *out;  /* (batch, ...) for an incomplete batch, or one that is converted; NULL: never needed */
    size_t n;         /* images of the batch that was started and is not finished */
    const void *from; /* its input, where `run` does all of it in finish */
    void *to;         /* where its result belongs */
};

struct fkt_engine {
    const struct fkt_backend *backend;
    void *plan;
    struct fkt_engine_spec spec;
    struct fkt_shape input, output;
    float pixels[3][256];        /* the spec's table */
    int convert_in, convert_out; /* bytes that the backend does not know */
    struct fkt_engine_facts facts;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t freed; /* a workspace came back, or one could not be made */
    struct workspace *free_workspaces;
    unsigned made, limit; /* workspaces that exist or are being made; at most so many, 0: no limit */
};

static size_t numbers(struct fkt_shape s) { return (size_t)s.c * s.h * s.w; }

static fkt_status check_spec(const struct fkt_engine *e, const struct fkt_engine_spec *s)
{
    if (s->pixels_in && e->input.c != 3)
        return fkt_fail(FKT_E_ARG, "a network with %u input channels cannot take bytes: 3 are needed", e->input.c);
    if (s->bytes_out && e->output.c != 3)
        return fkt_fail(FKT_E_ARG, "a network with %u output channels cannot give bytes: 3 are needed", e->output.c);
    if (s->bytes_out && !(s->out_scale > 0 && isfinite(s->out_scale) && isfinite(s->out_shift)))
        return fkt_fail(FKT_E_ARG, "the scale of bytes must be finite and positive");
    return FKT_OK;
}

fkt_status fkt_engine_new(struct fkt_engine **out, const struct fkt_backend *backend, const struct fkt_net *net,
                          const struct fkt_weights *weights, const struct fkt_engine_spec *spec)
{
    struct fkt_engine *e = NULL;
    struct fkt_engine_spec shown = *spec; /* what the backend sees */
    struct fkt_shape *shapes = NULL;
    fkt_status st;
    *out = NULL;
    if (!spec->batch || spec->batch > 4096) return fkt_fail(FKT_E_ARG, "a batch is 1 to 4096 images");
    FKT_TRY(fkt_alloc(&shapes, net->n_ops + 1));
    FKT_TRY(fkt_net_shapes(net, spec->height, spec->width, shapes));
    FKT_TRY(fkt_alloc(&e, 1));
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->freed, NULL);
    e->backend = backend;
    e->spec = *spec;
    e->input = shapes[0];
    e->output = shapes[net->n_ops];
    FKT_TRY(check_spec(e, spec));
    if (spec->pixels_in) {
        memcpy(e->pixels, spec->pixels_in, sizeof e->pixels);
        e->spec.pixels_in = (const float(*)[256])e->pixels;
    }
    shown.pixels_in = backend->bytes ? e->spec.pixels_in : NULL;
    shown.bytes_out = backend->bytes && spec->bytes_out;
    e->convert_in = spec->pixels_in && !backend->bytes;
    e->convert_out = spec->bytes_out && !backend->bytes;
    e->facts.flops = fkt_net_flops(net, shapes);
    FKT_TRY(backend->plan(&e->plan, net, shapes, weights, &shown, &e->facts));
    e->limit = e->facts.max_workspaces;
    *out = e;
    e = NULL;
out:
    fkt_engine_free(e);
    fkt_free(shapes);
    return st;
}

static void workspace_free(const struct fkt_engine *e, struct workspace *d)
{
    if (!d) return;
    if (d->work) e->backend->workspace_free(d->work);
    fkt_free(d->in);
    fkt_free(d->out);
    fkt_free(d);
}

void fkt_engine_free(struct fkt_engine *e)
{
    if (!e) return;
    while (e->free_workspaces) {
        struct workspace *d = e->free_workspaces;
        e->free_workspaces = d->next;
        workspace_free(e, d);
    }
    if (e->plan) e->backend->plan_free(e->plan);
    pthread_cond_destroy(&e->freed);
    pthread_mutex_destroy(&e->lock);
    fkt_free(e);
}

static fkt_status workspace_new(struct workspace **out, const struct fkt_engine *e)
{
    struct workspace *d = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&d, 1));
    FKT_TRY(e->backend->workspace(&d->work, e->plan));
    if (!e->backend->begin || e->convert_in) FKT_TRY(fkt_alloc(&d->in, e->spec.batch * numbers(e->input)));
    if (!e->backend->begin || e->convert_out) FKT_TRY(fkt_alloc(&d->out, e->spec.batch * numbers(e->output)));
    *out = d;
    d = NULL;
out:
    workspace_free(e, d);
    return st;
}

/* Makes one; the lock is held before and after, and not while it is made. Where memory is short and others exist,
 * there will be no more than those, *out is NULL and the status is good: the memory of a card is fixed. */
static fkt_status make_workspace(struct fkt_engine *e, struct workspace **out)
{
    fkt_status st;
    e->made++;
    pthread_mutex_unlock(&e->lock);
    st = workspace_new(out, e);
    pthread_mutex_lock(&e->lock);
    if (st == FKT_OK) return st;
    e->made--;
    pthread_cond_broadcast(&e->freed);
    if (st != FKT_E_NOMEM || !e->backend->begin || !e->made) return st;
    e->limit = e->made;
    return FKT_OK;
}

/* wait 0: NULL in *out where none can be had at once. */
static fkt_status take_workspace(struct fkt_engine *e, struct workspace **out, int wait)
{
    fkt_status st = FKT_OK;
    *out = NULL;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        *out = e->free_workspaces;
        if (*out) e->free_workspaces = (*out)->next;
        if (*out) break;
        if (!e->limit || e->made < e->limit) {
            st = make_workspace(e, out);
            if (st != FKT_OK || *out || !wait) break;
        } else if (wait) pthread_cond_wait(&e->freed, &e->lock);
        else break;
    }
    pthread_mutex_unlock(&e->lock);
    return st;
}

static void put_workspace(struct fkt_engine *e, struct workspace *d)
{
    if (!d) return;
    pthread_mutex_lock(&e->lock);
    d->next = e->free_workspaces;
    e->free_workspaces = d;
    pthread_cond_signal(&e->freed);
    pthread_mutex_unlock(&e->lock);
}

/* rgb (n,H,W,3) -> (n,3,H,W) */
static void from_bytes(const struct fkt_engine *e, const uint8_t *rgb, size_t n, float *out)
{
    const size_t plane = (size_t)e->input.h * e->input.w;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            for (size_t p = 0; p < plane; p++)
                out[(3 * i + c) * plane + p] = e->pixels[c][rgb[(i * plane + p) * 3 + c]];
}

/* (n,3,H,W) -> rgb (n,H,W,3) */
static fkt_status to_bytes(const struct fkt_engine *e, const float *x, size_t n, uint8_t *rgb)
{
    const size_t plane = (size_t)e->output.h * e->output.w;
    const double scale = 255 / (double)e->spec.out_scale, shift = e->spec.out_shift;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            for (size_t p = 0; p < plane; p++) {
                double v = floor((x[(3 * i + c) * plane + p] - shift) * scale + 0.5);
                if (isnan(v)) return fkt_fail(FKT_E_NUMERIC, "the network gave NaN");
                rgb[(i * plane + p) * 3 + c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
            }
    return FKT_OK;
}

static size_t bytes_in(const struct fkt_engine *e)
{
    return numbers(e->input) * (e->spec.pixels_in ? 1 : sizeof(float));
}
static size_t bytes_out(const struct fkt_engine *e)
{
    return numbers(e->output) * (e->spec.bytes_out ? 1 : sizeof(float));
}

/* Begins a batch of n images whose result belongs at `out`. */
static fkt_status start(const struct fkt_engine *e, struct workspace *d, const void *in, size_t n, void *out)
{
    const struct fkt_backend *b = e->backend;
    const int padded = !b->begin && n < e->spec.batch;
    fkt_status st = FKT_OK;
    d->from = in;
    d->to = out;
    if (e->convert_in) from_bytes(e, in, n, d->in);
    else if (padded) memcpy(d->in, in, n * bytes_in(e));
    if (padded) memset(d->in + n * numbers(e->input), 0, (e->spec.batch - n) * numbers(e->input) * sizeof *d->in);
    if (e->convert_in || padded) d->from = d->in;
    if (b->begin) st = b->begin(e->plan, d->work, d->from, n);
    d->n = st == FKT_OK ? n : 0;
    return st;
}

/* The result of the batch that was started; nothing where there is none. */
static fkt_status finish(const struct fkt_engine *e, struct workspace *d)
{
    const struct fkt_backend *b = e->backend;
    const size_t n = d->n;
    void *to = e->convert_out || (!b->begin && n < e->spec.batch) ? d->out : d->to;
    fkt_status st = FKT_OK;
    d->n = 0;
    if (!n) return st;
    FKT_TRY(b->begin ? b->finish(e->plan, d->work, n, to) : b->run(e->plan, d->work, d->from, to));
    if (e->convert_out) FKT_TRY(to_bytes(e, d->out, n, d->to));
    else if (to != d->to) memcpy(d->to, to, n * bytes_out(e));
out:
    return st;
}

/* After a failure: what is under way ends, and its own failure is not told. */
static fkt_status drain(const struct fkt_engine *e, struct workspace *d[2], fkt_status failed)
{
    struct fkt_failure first;
    fkt_failure_save(&first, failed);
    for (int i = 0; i < 2; i++)
        if (d[i]) (void)finish(e, d[i]);
    return fkt_failure_restore(&first);
}

static fkt_status run(struct fkt_engine *e, const uint8_t *in, size_t n, uint8_t *out)
{
    const size_t batch = e->spec.batch;
    struct workspace *d[2] = {NULL, NULL};
    int turn = 0; /* the workspace that is next: free, or with the older batch */
    fkt_status st = FKT_OK;
    if (!n) return st;
    FKT_TRY(take_workspace(e, &d[0], 1));
    if (e->backend->begin && n > batch) FKT_TRY(take_workspace(e, &d[1], 0));
    for (size_t first = 0; first < n; first += batch) {
        const size_t m = n - first < batch ? n - first : batch;
        FKT_TRY(finish(e, d[turn]));
        FKT_TRY(start(e, d[turn], in + first * bytes_in(e), m, out + first * bytes_out(e)));
        turn = d[1] ? !turn : 0;
    }
    FKT_TRY(finish(e, d[turn]));
    if (d[1]) FKT_TRY(finish(e, d[!turn]));
out:
    if (st != FKT_OK) st = drain(e, d, st);
    put_workspace(e, d[0]);
    put_workspace(e, d[1]);
    return st;
}

/* An engine for bytes takes no floats. */
static fkt_status check_call(const struct fkt_engine *e, int bytes_in, int bytes_out)
{
    if (!e->spec.pixels_in == !bytes_in && !e->spec.bytes_out == !bytes_out) return FKT_OK;
    return fkt_fail(FKT_E_STATE, "the engine was made for %s in and %s out", e->spec.pixels_in ? "bytes" : "floats",
                    e->spec.bytes_out ? "bytes" : "floats");
}

fkt_status fkt_engine_run(struct fkt_engine *e, const float *in, size_t n, float *out)
{
    fkt_status st = check_call(e, 0, 0);
    return st == FKT_OK ? run(e, (const uint8_t *)in, n, (uint8_t *)out) : st;
}

fkt_status fkt_engine_run_bytes(struct fkt_engine *e, const uint8_t *rgb, size_t n, float *out)
{
    fkt_status st = check_call(e, 1, 0);
    return st == FKT_OK ? run(e, rgb, n, (uint8_t *)out) : st;
}

fkt_status fkt_engine_run_to_bytes(struct fkt_engine *e, const float *in, size_t n, uint8_t *rgb)
{
    fkt_status st = check_call(e, 0, 1);
    return st == FKT_OK ? run(e, (const uint8_t *)in, n, rgb) : st;
}

struct fkt_shape fkt_engine_output(const struct fkt_engine *e) { return e->output; }
const struct fkt_engine_facts *fkt_engine_facts(const struct fkt_engine *e) { return &e->facts; }
