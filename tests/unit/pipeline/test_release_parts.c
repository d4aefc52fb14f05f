/* SPDX-License-Identifier: Apache-2.0 */
/* Releases of tasks with a guide: what their files and certificates hold, and files that somebody changed. */
#include "fedkt/advanced/moments.h"

#include "base/file.h"
#include "base/rng.h"
#include "pipeline/release.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"
#include "tests/support/scratch.h"

enum { RECORDS = 40 };
static const struct fkt_round_facts facts = {3, 2, 0, 0};
static const uint64_t seed = 9;

struct scene {
    struct scratch scratch;
    struct guided_task g;
    struct fkt_moments *moments;
    struct fkt_release release;
};

static void scene_init(struct scene *s, int codec, struct fkt_task_choices more)
{
    struct fkt_ledger ledger;
    struct fkt_rng r;
    scratch_init(&s->scratch);
    CHECK_OK(guided_task(&s->g, codec, 8, more));
    CHECK_OK(fkt_moments_new(&s->moments, 10, fkt_task_layout(&s->g.task), 0));
    fkt_rng_init(&r, 5, 0);
    for (uint32_t i = 0; i < RECORDS; i++) {
        int32_t q[18];
        const uint32_t label = i % 10;
        for (int j = 0; j < 18; j++) q[j] = (int32_t)fkt_rng_below(&r, 81) - 40; /* 18 * 40^2 < 256^2 */
        CHECK_OK(fkt_moments_add(s->moments, &label, q, 1));
    }
    CHECK_OK(fkt_ledger_init(&ledger, 1e6, 0));
    CHECK_OK(fkt_release_make_into(&s->release, &s->g.task, s->g.calibration, s->moments, &facts, &ledger, &seed));
    CHECK_REL(ledger.spent_mu2, s->release.plan.mu * s->release.plan.mu, 1e-12); /* the plan's, of all parts at once */
    CHECK_OK(fkt_release_save(&s->release, scratch_path(&s->scratch, "r"), 0));
}

static void scene_release(struct scene *s)
{
    fkt_release_clear(&s->release);
    fkt_moments_free(s->moments);
    guided_parts_clear(&s->g);
    scratch_release(&s->scratch);
    CHECK(fkt_alloc_live() == 0);
}

static void a_release_keeps_every_part(void **state)
{
    static const struct {
        int codec;
        struct fkt_task_choices more;
    } made[] = {{1, {0}}, {1, {.joined = 1}}, {1, {.pooled = 1}}, {0, {0}}, {0, {.pooled = 1}}};
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        struct scene s;
        struct fkt_release back;
        scene_init(&s, made[i].codec, made[i].more);
        CHECK_OK(fkt_release_load_into(&back, scratch_path(&s.scratch, "r")));
        assert_string_equal(back.sha256, s.release.sha256);
        CHECK(!memcmp(back.moments, s.release.moments, fkt_task_numbers(&s.g.task) * sizeof *back.moments));
        for (uint32_t p = 0; p < s.g.n; p++) {
            const struct fkt_calibration *c = fkt_release_calibration(&back, p);
            assert_string_equal(c->codec, s.g.calibration[p].codec);
            CHECK(c->dim == 8 && !memcmp(c->map, s.g.calibration[p].map, sizeof *c->map * 8 * c->raw_dim));
        }
        CHECK(!fkt_release_calibration(&back, s.g.n));
        for (uint32_t p = 0; p < s.g.task.layout.parts; p++)
            CHECK(back.sigma.part[p].sum > 0 && back.sigma.part[p].moment == s.release.plan.sigma[p].moment);
        fkt_release_clear(&back);
        scene_release(&s);
    }
}

