/* SPDX-License-Identifier: Apache-2.0 */
/* The library does not abort its host: a table of public calls with arguments that a careless program passes (zeroed
 * structs, numbers out of range, NaN). Each runs in a process of its own, so that a failed assertion or a signal is the
 * failure of its row; each must return FKT_E_ARG with a sentence. NULL is not in the table: fedkt.h forbids it where a
 * header does not allow it. */
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/secagg.h"
#include "fedkt/advanced/synth.h"
#include "fedkt/fedkt.h"

#include "tests/support/layouts.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct fkt_coordinates none;
static double vector[64];
static int32_t integers[64];
static int64_t block[256], block_out[256];
static uint32_t words[64];
static uint64_t keys[64];
static uint8_t bytes[4096], *gives;

static struct fkt_coordinates clip(void)
{
    struct fkt_coordinates c;
    CHECK_OK(fkt_coordinates_clip(&c, 8, 256, 2));
    return c;
}

static struct fkt_coordinates gain_shape(void)
{
    struct fkt_coordinates c;
    CHECK_OK(fkt_coordinates_gain_shape(&c, 8, 256, 0.35, 1, 1));
    return c;
}

/* ---- moments.h ---- */

static fkt_status quantise_zeroed(void) { return fkt_quantise(&none, vector, integers); }
static fkt_status forward_zeroed(void) { return fkt_coordinates_forward(&none, vector, vector); }
static fkt_status inverse_zeroed(void) { return fkt_coordinates_inverse(&none, vector, vector); }
static fkt_status check_zeroed(void) { return fkt_coordinates_check(&none); }

#define QUANTISE_WITH(name, base, change)                                                                              \
    static fkt_status name(void)                                                                                       \
    {                                                                                                                  \
        struct fkt_coordinates c = base();                                                                             \
        change;                                                                                                        \
        return fkt_quantise(&c, vector, integers);                                                                     \
    }
QUANTISE_WITH(quantise_rq_large, clip, c.rq = FKT_RQ_MAX + 1)
QUANTISE_WITH(quantise_rq_zero, clip, c.rq = 0)
QUANTISE_WITH(quantise_length_zero, clip, c.length = 0)
QUANTISE_WITH(quantise_length_large, gain_shape, c.length = c.dim = UINT32_MAX)
QUANTISE_WITH(quantise_length_other, gain_shape, c.length--)
QUANTISE_WITH(quantise_radius_nan, clip, c.radius = NAN)
QUANTISE_WITH(quantise_radius_zero, clip, c.radius = 0)
QUANTISE_WITH(quantise_radius_other, gain_shape, c.radius = 0.5)
QUANTISE_WITH(quantise_kind, clip, c.kind = (enum fkt_coordinate_kind)7)
QUANTISE_WITH(quantise_gamma_nan, gain_shape, c.gamma = NAN)

static fkt_status moments_of(uint32_t classes, uint32_t length, uint32_t rq, uint64_t n_max)
{
    struct fkt_moments *m = NULL;
    fkt_status st = fkt_moments_new(&m, classes, ONE_PART(length, rq), n_max);
    fkt_moments_free(m);
    return st;
}
static fkt_status moments_no_class(void) { return moments_of(0, 3, 256, 0); }
static fkt_status moments_no_length(void) { return moments_of(3, 0, 256, 0); }
static fkt_status moments_no_radius(void) { return moments_of(3, 3, 0, 0); }
static fkt_status moments_huge(void) { return moments_of(UINT32_MAX, UINT32_MAX, 256, 0); }
static fkt_status moments_many(void) { return moments_of(3, 3, 4096, UINT64_MAX); }
static fkt_status moments_label(void)
{
    struct fkt_moments *m = NULL;
    const uint32_t label = 3;
    fkt_status st;
    CHECK_OK(fkt_moments_new(&m, 3, ONE_PART(2, 256), 0));
    st = fkt_moments_add(m, &label, integers, 1);
    fkt_moments_free(m);
    return st;
}

/* ---- privacy.h ---- */

