/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline whose task has a codec and a guide: vectors side by side, the same moments by every way, encodings kept
 * for each network, and what a renderer of images is given. */
#include "base/file.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/synth.h"
#include "pipeline/draw.h"
#include "pipeline/pipeline.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"
#include "tests/support/scratch.h"

enum { DIM = 6, LENGTH = DIM + 1, RECORDS = 90 };

static struct scratch scratch;
static struct fkt_dataset *data;

static int setup(void **state)
{
    struct fkt_dataset_options o = {.limit = RECORDS};
    (void)state;
    scratch_init(&scratch);
    CHECK_OK(fkt_dataset_open(&data, "demo:train", &o));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fkt_dataset_free(data);
    scratch_release(&scratch);
    return 0;
}

static void no_self(void *self) { (void)self; }

/* The fake guide on the heap, since a pipeline frees its networks. */
static struct fkt_codec *own_guide(const struct fkt_codec *from)
{
    static struct fkt_codec_ops ops;
    struct fkt_codec *c = NULL;
    ops = *from->ops;
    ops.free = no_self;
    CHECK_OK(fkt_alloc(&c, 1));
    *c = *from;
    c->ops = &ops;
    c->self = c;
    return c;
}

static struct fkt_pipeline *open_parts(int codec, int joined, int pooled)
{
    struct fkt_codec *codecs[FKT_PARTS_MAX] = {NULL};
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_pipeline *w = NULL;
    struct guided_task g;
    CHECK_OK(guided_task(&g, codec, DIM, (struct fkt_task_choices){.joined = joined, .pooled = pooled}));
    for (uint32_t p = 0; p < g.n; p++) {
        cal[p] = g.calibration[p];
        memset(&g.calibration[p], 0, sizeof g.calibration[p]);
    }
    codecs[g.n - 1] = own_guide(&g.guide);
    if (codec) {
        codecs[0] = g.codec;
        g.codec = NULL;
    }
    CHECK_OK(fkt_pipeline_assemble(&w, &g.task, codecs, cal));
    guided_parts_clear(&g);
    return w;
}

static void hash_of(const struct fkt_pipeline *w, unsigned threads, struct fkt_encodings *kept,
                    char hash[FKT_SHA256_HEX])
{
    const struct fkt_pipeline_options o = {.threads = threads, .encodings = kept};
    struct fkt_moments *m = NULL;
    CHECK_OK(fkt_pipeline_moments_new(w, &m));
    CHECK_OK(fkt_pipeline_moments(w, data, NULL, 0, m, &o));
    CHECK_OK(fkt_moments_sha256(m, hash));
    fkt_moments_free(m);
}

/* By images with any number of threads, by kept encodings, by latents and by vectors: the same integers. */
static void every_way_gives_the_same_moments(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* side by side, joined, pooled, a guide alone */
        struct fkt_pipeline *w = open_parts(kind != 3, kind == 1, kind == 2);
        const size_t length = fkt_pipeline_length(w), pixels = 16 * 16 * 3;
        struct fkt_encodings *kept = NULL;
        struct fkt_moments *m = NULL, *n = NULL;
        char one[FKT_SHA256_HEX], other[FKT_SHA256_HEX], name[16];
        uint64_t found, made;
        uint8_t *rgb = NULL;
        double *v = NULL;
        int32_t *q = NULL;
        CHECK(length == (kind == 3 ? LENGTH : 2 * LENGTH));
        hash_of(w, 1, NULL, one);
        hash_of(w, 3, NULL, other);
        assert_string_equal(one, other);
        snprintf(name, sizeof name, "kept%d", kind);
        CHECK_OK(fkt_encodings_open(&kept, scratch_path(&scratch, name)));
        for (int again = 0; again < 2; again++) {
            hash_of(w, 2, kept, other);
            assert_string_equal(one, other);
        }
        fkt_encodings_count(kept, &found, &made);
        CHECK(made == RECORDS * (kind == 3 ? 1 : 2) && found == made);
        fkt_encodings_close(kept);
        snprintf(name, sizeof name, "latents%d", kind);
        CHECK_OK(fkt_pipeline_encode(w, data, NULL, 0, scratch_path(&scratch, name), 0,
                                     &(struct fkt_pipeline_options){.threads = 2}));
        CHECK_OK(fkt_pipeline_moments_new(w, &m));
        CHECK_OK(fkt_pipeline_latents(w, scratch_path(&scratch, name), m, NULL));
        CHECK_OK(fkt_moments_sha256(m, other));
        assert_string_equal(one, other);
        CHECK_OK(fkt_alloc(&rgb, RECORDS * pixels));
        CHECK_OK(fkt_alloc(&v, RECORDS * length));
        CHECK_OK(fkt_alloc(&q, RECORDS * length));
        CHECK_OK(fkt_pipeline_moments_new(w, &n));
        for (size_t i = 0; i < RECORDS; i++)
            CHECK_OK(fkt_dataset_read(data, i, 16, FKT_FILTER_BILINEAR, rgb + i * pixels, NULL));
        CHECK_OK(fkt_pipeline_vectors(w, rgb, RECORDS, v, q));
        for (size_t i = 0; i < RECORDS; i++) {
            const uint32_t label = fkt_dataset_label(data, i);
            CHECK_OK(fkt_moments_add(n, &label, q + i * length, 1));
        }
        CHECK_OK(fkt_moments_sha256(n, other));
        assert_string_equal(one, other);
        fkt_free(rgb);
        fkt_free(v);
        fkt_free(q);
        fkt_moments_free(m);
        fkt_moments_free(n);
        fkt_pipeline_free(w);
    }
}

