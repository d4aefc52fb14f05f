/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_safetensors.c - reading safetensors: weights, latents, moments and releases.
 * An accepted input is read to its last byte, so that an unchecked offset shows as an overrun. */
#include "fuzz_support.h"

#include "tensor/safetensors.h"

static void touch(const struct fkt_safetensors *s, size_t i)
{
    const struct fkt_tensor *t = fkt_safetensors_at(s, i);
    const uint8_t *p = t->data;
    uint64_t bytes = t->count * fkt_dtype_size(t->dtype), product = 1;
    volatile uint8_t sink = 0;
    FUZZ_CHECK(t->rank <= FKT_ST_RANK_MAX && t->name != NULL);
    for (unsigned r = 0; r < t->rank; r++) product *= t->shape[r];
    FUZZ_CHECK(product == t->count);
    for (uint64_t b = 0; b < bytes; b++) sink = (uint8_t)(sink + p[b]);
    (void)sink;
    FUZZ_CHECK(fkt_safetensors_find(s, t->name) == t);
    if (t->dtype == FKT_F16 || t->dtype == FKT_BF16 || t->dtype == FKT_F32 || t->dtype == FKT_F64) {
        float *copy = malloc((size_t)(t->count + 1) * sizeof *copy);
        FUZZ_CHECK(copy != NULL);
        if (fkt_tensor_copy_f32(copy, t) == FKT_OK)
            for (uint64_t e = 0; e < t->count; e++) FUZZ_CHECK(copy[e] - copy[e] == 0.0F); /* finite */
        free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_safetensors *s = NULL;
    const struct fkt_tensor *t = NULL;
    const uint64_t shape[2] = {2, 3};
    if (fkt_safetensors_parse(&s, data, size, "input") != FKT_OK) {
        FUZZ_CHECK(s == NULL && fkt_error_text()[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < fkt_safetensors_count(s); i++) touch(s, i);
    if (fkt_safetensors_want(s, &t, "a", FKT_F32, 2, shape) == FKT_OK) FUZZ_CHECK(t->count == 6);
    (void)fkt_safetensors_meta(s, "schema");
    fkt_safetensors_free(s);
    return 0;
}
