/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a path means, and what is said of files that lie, are cut, or are none. Each refusal is one clear line
 * and leaves nothing behind. */
#include "base/file.h"
#include "codec/family.h"
#include "tests/support/check.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static struct scratch dir;
static struct member m;

/* Paths inside the scratch folder, each of which lives as long as the test. */
static const char *at(const char *name)
{
    static char paths[64][256];
    static size_t next;
    char *p = paths[next++ % 64];
    snprintf(p, 256, "%s/%s", dir.dir, name);
    return p;
}

static void folder(const char *name) { CHECK(mkdir(at(name), 0700) == 0); }

static void text(const char *name, const char *s)
{
    CHECK_OK(fkt_file_write(at(name), s, strlen(s), FKT_FILE_REPLACE));
}

static void taesd(const char *name, int side, uint64_t latent)
{
    member_release(&m);
    member_init(&m, (uint64_t)side);
    member_taesd(&m, side, 4, latent, 0);
    member_write(&m, at(name), FKT_F32);
}

static void tiny(const char *name)
{
    member_release(&m);
    member_init(&m, 1);
    member_taesd(&m, 0, 4, 4, 1);
    member_taesd(&m, 1, 4, 4, 1);
    member_write(&m, at(name), FKT_F32);
}

static void opens(const char *path, const char *codec, const char *kind, const char *layout)
{
    struct fkt_family f;
    CHECK_OK(fkt_family_open(&f, path, codec, NULL));
    assert_string_equal(f.kind, kind);
    assert_string_equal(f.layout, layout);
    CHECK(f.path[0] && f.file[0] && (f.path[1] != NULL) == !strcmp(layout, "taesd"));
    fkt_family_clear(&f);
    CHECK(!f.path[0]);
}

static void refused(const char *path, const char *codec, fkt_status want, const char *say)
{
    struct fkt_family f;
    char *report = NULL;
    size_t live = fkt_alloc_live();
    CHECK_STATUS(fkt_family_open(&f, path, codec, &report), want);
    if (!strstr(fkt_error_text(), say)) fail_msg("'%s' does not say '%s'", fkt_error_text(), say);
    if (strchr(fkt_error_text(), '\n')) fail_msg("more than one line: '%s'", fkt_error_text());
    fkt_free(report);
    CHECK(fkt_alloc_live() == live && !f.net[0].op && !f.file[0] && !f.path[0]);
}

static void folders_and_files(void **state)
{
    (void)state;
    folder("d");
    tiny("d/diffusion_pytorch_model.safetensors");
    opens(at("d"), NULL, "taesd", "diffusers");
    opens(at("d/"), "taesd", "taesd", "diffusers");
    opens(at("d/diffusion_pytorch_model.safetensors"), NULL, "taesd", "diffusers");
    folder("e");
    member_release(&m);
    member_init(&m, 1);
    struct member_dcae c = member_small_dcae;
    c.efficientvit = 1;
    member_dcae(&m, &c);
    member_write(&m, at("e/model.safetensors"), FKT_F32);
    opens(at("e"), "dc-ae", "dc-ae", "efficientvit");
    folder("p");
    taesd("p/some_encoder.safetensors", 0, 4);
    refused(at("p"), NULL, FKT_E_IO, "some_decoder.safetensors");
    taesd("p/some_decoder.safetensors", 1, 4);
    opens(at("p"), NULL, "taesd", "taesd");
    opens(at("p"), "taesdxl", "taesd", "taesd"); /* a pair of no member's name may be anyone's */
    opens(at("p/some_encoder.safetensors"), NULL, "taesd", "taesd");
    opens(at("p/some_decoder.safetensors"), NULL, "taesd", "taesd");
}

static void the_name_picks_among_pairs(void **state)
{
    struct fkt_family f;
    (void)state;
    folder("two");
    for (int side = 0; side < 2; side++) {
        taesd(side ? "two/taesd_decoder.safetensors" : "two/taesd_encoder.safetensors", side, 4);
        taesd(side ? "two/taesd3_decoder.safetensors" : "two/taesd3_encoder.safetensors", side, 16);
    }
    CHECK_OK(fkt_family_open(&f, at("two"), "taesd3", NULL));
    CHECK(f.latent_channels == 16 && strstr(f.path[1], "taesd3_decoder"));
    fkt_family_clear(&f);
    CHECK_OK(fkt_family_open(&f, at("two"), "taesd", NULL));
    CHECK(f.latent_channels == 4 && strstr(f.path[0], "taesd_encoder"));
    fkt_family_clear(&f);
    refused(at("two"), "taesdxl", FKT_E_MISMATCH, "holds 2 pairs, and 'taesdxl' is not among them: taesd3, taesd");
    refused(at("two"), NULL, FKT_E_MISMATCH, "holds 2 pairs");
    folder("one");
    taesd("one/taesd_encoder.safetensors", 0, 4);
    taesd("one/taesd_decoder.safetensors", 1, 4);
    refused(at("one"), "taesdxl", FKT_E_MISMATCH, "holds the weights of 'taesd', not of 'taesdxl'");
    refused(at("one/taesd_decoder.safetensors"), "taesdxl", FKT_E_MISMATCH, "holds the weights of 'taesd', not of");
    opens(at("one"), "tiny", "taesd", "taesd");
}

