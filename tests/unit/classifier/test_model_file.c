/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier/model.h"
#include "base/file.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {"aeroplane", "caf\xc3\xa9 \"1\"", "tree"};
static const struct fkt_model_spec small = {FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 24, names, 3, NULL, NULL, 7};
static struct scratch scratch;
static const char *path;

static int begin(void **state)
{
    (void)state;
    scratch_init(&scratch);
    path = scratch_path(&scratch, "model.safetensors");
    return 0;
}
static int end(void **state)
{
    (void)state;
    scratch_release(&scratch);
    return 0;
}

static void a_model_survives_the_disk_to_the_bit(void **state)
{
    const float mean[3] = {0.1F, 1e-7F, 0.333333343F}, std[3] = {0.2F, 1, 3};
    struct fkt_model_origin origin = {
        1,         9.999999999999998, 1e-5,      "add-remove", "", "release 3f2a, 1200 drawn per class",
        "stretch", "--epochs 3",      "3 images"};
    struct fkt_model_spec spec = small;
    struct fkt_model *a = NULL, *b = NULL;
    uint8_t *first = NULL, *second = NULL;
    size_t n = 0, m = 0;
    (void)state;
    for (int i = 0; i < 64; i++) origin.release_sha256[i] = "0123456789abcdef"[i % 16];
    spec.mean = mean;
    spec.std = std;
    CHECK_OK(fkt_model_new(&a, &spec));
    fkt_model_set_origin(a, &origin);
    CHECK_OK(fkt_model_save(a, path, 0));
    CHECK_STATUS(fkt_model_save(a, path, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_file_read(&first, &n, path, 1 << 20));
    CHECK_OK(fkt_model_load(&b, path, 0));
    CHECK(fkt_model_architecture(b) == FKT_ARCHITECTURE_RESNET8 && fkt_model_stem(b) == FKT_STEM_CIFAR &&
          fkt_model_size(b) == 24);
    CHECK(fkt_model_classes(b) == 3);
    for (uint32_t k = 0; k < 3; k++) assert_string_equal(fkt_model_class(b, k), names[k]);
    CHECK(!memcmp(fkt_model_mean(b), mean, sizeof mean) && !memcmp(fkt_model_std(b), std, sizeof std));
    CHECK(!memcmp(fkt_model_origin(b), fkt_model_origin(a), sizeof origin));
    for (size_t i = 0; i < fkt_model_tensors(a); i++) {
        struct fkt_model_tensor x = fkt_model_tensor(a, i), y = fkt_model_tensor(b, i);
        CHECK(!strcmp(x.name, y.name) && x.count == y.count && !memcmp(x.data, y.data, x.count * sizeof(float)));
    }
    CHECK_OK(fkt_model_save(b, path, 1));
    CHECK_OK(fkt_file_read(&second, &m, path, 1 << 20));
    CHECK(n == m && !memcmp(first, second, n));
    fkt_free(first);
    fkt_free(second);
    fkt_model_free(a);
    fkt_model_free(b);
    CHECK(fkt_alloc_live() == 0);
}

/* As torchvision's state_dict has them (oracle/model_vectors.py), the scalars that strict=True wants among them. */
static void the_file_is_a_state_dict(void **state)
{
    static const char *const ten[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct fkt_model_spec spec = small;
    struct fkt_safetensors *file = NULL;
    struct fkt_model *m = NULL;
    char line[128];
    size_t i = 0;
    FILE *f = fopen(FKT_TEST_VECTORS "/model/resnet8.txt", "r");
    (void)state;
    spec.classes = ten;
    spec.n_classes = 10;
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK_OK(fkt_model_save(m, path, 1));
    CHECK_OK(fkt_safetensors_open(&file, path));
    CHECK(f && fgets(line, sizeof line, f)); /* the hash of the values */
    for (; fgets(line, sizeof line, f); i++) {
        const struct fkt_tensor *t = fkt_safetensors_at(file, i);
        const int scalar = strstr(line, "num_batches_tracked") != NULL;
        char want[128];
        size_t n;
        CHECK(i < fkt_safetensors_count(file));
        CHECK(t->dtype == (scalar ? FKT_I64 : FKT_F32) && (t->rank == 0) == scalar);
        n = (size_t)snprintf(want, sizeof want, "%s", t->name);
        for (unsigned d = 0; d < t->rank; d++)
            n += (size_t)snprintf(want + n, sizeof want - n, " %llu", (unsigned long long)t->shape[d]);
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(want, line);
        CHECK((uintptr_t)t->data % fkt_dtype_size(t->dtype) == 0);
    }
    CHECK(i == fkt_safetensors_count(file));
    fclose(f);
    fkt_safetensors_free(file);
    fkt_model_free(m);
}

static void sizes_must_agree(void **state)
{
    struct fkt_model *a = NULL, *b = NULL;
    (void)state;
    CHECK_OK(fkt_model_new(&a, &small));
    CHECK_OK(fkt_model_save(a, path, 1));
    CHECK_OK(fkt_model_load(&b, path, 24));
    fkt_model_free(b);
    CHECK_STATUS(fkt_model_load(&b, path, 32), FKT_E_MISMATCH);
    CHECK(!b && strstr(fkt_error_text(), "24 px, not 32"));
    CHECK_STATUS(fkt_model_load(&b, path, 4), FKT_E_ARG);
    CHECK_STATUS(fkt_model_load(&b, path, UINT32_MAX), FKT_E_ARG);
    fkt_model_free(a);
}

static void a_private_model_must_say_its_promise(void **state)
{
    const struct fkt_model_origin unreadable[] = {
        {.is_private = 1},
        {.is_private = 1, .epsilon = 1, .delta = 1e-5, .adjacency = "some"},
        {.is_private = 1, .epsilon = 1, .delta = 1e-5, .release_sha256 = "88"},
        {.release_sha256 = "no hash"},
    };
    struct fkt_model *a = NULL;
    (void)state;
    CHECK_OK(fkt_model_new(&a, &small));
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        fkt_model_set_origin(a, &unreadable[i]);
        CHECK_STATUS(fkt_model_save(a, path, 1), FKT_E_ARG);
    }
    fkt_model_free(a);
}

static void numbers_that_cannot_run_are_not_saved(void **state)
{
    struct fkt_model *a = NULL;
    (void)state;
    CHECK_OK(fkt_model_new(&a, &small));
    unlink(path);
    fkt_model_tensor(a, 3).data[5] = NAN;
    CHECK_STATUS(fkt_model_save(a, path, 1), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "'bn1.running_mean'") && strstr(fkt_error_text(), "element 5"));
    fkt_model_tensor(a, 3).data[5] = 0;
    fkt_model_tensor(a, 4).data[1] = -1e-3F;
    CHECK_STATUS(fkt_model_save(a, path, 1), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "negative variance") && access(path, F_OK) != 0);
    fkt_model_free(a);
}

