/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors against a bitwise implementation: every width, lengths around the ends of words. */
#include "fedkt/advanced/secagg.h"

#include "secagg/mask.h"

#include "base/rng.h"
#include "tests/support/check.h"

static const uint32_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 16, 17, 31, 64, 100, 257};
enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 257 };

static struct fkt_sa_params shape(uint32_t bits, uint32_t length)
{
    return (struct fkt_sa_params){.bits = bits, .length = length};
}

/* ---- slow implementation ---- */

static size_t slow_bytes(uint32_t bits, uint32_t length) { return ((size_t)bits * length + 7) / 8; }

static void slow_pack(uint8_t *out, const int64_t *x, uint32_t bits, uint32_t length)
{
    memset(out, 0, slow_bytes(bits, length));
    for (size_t i = 0; i < length; i++)
        for (uint32_t j = 0; j < bits; j++) {
            size_t at = i * bits + j;
            if ((uint64_t)x[i] >> j & 1) out[at / 8] = (uint8_t)(out[at / 8] | 1U << at % 8);
        }
}

/* x modulo 2^bits, in -2^(bits-1)..2^(bits-1)-1 */
static int64_t slow_wrap(__int128 x, uint32_t bits)
{
    __int128 whole = (__int128)1 << bits;
    x %= whole;
    if (x < 0) x += whole;
    return (int64_t)(x >= whole / 2 ? x - whole : x);
}

static int64_t slow_word(const uint8_t *stream, size_t i, uint32_t bits)
{
    size_t width = bits <= 32 ? 4 : 8;
    __int128 w = 0;
    for (size_t k = 0; k < width; k++) w += (__int128)stream[i * width + k] << (8 * k);
    return slow_wrap(w, bits);
}

/* ---- random numbers of a ring ---- */

static struct fkt_rng rng;

static void draw(int64_t *x, uint32_t bits, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        uint64_t u = fkt_rng_u64(&rng);
        x[i] = slow_wrap((__int128)u, bits);
        if (u >> 60 == 0) x[i] = -((int64_t)1 << (bits - 1)); /* the ends now and then */
        if (u >> 60 == 1) x[i] = ((int64_t)1 << (bits - 1)) - 1;
        if (u >> 60 == 2) x[i] = -1;
    }
}

/* Exactly as long as it must be, so that an access beyond it is detected. */
static uint8_t *packed_of(const struct fkt_sa_vector *v)
{
    uint8_t *p = malloc(slow_bytes(v->bits, v->length));
    fkt_sa_vector_pack(v, p);
    return p;
}

static void packing(void **state)
{
    int64_t x[LONGEST], y[LONGEST], got[LONGEST];
    uint8_t want[LONGEST * 8];
    (void)state;
    for (uint32_t bits = 8; bits <= 62; bits++)
        for (size_t l = 0; l < LENGTHS; l++) {
            uint32_t n = lengths[l];
            struct fkt_sa_params p = shape(bits, n);
            struct fkt_sa_vector v, sum;
            uint8_t *packed;
            CHECK_OK(fkt_sa_vector_init(&v, &p));
            CHECK_OK(fkt_sa_vector_init(&sum, &p));
            assert_true((v.w32 != NULL) == (bits <= 32) && (v.w64 != NULL) == (bits > 32));
            draw(x, bits, n);
            draw(y, bits, n);
            fkt_sa_vector_set(&v, x);
            fkt_sa_vector_signed(&v, got);
            assert_memory_equal(got, x, n * sizeof *x);
            packed = packed_of(&v);
            slow_pack(want, x, bits, n);
            assert_memory_equal(packed, want, slow_bytes(bits, n));

            CHECK_OK(fkt_sa_vector_add_packed(&sum, packed));
            fkt_sa_vector_signed(&sum, got);
            assert_memory_equal(got, x, n * sizeof *x);
            fkt_sa_vector_set(&v, y);
            fkt_sa_vector_add(&sum, &v);
            CHECK_OK(fkt_sa_vector_add_packed(&sum, packed));
            fkt_sa_vector_signed(&sum, got);
            for (uint32_t i = 0; i < n; i++) assert_int_equal(got[i], slow_wrap((__int128)2 * x[i] + y[i], bits));
            free(packed);
            packed = packed_of(&sum); /* words whose high bits are not empty */
            slow_pack(want, got, bits, n);
            assert_memory_equal(packed, want, slow_bytes(bits, n));
            free(packed);
            fkt_sa_vector_clear(&v);
            fkt_sa_vector_clear(&sum);
        }
    assert_int_equal(fkt_alloc_live(), 0);
}

