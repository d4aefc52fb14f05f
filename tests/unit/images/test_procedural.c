/* SPDX-License-Identifier: Apache-2.0 */
#include "images/procedural_scenes.h"
#include "tests/support/check.h"

enum { SIDE = FKT_DEMO_SIDE, BYTES = SIDE * SIDE * 3, K = FKT_DEMO_CLASSES, CELLS = 8 * 8 * 3 };

static uint64_t fnv(uint64_t h, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3U;
    return h;
}

/* 8 x 8 mean colours: what a codec of few coefficients sees. */
static void thumb(double *out, int test, unsigned k, unsigned index)
{
    uint8_t rgb[BYTES];
    fkt_demo_draw(rgb, test, k, index);
    memset(out, 0, CELLS * sizeof *out);
    for (size_t i = 0; i < BYTES; i++) {
        size_t x = i / 3 % SIDE, y = i / 3 / SIDE;
        out[(y / 4 * 8 + x / 4) * 3 + i % 3] += rgb[i] / 16.0;
    }
}

/* The golden number is this program's own first answer: it watches for drift, between machines and between versions. */
static void the_same_bytes_everywhere(void **state)
{
    uint8_t rgb[BYTES], again[BYTES];
    uint64_t h = 0xcbf29ce484222325U;
    (void)state;
    for (int test = 0; test < 2; test++)
        for (unsigned k = 0; k < K; k++)
            for (unsigned i = 0; i < 20; i++) {
                fkt_demo_draw(rgb, test, k, i);
                fkt_demo_draw(again, test, k, i);
                assert_memory_equal(rgb, again, BYTES);
                h = fnv(h, rgb, BYTES);
            }
    if (h != 0xb6ac7c5a1e8413e2U) fail_msg("demo images have changed: 0x%016llx", (unsigned long long)h);
}

static void classes_have_ten_names(void **state)
{
    (void)state;
    for (unsigned k = 0; k < K; k++)
        for (unsigned j = 0; j < k; j++) CHECK(strcmp(fkt_demo_class(k), fkt_demo_class(j)) > 0);
}

static void no_image_comes_twice(void **state)
{
    uint64_t *h = malloc(2 * K * FKT_DEMO_TEST * sizeof *h);
    uint8_t rgb[BYTES];
    size_t n = 0;
    (void)state;
    for (int test = 0; test < 2; test++)
        for (unsigned k = 0; k < K; k++)
            for (unsigned i = 0; i < FKT_DEMO_TEST; i++) {
                fkt_demo_draw(rgb, test, k, i);
                h[n++] = fnv(0xcbf29ce484222325U, rgb, BYTES);
            }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) CHECK(h[i] != h[j]);
    free(h);
}

/* Neither trivial nor hopeless: means of raw 8 x 8 thumbnails, the weakest of heads, name 200 to 450 of 500 test
 * images (277 when this was written; in 64 DCT coefficients LDA then named 82 to 88 % and QDA 95 to 97 %), and within
 * every class images differ from their mean by 12 grey levels or more (root mean square). Fixed images: no false
 * alarms. */
static void the_classes_overlap_a_little(void **state)
{
    double *mean = calloc(K * CELLS, sizeof *mean), t[CELLS];
    unsigned right = 0;
    (void)state;
    for (unsigned k = 0; k < K; k++)
        for (unsigned i = 0; i < 200; i++) {
            thumb(t, 0, k, i);
            for (int c = 0; c < CELLS; c++) mean[k * CELLS + (unsigned)c] += t[c] / 200;
        }
    for (unsigned k = 0; k < K; k++) {
        double spread = 0;
        for (unsigned i = 0; i < 50; i++) {
            double best = INFINITY;
            unsigned at = 0;
            thumb(t, 1, k, i);
            for (unsigned j = 0; j < K; j++) {
                double d = 0;
                for (int c = 0; c < CELLS; c++) d += pow(t[c] - mean[j * CELLS + (unsigned)c], 2);
                if (j == k) spread += d / CELLS / 50;
                if (d < best) best = d, at = j;
            }
            right += at == k;
        }
        CHECK(sqrt(spread) >= 12 && sqrt(spread) <= 80);
    }
    if (!(right >= 200 && right <= 450)) fail_msg("nearest mean names %u of 500", right);
    free(mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_everywhere),
        cmocka_unit_test(classes_have_ten_names),
        cmocka_unit_test(no_image_comes_twice),
        cmocka_unit_test(the_classes_overlap_a_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
