/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - the streams of nn/cuda/conv.h: a list of those that exist, so that a convolution on another one, which on
 * a card has no handle, fails here too. */
#include "cuda_host.h"

#include "nn/cuda/conv.h"

#include <pthread.h>

enum { STREAMS_MAX = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both */
static cudaStream_t known[STREAMS_MAX];
static size_t n_known;

fkt_status fkt_cuda_stream_new(cudaStream_t *out, const struct fkt_cuda_device *d, int priority)
{
    fkt_status st;
    (void)d;
    *out = NULL;
    FKT_TRY(fkt_cuda_check(cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, priority), "making a stream"));
    pthread_mutex_lock(&lock);
    if (n_known < STREAMS_MAX) known[n_known++] = *out;
    pthread_mutex_unlock(&lock);
out:
    return st;
}

static size_t place_of(cudaStream_t stream)
{
    size_t i = 0;
    while (i < n_known && known[i] != stream) i++;
    return i;
}

void fkt_cuda_stream_free(cudaStream_t stream, const struct fkt_cuda_device *d)
{
    size_t i;
    (void)d;
    if (!stream) return;
    pthread_mutex_lock(&lock);
    i = place_of(stream);
    if (i < n_known) known[i] = known[--n_known];
    pthread_mutex_unlock(&lock);
    (void)cudaStreamDestroy(stream);
}

int fkt_host_stream_known(cudaStream_t stream)
{
    int yes;
    pthread_mutex_lock(&lock);
    yes = place_of(stream) < n_known;
    pthread_mutex_unlock(&lock);
    return yes;
}
