/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_write.c - writes a model as ONNX, for other runtimes.
 *
 *   images (N,3,S,S) -> Conv, BatchNormalization, Relu, MaxPool, Add -> GlobalAveragePool -> Flatten -> Gemm -> logits
 *
 * One node per operation of the model's own list (onnx_net.c); each tensor is an initialiser under torchvision's name
 * with the model's bytes unchanged; what a reader must know (classes, normalisation, origin) is in metadata_props,
 * under the same keys as in our safetensors. */
#include "classifier/model.h"
#include "classifier/onnx_build.h"

fkt_status fkt_model_export_onnx(const struct fkt_model *m, const char *path, int force)
{
    const struct fkt_onnx_value in = {"images", FKT_ONNX_TYPE_FLOAT, {0, 3, m->size, m->size}, 4};
    const struct fkt_onnx_value out = {"logits", FKT_ONNX_TYPE_FLOAT, {0, m->n_classes, 0, 0}, 2};
    struct fkt_onnx_build *b = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_check(m, path));
    FKT_TRY(fkt_onnx_build_new(&b));
    (void)fkt_onnx_net(b, &m->net, NULL, (const float *const *)m->array, "", in.name, out.name);
    FKT_TRY(fkt_onnx_build_status(b));
    FKT_TRY(fkt_model_describe(m, fkt_onnx_word, b));
    FKT_TRY(fkt_onnx_write(b, fkt_architecture_name(m->architecture), &in, &out, path, fkt_model_file_flags(m, force)));
out:
    fkt_onnx_build_free(b);
    return st;
}
