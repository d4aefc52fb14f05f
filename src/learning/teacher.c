/* SPDX-License-Identifier: Apache-2.0 */
/* teacher.c - a head's log posterior for images: encode, coordinates, scores, log softmax.
 *
 * Scores of a quadratic head are sums of thousands that differ by a few: the logarithm of the posterior is taken in
 * double before it becomes a float, so that float holds the differences. It is finite where the scores are: a posterior
 * itself would underflow to 0 for the unlikely classes.
 *
 * Only the networks of the parts that the head takes are run: a head on the guide alone needs no codec. Record vectors
 * are those of pipeline/vectors.c, without their integers.
 *
 * Cost: encoding; the head's K m or K m^2 multiplications are small beside it. */
#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/teacher.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/wipe.h"
#include "classifier/heads.h"
#include "learning/teacher.h"
#include "pipeline/pipeline.h"
#include "pipeline/release.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct fkt_teacher {
    struct fkt_heads own;        /* n 0: the head is borrowed */
    const struct fkt_head *head; /* of own, or borrowed */
    const struct fkt_pipeline *pipeline;
    uint32_t length; /* of a record vector */
};

void fkt_teacher_free(struct fkt_teacher *t)
{
    if (!t) return;
    fkt_heads_clear(&t->own);
    fkt_free(t);
}

uint32_t fkt_teacher_classes(const struct fkt_teacher *t) { return fkt_head_classes(t->head); }
enum fkt_head_kind fkt_teacher_kind(const struct fkt_teacher *t) { return t->head->kind; }

/* 1: the head reads coordinates of this part of the task. */
static int takes(const struct fkt_head *h, const struct fkt_pipeline *w, uint32_t part)
{
    const size_t from = w->at[part], to = from + w->task.part[part].coordinates.length;
    for (uint32_t k = 0; k < fkt_head_parts(h); k++) {
        const size_t first = fkt_head_part_offset(h, k);
        if (first < to && first + fkt_head_part_length(h, k) > from) return 1;
    }
    return 0;
}

fkt_status fkt_teacher_of_head(struct fkt_teacher **out, const struct fkt_head *head,
                               const struct fkt_pipeline *pipeline)
{
    const struct fkt_task *task = fkt_pipeline_task(pipeline);
    struct fkt_teacher *t = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_head_check_task(head, task));
    for (uint32_t p = 0; p < task->parts; p++)
        if (takes(head, pipeline, p) && !pipeline->codec[p]) FKT_TRY(fkt_pipeline_no_codec(pipeline, p));
    FKT_TRY(fkt_alloc(&t, 1));
    t->head = head;
    t->pipeline = pipeline;
    t->length = (uint32_t)fkt_pipeline_length(pipeline);
    *out = t;
out:
    return st;
}

fkt_status fkt_teacher_none(enum fkt_head_kind kind)
{
    return fkt_fail_hint(FKT_E_ARG, "LDA and nearest mean need no covariance of each class",
                         "the release's moments are pooled: it has no %s head", fkt_head_title(kind));
}

fkt_status fkt_teacher_of_release(struct fkt_teacher **out, const struct fkt_release *r,
                                  const struct fkt_pipeline *pipeline, enum fkt_head_kind kind, enum fkt_heads_on on)
{
    struct fkt_heads heads = {0};
    fkt_status st;
    *out = NULL;
    if ((int)kind < 0 || (int)kind >= fkt_head_kinds())
        return fkt_fail(FKT_E_ARG, "unknown kind of head %d", (int)kind);
    FKT_TRY(fkt_heads_of_release(&heads, r, on));
    if (!heads.head[kind]) FKT_TRY(fkt_teacher_none(kind));
    FKT_TRY(fkt_teacher_of_head(out, heads.head[kind], pipeline));
    (*out)->own = heads;
    heads = (struct fkt_heads){0};
out:
    fkt_heads_clear(&heads);
    return st;
}

/* ---- logits ---- */

struct teaching {
    const struct fkt_teacher *t;
    const uint8_t *rgb;
    float *logits;
    size_t n, batch, image; /* image: bytes of one */
    struct fkt_meter *meter;
};

