/* SPDX-License-Identifier: Apache-2.0 */
/* Digit for digit against the oracle's arithmetic with fractions, and what happens when the source is broken. The
 * distribution itself is checked in tests/stats. */
#include "privacy/rounded_gaussian.h"
#include "tests/unit/privacy/csv.h"

/* The oracle's stream: splitmix64, low half first; kind 1 puts a pattern in place of three digits in four. */
struct stream {
    uint64_t state;
    int kind;
};

static uint32_t twist(uint32_t d, int kind)
{
    static const uint32_t pattern[4] = {0x55555555, 0xffffffff, 0x80000000, 0x7fffffff};
    return kind == 1 && (d >> 7 & 3) ? pattern[d & 3] : d;
}

static fkt_status stream_fill(void *self, uint8_t *out, size_t len)
{
    struct stream *s = self;
    assert_int_equal(len % 8, 0);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t z = (s->state += 0x9e3779b97f4a7c15U);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
        for (int half = 0; half < 2; half++) {
            const uint32_t d = twist((uint32_t)(z >> (32 * half)), s->kind);
            for (int b = 0; b < 4; b++) out[i + 4 * (size_t)half + (size_t)b] = (uint8_t)(d >> (8 * b));
        }
    }
    return FKT_OK;
}

static void draws_are_the_oracles(void **state)
{
    struct csv c;
    int rows = 0, draws = 0;
    (void)state;
    csv_open(&c, "privacy_gaussian_draws.csv");
    while (csv_next(&c, 4)) {
        struct stream s = {.state = strtoull(c.field[1], NULL, 10), .kind = c.field[0][0] - '0'};
        const struct fkt_entropy e = {stream_fill, &s, 0};
        struct fkt_rounded_gaussian g;
        struct fkt_gaussian_scale scale;
        CHECK_OK(fkt_gaussian_scale_init(&scale, strtod(c.field[2], NULL)));
        fkt_rounded_gaussian_init(&g, &e);
        for (char *at = c.field[3]; *at; draws++) {
            char *end;
            const long long want = strtoll(at, &end, 10);
            int64_t got = 0;
            CHECK(end != at);
            CHECK_OK(fkt_rounded_gaussian_draw(&g, &scale, &got));
            if (got != want)
                fail_msg("kind %s, sigma %s: got %lld, want %lld", c.field[0], c.field[2], (long long)got, want);
            at = end + (*end == ' ');
        }
        fkt_rounded_gaussian_clear(&g);
        rows++;
    }
    CHECK(rows == 34 && draws == 34 * 300);
}

static fkt_status constant_fill(void *self, uint8_t *out, size_t len)
{
    memset(out, *(int *)self, len);
    return FKT_OK;
}

static fkt_status dead_fill(void *self, uint8_t *out, size_t len)
{
    (void)self;
    (void)out;
    return fkt_fail(FKT_E_ENTROPY, "no more than %zu bytes", len - len);
}

/* Every source of constant bytes must end in an error: no endless loop, no silent result. */
static void a_broken_source_is_an_error(void **state)
{
    struct fkt_gaussian_scale s;
    struct fkt_rounded_gaussian g;
    int64_t out = 77;
    (void)state;
    CHECK_OK(fkt_gaussian_scale_init(&s, 5));
    for (int byte = 0; byte < 256; byte++) {
        const struct fkt_entropy e = {constant_fill, &byte, 0};
        fkt_rounded_gaussian_init(&g, &e);
        CHECK_STATUS(fkt_rounded_gaussian_draw(&g, &s, &out), FKT_E_ENTROPY);
        CHECK(strstr(fkt_error_text(), "broken"));
        fkt_rounded_gaussian_clear(&g);
    }
    const struct fkt_entropy dead = {dead_fill, NULL, 1};
    fkt_rounded_gaussian_init(&g, &dead);
    CHECK_STATUS(fkt_rounded_gaussian_draw(&g, &s, &out), FKT_E_ENTROPY);
    CHECK(strstr(fkt_error_text(), "no more"));
    CHECK(out == 77);
}

static void scales_are_exact_or_refused(void **state)
{
    const double bad[] = {0, -1, NAN, INFINITY, 0x1p-21, 0x1.0000000000001p52, 0x1p60};
    const double good[] = {0x1p-20, 0.3, 1, 577.35, 0x1p52, 0x1.fffffffffffffp51};
    struct fkt_gaussian_scale s;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_STATUS(fkt_gaussian_scale_init(&s, bad[i]), FKT_E_ARG);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_OK(fkt_gaussian_scale_init(&s, good[i]));
        CHECK_NEAR(ldexp((double)s.mantissa, 64 - s.shift), good[i], 0);
        CHECK(s.mantissa < (uint64_t)1 << 53 && s.shift >= 64 && s.shift <= 136);
    }
}

static void clear_wipes(void **state)
{
    static const struct fkt_rounded_gaussian zero;
    struct fkt_rounded_gaussian g;
    struct fkt_gaussian_scale s;
    int64_t out;
    (void)state;
    fkt_rounded_gaussian_init(&g, NULL);
    CHECK(g.digits.entropy.secure);
    CHECK_OK(fkt_gaussian_scale_init(&s, 1000));
    CHECK_OK(fkt_rounded_gaussian_draw(&g, &s, &out));
    CHECK(memcmp(g.digits.buf, zero.digits.buf, sizeof g.digits.buf));
    fkt_rounded_gaussian_clear(&g);
    assert_memory_equal(g.digits.buf, zero.digits.buf, sizeof g.digits.buf);
    assert_memory_equal(&g.x, &zero.x, sizeof g.x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_the_oracles),
        cmocka_unit_test(a_broken_source_is_an_error),
        cmocka_unit_test(scales_are_exact_or_refused),
        cmocka_unit_test(clear_wipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
