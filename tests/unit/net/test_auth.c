/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/sign.h"
#include "net/auth.h"
#include "tests/support/hex.h"
#include "tests/support/vectors.h"

struct sample {
    uint8_t task[32], nonce[16], body[2048], pk[32], sk[64];
    struct fkt_auth_request r;
    const char *header;
};

static void sample_of(struct sample *s, const json_t *c)
{
    uint8_t seed[32];
    memset(s, 0, sizeof *s);
    unhex32(seed, vectors_text(c, "seed"));
    fkt_sign_keypair(s->pk, s->sk, seed);
    CHECK_HEX(s->pk, 32, vectors_text(c, "public"));
    unhex32(s->task, vectors_text(c, "task"));
    CHECK(unhex(s->nonce, 16, vectors_text(c, "nonce")) == 16);
    s->r.task = s->task;
    s->r.nonce = s->nonce;
    s->r.sequence = (uint64_t)vectors_int(c, "seq");
    s->r.site = (uint32_t)vectors_int(c, "site");
    s->r.method = vectors_text(c, "method");
    s->r.target = vectors_text(c, "target");
    s->r.body = s->body;
    s->r.len = unhex(s->body, sizeof s->body, vectors_text(c, "body"));
    s->header = vectors_text(c, "header");
}

static void the_oracle_writes_the_same_header(void **state)
{
    json_t *root, *c, *cases = vectors_open(&root, "http_auth.json");
    size_t i;
    (void)state;
    json_array_foreach (cases, i, c) {
        struct sample s;
        struct fkt_auth_claim claim;
        char out[FKT_AUTH_HEADER];
        sample_of(&s, c);
        fkt_auth_write(out, &s.r, s.sk);
        assert_string_equal(out, s.header);
        CHECK(fkt_auth_read(&claim, out) == 1);
        CHECK(claim.site == s.r.site && claim.sequence == s.r.sequence);
        assert_memory_equal(claim.nonce, s.nonce, sizeof s.nonce);
        CHECK(fkt_auth_right(&claim, &s.r, s.pk) == 1);
    }
    CHECK(i == 5);
    json_decref(root);
}

/* Whatever differs from what was signed, the signature is wrong. */
static void each_part_is_under_the_signature(void **state)
{
    json_t *root, *cases = vectors_open(&root, "http_auth.json");
    struct sample s;
    struct fkt_auth_claim claim, bent;
    struct fkt_auth_request r;
    uint8_t other[32] = {1};
    (void)state;
    sample_of(&s, json_array_get(cases, 2));
    CHECK(fkt_auth_read(&claim, s.header) == 1);
    r = s.r, r.task = other;
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 0);
    r = s.r, r.method = "PUT";
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 0);
    r = s.r, r.target = "/v1/messages?";
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 0);
    r = s.r, r.method = "POST/", r.target = "v1/messages"; /* the same letters, cut elsewhere */
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 0);
    r = s.r, r.len--;
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 0);
    r = s.r, r.len = 0, r.body = NULL;
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 0);
    s.body[1] ^= 1;
    CHECK(fkt_auth_right(&claim, &s.r, s.pk) == 0);
    s.body[1] ^= 1;
    bent = claim, bent.site++;
    CHECK(fkt_auth_right(&bent, &s.r, s.pk) == 0);
    bent = claim, bent.sequence++;
    CHECK(fkt_auth_right(&bent, &s.r, s.pk) == 0);
    bent = claim, bent.nonce[15] ^= 1;
    CHECK(fkt_auth_right(&bent, &s.r, s.pk) == 0);
    bent = claim, bent.signature[0] ^= 1;
    CHECK(fkt_auth_right(&bent, &s.r, s.pk) == 0);
    CHECK(fkt_auth_right(&claim, &s.r, other) == 0);
    r = s.r, r.site = 99, r.sequence = 1; /* the request's own are not looked at */
    CHECK(fkt_auth_right(&claim, &r, s.pk) == 1);
    json_decref(root);
}

#define NONCE "000102030405060708090a0b0c0d0e0f"
#define SIG8 "0123456789abcdef"
#define SIG SIG8 SIG8 SIG8 SIG8 SIG8 SIG8 SIG8 SIG8

static void only_one_form_is_read(void **state)
{
    static const char *const bad[] = {
        "",
        "Fedkt",
        "Fedkt ",
        "fedkt site=3, nonce=" NONCE ", seq=1, sig=" SIG,
        " Fedkt site=3, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt  site=3, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=3,nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=03, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=-1, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=+3, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=4294967296, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=99999999999999999999999999, nonce=" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=3, nonce=000102030405060708090A0B0C0D0E0F, seq=1, sig=" SIG,
        "Fedkt site=3, nonce=00" NONCE ", seq=1, sig=" SIG,
        "Fedkt site=3, nonce=0001, seq=1, sig=" SIG,
        "Fedkt site=3, nonce=" NONCE ", seq=00, sig=" SIG,
        "Fedkt site=3, nonce=" NONCE ", seq=9223372036854775808, sig=" SIG,
        "Fedkt site=3, nonce=" NONCE ", seq=1, sig=" SIG "0",
        "Fedkt site=3, nonce=" NONCE ", seq=1, sig=" SIG " ",
        "Fedkt site=3, nonce=" NONCE ", seq=1, sig=" SIG8,
        "Fedkt site=3, nonce=" NONCE ", seq=1, sig=",
        "Fedkt site=3, seq=1, nonce=" NONCE ", sig=" SIG,
        "Fedkt site=3, nonce=" NONCE ", seq=1, sig=" SIG ", x=1",
    };
    struct fkt_auth_claim c;
    char whole[FKT_AUTH_HEADER] = "Fedkt site=0, nonce=" NONCE ", seq=9223372036854775807, sig=" SIG;
    (void)state;
    CHECK(fkt_auth_read(&c, whole) == 1 && c.site == 0 && c.sequence == INT64_MAX && c.signature[1] == 0x23);
    for (size_t n = strlen(whole); n-- > 0;) {
        whole[n] = '\0';
        CHECK(fkt_auth_read(&c, whole) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (fkt_auth_read(&c, bad[i])) fail_msg("read: '%s'", bad[i]);
    CHECK(c.site == 0 && c.sequence == 0);
}

/* The longest header fits. */
static void room_for_the_longest(void **state)
{
    static const uint8_t seed[32] = {9}, task[32], nonce[16];
    struct fkt_auth_request r = {task, nonce, INT64_MAX, UINT32_MAX, "GET", "/", NULL, 0};
    struct fkt_auth_claim c;
    uint8_t pk[32], sk[64];
    char out[FKT_AUTH_HEADER];
    (void)state;
    fkt_sign_keypair(pk, sk, seed);
    fkt_auth_write(out, &r, sk);
    CHECK(strlen(out) < FKT_AUTH_HEADER - 1);
    CHECK(fkt_auth_read(&c, out) == 1 && fkt_auth_right(&c, &r, pk) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_writes_the_same_header),
        cmocka_unit_test(each_part_is_under_the_signature),
        cmocka_unit_test(only_one_form_is_read),
        cmocka_unit_test(room_for_the_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