static fkt_status plan_zeroed(void)
{
    struct fkt_privacy_plan p;
    const struct fkt_privacy_spec spec = {0};
    return fkt_privacy_plan(&p, &spec);
}
static fkt_status plan_nan(void)
{
    struct fkt_privacy_plan p;
    const struct fkt_privacy_spec spec = {
        .epsilon = NAN, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{256, 24, 75}}};
    return fkt_privacy_plan(&p, &spec);
}
static fkt_status plan_adjacency(void)
{
    struct fkt_privacy_plan p;
    const struct fkt_privacy_spec spec = {.epsilon = 1,
                                          .delta = 1e-5,
                                          .adjacency = (enum fkt_adjacency)9,
                                          .split_count = 1,
                                          .parts = 1,
                                          .part = {{256, 24, 75}}};
    return fkt_privacy_plan(&p, &spec);
}
static fkt_status release_zeroed(void)
{
    const struct fkt_privacy_plan p = {0};
    struct fkt_ledger l;
    CHECK_OK(fkt_ledger_init(&l, 10, 0));
    return fkt_privacy_release(block_out, block, 1, ONE_PART(2, 256), &p, &l, NULL);
}
static struct fkt_share_plan shares(void)
{
    const struct fkt_privacy_spec spec = {
        .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{256, 24, 75}}};
    struct fkt_share_plan p;
    CHECK_OK(fkt_privacy_plan_shares(&p, &spec, 2, 3));
    return p;
}
static fkt_status share_zeroed(void)
{
    const struct fkt_share_plan p = {0};
    return fkt_privacy_share(block_out, block, 1, ONE_PART(2, 256), &p, NULL);
}
#define SHARE_WITH(name, change)                                                                                       \
    static fkt_status name(void)                                                                                       \
    {                                                                                                                  \
        struct fkt_share_plan p = shares();                                                                            \
        change;                                                                                                        \
        return fkt_privacy_share(block_out, block, 1, ONE_PART(2, 256), &p, NULL);                                     \
    }
SHARE_WITH(share_shift, p.variance[0].moment.shift = 200)
SHARE_WITH(share_wide, p.variance[0].sum.num = UINT64_MAX)
SHARE_WITH(share_mu_nan, p.plan.mu = NAN)
SHARE_WITH(share_scale, p.count_scale = 3)
static fkt_status gather_zeroed(void)
{
    const struct fkt_share_plan p = {0};
    return fkt_privacy_gather(block_out, block, 1, ONE_PART(2, 256), &p, 1);
}
static fkt_status share_plan_zeroed(void)
{
    const struct fkt_privacy_spec spec = {0};
    struct fkt_share_plan p;
    return fkt_privacy_plan_shares(&p, &spec, 0, 0);
}
static fkt_status ledger_nan(void)
{
    struct fkt_ledger l;
    return fkt_ledger_init(&l, NAN, 0);
}
static fkt_status debit_nan(void)
{
    struct fkt_ledger l;
    CHECK_OK(fkt_ledger_init(&l, 10, 0));
    return fkt_ledger_debit(&l, NAN);
}

/* ---- secagg.h ---- */

static const struct fkt_sa_params no_params;
static fkt_status params_zeroed(void) { return fkt_sa_params_check(&no_params); }
static fkt_status client_zeroed(void)
{
    static const struct fkt_sa_site site;
    struct fkt_sa_client *c = NULL;
    return fkt_sa_client_new(&c, &no_params, 0, bytes, &site, NULL);
}
static fkt_status server_zeroed(void)
{
    struct fkt_sa_server *s = NULL;
    return fkt_sa_server_new(&s, &no_params, bytes, 0);
}
static fkt_status sizes_zeroed(void)
{
    const struct fkt_sa_params one = {.sites = 1, .degree = 7};
    return fkt_sa_to_site_max(&no_params) || fkt_sa_to_server_max(&no_params) || fkt_sa_to_site_max(&one)
               ? FKT_OK
               : fkt_sa_params_check(&no_params);
}
static fkt_status find_many(void)
{
    uint32_t k, t;
    return fkt_sa_find(UINT32_MAX, UINT32_MAX, UINT32_MAX, 40, 20, &k, &t);
}

/* ---- synth.h, classifier.h, learn.h ---- */

