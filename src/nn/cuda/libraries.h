/* SPDX-License-Identifier: Apache-2.0 */
/* libraries.h - the functions of cuDNN and cuBLASLt that we call, found with dlopen at the first use of a card, so that
 * one binary runs on machines without them. Everything of it but fkt_cuda_libraries_start is for conv.c and gemm.c; the
 * emulation of tests/cuda_host has a start that does nothing. */
#ifndef FKT_NN_CUDA_LIBRARIES_H
#define FKT_NN_CUDA_LIBRARIES_H

#include "nn/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens both libraries, checks their versions, makes their handles for the current device. FKT_E_STATE with a hint
 * where one is missing or too old. */
FKT_MUST_USE fkt_status fkt_cuda_libraries_start(int index);
const char *fkt_cuda_libraries_text(void); /* "cuDNN 9.14.0, cuBLASLt 13.1.0"; "" before the start */

#ifdef __cplusplus
}
#endif
#endif
