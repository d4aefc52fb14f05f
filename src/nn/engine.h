/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - a network prepared for one batch and image size, and run.
 *
 * Images enter as float (n,C,H,W), or as bytes (n,H,W,3) where the spec has a table of what a pixel value is for the
 * network, and leave as float or as bytes: a card then receives and gives a quarter of the data. */
#ifndef FKT_NN_ENGINE_H
#define FKT_NN_ENGINE_H

#include "nn/net.h"
#include "nn/weights.h"

enum fkt_precision { FKT_PRECISION_F32 = 0, FKT_PRECISION_BF16 }; /* of activations and weights between operations */

struct fkt_engine_spec {
    uint32_t batch, height, width;
    enum fkt_precision precision;
    int low_memory;                /* weights stay in the mapped file where possible; slower */
    int device;                    /* which card, for a backend that runs on one */
    const float (*pixels_in)[256]; /* (3,256), copied by the engine: input is bytes (n,H,W,3). NULL: float (n,C,H,W) */
    /* 1: output is bytes (n,H,W,3), floor((x - out_shift) * 255 / out_scale + 0.5) between 0 and 255; NaN is
     * FKT_E_NUMERIC. 0: float (n,C,H,W), and the other two mean nothing. */
    int bytes_out;
    float out_scale, out_shift;
};

/* Properties of a plan, for reports and benchmarks. */
struct fkt_engine_facts {
    uint64_t flops;           /* of one image, counted as direct convolutions */
    uint64_t packed_bytes;    /* private copies of weights */
    uint64_t workspace_bytes; /* activations and scratch of one workspace */
    uint32_t convolutions, winograd,
        fused;               /* how many there are; how many run as Winograd; operations saved by fusion */
    unsigned max_workspaces; /* more are never made: threads wait for one. 0: no limit */
};

/* A backend makes plans. A plan is immutable and shared by threads; a workspace is one thread's memory for running it.
 * The result of an image must not depend on its position in the batch, on other images or on the number of workspaces.
 *
 * It has `run`, or `begin` and `finish`: the halves of a run, between which the caller can begin another one in another
 * workspace. begin has read all of `in` when it returns; finish waits for that run. A workspace is used by one thread
 * at a time, not always by the same one. After a failure of either half nothing of the run is under way, and the
 * workspace can be used again. */
struct fkt_backend {
    const char *name;
    int bytes; /* 1: plan, begin and finish follow pixels_in and bytes_out; 0: engine.c converts, plan sees neither */
    fkt_status (*plan)(void **plan, const struct fkt_net *net, const struct fkt_shape *shapes,
                       const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                       struct fkt_engine_facts *facts);
    fkt_status (*workspace)(void **workspace, const void *plan);
    fkt_status (*run)(const void *plan, void *workspace, const float *in /* (batch,C,H,W) */, float *out);
    fkt_status (*begin)(const void *plan, void *workspace, const void *in, size_t n); /* n: 1 to batch */
    fkt_status (*finish)(const void *plan, void *workspace, size_t n, void *out);     /* the n of its begin */
    void (*workspace_free)(void *workspace);
    void (*plan_free)(void *plan);
};
extern const struct fkt_backend fkt_backend_ref;    /* plain loops: the definition */
extern const struct fkt_backend fkt_backend_onednn; /* the fast implementation */
extern const struct fkt_backend fkt_backend_cuda;   /* on a card; in builds with FEDKT_CUDA alone */

/* Network and weights are borrowed and must outlive the engine. */
struct fkt_engine;
FKT_MUST_USE fkt_status fkt_engine_new(struct fkt_engine **out, const struct fkt_backend *backend,
                                       const struct fkt_net *net, const struct fkt_weights *weights,
                                       const struct fkt_engine_spec *spec);
void fkt_engine_free(struct fkt_engine *e);
/* n images of (C,H,W), any n, from any number of threads at once: each uses its own workspace. Incomplete batches are
 * padded, so that every image goes through the same kernels. The call must fit the spec (FKT_E_STATE): the
 * first is for float in and out, the second for pixels_in, the third for bytes_out. */
FKT_MUST_USE fkt_status fkt_engine_run(struct fkt_engine *e, const float *in, size_t n, float *out);
FKT_MUST_USE fkt_status fkt_engine_run_bytes(struct fkt_engine *e, const uint8_t *rgb, size_t n, float *out);
FKT_MUST_USE fkt_status fkt_engine_run_to_bytes(struct fkt_engine *e, const float *in, size_t n, uint8_t *rgb);
struct fkt_shape fkt_engine_output(const struct fkt_engine *e);
const struct fkt_engine_facts *fkt_engine_facts(const struct fkt_engine *e);

#endif