/* Each claim is the plan's, for the part that it is made of. */
static void the_certificate_names_every_part(void **state)
{
    struct scene s;
    json_t *j, *guide;
    (void)state;
    scene_init(&s, 1, (struct fkt_task_choices){0});
    CHECK((j = fkt_certificate_json(&s.release)) != NULL);
    guide = json_object_get(j, "guide");
    assert_string_equal(json_string_value(json_object_get(guide, "identity")), s.g.guide.identity);
    CHECK(json_real_value(json_object_get(j, "sigma_sum")) == s.release.plan.sigma[0].sum);
    CHECK(json_real_value(json_object_get(guide, "sigma_sum")) == s.release.plan.sigma[1].sum);
    CHECK(json_real_value(json_object_get(guide, "sigma_moment")) == s.release.plan.sigma[1].moment);
    CHECK(s.release.plan.sigma[1].moment < s.release.plan.sigma[0].moment); /* the guide has more of the budget */
    CHECK(json_array_size(json_object_get(j, "budget_split")) == 5 && !json_object_get(j, "moments"));
    CHECK(json_integer_value(json_object_get(guide, "length")) == 9);
    assert_string_equal(json_string_value(json_object_get(json_object_get(guide, "calibration"), "sha256")),
                        s.g.task.part[1].calibration_sha256);
    json_decref(j);
    scene_release(&s);
    scene_init(&s, 1, (struct fkt_task_choices){.joined = 1});
    CHECK((j = fkt_certificate_json(&s.release)) != NULL);
    CHECK(!json_object_get(json_object_get(j, "guide"), "sigma_sum")); /* one noise, which is stated once */
    CHECK(json_is_true(json_object_get(json_object_get(j, "moments"), "joined")));
    json_decref(j);
    scene_release(&s);
    scene_init(&s, 0, (struct fkt_task_choices){0});
    CHECK((j = fkt_certificate_json(&s.release)) != NULL);
    CHECK(!json_object_get(j, "codec") && !json_object_get(j, "sigma_sum") && !json_object_get(j, "coordinates"));
    CHECK(json_real_value(json_object_get(json_object_get(j, "guide"), "sigma_sum")) == s.release.plan.sigma[0].sum);
    json_decref(j);
    scene_release(&s);
}

/* ---- changed files ---- */

struct rename {
    const char *from, *to; /* a tensor or a metadata key; to NULL: it is left out */
};

static const char *renamed(const char *name, const struct rename *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, r[i].from)) return r[i].to;
    return name;
}

/* The file again with other names; then loads it. */
static fkt_status load_renamed(struct scene *s, const struct rename *r, size_t n)
{
    static const char *const keys[] = {"format", "task", "certificate", "calibration", "calibration.guide"};
    struct fkt_safetensors *file;
    struct fkt_st_writer *w;
    struct fkt_release back;
    fkt_status st;
    CHECK_OK(fkt_safetensors_open(&file, scratch_path(&s->scratch, "r")));
    CHECK_OK(fkt_st_writer_new(&w));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = fkt_safetensors_meta(file, keys[i]), *key = renamed(keys[i], r, n);
        if (value && key) CHECK_OK(fkt_st_writer_meta(w, key, value));
    }
    for (size_t i = 0; i < fkt_safetensors_count(file); i++) {
        const struct fkt_tensor *t = fkt_safetensors_at(file, i);
        const char *name = renamed(t->name, r, n);
        if (name) CHECK_OK(fkt_st_writer_add(w, name, t->dtype, t->rank, t->shape, t->data));
    }
    CHECK_OK(fkt_st_writer_write(w, scratch_path(&s->scratch, "changed"), FKT_FILE_REPLACE));
    fkt_st_writer_free(w);
    fkt_safetensors_free(file);
    st = fkt_release_load_into(&back, scratch_path(&s->scratch, "changed"));
    if (st == FKT_OK) fkt_release_clear(&back);
    return st;
}

