/* SPDX-License-Identifier: Apache-2.0 */
/* learn_hold.c - steps without the host, in plain loops: views of the images that the learner holds, forward, loss,
 * backward, step, average, one after the other.
 *
 * The definition of those steps, and what the trainer's use of them is tested with where there is no card. The order of
 * the calls is that of classifier/epochs.c, so the bits are too. After a step whose logits are not finite the remaining
 * ones are skipped: their numbers would mean nothing. */
#include "nn/ref/learner.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct fkt_ref_held {
    uint8_t *rgb; /* (n, H, W, 3) */
    uint32_t *label;
    float *teacher; /* (n, classes); NULL: none */
    float value[3][256];
    /* of the plan */
    struct fkt_view_at *view;      /* (steps, batch) */
    struct fkt_planned_step *step; /* (steps) */
    struct fkt_loss kind;
    uint64_t next, first_bad, hits;
    double loss;
    /* of one step */
    float *in, *out, *slope, *batch_teacher;
    uint32_t *batch_label;
};

static void drop_plan(struct fkt_ref_held *h)
{
    fkt_free(h->view);
    fkt_free(h->step);
    h->view = NULL;
    h->step = NULL;
}

void fkt_ref_held_free(struct fkt_ref_held *h)
{
    if (!h) return;
    drop_plan(h);
    fkt_free(h->rgb);
    fkt_free(h->label);
    fkt_free(h->teacher);
    fkt_free(h->in);
    fkt_free(h->out);
    fkt_free(h->slope);
    fkt_free(h->batch_teacher);
    fkt_free(h->batch_label);
    fkt_free(h);
}

fkt_status fkt_ref_hold(void *self, const struct fkt_held *p)
{
    struct fkt_ref_learner *l = self;
    const struct fkt_shape x = l->shape[0];
    const size_t image = (size_t)3 * x.h * x.w, batch = l->spec.batch, classes = l->shape[l->net->n_ops].c;
    struct fkt_ref_held *h = NULL;
    fkt_status st;
    fkt_ref_held_free(l->held);
    l->held = NULL;
    FKT_TRY(fkt_alloc(&h, 1));
    FKT_TRY(fkt_alloc(&h->rgb, p->n * image));
    FKT_TRY(fkt_alloc(&h->label, p->n));
    if (p->teacher) FKT_TRY(fkt_alloc(&h->teacher, p->n * classes));
    FKT_TRY(fkt_alloc(&h->batch_teacher, batch * classes));
    FKT_TRY(fkt_alloc(&h->in, batch * image));
    FKT_TRY(fkt_alloc(&h->out, batch * classes));
    FKT_TRY(fkt_alloc(&h->slope, batch * classes));
    FKT_TRY(fkt_alloc(&h->batch_label, batch));
    memcpy(h->rgb, p->rgb, p->n * image);
    memcpy(h->label, p->label, p->n * sizeof *p->label);
    if (p->teacher) memcpy(h->teacher, p->teacher, p->n * classes * sizeof *p->teacher);
    memcpy(h->value, p->value, sizeof h->value);
    l->held = h;
    h = NULL;
out:
    fkt_ref_held_free(h);
    return st;
}

fkt_status fkt_ref_plan_epoch(void *self, const struct fkt_epoch_steps *e)
{
    struct fkt_ref_learner *l = self;
    struct fkt_ref_held *h = l->held;
    const size_t steps = (size_t)e->steps, views = steps * l->spec.batch;
    fkt_status st;
    drop_plan(h);
    FKT_TRY(fkt_alloc(&h->view, views));
    FKT_TRY(fkt_alloc(&h->step, steps));
    if (steps) memcpy(h->view, e->view, views * sizeof *e->view);
    if (steps) memcpy(h->step, e->step, steps * sizeof *e->step);
    h->kind = e->loss;
    h->next = h->hits = 0;
    h->loss = e->loss_before;
    h->first_bad = UINT64_MAX;
out:
    return st;
}

/* out (3, H, W). */
static void apply(const struct fkt_ref_held *h, struct fkt_shape s, const struct fkt_view_at *v, float *out)
{
    const uint8_t *rgb = h->rgb + (size_t)v->index * 3 * s.h * s.w;
    for (size_t c = 0; c < 3; c++)
        for (int64_t y = 0; y < s.h; y++)
            for (int64_t x = 0; x < s.w; x++) {
                const int64_t row = y + v->top, column = (v->flip ? s.w - 1 - x : x) + v->left;
                const int inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
                *out++ = inside ? h->value[c][rgb[(size_t)(row * s.w + column) * 3 + c]] : 0;
            }
}

static fkt_status one_step(struct fkt_ref_learner *l)
{
    struct fkt_ref_held *h = l->held;
    const struct fkt_shape s = l->shape[0];
    const size_t batch = l->spec.batch, image = (size_t)3 * s.h * s.w, classes = l->shape[l->net->n_ops].c;
    const struct fkt_view_at *view = h->view + h->next * batch;
    const struct fkt_planned_step *step = &h->step[h->next];
    double loss = NAN;
    size_t hits = 0;
    fkt_status st;
    for (size_t i = 0; i < batch; i++) {
        apply(h, s, &view[i], h->in + i * image);
        h->batch_label[i] = h->label[view[i].index];
        if (h->teacher)
            memcpy(h->batch_teacher + i * classes, h->teacher + view[i].index * classes, classes * sizeof *h->teacher);
    }
    FKT_TRY(fkt_ref_learner_forward(l, h->in, h->out));
    st = fkt_loss_softmax(&h->kind, h->out, h->batch_label, h->teacher ? h->batch_teacher : NULL, batch, classes, &loss,
                          h->slope, &hits);
    if (st == FKT_E_NUMERIC) {
        h->first_bad = h->next;
        h->loss = NAN;
        return FKT_OK;
    }
    FKT_TRY(st);
    FKT_TRY(fkt_ref_learner_backward(l, h->slope, NULL));
    FKT_TRY(fkt_ref_learner_step(l, &step->optimizer));
    if (step->average >= 0) FKT_TRY(fkt_ref_learner_average(l, step->average));
    h->loss += loss;
    h->hits += hits;
    h->next++;
out:
    return st;
}

fkt_status fkt_ref_train(void *self, uint64_t steps)
{
    struct fkt_ref_learner *l = self;
    fkt_status st = FKT_OK;
    for (; steps && l->held->first_bad == UINT64_MAX; steps--) FKT_TRY(one_step(l));
out:
    return st;
}

fkt_status fkt_ref_collect(void *self, double *loss, uint64_t *hits, uint64_t *first_bad)
{
    const struct fkt_ref_learner *l = self;
    *loss = l->held->loss;
    *hits = l->held->hits;
    *first_bad = l->held->first_bad;
    return FKT_OK;
}
