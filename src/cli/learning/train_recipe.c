/* SPDX-License-Identifier: Apache-2.0 */
/* train_recipe.c - the options that repeat a run of `fedkt train`, in one line that its model keeps. They are the
 * effective values in full precision: a rounded rate would not repeat the run. No paths, which may be private. */
#include "cli/learning/train.h"

#include "base/text.h"
#include "base/threads.h"

#include <stdio.h>

static void add_number(struct fkt_text *t, const char *option, double x)
{
    char digits[FKT_DOUBLE_TEXT];
    fkt_double_text(digits, x);
    fkt_text_addf(t, " %s %s", option, digits);
}

static void add_data(struct fkt_text *t, const char *of, const struct cli_data *d)
{
    if (d->split) fkt_text_addf(t, " --%ssplit %s", of, d->split);
    if (d->limit) fkt_text_addf(t, " --%slimit %llu", of, (unsigned long long)d->limit);
}

static void add_images(struct fkt_text *t, const struct cli_train *a)
{
    if (a->release)
        fkt_text_addf(t, " --per-class %llu --draw-seed %llu --estimator %s%s", (unsigned long long)a->per_class,
                      (unsigned long long)a->draw_seed, fkt_estimator_name(a->estimate.estimator),
                      a->fresh ? " --fresh" : "");
    if (a->guided) fkt_text_addf(t, " --guided%s%s", *a->guided ? " " : "", a->guided);
    if (a->plain > 0) add_number(t, "--plain", a->plain);
    if (a->blend > 0) add_number(t, "--blend", a->blend);
    if (a->release && a->settings.dtype)
        fkt_text_addf(t, " --codec-dtype %s", fkt_codec_dtype_name((enum fkt_codec_dtype)a->settings.dtype));
    if (a->estimate.tau != 0) add_number(t, "--tau", a->estimate.tau);
    if (a->estimate.pool != 0) add_number(t, "--pool", a->estimate.pool);
    add_data(t, "", &a->data);
    add_data(t, "mix-", &a->mix);
    add_data(t, "public-", &a->shared);
    if (a->shared_each) fkt_text_addf(t, " --public-per-epoch %llu", (unsigned long long)a->shared_each);
    if (a->data.bits) fkt_text_addf(t, " --bits %llu", (unsigned long long)a->data.bits);
    if (a->data.fit) fkt_text_addf(t, " --fit %s", fkt_fit_name((enum fkt_fit)a->data.fit));
    if (a->filter) fkt_text_addf(t, " --filter %s", fkt_filter_name((enum fkt_filter)a->filter));
}

static void add_steps(struct fkt_text *t, const struct fkt_recipe *r)
{
    fkt_text_addf(t, " --epochs %u --batch %u", r->epochs, r->batch);
    if (r->optimizer == FKT_LEARN_ADAM) fkt_text_add(t, " --optimizer adam");
    add_number(t, "--rate", r->rate);
    if (r->optimizer == FKT_LEARN_ADAM) {
        add_number(t, "--beta1", r->beta1);
        add_number(t, "--beta2", r->beta2);
    } else add_number(t, "--momentum", r->momentum);
    add_number(t, "--decay", r->decay);
    fkt_text_addf(t, " --schedule %s", fkt_schedule_name(r->schedule));
    if (r->schedule == FKT_SCHEDULE_STEP) {
        add_number(t, "--step-every", r->step_every);
        add_number(t, "--step-by", r->step_by);
    }
    if (r->warmup > 0) add_number(t, "--warmup", r->warmup);
    if (r->optimizer == FKT_LEARN_SGD && !r->nesterov) fkt_text_add(t, " --no-nesterov");
    if (!r->flip) fkt_text_add(t, " --no-flip");
    fkt_text_addf(t, " --pad %u", r->pad);
    if (r->smoothing > 0) add_number(t, "--smoothing", r->smoothing);
    if (r->ema > 0) add_number(t, "--ema", r->ema);
    if (r->share > 0) {
        add_number(t, "--temperature", r->temperature);
        add_number(t, "--teacher-share", r->share);
    }
}

void cli_train_recipe_line(char *out, size_t cap, const struct cli_train *a, const struct fkt_model *m,
                           const struct fkt_teacher *head, int moved)
{
    const struct fkt_recipe *r = &a->recipe;
    struct fkt_text t;
    fkt_text_init(&t);
    add_images(&t, a);
    fkt_text_addf(&t, " --network %s --stem %s --size %u", fkt_architecture_name(fkt_model_architecture(m)),
                  fkt_stem_name(fkt_model_stem(m)), fkt_model_size(m));
    if (head) fkt_text_addf(&t, " --teacher head --teacher-head %s", fkt_head_name(fkt_teacher_kind(head)));
    if (a->head_on) fkt_text_addf(&t, " --teacher-parts %s", fkt_heads_on_name((enum fkt_heads_on)a->head_on));
    add_steps(&t, r);
    if (a->holdout > 0) add_number(&t, "--holdout", a->holdout);
    fkt_text_addf(&t, " --dtype %s --seed %llu --threads %u", r->dtype == FKT_LEARN_DTYPE_BF16 ? "bf16" : "f32",
                  (unsigned long long)r->seed, r->threads ? r->threads : fkt_cpu_count());
    if (r->device.kind == FKT_DEVICE_CUDA) fkt_text_add(&t, " --device cuda"); /* the processor's bits are others */
    if (moved) fkt_text_add(&t, " (earlier steps on another device: no single run repeats it)");
    snprintf(out, cap, "%s", t.s && t.s[0] ? t.s + 1 : "");
    fkt_text_clear(&t);
}
