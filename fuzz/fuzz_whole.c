/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_whole.c - opening a whole model, or a head: metadata, lists of operations and shapes of a safetensors file.
 *
 * As in fuzz_model.c an input is only the JSON of the header; the target puts its length before it and as many small
 * numbers after it as the header requires. An accepted whole model keeps the promises of whole.h, is the same after it
 * was written and read again, and predicts. */
#include "fuzz_header.h"

#include "classifier/heads.h"
#include "learning/whole.h"
#include "tensor/safetensors.h"

#include <math.h>

enum { DATA_MAX = 1 << 16 };

static int small(const struct fkt_whole *m)
{
    for (uint32_t p = 0; p < m->parts; p++)
        for (size_t i = 0; i <= m->part[p].net.n_ops; i++) {
            const struct fkt_shape *s = &m->part[p].shapes[i];
            if ((uint64_t)s->c * s->h * s->w > 1 << 14) return 0;
        }
    return 1;
}

static void predict(const struct fkt_whole *m)
{
    const struct fkt_predict_options one = {.threads = 1};
    const size_t pixels = (size_t)3 * m->size * m->size;
    uint8_t *rgb = malloc(pixels);
    float *scores = malloc(fkt_whole_classes(m) * sizeof *scores);
    FUZZ_CHECK(rgb && scores);
    memset(rgb, 100, pixels);
    if (fkt_whole_predict(m, rgb, 1, scores, &one) == FKT_OK)
        for (uint32_t k = 0; k < fkt_whole_classes(m); k++) FUZZ_CHECK(isfinite(scores[k]));
    else FUZZ_CHECK(fkt_error_text()[0] != '\0');
    free(rgb);
    free(scores);
}

static void use(const struct fkt_whole *m)
{
    struct fkt_whole *again = NULL;
    const char *path = fuzz_file("whole", (const uint8_t *)"", 0);
    FUZZ_CHECK(fkt_whole_size(m) >= 1 && fkt_whole_size(m) <= 4096 && fkt_whole_classes(m) >= 1);
    for (uint32_t k = 0; k < fkt_whole_classes(m); k++) FUZZ_CHECK(*fkt_whole_class(m, k));
    FUZZ_CHECK(fkt_whole_origin(m)->is_private == !*fkt_whole_not_private(m));
    FUZZ_CHECK(fkt_whole_save(m, path, 1) == FKT_OK);
    FUZZ_CHECK(fkt_whole_load(&again, path) == FKT_OK);
    FUZZ_CHECK(!memcmp(fkt_whole_origin(m), fkt_whole_origin(again), sizeof(struct fkt_model_origin)));
    FUZZ_CHECK(fkt_whole_export_onnx(m, path, 1) == FKT_OK);
    if (small(m)) predict(again);
    fkt_whole_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_safetensors *file = NULL;
    struct fkt_whole *m = NULL;
    struct fkt_head *h = NULL;
    size_t len;
    uint8_t *bytes = fuzz_behind_header(data, size, DATA_MAX, &len);
    if (fkt_safetensors_parse(&file, bytes, len, "input") == FKT_OK) {
        if (fkt_whole_read(&m, file, "input") == FKT_OK) use(m);
        else FUZZ_CHECK(m == NULL && fkt_error_text()[0] != '\0');
        if (fkt_head_read(&h, file, "input", "") == FKT_OK) FUZZ_CHECK(fkt_head_classes(h) && fkt_head_length(h));
        else FUZZ_CHECK(h == NULL && fkt_error_text()[0] != '\0');
    }
    fkt_whole_free(m);
    fkt_head_free(h);
    fkt_safetensors_free(file);
    free(bytes);
    return 0;
}
