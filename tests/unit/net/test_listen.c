/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listen.h"
#include "tests/support/check.h"

#include <unistd.h>

static void where_it_listens(void **state)
{
    struct fkt_listen l;
    (void)state;
    CHECK_OK(fkt_listen_open(&l, "127.0.0.1:0"));
    CHECK(l.fd >= 0 && l.local && strncmp(l.address, "127.0.0.1:", 10) == 0 && strcmp(l.address + 10, "0") != 0);
    close(l.fd);
    CHECK_OK(fkt_listen_open(&l, "0.0.0.0:0"));
    CHECK(!l.local);
    close(l.fd);
    CHECK_OK(fkt_listen_open(&l, ":0"));
    CHECK(!l.local);
    close(l.fd);
    CHECK_OK(fkt_listen_open(&l, "localhost:0"));
    CHECK(l.local);
    close(l.fd);
    if (fkt_listen_open(&l, "[::1]:0") == FKT_OK) { /* where there is IPv6 */
        CHECK(l.local && strncmp(l.address, "[::1]:", 6) == 0);
        close(l.fd);
    }
}

static void what_it_says(void **state)
{
    static const char *const bad[] = {
        "",         "8443",         "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
        "::1:8443", "127.0.0.1:80 "};
    struct fkt_listen l, second;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_STATUS(fkt_listen_open(&l, bad[i]), FKT_E_ARG);
        CHECK(l.fd == -1 && strstr(fkt_error_text(), "not an address to listen on"));
    }
    CHECK_STATUS(fkt_listen_open(&l, "no.such.host.invalid:1"), FKT_E_ARG);
    CHECK_STATUS(fkt_listen_open(&l, "192.0.2.1:0"), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "does not have that address"));
    CHECK_OK(fkt_listen_open(&l, "127.0.0.1:0"));
    CHECK_STATUS(fkt_listen_open(&second, l.address), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "in use") && fkt_error_hint()[0]);
    close(l.fd);
}

static void which_names_mean_this_machine(void **state)
{
    static const char *const here[] = {"localhost", "LocalHost:1", "127.0.0.1", "127.9.8.7:65535", "[::1]", "[::1]:0"};
    static const char *const there[] = {"",
                                        ":",
                                        "localhost.",
                                        "localhost:",
                                        "localhost:x",
                                        "localhost.a",
                                        "alocalhost",
                                        "127.1",
                                        "128.0.0.1",
                                        "::1",
                                        "[::1",
                                        "[::1]x",
                                        "[::1]:",
                                        "[::ffff:10.0.0.1]",
                                        "[::2]",
                                        "0.0.0.0",
                                        "127.0.0.1.a",
                                        "127.0.0.1:1:1",
                                        "127.0.0.1@a",
                                        "[]",
                                        "[localhost]",
                                        "[127.0.0.1]",
                                        " localhost"};
    (void)state;
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        if (!fkt_listen_names_here(here[i])) fail_msg("'%s' is this machine", here[i]);
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        if (fkt_listen_names_here(there[i])) fail_msg("'%s' need not be this machine", there[i]);
}

static void who_is_this_machine(void **state)
{
    static const struct {
        uint8_t peer[16];
        int here;
    } cases[] = {
        {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, 1},
        {{[10] = 0xff, [11] = 0xff, [12] = 127, [13] = 9, [15] = 7}, 1},
        {{[15] = 1}, 1},
        {{[15] = 2}, 0},
        {{0}, 0},
        {{[10] = 0xff, [11] = 0xff, [12] = 128, [15] = 1}, 0},
        {{[0] = 0x20, [1] = 1, [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, 0}, /* an IPv6 address that looks so */
        {{[10] = 0xff, [12] = 127, [15] = 1}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (fkt_listen_loopback(cases[i].peer) != cases[i].here) fail_msg("case %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(where_it_listens), cmocka_unit_test(what_it_says),
                                       cmocka_unit_test(which_names_mean_this_machine),
                                       cmocka_unit_test(who_is_this_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
