/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_model.c - opening a classifier: metadata and shapes of a safetensors file.
 *
 * The smallest model has 78,000 numbers, so that few mutations would hit the header. An input is therefore only the
 * JSON of the header; the target puts its length before it and as many small numbers after it as the header requires,
 * up to what the models of the corpus need. An accepted input must be a model that keeps every promise of learn.h, and
 * must be the same after it was written and read again. */
#include "fuzz_header.h"

#include "classifier/model.h"
#include "tensor/safetensors.h"

enum { DATA_MAX = 1 << 19 };

static void use(const struct fkt_model *m)
{
    struct fkt_model *again = NULL;
    const char *path = fuzz_file("model", (const uint8_t *)"", 0);
    FUZZ_CHECK(fkt_model_size(m) >= FKT_MODEL_SIZE_MIN && fkt_model_size(m) <= FKT_MODEL_SIZE_MAX);
    FUZZ_CHECK(fkt_model_classes(m) >= 1 && fkt_model_classes(m) <= FKT_MODEL_CLASSES_MAX);
    for (uint32_t k = 0; k < fkt_model_classes(m); k++) FUZZ_CHECK(*fkt_model_class(m, k));
    for (int c = 0; c < 3; c++) FUZZ_CHECK(fkt_model_std(m)[c] > 0);
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        struct fkt_model_tensor t = fkt_model_tensor(m, i);
        for (size_t k = 0; k < t.count; k++) FUZZ_CHECK(t.data[k] - t.data[k] == 0.0F); /* finite */
    }
    FUZZ_CHECK(fkt_model_save(m, path, 1) == FKT_OK);
    FUZZ_CHECK(fkt_model_load(&again, path, fkt_model_size(m)) == FKT_OK);
    FUZZ_CHECK(!memcmp(fkt_model_origin(m), fkt_model_origin(again), sizeof(struct fkt_model_origin)));
    FUZZ_CHECK(!memcmp(fkt_model_mean(m), fkt_model_mean(again), 3 * sizeof(float)));
    fkt_model_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_safetensors *file = NULL;
    struct fkt_model *m = NULL;
    size_t len;
    uint8_t *bytes = fuzz_behind_header(data, size, DATA_MAX, &len);
    if (fkt_safetensors_parse(&file, bytes, len, "input") == FKT_OK) {
        if (fkt_model_read(&m, file, "input", 0) == FKT_OK) use(m);
        else FUZZ_CHECK(m == NULL && fkt_error_text()[0] != '\0');
    }
    fkt_model_free(m);
    fkt_safetensors_free(file);
    free(bytes);
    return 0;
}
