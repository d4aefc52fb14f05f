/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - which operations of a network run as one step. A backend says what its steps can hold. */
#ifndef FKT_NN_FUSE_H
#define FKT_NN_FUSE_H

#include "nn/net.h"

#define FKT_NONE UINT32_MAX

/* Entry i of a table over the operations. */
struct fkt_group {
    uint32_t head;             /* the first operation of the group that ends with i; FKT_NONE: i is inside a group */
    uint32_t norm, add, after; /* at the head: the members, FKT_NONE where there is none */
    uint32_t glu;              /* at the head, a depthwise convolution: the gated unit that follows it */
    uint32_t end;              /* at the head: the last member; the group runs in its place */
};

enum fkt_fusion {
    FKT_FUSE_BATCH_NORM = 1, /* a batch norm into the convolution before it */
    FKT_FUSE_NORM_ACT = 2,   /* an activation into the RMS norm or group norm before it */
    FKT_FUSE_GLU = 4         /* a gated unit into the depthwise convolution before it */
};
/* `readers`: how many operations read each value, plus one for the output. */
void fkt_fuse(struct fkt_group *g, const struct fkt_net *net, const uint32_t *readers, unsigned fusions);
/* The value that the group's addition adds to the rest of the group. */
uint32_t fkt_group_addend(const struct fkt_group *g, const struct fkt_net *net, uint32_t head);

#endif
