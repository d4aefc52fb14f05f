/* SPDX-License-Identifier: Apache-2.0 */
/* Models as ONNX: what we write is read back to the bit, and the same network from other exporters is read too. Hostile
 * files: test_onnx_hostile.c; other implementations: tests/oracle/check_onnx.py, oracle/onnx_check.py. */
#include "base/rng.h"
#include "classifier/onnx.h"
#include "tests/support/bent_onnx.h"
#include "tests/support/scratch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { SIDE = 16, IMAGES = 3, CLASSES = 3 };

static const char *const names[] = {"cat", "a \"b\"", "\xC3\xA9t\xC3\xA9"};
static const float mean[] = {0.4F, 0.5F, 0.6F}, spread[] = {0.25F, 0.125F, 0.3F};

/* Norms as after a training, where every number counts. */
static struct fkt_model *made(enum fkt_architecture a, enum fkt_stem s)
{
    const struct fkt_model_spec spec = {a, s, SIDE, names, CLASSES, mean, spread, 11};
    const struct fkt_model_origin origin = {1,  2.5,          1e-6,      "replace-any", "", "release, drawn",
                                            "", "--epochs 3", "3 images"};
    struct fkt_model *m = NULL;
    struct fkt_rng rng;
    CHECK_OK(fkt_model_new(&m, &spec));
    fkt_rng_init(&rng, 5, 5);
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        const struct fkt_model_tensor t = fkt_model_tensor(m, i);
        for (size_t k = 0; t.rank == 1 && k < t.count; k++)
            t.data[k] = strstr(t.name, "var") || strstr(t.name, "weight") ? 0.5F + (float)fkt_rng_unit(&rng)
                                                                          : 0.1F * (float)fkt_rng_normal(&rng);
    }
    fkt_model_set_origin(m, &origin);
    return m;
}

static void same_weights(const struct fkt_model *a, const struct fkt_model *b)
{
    CHECK(fkt_model_tensors(a) == fkt_model_tensors(b));
    for (size_t i = 0; i < fkt_model_tensors(a); i++) {
        const struct fkt_model_tensor x = fkt_model_tensor(a, i), y = fkt_model_tensor(b, i);
        assert_string_equal(x.name, y.name);
        CHECK(x.count == y.count);
        assert_memory_equal(x.data, y.data, x.count * sizeof *x.data);
    }
}

static void logits_of(const struct fkt_model *m, float out[IMAGES * CLASSES])
{
    const struct fkt_predict_options options = {.threads = 1};
    uint8_t rgb[IMAGES * SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 + i / 7);
    CHECK_OK(fkt_model_predict(m, rgb, IMAGES, out, NULL, &options));
}

static void same_logits(const struct fkt_model *a, const struct fkt_model *b, double tolerance)
{
    float x[IMAGES * CLASSES], y[IMAGES * CLASSES];
    logits_of(a, x);
    logits_of(b, y);
    for (size_t i = 0; i < IMAGES * CLASSES; i++) CHECK_NEAR(y[i], x[i], tolerance);
}

static void what_is_written_comes_back(void **state)
{
    const struct {
        enum fkt_architecture a;
        enum fkt_stem s;
    } each[] = {{FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR},
                {FKT_ARCHITECTURE_RESNET18, FKT_STEM_CIFAR},
                {FKT_ARCHITECTURE_RESNET18, FKT_STEM_IMAGENET}};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    for (size_t i = 0; i < 3; i++) {
        struct fkt_model *m = made(each[i].a, each[i].s), *back = NULL;
        const char *path = scratch_path(&s, "model.onnx");
        CHECK_OK(fkt_model_export_onnx(m, path, 1));
        CHECK_OK(fkt_model_load(&back, path, 0));
        same_weights(m, back);
        CHECK(fkt_model_architecture(back) == each[i].a && fkt_model_stem(back) == each[i].s);
        CHECK(fkt_model_size(back) == SIDE && fkt_model_classes(back) == CLASSES);
        for (uint32_t k = 0; k < CLASSES; k++) assert_string_equal(fkt_model_class(back, k), names[k]);
        assert_memory_equal(fkt_model_mean(back), mean, sizeof mean);
        assert_memory_equal(fkt_model_std(back), spread, sizeof spread);
        CHECK(fkt_model_origin(back)->is_private == 1);
        CHECK_NEAR(fkt_model_origin(back)->epsilon, 2.5, 0);
        CHECK_NEAR(fkt_model_origin(back)->delta, 1e-6, 0);
        assert_string_equal(fkt_model_origin(back)->data, "release, drawn");
        assert_string_equal(fkt_model_origin(back)->recipe, "--epochs 3");
        fkt_model_free(back);
        fkt_model_free(m);
    }
    scratch_release(&s);
}