static fkt_status estimate_with(uint32_t classes, uint32_t length, double unit, double tau, int estimator)
{
    struct fkt_gaussians g;
    const struct fkt_noise_scale noise = {.sigma_count = 1, .sigma_sum = 1, .sigma_moment = 1, .unit = unit};
    const struct fkt_estimate_options o = {.estimator = (enum fkt_estimator)estimator, .tau = tau};
    fkt_status st = fkt_gaussians_estimate(&g, block, classes, length, &noise, &o);
    fkt_gaussians_clear(&g);
    return st;
}
static fkt_status estimate_nothing(void) { return estimate_with(0, 0, 1, 0, 0); }
static fkt_status estimate_long(void) { return estimate_with(1, UINT32_MAX, 1, 0, 0); }
static fkt_status estimate_unit(void) { return estimate_with(1, 2, NAN, 0, 0); }
static fkt_status estimate_tau(void) { return estimate_with(1, 2, 1, NAN, 0); }
static fkt_status estimate_kind(void) { return estimate_with(1, 2, 1, 0, 9); }
static fkt_status sample_zeroed(void)
{
    const struct fkt_gaussians g = {0};
    assert_true(fkt_gaussians_below_noise(&g, 0));
    return fkt_gaussians_sample(&g, 0, 1, 0, 1, vector);
}
static fkt_status head_zeroed(void)
{
    const struct fkt_class_statistics s = {0};
    struct fkt_head *h = NULL;
    return fkt_head_fit(&h, FKT_HEAD_LDA, &s);
}
static fkt_status head_kind(void)
{
    const struct fkt_class_statistics s = {.classes = 2, .length = 1};
    struct fkt_head *h = NULL;
    return fkt_head_fit(&h, (enum fkt_head_kind)9, &s);
}
static fkt_status score_none(void)
{
    struct fkt_score s;
    return fkt_score_init(&s, 0);
}
static fkt_status score_label(void)
{
    const uint32_t truth = 2, guess = 0;
    struct fkt_score s;
    fkt_status st;
    CHECK_OK(fkt_score_init(&s, 2));
    assert_true(isnan(fkt_score_class_accuracy(&s, 2)));
    st = fkt_score_add(&s, &truth, &guess, 1);
    fkt_score_clear(&s);
    return st;
}
static fkt_status model_zeroed(void)
{
    const struct fkt_model_spec spec = {0};
    struct fkt_model *m = NULL;
    return fkt_model_new(&m, &spec);
}

/* ---- image.h, codec.h ---- */

static fkt_status partition_with(struct fkt_partition_spec spec)
{
    return fkt_partition(words, words, keys, 8, 4, &spec);
}
static fkt_status partition_zeroed(void) { return partition_with((struct fkt_partition_spec){0}); }
static fkt_status partition_alpha(void)
{
    return partition_with((struct fkt_partition_spec){.rule = FKT_PARTITION_DIRICHLET, .alpha = NAN, .sites = 2});
}
static fkt_status partition_rule(void)
{
    return partition_with((struct fkt_partition_spec){.rule = (enum fkt_partition_rule)9, .sites = 2});
}
static fkt_status partition_classes(void)
{
    return partition_with((struct fkt_partition_spec){.rule = FKT_PARTITION_PATHOLOGICAL, .k = 9, .sites = 2});
}
static fkt_status holdout_nan(void) { return fkt_split_holdout(bytes, keys, 8, NAN, 1); }
static fkt_status stratified_label(void)
{
    words[0] = 77;
    return fkt_split_stratified(bytes, words, 8, 4, 0.5, 1);
}
static fkt_status png_empty(void)
{
    size_t len;
    return fkt_png_encode(&gives, &len, bytes, 0, 0);
}
static fkt_status grid_empty(void)
{
    uint32_t w, h;
    return fkt_grid(&gives, &w, &h, bytes, 0, 0, 0, NULL);
}
static fkt_status grid_huge(void)
{
    uint32_t w, h;
    return fkt_grid(&gives, &w, &h, bytes, SIZE_MAX / 2, SIZE_MAX / 2, 64, NULL);
}
static fkt_status read_with(size_t i, uint32_t size, int filter)
{
    const struct fkt_dataset_options o = {.limit = 10};
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    CHECK_OK(fkt_dataset_open(&ds, "demo:train", &o));
    assert_int_equal(fkt_dataset_label(ds, 10), 0);
    assert_string_equal(fkt_dataset_class(ds, 99), "");
    st = fkt_dataset_read(ds, i, size, (enum fkt_filter)filter, bytes, NULL);
    fkt_dataset_free(ds);
    return st;
}
static fkt_status read_beyond(void) { return read_with(10, 8, 0); }
static fkt_status read_no_side(void) { return read_with(0, 0, 0); }
static fkt_status read_huge_side(void) { return read_with(0, UINT32_MAX, 0); }
static fkt_status read_filter(void) { return read_with(0, 8, 77); }
static fkt_status codec_zeroed(void)
{
    const struct fkt_codec_spec spec = {.name = "dct"};
    struct fkt_codec *c = NULL;
    return fkt_codec_open(&c, &spec);
}
static fkt_status codec_long(void)
{
    const struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = UINT32_MAX};
    struct fkt_codec *c = NULL;
    return fkt_codec_open(&c, &spec);
}
static fkt_status export_empty(void)
{
    struct fkt_export *e = NULL;
    return fkt_export_open(&e, ".", FKT_EXPORT_NPZ, "train", NULL, 0, 0, 0);
}
static fkt_status export_format(void)
{
    const char *const classes[] = {"a"};
    struct fkt_export *e = NULL;
    return fkt_export_open(&e, ".", (enum fkt_export_format)9, "train", classes, 1, 8, 1);
}

