/* SPDX-License-Identifier: Apache-2.0 */
/* Draw for draw and digit for digit against the oracle's arithmetic with fractions, and what happens when the source is
 * broken. tests/stats checks the distribution itself. */
#include "fedkt/advanced/privacy.h"

#include "privacy/discrete_gaussian.h"
#include "tests/support/vectors.h"

/* Counts the bytes that were asked for. */
struct counted {
    struct fkt_entropy inner;
    size_t bytes;
};

static fkt_status counted_fill(void *self, uint8_t *out, size_t len)
{
    struct counted *c = self;
    c->bytes += len;
    return c->inner.fill(c->inner.self, out, len);
}

enum { DRAWS_MAX = 300, STREAMS_MAX = 4 };

/* Draws a case's numbers from `inner` and compares them and the bytes used with it. */
static void one_case(const json_t *c, const struct fkt_entropy *inner)
{
    struct counted counted = {.inner = *inner};
    const struct fkt_entropy e = {counted_fill, &counted, 0};
    const struct fkt_dyadic variance = {(uint64_t)vectors_int(c, "num"), (uint32_t)vectors_int(c, "shift")};
    struct fkt_discrete_gaussian g;
    struct fkt_discrete_scale s;
    int64_t want[DRAWS_MAX];
    const size_t n = vectors_ints(c, "draws", want, DRAWS_MAX);
    fkt_discrete_gaussian_init(&g, &e);
    CHECK_OK(fkt_discrete_scale_init(&s, &variance));
    CHECK(n >= 200);
    for (size_t i = 0; i < n; i++) {
        int64_t got = 0;
        CHECK_OK(fkt_discrete_gaussian_draw(&g, &s, &got));
        if (got != want[i])
            fail_msg("variance %llu/2^%u, draw %zu: got %lld, want %lld", (unsigned long long)variance.num,
                     variance.shift, i, (long long)got, (long long)want[i]);
    }
    CHECK(counted.bytes - (g.digits.filled - g.digits.at) == 4 * (size_t)vectors_int(c, "digits"));
    fkt_discrete_gaussian_clear(&g);
}

static void draws_and_digits_are_the_oracles(void **state)
{
    json_t *root, *cases = vectors_open(&root, "discrete_gaussian.json");
    (void)state;
    CHECK(json_array_size(cases) == 20);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        struct fkt_entropy_seeded seeded;
        struct fkt_entropy e;
        fkt_entropy_seeded_init(&seeded, (uint64_t)vectors_int(c, "seed"), (uint64_t)vectors_int(c, "stream"));
        fkt_entropy_seeded(&e, &seeded);
        one_case(c, &e);
    }
    json_decref(root);
}

/* Digits in turn the bitwise AND and the bitwise OR of several streams' (oracle/discrete_gaussian.py, Lopsided), under
 * which far draws are frequent. */
struct lopsided {
    struct fkt_entropy_seeded stream[STREAMS_MAX];
    int streams;
    size_t at; /* bytes given so far */
};

static fkt_status lopsided_fill(void *self, uint8_t *out, size_t len)
{
    struct lopsided *l = self;
    uint8_t one[FKT_DIGITS_BUFFER];
    CHECK(len <= sizeof one && len % 4 == 0);
    for (int s = 0; s < l->streams; s++) {
        struct fkt_entropy e;
        fkt_entropy_seeded(&e, &l->stream[s]);
        fkt_status st = e.fill(e.self, one, len);
        if (st != FKT_OK) return st;
        for (size_t i = 0; i < len; i++)
            out[i] = s == 0 ? one[i] : (l->at + i) / 4 % 2 == 0 ? out[i] & one[i] : out[i] | one[i];
    }
    l->at += len;
    return FKT_OK;
}

/* Six sigma happen once in 5e8 draws: a sampler that cut them off would pass all other tests. */
static void far_draws_are_the_oracles(void **state)
{
    json_t *root, *cases = vectors_open(&root, "discrete_gaussian_tails.json");
    size_t far[2] = {0, 0};
    (void)state;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const double variance = ldexp((double)vectors_int(c, "num"), -(int)vectors_int(c, "shift"));
        struct lopsided l = {.streams = (int)vectors_int(c, "streams")};
        const struct fkt_entropy e = {lopsided_fill, &l, 0};
        int64_t draws[DRAWS_MAX];
        const size_t n = vectors_ints(c, "draws", draws, DRAWS_MAX);
        CHECK(l.streams > 1 && l.streams <= STREAMS_MAX);
        for (int s = 0; s < l.streams; s++)
            fkt_entropy_seeded_init(&l.stream[s], (uint64_t)vectors_int(c, "seed"), 100 + (uint64_t)s);
        one_case(c, &e);
        for (size_t j = 0; j < n; j++)
            if ((double)draws[j] * (double)draws[j] > 36 * variance) far[draws[j] > 0]++;
    }
    print_message("%zu draws beyond six sigma below, %zu above\n", far[0], far[1]);
    CHECK(far[0] >= 5 && far[1] >= 3);
    json_decref(root);
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

