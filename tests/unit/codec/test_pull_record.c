/* SPDX-License-Identifier: Apache-2.0 */
/* fedkt-weights.json: what is written is read, and what is not ours is refused. */
#include "base/file.h"
#include "codec/pull_record.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define HASH "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f"
#define FILE_OF(name, size, hash, checked)                                                                             \
    "{\"name\":\"" name "\",\"size\":" size ",\"sha256\":\"" hash "\",\"checked\":\"" checked "\"}"
#define RECORD(schema, commit, files)                                                                                  \
    "{\"schema\":\"" schema "\",\"codec\":\"taesd\",\"hub\":\"https://h\",\"repo\":\"a/b\",\"revision\":\"main\","     \
    "\"commit\":" commit ",\"files\":[" files "]}"
#define GOOD FILE_OF("a", "1", HASH, "hub")

static void what_is_written_is_read(void **state)
{
    struct fkt_weights_record a = {.codec = "taesd", .hub = "https://h", .repo = "a/b", .revision = "v1", .files = 2},
                              b;
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK(!fkt_weights_record_there(s.dir));
    CHECK_STATUS(fkt_weights_record_load(&b, s.dir), FKT_E_IO);
    for (int i = 0; i < 2; i++) {
        snprintf(a.file[i].name, sizeof a.file[i].name, "file%d", i);
        snprintf(a.file[i].sha256, sizeof a.file[i].sha256, "%s", HASH);
        snprintf(a.file[i].checked, sizeof a.file[i].checked, "%s", i ? "hub" : "first-seen");
        a.file[i].size = 1ULL << (40 + i);
    }
    CHECK_OK(fkt_weights_record_save(&a, s.dir));
    CHECK(fkt_weights_record_there(s.dir));
    CHECK_OK(fkt_weights_record_load(&b, s.dir));
    CHECK(b.commit[0] == '\0' && b.files == 2 && b.file[1].size == a.file[1].size);
    assert_string_equal(b.revision, "v1");
    assert_string_equal(b.file[0].checked, "first-seen");
    snprintf(a.commit, sizeof a.commit, "abc");
    CHECK_OK(fkt_weights_record_save(&a, s.dir));
    CHECK_OK(fkt_weights_record_load(&b, s.dir));
    assert_string_equal(b.commit, "abc");
    scratch_release(&s);
}

static void what_is_not_a_record_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        RECORD("fedkt.weights/2", "null", GOOD),
        RECORD("fedkt.weights/1", "7", GOOD),
        RECORD("fedkt.weights/1", "null", ""),
        RECORD("fedkt.weights/1", "null", "7"),
        RECORD("fedkt.weights/1", "null", FILE_OF("../a", "1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF(".a", "1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("", "1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a\\n", "1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a\\u009b2J", "1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a\\u0000b", "1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a", "-1", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a", "1.5", HASH, "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a", "1", "1f", "hub")),
        RECORD("fedkt.weights/1", "null", FILE_OF("a", "1", HASH, "me")),
        RECORD("fedkt.weights/1", "null", GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD "," GOOD),
    };
    struct fkt_weights_record r;
    struct scratch s;
    const char *path;
    (void)state;
    scratch_init(&s);
    path = scratch_path(&s, FKT_RECORD_NAME);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_OK(fkt_file_write(path, bad[i], strlen(bad[i]), FKT_FILE_REPLACE));
        if (fkt_weights_record_load(&r, s.dir) != FKT_E_FORMAT) fail_msg("taken: %s", bad[i]);
        CHECK(r.files == 0);
    }
    CHECK_OK(fkt_file_write(path, RECORD("fedkt.weights/1", "null", GOOD),
                            strlen(RECORD("fedkt.weights/1", "null", GOOD)), FKT_FILE_REPLACE));
    CHECK_OK(fkt_weights_record_load(&r, s.dir));
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
                                       cmocka_unit_test(what_is_not_a_record_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
