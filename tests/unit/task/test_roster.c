/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/text.h"
#include "fedkt/federation.h"
#include "fedkt/keys.h"
#include "fedkt/service.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/wait.h>
#include <unistd.h>

static void put(struct scratch *s, const char *text)
{
    CHECK_OK(fkt_file_write(scratch_path(s, "roster"), text, strlen(text), FKT_FILE_REPLACE));
}

/* n keys as text and bytes. */
static void some_sites(struct fkt_site_key *site, char (*hex)[65], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fkt_key k;
        char name[16];
        snprintf(name, sizeof name, "site %zu", i);
        CHECK_OK(fkt_key_make(&k, name));
        site[i] = k.site;
        fkt_hex(hex[i], k.site.key, FKT_SA_KEY);
        fkt_key_clear(&k);
    }
}

static void lines_have_names_or_none(void **state)
{
    struct scratch s;
    struct fkt_site_key site[3];
    struct fkt_roster r;
    struct fkt_federation_choices federation = {0};
    struct fkt_service_choices service = {0};
    char hex[3][65], text[512];
    (void)state;
    scratch_init(&s);
    some_sites(site, hex, 3);
    snprintf(text, sizeof text, "\xef\xbb\xbf# sites\r\n\n%s  North clinic \t\r\n%s\tH\xc3\xb4pital # 2\n%s\tEast",
             hex[0], hex[1], hex[2]);
    put(&s, text);
    CHECK_OK(fkt_roster_load(&r, scratch_path(&s, "roster")));
    CHECK(r.n == 3 && r.lines[0] == 3 && r.lines[2] == 5);
    for (int i = 0; i < 3; i++) assert_memory_equal(r.keys + i * FKT_SA_KEY, site[i].key, FKT_SA_KEY);
    CHECK_OK(fkt_roster_apply(&r, &federation, &service));
    CHECK(federation.sites == 3 && federation.roster == r.keys);
    assert_string_equal(service.names[0], "North clinic");
    assert_string_equal(service.names[1], "H\xc3\xb4pital # 2");
    assert_string_equal(service.names[2], "East");
    fkt_roster_clear(&r);
    snprintf(text, sizeof text, "%s\n%s\n%s\n", hex[0], hex[1], hex[2]);
    put(&s, text);
    CHECK_OK(fkt_roster_load(&r, scratch_path(&s, "roster")));
    CHECK_OK(fkt_roster_apply(&r, NULL, &service));
    CHECK(service.names == NULL);
    fkt_roster_clear(&r);
    snprintf(text, sizeof text, "%s a\n%s\n%s b\n", hex[0], hex[1], hex[2]);
    put(&s, text);
    CHECK_OK(fkt_roster_load(&r, scratch_path(&s, "roster")));
    CHECK_OK(fkt_roster_apply(&r, &federation, NULL)); /* names belong to the service */
    CHECK_STATUS(fkt_roster_apply(&r, &federation, &service), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "line 2") != NULL);
    fkt_roster_clear(&r);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void what_stands_there_twice_is_refused(void **state)
{
    struct scratch s;
    struct fkt_site_key site[3];
    struct fkt_roster r;
    char hex[3][65], text[512];
    (void)state;
    scratch_init(&s);
    some_sites(site, hex, 3);
    snprintf(text, sizeof text, "%s a\n%s b\n\n%s a\n", hex[0], hex[1], hex[2]);
    put(&s, text);
    CHECK_STATUS(fkt_roster_load(&r, scratch_path(&s, "roster")), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "line 4") && strstr(fkt_error_text(), "the name of line 1"));
    snprintf(text, sizeof text, "%s a\n%s b\n%s c\n", hex[0], hex[1], hex[0]);
    put(&s, text);
    CHECK_STATUS(fkt_roster_load(&r, scratch_path(&s, "roster")), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "repeats line 1") != NULL);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void a_roster_grows_at_its_end(void **state)
{
    struct scratch s;
    struct fkt_site_key site[4], again;
    uint8_t *text;
    size_t len;
    uint32_t total = 0;
    char hex[4][65], want[700];
    (void)state;
    scratch_init(&s);
    some_sites(site, hex, 4);
    site[3].name[0] = '\0';
    CHECK_OK(fkt_roster_enroll(scratch_path(&s, "roster"), site, 1, &total));
    CHECK(total == 1);
    snprintf(want, sizeof want, "# by hand\r\n\n%s  site 0", hex[0]); /* the last line has no end */
    put(&s, want);
    CHECK_OK(fkt_roster_enroll(scratch_path(&s, "roster"), site + 1, 3, &total));
    CHECK(total == 4);
    CHECK_OK(fkt_file_read(&text, &len, scratch_path(&s, "roster"), 4096));
    snprintf(want, sizeof want, "# by hand\r\n\n%s  site 0\n%s  site 1\n%s  site 2\n%s\n", hex[0], hex[1], hex[2],
             hex[3]);
    assert_string_equal((char *)text, want);
    fkt_free(text);
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "roster"), &site[2], 1, &total), FKT_E_EXISTS);
    again = site[3];
    snprintf(again.name, sizeof again.name, "site 2");
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "roster"), &again, 1, &total), FKT_E_EXISTS);
    CHECK_OK(fkt_file_read(&text, &len, scratch_path(&s, "roster"), 4096));
    assert_string_equal((char *)text, want);
    fkt_free(text);
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "other"), (struct fkt_site_key[]){site[0], site[0]}, 2, &total),
                 FKT_E_EXISTS);
    again = site[1];
    snprintf(again.name, sizeof again.name, "site 0");
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "other"), (struct fkt_site_key[]){site[0], again}, 2, &total),
                 FKT_E_EXISTS);
    CHECK(access(scratch_path(&s, "other"), F_OK) != 0);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* Several people enrol at once: processes that all wait at a pipe until it closes, then each adds its own sites. */
