/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_read.c - reads a model from ONNX: ours, or an export of torchvision's resnet18 by torch.onnx.export.
 *
 *   bytes -> protobuf-c, with a bound on memory -> tables (onnx_graph.c) -> which network, by the shapes of the first
 *   convolution and the last layer -> does it match? (onnx_match.c) -> model with metadata_props -> weights
 *
 * A file is untrusted. In protocol buffers a few bytes can cause a large allocation (an empty node is two bytes in the
 * file and a hundred in memory), so the decoder gets an allocator with a budget that follows from the file's length.
 * protobuf-c checks inner lengths against the file, and no size that the file only claims is allocated: the model is
 * made after every tensor has been found with all its numbers. Nothing outside the file is opened: tensors in another
 * file (external data) are refused, since the path would come from an untrusted file.
 *
 * Accepted: float32 weights as raw_data or float_data, opset 9 or later, IR version 3 or later, any batch size, any
 * names, batch norms folded or not (onnx_match.c). Cost: the file and one copy of it, then that copy and the model. */
#include "classifier/onnx.h"

#include "base/alloc.h"
#include "base/file.h"
#include "classifier/model.h"
#include "classifier/onnx_graph.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <string.h>

enum { OPSET_MIN = 9, IR_MIN = 3 };
#define FILE_MAX ((size_t)256 << 20) /* a resnet18 with 65,536 classes has 180 MB */
#define WORD_MAX ((size_t)4 << 20)   /* bytes of one entry of metadata_props: 65,536 names of classes */
#define SLACK ((size_t)1 << 20)

/* ---- decoding within a budget ---- */

struct budget {
    size_t left;
    int spent, failed;
};

static void *get_memory(void *ctx, size_t size)
{
    struct budget *b = ctx;
    void *p;
    if (size > b->left) {
        b->spent = 1;
        return NULL;
    }
    b->left -= size;
    p = fkt_malloc_raw(size);
    if (!p) b->failed = 1;
    return p;
}

static void free_memory(void *ctx, void *p)
{
    (void)ctx;
    fkt_free(p);
}

static fkt_status unpack(Onnx__ModelProto **out, const uint8_t *bytes, size_t len, const char *path)
{
    struct budget b = {2 * len + SLACK, 0, 0};
    ProtobufCAllocator memory = {get_memory, free_memory, &b};
    *out = NULL;
    if (len > FILE_MAX) return fkt_fail(FKT_E_FORMAT, "'%s' is too large: %zu bytes, at most %zu", path, len, FILE_MAX);
    *out = onnx__model_proto__unpack(&memory, len, bytes);
    if (*out) return FKT_OK;
    if (b.failed) return fkt_fail(FKT_E_NOMEM, "out of memory: cannot decode '%s' of %zu bytes", path, len);
    if (b.spent)
        return fkt_fail(FKT_E_FORMAT, "'%s' would take more memory than a network of its size: %zu bytes", path, len);
    return fkt_fail(FKT_E_FORMAT, "'%s' is not an ONNX file, or is truncated", path);
}

static void drop(Onnx__ModelProto *model)
{
    ProtobufCAllocator memory = {get_memory, free_memory, NULL};
    if (model) onnx__model_proto__free_unpacked(model, &memory);
}

/* ---- what it is ---- */

static fkt_status check_versions(const Onnx__ModelProto *model, const char *path)
{
    int64_t opset = 0;
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = model->opset_import[i];
        if (!o->domain || !*o->domain || !strcmp(o->domain, "ai.onnx")) opset = o->version;
    }
    if (model->ir_version < IR_MIN || opset < OPSET_MIN)
        return fkt_fail_hint(FKT_E_MISMATCH, "export it again with opset 13 or later",
                             "'%s' is of ONNX's IR version %" PRId64 " and opset %" PRId64
                             ": at least %d and %d are needed",
                             path, model->ir_version, opset, IR_MIN, OPSET_MIN);
    return FKT_OK;
}

/* Sides of the images where the file fixes them; 0: any. */
static fkt_status read_side(const struct fkt_onnx_graph *g, uint32_t *side)
{
    const Onnx__TypeProto *type = g->input->type;
    const Onnx__TypeProto__Tensor *t = type ? type->tensor_type : NULL;
    const Onnx__TensorShapeProto *s = t ? t->shape : NULL;
    int64_t dim[4] = {0};
    *side = 0;
    if (!s) return FKT_OK;
    if (s->n_dim == 4 && t->elem_type == FKT_ONNX_UINT8)
        return fkt_fail_hint(FKT_E_MISMATCH, "a whole model is read here as safetensors; ONNX is for other programs",
                             "'%s' takes bytes, as a whole model does: a classifier here takes float32", g->path);
    if (s->n_dim != 4 || t->elem_type != FKT_ONNX_FLOAT)
        return fkt_fail(FKT_E_MISMATCH,
                        "'%s' takes %zu dimensions of ONNX's type %" PRId32
                        ": images have four (N, 3, side, side), of float32 (1)",
                        g->path, s->n_dim, t->elem_type);
    for (size_t i = 0; i < 4; i++)
        if (s->dim[i]->has_dim_value) dim[i] = s->dim[i]->dim_value;
    if ((dim[1] != 0 && dim[1] != 3) || dim[2] != dim[3] || dim[2] < 0 || dim[2] > FKT_MODEL_SIZE_MAX)
        return fkt_fail(FKT_E_MISMATCH,
                        "'%s' takes images of %" PRId64 " x %" PRId64 " px in %" PRId64
                        " colours: only square ones of at most %d px in 3 colours are supported",
                        g->path, dim[2], dim[3], dim[1], FKT_MODEL_SIZE_MAX);
    *side = (uint32_t)dim[2];
    return FKT_OK;
}