/* w: a whole record vector; own (m): space for the coordinates that the head takes. */
static void teach_one(const struct fkt_head *h, const double *w, double *own, double *scores, double *work,
                      float *logits)
{
    double most = -INFINITY, sum = 0;
    size_t at = 0;
    for (uint32_t p = 0; p < fkt_head_parts(h); p++) {
        const size_t n = fkt_head_part_length(h, p);
        memcpy(own + at, w + fkt_head_part_offset(h, p), n * sizeof *own);
        at += n;
    }
    fkt_head_scores(h, own, scores, work);
    for (uint32_t k = 0; k < h->classes; k++) most = fmax(most, scores[k]);
    for (uint32_t k = 0; k < h->classes; k++) sum += exp(scores[k] - most);
    for (uint32_t k = 0; k < h->classes; k++) logits[k] = (float)(scores[k] - most - log(sum));
}

/* rgb (n, S, S, 3) -> w (n, m), of the parts that the head takes. */
static fkt_status encode(const struct fkt_teacher *t, const uint8_t *rgb, size_t n, double *w)
{
    const struct fkt_pipeline *line = t->pipeline;
    double *u = NULL;
    float *z = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&u, fkt_pipeline_room(line)));
    for (uint32_t p = 0; p < line->task.parts; p++) {
        const size_t dim = line->task.part[p].dim;
        if (!takes(t->head, line, p)) continue;
        FKT_TRY(fkt_alloc(&z, n * dim));
        FKT_TRY(fkt_codec_encode(line->codec[p], rgb, n, z));
        for (size_t i = 0; i < n; i++) {
            fkt_calibration_forward(&line->calibration[p], z + i * dim, u);
            st = fkt_coordinates_forward(&line->coordinates[p], u, w + i * t->length + line->at[p]);
            FKT_TRY(fkt_fail_in(st, "image %zu", i));
        }
        fkt_free_secret(z); /* of public images here, but a caller may give others */
        z = NULL;
    }
out:
    fkt_free_secret(z);
    fkt_free_secret(u);
    return st;
}

static fkt_status teach_some(void *ctx, size_t item, unsigned worker)
{
    const struct teaching *j = ctx;
    const struct fkt_head *h = j->t->head;
    const size_t from = item * j->batch, n = j->n - from < j->batch ? j->n - from : j->batch, m = j->t->length;
    double *w = NULL, *own = NULL, *work = NULL, *scores = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&w, n * m));
    FKT_TRY(fkt_alloc(&own, m));
    FKT_TRY(fkt_alloc(&work, m));
    FKT_TRY(fkt_alloc(&scores, h->classes));
    FKT_TRY(encode(j->t, j->rgb + from * j->image, n, w));
    for (size_t i = 0; i < n; i++) {
        float *out = j->logits + (from + i) * h->classes;
        teach_one(h, w + i * m, own, scores, work, out);
        for (uint32_t k = 0; k < h->classes; k++)
            if (!isfinite(out[k])) {
                st = fkt_fail(FKT_E_NUMERIC, "the head's score of image %zu for class %" PRIu32 " is not finite",
                              from + i, k);
                goto out;
            }
    }
    FKT_TRY(fkt_meter_add(j->meter, n));
out:
    fkt_free_secret(w);
    fkt_free_secret(own);
    fkt_free_secret(work);
    fkt_free(scores);
    return st;
}

fkt_status fkt_teacher_logits(const struct fkt_teacher *t, const uint8_t *rgb, size_t n, float *logits,
                              const struct fkt_pipeline_options *options)
{
    const uint32_t size = fkt_pipeline_task(t->pipeline)->size;
    struct fkt_meter meter;
    struct teaching j = {.t = t,
                         .rgb = rgb,
                         .logits = logits,
                         .n = n,
                         .batch = fkt_pipeline_batch_all(t->pipeline),
                         .image = (size_t)3 * size * size,
                         .meter = &meter};
    fkt_status st;
    fkt_meter_init(&meter, options ? options->progress : NULL, "teacher", n);
    st = fkt_parallel(options ? options->threads : 0, (n + j.batch - 1) / j.batch, teach_some, &j, NULL, "teacher");
    fkt_meter_clear(&meter);
    return st;
}