static void what_is_no_weights(void **state)
{
    (void)state;
    folder("empty");
    refused(at("empty"), NULL, FKT_E_IO, "holds no weights");
    assert_non_null(strstr(fkt_error_hint(), "diffusion_pytorch_model.safetensors"));
    refused(at("nowhere"), NULL, FKT_E_IO, "No such file");
    CHECK(symlink(at("loop"), at("loop")) == 0);
    refused(at("loop"), NULL, FKT_E_IO, "symbolic links");
    folder("inner-loop");
    CHECK(symlink(at("inner-loop/model.safetensors"), at("inner-loop/model.safetensors")) == 0);
    refused(at("inner-loop"), NULL, FKT_E_IO, "symbolic links");
    folder("nested");
    folder("nested/model.safetensors");
    refused(at("nested"), NULL, FKT_E_IO, "not a regular file");
    CHECK(mkfifo(at("pipe"), 0600) == 0);
    refused(at("pipe"), NULL, FKT_E_IO, "not a regular file");
    text("empty.safetensors", "");
    refused(at("empty.safetensors"), NULL, FKT_E_FORMAT, "is empty");
    text("words.safetensors", "these are not weights at all");
    refused(at("words.safetensors"), NULL, FKT_E_FORMAT, "header");
}

/* A header by hand with n bytes of zeros behind it. */
static void raw(const char *name, const char *header, size_t n)
{
    uint64_t length = strlen(header);
    FILE *f = fopen(at(name), "wb");
    CHECK(f && fwrite(&length, 8, 1, f) == 1 && fputs(header, f) >= 0);
    while (n--) CHECK(fputc(0, f) == 0);
    CHECK(fclose(f) == 0);
}

