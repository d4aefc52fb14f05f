/* SPDX-License-Identifier: Apache-2.0 */
/* loss.h - softmax cross-entropy, with smoothed labels and with a teacher. Loops in double; a fast version would gain
 * nothing: K numbers per image.
 *
 *   target = (1 - smoothing) onehot + smoothing / K
 *   loss   = mean over the batch of (1 - share) CE(target, softmax(z)) + share T^2 KL(softmax(t / T) || softmax(z / T))
 */
#ifndef FKT_NN_LOSS_H
#define FKT_NN_LOSS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_loss {
    double smoothing;   /* 0..1 */
    double temperature; /* T > 0; used with a teacher alone */
    double share;       /* 0..1 of the teacher's part; 0: no teacher */
};

/* FKT_E_ARG names what is out of range. has_teacher: its logits are there. */
FKT_MUST_USE fkt_status fkt_loss_check(const struct fkt_loss *k, int has_teacher);
/* z (n, K) logits; label (n) < K; teacher (n, K) logits or NULL where share is 0. *loss: the mean; dz (n, K): its
 * gradient, may be NULL; *hits: how many argmax z are the label, may be NULL. FKT_E_NUMERIC names the first row whose
 * logits are not finite; FKT_E_ARG names a label beyond K. */
FKT_MUST_USE fkt_status fkt_loss_softmax(const struct fkt_loss *k, const float *z, const uint32_t *label,
                                         const float *teacher, size_t n, size_t classes, double *loss, float *dz,
                                         size_t *hits);
/* p (n, K) = softmax(z), double inside. */
void fkt_softmax(const float *z, size_t n, size_t classes, float *p);

#endif
