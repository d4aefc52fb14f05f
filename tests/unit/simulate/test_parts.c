/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated federation whose record vectors have a codec's and a guide's part, with noise shares and the whole
 * aggregation protocol: exact sums for any number of sites, the same release for any number of threads, and images or
 * none. */
#include "fedkt/advanced/simulate.h"
#include "fedkt/sweep.h"
#include "pipeline/release.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"

#include <jansson.h>

enum { DIM = 6 };

static struct fkt_dataset *data, *test;

static int setup(void **state)
{
    (void)state;
    CHECK_OK(fkt_dataset_open(&data, "demo:train", &(struct fkt_dataset_options){.limit = 120}));
    CHECK_OK(fkt_dataset_open(&test, "demo:test", &(struct fkt_dataset_options){.limit = 40}));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fkt_dataset_free(data);
    fkt_dataset_free(test);
    return 0;
}

static void no_self(void *self) { (void)self; }

static struct fkt_sweep *run(int codec, int joined, int pooled, uint32_t sites, unsigned threads)
{
    static struct fkt_codec_ops ops;
    static const double epsilon = 5;
    const uint64_t seed = 3;
    struct fkt_sweep_spec spec;
    struct guided_task g;
    struct fkt_codec *guide = NULL;
    struct fkt_sweep *s = NULL;
    fkt_sweep_default(&spec);
    CHECK_OK(guided_parts(&g, codec, DIM));
    ops = *g.guide.ops;
    ops.free = no_self;
    CHECK_OK(fkt_alloc(&guide, 1));
    *guide = g.guide;
    guide->ops = &ops;
    guide->self = guide;
    spec.data = data;
    spec.test = test;
    spec.parts = g.n;
    for (uint32_t p = 0; p < g.n; p++) {
        spec.codec[p] = p + 1 == g.n ? guide : g.codec;
        spec.calibration[p] = &g.calibration[p];
    }
    g.codec = NULL; /* the sweep takes it */
    spec.task = (struct fkt_task_choices){.joined = joined, .pooled = pooled, .privacy.delta = 1e-5};
    spec.epsilon = &epsilon;
    spec.n_epsilon = 1;
    spec.partition.sites = sites;
    spec.dropout[FKT_SA_STATE_MASK] = sites > 8 ? 0.1 : 0;
    spec.insecure_seed = &seed;
    spec.threads = threads;
    CHECK_OK(fkt_sweep_new(&s, &spec));
    CHECK_OK(fkt_sweep_run(s));
    guided_parts_clear(&g);
    return s;
}

static void hash_of(const struct fkt_sweep *s, const char *key, char out[FKT_SHA256_HEX])
{
    char *text = NULL;
    json_t *j;
    CHECK_OK(fkt_sweep_results_json(s, &text));
    j = json_loads(text, 0, NULL);
    snprintf(out, FKT_SHA256_HEX, "%s", json_string_value(json_object_get(j, key)));
    json_decref(j);
    fkt_string_free(text);
}

/* The round's total is the sum of the survivors, which the release carries with its noise: its counts are within what
 * the noise allows, and the exact sums do not depend on sites or threads. */
static void sums_and_releases_do_not_depend_on_threads_or_sites(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* side by side, joined, pooled */
        struct fkt_sweep *a = run(1, kind == 1, kind == 2, 6, 1), *b = run(1, kind == 1, kind == 2, 6, 3),
                         *c = run(1, kind == 1, kind == 2, 11, 2);
        char one[FKT_SHA256_HEX], other[FKT_SHA256_HEX];
        hash_of(a, "moments_sha256", one);
        hash_of(b, "moments_sha256", other);
        assert_string_equal(one, other);
        hash_of(a, "release_sha256", one);
        hash_of(b, "release_sha256", other);
        assert_string_equal(one, other);
        CHECK(fkt_sweep_arm(a, 0)->parts == (kind == 1 ? 1 : 2));
        CHECK(fkt_sweep_arm(a, 0)->round->survivors == 6 && fkt_sweep_arm(c, 0)->round->survivors == 10);
        for (uint32_t k = 0; k < 10; k++) {
            const struct fkt_gaussians *g = fkt_sweep_arm(a, 0)->measured;
            CHECK(fabs(g[0].count[k] - 12) < 6 * g[0].count_noise[k]); /* six standard deviations, ten classes */
            if (kind != 1) CHECK(g[0].count[k] == g[1].count[k]);
        }
        CHECK((fkt_sweep_arm(a, 0)->images == NULL) == (kind == 2));
        fkt_sweep_free(a);
        fkt_sweep_free(b);
        fkt_sweep_free(c);
    }
}

/* All sites take part and none is lost: the same records, so the same exact sums. */
static void sites_share_the_sums(void **state)
{
    struct fkt_sweep *a = run(1, 0, 0, 3, 2), *b = run(1, 0, 0, 7, 2);
    char one[FKT_SHA256_HEX], other[FKT_SHA256_HEX];
    (void)state;
    hash_of(a, "moments_sha256", one);
    hash_of(b, "moments_sha256", other);
    assert_string_equal(one, other);
    fkt_sweep_free(a);
    fkt_sweep_free(b);
}

static void a_guide_alone_has_heads_and_no_images(void **state)
{
    struct fkt_sweep *s = run(0, 0, 0, 5, 2);
    char *text = NULL;
    uint8_t rgb[16 * 16 * 3];
    double mean;
    json_t *j;
    (void)state;
    assert_null(fkt_sweep_arm(s, 0)->images);
    CHECK_STATUS(fkt_sweep_tiles(s, 0, 0, 1, 1, rgb), FKT_E_STATE);
    fkt_sweep_accuracy(s, 0, FKT_HEAD_LDA, &mean, NULL);
    CHECK(mean > 0);
    CHECK_OK(fkt_sweep_results_json(s, &text));
    j = json_loads(text, 0, NULL);
    CHECK(json_is_null(json_object_get(j, "codec")) && json_array_size(json_object_get(j, "parts")) == 1);
    assert_string_equal(json_string_value(json_object_get(j, "moments")), "class");
    json_decref(j);
    fkt_string_free(text);
    fkt_sweep_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_releases_do_not_depend_on_threads_or_sites),
        cmocka_unit_test(sites_share_the_sums),
        cmocka_unit_test(a_guide_alone_has_heads_and_no_images),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
