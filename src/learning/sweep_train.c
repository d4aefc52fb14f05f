/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_train.c - a network for each arm of a sweep (sweep.h), trained from scratch on images drawn from its
 * Gaussians and evaluated once, after the last epoch, on the real test images. The reference is trained the same
 * way, on Gaussians without noise. A teacher is the arm's own head. This module uses a sweep only through its public
 * header. */
#include "fedkt/sweep.h"
#include "fedkt/train.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/status.h"
#include "learning/public_set.h"
#include "learning/teacher.h"
#include "pipeline/release.h"

struct training {
    struct fkt_sweep *sweep;
    const struct fkt_sweep_network *network;
    const struct fkt_task *task;
    struct fkt_training_set test;
    struct fkt_training_set set; /* of one arm: `drawn` images, then public ones */
    size_t drawn;
    struct fkt_public_set shared; /* set.n 0: none */
};

static fkt_status images_of(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    struct training *t = ctx;
    struct fkt_training_set *p = &t->set;
    fkt_status st = FKT_OK;
    p->n = t->drawn;
    if (t->shared.set.n) FKT_TRY(fkt_public_set_append(&t->shared, epoch, p));
    *out = (struct fkt_images){.rgb = p->rgb, .label = p->label, .n = p->n, .size = p->size, .teacher = p->teacher};
out:
    return st;
}

/* ---- the teacher ---- */

static fkt_status logits_of(const struct training *t, const struct fkt_teacher *teacher, struct fkt_training_set *p)
{
    const struct fkt_pipeline_options options = {.threads = t->network->recipe.threads,
                                                 .progress = t->network->progress};
    fkt_status st;
    if (!p->teacher) FKT_TRY(fkt_alloc(&p->teacher, p->n * p->n_classes));
    FKT_TRY(fkt_teacher_logits(teacher, p->rgb, p->n, p->teacher, &options));
out:
    return st;
}

/* The heads carry no origin: the pipeline's task is arm 0's, and another arm's has another hash. */
static fkt_status teach(struct training *t, size_t arm)
{
    const struct fkt_gaussians *g = fkt_sweep_arm(t->sweep, arm)->measured;
    struct fkt_heads heads = {0};
    struct fkt_teacher *teacher = NULL;
    fkt_status st;
    FKT_TRY(fkt_heads_fit(&heads, g, t->task, t->network->head_on, NULL));
    if (!heads.head[t->network->head]) FKT_TRY(fkt_teacher_none(t->network->head));
    FKT_TRY(fkt_teacher_of_head(&teacher, heads.head[t->network->head], fkt_sweep_pipeline(t->sweep)));
    t->set.n = t->drawn;
    FKT_TRY(logits_of(t, teacher, &t->set));
    if (!t->shared.set.n) goto out;
    FKT_TRY(logits_of(t, teacher, &t->shared.set));
    fkt_public_set_label(&t->shared);
out:
    fkt_teacher_free(teacher);
    fkt_heads_clear(&heads);
    return st;
}

/* Public images: neither private records nor test images may be among them. */
static fkt_status read_public(struct training *t)
{
    const struct fkt_sweep_network *network = t->network;
    struct fkt_skipped skipped = {0};
    const struct fkt_training_set_options read = {.threads = network->recipe.threads,
                                                  .progress = network->progress,
                                                  .skipped = network->skip_bad ? &skipped : NULL};
    struct fkt_public_set *p = &t->shared;
    const size_t *idx;
    size_t n;
    fkt_status st = FKT_OK;
    if (!network->shared) return FKT_OK;
    if (!network->head_teaches) return fkt_fail(FKT_E_ARG, "public images have no labels: they need a teacher");
    FKT_TRY(fkt_public_set_read(p, network->shared, network->shared_name, &t->set, t->task->filter, &read));
    p->each = network->shared_each ? network->shared_each : t->drawn;
    if (p->each > p->set.n) p->each = p->set.n;
    p->seed = network->recipe.seed;
    idx = fkt_sweep_test_records(t->sweep, &n);
    FKT_TRY(fkt_public_set_refuse(p, fkt_sweep_test_data(t->sweep), idx, n, "test images", &read));
    idx = fkt_sweep_train_records(t->sweep, &n);
    FKT_TRY(fkt_public_set_refuse(p, fkt_sweep_data(t->sweep), idx, n, "private records", &read));
out:
    fkt_skipped_clear(&skipped);
    return st;
}

/* ---- the network ---- */

static fkt_status learn(struct training *t, struct fkt_model **out)
{
    const struct fkt_model_spec network = {.architecture = t->network->architecture,
                                           .size = t->task->size,
                                           .classes = (const char *const *)t->task->classes,
                                           .n_classes = t->task->n_classes,
                                           .seed = t->network->recipe.seed};
    const struct fkt_trainer_hooks hooks = {.progress = t->network->progress};
    struct fkt_trainer_spec spec = {
        .recipe = t->network->recipe,
        .source = {.images = images_of, .ctx = t, .anew = t->shared.each < t->shared.set.n}};
    struct fkt_model *start = NULL;
    struct fkt_trainer *trainer = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_model_new(&start, &network));
    spec.start = start;
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, 0, out));
out:
    fkt_trainer_free(trainer);
    fkt_model_free(start);
    return st;
}