static void files_that_lie(void **state)
{
    uint8_t *bytes = NULL;
    size_t len;
    (void)state;
    tiny("cut.safetensors");
    CHECK_OK(fkt_file_read(&bytes, &len, at("cut.safetensors"), 1 << 20));
    CHECK_OK(fkt_file_write(at("cut.safetensors"), bytes, len - 5, FKT_FILE_REPLACE));
    refused(at("cut.safetensors"), NULL, FKT_E_FORMAT, "of a data part of");
    CHECK_OK(fkt_file_write(at("cut.safetensors"), bytes, 100, FKT_FILE_REPLACE));
    refused(at("cut.safetensors"), NULL, FKT_E_FORMAT, "does not fit a file of 100");
    fkt_free(bytes);
    raw("overlap.safetensors",
        "{\"0.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"1.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        12);
    refused(at("overlap.safetensors"), NULL, FKT_E_FORMAT, "overlaps another");
    raw("huge.safetensors",
        "{\"0.weight\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8);
    refused(at("huge.safetensors"), NULL, FKT_E_FORMAT, "overflows");
    raw("none.safetensors", "{}", 0);
    refused(at("none.safetensors"), NULL, FKT_E_MISMATCH, "holds no tensors");
    raw("stranger.safetensors",
        "{\"encoder.down_blocks.0.resnets.0.conv1.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        4);
    refused(at("stranger.safetensors"), NULL, FKT_E_MISMATCH,
            "is of no family that is known here: its first tensor is 'encoder.down_blocks.0.resnets.0.conv1.weight'");
}

/* Empty tensors may have any dimension without being long: nothing may grow with it. */
static void dimensions_of_nothing(void **state)
{
    (void)state;
    raw("void.safetensors",
        "{\"encoder.layers.0.weight\":{\"dtype\":\"F32\",\"shape\":[4000000000,0],\"data_offsets\":[0,0]},"
        "\"encoder.layers.1.conv.0.weight\":{\"dtype\":\"F32\",\"shape\":[4000000000,0,3,3],\"data_offsets\":[0,0]},"
        "\"encoder.layers.14.weight\":{\"dtype\":\"F32\",\"shape\":[4000000000,0],\"data_offsets\":[0,0]},"
        "\"decoder.layers.2.conv.0.weight\":{\"dtype\":\"F32\",\"shape\":[4000000000,0,3,3],\"data_offsets\":[0,0]}}",
        0);
    refused(at("void.safetensors"), NULL, FKT_E_MISMATCH, "has layers of more than 65536 channels");
    raw("void2.safetensors",
        "{\"encoder.stages.1.op_list.0.main.conv1.conv.bias\":{\"dtype\":\"F32\",\"shape\":[4000000000,0],"
        "\"data_offsets\":[0,0]},"
        "\"decoder.stages.1.op_list.0.main.conv1.conv.bias\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
        4);
    refused(at("void2.safetensors"), NULL, FKT_E_MISMATCH, "has no width between 1 and 65536");
}

static void configs_that_lie(void **state)
{
    static const struct {
        const char *config, *say;
        fkt_status want;
    } cases[] = {
        {"", "is not JSON", FKT_E_FORMAT},
        {"{", "is not JSON", FKT_E_FORMAT},
        {"[1]", "is not a JSON object", FKT_E_FORMAT},
        {"{\"latent_channels\": 4, \"latent_channels\": 4}", "is not JSON", FKT_E_FORMAT},
        {"{\"latent_channels\": \"four\"}", "'latent_channels' is not a whole number", FKT_E_FORMAT},
        {"{\"latent_channels\": 99999999999}", "'latent_channels' is not a whole number", FKT_E_FORMAT},
        {"{\"scaling_factor\": 0}", "'scaling_factor' is not a number in range", FKT_E_FORMAT},
        {"{\"scaling_factor\": 1e300}", "'scaling_factor' is not a number in range", FKT_E_FORMAT},
        {"{\"act_fn\": \"a\\nb\"}", "'act_fn' is not a short word", FKT_E_FORMAT},
        {"{\"act_fn\": \"relurelurelurelurelurelurelurelurelurelurelurelurelurelu\"}", "'act_fn' is not a short word",
         FKT_E_FORMAT},
        {"{\"num_encoder_blocks\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", "list of 1 to 16", FKT_E_FORMAT},
        {"{\"encoder_out_shortcut\": 1}", "is not true or false", FKT_E_FORMAT},
        {"{\"latent_channels\": 16}", "latent_channels is 16, the tensors have 4", FKT_E_MISMATCH},
        {"{\"act_fn\": \"silu\"}", "act_fn is 'silu', this network has 'relu'", FKT_E_MISMATCH},
        {"{\"num_encoder_blocks\": [1, 3, 3, 4]}", "num_encoder_blocks says 4 for stage 3", FKT_E_MISMATCH},
        {"{\"decoder_block_out_channels\": [4, 4, 4, 8]}", "says 8 for stage 3, the tensors have 4", FKT_E_MISMATCH},
        {"{\"_class_name\": \"AutoencoderDC\"}", "_class_name is 'AutoencoderDC'", FKT_E_MISMATCH},
    };
    struct fkt_family f;
    (void)state;
    folder("c");
    tiny("c/diffusion_pytorch_model.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text("c/config.json", cases[i].config);
        refused(at("c"), NULL, cases[i].want, cases[i].say);
    }
    text("c/config.json", "{\"_class_name\": \"AutoencoderTiny\", \"act_fn\": \"relu\", \"scaling_factor\": 1.5,"
                          "\"shift_factor\": null, \"latent_channels\": 4, \"num_encoder_blocks\": [1, 3, 3, 3]}");
    CHECK_OK(fkt_family_open(&f, at("c"), NULL, NULL));
    CHECK(f.latent_scale == 1.5 && f.latent_shift == 0);
    fkt_family_clear(&f);
    CHECK(unlink(at("c/config.json")) == 0 && mkdir(at("c/config.json"), 0700) == 0);
    refused(at("c"), NULL, FKT_E_IO, "not a regular file");
    CHECK(rmdir(at("c/config.json")) == 0 && symlink("nowhere", at("c/config.json")) == 0);
    refused(at("c"), NULL, FKT_E_IO, "config.json"); /* somebody meant one to be there */
    CHECK(unlink(at("c/config.json")) == 0);
}

static int set_up(void **state)
{
    (void)state;
    scratch_init(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    member_release(&m);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_files),     cmocka_unit_test(the_name_picks_among_pairs),
        cmocka_unit_test(what_is_no_weights),    cmocka_unit_test(files_that_lie),
        cmocka_unit_test(dimensions_of_nothing), cmocka_unit_test(configs_that_lie),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
