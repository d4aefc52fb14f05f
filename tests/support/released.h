/* SPDX-License-Identifier: Apache-2.0 */
/* released.h - a small walk over painted images, a release of it, what it generates, and pools of either. */
#ifndef FKT_TEST_RELEASED_H
#define FKT_TEST_RELEASED_H

#include "fedkt/train.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

enum { PER_CLASS = 3, PIXELS = 16 * 16 * 3 };

static struct scratch scratch;
static struct fkt_pipeline *pipeline;
static struct fkt_dataset *demo; /* 40 records of ten classes */
static const struct fkt_training_set_options two = {.threads = 2};

/* A release of the demo set; seed NULL: really private noise. */
static inline void make_release(struct fkt_release *r, const uint64_t *seed, int simulated)
{
    const struct fkt_round_facts facts = {1, 1, simulated, 0};
    struct fkt_pipeline_options o = {.threads = 2};
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, demo, NULL, 0, m, &o));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 1e-3));
    CHECK_OK(fkt_release_make_into(r, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), m, &facts,
                                   &ledger, seed));
    fkt_moments_free(m);
}

static inline void generate_some(const struct fkt_release *r, size_t per_class, const char *folder,
                                 enum fkt_export_format format)
{
    struct fkt_generate_options o = {
        .per_class = per_class, .seed = 5, .format = format, .threads = 2, .force = 1, .pipeline = pipeline};
    CHECK_OK(fkt_generate(r, folder, &o));
}

static inline void generate(const struct fkt_release *r, const char *folder, enum fkt_export_format format)
{
    generate_some(r, PER_CLASS, folder, format);
}

static inline void draw(struct fkt_training_set *p, const struct fkt_release *r, size_t per_class, uint64_t first,
                        unsigned threads)
{
    const struct fkt_draw_options d = {.per_class = per_class, .seed = 5, .first = first, .pipeline = pipeline};
    const struct fkt_training_set_options o = {.threads = threads};
    CHECK_OK(fkt_training_set_draw(p, r, &d, &o));
}

/* What is at `path`, with the demo's classes; limit 0: all. */
static inline void read_set(struct fkt_training_set *p, const char *path, const char *place, size_t limit)
{
    const struct fkt_task *t = fkt_pipeline_task(pipeline);
    const struct fkt_dataset_options o = {
        .classes = (const char *const *)t->classes, .n_classes = t->n_classes, .limit = limit};
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_dataset_open(&ds, path, &o));
    CHECK_OK(fkt_training_set_read(p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, place, &two));
    fkt_dataset_free(ds);
}

static inline int open_all(void **state)
{
    (void)state;
    scratch_init(&scratch);
    return small_pipeline(&pipeline, &demo, 40, 5, FKT_COORDINATE_GAIN_SHAPE) != FKT_OK;
}

static inline int close_all(void **state)
{
    (void)state;
    fkt_dataset_free(demo);
    fkt_pipeline_free(pipeline);
    scratch_release(&scratch);
    return 0;
}

#endif