/* A file as other programs write it: the tensors of a new model, with one thing changed. */
struct bend {
    enum fkt_dtype dtype;      /* of all tensors */
    const char *skip, *rename; /* tensor that is left out, or goes by the name `to` */
    const char *to;
    const char *extra; /* one more tensor */
    const char *cut;   /* tensor with one row less */
    const char *spoil; /* tensor with `value` at element 2 */
    float value;
    const char *format, *key, *text; /* metadata */
    int counters;
};
static const struct bend plain = {.dtype = FKT_F32};

static uint16_t half_of(float x, int bf16) /* exact for the small powers of two below */
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    if (bf16) return (uint16_t)(b >> 16);
    return x == 0 ? 0 : (uint16_t)((b >> 16 & 0x8000) | (((b >> 23 & 255) - 112) << 10));
}

static void add(struct fkt_st_writer *w, const struct bend *k, const struct fkt_model_tensor *t, void **kept)
{
    uint64_t shape[4];
    const int cut = k->cut && !strcmp(t->name, k->cut);
    const char *name = k->rename && !strcmp(t->name, k->rename) ? k->to : t->name;
    uint16_t *half = NULL;
    for (uint32_t d = 0; d < t->rank; d++) shape[d] = t->shape[d] - (cut && !d);
    if (k->skip && !strcmp(t->name, k->skip)) return;
    if (k->spoil && !strcmp(t->name, k->spoil)) t->data[2] = k->value;
    if (k->dtype != FKT_F32 && k->dtype != FKT_I32) {
        CHECK_OK(fkt_alloc(&half, t->count));
        for (size_t i = 0; i < t->count; i++) half[i] = half_of(t->data[i], k->dtype == FKT_BF16);
        *kept = half;
    }
    CHECK_OK(fkt_st_writer_add(w, name, k->dtype, t->rank, shape, half ? (void *)half : t->data));
}

