/* SPDX-License-Identifier: Apache-2.0 */
/* train_report.c - output of `fedkt train`: a line per epoch on stderr, results on stdout at the end. */
#include "cli/learning/train.h"

#include <math.h>
#include <stdio.h>

fkt_status cli_train_epoch(void *ctx, const struct fkt_epoch *e)
{
    struct cli_training *t = ctx;
    if (t->asked->run.quiet) return FKT_OK;
    cli_progress_end(&t->progress);
    fprintf(stderr, "epoch %*u/%u  loss %.4f  accuracy %5.2f %%", t->asked->recipe.epochs > 99 ? 3 : 2, e->epoch,
            t->asked->recipe.epochs, e->loss, 100 * e->accuracy);
    if (isfinite(e->held_accuracy)) fprintf(stderr, "  held-out %5.2f %%", 100 * e->held_accuracy);
    if (isfinite(e->ema_held_accuracy)) fprintf(stderr, "  averaged %5.2f %%", 100 * e->ema_held_accuracy);
    fprintf(stderr, "  rate %.3g  %.0f img/s\n", e->rate, e->images_per_second);
    return FKT_OK;
}

/* A number, or null if there is none. */
static json_t *real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *epoch_json(const struct fkt_epoch *e)
{
    return json_pack("{s:i s:o s:o s:o s:o s:o s:o s:o s:o s:o}", "epoch", (int)e->epoch, "loss", real(e->loss),
                     "accuracy", real(e->accuracy), "held_loss", real(e->held_loss), "held_accuracy",
                     real(e->held_accuracy), "ema_held_loss", real(e->ema_held_loss), "ema_held_accuracy",
                     real(e->ema_held_accuracy), "rate", real(e->rate), "seconds", real(e->seconds),
                     "images_per_second", real(e->images_per_second));
}

static json_t *teacher_json(const struct cli_train *a, const struct fkt_teacher *head)
{
    if (head) return json_pack("{s:s s:s}", "kind", "head", "head", fkt_head_name(fkt_teacher_kind(head)));
    return a->teacher ? json_pack("{s:s s:n}", "kind", "model", "head") : json_null();
}

static json_t *public_json(const struct fkt_training_source *s)
{
    const struct fkt_public_facts f = fkt_training_source_public_facts(s);
    if (!f.images) return json_null();
    return json_pack("{s:s s:I s:I s:s}", "name", f.name, "images", (json_int_t)f.images, "per_epoch",
                     (json_int_t)f.each, "sha256", f.sha256);
}

static json_t *results(const struct cli_training *t, const struct fkt_epoch *e, size_t n)
{
    const struct cli_train *a = t->asked;
    const struct fkt_images *held = fkt_training_source_held(t->images.source);
    json_t *epochs = json_array(), *test = json_null(), *j;
    for (size_t i = 0; i < n; i++) json_array_append_new(epochs, epoch_json(&e[i]));
    if (t->test) {
        test = cli_evaluation_json(&t->evaluated, t->model);
        if (t->averaged)
            json_object_set_new(test, "averaged", cli_evaluation_json(&t->evaluated_averaged, t->averaged));
    }
    j = json_pack("{s:o s:o s:o s:o s:o s:o s:I s:I s:o s:o s:o s:f s:b s:o s:o s:o}", "out", cli_path_json(a->out),
                  "ema_out", cli_path_json(a->ema_out), "onnx", cli_path_json(a->onnx), "curves",
                  cli_path_json(a->curves), "tensorboard", cli_path_json(a->tensorboard), "checkpoint",
                  cli_path_json(a->checkpoint), "images", (json_int_t)fkt_training_source_set(t->images.source)->n,
                  "held_out", (json_int_t)(held ? held->n : 0), "model", cli_model_json(t->model), "epochs", epochs,
                  "test", test, "seconds", t->seconds, "resumed", t->resumed, "device",
                  cli_device_json(a->recipe.device), "teacher", teacher_json(a, t->images.teacher), "public",
                  public_json(t->images.source));
    if (j) cli_origin_json(j, fkt_model_origin(t->model));
    return j;
}

static void print_last(const struct fkt_epoch *e)
{
    printf("after %u epoch%s: loss %.4f, training accuracy %.2f %%", e->epoch, e->epoch == 1 ? "" : "s", e->loss,
           100 * e->accuracy);
    if (isfinite(e->held_accuracy)) printf(", %.2f %% on held-out images", 100 * e->held_accuracy);
    if (isfinite(e->ema_held_accuracy)) printf(" (averaged weights: %.2f %%)", 100 * e->ema_held_accuracy);
    putchar('\n');
}

static void print_files(const struct cli_train *a)
{
    printf("model in %s", a->out);
    if (a->ema_out) printf(", averaged weights in %s", a->ema_out);
    if (a->onnx) printf(", ONNX in %s", a->onnx);
    if (a->curves) printf(", curves in %s", a->curves);
    if (a->tensorboard) printf(", TensorBoard events in %s", a->tensorboard);
    putchar('\n');
}

fkt_status cli_train_print(const struct cli_training *t)
{
    size_t n;
    const struct fkt_epoch *e = fkt_trainer_history(t->trainer, &n);
    if (t->asked->run.json) return cli_print_json(results(t, e, n));
    cli_curve_show(e, n);
    printf("%s, %s stem, %u px, %u classes, %.2f million weights, from %zu images\n",
           fkt_architecture_name(fkt_model_architecture(t->model)), fkt_stem_name(fkt_model_stem(t->model)),
           fkt_model_size(t->model), fkt_model_classes(t->model), 1e-6 * (double)fkt_model_parameters(t->model),
           fkt_training_source_set(t->images.source)->n);
    if (n) print_last(&e[n - 1]);
    if (t->test) {
        printf("\non the test set, after the last epoch: ");
        cli_evaluation_print(&t->evaluated, t->model);
        if (t->averaged)
            printf("averaged weights: accuracy %.2f %%\n", 100 * fkt_evaluation_accuracy(&t->evaluated_averaged.plain));
        putchar('\n');
    }
    cli_origin_print(fkt_model_origin(t->model), 0);
    print_files(t->asked);
    return cli_flush();
}