static void nothing_is_overwritten_or_half_written(void **state)
{
    struct scratch s;
    struct fkt_model *m = made(FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR), *back = NULL;
    struct rlimit limit, small;
    const char *path;
    (void)state;
    scratch_init(&s);
    path = scratch_path(&s, "model.onnx");
    CHECK_OK(fkt_model_export_onnx(m, path, 0));
    CHECK_STATUS(fkt_model_export_onnx(m, path, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_model_export_onnx(m, path, 1));
    for (int private = 0; private < 2; private ++) { /* a model that is not private is readable by its owner alone */
        const struct fkt_model_origin o = {.is_private = private, .epsilon = private, .delta = 1e-5 * private};
        struct stat st;
        fkt_model_set_origin(m, &o);
        CHECK_OK(fkt_model_export_onnx(m, path, 1));
        CHECK(stat(path, &st) == 0 && ((st.st_mode & 077) != 0) == private);
        CHECK_OK(fkt_model_save(m, scratch_path(&s, "model"), 1));
        CHECK(stat(scratch_path(&s, "model"), &st) == 0 && ((st.st_mode & 077) != 0) == private);
    }
    CHECK_STATUS(fkt_model_export_onnx(m, scratch_path(&s, "no/model.onnx"), 0), FKT_E_IO);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    small = (struct rlimit){100000, limit.rlim_max}; /* a disk that is full after 100,000 bytes */
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_STATUS(fkt_model_export_onnx(m, path, 1), FKT_E_IO);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_OK(fkt_model_load(&back, path, 0)); /* the old file is unchanged */
    fkt_model_free(back);
    fkt_model_tensor(m, 3).data[2] = NAN;
    CHECK_STATUS(fkt_model_export_onnx(m, path, 1), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "running_mean"));
    fkt_model_free(m);
    scratch_release(&s);
}

/* ---- variations of other exporters ---- */

typedef void bend(Onnx__ModelProto *m);

/* Files before 2018, and quantisers, keep numbers one by one. */
static void as_float_data(Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++) {
        Onnx__TensorProto *t = m->graph->initializer[i];
        t->n_float_data = t->raw_data.len / sizeof(float);
        t->float_data = malloc(t->raw_data.len);
        CHECK(t->float_data != NULL);
        memcpy(t->float_data, t->raw_data.data, t->raw_data.len);
        free(t->raw_data.data);
        t->raw_data = (ProtobufCBinaryData){0};
        t->has_raw_data = 0;
    }
}

/* Names have no meaning. */
static void as_strange_names(Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++) {
        char was[64], name[32];
        Onnx__TensorProto *t = m->graph->initializer[i];
        snprintf(was, sizeof was, "%s", t->name);
        snprintf(name, sizeof name, "onnx::%zu", i);
        onnx_rename(&t->name, name);
        for (size_t n = 0; n < m->graph->n_node; n++)
            for (size_t j = 0; j < m->graph->node[n]->n_input; j++)
                if (!strcmp(m->graph->node[n]->input[j], was)) onnx_rename(&m->graph->node[n]->input[j], name);
    }
}

