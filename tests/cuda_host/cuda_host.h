/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_host.h - the machine that the emulation claims to be; tests change it. */
#ifndef FKT_TESTS_CUDA_HOST_H
#define FKT_TESTS_CUDA_HOST_H

#include <cuda_runtime_api.h>

struct fkt_host_machine {
    int devices, major, minor; /* capability */
    size_t memory;             /* bytes of each card */
    cudaError_t lost;          /* every later call fails with it */
    int reverse;               /* 1: blocks, and threads between two barriers, run from last to first. A kernel that
                                  lacks a barrier gives other results then */
};
extern struct fkt_host_machine fkt_host_machine;
size_t fkt_host_memory_used(void);
int fkt_host_stream_known(cudaStream_t stream); /* it is one of fkt_cuda_stream_new */

/* For kernel_run.c and runtime.c: runs `call` at once, or records it while the stream is captured. */
void fkt_host_submit(cudaStream_t s, void (*call)(const void *), const void *arguments, size_t bytes);
void fkt_host_set_error(cudaError_t e); /* what cudaGetLastError gives */

#endif
