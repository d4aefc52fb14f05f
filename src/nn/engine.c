/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - one plan, many workspaces: any number of threads run the same network at once.
 *
 * A call takes a free workspace (or makes one), uses it alone, and returns it: there are as many workspaces as threads
 * ever ran at the same time. Batches are cut to the plan's batch and the last one is padded with zeros, since libraries
 * choose kernels by batch size and an image must go through the same kernels wherever it is in a batch. */
#include "nn/engine.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

struct workspace {
    struct workspace *next;
    void *work;      /* the backend's */
    float *in, *out; /* (batch, ...) for an incomplete batch */
};

struct fkt_engine {
    const struct fkt_backend *backend;
    void *plan;
    struct fkt_engine_spec spec;
    struct fkt_shape input, output;
    struct fkt_engine_facts facts;
    pthread_mutex_t lock; /* guards free_workspaces */
    struct workspace *free_workspaces;
};

static size_t numbers(struct fkt_shape s) { return (size_t)s.c * s.h * s.w; }

fkt_status fkt_engine_new(struct fkt_engine **out, const struct fkt_backend *backend, const struct fkt_net *net,
                          const struct fkt_weights *weights, const struct fkt_engine_spec *spec)
{
    struct fkt_engine *e = NULL;
    struct fkt_shape *shapes = NULL;
    fkt_status st;
    *out = NULL;
    if (!spec->batch || spec->batch > 4096) return fkt_fail(FKT_E_ARG, "a batch is 1 to 4096 images");
    FKT_TRY(fkt_alloc(&shapes, net->n_ops + 1));
    FKT_TRY(fkt_net_shapes(net, spec->height, spec->width, shapes));
    FKT_TRY(fkt_alloc(&e, 1));
    pthread_mutex_init(&e->lock, NULL);
    e->backend = backend;
    e->spec = *spec;
    e->input = shapes[0];
    e->output = shapes[net->n_ops];
    e->facts.flops = fkt_net_flops(net, shapes);
    FKT_TRY(backend->plan(&e->plan, net, shapes, weights, spec, &e->facts));
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
    pthread_mutex_destroy(&e->lock);
    fkt_free(e);
}

static fkt_status workspace_new(struct workspace **out, const struct fkt_engine *e)
{
    struct workspace *d = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&d, 1));
    FKT_TRY(e->backend->workspace(&d->work, e->plan));
    FKT_TRY(fkt_alloc(&d->in, e->spec.batch * numbers(e->input)));
    FKT_TRY(fkt_alloc(&d->out, e->spec.batch * numbers(e->output)));
    *out = d;
    d = NULL;
out:
    workspace_free(e, d);
    return st;
}

static fkt_status take_workspace(struct fkt_engine *e, struct workspace **out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->free_workspaces;
    if (*out) e->free_workspaces = (*out)->next;
    pthread_mutex_unlock(&e->lock);
    return *out ? FKT_OK : workspace_new(out, e);
}

static void put_workspace(struct fkt_engine *e, struct workspace *d)
{
    if (!d) return;
    pthread_mutex_lock(&e->lock);
    d->next = e->free_workspaces;
    e->free_workspaces = d;
    pthread_mutex_unlock(&e->lock);
}

fkt_status fkt_engine_run(struct fkt_engine *e, const float *in, size_t n, float *out)
{
    size_t each_in = numbers(e->input), each_out = numbers(e->output), batch = e->spec.batch;
    struct workspace *d = NULL;
    fkt_status st = FKT_OK;
    if (n) FKT_TRY(take_workspace(e, &d));
    for (; n >= batch; n -= batch, in += batch * each_in, out += batch * each_out)
        FKT_TRY(e->backend->run(e->plan, d->work, in, out));
    if (n) {
        memcpy(d->in, in, n * each_in * sizeof *in);
        memset(d->in + n * each_in, 0, (batch - n) * each_in * sizeof *in);
        FKT_TRY(e->backend->run(e->plan, d->work, d->in, d->out));
        memcpy(out, d->out, n * each_out * sizeof *out);
    }
out:
    put_workspace(e, d);
    return st;
}

struct fkt_shape fkt_engine_output(const struct fkt_engine *e) { return e->output; }
const struct fkt_engine_facts *fkt_engine_facts(const struct fkt_engine *e) { return &e->facts; }
