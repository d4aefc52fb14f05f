/* SPDX-License-Identifier: Apache-2.0 */
/* move.h - the two movements of kernels_move.cu, which kernels_back.cu uses too: each shuffle is the other's gradient.
 */
#ifndef FKT_NN_CUDA_MOVE_H
#define FKT_NN_CUDA_MOVE_H

#include "nn/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = unshuffle(x) + group_mean(unshuffle(s)), and y = shuffle(x + repeat(s)); x or s may be NULL: zeros. `more`: y +=.
 */
FKT_MUST_USE fkt_status fkt_cuda_move_down(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                           const struct fkt_cuda_tensor *s, int factor, int more, cudaStream_t stream);
FKT_MUST_USE fkt_status fkt_cuda_move_up(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                         const struct fkt_cuda_tensor *s, int factor, int more, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
