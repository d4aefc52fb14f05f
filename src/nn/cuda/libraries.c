/* SPDX-License-Identifier: Apache-2.0 */
/* libraries.c - opens cuDNN and cuBLASLt, once per process, and makes their handles, once per card.
 *
 * Both are some hundred megabytes, come with the toolkit or by themselves, and exist in versions for each release of
 * CUDA. A binary that was linked with them would not start where they are missing. */
#include "nn/cuda/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS_MAX = 64, CUDNN_OLDEST = 90000, CUBLASLT_OLDEST = 120000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static struct fkt_cuda_api api;
static int ready;
static char text[128];
static struct fkt_cuda_handles handles[CARDS_MAX];

struct entry {
    const char *name;
    void **to;
};

/* The first of the names that can be opened; the linker's folders come first. It stays open. */
static fkt_status open_one(void **out, const char *const *names, const char *what, const char *hint)
{
    char why[256] = "";
    for (size_t i = 0; names[i]; i++) {
        *out = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (*out) return FKT_OK;
        if (!why[0]) snprintf(why, sizeof why, "%s", dlerror());
    }
    return fkt_fail_hint(FKT_E_STATE, hint, "%s cannot be opened: %s", what, why);
}

static fkt_status find_all(void *library, const struct entry *e, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        *e[i].to = dlsym(library, e[i].name);
        if (!*e[i].to)
            return fkt_fail_hint(FKT_E_STATE, "install a newer version", "%s has no function '%s'", what, e[i].name);
    }
    return FKT_OK;
}

#define FKT_ENTRY(name) {#name, (void **)(void *)&api.name},

static fkt_status open_cudnn(void)
{
    static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9", NULL};
    const struct entry table[] = {FKT_CUDNN_FUNCTIONS(FKT_ENTRY)};
    void *library = NULL;
    fkt_status st;
    FKT_TRY(open_one(&library, names, "cuDNN 9",
                     "install cuDNN 9, or name its folder in LD_LIBRARY_PATH; or use the processor instead"));
    FKT_TRY(find_all(library, table, sizeof table / sizeof *table, "cuDNN"));
    if (api.cudnnGetVersion() < CUDNN_OLDEST)
        st = fkt_fail_hint(FKT_E_STATE, "install cuDNN 9", "cuDNN is too old: version %zu", api.cudnnGetVersion());
out:
    return st;
}

static fkt_status open_cublaslt(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
    const struct entry table[] = {FKT_CUBLASLT_FUNCTIONS(FKT_ENTRY)};
    void *library = NULL;
    fkt_status st;
    FKT_TRY(open_one(&library, names, "cuBLASLt",
                     "install cuBLAS of CUDA 13 or 12, or name its folder in LD_LIBRARY_PATH; or use the processor "
                     "instead"));
    FKT_TRY(find_all(library, table, sizeof table / sizeof *table, "cuBLASLt"));
    if (api.cublasLtGetVersion() < CUBLASLT_OLDEST)
        st = fkt_fail_hint(FKT_E_STATE, "install cuBLAS of CUDA 13 or 12", "cuBLASLt is too old: version %zu",
                           api.cublasLtGetVersion());
out:
    return st;
}

static int is(const char *variable, const char *value)
{
    const char *s = getenv(variable);
    return s && !strcmp(s, value);
}

/* Both count 9.14.1 as 91401. Variables of experiments change bits, so that they stand beside the versions. */
static void describe(void)
{
    size_t d = api.cudnnGetVersion(), b = api.cublasLtGetVersion();
    snprintf(text, sizeof text, "cuDNN %zu.%zu.%zu, cuBLASLt %zu.%zu.%zu%s%s", d / 10000, d / 100 % 100, d % 100,
             b / 10000, b / 100 % 100, b % 100,
             is("FEDKT_CUDA_ANY_ALGORITHM", "1") ? ", FEDKT_CUDA_ANY_ALGORITHM=1" : "",
             is("FEDKT_CUDA_FUSION", "off") ? ", FEDKT_CUDA_FUSION=off" : "");
}

static fkt_status start(int index)
{
    struct fkt_cuda_handles *h = &handles[index];
    fkt_status st = FKT_OK;
    cudnnStatus_t dnn;
    cublasStatus_t blas;
    if (!ready) {
        FKT_TRY(open_cudnn());
        FKT_TRY(open_cublaslt());
        describe();
        ready = 1;
    }
    if (h->api) goto out;
    dnn = api.cudnnCreate(&h->cudnn);
    if (dnn != CUDNN_STATUS_SUCCESS) {
        st = fkt_fail_hint(FKT_E_STATE, "use the processor instead", "cuDNN cannot use card %d: %s", index,
                           api.cudnnGetErrorString(dnn));
        goto out;
    }
    blas = api.cublasLtCreate(&h->blas);
    if (blas != CUBLAS_STATUS_SUCCESS) {
        (void)api.cudnnDestroy(h->cudnn);
        st = fkt_fail_hint(FKT_E_STATE, "use the processor instead", "cuBLASLt cannot use card %d: %s", index,
                           api.cublasLtGetStatusString(blas));
        goto out;
    }
    pthread_mutex_init(&h->lock, NULL);
    h->api = &api;
out:
    return st;
}

fkt_status fkt_cuda_libraries_start(int index)
{
    fkt_status st;
    pthread_mutex_lock(&lock);
    st = start(index);
    pthread_mutex_unlock(&lock);
    return st;
}

const char *fkt_cuda_libraries_text(void) { return text; }

struct fkt_cuda_handles *fkt_cuda_handles(const struct fkt_cuda_device *d) { return &handles[d->index]; }