static fkt_status evaluate(const struct training *t, const struct fkt_model *m, double *accuracy)
{
    const struct fkt_predict_options options = {
        .threads = t->network->recipe.threads, .progress = t->network->progress, .device = t->network->recipe.device};
    struct fkt_evaluation e = {0};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&e, fkt_model_classes(m)));
    FKT_TRY(fkt_training_set_evaluate(&e, m, &t->test, &options));
    *accuracy = fkt_evaluation_accuracy(&e);
out:
    fkt_evaluation_clear(&e);
    return st;
}

static fkt_status train_once(struct training *t, size_t i, int guided, double *accuracy)
{
    struct fkt_model *model = NULL;
    fkt_status st;
    FKT_TRY(fkt_sweep_tiles(t->sweep, i, guided, t->task->n_classes, t->network->per_class, t->set.rgb));
    if (t->network->head_teaches) FKT_TRY(teach(t, i));
    FKT_TRY(learn(t, &model));
    FKT_TRY(evaluate(t, model, accuracy));
out:
    fkt_model_free(model);
    return st;
}

static fkt_status train_arm(struct training *t, size_t i)
{
    double start = fkt_now(), accuracy;
    fkt_status st;
    FKT_TRY(train_once(t, i, 1, &accuracy));
    FKT_TRY(fkt_sweep_set_network(t->sweep, i, fkt_architecture_name(t->network->architecture), accuracy,
                                  fkt_now() - start));
    if (t->network->unguided && fkt_sweep_guided(t->sweep)->kind != FKT_GUIDED_NONE) {
        start = fkt_now();
        FKT_TRY(train_once(t, i, 0, &accuracy));
        FKT_TRY(fkt_sweep_set_unguided(t->sweep, i, accuracy, fkt_now() - start));
    }
    if (t->network->trained) FKT_TRY(t->network->trained(t->network->ctx, t->sweep, i));
out:
    return st;
}

static fkt_status read_test(struct training *t)
{
    struct fkt_skipped skipped = {0}; /* the same count as in the heads' evaluation */
    const struct fkt_training_set_options read = {.threads = t->network->recipe.threads,
                                                  .progress = t->network->progress,
                                                  .skipped = t->network->skip_bad ? &skipped : NULL};
    size_t n;
    const size_t *idx = fkt_sweep_test_records(t->sweep, &n);
    fkt_status st = fkt_training_set_read(&t->test, fkt_sweep_test_data(t->sweep), idx, n, t->task->size,
                                          t->task->filter, NULL, &read);
    fkt_skipped_clear(&skipped);
    return st;
}

static fkt_status make_room(struct training *t)
{
    struct fkt_training_set *p = &t->set;
    const size_t each = t->network->per_class;
    size_t bytes;
    fkt_status st;
    if (!fkt_mul_size(each, t->task->n_classes, &t->drawn) ||
        !fkt_mul_size(t->drawn, (size_t)t->task->size * t->task->size * 3, &bytes))
        bytes = SIZE_MAX;
    p->size = t->task->size;
    FKT_TRY(fkt_alloc(&p->classes, t->task->n_classes));
    p->n_classes = t->task->n_classes;
    for (uint32_t k = 0; k < p->n_classes; k++) FKT_TRY(fkt_strdup(&p->classes[k], t->task->classes[k]));
    FKT_TRY(fkt_alloc(&p->rgb, bytes));
    FKT_TRY(fkt_alloc(&p->label, t->drawn));
    for (size_t i = 0; i < t->drawn; i++) p->label[i] = (uint32_t)(i / each);
    p->n = t->drawn;
out:
    return st;
}

fkt_status fkt_sweep_train(struct fkt_sweep *s, const struct fkt_sweep_network *network)
{
    struct fkt_sweep_network settled = *network;
    struct training t = {.sweep = s, .network = &settled, .task = fkt_pipeline_task(fkt_sweep_pipeline(s))};
    const size_t arms = fkt_sweep_arms(s);
    fkt_status st;
    if (!fkt_sweep_test_data(s)) return fkt_fail(FKT_E_STATE, "the sweep has no test images to evaluate a network on");
    if (!fkt_sweep_arm(s, arms - 1)->draws) return fkt_fail(FKT_E_STATE, "the sweep has not run to its end");
    if (network->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be drawn");
    FKT_TRY(fkt_recipe_check(&network->recipe));
    FKT_TRY(fkt_device_resolve(&settled.recipe.device, NULL, 0));
    fkt_sweep_set_device(s, settled.recipe.device);
    if (network->head_teaches && ((int)network->head < 0 || (int)network->head >= fkt_head_kinds()))
        return fkt_fail(FKT_E_ARG, "unknown kind of head %d", (int)network->head);
    FKT_TRY(make_room(&t));
    FKT_TRY(read_public(&t));
    FKT_TRY(read_test(&t));
    for (size_t i = 0; i < arms; i++)
        if (!network->only || network->only == i + 1) FKT_TRY(train_arm(&t, i));
out:
    fkt_training_set_clear(&t.set);
    fkt_public_set_clear(&t.shared);
    fkt_training_set_clear(&t.test);
    return st;
}
