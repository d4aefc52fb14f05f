/* SPDX-License-Identifier: Apache-2.0 */
/* op_vectors.h - reading operations as oracle/nn_gradients.py writes them: tensors KIND/VARIANT/ROLE. */
#ifndef FKT_TEST_OP_VECTORS_H
#define FKT_TEST_OP_VECTORS_H

#include "nn/net.h"

#include "tensor/safetensors.h"
#include "tests/support/check.h"

/* NULL where there is no such role. */
static inline const struct fkt_tensor *op_part(const struct fkt_safetensors *f, const char *name, const char *role)
{
    char full[128];
    snprintf(full, sizeof full, "%s/%s", name, role);
    return fkt_safetensors_find(f, full);
}

static inline float *op_copy(const struct fkt_safetensors *f, const char *name, const char *role)
{
    const struct fkt_tensor *t = op_part(f, name, role);
    float *x = NULL;
    if (!t) return NULL;
    CHECK_OK(fkt_alloc(&x, t->count));
    CHECK_OK(fkt_tensor_copy_f32(x, t));
    return x;
}

static inline struct fkt_shape op_shape(const struct fkt_tensor *t)
{
    CHECK(t && t->rank == 4);
    return (struct fkt_shape){(uint32_t)t->shape[1], (uint32_t)t->shape[2], (uint32_t)t->shape[3]};
}

static inline enum fkt_op_kind op_kind(const char *name)
{
    for (int k = 0; k < FKT_OP_KINDS; k++) {
        const char *have = fkt_op_name((enum fkt_op_kind)k);
        if (!strncmp(have, name, strlen(have)) && name[strlen(have)] == '/') return (enum fkt_op_kind)k;
    }
    fail_msg("'%s' is no operation", name);
    return FKT_OP_KINDS;
}

/* The operation without slots, and how many images there are. */
static inline struct fkt_op op_read(const struct fkt_safetensors *f, const char *name, uint32_t *images)
{
    const struct fkt_tensor *t = op_part(f, name, "op");
    int64_t n[8] = {0};
    struct fkt_op op;
    CHECK(t && t->count <= 8);
    memcpy(n, t->data, t->count * sizeof *n);
    op = (struct fkt_op){.kind = op_kind(name),
                         .channels = (uint32_t)n[0],
                         .kernel = (uint32_t)n[1],
                         .stride = (uint32_t)n[2],
                         .pad = (uint32_t)n[3],
                         .groups = (uint32_t)n[4],
                         .pad_after = (uint32_t)n[7],
                         .factor = (uint32_t)n[5]};
    memcpy(op.value, op_part(f, name, "value")->data, sizeof op.value);
    *images = (uint32_t)n[6];
    return op;
}

/* Relative to the largest number. Sums of floats in double, rounded once: 1e-6. */
static inline void op_compare(const struct fkt_safetensors *f, const char *name, const char *role, const float *got)
{
    const struct fkt_tensor *t = op_part(f, name, role);
    float *want = op_copy(f, name, role);
    double largest = 1e-30;
    if (!want) fail_msg("no '%s/%s'", name, role);
    for (size_t i = 0; i < t->count; i++) largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < t->count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-6 * largest))
            fail_msg("%s, %s %zu: got %.9g, want %.9g", name, role, i, (double)got[i], (double)want[i]);
    fkt_free(want);
}

#endif