#define ROW(f)                                                                                                         \
    {                                                                                                                  \
#f, f                                                                                                          \
    }
static const struct {
    const char *name;
    fkt_status (*call)(void);
} rows[] = {
    ROW(quantise_zeroed),
    ROW(forward_zeroed),
    ROW(inverse_zeroed),
    ROW(check_zeroed),
    ROW(quantise_rq_large),
    ROW(quantise_rq_zero),
    ROW(quantise_length_zero),
    ROW(quantise_length_large),
    ROW(quantise_length_other),
    ROW(quantise_radius_nan),
    ROW(quantise_radius_zero),
    ROW(quantise_radius_other),
    ROW(quantise_kind),
    ROW(quantise_gamma_nan),
    ROW(moments_no_class),
    ROW(moments_no_length),
    ROW(moments_no_radius),
    ROW(moments_huge),
    ROW(moments_many),
    ROW(moments_label),
    ROW(plan_zeroed),
    ROW(plan_nan),
    ROW(plan_adjacency),
    ROW(release_zeroed),
    ROW(share_zeroed),
    ROW(share_shift),
    ROW(share_wide),
    ROW(share_mu_nan),
    ROW(share_scale),
    ROW(gather_zeroed),
    ROW(share_plan_zeroed),
    ROW(ledger_nan),
    ROW(debit_nan),
    ROW(params_zeroed),
    ROW(client_zeroed),
    ROW(server_zeroed),
    ROW(sizes_zeroed),
    ROW(find_many),
    ROW(estimate_nothing),
    ROW(estimate_long),
    ROW(estimate_unit),
    ROW(estimate_tau),
    ROW(estimate_kind),
    ROW(sample_zeroed),
    ROW(head_zeroed),
    ROW(head_kind),
    ROW(score_none),
    ROW(score_label),
    ROW(model_zeroed),
    ROW(partition_zeroed),
    ROW(partition_alpha),
    ROW(partition_rule),
    ROW(partition_classes),
    ROW(holdout_nan),
    ROW(stratified_label),
    ROW(png_empty),
    ROW(grid_empty),
    ROW(grid_huge),
    ROW(read_beyond),
    ROW(read_no_side),
    ROW(read_huge_side),
    ROW(read_filter),
    ROW(codec_zeroed),
    ROW(codec_long),
    ROW(export_empty),
    ROW(export_format),
};

static void every_row_is_refused(void **state)
{
    int failures = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int how;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const fkt_status st = rows[i].call();
            if (st == FKT_E_ARG && !*fkt_error_text()) _exit(1);
            _exit((int)st);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        if (WIFEXITED(how) && WEXITSTATUS(how) == FKT_E_ARG) continue;
        failures++;
        if (WIFSIGNALED(how)) fprintf(stderr, "%s: killed by signal %d\n", rows[i].name, WTERMSIG(how));
        else
            fprintf(stderr, "%s: %s, not refused with a sentence\n", rows[i].name,
                    fkt_status_name((fkt_status)WEXITSTATUS(how)));
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
