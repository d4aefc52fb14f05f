/* SPDX-License-Identifier: Apache-2.0 */
/* backprop.h - what planning a forward and its backward needs that is the same for every backend: which operations run
 * as one step, and which buffers hold the gradient of a value. A backend's own buffers are numbers here. */
#ifndef FKT_NN_BACKPROP_H
#define FKT_NN_BACKPROP_H

#include "nn/fuse.h" /* FKT_NONE */

/* Which operations become one step: a norm, an addition, a ReLU. Entry i of a table over the operations. */
struct fkt_class {
    uint32_t head;      /* the first operation of the group that ends with i; FKT_NONE: i is inside a group */
    uint32_t add, relu; /* at the head: the members, FKT_NONE where there is none */
    uint32_t end;       /* at the head: the last member; the group runs in its place */
};

enum fkt_joining {
    FKT_JOIN_ADDITIONS = 1,  /* an addition to the batch norm before it; of two norms to the later one */
    FKT_JOIN_AFTER_SUM = 2,  /* a ReLU to the addition before it (to a batch norm always) */
    FKT_JOIN_AFTER_CONV = 4, /* a ReLU to the convolution before it */
    FKT_JOIN_RELU6 = 8       /* a ReLU6 as a ReLU */
};

/* A value's gradient may be in two buffers, which the step that needs it adds up. */
struct fkt_backprop {
    const struct fkt_net *net; /* borrowed */
    uint32_t *readers;         /* (n_ops + 1) how many operations read a value, and the caller */
    uint8_t *needs;            /* (n_ops + 1) it depends on something that learns, or on the input where frozen */
    struct fkt_class *group;   /* (n_ops) */
    uint32_t (*gradient)[2];   /* (n_ops + 1) buffers, FKT_NONE: none */
    uint32_t *pending;         /* (buffers of the backend) in how many places of `gradient` a buffer appears */
    void *backend;
    fkt_status (*map)(void *backend, uint32_t *buffer, uint32_t value); /* a new buffer, as large as the value */
    /* A step d = g + h, all as large as the value; d may be g or h. */
    fkt_status (*add)(void *backend, uint32_t value, uint32_t g, uint32_t h, uint32_t d);
};

FKT_MUST_USE fkt_status fkt_backprop_init(struct fkt_backprop *b, const struct fkt_net *net);
void fkt_backprop_clear(struct fkt_backprop *b);
FKT_MUST_USE fkt_status fkt_backprop_room(struct fkt_backprop *b, size_t buffers); /* of `pending` */

void fkt_backprop_count(struct fkt_backprop *b, int frozen); /* readers and needs */
/* After it. Gives how many operations became part of another one's step. */
uint32_t fkt_backprop_group(struct fkt_backprop *b, unsigned joining);
int fkt_backprop_heads(const struct fkt_backprop *b, uint32_t i); /* 1 when operation i is the first of its group */
uint32_t fkt_backprop_addend(const struct fkt_backprop *b, uint32_t head); /* what is added to a norm's result */

/* The buffer holds a gradient of the value, or another part of it; nothing where the value needs none. */
FKT_MUST_USE fkt_status fkt_backprop_give(struct fkt_backprop *b, uint32_t value, uint32_t buffer);
/* Removes and returns the gradient: g, and h (may be FKT_NONE). */
void fkt_backprop_take(struct fkt_backprop *b, uint32_t value, uint32_t *g, uint32_t *h);
FKT_MUST_USE fkt_status fkt_backprop_take_one(struct fkt_backprop *b, uint32_t value, uint32_t *g); /* added up */
/* A buffer of the value's shape to write to: g or h if nothing else reads them. */
FKT_MUST_USE fkt_status fkt_backprop_writable(struct fkt_backprop *b, uint32_t value, uint32_t g, uint32_t h,
                                              uint32_t *out);

#endif