static void as_swapped_terms(Onnx__ModelProto *m)
{
    for (size_t i = 0; i < 3; i++) {
        Onnx__NodeProto *n = onnx_node(m, "Add", i);
        char *first = n->input[0];
        n->input[0] = n->input[1];
        n->input[1] = first;
    }
}

/* Equal tensors once, Identity nodes for the others. */
static void as_identities(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "BatchNormalization", 1);
    char *tensor = strdup(n->input[1]);
    onnx_rename(&n->input[1], "other");
    onnx_add(m, "Identity", tensor, "another");
    onnx_add(m, "Identity", "another", "other");
    for (size_t k = 0; k < 2; k++) { /* to the front, the last first */
        Onnx__NodeProto *last = m->graph->node[m->graph->n_node - 1];
        memmove(m->graph->node + 1, m->graph->node, (m->graph->n_node - 1) * sizeof(void *));
        m->graph->node[0] = last;
    }
    free(tensor);
}

static void new_ints(Onnx__ModelProto *m, const char *name, int64_t a, int64_t b)
{
    Onnx__GraphProto *g = m->graph;
    Onnx__TensorProto *t = calloc(1, sizeof *t);
    g->initializer = realloc(g->initializer, (g->n_initializer + 1) * sizeof(void *));
    CHECK(t && g->initializer);
    onnx__tensor_proto__init(t);
    t->name = strdup(name);
    t->has_data_type = 1;
    t->data_type = 7;
    t->dims = calloc(1, sizeof *t->dims);
    t->int64_data = calloc(2, sizeof *t->int64_data);
    CHECK(t->dims && t->int64_data);
    t->n_dims = 1;
    t->dims[0] = 2;
    t->n_int64_data = 2;
    t->int64_data[0] = a;
    t->int64_data[1] = b;
    g->initializer[g->n_initializer++] = t;
}

static void second_input(Onnx__NodeProto *n, const char *name)
{
    n->input = realloc(n->input, 2 * sizeof(void *));
    CHECK(n->input != NULL);
    n->input[1] = strdup(name);
    n->n_input = 2;
}

/* As torch.export writes the end of the network. */
static void as_reduce_and_reshape(Onnx__ModelProto *m)
{
    Onnx__NodeProto *pool = onnx_node(m, "GlobalAveragePool", 0), *flat = onnx_node(m, "Flatten", 0);
    onnx_rename(&pool->op_type, "ReduceMean");
    new_ints(m, "axes", -1, -2);
    second_input(pool, "axes");
    onnx_rename(&flat->op_type, "Reshape");
    onnx_rename(&flat->attribute[0]->name, "allowzero");
    new_ints(m, "shape", 2, 64);
    second_input(flat, "shape");
}

/* Initialisers among the inputs, as before IR version 4; a free size. */
static void as_old_inputs(Onnx__ModelProto *m)
{
    Onnx__GraphProto *g = m->graph;
    Onnx__ValueInfoProto *v = calloc(1, sizeof *v);
    Onnx__TensorShapeProto *shape = g->input[0]->type->tensor_type->shape;
    g->input = realloc(g->input, 2 * sizeof(void *));
    CHECK(v && g->input);
    onnx__value_info_proto__init(v);
    v->name = strdup("fc.bias");
    g->input[g->n_input++] = v;
    m->ir_version = 3;
    shape->dim[2]->has_dim_value = shape->dim[3]->has_dim_value = 0;
}

