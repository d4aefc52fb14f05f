/* SPDX-License-Identifier: Apache-2.0 */
/* conv_graph.h - one operation graph of cuDNN (a convolution and what is fused to it) with the plan that executes it.
 * For conv.c. */
#ifndef FKT_NN_CUDA_CONV_GRAPH_H
#define FKT_NN_CUDA_CONV_GRAPH_H

#include "nn/cuda/api.h"
#include "nn/cuda/conv.h"

struct fkt_cuda_graph {
    struct fkt_cuda_handles *h;
    cudnnBackendDescriptor_t *made; /* (n_made) all descriptors: the plan refers to the others */
    size_t n_made, room;
    cudnnBackendDescriptor_t plan; /* NULL: no engine fits */
    size_t workspace;
    int bias, add; /* they are tensors of it */
};

/* How strict the choice of an engine is. */
enum fkt_cuda_graph_choice { FKT_CUDA_ANY_ENGINE = 0, FKT_CUDA_TENSOR_ENGINE /* of the heuristic, on tensor cores */ };

/* *out NULL: cuDNN has no engine for it. `weights`: precision of w, which differs from that of the spec for gradients
 * in float alone. *why: the library's reason where *out is NULL. The caller holds the handles' lock. */
FKT_MUST_USE fkt_status fkt_cuda_graph_new(struct fkt_cuda_graph **out, struct fkt_cuda_handles *h,
                                           const struct fkt_cuda_conv_spec *s, enum fkt_precision weights,
                                           enum fkt_cuda_graph_choice choice, const char **why);
FKT_MUST_USE fkt_status fkt_cuda_graph_run(const struct fkt_cuda_graph *g, void *x, void *w, const float *bias,
                                           const void *add, void *y, void *workspace, cudaStream_t stream);
void fkt_cuda_graph_free(struct fkt_cuda_graph *g);

#endif
