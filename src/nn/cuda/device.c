/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - cards: which can be used, their memory, and the sentence behind a failure.
 *
 * A card is opened once and stays open until the process ends: its context, and the libraries' handles, take longer to
 * make than most batches take to run. */
#include "nn/cuda/cuda.h"
#include "nn/cuda/libraries.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { CARDS_MAX = 64, OLDEST_MAJOR = 8 };

#define USE_CPU "use the processor instead"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards card */
static struct fkt_cuda_device *card[CARDS_MAX];          /* NULL: not opened yet */

static int is_lost(cudaError_t e)
{
    return e == cudaErrorIllegalAddress || e == cudaErrorLaunchFailure || e == cudaErrorECCUncorrectable ||
           e == cudaErrorUnknown || e == cudaErrorMisalignedAddress || e == cudaErrorIllegalInstruction ||
           e == cudaErrorLaunchTimeout || e == cudaErrorAssert || e == cudaErrorHardwareStackError;
}

fkt_status fkt_cuda_check(cudaError_t e, const char *doing)
{
    if (e == cudaSuccess) return FKT_OK;
    (void)cudaGetLastError(); /* an error that can be cleared is, so that the next call does not report it */
    if (e == cudaErrorMemoryAllocation)
        return fkt_fail_hint(FKT_E_NOMEM, "use smaller batches, or " USE_CPU, "memory of the card ran out while %s",
                             doing);
    if (is_lost(e))
        return fkt_fail_hint(FKT_E_STATE, "start the program again; if the card stays away, " USE_CPU,
                             "the card was lost while %s: %s", doing, cudaGetErrorString(e));
    return fkt_fail_hint(FKT_E_STATE, USE_CPU, "CUDA failed while %s: %s", doing, cudaGetErrorString(e));
}

static fkt_status count_cards(int *n)
{
    cudaError_t e = cudaGetDeviceCount(n);
    if (e == cudaSuccess && *n > 0) return FKT_OK;
    *n = 0;
    (void)cudaGetLastError();
    if (e == cudaErrorInsufficientDriver)
        return fkt_fail_hint(FKT_E_STATE, "install a newer driver, or " USE_CPU,
                             "no NVIDIA driver is installed, or it is too old for this program");
    return fkt_fail_hint(FKT_E_STATE, USE_CPU, "this machine shows no NVIDIA card%s%s",
                         e == cudaSuccess || e == cudaErrorNoDevice ? "" : ": ",
                         e == cudaSuccess || e == cudaErrorNoDevice ? "" : cudaGetErrorString(e));
}

int fkt_cuda_count(void)
{
    struct fkt_failure before;
    int n = 0;
    fkt_failure_save(&before, FKT_OK);
    if (count_cards(&n) != FKT_OK) n = 0;
    (void)fkt_failure_restore(&before);
    return n;
}

static fkt_status properties(struct fkt_cuda_device *d)
{
    struct cudaDeviceProp p;
    fkt_status st;
    FKT_TRY(fkt_cuda_check(cudaGetDeviceProperties(&p, d->index), "asking a card for its properties"));
    d->major = p.major;
    d->minor = p.minor;
    d->multiprocessors = p.multiProcessorCount;
    d->memory = p.totalGlobalMem;
    snprintf(d->name, sizeof d->name, "%s", p.name);
    if (d->major < OLDEST_MAJOR)
        st = fkt_fail_hint(FKT_E_STATE, USE_CPU,
                           "card %d ('%s') is too old: compute capability %d.%d, the oldest that can be used is %d.0",
                           d->index, d->name, d->major, d->minor, OLDEST_MAJOR);
out:
    return st;
}

static fkt_status open_card(struct fkt_cuda_device **out, int index)
{
    struct fkt_cuda_device *d = NULL;
    int n;
    fkt_status st;
    FKT_TRY(count_cards(&n));
    if (index < 0 || index >= n || index >= CARDS_MAX) {
        st = fkt_fail_hint(FKT_E_ARG, "cards count from 0: name another one, or " USE_CPU,
                           "there is no card %d: this machine shows %d", index, n);
        goto out;
    }
    FKT_TRY(fkt_alloc(&d, 1));
    d->index = index;
    FKT_TRY(properties(d));
    FKT_TRY(fkt_cuda_check(cudaSetDevice(index), "opening a card"));
    FKT_TRY(fkt_cuda_check(cudaFree(NULL), "opening a card")); /* makes the context */
    FKT_TRY(fkt_cuda_libraries_start(index));
    *out = d;
    d = NULL;
out:
    fkt_free(d);
    return st;
}