/* Each norm into the convolution before it, as PyTorch's exporters do it. */
static void as_folded(Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->graph->n_node; i++) {
        Onnx__NodeProto *conv = m->graph->node[i], *norm = m->graph->node[i + 1];
        const float *p[4];
        float *w, *bias;
        size_t each;
        if (strcmp(conv->op_type, "Conv") != 0) continue;
        assert_string_equal(norm->op_type, "BatchNormalization");
        for (size_t k = 0; k < 4; k++) p[k] = (const float *)onnx_tensor(m, norm->input[k + 1])->raw_data.data;
        w = (float *)onnx_tensor(m, conv->input[1])->raw_data.data;
        bias = (float *)onnx_tensor(m, norm->input[2])->raw_data.data;
        each = onnx_tensor(m, conv->input[1])->raw_data.len / onnx_tensor(m, norm->input[2])->raw_data.len;
        for (size_t c = 0; c < onnx_tensor(m, norm->input[2])->raw_data.len / sizeof(float); c++) {
            const double scale = p[0][c] / sqrt((double)p[3][c] + 1e-5);
            for (size_t k = 0; k < each; k++) w[c * each + k] = (float)(w[c * each + k] * scale);
            bias[c] = (float)(p[1][c] - p[2][c] * scale);
        }
        conv->input = realloc(conv->input, 3 * sizeof(void *));
        CHECK(conv->input != NULL);
        conv->input[2] = strdup(norm->input[2]);
        conv->n_input = 3;
        onnx_cut(m, norm, conv->output[0]);
    }
}

static void habits_of_exporters_are_followed(void **state)
{
    const struct {
        bend *how;
        double tolerance; /* 0: to the bit */
    } each[] = {{as_float_data, 0},         {as_strange_names, 0}, {as_swapped_terms, 0}, {as_identities, 0},
                {as_reduce_and_reshape, 0}, {as_old_inputs, 0},    {as_folded, 1e-5}};
    struct scratch s;
    struct fkt_model *m = made(FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR);
    const char *path;
    (void)state;
    scratch_init(&s);
    path = scratch_path(&s, "model.onnx");
    CHECK_OK(fkt_model_export_onnx(m, path, 0));
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        Onnx__ModelProto *parts = onnx_apart(path);
        struct fkt_model *back = NULL;
        uint8_t *bytes;
        size_t len;
        each[i].how(parts);
        bytes = onnx_together(parts, &len);
        CHECK_OK(fkt_onnx_parse(&back, bytes, len, "bent", 0));
        same_logits(m, back, each[i].tolerance);
        if (each[i].tolerance == 0) same_weights(m, back);
        fkt_model_free(back);
        free(bytes);
    }
    fkt_model_free(m);
    scratch_release(&s);
}

/* Graphs as PyTorch writes them, without numbers (tests/vectors/onnx/onnx.json): tensor i gets its own numbers. */
static float mark(size_t i, size_t k) { return (float)(i + 1) / 128 + (float)(k % 8) / 1048576; }

static void fill_hollow(Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++) {
        Onnx__TensorProto *t = m->graph->initializer[i];
        size_t n = 1;
        float *x;
        if (t->data_type != 1) continue;
        for (size_t d = 0; d < t->n_dims; d++) n *= (size_t)t->dims[d];
        x = malloc(n * sizeof *x);
        CHECK(x != NULL && !t->raw_data.len);
        for (size_t k = 0; k < n; k++) x[k] = mark(i, k);
        t->has_raw_data = 1;
        t->raw_data = (ProtobufCBinaryData){n * sizeof *x, (uint8_t *)x};
    }
}

/* The number of the initialiser that node `reader` reads as its input k, through Identity nodes. */
static size_t source_of(Onnx__ModelProto *m, Onnx__NodeProto *reader, size_t k)
{
    const char *name = reader->input[k];
    for (size_t hop = 0; hop < 100; hop++) {
        for (size_t i = 0; i < m->graph->n_initializer; i++)
            if (!strcmp(m->graph->initializer[i]->name, name)) return i;
        for (size_t i = 0; i < m->graph->n_node; i++)
            if (!strcmp(m->graph->node[i]->output[0], name)) {
                name = m->graph->node[i]->input[0];
                break;
            }
    }
    fail_msg("no source");
    return 0;
}

static float first_of(const struct fkt_model *m, const char *name)
{
    for (size_t i = 0; i < fkt_model_tensors(m); i++)
        if (!strcmp(fkt_model_tensor(m, i).name, name)) return fkt_model_tensor(m, i).data[0];
    fail_msg("no tensor %s", name);
    return 0;
}

