/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and hashes against BLAKE2b over bytes written down by hand from docs/protocol.md 2.1 and 3. */
#include "secagg/share.h"

#include "tests/support/check.h"

#include <sodium.h>

static uint8_t session[32], seed[32], a[32], b[32], bitmap[5];

struct part {
    const void *p;
    size_t n;
};

static void by_hand(uint8_t out[32], const uint8_t *key, const char *rest, const struct part *part, size_t parts)
{
    uint8_t in[512];
    char label[64];
    size_t n = 0;
    snprintf(label, sizeof label, "fedkt/1 %s", rest);
    in[n++] = (uint8_t)strlen(label);
    memcpy(in + n, label, strlen(label));
    n += strlen(label);
    for (size_t i = 0; i < parts; i++) {
        memset(in + n, 0, 8);
        in[n] = (uint8_t)part[i].n;
        n += 8;
        memcpy(in + n, part[i].p, part[i].n);
        n += part[i].n;
    }
    assert_int_equal(crypto_generichash(out, 32, in, n, key, key ? 32 : 0), 0);
}

static const uint8_t four_hundred[4] = {0x90, 0x01, 0, 0}, seventy_thousand[4] = {0x70, 0x11, 0x01, 0};

static void one_site(void **state)
{
    uint8_t want[32], got[32];
    (void)state;
    by_hand(want, a, "mask key", (struct part[]){{session, 32}, {four_hundred, 4}}, 2);
    fkt_sa_mask_secret(got, a, session, 400);
    assert_memory_equal(got, want, 32);
    by_hand(want, a, "self", (struct part[]){{session, 32}, {seventy_thousand, 4}}, 2);
    fkt_sa_self_key(got, a, session, 70000);
    assert_memory_equal(got, want, 32);
    by_hand(want, NULL, "self commitment", (struct part[]){{session, 32}, {four_hundred, 4}, {a, 32}}, 3);
    fkt_sa_self_commitment(got, session, 400, a);
    assert_memory_equal(got, want, 32);
    by_hand(want, NULL, "advertise", (struct part[]){{session, 32}, {four_hundred, 4}, {a, 32}, {b, 32}}, 4);
    fkt_sa_advert_hash(got, session, 400, a, b);
    assert_memory_equal(got, want, 32);
    by_hand(want, NULL, "confirm", (struct part[]){{session, 32}, {seed, 32}, {bitmap, 5}}, 3);
    fkt_sa_confirm_hash(got, session, seed, bitmap, 5);
    assert_memory_equal(got, want, 32);
    by_hand(want, NULL, "delivered", (struct part[]){{session, 32}, {seed, 32}, {bitmap, 5}}, 3);
    fkt_sa_delivered_hash(got, session, seed, bitmap, 5);
    assert_memory_equal(got, want, 32);
    by_hand(want, a, "pair stream", (struct part[]){{b, 32}}, 1);
    fkt_sa_stream_key(got, a, b);
    assert_memory_equal(got, want, 32);
    memcpy(got, a, 32); /* in place, as all callers do */
    fkt_sa_stream_key(got, got, b);
    assert_memory_equal(got, want, 32);
}

static void two_sites(void **state)
{
    uint8_t pa[32], pb[32], shared[32], want[32], got[32], other[32], back[32];
    (void)state;
    crypto_scalarmult_base(pa, a);
    crypto_scalarmult_base(pb, b);
    assert_int_equal(crypto_scalarmult(shared, a, pb), 0);

    /* a is site 70000, b is site 400: the lower number stands first */
    by_hand(want, shared, "pair", (struct part[]){{session, 32}, {seed, 32}, {four_hundred, 4}, {seventy_thousand, 4}},
            4);
    CHECK_OK(fkt_sa_pair_key(got, a, pb, session, seed, 70000, 400));
    assert_memory_equal(got, want, 32);
    CHECK_OK(fkt_sa_pair_key(got, b, pa, session, seed, 400, 70000));
    assert_memory_equal(got, want, 32);

    by_hand(want, shared, "seal", (struct part[]){{session, 32}, {seed, 32}, {seventy_thousand, 4}, {four_hundred, 4}},
            4);
    CHECK_OK(fkt_sa_seal_keys(got, other, a, pb, session, seed, 70000, 400));
    assert_memory_equal(got, want, 32);
    assert_memory_not_equal(other, want, 32);
    CHECK_OK(fkt_sa_seal_keys(back, got, b, pa, session, seed, 400, 70000));
    assert_memory_equal(got, want, 32);
    assert_memory_equal(back, other, 32);
}

static void bad_keys(void **state)
{
    uint8_t pb[32], out[32], in[32], low[32] = {1};
    (void)state;
    CHECK_STATUS(fkt_sa_pair_key(out, a, low, session, seed, 1, 17), FKT_E_PEER_AUTH);
    assert_non_null(strstr(fkt_error_text(), "site 17"));
    crypto_scalarmult_base(pb, b);
    pb[31] |= 0x80;
    CHECK_STATUS(fkt_sa_seal_keys(out, in, a, pb, session, seed, 1, 18), FKT_E_PEER_AUTH);
    assert_non_null(strstr(fkt_error_text(), "site 18"));
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++) {
        session[i] = (uint8_t)(i + 1);
        seed[i] = (uint8_t)(100 + i);
        a[i] = (uint8_t)(200 - i);
        b[i] = (uint8_t)(50 + 3 * i);
    }
    for (int i = 0; i < 5; i++) bitmap[i] = (uint8_t)(17 * i);
    return sodium_init() < 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_site),
        cmocka_unit_test(two_sites),
        cmocka_unit_test(bad_keys),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