static void write_bent(struct bend k)
{
    static const float more[4] = {1, 2, 3, 4};
    static const int64_t counter = 390;
    struct fkt_st_writer *w = NULL;
    struct fkt_model *m = NULL;
    void *kept[128] = {NULL};
    CHECK_OK(fkt_model_new(&m, &small));
    CHECK_OK(fkt_st_writer_new(&w));
    if (k.format) CHECK_OK(fkt_st_writer_meta(w, "format", k.format));
    if (k.key) CHECK_OK(fkt_st_writer_meta(w, k.key, k.text));
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        struct fkt_model_tensor t = fkt_model_tensor(m, i);
        if (k.dtype != FKT_F32)
            for (size_t e = 0; e < t.count; e++) t.data[e] = e % 2 ? 0.25F : 2;
        add(w, &k, &t, &kept[i]);
    }
    if (k.counters) CHECK_OK(fkt_st_writer_add(w, "layer2.0.bn1.num_batches_tracked", FKT_I64, 0, NULL, &counter));
    if (k.extra) CHECK_OK(fkt_st_writer_add(w, k.extra, FKT_F32, 1, (const uint64_t[]){4}, more));
    CHECK_OK(fkt_st_writer_write(w, path, FKT_FILE_REPLACE));
    fkt_st_writer_free(w);
    for (int i = 0; i < 128; i++) fkt_free(kept[i]);
    fkt_model_free(m);
}

static void refused(struct bend k, fkt_status want, const char *words)
{
    struct fkt_model *m = NULL;
    write_bent(k);
    CHECK_STATUS(fkt_model_load(&m, path, 0), want);
    if (m || !strstr(fkt_error_text(), path) || !strstr(fkt_error_text(), words))
        fail_msg("'%s' does not say '%s' of '%s'", fkt_error_text(), words, path);
}

static void files_of_pytorch_are_read(void **state)
{
    const enum fkt_dtype types[] = {FKT_F32, FKT_F16, FKT_BF16};
    struct fkt_model *m = NULL;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bend k = {.dtype = types[i], .format = i ? "pt" : NULL, .counters = i != 2};
        write_bent(k);
        CHECK_OK(fkt_model_load(&m, path, i == 1 ? 64 : 0));
        CHECK(fkt_model_architecture(m) == FKT_ARCHITECTURE_RESNET8 && fkt_model_size(m) == (i == 1 ? 64 : 32));
        CHECK(fkt_model_classes(m) == 3 && !strcmp(fkt_model_class(m, 2), "2"));
        CHECK(!fkt_model_origin(m)->is_private && !*fkt_model_origin(m)->data);
        if (i) CHECK(fkt_model_tensor(m, 4).data[0] == 2 && fkt_model_tensor(m, 4).data[1] == 0.25F);
        fkt_model_free(m);
    }
}

static void every_misfit_is_named(void **state)
{
    struct bend k = plain;
    (void)state;
    k.cut = "layer2.0.conv2.weight";
    refused(k, FKT_E_MISMATCH, "'layer2.0.conv2.weight' is (31,32,3,3), expected (32,32,3,3)");
    k = plain;
    k.skip = "layer3.0.downsample.1.running_var";
    refused(k, FKT_E_MISMATCH, "'layer3.0.downsample.1.running_var' (64) is missing");
    k = plain;
    k.extra = "layer4.0.conv1.weight";
    refused(k, FKT_E_MISMATCH, "'layer4.0.conv1.weight' (4) is not part of this network");
    k = plain;
    k.cut = "fc.bias"; /* the matrix tells K */
    refused(k, FKT_E_MISMATCH, "'fc.bias' is (2), expected (3)");
    k = plain;
    k.dtype = FKT_I32;
    refused(k, FKT_E_MISMATCH, "not a weight type");
    k = plain;
    k.skip = "conv1.weight";
    refused(k, FKT_E_MISMATCH, "'conv1.weight' is missing");
    k = plain;
    k.rename = "fc.weight";
    k.to = "module.fc.weight";
    refused(k, FKT_E_MISMATCH, "'fc.weight' is missing");
    CHECK(strstr(fkt_error_hint(), "prefix"));
    k = plain;
    k.cut = "conv1.weight";
    refused(k, FKT_E_MISMATCH, "'conv1.weight' is neither");
}

static void bad_numbers_are_named(void **state)
{
    struct bend k = plain;
    (void)state;
    k.spoil = "layer1.0.bn2.bias";
    k.value = NAN;
    refused(k, FKT_E_NUMERIC, "'layer1.0.bn2.bias'");
    CHECK(strstr(fkt_error_text(), "2"));
    k.value = -INFINITY;
    refused(k, FKT_E_NUMERIC, "'layer1.0.bn2.bias'");
    k.spoil = "bn1.running_var";
    k.value = -1;
    refused(k, FKT_E_NUMERIC, "tensor 'bn1.running_var'");
}

static void other_formats_are_told_apart(void **state)
{
    struct bend k = plain;
    (void)state;
    k.format = "fedkt.model/2";
    refused(k, FKT_E_FORMAT, "'fedkt.model/2', not fedkt.model/1");
    k.format = "fedkt.head/1";
    refused(k, FKT_E_FORMAT, "'fedkt.head/1'");
    k.format = FKT_MODEL_FORMAT; /* and says nothing else */
    refused(k, FKT_E_FORMAT, "is a model without 'architecture'");
    k = plain;
    k.key = "private"; /* metadata of other programs is ignored */
    k.text = "true";
    write_bent(k);
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_model_load(&m, path, 0));
    CHECK(!fkt_model_origin(m)->is_private);
    fkt_model_free(m);
}

