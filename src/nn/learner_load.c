/* SPDX-License-Identifier: Apache-2.0 */
/* learner_load.c - weights from a file into a learner, slot by slot. Networks that were joined (fkt_net_append) have
 * their weights in several files; each is read for its own part. */
#include "nn/learner.h"

#include "base/alloc.h"
#include "nn/weights.h"

fkt_status fkt_learner_load(struct fkt_learner *l, uint32_t first, const struct fkt_net *part, uint32_t slots,
                            const struct fkt_weights *w)
{
    float *x = NULL;
    size_t largest = 0;
    fkt_status st;
    if (slots > part->n_slots) return fkt_fail(FKT_E_ARG, "a network has fewer weights than are to be loaded");
    for (uint32_t s = 0; s < slots; s++)
        if (fkt_slot_count(&part->slot[s]) > largest) largest = fkt_slot_count(&part->slot[s]);
    FKT_TRY(fkt_alloc(&x, largest));
    for (uint32_t s = 0; s < slots; s++) {
        FKT_TRY(fkt_weights_read(w, s, x));
        FKT_TRY(fkt_learner_write(l, FKT_WEIGHT, first + s, x));
    }
out:
    fkt_free(x);
    return st;
}
