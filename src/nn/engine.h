/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - a network prepared for one batch and image size, and run. */
#ifndef FKT_NN_ENGINE_H
#define FKT_NN_ENGINE_H

#include "nn/net.h"
#include "nn/weights.h"

enum fkt_precision { FKT_PRECISION_F32 = 0, FKT_PRECISION_BF16 }; /* of activations and weights between operations */

struct fkt_engine_spec {
    uint32_t batch, height, width;
    enum fkt_precision precision;
    int low_memory; /* weights stay in the mapped file where possible; slower */
};

/* Properties of a plan, for reports and benchmarks. */
struct fkt_engine_facts {
    uint64_t flops;           /* of one image, counted as direct convolutions */
    uint64_t packed_bytes;    /* private copies of weights */
    uint64_t workspace_bytes; /* activations and scratch of one workspace */
    uint32_t convolutions, winograd,
        fused; /* how many there are; how many run as Winograd; operations saved by fusion */
};

/* A backend makes plans. A plan is immutable and shared by threads; a workspace is one thread's memory for running it.
 * The result of an image must not depend on its position in the batch, on other images or on the number of workspaces.
 */
struct fkt_backend {
    const char *name;
    fkt_status (*plan)(void **plan, const struct fkt_net *net, const struct fkt_shape *shapes,
                       const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                       struct fkt_engine_facts *facts);
    fkt_status (*workspace)(void **workspace, const void *plan);
    fkt_status (*run)(const void *plan, void *workspace, const float *in /* (batch,C,H,W) */, float *out);
    void (*workspace_free)(void *workspace);
    void (*plan_free)(void *plan);
};
extern const struct fkt_backend fkt_backend_ref;    /* plain loops: the definition */
extern const struct fkt_backend fkt_backend_onednn; /* the fast implementation */

/* Network and weights are borrowed and must outlive the engine. */
struct fkt_engine;
FKT_MUST_USE fkt_status fkt_engine_new(struct fkt_engine **out, const struct fkt_backend *backend,
                                       const struct fkt_net *net, const struct fkt_weights *weights,
                                       const struct fkt_engine_spec *spec);
void fkt_engine_free(struct fkt_engine *e);
/* n images of (C,H,W), any n, from any number of threads at once: each uses its own workspace. Incomplete batches are
 * padded with zeros, so that every image goes through the same kernels. */
FKT_MUST_USE fkt_status fkt_engine_run(struct fkt_engine *e, const float *in, size_t n, float *out);
struct fkt_shape fkt_engine_output(const struct fkt_engine *e);
const struct fkt_engine_facts *fkt_engine_facts(const struct fkt_engine *e);

#endif
