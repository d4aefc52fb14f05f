/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of docs/protocol.md 1 on both of its sides, and sizes against encoded messages. */
#include "fedkt/advanced/secagg.h"

#include "crypto/digest.h"
#include "crypto/sign.h"
#include "secagg/coin.h"
#include "secagg/msg.h"
#include "tests/support/check.h"

#define MOST 300U

static uint8_t roster[MOST][FKT_SA_KEY];
static uint8_t zeros[1 << 16];

static int make_roster(void **state)
{
    uint8_t seed[FKT_SIGN_SEED] = {0}, sk[FKT_SIGN_SECRET];
    (void)state;
    for (uint32_t i = 0; i < MOST; i++) {
        seed[0] = (uint8_t)i, seed[1] = (uint8_t)(i >> 8);
        fkt_sign_keypair(roster[i], sk, seed);
    }
    return 0;
}

static struct fkt_sa_params complete(void)
{
    return (struct fkt_sa_params){.sites = 20,
                                  .dropped = 4,
                                  .corrupt = 3,
                                  .degree = 19,
                                  .threshold = 12,
                                  .attempts = 1,
                                  .bits = 32,
                                  .length = 10,
                                  .bound = 1000,
                                  .task = {1, 2, 3},
                                  .roster = roster[0]};
}

static struct fkt_sa_params sparse(void)
{
    struct fkt_sa_params p = complete();
    p.sites = 100, p.dropped = 10, p.corrupt = 10, p.degree = 32, p.threshold = 22, p.attempts = 3;
    return p;
}

#define REFUSED(base, change, words)                                                                                   \
    do {                                                                                                               \
        struct fkt_sa_params p = base(), own;                                                                          \
        change;                                                                                                        \
        CHECK_STATUS(fkt_sa_params_check(&p), FKT_E_ARG);                                                              \
        if (!strstr(fkt_error_text(), words)) fail_msg("'%s' does not say '%s'", fkt_error_text(), words);             \
        CHECK_STATUS(fkt_sa_params_copy(&own, &p), FKT_E_ARG);                                                         \
        CHECK(own.roster == NULL);                                                                                     \
    } while (0)
#define TAKEN(base, change)                                                                                            \
    do {                                                                                                               \
        struct fkt_sa_params p = base();                                                                               \
        change;                                                                                                        \
        CHECK_OK(fkt_sa_params_check(&p));                                                                             \
    } while (0)

static void shapes(void **state)
{
    (void)state;
    TAKEN(complete, (void)0);
    TAKEN(sparse, (void)0);
    TAKEN(complete, (p.sites = 3, p.degree = 2, p.threshold = 2, p.dropped = 0, p.corrupt = 1));
    REFUSED(complete, (p.sites = 2, p.degree = 1), "3 to 65536");
    REFUSED(complete, (p.sites = 65537, p.degree = 65536), "3 to 65536");
    REFUSED(sparse, p.degree = 31, "degree 31");
    REFUSED(sparse, p.degree = 100, "degree 100");
    REFUSED(sparse, p.degree = 0, "degree 0");
    TAKEN(sparse, (p.degree = 98, p.threshold = 60));
    REFUSED(complete, p.attempts = 0, "1 to 16");
    TAKEN(sparse, p.attempts = 16);
    REFUSED(complete, p.attempts = 17, "1 to 16");
    REFUSED(complete, p.keystream = (enum fkt_sa_keystream)2, "keystream");
    TAKEN(complete, p.keystream = FKT_SA_KEYSTREAM_CHACHA20);
    REFUSED(complete, p.length = 0, "length is 0");
    REFUSED(complete, p.bits = 7, "8 to 62");
    REFUSED(complete, p.bits = 63, "8 to 62");
    REFUSED(complete, p.bound = 0, "fit");
    TAKEN(complete, (p.bits = 8, p.bound = 6));
    REFUSED(complete, (p.bits = 8, p.bound = 7), "fit"); /* 20 * 7 > 127 */
    TAKEN(complete, (p.bits = 62, p.bound = ((UINT64_C(1) << 61) - 1) / 20));
    REFUSED(complete, (p.bits = 62, p.bound = ((UINT64_C(1) << 61) - 1) / 20 + 1), "fit");
    REFUSED(complete, p.bound = UINT64_MAX, "fit");
    TAKEN(complete, (p.length = 500000000, p.bits = 34));
    REFUSED(complete, (p.length = UINT32_MAX, p.bits = 62), "2 GiB");
    REFUSED(complete, p.roster = NULL, "roster is missing");
}

