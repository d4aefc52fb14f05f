/* SPDX-License-Identifier: Apache-2.0 */
/* Where weights are looked for, and what is said when they are not there. */
#include "base/file.h"
#include "codec/manifest.h"
#include "codec/cache.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static void environment(const char *own, const char *xdg, const char *home)
{
    const char *name[] = {"FEDKT_CACHE", "XDG_CACHE_HOME", "HOME"}, *value[] = {own, xdg, home};
    for (int i = 0; i < 3; i++) {
        if (value[i]) CHECK(setenv(name[i], value[i], 1) == 0);
        else CHECK(unsetenv(name[i]) == 0);
    }
}

static void check_cache(const char *want)
{
    char *got = NULL;
    CHECK_OK(fkt_codec_cache(&got, "taesd"));
    assert_string_equal(got, want);
    fkt_free(got);
}

static void the_cache_follows_the_specification(void **state)
{
    char *got = NULL;
    (void)state;
    environment("/c", "/x", "/h");
    check_cache("/c/codecs/taesd");
    environment("here/", "/x", "/h");
    check_cache("here/codecs/taesd");
    environment("", "/x//", "/h");
    check_cache("/x/fedkt/codecs/taesd");
    environment(NULL, "relative", "/h");
    check_cache("/h/.cache/fedkt/codecs/taesd");
    environment(NULL, "", "/");
    check_cache("//.cache/fedkt/codecs/taesd");
    environment(NULL, NULL, NULL);
    CHECK_STATUS(fkt_codec_cache(&got, "taesd"), FKT_E_IO);
    environment(NULL, NULL, "relative");
    CHECK_STATUS(fkt_codec_cache(&got, "taesd"), FKT_E_IO);
    CHECK(!got);
}

static void a_name_cannot_climb(void **state)
{
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", "a\nb", ".hidden"};
    char *got = NULL;
    (void)state;
    environment("/c", NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_STATUS(fkt_codec_cache(&got, bad[i]), FKT_E_ARG);
    CHECK(!got);
}

static void absent_weights_come_with_a_way_out(void **state)
{
    struct scratch s;
    char *got = NULL, folder[300];
    (void)state;
    scratch_init(&s);
    environment(s.dir, NULL, NULL);
    CHECK_STATUS(fkt_codec_weights_path(&got, "taesd3", NULL), FKT_E_IO);
    CHECK(!got && strstr(fkt_error_text(), "'taesd3'"));
    CHECK(fkt_error_hint_code() == FKT_HINT_PULL && !strcmp(fkt_error_hint_value(0), "taesd3"));
    CHECK(strstr(fkt_error_hint(), "diffusion_pytorch_model.safetensors") && strstr(fkt_error_hint(), "config.json"));
    snprintf(folder, sizeof folder, "%s/codecs/taesd3", s.dir);
    CHECK(strstr(fkt_error_hint(), folder));
    CHECK_OK(fkt_mkdirs(folder));
    CHECK_OK(fkt_file_write(scratch_path(&s, "codecs/taesd3/.safetensors"), "", 0, 0));
    CHECK_OK(fkt_file_write(scratch_path(&s, "codecs/taesd3/config.json"), "", 0, 0));
    CHECK_STATUS(fkt_codec_weights_path(&got, "taesd3", NULL),
                 FKT_E_IO); /* a folder without weights is as good as none */
    CHECK_OK(fkt_file_write(scratch_path(&s, "codecs/taesd3/a.safetensors"), "", 0, 0));
    CHECK_OK(fkt_codec_weights_path(&got, "taesd3", NULL));
    assert_string_equal(got, folder);
    fkt_free(got);
    scratch_release(&s);
}

static void a_path_that_is_given_wins(void **state)
{
    struct scratch s;
    char *got = NULL;
    const char *file, *loop, *pipe;
    (void)state;
    scratch_init(&s);
    environment(NULL, NULL, NULL);
    file = scratch_path(&s, "w");
    loop = scratch_path(&s, "loop");
    pipe = scratch_path(&s, "pipe");
    CHECK_OK(fkt_file_write(file, "", 0, 0));
    CHECK(symlink("loop", loop) == 0 && mkfifo(pipe, 0600) == 0);
    CHECK_OK(fkt_codec_weights_path(&got, "taesd", file));
    assert_string_equal(got, file);
    fkt_free(got);
    CHECK_OK(fkt_codec_weights_path(&got, "taesd", s.dir));
    fkt_free(got);
    CHECK_STATUS(fkt_codec_weights_path(&got, "taesd", scratch_path(&s, "none")), FKT_E_IO);
    CHECK_STATUS(fkt_codec_weights_path(&got, "taesd", loop), FKT_E_IO);
    CHECK_STATUS(fkt_codec_weights_path(&got, "taesd", pipe), FKT_E_ARG);
    CHECK(!got);
    scratch_release(&s);
}

static int is_hash(const char *s) { return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64; }

static void the_manifest_is_sound(void **state)
{
    (void)state;
    CHECK(fkt_published_count >= 11 && !fkt_published_find("dct"));
    for (size_t i = 0; i < fkt_published_count; i++) {
        const struct fkt_published *p = &fkt_published[i];
        char *folder = NULL;
        int weights = 0;
        CHECK(fkt_published_find(p->name) == p && strchr(p->repo, '/') && p->revision && p->summary);
        CHECK(!strcmp(p->family, "resnet") ? p->down == 1 : p->down >= 8);
        CHECK(!strcmp(p->family, "taesd") || !strcmp(p->family, "dc-ae") || !strcmp(p->family, "resnet"));
        environment("/c", NULL, NULL);
        CHECK_OK(fkt_codec_cache(&folder, p->name));
        fkt_free(folder);
        for (int f = 0; f < FKT_PUBLISHED_FILES && p->file[f].name; f++) {
            CHECK(!strchr(p->file[f].name, '/') && (!p->file[f].sha256 || is_hash(p->file[f].sha256)));
            weights += strstr(p->file[f].name, ".safetensors") != NULL;
        }
        CHECK(weights >= 1);
    }
    CHECK(!fkt_known_file_find("") &&
          fkt_known_file_find("a6b8c0fda4aad50784e543389e0239c72c5e31e9775c9e612ea8333bf3a77dcb"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_follows_the_specification),
        cmocka_unit_test(a_name_cannot_climb),
        cmocka_unit_test(absent_weights_come_with_a_way_out),
        cmocka_unit_test(a_path_that_is_given_wins),
        cmocka_unit_test(the_manifest_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
