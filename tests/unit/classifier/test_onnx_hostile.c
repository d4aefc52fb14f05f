/* SPDX-License-Identifier: Apache-2.0 */
/* Malicious ONNX files, each refused with a sentence that says where: one row each. They are altered copies of a good
 * file of ours; the first test shows that copying alone changes nothing. */
#include "classifier/onnx.h"
#include "tests/support/bent_onnx.h"
#include "tests/support/scratch.h"

static struct scratch place;
static char good[512];

static int make_good(void **state)
{
    const char *names[] = {"a", "b", "c", "d", "e"};
    const struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 32, .classes = names, .n_classes = 5, .seed = 3};
    struct fkt_model *m = NULL;
    (void)state;
    scratch_init(&place);
    snprintf(good, sizeof good, "%s", scratch_path(&place, "good.onnx"));
    if (fkt_model_new(&m, &spec) != FKT_OK || fkt_model_export_onnx(m, good, 0) != FKT_OK) return -1;
    fkt_model_free(m);
    return 0;
}

static int remove_good(void **state)
{
    (void)state;
    scratch_release(&place);
    return 0;
}

static Onnx__AttributeProto *attribute(Onnx__ModelProto *m, const char *type, size_t n, const char *name)
{
    return onnx_attribute(onnx_node(m, type, n), name);
}

/* ---- the alterations ---- */