static void thresholds(void **state)
{
    (void)state;
    REFUSED(sparse, (p.dropped = 90, p.corrupt = 9), "two honest");
    REFUSED(sparse, (p.dropped = UINT32_MAX, p.corrupt = UINT32_MAX), "two honest");
    REFUSED(sparse, p.threshold = 33, "above the 32");
    REFUSED(sparse, p.threshold = UINT32_MAX, "above the 32");
    REFUSED(sparse, p.threshold = 16, "half");
    TAKEN(sparse, p.threshold = 17);
    TAKEN(sparse, p.threshold = 32);
    REFUSED(complete, p.threshold = 11, "above 11"); /* 22 <= 19 + 3 */
    TAKEN(complete, p.threshold = 15);
    REFUSED(complete, p.threshold = 16, "above 15"); /* 20 - 1 - 4 */
    TAKEN(complete, (p.corrupt = 10, p.dropped = 4, p.threshold = 15));
    REFUSED(complete, (p.corrupt = 11, p.dropped = 4, p.threshold = 15), "above 15");
}

/* (N - 2D - C)(k - t + 1) > D(k - t): the last D that is taken, and the first that is not. */
static void once_only(void **state)
{
    (void)state;
    TAKEN(sparse, p.dropped = 30);                           /* 30 * 11 > 30 * 10 */
    TAKEN(sparse, (p.dropped = 29, p.threshold = 17));       /* 32 * 16 > 29 * 15 */
    REFUSED(sparse, p.dropped = 31, "second total");         /* 28 * 11 < 31 * 10 */
    REFUSED(sparse, p.dropped = 60, "second total");         /* a negative number of sites */
    TAKEN(sparse, (p.dropped = 44, p.threshold = 32));       /* 2 * 1 > 0 */
    REFUSED(sparse, (p.dropped = 45, p.threshold = 32), ""); /* 0 */
}

static void rosters(void **state)
{
    uint8_t own[20][FKT_SA_KEY], key[FKT_SA_KEY];
    struct fkt_sa_params p = complete(), copy;
    (void)state;
    memcpy(own, roster, sizeof own);
    p.roster = own[0];
    memcpy(key, own[17], sizeof key);
    memcpy(own[17], own[4], sizeof key);
    CHECK_STATUS(fkt_sa_params_check(&p), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "sites 4 and 17"));
    CHECK_STATUS(fkt_sa_params_copy(&copy, &p), FKT_E_ARG);
    memset(own[17], 0, sizeof key); /* of small order */
    CHECK_STATUS(fkt_sa_params_check(&p), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "site 17"));
    memcpy(own[17], key, sizeof key);
    CHECK_OK(fkt_sa_params_check(&p));

    CHECK_OK(fkt_sa_params_copy(&copy, &p));
    memset(own, 0, sizeof own);
    CHECK(fkt_same(fkt_sa_roster_key(&copy, 17), key, sizeof key));
    CHECK(copy.sites == 20 && copy.bound == 1000 && copy.task[2] == 3);
    fkt_sa_params_clear(&copy);
    CHECK(copy.roster == NULL && copy.sites == 0);
    fkt_sa_params_clear(&copy);
}

