/* SPDX-License-Identifier: Apache-2.0 */
/* The number of threads that a host gives to BLAS changes no bit: release, Gaussians, samples and heads are the same
 * for one thread and four, set by call or by environment, and for two host threads at once; and the host's number is
 * what it was afterwards. Products of 193 x 193 are large enough for OpenBLAS to share between threads. */
#include "fedkt/fedkt.h"

#include "crypto/digest.h"
#include "pipeline/release.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <cblas.h>
#include <pthread.h>
#include <unistd.h>

enum { HASH = 32, RECORDS = 300, DIM = 192, SAMPLES = 40 };

static char self[4096];

static void add_file(struct fkt_digest *d, const char *path)
{
    uint8_t bytes[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0) fkt_digest_add(d, bytes, n);
    fclose(f);
}

static void open_pipeline(struct fkt_pipeline **pipeline, struct fkt_dataset **ds)
{
    const struct fkt_dataset_options o = {.limit = RECORDS};
    const struct fkt_codec_spec spec = {.name = "dct", .size = 32, .dim = DIM};
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    struct fkt_task task = {0};
    const char *classes[64];
    struct fkt_task_choices c = {.name = "threads", .classes = classes, .privacy = {.epsilon = 10, .delta = 1e-5}};
    CHECK_OK(fkt_dataset_open(ds, "demo:train", &o));
    c.n_classes = (uint32_t)fkt_dataset_classes(*ds);
    for (uint32_t k = 0; k < c.n_classes; k++) classes[k] = fkt_dataset_class(*ds, k);
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibration_embedded(&cal, codec));
    CHECK_OK(fkt_task_make_into(&task, &c, &(struct fkt_part_choice){.codec = codec, .calibration = &cal}, 1));
    CHECK_OK(fkt_pipeline_open(pipeline, &task, NULL, NULL));
    fkt_task_clear(&task);
    fkt_calibration_clear(&cal);
    fkt_codec_free(codec);
}

static void add_samples(struct fkt_digest *d, const struct fkt_release *r, enum fkt_estimator estimator)
{
    const struct fkt_estimate_options o = {.estimator = estimator, .pool = 0.25};
    struct fkt_gaussians g;
    double *w = NULL;
    CHECK_OK(fkt_release_gaussians(r, 0, &o, &g));
    CHECK_OK(fkt_alloc(&w, SAMPLES * (size_t)g.length));
    for (uint32_t k = 0; k < g.classes; k++) {
        CHECK_OK(fkt_gaussians_sample(&g, k, 7, 0, SAMPLES, w));
        fkt_digest_add(d, w, SAMPLES * (size_t)g.length * sizeof *w);
    }
    fkt_free(w);
    fkt_gaussians_clear(&g);
}

static void add_heads(struct fkt_digest *d, const struct fkt_release *r, const char *path)
{
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};
    struct fkt_gaussians g;
    struct fkt_heads heads;
    CHECK_OK(fkt_release_gaussians(r, 0, &raw, &g));
    CHECK_OK(fkt_heads_fit(&heads, &g, &r->task, FKT_HEADS_DEFAULT, r));
    for (int i = 0; i < FKT_HEAD_KINDS; i++) {
        CHECK_OK(fkt_head_save(heads.head[i], path, 1));
        add_file(d, path);
    }
    fkt_heads_clear(&heads);
    fkt_gaussians_clear(&g);
}

/* The digest of everything that BLAS takes part in, from images to saved heads. */
static void run(uint8_t hash[HASH])
{
    const struct fkt_pipeline_options threads = {.threads = 2};
    const struct fkt_round_facts facts = {.sites = 1, .survivors = 1};
    const uint64_t seed = 11;
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    struct fkt_release r;
    struct fkt_digest d;
    struct scratch scratch;
    scratch_init(&scratch);
    open_pipeline(&pipeline, &ds);
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &threads));
    CHECK_OK(fkt_ledger_init(&ledger, 1e6, 0));
    CHECK_OK(fkt_release_make_into(&r, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), m, &facts,
                                   &ledger, &seed));
    CHECK_OK(fkt_release_save(&r, scratch_path(&scratch, "r"), 0));
    fkt_digest_init(&d, "test", NULL);
    add_file(&d, scratch_path(&scratch, "r"));
    add_samples(&d, &r, FKT_ESTIMATOR_CLAMP);
    add_samples(&d, &r, FKT_ESTIMATOR_RIE);
    add_heads(&d, &r, scratch_path(&scratch, "head"));
    fkt_digest_end(&d, hash);
    fkt_release_clear(&r);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    scratch_release(&scratch);
}

static void a_hosts_call_changes_no_bit(void **state)
{
    uint8_t one[HASH], four[HASH];
    (void)state;
    openblas_set_num_threads(1);
    run(one);
    openblas_set_num_threads(4);
    run(four);
    assert_int_equal(openblas_get_num_threads(), 4);
    assert_memory_equal(one, four, HASH);
}

static void *run_in_thread(void *hash)
{
    run(hash);
    return NULL;
}

static void two_host_threads_change_no_bit(void **state)
{
    uint8_t one[HASH], at_once[2][HASH];
    pthread_t thread[2];
    (void)state;
    openblas_set_num_threads(1);
    run(one);
    openblas_set_num_threads(3);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_in_thread, at_once[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(openblas_get_num_threads(), 3);
    assert_memory_equal(one, at_once[0], HASH);
    assert_memory_equal(one, at_once[1], HASH);
}

/* Another process with OPENBLAS_NUM_THREADS set, which OpenBLAS reads when it is loaded. */
static void run_with(const char *threads, uint8_t hash[HASH])
{
    char command[4352];
    FILE *p;
    snprintf(command, sizeof command, "OPENBLAS_NUM_THREADS=%s '%s' --hash", threads, self);
    p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fread(hash, 1, HASH, p), HASH);
    assert_int_equal(pclose(p), 0);
}

static void the_environment_changes_no_bit(void **state)
{
    uint8_t one[HASH], four[HASH];
    (void)state;
    run_with("1", one);
    run_with("4", four);
    assert_memory_equal(one, four, HASH);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hosts_call_changes_no_bit),
        cmocka_unit_test(two_host_threads_change_no_bit),
        cmocka_unit_test(the_environment_changes_no_bit),
    };
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    if (argc > 1 && !strcmp(argv[1], "--hash")) {
        uint8_t hash[HASH];
        run(hash);
        return fwrite(hash, 1, HASH, stdout) == HASH ? 0 : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
