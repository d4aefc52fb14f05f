/* SPDX-License-Identifier: Apache-2.0 */
/* launch.cuh - how every kernel is started: one macro, so that the same source runs on a card and in the emulation of
 * tests/cuda_host.
 *
 *   return FKT_LAUNCH((kernel<float, 4>), grid, block, shared_bytes, stream, arguments...);
 *
 * gives FKT_OK, or a failure that names the kernel. A kernel with several template arguments stands in parentheses.
 * Arguments are converted to the kernel's parameter types and must be trivially copyable.
 *
 * What kernels may use: threadIdx, blockIdx, blockDim, gridDim; __syncthreads; __shfl_xor_sync and __shfl_down_sync of
 * full warps; __shared__ arrays; FKT_SHARED for memory of a size that the launch gives; what device_math.cuh has. A
 * thread that leaves a kernel early must not have a barrier or a shuffle ahead that others of its block or warp reach.
 */
#ifndef FKT_NN_CUDA_LAUNCH_CUH
#define FKT_NN_CUDA_LAUNCH_CUH

extern "C" { /* headers of C */
#include "base/status.h"
#include "nn/engine.h"
}
#include "nn/cuda/launch.h"

#include <cuda_runtime.h> /* tests/cuda_host/include has its own */

template <class T> struct fkt_same {
    typedef T type;
};

#ifdef FKT_CUDA_HOST

/* The launch's shared memory as an array of `type`; 16-byte aligned. */
#define FKT_SHARED(type, name) type *name = (type *)fkt_host_shared()

template <class... P> struct fkt_host_bound {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
    static void body(const void *self)
    {
        const fkt_host_bound *b = (const fkt_host_bound *)self;
        std::apply(b->kernel, b->arguments);
    }
};
template <class... P>
static inline fkt_status fkt_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                                    cudaStream_t stream, typename fkt_same<P>::type... a)
{
    fkt_host_bound<P...> b = {kernel, std::tuple<P...>(a...)};
    fkt_host_launch(name, grid, block, shared, stream, fkt_host_bound<P...>::body, &b, sizeof b);
    return fkt_cuda_launched(name);
}

#else

#define FKT_SHARED(type, name)                                                                                         \
    extern __shared__ __align__(16) unsigned char fkt_shared_bytes[];                                                  \
    type *name = (type *)fkt_shared_bytes

template <class... P>
static inline fkt_status fkt_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                                    cudaStream_t stream, typename fkt_same<P>::type... a)
{
    kernel<<<grid, block, shared, stream>>>(a...);
    return fkt_cuda_launched(name);
}

#endif

#define FKT_LAUNCH(kernel, grid, block, shared, stream, ...)                                                           \
    fkt_launch(#kernel, kernel, grid, block, shared, stream, __VA_ARGS__)

#endif