static void widths(void **state)
{
    (void)state;
    CHECK(fkt_sa_bits(0, 1) == 0);
    CHECK(fkt_sa_bits(3, 0) == 8);
    CHECK(fkt_sa_bits(127, 1) == 8);
    CHECK(fkt_sa_bits(128, 1) == 9);
    CHECK(fkt_sa_bits(1, UINT64_MAX) == 0);
    CHECK(fkt_sa_bits(UINT32_MAX, UINT64_MAX) == 0);
    for (uint32_t n = 1; n < 70000; n = n * 3 + 1)
        for (uint32_t b = 8; b <= 62; b++) {
            const uint64_t most = ((UINT64_C(1) << (b - 1)) - 1) / n;
            if (most * 4 < n) continue;
            CHECK(fkt_sa_bits(n, most) == b);
            CHECK(fkt_sa_bits(n, most + 1) == (b == 62 ? 0 : b + 1));
        }
    CHECK(fkt_sa_packed(1, 8) == 1 && fkt_sa_packed(3, 9) == 4 && fkt_sa_packed(8, 9) == 9);
    CHECK(fkt_sa_packed(UINT32_MAX, 62) == (size_t)33285996537);
}

static void session_hash(void **state)
{
    struct fkt_sa_params p = complete();
    uint8_t round[FKT_SA_ROUND] = {9}, a[32], b[32];
    struct fkt_digest d;
    (void)state;
    fkt_digest_init(&d, "fedkt/1 session", NULL);
    fkt_digest_add(&d, p.task, 32);
    fkt_digest_add(&d, round, 16);
    fkt_digest_end(&d, a);
    fkt_sa_session(b, &p, round);
    CHECK(fkt_same(a, b, 32));
    p.task[31] ^= 1;
    fkt_sa_session(b, &p, round);
    CHECK(!fkt_same(a, b, 32));
}

static void bitmaps(void **state)
{
    uint8_t map[3] = {0};
    (void)state;
    fkt_bitmap_set(map, 0);
    fkt_bitmap_set(map, 9);
    fkt_bitmap_set(map, 16);
    CHECK(map[0] == 1 && map[1] == 2 && map[2] == 1);
    CHECK(fkt_bitmap_get(map, 9) && !fkt_bitmap_get(map, 8));
    CHECK(fkt_bitmap_count(map, 17) == 3 && fkt_bitmap_count(map, 16) == 2 && fkt_bitmap_count(map, 0) == 0);
    CHECK(fkt_bitmap_bytes(0) == 0 && fkt_bitmap_bytes(8) == 1 && fkt_bitmap_bytes(17) == 3);
    CHECK(fkt_bitmap_ok(map, 17) && fkt_bitmap_ok(map, 24) && fkt_bitmap_ok(map, 16));
    map[2] = 2;
    CHECK(!fkt_bitmap_ok(map, 17) && fkt_bitmap_ok(map, 18));
}

/* ---- the longest message of each kind, with all its fields at their longest ---- */

static struct fkt_sa_bytes some(size_t n)
{
    CHECK(n <= sizeof zeros);
    return (struct fkt_sa_bytes){zeros, n};
}

static size_t length_of(struct fkt_sa_msg m)
{
    static uint8_t out[1 << 17];
    size_t len = 0;
    CHECK_OK(fkt_sa_msg_encode(&m, out, sizeof out, &len));
    return len;
}

static size_t longest_to_server(const struct fkt_sa_params *p)
{
    const size_t k = p->degree, coin = fkt_sa_complete(p) ? 0 : 32;
    struct fkt_sa_msg m[7] = {
        {.kind = FKT_SA_M_ADVERTISE, .advertise = {some(32), some(32), some(coin), some(64)}},
        {.kind = FKT_SA_M_SHARES, .shares = {some(80 * k), some(32)}},
        {.kind = FKT_SA_M_MASKED, .masked = {some(fkt_sa_packed(p->length, p->bits))}},
        {.kind = FKT_SA_M_CONFIRM, .confirm = {some(64)}},
        {.kind = FKT_SA_M_REVEAL, .reveal = {some(32 * k)}},
        {.kind = FKT_SA_M_LEAVE, .leave = {FKT_E_BUDGET}},
        {.kind = FKT_SA_M_OPEN, .open = {p->attempts, some(32), some(32)}},
    };
    size_t most = 0;
    for (int i = 0; i < (coin ? 7 : 6); i++) {
        m[i].session = some(32), m[i].site = p->sites - 1;
        if (length_of(m[i]) > most) most = length_of(m[i]);
    }
    return most;
}