static void bits_behind_the_last_number(void **state)
{
    (void)state;
    for (uint32_t bits = 8; bits <= 62; bits++)
        for (size_t l = 0; l < LENGTHS; l++) {
            struct fkt_sa_params p = shape(bits, lengths[l]);
            size_t bytes = slow_bytes(bits, p.length), used = (size_t)bits * p.length;
            uint8_t *packed = calloc(bytes, 1);
            int64_t got[LONGEST];
            struct fkt_sa_vector v;
            CHECK_OK(fkt_sa_vector_init(&v, &p));
            for (size_t bit = used; bit < 8 * bytes; bit++) {
                memset(packed, 0, bytes);
                packed[0] = 1;
                packed[bit / 8] = (uint8_t)(packed[bit / 8] | 1U << bit % 8);
                CHECK_STATUS(fkt_sa_vector_add_packed(&v, packed), FKT_E_PEER_FORMAT);
            }
            fkt_sa_vector_signed(&v, got);
            for (uint32_t i = 0; i < p.length; i++) assert_int_equal(got[i], 0); /* nothing was added */
            memset(packed, 0, bytes);
            packed[(used - 1) / 8] = (uint8_t)(1U << (used - 1) % 8); /* the very last bit is a number's */
            CHECK_OK(fkt_sa_vector_add_packed(&v, packed));
            fkt_sa_vector_signed(&v, got);
            assert_int_equal(got[p.length - 1], -((int64_t)1 << (bits - 1)));
            fkt_sa_vector_clear(&v);
            free(packed);
        }
}

static void masking(void **state)
{
    uint8_t key[32], stream[LONGEST * 8];
    int64_t x[LONGEST], got[LONGEST];
    (void)state;
    for (int kind = FKT_KEYSTREAM_AES; kind <= FKT_KEYSTREAM_CHACHA20; kind++) {
        struct fkt_stream *s;
        CHECK_OK(fkt_stream_new(&s, (enum fkt_keystream)kind));
        for (uint32_t bits = 8; bits <= 62; bits++) {
            struct fkt_sa_params p = shape(bits, LONGEST);
            struct fkt_sa_vector v;
            CHECK_OK(fkt_sa_vector_init(&v, &p));
            for (int i = 0; i < 32; i++) key[i] = (uint8_t)fkt_rng_u64(&rng);
            CHECK_OK(fkt_stream_bytes(s, key, stream, sizeof stream));
            draw(x, bits, LONGEST);
            fkt_sa_vector_set(&v, x);
            CHECK_OK(fkt_sa_vector_mask(&v, s, key, 0));
            fkt_sa_vector_signed(&v, got);
            for (size_t i = 0; i < LONGEST; i++)
                assert_int_equal(got[i], slow_wrap((__int128)x[i] + slow_word(stream, i, bits), bits));
            CHECK_OK(fkt_sa_vector_mask(&v, s, key, 1));
            fkt_sa_vector_signed(&v, got);
            assert_memory_equal(got, x, sizeof x);
            CHECK_OK(fkt_sa_vector_mask(&v, s, key, 1));
            fkt_sa_vector_signed(&v, got);
            for (size_t i = 0; i < LONGEST; i++)
                assert_int_equal(got[i], slow_wrap((__int128)x[i] - slow_word(stream, i, bits), bits));
            fkt_sa_vector_clear(&v);
        }
        fkt_stream_free(s);
    }
}

/* Four sites, a mask for each pair, added by the lower and taken off by the higher: the packed sum is the plain one. */
static void masks_of_pairs_cancel(void **state)
{
    enum { SITES = 4, N = 100 };
    (void)state;
    for (uint32_t bits = 8; bits <= 62; bits += 9) {
        struct fkt_sa_params p = shape(bits, N);
        struct fkt_sa_vector sum;
        int64_t x[SITES][N], got[N];
        struct fkt_stream *s;
        CHECK_OK(fkt_stream_new(&s, FKT_KEYSTREAM_AES));
        CHECK_OK(fkt_sa_vector_init(&sum, &p));
        for (int i = 0; i < SITES; i++) {
            struct fkt_sa_vector v;
            uint8_t *packed;
            draw(x[i], bits, N);
            CHECK_OK(fkt_sa_vector_init(&v, &p));
            fkt_sa_vector_set(&v, x[i]);
            for (int j = 0; j < SITES; j++) {
                uint8_t key[32] = {(uint8_t)(i < j ? i : j), (uint8_t)(i < j ? j : i)};
                if (i != j) CHECK_OK(fkt_sa_vector_mask(&v, s, key, j < i));
            }
            packed = packed_of(&v);
            CHECK_OK(fkt_sa_vector_add_packed(&sum, packed));
            free(packed);
            fkt_sa_vector_clear(&v);
        }
        fkt_sa_vector_signed(&sum, got);
        for (int k = 0; k < N; k++)
            assert_int_equal(got[k], slow_wrap((__int128)x[0][k] + x[1][k] + x[2][k] + x[3][k], bits));
        fkt_sa_vector_clear(&sum);
        fkt_stream_free(s);
    }
}

static int set_up(void **state)
{
    (void)state;
    fkt_rng_init(&rng, 4, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing),
        cmocka_unit_test(bits_behind_the_last_number),
        cmocka_unit_test(masking),
        cmocka_unit_test(masks_of_pairs_cancel),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