fkt_status fkt_cuda_device(struct fkt_cuda_device **out, int index)
{
    fkt_status st = FKT_OK;
    *out = NULL;
    pthread_mutex_lock(&lock);
    if (index >= 0 && index < CARDS_MAX) *out = card[index];
    if (!*out) st = open_card(out, index);
    if (st == FKT_OK) card[index] = *out;
    pthread_mutex_unlock(&lock);
    return st == FKT_OK ? fkt_cuda_use(*out) : st;
}

fkt_status fkt_cuda_use(const struct fkt_cuda_device *d)
{
    return fkt_cuda_check(cudaSetDevice(d->index), "choosing a card");
}

int fkt_cuda_usable(void)
{
    struct fkt_cuda_device *d = NULL;
    struct fkt_failure before;
    int yes;
    fkt_failure_save(&before, FKT_OK);
    yes = fkt_cuda_device(&d, 0) == FKT_OK;
    (void)fkt_failure_restore(&before);
    return yes;
}

fkt_status fkt_cuda_check_card(int index)
{
    struct fkt_cuda_device *d = NULL;
    return fkt_cuda_device(&d, index);
}

fkt_status fkt_cuda_describe(int index, struct fkt_device_facts *out)
{
    struct fkt_cuda_device *d = NULL;
    size_t free_bytes = 0, all = 0;
    int driver = 0;
    fkt_status st;
    FKT_TRY(fkt_cuda_device(&d, index));
    FKT_TRY(fkt_cuda_check(cudaMemGetInfo(&free_bytes, &all), "asking for free memory"));
    FKT_TRY(fkt_cuda_check(cudaDriverGetVersion(&driver), "asking for the driver's version"));
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, d->name);
    snprintf(out->capability, sizeof out->capability, "%d.%d", d->major, d->minor);
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(out->libraries, sizeof out->libraries, "%s", fkt_cuda_libraries_text());
    out->memory = d->memory;
    out->memory_free = free_bytes;
out:
    return st;
}

/* Another process may take the memory between the question and the allocation: then the allocation fails, with its own
 * sentence. */
fkt_status fkt_cuda_alloc(void **p, size_t bytes, const char *for_what)
{
    size_t free_bytes = 0, all = 0;
    fkt_status st;
    *p = NULL;
    FKT_TRY(fkt_cuda_check(cudaMemGetInfo(&free_bytes, &all), "asking for free memory"));
    if (bytes > free_bytes)
        return fkt_fail_hint(FKT_E_NOMEM, "use smaller batches, or " USE_CPU,
                             "%s needs %.1f GB of the card's memory, and %.1f GB are free", for_what,
                             (double)bytes / 1e9, (double)free_bytes / 1e9);
    FKT_TRY(fkt_fail_in(fkt_cuda_check(cudaMalloc(p, bytes ? bytes : 1), "allocating"), "%s", for_what));
out:
    if (st != FKT_OK) *p = NULL;
    return st;
}

void fkt_cuda_free(void *p)
{
    if (p) (void)cudaFree(p);
}

fkt_status fkt_cuda_host_alloc(void **p, size_t bytes, const char *for_what)
{
    cudaError_t e;
    *p = NULL;
    e = cudaHostAlloc(p, bytes ? bytes : 1, cudaHostAllocDefault);
    if (e == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        *p = NULL;
        return fkt_fail_hint(FKT_E_NOMEM, "use smaller batches",
                             "memory of the host ran out: %s needs %.1f MB that stay in place", for_what,
                             (double)bytes / 1e6);
    }
    return fkt_fail_in(fkt_cuda_check(e, "allocating memory of the host"), "%s", for_what);
}

void fkt_cuda_host_free(void *p)
{
    if (p) (void)cudaFreeHost(p);
}