/* A part's numbers do not depend on what stands beside it. */
static void parts_stand_side_by_side(void **state)
{
    struct fkt_pipeline *both = open_parts(1, 0, 0), *joined = open_parts(1, 1, 0), *alone = open_parts(0, 0, 0);
    double a[2 * LENGTH], b[2 * LENGTH], c[LENGTH], whole = 0;
    int32_t qa[2 * LENGTH], qb[2 * LENGTH], qc[LENGTH];
    uint8_t rgb[16 * 16 * 3];
    (void)state;
    CHECK_OK(fkt_dataset_read(data, 7, 16, FKT_FILTER_BILINEAR, rgb, NULL));
    CHECK_OK(fkt_pipeline_vectors(both, rgb, 1, a, qa));
    CHECK_OK(fkt_pipeline_vectors(joined, rgb, 1, b, qb));
    CHECK_OK(fkt_pipeline_vectors(alone, rgb, 1, c, qc));
    CHECK(!memcmp(a, b, sizeof a) && !memcmp(a + LENGTH, c, sizeof c) && !memcmp(qa + LENGTH, qc, sizeof qc));
    for (int i = 0; i < 2 * LENGTH; i++) whole += (double)qb[i] * qb[i];
    CHECK(whole <= 256.0 * 256 && memcmp(qa, qb, sizeof qa) != 0); /* one ball: smaller integers */
    fkt_pipeline_free(both);
    fkt_pipeline_free(joined);
    fkt_pipeline_free(alone);
}

static void a_guide_alone_and_pooled_moments_give_no_images(void **state)
{
    double vector[2 * LENGTH] = {0.5};
    uint8_t rgb[16 * 16 * 3];
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct fkt_pipeline *w = open_parts(kind != 0, 0, kind == 1);
        const fkt_status want = kind == 2 ? FKT_OK : FKT_E_STATE;
        CHECK_STATUS(fkt_pipeline_decode(w, vector, 1, rgb), want);
        CHECK_STATUS(fkt_draw_check_pipeline(w, fkt_pipeline_task(w)), want);
        CHECK((fkt_pipeline_codec(w) != NULL) == (kind != 0));
        CHECK(fkt_pipeline_encoder(w, 0) && !fkt_pipeline_encoder(w, 4) && !fkt_pipeline_calibration(w, 4));
        fkt_pipeline_free(w);
    }
}

/* A task of a guide alone, whose JSON says that it is a codec; with the network, and by its name alone. */
static void a_network_of_the_other_kind_is_refused(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++)
        for (int codec = 0; codec < 2; codec++) {
            struct fkt_codec *codecs[FKT_PARTS_MAX] = {NULL};
            struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
            struct fkt_pipeline *w = NULL;
            struct fkt_task *t;
            struct guided_task g;
            CHECK_OK(guided_task(&g, codec, DIM, (struct fkt_task_choices){.pooled = 0}));
            t = &g.task;
            t->parts = 1; /* part 0: the codec, or the guide */
            t->layout.parts = t->privacy.parts = 1;
            t->part[0].kind = codec ? FKT_PART_GUIDE : FKT_PART_CODEC;
            if (!codec && !open) snprintf(t->part[0].name, sizeof t->part[0].name, "fedkt-guide");
            cal[0] = g.calibration[0];
            memset(&g.calibration[0], 0, sizeof cal[0]);
            if (open && codec) {
                codecs[0] = g.codec;
                g.codec = NULL;
            } else if (open) codecs[0] = own_guide(&g.guide);
            CHECK_STATUS(fkt_pipeline_assemble(&w, t, codecs, cal), FKT_E_MISMATCH);
            CHECK(!w && strstr(fkt_error_text(), codec ? "as its guide, and it is a codec" : "and it is a guide"));
            guided_parts_clear(&g);
        }
}

