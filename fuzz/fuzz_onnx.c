/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_onnx.c - opening a classifier as ONNX.
 *
 * The smallest model has 78,000 numbers, so that few mutations would hit the rest. An input is therefore a file whose
 * float tensors hold no numbers; what protobuf-c can read of it gets as many small ones as each shape requires, up to
 * what that model needs, and is tested in addition to the unchanged input. An accepted input must be a model that keeps
 * the promises of learn.h, and must be the same, bit for bit, after it was written and read again. */
#include "fuzz_support.h"

#include "classifier/model.h"
#include "classifier/onnx.h"

#include <onnx.pb-c.h>

enum { NUMBERS_MAX = 100000 };

static void use(const struct fkt_model *m)
{
    const char *path = fuzz_file("model.onnx", (const uint8_t *)"", 0);
    struct fkt_model *again = NULL;
    FUZZ_CHECK(fkt_model_size(m) >= FKT_MODEL_SIZE_MIN && fkt_model_size(m) <= FKT_MODEL_SIZE_MAX);
    FUZZ_CHECK(fkt_model_classes(m) >= 1 && fkt_model_classes(m) <= FKT_MODEL_CLASSES_MAX);
    FUZZ_CHECK(fkt_model_export_onnx(m, path, 1) == FKT_OK);
    FUZZ_CHECK(fkt_model_load(&again, path, 0) == FKT_OK);
    FUZZ_CHECK(!memcmp(fkt_model_origin(m), fkt_model_origin(again), sizeof(struct fkt_model_origin)));
    for (uint32_t k = 0; k < fkt_model_classes(m); k++)
        FUZZ_CHECK(*fkt_model_class(m, k) && !strcmp(fkt_model_class(m, k), fkt_model_class(again, k)));
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        const struct fkt_model_tensor t = fkt_model_tensor(m, i), u = fkt_model_tensor(again, i);
        for (size_t k = 0; k < t.count; k++) FUZZ_CHECK(t.data[k] - t.data[k] == 0.0F); /* finite */
        FUZZ_CHECK(!memcmp(t.data, u.data, t.count * sizeof *t.data));
    }
    fkt_model_free(again);
}

static void offer(const uint8_t *bytes, size_t len)
{
    struct fkt_model *m = NULL;
    if (fkt_onnx_parse(&m, bytes, len, "input", 0) == FKT_OK) use(m);
    else FUZZ_CHECK(m == NULL && fkt_error_text()[0] != '\0');
    fkt_model_free(m);
}

/* How many numbers the shape asks for; 0: more than are left, or none. */
static size_t wanted(const Onnx__TensorProto *t, size_t left)
{
    uint64_t n = 1;
    if (t->data_type != 1 || t->raw_data.len || t->n_float_data) return 0;
    for (size_t d = 0; d < t->n_dims; d++)
        if (t->dims[d] < 1 || (uint64_t)t->dims[d] > left || (n *= (uint64_t)t->dims[d]) > left) return 0;
    return (size_t)n;
}

static void fill(Onnx__TensorProto *t, size_t n)
{
    float *x = malloc(n * sizeof *x);
    FUZZ_CHECK(x != NULL);
    for (size_t i = 0; i < n; i++) x[i] = (float)(i % 13 + 1) / 64;
    free(t->raw_data.data);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){n * sizeof *x, (uint8_t *)x};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Onnx__ModelProto *m;
    uint8_t *whole;
    size_t left = NUMBERS_MAX, len;
    offer(data, size);
    m = onnx__model_proto__unpack(NULL, size, data);
    if (m && m->graph) {
        for (size_t i = 0; i < m->graph->n_initializer; i++) {
            const size_t n = wanted(m->graph->initializer[i], left);
            if (n) fill(m->graph->initializer[i], n);
            left -= n;
        }
        whole = malloc(onnx__model_proto__get_packed_size(m) + 1);
        FUZZ_CHECK(whole != NULL);
        len = onnx__model_proto__pack(m, whole);
        offer(whole, len);
        free(whole);
    }
    if (m) onnx__model_proto__free_unpacked(m, NULL);
    return 0;
}
