/* SPDX-License-Identifier: Apache-2.0 */
/* learn_shim.h - the part of oneDNN that learning needs, in terms that do not change with its version.
 *
 * A task is a primitive with its addresses, for one thread at a time; the library spreads it over the calling thread's
 * OpenMP team (fkt_dnn_team), which must have the same size when a task is made and when it runs. */
#ifndef FKT_NN_ONEDNN_LEARN_SHIM_H
#define FKT_NN_ONEDNN_LEARN_SHIM_H

#include "nn/onednn/shim.h"

/* Forward; backward to the gradient of the source; backward to the gradients of weights and bias. */
enum fkt_dnn_way { FKT_WAY_FORWARD = 0, FKT_WAY_DATA, FKT_WAY_WEIGHTS };

/* What a task reads and writes. In a backward, SRC is the source's gradient (WAY_DATA) and DST the result's; WEIGHTS
 * and BIAS are gradients in WAY_WEIGHTS. KEEP is what a forward stores for its backward. */
enum fkt_dnn_side { FKT_AT_SRC = 0, FKT_AT_DST, FKT_AT_WEIGHTS, FKT_AT_BIAS, FKT_AT_KEEP, FKT_AT_SCRATCH, FKT_SIDES };

struct fkt_dnn_task;

/* Of `want`: neither plain, sum nor after. Gradients of weights are float, whatever the precision. *out =
 * NULL with FKT_OK: there is no Winograd kernel for this (a direct one always exists, if only reference loops). */
FKT_MUST_USE fkt_status fkt_dnn_task_conv(struct fkt_dnn_task **out, const struct fkt_dnn_conv *want,
                                          enum fkt_dnn_way way);

struct fkt_dnn_pool {
    uint32_t batch, channels, in_h, in_w, out_h, out_w, kernel, stride, pad;
    enum fkt_dnn_layout layout;
    enum fkt_precision precision;
};
FKT_MUST_USE fkt_status fkt_dnn_task_max_pool(struct fkt_dnn_task **out, const struct fkt_dnn_pool *want,
                                              enum fkt_dnn_way way);

/* From the weights of one task (SRC) to those of another (DST). */
FKT_MUST_USE fkt_status fkt_dnn_task_repack(struct fkt_dnn_task **out, const struct fkt_dnn_task *from,
                                            const struct fkt_dnn_task *to);
/* `plain` (floats; out, in of a group, height, width) to the weights of a task, or back. */
FKT_MUST_USE fkt_status fkt_dnn_task_pack(const struct fkt_dnn_task *t, float *weights, float *plain, int back);

int fkt_dnn_same_weights(const struct fkt_dnn_task *a, const struct fkt_dnn_task *b);
size_t fkt_dnn_task_bytes(const struct fkt_dnn_task *t, enum fkt_dnn_side side); /* 0: it has no such side */
const char *fkt_dnn_task_kernel(const struct fkt_dnn_task *t);                   /* what the library calls it */

/* Borrows all addresses; those of sides that the task does not have are ignored. */
FKT_MUST_USE fkt_status fkt_dnn_task_bind(struct fkt_dnn_task *t, void *const at[FKT_SIDES]);
FKT_MUST_USE fkt_status fkt_dnn_task_run(struct fkt_dnn_task *t);
void fkt_dnn_task_free(struct fkt_dnn_task *t);

#endif