/* What a certificate would say of a network is what was compared with it. */
static void an_identity_without_its_hash_is_refused(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        struct fkt_codec *codecs[FKT_PARTS_MAX] = {NULL};
        struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
        struct fkt_pipeline *w = NULL;
        struct guided_task g;
        CHECK_OK(guided_task(&g, 0, DIM, (struct fkt_task_choices){.pooled = 0}));
        snprintf(g.task.part[0].identity, sizeof g.task.part[0].identity, "resnet/1 of somebody else");
        cal[0] = g.calibration[0];
        memset(&g.calibration[0], 0, sizeof cal[0]);
        if (open) codecs[0] = own_guide(&g.guide);
        CHECK_STATUS(fkt_pipeline_assemble(&w, &g.task, codecs, cal), FKT_E_MISMATCH);
        CHECK(!w && strstr(fkt_error_text(), "contradicts itself"));
        guided_parts_clear(&g);
    }
}

struct seen {
    double u[2][4][DIM];
    uint32_t label[4];
    uint64_t number[4];
};

static fkt_status look(void *ctx, unsigned worker, const struct fkt_drawn *x, uint8_t *rgb)
{
    struct seen *s = ctx;
    (void)worker;
    (void)rgb;
    for (size_t i = 0; i < x->n; i++) {
        const size_t at = x->label[i] * 2 + x->number[i];
        s->label[at] = x->label[i];
        s->number[at] = x->number[i];
        for (int p = 0; p < 2; p++) memcpy(s->u[p][at], x->u[p] + i * DIM, sizeof s->u[p][at]);
    }
    return FKT_OK;
}

/* What a renderer is given does not depend on batches; parts are independent samples, mapped back by their own
 * coordinates. */
static void a_renderer_gets_every_part(void **state)
{
    struct fkt_pipeline *w = open_parts(1, 0, 0);
    static double mean[2][2 * LENGTH], factor[2][2 * LENGTH * LENGTH];
    struct fkt_gaussians g[2] = {{.classes = 2, .length = LENGTH}, {.classes = 2, .length = LENGTH, .part = 1}};
    struct seen one = {.label = {9, 9, 9, 9}}, three = {.label = {9, 9, 9, 9}};
    struct fkt_drawing d = {
        .pipeline = w, .g = g, .seed = 5, .each = 2, .n = 4, .render = look, .ctx = &one, .batch = 1};
    uint8_t *rgb = NULL;
    double vector[LENGTH], u[DIM];
    (void)state;
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < 2 * LENGTH; i++) mean[p][i] = 0.1 * (i + p);
        for (int i = 0; i < 2 * LENGTH * LENGTH; i++) factor[p][i] = i % (LENGTH + 1) == 0 ? 0.3 : 0;
        g[p].mean = mean[p];
        g[p].factor = factor[p];
    }
    CHECK_OK(fkt_alloc(&rgb, 4 * 16 * 16 * 3));
    d.rgb = rgb;
    CHECK_OK(fkt_draw_chunk(&d, 2));
    d.batch = 3;
    d.ctx = &three;
    CHECK_OK(fkt_draw_chunk(&d, 1));
    CHECK(!memcmp(&one, &three, sizeof one));
    for (uint32_t i = 0; i < 4; i++) CHECK(one.label[i] == i / 2 && one.number[i] == i % 2);
    for (int p = 0; p < 2; p++) {
        CHECK_OK(fkt_gaussians_sample(&g[p], 1, 5, 1, 1, vector));
        CHECK_OK(fkt_coordinates_inverse(&fkt_pipeline_task(w)->part[p].coordinates, vector, u));
        CHECK(!memcmp(u, one.u[p][3], sizeof u));
    }
    fkt_free(rgb);
    fkt_pipeline_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_gives_the_same_moments),
        cmocka_unit_test(parts_stand_side_by_side),
        cmocka_unit_test(a_guide_alone_and_pooled_moments_give_no_images),
        cmocka_unit_test(a_network_of_the_other_kind_is_refused),
        cmocka_unit_test(an_identity_without_its_hash_is_refused),
        cmocka_unit_test(a_renderer_gets_every_part),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