static int shape_of(const struct fkt_onnx_graph *g, const Onnx__NodeProto *n, size_t rank, uint64_t *shape, char *said,
                    size_t cap)
{
    const Onnx__TensorProto *t = n && n->n_input >= 2 ? fkt_onnx_tensor(g, n->input[1]) : NULL;
    if (t) fkt_onnx_dims(said, cap, t);
    if (!t || t->n_dims != rank) return 0;
    for (size_t i = 0; i < rank; i++) shape[i] = t->dims[i] < 0 ? 0 : (uint64_t)t->dims[i];
    return 1;
}

static fkt_status recognise(struct fkt_resnet_kind *out, const struct fkt_onnx_graph *g)
{
    const Onnx__NodeProto *first = fkt_onnx_reader(g, g->input->name, NULL), *last = fkt_onnx_maker(g, g->output);
    uint64_t conv[4], fc[2];
    char type[2][FKT_ST_SHOWN], conv_said[96] = "computed", fc_said[96] = "computed";
    static const char hint[] =
        "resnet18 with the stem of ImageNet or CIFAR, and resnet8, are supported, up to their logits "
        "and without a softmax after them";
    if (!first || !last || strcmp(fkt_onnx_type(first), "Conv") != 0 || strcmp(fkt_onnx_type(last), "Gemm") != 0)
        return fkt_fail_hint(FKT_E_MISMATCH, hint,
                             "'%s' is not a known network: it begins with '%s' and ends with '%s', not with "
                             "'Conv' and 'Gemm'",
                             g->path, first ? fkt_st_shown(type[0], fkt_onnx_type(first)) : "nothing",
                             last ? fkt_st_shown(type[1], fkt_onnx_type(last)) : "nothing");
    if (shape_of(g, first, 4, conv, conv_said, sizeof conv_said) & shape_of(g, last, 2, fc, fc_said, sizeof fc_said))
        if (fkt_resnet_recognise(out, conv, fc)) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, hint,
                         "'%s' is not a known network: the weights of its first convolution are %s, those of "
                         "its last layer %s",
                         g->path, conv_said, fc_said);
}

/* ---- the model ---- */

static const char *get_word(void *ctx, const char *key)
{
    const Onnx__ModelProto *model = ctx;
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *e = model->metadata_props[i];
        if (e->key && !strcmp(e->key, key)) return e->value;
    }
    return NULL;
}

/* Lists in the metadata are JSON, which takes many times its length in memory. */
static fkt_status check_words(const Onnx__ModelProto *model, const char *path)
{
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *e = model->metadata_props[i];
        if (e->value && strlen(e->value) > WORD_MAX)
            return fkt_fail(FKT_E_FORMAT, "'%s' has metadata of %zu bytes: at most %zu", path, strlen(e->value),
                            WORD_MAX);
    }
    return FKT_OK;
}

static void copy_slot(float *out, size_t count, const struct fkt_onnx_origin *o)
{
    if (o->source == FKT_ONNX_CONSTANT)
        for (size_t i = 0; i < count; i++) out[i] = o->constant;
    else if (o->tensor->has_raw_data && o->tensor->raw_data.len)
        memcpy(out, o->tensor->raw_data.data, count * sizeof *out);
    else memcpy(out, o->tensor->float_data, count * sizeof *out);
}

static fkt_status build(struct fkt_model **out, Onnx__ModelProto *model, const char *path, uint32_t size)
{
    struct fkt_onnx_graph g = {0};
    struct fkt_onnx_origin *origin = NULL;
    struct fkt_resnet_kind kind = {0};
    struct fkt_model *m = NULL;
    struct fkt_net net;
    uint32_t side;
    fkt_status st;
    fkt_net_init(&net, 3);
    FKT_TRY(check_versions(model, path));
    FKT_TRY(check_words(model, path));
    FKT_TRY(fkt_onnx_graph_init(&g, model, path));
    FKT_TRY(read_side(&g, &side));
    FKT_TRY(recognise(&kind, &g));
    fkt_resnet_build(&net, kind.architecture, kind.stem, kind.classes);
    FKT_TRY(fkt_net_status(&net));
    FKT_TRY(fkt_alloc(&origin, net.n_slots));
    FKT_TRY(fkt_onnx_match(&g, &net, fkt_architecture_name(kind.architecture), origin));
    FKT_TRY(fkt_model_from_words(&m, &kind, get_word, model, size ? size : side, path));
    for (size_t i = 0; i < net.n_slots; i++) copy_slot(m->array[i], fkt_slot_count(&net.slot[i]), &origin[i]);
    FKT_TRY(fkt_model_check(m, path));
    *out = m;
    m = NULL;
out:
    fkt_model_free(m);
    fkt_free(origin);
    fkt_onnx_graph_clear(&g);
    fkt_net_clear(&net);
    return st;
}

fkt_status fkt_onnx_parse(struct fkt_model **out, const uint8_t *bytes, size_t len, const char *path, uint32_t size)
{
    Onnx__ModelProto *model = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(unpack(&model, bytes, len, path));
    FKT_TRY(build(out, model, path, size));
out:
    drop(model);
    return st;
}

fkt_status fkt_onnx_load(struct fkt_model **out, const char *path, uint32_t size)
{
    Onnx__ModelProto *model = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_file_read(&bytes, &len, path, FILE_MAX));
    FKT_TRY(unpack(&model, bytes, len, path));
    fkt_free(bytes);
    bytes = NULL;
    FKT_TRY(build(out, model, path, size));
out:
    fkt_free(bytes);
    drop(model);
    return st;
}
