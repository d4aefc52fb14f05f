/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - outcomes of launches. */
#include "nn/cuda/launch.h"
#include "nn/cuda/cuda.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

fkt_status fkt_cuda_launched(const char *kernel)
{
    char doing[160];
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) return FKT_OK;
    kernel += strspn(kernel, "("); /* "((name<T, V>))" as it stands in the source */
    snprintf(doing, sizeof doing, "starting the kernel '%.*s'", (int)strcspn(kernel, "<)"), kernel);
    return fkt_cuda_check(e, doing);
}

fkt_status fkt_cuda_countable(size_t elements, const char *operation)
{
    if (elements <= INT32_MAX) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG, "use a smaller batch",
                         "%s: a value has %zu numbers, and a card's kernels take at most %d", operation, elements,
                         INT32_MAX);
}
