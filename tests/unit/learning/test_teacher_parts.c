/* SPDX-License-Identifier: Apache-2.0 */
/* A head on several parts as teacher: it looks at its own parts of an image's record vector, for every layout. */
#include "fedkt/advanced/moments.h"
#include "fedkt/teacher.h"

#include "base/rng.h"
#include "pipeline/pipeline.h"
#include "pipeline/release.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"

#include <math.h>

enum { DIM = 8, CLASSES = 10, RECORDS = 60, IMAGES = 5, PIXELS = 16 * 16 * 3 };
static const struct fkt_round_facts facts = {3, 2, 0, 0};
static const uint64_t seed = 9;

static void free_nothing(void *self) { (void)self; }
static struct fkt_codec_ops ops;

/* A pipeline of g's task; it owns its networks, so they are made anew. */
static struct fkt_pipeline *open_pipeline(const struct guided_task *g)
{
    struct fkt_codec *net[FKT_PARTS_MAX] = {NULL};
    struct fkt_calibration cal[FKT_PARTS_MAX] = {0};
    struct fkt_pipeline *w = NULL;
    const uint32_t guide = g->n - 1;
    if (guide) {
        CHECK_OK(fkt_codec_open(&net[0], &(struct fkt_codec_spec){.name = "dct", .size = 16, .dim = DIM}));
        CHECK_OK(fkt_calibration_embedded(&cal[0], net[0]));
    }
    CHECK_OK(fkt_alloc(&net[guide], 1));
    *net[guide] = g->guide;
    net[guide]->self = net[guide];
    ops = fake_guide_ops;
    ops.free = free_nothing;
    net[guide]->ops = &ops;
    CHECK_OK(fake_guide_calibration(&cal[guide], net[guide]));
    CHECK_OK(fkt_pipeline_assemble(&w, &g->task, net, cal));
    return w;
}

static void make_release(struct fkt_release *out, const struct guided_task *g, const struct fkt_pipeline *w)
{
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    struct fkt_rng r;
    uint8_t rgb[PIXELS];
    double v[4 * DIM];
    int32_t q[4 * DIM];
    CHECK_OK(fkt_moments_new(&m, CLASSES, fkt_task_layout(&g->task), 0));
    fkt_rng_init(&r, 5, 0);
    for (uint32_t i = 0; i < RECORDS; i++) {
        const uint32_t label = i % CLASSES;
        for (size_t j = 0; j < PIXELS; j++) rgb[j] = (uint8_t)(fkt_rng_below(&r, 100) + 15 * label);
        CHECK_OK(fkt_pipeline_vectors(w, rgb, 1, v, q));
        CHECK_OK(fkt_moments_add(m, &label, q, 1));
    }
    CHECK_OK(fkt_ledger_init(&ledger, 1e6, 0));
    CHECK_OK(fkt_release_make_into(out, &g->task, g->calibration, m, &facts, &ledger, &seed));
    fkt_moments_free(m);
}

/* The definition: the head's own parts of w, one after the other, then its posterior. */
static void check_teacher(const struct fkt_release *r, const struct fkt_pipeline *w, enum fkt_head_kind kind,
                          enum fkt_heads_on on, const uint8_t *rgb)
{
    const size_t m = fkt_pipeline_length(w);
    double v[IMAGES * 4 * DIM], own[IMAGES * 4 * DIM], p[IMAGES * CLASSES];
    int32_t q[IMAGES * 4 * DIM];
    float logits[IMAGES * CLASSES];
    struct fkt_teacher *t = NULL;
    struct fkt_heads heads;
    const struct fkt_head *h;
    size_t at = 0;
    CHECK_OK(fkt_heads_of_release(&heads, r, on));
    h = heads.head[kind];
    if (!h) {
        CHECK_STATUS(fkt_teacher_of_release(&t, r, w, kind, on), FKT_E_ARG);
        CHECK(strstr(fkt_error_text(), "moments are pooled: it has no ") && !t);
        CHECK(strstr(fkt_error_text(), kind == FKT_HEAD_QDA ? "QDA head" : "RDA head"));
        fkt_heads_clear(&heads);
        return;
    }
    CHECK_OK(fkt_pipeline_vectors(w, rgb, IMAGES, v, q));
    for (size_t i = 0; i < IMAGES; i++)
        for (uint32_t k = 0; k < fkt_head_parts(h); k++)
            for (uint32_t j = 0; j < fkt_head_part_length(h, k); j++)
                own[at++] = v[i * m + fkt_head_part_offset(h, k) + j];
    CHECK_OK(fkt_head_posterior(h, own, IMAGES, 1, p));
    CHECK_OK(fkt_teacher_of_release(&t, r, w, kind, on));
    CHECK_OK(fkt_teacher_logits(t, rgb, IMAGES, logits, NULL));
    for (size_t i = 0; i < IMAGES * CLASSES; i++) CHECK_NEAR(exp((double)logits[i]), p[i], 1e-5);
    fkt_teacher_free(t);
    fkt_heads_clear(&heads);
}

static void a_teacher_looks_at_its_parts(void **state)
{
    static const struct {
        int codec;
        struct fkt_task_choices more;
    } made[] = {{1, {0}}, {1, {.joined = 1}}, {1, {.pooled = 1}}, {0, {0}}, {0, {.pooled = 1}}};
    uint8_t rgb[IMAGES * PIXELS];
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 6, 0);
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)fkt_rng_below(&r, 256);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        struct guided_task g;
        struct fkt_pipeline *w;
        struct fkt_release release = {0};
        CHECK_OK(guided_task(&g, made[i].codec, DIM, made[i].more));
        w = open_pipeline(&g);
        make_release(&release, &g, w);
        for (int kind = 0; kind < fkt_head_kinds(); kind++)
            for (int on = FKT_HEADS_DEFAULT; on <= FKT_HEADS_GUIDE; on++)
                check_teacher(&release, w, (enum fkt_head_kind)kind, (enum fkt_heads_on)on, rgb);
        fkt_release_clear(&release);
        fkt_pipeline_free(w);
        guided_parts_clear(&g);
    }
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_teacher_looks_at_its_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