static size_t longest_to_site(const struct fkt_sa_params *p)
{
    const size_t k = p->degree, map = fkt_bitmap_bytes(k), coin = fkt_sa_complete(p) ? 0 : 32;
    struct fkt_sa_msg m[5] = {
        {.kind = FKT_SA_M_NEIGHBOURS, .neighbours = {some(coin), some(map), some(128 * k)}},
        {.kind = FKT_SA_M_DELIVER, .deliver = {some(fkt_bitmap_bytes(p->sites)), some(80 * k)}},
        {.kind = FKT_SA_M_SURVIVORS, .survivors = {some(fkt_bitmap_bytes(p->sites))}},
        {.kind = FKT_SA_M_CONFIRMED, .confirmed = {some(map), some(64 * k)}},
        {.kind = FKT_SA_M_ABORTED, .aborted = {FKT_E_BUDGET}},
    };
    size_t most = length_of((struct fkt_sa_msg){.kind = FKT_SA_M_BEGIN, .begin = {some(16), some(32)}});
    for (int i = 0; i < 5; i++) {
        m[i].session = some(32);
        if (length_of(m[i]) > most) most = length_of(m[i]);
    }
    for (uint32_t n = 1; coin && n <= p->sites; n++)
        for (uint32_t i = 0; i < n; i++) {
            struct fkt_sa_msg c = {.kind = FKT_SA_M_COIN, .session = some(32)};
            c.coin.attempt = p->attempts, c.coin.leaves = n, c.coin.position = i;
            c.coin.path = some(fkt_sa_coin_path_bytes(n, i));
            if (length_of(c) > most) most = length_of(c);
        }
    return most;
}

/* Degree 2 makes the coin the longest; 129 to 256 sites are where a place's number grows from one byte to two. */
static void longest_messages(void **state)
{
    static const uint32_t sites[] = {4, 5, 8, 9, 17, 33, 127, 128, 129, 130, 192, 193, 194, 255, 256, 257};
    (void)state;
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        for (uint32_t shape = 0; shape < 4; shape++) {
            struct fkt_sa_params p = complete();
            p.sites = sites[i], p.attempts = 1 + shape * 5;
            p.degree = shape == 0 ? 2 : shape == 1 ? (sites[i] - 2) & ~1U : sites[i] - 1;
            p.length = shape == 2 ? 1 : 1000;
            assert_int_equal(fkt_sa_to_server_max(&p), longest_to_server(&p));
            assert_int_equal(fkt_sa_to_site_max(&p), longest_to_site(&p));
        }
}

static void session_digits(void **state)
{
    uint8_t session[FKT_SA_SESSION];
    char hex[2 * FKT_SA_SESSION + 1];
    (void)state;
    for (int i = 0; i < FKT_SA_SESSION; i++) session[i] = (uint8_t)(0xe0 + i);
    fkt_sa_session_hex(hex, session);
    CHECK(!strcmp(hex, "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
}

static void state_names(void **state)
{
    (void)state;
    CHECK(!strcmp(fkt_sa_state_name(FKT_SA_STATE_BEGIN), "begin") &&
          !strcmp(fkt_sa_state_name(FKT_SA_STATE_FAILED), "failed"));
    for (int i = FKT_SA_STATE_BEGIN; i <= FKT_SA_STATE_FAILED; i++)
        for (int j = i + 1; j <= FKT_SA_STATE_FAILED + 1; j++)
            CHECK(strcmp(fkt_sa_state_name((enum fkt_sa_state)i), fkt_sa_state_name((enum fkt_sa_state)j)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),         cmocka_unit_test(thresholds),       cmocka_unit_test(once_only),
        cmocka_unit_test(rosters),        cmocka_unit_test(widths),           cmocka_unit_test(session_hash),
        cmocka_unit_test(bitmaps),        cmocka_unit_test(longest_messages), cmocka_unit_test(state_names),
        cmocka_unit_test(session_digits),
    };
    return cmocka_run_group_tests(tests, make_roster, NULL);
}
