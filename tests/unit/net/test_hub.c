/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of a hub: made from names, and refused when a name is none. */
#include "net/hub.h"
#include "tests/support/check.h"

static void check_endpoint(const char *asked, const char *want)
{
    char *got = NULL;
    if (want) {
        CHECK_OK(fkt_hub_endpoint(&got, asked));
        assert_string_equal(got, want);
    } else {
        CHECK_STATUS(fkt_hub_endpoint(&got, asked), FKT_E_ARG);
        CHECK(!got);
    }
    fkt_free(got);
}

static void an_endpoint_is_https(void **state)
{
    static const char *const bad[] = {"",
                                      "http://hub",
                                      "HTTPS://hub",
                                      "ftp://hub",
                                      "https://",
                                      "https:///x",
                                      "https://u:p@hub",
                                      "https://hub?x",
                                      "https://hub#x",
                                      "https://hub x",
                                      "https://hub\n",
                                      "file:///etc"};
    char *public_hub = NULL;
    (void)state;
    unsetenv("HF_ENDPOINT");
    CHECK_OK(fkt_hub_endpoint(&public_hub, NULL));
    CHECK(!strncmp(public_hub, "https://", 8));
    setenv("HF_ENDPOINT", "", 1);
    check_endpoint(NULL, public_hub);
    setenv("HF_ENDPOINT", "https://mirror.example/", 1);
    check_endpoint(NULL, "https://mirror.example");
    check_endpoint("https://127.0.0.1:8443//", "https://127.0.0.1:8443");
    check_endpoint("https://[::1]:1/hub", "https://[::1]:1/hub");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) check_endpoint(bad[i], NULL);
    fkt_free(public_hub);
}

static void check_url(const char *repo, const char *revision, const char *file, const char *want)
{
    struct fkt_hub hub = {"https://h", repo, revision};
    char *got = NULL;
    if (want) {
        CHECK_OK(fkt_hub_url(&got, &hub, file));
        assert_string_equal(got, want);
    } else {
        CHECK_STATUS(fkt_hub_url(&got, &hub, file), FKT_E_ARG);
        CHECK(!got);
    }
    fkt_free(got);
}

static void an_address_is_made_of_names(void **state)
{
    (void)state;
    check_url("a/b", "main", "c.json", "https://h/a/b/resolve/main/c.json");
    check_url("a/b", "refs/pr/1", "c", "https://h/a/b/resolve/refs%2Fpr%2F1/c");
    check_url("a", "main", "c", NULL);
    check_url("a/b/c", "main", "c", NULL);
    check_url("a/..", "main", "c", NULL);
    check_url("a/b?", "main", "c", NULL);
    check_url("a/b", "", "c", NULL);
    check_url("a/b", "x/../y", "c", NULL);
    check_url("a/b", "x//y", "c", NULL);
    check_url("a/b", "x y", "c", NULL);
    check_url("a/b", "main", "../c", NULL);
    check_url("a/b", "main", ".", NULL);
    check_url("a/b", "main", "", NULL);
}

static void a_long_revision_is_refused(void **state)
{
    char revision[600];
    (void)state;
    for (size_t i = 0; i < sizeof revision - 1; i++) revision[i] = i % 2 ? '/' : 'a';
    revision[599] = '\0';
    check_url("a/b", revision, "c", NULL);
    revision[255] = '\0';
    {
        struct fkt_hub hub = {"https://h", "a/b", revision};
        char *got = NULL;
        CHECK_OK(fkt_hub_url(&got, &hub, "c"));
        CHECK(strlen(got) == strlen("https://h/a/b/resolve//c") + 128 + 3 * 127);
        fkt_free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_endpoint_is_https),
                                       cmocka_unit_test(an_address_is_made_of_names),
                                       cmocka_unit_test(a_long_revision_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