static void none(Onnx__ModelProto *m) { (void)m; }
static void negative_dim(Onnx__ModelProto *m) { onnx_tensor(m, "layer2.0.conv1.weight")->dims[1] = -16; }
static void huge_dims(Onnx__ModelProto *m)
{
    for (size_t i = 0; i < 4; i++) onnx_tensor(m, "layer2.0.conv1.weight")->dims[i] = INT64_C(1) << 33;
}
static void wrong_dims(Onnx__ModelProto *m)
{
    Onnx__TensorProto *t = onnx_tensor(m, "layer2.0.conv1.weight"); /* as many numbers as before */
    t->dims[0] = 16;
    t->dims[1] = 32;
}
static void wrong_rank(Onnx__ModelProto *m) { onnx_tensor(m, "layer1.0.bn1.bias")->n_dims = 0; }
static void classes_beyond_the_file(Onnx__ModelProto *m) { onnx_tensor(m, "fc.weight")->dims[0] = 65536; }
static void too_many_classes(Onnx__ModelProto *m) { onnx_tensor(m, "fc.weight")->dims[0] = INT64_MAX; }
static void negative_classes(Onnx__ModelProto *m) { onnx_tensor(m, "fc.weight")->dims[0] = -1; }
static void no_classes(Onnx__ModelProto *m) { onnx_tensor(m, "fc.weight")->dims[0] = 0; }
static void short_data(Onnx__ModelProto *m) { onnx_tensor(m, "layer1.0.conv2.weight")->raw_data.len -= 4; }
static void odd_data(Onnx__ModelProto *m) { onnx_tensor(m, "layer1.0.conv2.weight")->raw_data.len -= 1; }
static void no_data(Onnx__ModelProto *m) { onnx_tensor(m, "fc.bias")->has_raw_data = 0; }
static void both_data(Onnx__ModelProto *m)
{
    Onnx__TensorProto *t = onnx_tensor(m, "fc.bias");
    t->float_data = calloc(5, sizeof(float));
    t->n_float_data = 5;
}
static void half_floats(Onnx__ModelProto *m) { onnx_tensor(m, "fc.bias")->data_type = 10; }
static void elsewhere(Onnx__ModelProto *m)
{
    Onnx__TensorProto *t = onnx_tensor(m, "layer3.0.conv1.weight");
    t->has_data_location = 1;
    t->data_location = 1;
}
static void elsewhere_unsaid(Onnx__ModelProto *m) /* the location is given, but not that it is used */
{
    Onnx__TensorProto *t = onnx_tensor(m, "layer3.0.conv1.weight");
    t->external_data = calloc(1, sizeof *t->external_data);
    t->n_external_data = 1;
}
static void one_input_more(Onnx__NodeProto *n, const char *name)
{
    n->input = realloc(n->input, (n->n_input + 1) * sizeof(void *));
    n->input[n->n_input++] = strdup(name);
}
static void bias_before_norm(Onnx__ModelProto *m) { one_input_more(onnx_node(m, "Conv", 1), "layer1.0.bn1.bias"); }
static void folded_bias_of_five(Onnx__ModelProto *m) /* where sixteen are read */
{
    one_input_more(onnx_node(m, "Conv", 0), "fc.bias");
    onnx_cut(m, onnx_node(m, "BatchNormalization", 0), "conv1_out");
}
static void mean_of_colours(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "GlobalAveragePool", 0);
    Onnx__AttributeProto *a = calloc(1, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = strdup("axes");
    a->has_type = 1;
    a->type = 7;
    a->n_ints = 2;
    a->ints = calloc(2, sizeof *a->ints);
    a->ints[0] = 1;
    a->ints[1] = 2;
    n->attribute = calloc(1, sizeof(void *));
    n->attribute[n->n_attribute++] = a;
    onnx_rename(&n->op_type, "ReduceMean");
}
static void not_a_number(Onnx__ModelProto *m)
{
    const float nan = NAN;
    memcpy(onnx_tensor(m, "layer3.0.bn2.weight")->raw_data.data + 8, &nan, 4);
}
static void negative_variance(Onnx__ModelProto *m)
{
    const float below = -1;
    memcpy(onnx_tensor(m, "layer3.0.bn2.running_var")->raw_data.data + 12, &below, 4);
}
static void missing_tensor(Onnx__ModelProto *m) { onnx_rename(&onnx_tensor(m, "layer1.0.bn2.running_var")->name, "x"); }
static void tensor_twice(Onnx__ModelProto *m) { onnx_rename(&onnx_tensor(m, "fc.bias")->name, "conv1.weight"); }
static void value_twice(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Relu", 1)->output[0], "conv1_out"); }
static void value_is_tensor(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Relu", 1)->output[0], "fc.bias"); }
static void value_is_input(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Relu", 1)->output[0], "images"); }
static void identity_circle(Onnx__ModelProto *m)
{
    onnx_rename(&onnx_node(m, "BatchNormalization", 2)->input[1], "p");
    onnx_add(m, "Identity", "p", "q");
    onnx_add(m, "Identity", "q", "p");
}

static void swapped_nodes(Onnx__ModelProto *m) /* ReLU before the norm, values renamed so that each has its own */
{
    Onnx__NodeProto *norm = onnx_node(m, "BatchNormalization", 0), *relu = onnx_node(m, "Relu", 0);
    Onnx__GraphProto *g = m->graph;
    onnx_rename(&norm->output[0], relu->output[0]);
    onnx_rename(&relu->output[0], "between");
    onnx_rename(&relu->input[0], norm->input[0]);
    onnx_rename(&norm->input[0], "between");
    g->node[1] = relu;
    g->node[2] = norm;
}
static void swapped_places(Onnx__ModelProto *m)
{
    Onnx__NodeProto *first = m->graph->node[4];
    m->graph->node[4] = m->graph->node[5];
    m->graph->node[5] = first;
}
static void many_inputs(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "Add", 0);
    n->input = realloc(n->input, 9 * sizeof(void *));
    while (n->n_input < 9) n->input[n->n_input++] = strdup("images");
}
static void no_relu(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "Relu", 1);
    char *x = strdup(n->input[0]);
    onnx_cut(m, n, x);
    free(x);
}
static void another_function(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Relu", 2)->op_type, "Sigmoid"); }
static void another_sum(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Add", 1)->input[1], "conv1_out"); }
static void one_more(Onnx__ModelProto *m) { onnx_add(m, "Relu", "logits", "more"); }
static void another_output(Onnx__ModelProto *m)
{
    onnx_add(m, "Gemm", "features", "more");
    onnx_rename(&m->graph->output[0]->name, "more");
}
static void softmax(Onnx__ModelProto *m)
{
    onnx_add(m, "Softmax", "logits", "p");
    onnx_rename(&m->graph->output[0]->name, "p");
}
static void circle(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Conv", 0)->input[0], "conv1_out"); }
static void unread_input(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Conv", 0)->input[0], "fc.bias"); }
static void computed_tensor(Onnx__ModelProto *m)
{
    onnx_rename(&onnx_node(m, "BatchNormalization", 2)->input[1], "conv1_out");
}
static void conv_of_nothing(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "Conv", 3);
    onnx_drop(n->input, &n->n_input);
}
static void norm_of_four(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "BatchNormalization", 3);
    onnx_drop(n->input, &n->n_input);
}
static void two_results(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "BatchNormalization", 0);
    n->output = realloc(n->output, 2 * sizeof(void *));
    n->output[1] = strdup("saved");
    n->n_output = 2;
}
static void no_result(Onnx__ModelProto *m)
{
    Onnx__NodeProto *n = onnx_node(m, "Relu", 0);
    onnx_drop(n->output, &n->n_output);
}
static void no_type(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Relu", 0)->op_type, ""); }

static void stride(Onnx__ModelProto *m) { attribute(m, "Conv", 3, "strides")->ints[1] = 1; }
static void pads(Onnx__ModelProto *m) { attribute(m, "Conv", 1, "pads")->ints[3] = 0; }
static void pads_of_two(Onnx__ModelProto *m) { attribute(m, "Conv", 1, "pads")->n_ints = 2; }
static void no_stride(Onnx__ModelProto *m) { onnx_rename(&attribute(m, "Conv", 3, "strides")->name, "kernel_shape"); }
static void absent(Onnx__ModelProto *m, const char *type, size_t n, const char *name)
{
    Onnx__NodeProto *node = onnx_node(m, type, n);
    size_t k = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (strcmp(node->attribute[i]->name, name) != 0) node->attribute[k++] = node->attribute[i];
        else onnx__attribute_proto__free_unpacked(node->attribute[i], NULL);
    }
    CHECK(k + 1 == node->n_attribute);
    node->n_attribute = k;
}
static void absent_stride(Onnx__ModelProto *m) { absent(m, "Conv", 3, "strides"); }
static void absent_pads(Onnx__ModelProto *m) { absent(m, "Conv", 0, "pads"); }
static void absent_transposition(Onnx__ModelProto *m) { absent(m, "Gemm", 0, "transB"); }
static void absent_but_usual(Onnx__ModelProto *m) /* ONNX's default is the required value */
{
    absent(m, "Conv", 0, "strides");
    absent(m, "Conv", 1, "kernel_shape");
    absent(m, "Flatten", 0, "axis");
    absent(m, "BatchNormalization", 0, "epsilon");
}
static void attribute_twice(Onnx__ModelProto *m)
{
    onnx_rename(&attribute(m, "Conv", 0, "strides")->name, "kernel_shape"); /* stride 1 is the usual one */
    for (size_t i = 0; i < 2; i++) attribute(m, "Conv", 0, "kernel_shape")->ints[i] = 3;
    for (size_t i = 0; i < 2; i++) onnx_node(m, "Conv", 0)->attribute[1]->ints[i] = 3;
}
static void unknown_attribute(Onnx__ModelProto *m) { onnx_rename(&attribute(m, "Flatten", 0, "axis")->name, "way"); }
static void flatten_axis(Onnx__ModelProto *m) { attribute(m, "Flatten", 0, "axis")->i = 2; }
static void epsilon(Onnx__ModelProto *m) { attribute(m, "BatchNormalization", 0, "epsilon")->f = 1e-3F; }
static void epsilon_nan(Onnx__ModelProto *m) { attribute(m, "BatchNormalization", 0, "epsilon")->f = NAN; }
static void transposed(Onnx__ModelProto *m) { attribute(m, "Gemm", 0, "transB")->i = 0; }

static void foreign_operator(Onnx__ModelProto *m) { onnx_rename(&onnx_node(m, "Relu", 0)->domain, "com.example"); }
static void old_opset(Onnx__ModelProto *m) { m->opset_import[0]->version = 6; }
static void old_ir(Onnx__ModelProto *m) { m->ir_version = 1; }
static void two_inputs(Onnx__ModelProto *m)
{
    Onnx__GraphProto *g = m->graph;
    Onnx__ValueInfoProto *v = calloc(1, sizeof *v);
    onnx__value_info_proto__init(v);
    v->name = strdup("more");
    g->input = realloc(g->input, 2 * sizeof(void *));
    g->input[g->n_input++] = v;
}
static void nameless_input(Onnx__ModelProto *m)
{
    free(m->graph->input[0]->name);
    m->graph->input[0]->name = NULL; /* the field is absent, and what read the input reads nothing */
    onnx_rename(&onnx_node(m, "Conv", 0)->input[0], "");
}
static void empty_input(Onnx__ModelProto *m)
{
    onnx_rename(&m->graph->input[0]->name, "");
    onnx_rename(&onnx_node(m, "Conv", 0)->input[0], "");
}
static void nameless_output(Onnx__ModelProto *m)
{
    free(m->graph->output[0]->name);
    m->graph->output[0]->name = NULL;
}
static void input_rank(Onnx__ModelProto *m)
{
    Onnx__TensorShapeProto *s = m->graph->input[0]->type->tensor_type->shape;
    protobuf_c_message_free_unpacked(&s->dim[--s->n_dim]->base, NULL);
}
static void grey_input(Onnx__ModelProto *m) { m->graph->input[0]->type->tensor_type->shape->dim[1]->dim_value = 1; }
static void oblong_input(Onnx__ModelProto *m) { m->graph->input[0]->type->tensor_type->shape->dim[2]->dim_value = 31; }
static void another_side(Onnx__ModelProto *m)
{
    for (size_t i = 2; i < 4; i++) m->graph->input[0]->type->tensor_type->shape->dim[i]->dim_value = 64;
}
static void byte_input(Onnx__ModelProto *m) { m->graph->input[0]->type->tensor_type->elem_type = 2; }
static void first_conv(Onnx__ModelProto *m) { onnx_tensor(m, "conv1.weight")->dims[0] = 32; }
static void silent_words(Onnx__ModelProto *m) { onnx_rename(&m->metadata_props[7]->key, "x"); }
static void other_words(Onnx__ModelProto *m) { onnx_rename(&m->metadata_props[1]->value, "resnet18"); }

static const struct lie {
    void (*tell)(Onnx__ModelProto *m);
    fkt_status want;
    const char *words; /* of the sentence */
} lies[] = {
    {none, FKT_OK, ""},
    {negative_dim, FKT_E_MISMATCH, "'layer2.0.conv1.weight' is 32x-16x3x3"},
    {huge_dims, FKT_E_MISMATCH, "8589934592x8589934592"},
    {wrong_dims, FKT_E_MISMATCH, "16x32x3x3"},
    {wrong_rank, FKT_E_MISMATCH, "a single number"},
    {classes_beyond_the_file, FKT_E_FORMAT, "'fc.weight' should hold 4194304 numbers, but has 1280 bytes"},
    {too_many_classes, FKT_E_MISMATCH, "its last layer 9223372036854775807x64"},
    {negative_classes, FKT_E_MISMATCH, "its last layer -1x64"},
    {no_classes, FKT_E_MISMATCH, "its last layer 0x64"},
    {short_data, FKT_E_FORMAT, "'layer1.0.conv2.weight' should hold 2304 numbers, but has 9212 bytes"},
    {odd_data, FKT_E_FORMAT, "9215 bytes"},
    {no_data, FKT_E_FORMAT, "0 bytes and 0 numbers"},
    {both_data, FKT_E_FORMAT, "20 bytes and 5 numbers"},
    {half_floats, FKT_E_MISMATCH, "type 10, not as float32"},
    {elsewhere, FKT_E_MISMATCH, "'layer3.0.conv1.weight' in another file"},
    {elsewhere_unsaid, FKT_E_MISMATCH, "'layer3.0.conv1.weight' in another file"},
    {bias_before_norm, FKT_E_MISMATCH, "a convolution has a bias, but the norm of 'layer1.0.bn1.weight' follows"},
    {folded_bias_of_five, FKT_E_MISMATCH, "the tensor that should be 'bn1.bias' is 5"},
    {mean_of_colours, FKT_E_MISMATCH, "its mean is not over the last two dimensions"},
    {not_a_number, FKT_E_NUMERIC, "'layer3.0.bn2.weight'"},
    {negative_variance, FKT_E_NUMERIC, "negative variance"},
    {missing_tensor, FKT_E_FORMAT, "'layer1.0.bn2.running_var' is read before it is made"},
    {tensor_twice, FKT_E_FORMAT, "'conv1.weight' is given twice"},
    {value_twice, FKT_E_FORMAT, "'conv1_out' is given twice"},
    {value_is_tensor, FKT_E_FORMAT, "'fc.bias' is given twice"},
    {value_is_input, FKT_E_FORMAT, "'images' is given twice"},
    {identity_circle, FKT_E_FORMAT, "'p' is read before it is made"},
    {swapped_nodes, FKT_E_MISMATCH, "after 'Relu_2' comes 'BatchNormalization', not 'Conv'"},
    {swapped_places, FKT_E_FORMAT, "'layer1.0.bn1_out' is read before it is made"},
    {many_inputs, FKT_E_MISMATCH, "'Add' with 9 inputs"},
    {no_relu, FKT_E_MISMATCH, "after 'layer1.0.bn1' comes 'Conv', not 'Relu'"},
    {another_function, FKT_E_MISMATCH, "comes 'Sigmoid', not 'Relu'"},
    {another_sum, FKT_E_MISMATCH, "the 'Add' after 'layer2.0.bn2' reads other values"},
    {one_more, FKT_E_MISMATCH, "an extra operator 'Relu'"},
    {another_output, FKT_E_MISMATCH, "its last layer computed"},
    {softmax, FKT_E_MISMATCH, "ends with 'Softmax'"},
    {circle, FKT_E_FORMAT, "'conv1_out' is read before it is made"},
    {unread_input, FKT_E_MISMATCH, "begins with 'nothing'"},
    {computed_tensor, FKT_E_MISMATCH, "has no tensor 'conv1_out', which should be 'layer1.0.bn2.weight'"},
    {conv_of_nothing, FKT_E_MISMATCH, "should be 'layer2.0.conv1.weight' is 32x16x1x1"},
    {norm_of_four, FKT_E_MISMATCH, "'BatchNormalization'"},
    {two_results, FKT_E_MISMATCH, "with 2 results"},
    {no_result, FKT_E_MISMATCH, "with 0 results"},
    {no_type, FKT_E_MISMATCH, "comes '', not 'Relu'"},
    {stride, FKT_E_MISMATCH, "attribute 'strides' of 'layer2.0.conv1' ('Conv') is 2,1 but this network has 2"},
    {pads, FKT_E_MISMATCH, "is 1,1,1,0 but this network has 1"},
    {pads_of_two, FKT_E_MISMATCH, "is 1,1 but"},
    {no_stride, FKT_E_MISMATCH, "'kernel_shape'"},
    {absent_stride, FKT_E_MISMATCH,
     "attribute 'strides' of 'layer2.0.conv1' ('Conv') is absent but this network has 2"},
    {absent_pads, FKT_E_MISMATCH, "'pads' of 'conv1' ('Conv') is absent"},
    {absent_transposition, FKT_E_MISMATCH, "'transB' of 'fc' ('Gemm') is absent"},
    {absent_but_usual, FKT_OK, ""},
    {attribute_twice, FKT_E_MISMATCH, "attribute 'kernel_shape' of operator 'Conv'"},
    {unknown_attribute, FKT_E_MISMATCH, "attribute 'way' of operator 'Flatten'"},
    {flatten_axis, FKT_E_MISMATCH, "'axis'"},
    {epsilon, FKT_E_MISMATCH, "is 0.001 but this network has 1e-05"},
    {epsilon_nan, FKT_E_MISMATCH, "'epsilon'"},
    {transposed, FKT_E_MISMATCH, "'transB'"},
    {foreign_operator, FKT_E_MISMATCH, "'com.example'"},
    {old_opset, FKT_E_MISMATCH, "opset 6"},
    {old_ir, FKT_E_MISMATCH, "IR version 1"},
    {two_inputs, FKT_E_MISMATCH, "2 inputs and 1 outputs"},
    {nameless_input, FKT_E_FORMAT, "its input has no name"},
    {empty_input, FKT_E_FORMAT, "its input has no name"},
    {nameless_output, FKT_E_MISMATCH, "ends with 'nothing'"},
    {input_rank, FKT_E_MISMATCH, "takes 3 dimensions"},
    {grey_input, FKT_E_MISMATCH, "in 1 colours"},
    {oblong_input, FKT_E_MISMATCH, "31 x 32 px"},
    {another_side, FKT_E_MISMATCH, "32 px, not 64"},
    {byte_input, FKT_E_MISMATCH, "takes bytes"},
    {first_conv, FKT_E_MISMATCH, "first convolution are 32x3x3x3, those of its last layer 5x64"},
    {silent_words, FKT_E_FORMAT, "is a model without 'private'"},
    {other_words, FKT_E_MISMATCH, "claims to be resnet18"},
};

static void every_alteration_is_named(void **state)
{
    const size_t live = fkt_alloc_live();
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        Onnx__ModelProto *parts = onnx_apart(good);
        struct fkt_model *m = NULL;
        uint8_t *bytes;
        size_t len;
        fkt_status st;
        lies[i].tell(parts);
        bytes = onnx_together(parts, &len);
        st = fkt_onnx_parse(&m, bytes, len, "bent", 0);
        if (st != lies[i].want || (st != FKT_OK && !strstr(fkt_error_text(), lies[i].words)))
            fail_msg("lie %zu: want '%s' and \"%s\", got '%s' and \"%s\"", i, fkt_status_name(lies[i].want),
                     lies[i].words, fkt_status_name(st), fkt_error_text());
        CHECK((m != NULL) == (st == FKT_OK));
        fkt_model_free(m);
        free(bytes);
        CHECK(fkt_alloc_live() == live);
    }
}

/* Truncated anywhere: in each of the first 2,000 bytes, and at 400 places of the rest. */
static void a_cut_file_is_refused(void **state)
{
    uint8_t *bytes = NULL;
    size_t len, live = fkt_alloc_live();
    (void)state;
    CHECK_OK(fkt_file_read(&bytes, &len, good, (size_t)1 << 24));
    for (size_t n = 0; n < len; n += n < 2000 ? 1 : len / 400) {
        struct fkt_model *m = NULL;
        uint8_t *cut = malloc(n + 1); /* its own block, so that a read beyond it shows under a sanitizer */
        fkt_status st;
        memcpy(cut, bytes, n);
        st = fkt_onnx_parse(&m, cut, n, "cut", 0);
        CHECK(st == FKT_E_FORMAT || st == FKT_E_MISMATCH);
        CHECK(m == NULL);
        free(cut);
    }
    fkt_free(bytes);
    CHECK(fkt_alloc_live() == live);
}

/* Length of a message in front of it, field `number`. */
static size_t put_head(uint8_t *out, unsigned number, size_t len)
{
    size_t n = 1;
    out[0] = (uint8_t)(number << 3 | 2);
    for (; len >= 128; len >>= 7) out[n++] = (uint8_t)(len | 128);
    out[n++] = (uint8_t)len;
    return n;
}

/* Two bytes a node: 8 MB of them would be a gigabyte in memory. */
static void a_bomb_is_refused_before_it_takes_memory(void **state)
{
    enum { NODES = 4 << 20 };
    uint8_t *bytes = malloc(2 * (size_t)NODES + 16);
    struct fkt_model *m = NULL;
    size_t n = 0;
    (void)state;
    CHECK(bytes != NULL);
    bytes[n++] = 0x08; /* ir_version 7 */
    bytes[n++] = 7;
    n += put_head(bytes + n, 7, 2 * (size_t)NODES);
    for (size_t i = 0; i < NODES; i++) {
        bytes[n++] = 0x0A;
        bytes[n++] = 0;
    }
    CHECK_STATUS(fkt_onnx_parse(&m, bytes, n, "bomb", 0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "more memory"));
    free(bytes);
}

static void many_nodes(void **state)
{
    Onnx__ModelProto *parts = onnx_apart(good);
    struct fkt_model *m = NULL;
    uint8_t *bytes;
    char name[32];
    size_t len;
    (void)state;
    for (int i = 0; i < 1024; i++) {
        snprintf(name, sizeof name, "n%d", i);
        onnx_add(parts, "Identity", "fc.bias", name);
    }
    bytes = onnx_together(parts, &len);
    CHECK_STATUS(fkt_onnx_parse(&m, bytes, len, "bent", 0), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "operators and 47 tensors"));
    free(bytes);
}

static void long_words(void **state)
{
    Onnx__ModelProto *parts = onnx_apart(good);
    struct fkt_model *m = NULL;
    char *word = malloc((5 << 20) + 1);
    uint8_t *bytes;
    size_t len;
    (void)state;
    memset(word, '[', 5 << 20);
    word[5 << 20] = '\0';
    onnx_rename(&parts->metadata_props[4]->value, word);
    bytes = onnx_together(parts, &len);
    CHECK_STATUS(fkt_onnx_parse(&m, bytes, len, "bent", 0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "metadata of 5242880 bytes"));
    free(bytes);
    free(word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_alteration_is_named),
        cmocka_unit_test(a_cut_file_is_refused),
        cmocka_unit_test(a_bomb_is_refused_before_it_takes_memory),
        cmocka_unit_test(many_nodes),
        cmocka_unit_test(long_words),
    };
    return cmocka_run_group_tests(tests, make_good, remove_good);
}
