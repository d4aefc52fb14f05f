/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier/model.h"
#include "tests/support/check.h"

static const struct {
    const char *list;
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t classes, features;
    uint64_t parameters;
} known[] = {
    /* 11,689,512 is what torchvision's documentation states */
    {"resnet18-imagenet", FKT_ARCHITECTURE_RESNET18, FKT_STEM_IMAGENET, 1000, 512, 11689512},
    {"resnet18-cifar", FKT_ARCHITECTURE_RESNET18, FKT_STEM_CIFAR, 10, 512, 11173962},
    {"resnet8", FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 10, 64, 78042},
};
enum { KNOWN = sizeof known / sizeof *known };

/* The lists were written by torchvision (oracle/model_vectors.py): same tensors, same order, same shapes. */
static void names_and_shapes_are_torchvisions(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        char path[512], line[128];
        struct fkt_net net;
        size_t s = 0;
        FILE *f;
        snprintf(path, sizeof path, "%s/model/%s.txt", FKT_TEST_VECTORS, known[i].list);
        f = fopen(path, "r");
        CHECK(f && fgets(line, sizeof line, f)); /* the hash of the values */
        fkt_net_init(&net, 3);
        fkt_resnet_build(&net, known[i].architecture, known[i].stem, known[i].classes);
        CHECK_OK(fkt_net_status(&net));
        while (fgets(line, sizeof line, f)) {
            char want[128];
            size_t n = 0;
            if (strstr(line, "num_batches_tracked")) continue;
            CHECK(s < net.n_slots && net.slot[s].parts == 1);
            n = (size_t)snprintf(want, sizeof want, "%s", net.slot[s].name[0]);
            for (uint32_t d = 0; d < net.slot[s].rank; d++)
                n += (size_t)snprintf(want + n, sizeof want - n, " %u", net.slot[s].shape[d]);
            line[strcspn(line, "\n")] = '\0';
            assert_string_equal(want, line);
            s++;
        }
        CHECK(s == net.n_slots);
        fclose(f);
        fkt_net_clear(&net);
    }
}

static void shapes_of_values_are_those_of_the_paper(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        const uint32_t sizes[] = {FKT_MODEL_SIZE_MIN, 32, 45, 224, FKT_MODEL_SIZE_MAX};
        struct fkt_net net;
        struct fkt_shape *shapes = NULL;
        fkt_net_init(&net, 3);
        fkt_resnet_build(&net, known[i].architecture, known[i].stem, known[i].classes);
        CHECK_OK(fkt_alloc(&shapes, net.n_ops + 1));
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const struct fkt_shape *last;
            CHECK_OK(fkt_net_shapes(&net, sizes[k], sizes[k], shapes));
            last = &shapes[net.n_ops];
            CHECK(last->c == known[i].classes && last->h == 1 && last->w == 1);
            CHECK(last[-1].c == known[i].features && last[-1].h == 1 && last[-1].w == 1);
            CHECK(last[-1].c == fkt_resnet_features(known[i].architecture));
            if (sizes[k] == 224 && i == 0) {
                CHECK(last[-2].h == 7); /* table 1 */
                /* 1.82e9 multiply-adds: table 1 says 1.8e9 */
                CHECK_REL((double)fkt_net_flops(&net, shapes) / 2, 1.82e9, 0.01);
            }
        }
        CHECK(net.op[net.n_ops - 1].kind == FKT_OP_LINEAR && net.op[net.n_ops - 2].kind == FKT_OP_MEAN);
        fkt_free(shapes);
        fkt_net_clear(&net);
    }
}

static void parameters_are_torchvisions(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        static char text[1000][4];
        static const char *names[1000];
        struct fkt_model_spec spec = {known[i].architecture, known[i].stem, 32, names, known[i].classes, NULL, NULL, 1};
        struct fkt_model *m = NULL;
        for (int k = 0; k < 1000; k++) {
            snprintf(text[k], sizeof text[k], "%d", k);
            names[k] = text[k];
        }
        CHECK_OK(fkt_model_new(&m, &spec));
        CHECK(fkt_model_parameters(m) == known[i].parameters);
        fkt_model_free(m);
    }
}

static void two_shapes_tell_the_network(void **state)
{
    const uint64_t conv[][4] = {{64, 3, 7, 7}, {64, 3, 3, 3}, {16, 3, 3, 3}},
                   strange[][4] = {{16, 3, 7, 7}, {64, 1, 3, 3},         {64, 3, 3, 7}, {64, 3, 5, 5},
                                   {32, 3, 3, 3}, {UINT64_MAX, 3, 3, 3}, {0, 0, 0, 0}};
    struct fkt_resnet_kind kind;
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        const uint64_t fc[2] = {known[i].classes, known[i].features};
        CHECK(fkt_resnet_recognise(&kind, conv[i], fc));
        CHECK(kind.architecture == known[i].architecture && kind.stem == known[i].stem);
        CHECK(kind.classes == known[i].classes);
    }
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        CHECK(!fkt_resnet_recognise(&kind, strange[i], (const uint64_t[]){10, 512}));
    CHECK(!fkt_resnet_recognise(&kind, conv[0], (const uint64_t[]){0, 512}));
    CHECK(!fkt_resnet_recognise(&kind, conv[0], (const uint64_t[]){FKT_MODEL_CLASSES_MAX + 1, 512}));
    CHECK(!fkt_resnet_recognise(&kind, conv[0], (const uint64_t[]){(1ULL << 32) + 1, 512}));
}

static void names_of_kinds_go_both_ways(void **state)
{
    (void)state;
    CHECK(fkt_architecture_parse("resnet18") == FKT_ARCHITECTURE_RESNET18 &&
          fkt_architecture_parse("resnet8") == FKT_ARCHITECTURE_RESNET8);
    CHECK(fkt_stem_parse("cifar") == FKT_STEM_CIFAR && fkt_stem_parse("imagenet") == FKT_STEM_IMAGENET);
    assert_string_equal(fkt_architecture_name(FKT_ARCHITECTURE_RESNET8), "resnet8");
    assert_string_equal(fkt_stem_name(FKT_STEM_IMAGENET), "imagenet");
    CHECK(fkt_architecture_parse("resnet") == -1 && fkt_architecture_parse("") == -1 && fkt_stem_parse("x") == -1);
    CHECK(!*fkt_architecture_name((enum fkt_architecture)2) && !*fkt_stem_name((enum fkt_stem)9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes_are_torchvisions), cmocka_unit_test(shapes_of_values_are_those_of_the_paper),
        cmocka_unit_test(parameters_are_torchvisions),       cmocka_unit_test(two_shapes_tell_the_network),
        cmocka_unit_test(names_of_kinds_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
