/* SPDX-License-Identifier: Apache-2.0 */
/* conv_stream.c - streams, each with a cuDNN handle of its own.
 *
 * A handle belongs to one stream at a time, and cudnnSetStream is more than an assignment: it records an event on the
 * stream before, and lets the next one wait for it. With one handle for all streams, that touches streams which have
 * been destroyed meanwhile, or which another thread is capturing. So a stream gets a handle when it is made and gives
 * it back before it is destroyed. Handles that are free wait on a stream that lives as long as the process; they are
 * used again, since making one takes longer than many batches. */
#include "nn/cuda/api.h"
#include "nn/cuda/conv.h"

#include "base/alloc.h"

struct fkt_cuda_dnn {
    struct fkt_cuda_dnn *next;
    cudnnHandle_t handle;
    cudaStream_t stream; /* the card's idle stream: free */
};

static struct fkt_cuda_dnn *find(const struct fkt_cuda_handles *h, cudaStream_t stream)
{
    struct fkt_cuda_dnn *x = h->dnn;
    while (x && x->stream != stream) x = x->next;
    return x;
}

static fkt_status failed(const struct fkt_cuda_handles *h, cudnnStatus_t e)
{
    return fkt_fail_hint(FKT_E_STATE, "use the processor instead", "cuDNN cannot use a stream: %s",
                         h->api->cudnnGetErrorString(e));
}

/* A handle more, on the idle stream. The lock is held. */
static fkt_status add(struct fkt_cuda_handles *h)
{
    struct fkt_cuda_dnn *x = NULL;
    cudnnStatus_t e;
    fkt_status st;
    if (!h->idle)
        FKT_TRY(fkt_cuda_check(cudaStreamCreateWithFlags(&h->idle, cudaStreamNonBlocking), "making a stream"));
    FKT_TRY(fkt_alloc(&x, 1));
    e = h->api->cudnnCreate(&x->handle);
    if (e == CUDNN_STATUS_SUCCESS) {
        e = h->api->cudnnSetStream(x->handle, h->idle);
        if (e != CUDNN_STATUS_SUCCESS) (void)h->api->cudnnDestroy(x->handle);
    }
    if (e != CUDNN_STATUS_SUCCESS) {
        st = failed(h, e);
        goto out;
    }
    x->stream = h->idle;
    x->next = h->dnn;
    h->dnn = x;
    x = NULL;
out:
    fkt_free(x);
    return st;
}

static fkt_status take(struct fkt_cuda_handles *h, cudaStream_t stream)
{
    struct fkt_cuda_dnn *x;
    cudnnStatus_t e;
    fkt_status st = FKT_OK;
    if (!h->idle || !find(h, h->idle)) FKT_TRY(add(h));
    x = find(h, h->idle);
    e = h->api->cudnnSetStream(x->handle, stream);
    if (e == CUDNN_STATUS_SUCCESS) x->stream = stream;
    else st = failed(h, e);
out:
    return st;
}

fkt_status fkt_cuda_stream_new(cudaStream_t *out, const struct fkt_cuda_device *d, int priority)
{
    struct fkt_cuda_handles *h = fkt_cuda_handles(d);
    cudaStream_t stream = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "making a stream"));
    pthread_mutex_lock(&h->lock);
    st = take(h, stream);
    pthread_mutex_unlock(&h->lock);
    if (st == FKT_OK) *out = stream;
    else (void)cudaStreamDestroy(stream);
out:
    return st;
}

/* A handle that cannot be taken off its stream is lost, and not used again. */
void fkt_cuda_stream_free(cudaStream_t stream, const struct fkt_cuda_device *d)
{
    struct fkt_cuda_handles *h;
    struct fkt_cuda_dnn *x;
    if (!stream) return;
    h = fkt_cuda_handles(d);
    pthread_mutex_lock(&h->lock);
    x = find(h, stream);
    if (x) x->stream = h->api->cudnnSetStream(x->handle, h->idle) == CUDNN_STATUS_SUCCESS ? h->idle : NULL;
    pthread_mutex_unlock(&h->lock);
    (void)cudaStreamDestroy(stream);
}

void fkt_cuda_stream_forget(const struct fkt_cuda_device *d)
{
    struct fkt_cuda_handles *h = fkt_cuda_handles(d);
    pthread_mutex_lock(&h->lock);
    for (struct fkt_cuda_dnn **at = &h->dnn; *at;) {
        struct fkt_cuda_dnn *x = *at;
        if (x->stream != h->idle) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        (void)h->api->cudnnDestroy(x->handle);
        fkt_free(x);
    }
    pthread_mutex_unlock(&h->lock);
}

cudnnHandle_t fkt_cuda_dnn_of(const struct fkt_cuda_handles *h, cudaStream_t stream)
{
    const struct fkt_cuda_dnn *x = find(h, stream);
    return x ? x->handle : NULL;
}