/* A source of constant bytes ends in an error or, where the first digits decide, in the one answer that they mean: but
 * never in an endless loop. Bytes of 0, where every coin is yes, must be an error. */
static void a_broken_source_does_not_hang(void **state)
{
    const struct fkt_dyadic v = {25, 0};
    struct fkt_discrete_scale s;
    struct fkt_discrete_gaussian g;
    int64_t out = 77;
    int errors = 0;
    (void)state;
    CHECK_OK(fkt_discrete_scale_init(&s, &v));
    for (int byte = 0; byte < 256; byte++) {
        const struct fkt_entropy e = {constant_fill, &byte, 0};
        fkt_discrete_gaussian_init(&g, &e);
        const fkt_status st = fkt_discrete_gaussian_draw(&g, &s, &out);
        CHECK(st == FKT_OK || st == FKT_E_ENTROPY);
        errors += st != FKT_OK;
        if (byte == 0) CHECK(st == FKT_E_ENTROPY && strstr(fkt_error_text(), "broken"));
        fkt_discrete_gaussian_clear(&g);
    }
    print_message("%d of 256 constant sources are errors\n", errors);
    const struct fkt_entropy dead = {dead_fill, NULL, 1};
    out = 77;
    fkt_discrete_gaussian_init(&g, &dead);
    CHECK_STATUS(fkt_discrete_gaussian_draw(&g, &s, &out), FKT_E_ENTROPY);
    CHECK(strstr(fkt_error_text(), "no more") && out == 77);
}

static void scales_are_exact_or_refused(void **state)
{
    const struct fkt_dyadic bad[] = {{0, 0}, {(uint64_t)1 << 62, 0}, {UINT64_MAX, 3}, {1, 63}, {1, UINT32_MAX}};
    const struct {
        struct fkt_dyadic v;
        uint32_t t;
    } good[] = {{{1, 0}, 2},
                {{1, 1}, 1},
                {{3, 0}, 2},
                {{4, 0}, 3},
                {{35, 2}, 3},
                {{36, 2}, 4},
                {{((uint64_t)1 << 62) - 1, 0}, 1U << 31},
                {{((uint64_t)1 << 62) - 1, 62}, 1},
                {{1, 62}, 1},
                {{(uint64_t)1 << 60, 0}, (1U << 30) + 1},
                {{((uint64_t)1 << 60) - 1, 0}, 1U << 30}};
    struct fkt_discrete_scale s;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_STATUS(fkt_discrete_scale_init(&s, &bad[i]), FKT_E_ARG);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_OK(fkt_discrete_scale_init(&s, &good[i].v));
        CHECK(s.t == good[i].t && s.rest == ((uint64_t)1 << 32) % s.t);
        CHECK(s.denominator >> 127 == 0);
        CHECK_REL((double)s.denominator, 2.0 * s.t * s.t * ldexp((double)s.num, (int)s.shift), 1e-15);
    }
}

static void clear_wipes(void **state)
{
    static const struct fkt_discrete_gaussian zero;
    const struct fkt_dyadic v = {1000, 0};
    struct fkt_discrete_gaussian g;
    struct fkt_discrete_scale s;
    int64_t out;
    (void)state;
    fkt_discrete_gaussian_init(&g, NULL);
    CHECK(g.digits.entropy.secure);
    CHECK_OK(fkt_discrete_scale_init(&s, &v));
    CHECK_OK(fkt_discrete_gaussian_draw(&g, &s, &out));
    CHECK(memcmp(g.digits.buf, zero.digits.buf, sizeof g.digits.buf));
    fkt_discrete_gaussian_clear(&g);
    assert_memory_equal(g.digits.buf, zero.digits.buf, sizeof g.digits.buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_and_digits_are_the_oracles),
        cmocka_unit_test(far_draws_are_the_oracles),
        cmocka_unit_test(a_broken_source_does_not_hang),
        cmocka_unit_test(scales_are_exact_or_refused),
        cmocka_unit_test(clear_wipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