/* Replaces the first `from` that is after `after` by `to`, of the same length; then loads it. */
static fkt_status load_changed(struct scene *s, const char *after, const char *from, const char *to)
{
    static char bytes[1 << 20];
    struct fkt_release r;
    FILE *f = fopen(scratch_path(&s->scratch, "r"), "rb");
    size_t n = fread(bytes, 1, sizeof bytes - 1, f), len = strlen(from);
    char *at;
    fkt_status st;
    fclose(f);
    assert_int_equal(len, strlen(to));
    at = memmem(bytes, n, after, strlen(after));
    at = at ? memmem(at, (size_t)(bytes + n - at), from, len) : NULL;
    if (!at) fail_msg("'%s' is not in the file", from);
    memcpy(at, to, len);
    f = fopen(scratch_path(&s->scratch, "changed"), "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    st = fkt_release_load_into(&r, scratch_path(&s->scratch, "changed"));
    if (st == FKT_OK) fkt_release_clear(&r);
    return st;
}

#define RENAMED(s, ...)                                                                                                \
    load_renamed(s, (const struct rename[]){__VA_ARGS__},                                                              \
                 sizeof((const struct rename[]){__VA_ARGS__}) / sizeof(struct rename))

static void changed_parts_are_refused(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, 1, (struct fkt_task_choices){0});
    CHECK_OK(RENAMED(&s, {"nothing", "nothing"})); /* the copy itself is good */
    CHECK_STATUS(RENAMED(&s, {"calibration.guide", NULL}), FKT_E_FORMAT);
    assert_non_null(strstr(fkt_error_text(), "the calibration of its guide is missing"));
    CHECK_STATUS(RENAMED(&s, {"calibration", NULL}), FKT_E_FORMAT);
    assert_non_null(strstr(fkt_error_text(), "the calibration of its codec is missing"));
    CHECK_STATUS(RENAMED(&s, {"map.guide", NULL}), FKT_E_FORMAT);
    CHECK_STATUS(RENAMED(&s, {"unmap.guide", "map.guide"}, {"map.guide", "unmap.guide"}), FKT_E_MISMATCH);
    CHECK_STATUS(RENAMED(&s, {"centre.guide", "centre"}, {"centre", "centre.guide"}), FKT_E_MISMATCH);
    /* the parts exchanged, whole: both calibrations are sound, and each is the other's */
    CHECK_STATUS(RENAMED(&s, {"calibration.guide", "calibration"}, {"calibration", "calibration.guide"},
                         {"centre.guide", "centre"}, {"centre", "centre.guide"}, {"map.guide", "map"},
                         {"map", "map.guide"}, {"unmap.guide", "unmap"}, {"unmap", "unmap.guide"}),
                 FKT_E_MISMATCH);
    assert_non_null(strstr(fkt_error_text(), "not the one that its task names"));
    CHECK_STATUS(load_changed(&s, "calibration.guide", "\\\"dim\\\":8", "\\\"dim\\\":7"), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s, "calibration.guide", "\\\"log_mean\\\":1.0", "\\\"log_mean\\\":2.0"), FKT_E_MISMATCH);
    /* claims of the guide's part in the certificate, which comes before the task */
    CHECK_STATUS(load_changed(&s, "\\\"guide\\\":{\\\"calibration", "\\\"length\\\":9", "\\\"length\\\":8"),
                 FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s, "\\\"sigma_moment\\\":", ".", "9"), FKT_E_MISMATCH);
    scene_release(&s);
}

/* Moments of another layout never meet the task: fewer numbers than the plan adds noise to, or other ones. */
static void moments_of_another_layout_are_refused(void **state)
{
    struct scene s;
    struct guided_task other;
    struct fkt_moments *m;
    struct fkt_release r;
    struct fkt_ledger ledger;
    (void)state;
    scene_init(&s, 1, (struct fkt_task_choices){0});
    CHECK_OK(guided_task(&other, 1, 8, (struct fkt_task_choices){.joined = 1}));
    CHECK_OK(fkt_moments_new(&m, 10, fkt_task_layout(&other.task), 0));
    CHECK_OK(fkt_ledger_init(&ledger, 1e6, 0));
    CHECK_STATUS(fkt_release_make_into(&r, &s.g.task, s.g.calibration, m, &facts, &ledger, &seed), FKT_E_MISMATCH);
    CHECK(ledger.spent_mu2 == 0);
    fkt_moments_free(m);
    guided_parts_clear(&other);
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_keeps_every_part),
        cmocka_unit_test(the_certificate_names_every_part),
        cmocka_unit_test(changed_parts_are_refused),
        cmocka_unit_test(moments_of_another_layout_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