/* A pipe without a writer: reading its first byte would block for ever. */
static void a_pipe_is_refused_and_not_waited_for(void **state)
{
    const char *pipe = scratch_path(&scratch, "pipe");
    struct fkt_model *m = NULL;
    (void)state;
    CHECK(mkfifo(pipe, 0600) == 0);
    alarm(20);
    CHECK_STATUS(fkt_model_load(&m, pipe, 0), FKT_E_IO);
    alarm(0);
    CHECK(strstr(fkt_error_text(), "not a regular file") && fkt_error_hint()[0]);
}

static void what_is_no_safetensors_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } files[] = {{"", 0},
                 {"x", 1},
                 {"\0\0\0\0\0\0\0\0", 8},
                 {"\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10},
                 {"\2\0\0\0\0\0\0\0{}", 10}};
    struct fkt_model *m = NULL;
    uint8_t *whole = NULL;
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fkt_status st;
        CHECK_OK(fkt_file_write(path, files[i].bytes, files[i].n, FKT_FILE_REPLACE));
        st = fkt_model_load(&m, path, 0);
        CHECK((st == FKT_E_FORMAT || st == FKT_E_MISMATCH) && !m);
    }
    CHECK_OK(fkt_file_write(path, "PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\10\0\0\0data.pkl", 38,
                            FKT_FILE_REPLACE));
    CHECK_STATUS(fkt_model_load(&m, path, 0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "pickled") && strstr(fkt_error_hint(), "save_file"));
    unlink(path);
    CHECK_STATUS(fkt_model_load(&m, path, 0), FKT_E_IO);
    write_bent(plain);
    CHECK_OK(fkt_file_read(&whole, &n, path, 1 << 20));
    for (size_t part = 1; part < 8; part++) {
        CHECK_OK(fkt_file_write(path, whole, n * part / 8, FKT_FILE_REPLACE));
        CHECK_STATUS(fkt_model_load(&m, path, 0), FKT_E_FORMAT);
    }
    CHECK_OK(fkt_file_write(path, whole, n - 1, FKT_FILE_REPLACE));
    CHECK_STATUS(fkt_model_load(&m, path, 0), FKT_E_FORMAT);
    fkt_free(whole);
    CHECK(!m && fkt_alloc_live() == 0);
}

/* A header that claims a last layer larger than any bound, over no bytes at all. */
static void huge_claims_are_refused_before_memory(void **state)
{
    static const char *const claims[] = {
        "{\"conv1.weight\":{\"dtype\":\"F32\",\"shape\":[64,3,3,3],\"data_offsets\":[0,0]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4000000000,512],\"data_offsets\":[0,0]}}",
        "{\"conv1.weight\":{\"dtype\":\"F32\",\"shape\":[64,3,3,3,0],\"data_offsets\":[0,0]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4000000000,0],\"data_offsets\":[0,0]}}",
        "{\"conv1.weight\":{\"dtype\":\"F32\",\"shape\":[0,3,3,3],\"data_offsets\":[0,0]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[60000,0],\"data_offsets\":[0,0]}}",
    };
    struct fkt_model *m = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        uint8_t bytes[512] = {0};
        size_t n = strlen(claims[i]);
        fkt_status st;
        bytes[0] = (uint8_t)n;
        bytes[1] = (uint8_t)(n >> 8);
        memcpy(bytes + 8, claims[i], n);
        CHECK_OK(fkt_file_write(path, bytes, n + 8, FKT_FILE_REPLACE));
        st = fkt_model_load(&m, path, 0);
        CHECK((st == FKT_E_FORMAT || st == FKT_E_MISMATCH) && !m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_survives_the_disk_to_the_bit),
        cmocka_unit_test(the_file_is_a_state_dict),
        cmocka_unit_test(sizes_must_agree),
        cmocka_unit_test(a_private_model_must_say_its_promise),
        cmocka_unit_test(numbers_that_cannot_run_are_not_saved),
        cmocka_unit_test(files_of_pytorch_are_read),
        cmocka_unit_test(every_misfit_is_named),
        cmocka_unit_test(bad_numbers_are_named),
        cmocka_unit_test(other_formats_are_told_apart),
        cmocka_unit_test(a_pipe_is_refused_and_not_waited_for),
        cmocka_unit_test(what_is_no_safetensors_is_refused),
        cmocka_unit_test(huge_claims_are_refused_before_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