/* By hand, where the stem, the second convolution of layer4.0 (the 16th; its shortcut is the 17th) and the last layer
 * have their numbers; folded norms do nothing but add. */
static void graphs_of_pytorch_are_read(void **state)
{
    static const char *const files[] = {"torch_export", "torch_export_any_batch", "torchscript_folded",
                                        "torchscript_kept_once"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char path[512];
        struct fkt_model *m = NULL;
        Onnx__ModelProto *parts;
        size_t len, stem, last, conv, folded = i < 3;
        Onnx__NodeProto *norm;
        float bias;
        uint8_t *bytes;
        snprintf(path, sizeof path, FKT_TEST_VECTORS "/onnx/%s.onnx", files[i]);
        parts = onnx_apart(path);
        fill_hollow(parts);
        stem = source_of(parts, onnx_node(parts, "Conv", 0), 1);
        conv = source_of(parts, onnx_node(parts, "Conv", 16), 1);
        norm = onnx_node(parts, folded ? "Conv" : "BatchNormalization", 16);
        bias =
            norm->n_input > 2 ? mark(source_of(parts, norm, 2), 0) : 0; /* torch.export leaves out those that are 0 */
        last = source_of(parts, onnx_node(parts, "Gemm", 0), 2);
        bytes = onnx_together(parts, &len);
        CHECK_OK(fkt_onnx_parse(&m, bytes, len, files[i], 0));
        CHECK(fkt_model_stem(m) == FKT_STEM_IMAGENET && fkt_model_size(m) == 64 && fkt_model_classes(m) == 10);
        CHECK_NEAR(first_of(m, "conv1.weight"), mark(stem, 0), 0);
        CHECK_NEAR(first_of(m, "layer4.0.conv2.weight"), mark(conv, 0), 0);
        CHECK_NEAR(first_of(m, "layer4.0.bn2.bias"), bias, 0);
        CHECK_NEAR(first_of(m, "fc.bias"), mark(last, 0), 0);
        if (folded) CHECK_NEAR(first_of(m, "layer4.0.bn2.weight"), 1, 0);
        if (folded) CHECK_NEAR(first_of(m, "layer4.0.bn2.running_var"), 1 - 1e-5, 1e-7);
        fkt_model_free(m);
        free(bytes);
    }
}

/* Without our metadata classes are numbers, and the image size is that of the input. */
static void a_foreign_file_has_no_metadata(void **state)
{
    struct scratch s;
    struct fkt_model *m = made(FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR), *back = NULL;
    Onnx__ModelProto *parts;
    uint8_t *bytes;
    size_t len;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_model_export_onnx(m, scratch_path(&s, "model.onnx"), 0));
    parts = onnx_apart(scratch_path(&s, "model.onnx"));
    onnx_rename(&parts->metadata_props[0]->key, "formerly");
    bytes = onnx_together(parts, &len);
    CHECK_OK(fkt_onnx_parse(&back, bytes, len, "bent", 0));
    same_weights(m, back);
    CHECK(fkt_model_size(back) == SIDE && !fkt_model_origin(back)->is_private);
    assert_string_equal(fkt_model_class(back, 2), "2");
    CHECK_NEAR(fkt_model_mean(back)[0], 0.485, 1e-6);
    fkt_model_free(back);
    CHECK_OK(fkt_onnx_parse(&back, bytes, len, "bent", 48));
    CHECK(fkt_model_size(back) == 48);
    fkt_model_free(back);
    free(bytes);
    CHECK_STATUS(fkt_model_load(&back, scratch_path(&s, "model.onnx"), 48), FKT_E_MISMATCH);
    fkt_model_free(m);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),       cmocka_unit_test(nothing_is_overwritten_or_half_written),
        cmocka_unit_test(habits_of_exporters_are_followed), cmocka_unit_test(graphs_of_pytorch_are_read),
        cmocka_unit_test(a_foreign_file_has_no_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