/* An embedder may bring keys and names from anywhere: what could not be read back is not written. */
static void what_cannot_be_read_back_is_not_enrolled(void **state)
{
    struct fkt_site_key site[1];
    char hex[1][65], text[FKT_SA_KEY * 2 + 16];
    struct scratch s;
    uint32_t total = 7;
    (void)state;
    scratch_init(&s);
    some_sites(site, hex, 1);
    snprintf(text, sizeof text, "a\n%s  b", hex[0]);
    snprintf(site[0].name, sizeof site[0].name, "%s", text);
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "roster"), site, 1, &total), FKT_E_ARG);
    some_sites(site, hex, 1);
    memset(site[0].key, 0, sizeof site[0].key);
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "roster"), site, 1, &total), FKT_E_ARG);
    CHECK(access(scratch_path(&s, "roster"), F_OK) != 0 && total == 7);
    scratch_release(&s);
}

static void nobody_is_lost_when_many_enrol_at_once(void **state)
{
    enum { PROCESSES = 12, EACH = 3 };
    struct scratch s;
    struct fkt_site_key site[PROCESSES * EACH];
    struct fkt_roster r;
    char hex[PROCESSES * EACH][65], byte;
    pid_t child[PROCESSES];
    int gate[2], how, seen = 0;
    (void)state;
    scratch_init(&s);
    some_sites(site, hex, PROCESSES * EACH);
    CHECK(pipe(gate) == 0);
    for (int p = 0; p < PROCESSES; p++) {
        CHECK((child[p] = fork()) >= 0);
        if (child[p]) continue;
        close(gate[1]);
        how = read(gate[0], &byte, 1) != 0;
        for (int i = 0; i < EACH && !how; i++) {
            uint32_t total;
            how = fkt_roster_enroll(scratch_path(&s, "roster"), &site[p * EACH + i], 1, &total) != FKT_OK;
        }
        _exit(how);
    }
    close(gate[0]);
    close(gate[1]);
    for (int p = 0; p < PROCESSES; p++) CHECK(waitpid(child[p], &how, 0) == child[p] && how == 0);
    CHECK_OK(fkt_roster_load(&r, scratch_path(&s, "roster")));
    CHECK(r.n == PROCESSES * EACH);
    for (int i = 0; i < PROCESSES * EACH; i++)
        for (uint32_t k = 0; k < r.n; k++) seen += !memcmp(r.keys + k * FKT_SA_KEY, site[i].key, FKT_SA_KEY);
    CHECK(seen == PROCESSES * EACH);
    fkt_roster_clear(&r);
    CHECK(access(scratch_path(&s, "roster.lock"), F_OK) != 0); /* nothing is left beside it */
    /* what a killed process leaves there holds nobody up; somebody else's link is not followed */
    CHECK_OK(fkt_file_write(scratch_path(&s, "other.lock"), "", 0, 0));
    CHECK_OK(fkt_roster_enroll(scratch_path(&s, "other"), site, 1, &(uint32_t){0}));
    CHECK(symlink("target", scratch_path(&s, "third.lock")) == 0);
    CHECK_STATUS(fkt_roster_enroll(scratch_path(&s, "third"), site, 1, &(uint32_t){0}), FKT_E_IO);
    CHECK(access(scratch_path(&s, "target"), F_OK) != 0 && access(scratch_path(&s, "third"), F_OK) != 0);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_names_or_none),
        cmocka_unit_test(what_stands_there_twice_is_refused),
        cmocka_unit_test(a_roster_grows_at_its_end),
        cmocka_unit_test(what_cannot_be_read_back_is_not_enrolled),
        cmocka_unit_test(nobody_is_lost_when_many_enrol_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
