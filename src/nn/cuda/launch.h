/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - outcomes of launches, for launch.cuh; and the limit that all kernels have. */
#ifndef FKT_NN_CUDA_LAUNCH_H
#define FKT_NN_CUDA_LAUNCH_H

#include "base/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

fkt_status fkt_cuda_launched(const char *kernel); /* the last launch's failure as a sentence, or FKT_OK */
/* Kernels count elements with 31 bits: FKT_E_ARG names the operation where a tensor has more. */
fkt_status fkt_cuda_countable(size_t elements, const char *operation);

#ifdef __cplusplus
}
#endif
#endif
