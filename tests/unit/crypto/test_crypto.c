/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "crypto/entropy.h"
#include "crypto/hash.h"
#include "tests/support/check.h"

#include <sys/wait.h>
#include <unistd.h>

static void sha256_published_vectors(void **state)
{
    char hex[FKT_HASH_HEX];
    uint8_t digest[FKT_HASH_BYTES];
    (void)state; /* FIPS 180-4 examples */
    fkt_hash_bytes_hex(hex, "abc", 3);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    fkt_hash_bytes_hex(hex, "", 0);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    fkt_hash_long(digest, "abc", 3); /* RFC 7693's function at 32 bytes, from Python's hashlib */
    fkt_hex(hex, digest, sizeof digest);
    assert_string_equal(hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void seeded_stream_does_not_depend_on_chunks(void **state)
{
    struct fkt_entropy_seeded a, b, c;
    struct fkt_entropy ea, eb, ec;
    uint8_t x[1000], y[1000];
    (void)state;
    fkt_entropy_seeded_init(&a, 7, 0);
    fkt_entropy_seeded_init(&b, 7, 0);
    fkt_entropy_seeded_init(&c, 7, 1);
    fkt_entropy_seeded(&ea, &a);
    fkt_entropy_seeded(&eb, &b);
    fkt_entropy_seeded(&ec, &c);
    CHECK_OK(ea.fill(ea.self, x, sizeof x));
    for (size_t at = 0, n = 1; at < sizeof y; at += n, n = n * 2 % 97 + 1) {
        if (n > sizeof y - at) n = sizeof y - at;
        CHECK_OK(eb.fill(eb.self, y + at, n));
    }
    assert_memory_equal(x, y, sizeof x);
    CHECK_OK(ec.fill(ec.self, y, sizeof y));
    CHECK(memcmp(x, y, 32) != 0);
    CHECK(!ea.secure);
}

static void os_gives_fresh_bytes(void **state)
{
    struct fkt_entropy e;
    uint8_t x[64] = {0}, y[64] = {0};
    (void)state;
    fkt_entropy_os(&e);
    CHECK(e.secure);
    CHECK_OK(e.fill(e.self, x, sizeof x));
    CHECK_OK(e.fill(e.self, y, sizeof y));
    CHECK(memcmp(x, y, sizeof x) != 0);
}

/* What a child process gets from the operating system. */
static void bytes_of_a_child(uint8_t out[32])
{
    int ends[2], code = -1;
    pid_t child;
    CHECK(pipe(ends) == 0);
    child = fork();
    if (child == 0) {
        struct fkt_entropy e;
        fkt_entropy_os(&e);
        _exit(e.fill(e.self, out, 32) != FKT_OK || write(ends[1], out, 32) != 32);
    }
    CHECK(child > 0 && read(ends[0], out, 32) == 32 && waitpid(child, &code, 0) == child && code == 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A generator with its own seed inside the program would give the same bytes in both. */
static void processes_do_not_get_the_same_bytes(void **state)
{
    uint8_t x[32] = {0}, y[32] = {0};
    (void)state;
    bytes_of_a_child(x);
    bytes_of_a_child(y);
    CHECK(memcmp(x, y, sizeof x) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_published_vectors),
        cmocka_unit_test(seeded_stream_does_not_depend_on_chunks),
        cmocka_unit_test(os_gives_fresh_bytes),
        cmocka_unit_test(processes_do_not_get_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
