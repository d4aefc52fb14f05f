/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/round.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

static const struct fkt_round_facts facts = {3, 2, 0, 0};

struct scene {
    struct scratch scratch;
    struct fkt_walk *walk;
    struct fkt_dataset *ds;
    struct fkt_moments *moments;
    struct fkt_release release;
};

static void scene_init(struct scene *s, uint64_t seed)
{
    struct fkt_walk_options o = {0};
    struct fkt_ledger ledger;
    scratch_init(&s->scratch);
    CHECK_OK(small_walk(&s->walk, &s->ds, 200, 2, FKT_COORD_GAIN_SHAPE));
    CHECK_OK(fkt_walk_moments_new(s->walk, &s->moments));
    CHECK_OK(fkt_walk_moments(s->walk, s->ds, NULL, 0, s->moments, &o));
    CHECK_OK(fkt_ledger_init(&ledger, 10, 0));
    CHECK_OK(fkt_release_make(&s->release, fkt_walk_task(s->walk), fkt_walk_calibration(s->walk), s->moments, &facts,
                              &ledger, &seed));
    CHECK_NEAR(ledger.spent_mu2, s->release.plan.mu * s->release.plan.mu, 1e-12);
}

static void scene_release(struct scene *s)
{
    fkt_release_release(&s->release);
    fkt_moments_free(s->moments);
    fkt_dataset_free(s->ds);
    fkt_walk_free(s->walk);
    scratch_release(&s->scratch);
    CHECK(fkt_alloc_live() == 0);
}

static void a_release_survives_its_file(void **state)
{
    struct scene s;
    struct fkt_release back;
    struct fkt_walk *walk;
    size_t n;
    (void)state;
    scene_init(&s, 5);
    CHECK_OK(fkt_release_save(&s.release, scratch_path(&s.scratch, "r"), 0));
    CHECK_OK(fkt_release_load(&back, scratch_path(&s.scratch, "r")));
    n = back.task.n_classes * fkt_moments_block(back.task.coordinates.length);
    assert_memory_equal(back.moments, s.release.moments, n * sizeof *back.moments);
    assert_string_equal(back.sha256, s.release.sha256);
    CHECK(back.insecure_seed && back.facts.sites == 3 && back.facts.survivors == 2);
    CHECK_OK(fkt_release_walk(&back, NULL, &walk));
    fkt_walk_free(walk);
    fkt_release_release(&back);
    scene_release(&s);
}

/* The seed gives the same bytes again, another seed others, and without one the mark is absent. */
static void the_seed_is_marked(void **state)
{
    struct scene a, b;
    struct fkt_ledger ledger;
    struct fkt_release fresh;
    char *json;
    (void)state;
    scene_init(&a, 5);
    scene_init(&b, 5);
    CHECK_OK(fkt_release_save(&a.release, scratch_path(&a.scratch, "r"), 0));
    CHECK_OK(fkt_release_save(&b.release, scratch_path(&b.scratch, "r"), 0));
    assert_string_equal(a.release.sha256, b.release.sha256);
    CHECK_OK(fkt_release_certificate(&a.release, &json));
    CHECK(strstr(json, "INSECURE") && strstr(json, "\"private\": false"));
    fkt_string_free(json);
    CHECK_OK(fkt_ledger_init(&ledger, 10, 0));
    CHECK_OK(fkt_release_make(&fresh, fkt_walk_task(a.walk), fkt_walk_calibration(a.walk), a.moments, &facts, &ledger,
                              NULL));
    CHECK_OK(fkt_release_certificate(&fresh, &json));
    CHECK(!strstr(json, "INSECURE") && strstr(json, "\"private\": true"));
    CHECK(memcmp(fresh.moments, a.release.moments, 64) != 0);
    fkt_string_free(json);
    fkt_release_release(&fresh);
    fkt_release_release(&b.release);
    fkt_moments_free(b.moments);
    fkt_dataset_free(b.ds);
    fkt_walk_free(b.walk);
    scratch_release(&b.scratch);
    scene_release(&a);
}

static void an_empty_ledger_draws_nothing(void **state)
{
    struct scene s;
    struct fkt_ledger ledger;
    struct fkt_release r;
    (void)state;
    scene_init(&s, 5);
    CHECK_OK(fkt_ledger_init(&ledger, 1e-6, 0));
    CHECK_STATUS(
        fkt_release_make(&r, fkt_walk_task(s.walk), fkt_walk_calibration(s.walk), s.moments, &facts, &ledger, NULL),
        FKT_E_BUDGET);
    CHECK(r.moments == NULL && ledger.spent_mu2 == 0);
    scene_release(&s);
}

/* Replaces the first `from` in a metadata string of the file by `to` of the same length, and loads it. */
static fkt_status load_changed(struct scratch *s, const char *from, const char *to)
{
    struct fkt_release r;
    FILE *f = fopen(scratch_path(s, "r"), "rb");
    static char bytes[1 << 20];
    size_t n = fread(bytes, 1, sizeof bytes, f), len = strlen(from);
    fkt_status st;
    char *at = NULL;
    fclose(f);
    assert_int_equal(len, strlen(to));
    for (size_t i = 0; i + len <= n && !at; i++)
        if (!memcmp(bytes + i, from, len)) at = bytes + i;
    if (!at) fail_msg("'%s' is not in the file", from);
    memcpy(at, to, len);
    f = fopen(scratch_path(s, "changed"), "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    st = fkt_release_load(&r, scratch_path(s, "changed"));
    if (st == FKT_OK) fkt_release_release(&r);
    return st;
}

static fkt_status flip_byte(struct scratch *s, const char *tensor)
{
    struct fkt_safetensors *file;
    struct fkt_release r;
    static char bytes[1 << 20];
    size_t n, at;
    FILE *f = fopen(scratch_path(s, "r"), "rb");
    fkt_status st;
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    CHECK_OK(fkt_safetensors_parse(&file, bytes, n, "r"));
    at = (size_t)((const char *)fkt_safetensors_find(file, tensor)->data - bytes);
    fkt_safetensors_free(file);
    bytes[at] ^= 1;
    f = fopen(scratch_path(s, "changed"), "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
    st = fkt_release_load(&r, scratch_path(s, "changed"));
    if (st == FKT_OK) fkt_release_release(&r);
    return st;
}

static void a_changed_release_is_refused(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, 5);
    CHECK_OK(fkt_release_save(&s.release, scratch_path(&s.scratch, "r"), 0));
    CHECK_STATUS(load_changed(&s.scratch, "fedkt.release/1", "fedkt.release/9"), FKT_E_FORMAT);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"private\\\":false", "\\\"private\\\":true "), FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"epsilon\\\":2.0", "\\\"epsilon\\\":1.0"), FKT_E_MISMATCH);
    CHECK_STATUS(
        load_changed(&s.scratch, "\\\"adjacency\\\":\\\"add-remove\\\"", "\\\"adjacency\\\":\\\"add-remote\\\""),
        FKT_E_MISMATCH);
    CHECK_STATUS(load_changed(&s.scratch, "\\\"survivors\\\":2", "\\\"survivors\\\":4"), FKT_E_FORMAT);
    /* one bit of one noised moment, of one calibration number */
    CHECK_STATUS(flip_byte(&s.scratch, "moments"), FKT_E_MISMATCH);
    CHECK_STATUS(flip_byte(&s.scratch, "map"), FKT_E_MISMATCH);
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_survives_its_file),
        cmocka_unit_test(the_seed_is_marked),
        cmocka_unit_test(an_empty_ledger_draws_nothing),
        cmocka_unit_test(a_changed_release_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
