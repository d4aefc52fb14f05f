/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - the slots of a network bound to tensors of mapped files, or to arrays in memory. */
#ifndef FKT_NN_WEIGHTS_H
#define FKT_NN_WEIGHTS_H

#include "nn/net.h"

#include "tensor/safetensors.h"

struct fkt_weights; /* immutable; shared by engines and threads */

/* Binds every slot. Files are borrowed and must outlive the weights. FKT_E_MISMATCH says how many tensors do not fit
 * and names the first ones: missing, of another shape, not of a weight type. `report` (may be NULL) gets
 * one line per misfit, NULL where there is none; the caller frees it. A tensor that no slot uses is a misfit too,
 * unless `ignore` (may be NULL) returns 1 for its name. The network is needed during the call alone. */
FKT_MUST_USE fkt_status fkt_weights_bind(struct fkt_weights **out, const struct fkt_net *net,
                                         const struct fkt_safetensors *const *files, size_t n_files,
                                         int (*ignore)(const char *name), char **report);
/* Every slot from an array in the order of its shape, borrowed: array (n_slots) and what it points to must outlive the
 * weights. Reading finds NaN and infinity as it does in files. */
FKT_MUST_USE fkt_status fkt_weights_from_arrays(struct fkt_weights **out, const struct fkt_net *net,
                                                const float *const *array);
void fkt_weights_free(struct fkt_weights *w);

/* The slot's numbers as float, in the order of its shape; FKT_E_NUMERIC names tensor and element on NaN or infinity. */
FKT_MUST_USE fkt_status fkt_weights_read(const struct fkt_weights *w, uint32_t slot, float *out);
/* The slot's numbers in the mapped file, or NULL when they are not contiguous, aligned F32. Valid as long as
 * the files. */
const float *fkt_weights_mapped(const struct fkt_weights *w, uint32_t slot);
/* The pages of this slot are not needed for now: they may leave memory, and are read again when touched. */
void fkt_weights_drop(const struct fkt_weights *w, uint32_t slot);
const char *fkt_weights_name(const struct fkt_weights *w, uint32_t slot); /* first tensor's name, for error messages */

#endif
