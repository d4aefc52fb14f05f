/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - a training run on disk: safetensors, format "fedkt.checkpoint/1".
 *
 *   metadata   format; what identifies the run (architecture, size, classes, recipe, checksums of images, teacher and
 *              start), as text; checksum of all tensors
 *   state      U64 (2): steps done, hits of the current epoch
 *   running    F64 (2): sum of losses and seconds of the current epoch
 *   history    F64 (epochs, 10): the fields of struct fkt_epoch in their order
 *   weight.*, velocity.*, average.*, second.*   F32, by torchvision's names; velocity (Adam: first moment) only of
 *              parameters, average if there is one, second (Adam's second moment) of parameters after the first step
 *
 * A resume computes the same texts for its own run and compares them one by one; the error names the first that
 * differs. The weights at the start are among them: the caller states what a model started from, and a checkpoint must
 * not bring in others. Numbers are written with all their digits. Order and views of an epoch follow from the recipe,
 * so they are not stored; fields of the recipe that are younger than the format may be absent and then have their
 * default; and a run continues in the middle of an epoch with exactly the same bits.
 *
 * The file is untrusted: shapes must be those of this run, all numbers finite, the count of steps consistent with the
 * epochs, and the trainer is changed only after everything is checked. The checksum (checksum.c) finds accidents, not
 * forgeries. A new file replaces the old one atomically (base/file.c). Pixels and labels of epoch 0 identify the
 * images; a source that draws new ones each time states it, and follows from its own seed. Their checksum lets someone
 * who knows all images but one test a guess at that one, so the file is readable by its owner alone (0600). */
#include "classifier/trainer.h"

#include "base/alloc.h"
#include "base/file.h"
#include "classifier/checksum.h"
#include "classifier/model.h"
#include "classifier/recipe.h"
#include "tensor/safetensors.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FORMAT "fedkt.checkpoint/1"
enum {
    FACTS = 12,
    WORDS = FACTS + FKT_RECIPE_FIELDS,
    WORD_MAX = 96,
    FULL_NAME = FKT_MODEL_NAME_MAX + 16,
    COLUMNS = 10
};

struct word {
    const char *key;
    char value[WORD_MAX];
};

static uint64_t sum_of_names(const struct fkt_model *m)
{
    struct fkt_checksum c;
    fkt_checksum_init(&c);
    for (uint32_t k = 0; k < m->n_classes; k++) fkt_checksum_add(&c, m->classes[k], strlen(m->classes[k]));
    return fkt_checksum_value(&c);
}

#define ADD_TEXT(name, ...) (w->key = (name), snprintf(w->value, WORD_MAX, __VA_ARGS__), w++)
static void words_of(struct word words[WORDS], const struct fkt_trainer *t)
{
    const struct fkt_model *m = t->model;
    struct word *w = words;
    ADD_TEXT("architecture", "%s", fkt_architecture_name(m->architecture));
    ADD_TEXT("stem", "%s", fkt_stem_name(m->stem));
    ADD_TEXT("image size", "%" PRIu32, m->size);
    ADD_TEXT("number of classes", "%" PRIu32, m->n_classes);
    ADD_TEXT("checksum of the classes' names", "%016" PRIx64, sum_of_names(m));
    ADD_TEXT("normalisation", "%.9g %.9g %.9g, %.9g %.9g %.9g", (double)m->mean[0], (double)m->mean[1],
             (double)m->mean[2], (double)m->std[0], (double)m->std[1], (double)m->std[2]);
    ADD_TEXT("number of images", "%zu", t->n);
    ADD_TEXT("checksum of the images", "%016" PRIx64, t->images_sum);
    ADD_TEXT("set of images", "%s", t->source.anew ? "drawn for each epoch" : "the same for all epochs");
    ADD_TEXT("checksum of the held-out images", "%016" PRIx64, t->held_sum);
    ADD_TEXT("checksum of the teacher", "%016" PRIx64, t->teacher_sum);
    ADD_TEXT("checksum of the weights at the start", "%016" PRIx64, t->start_sum);
    for (size_t i = 0; i < FKT_RECIPE_FIELDS; i++, w++) {
        w->key = fkt_recipe_field_name(i);
        fkt_recipe_field_text(&t->recipe, i, w->value);
    }
}
#undef SAY

/* Which arrays of the learner a checkpoint has, in the order of the file. */
static const struct kind {
    enum fkt_learned what;
    const char *prefix;
} kinds[] = {{FKT_WEIGHT, "weight"}, {FKT_VELOCITY, "velocity"}, {FKT_AVERAGE, "average"}, {FKT_SECOND, "second"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int has(const struct fkt_trainer *t, enum fkt_learned what, uint32_t slot, uint64_t step)
{
    if (what == FKT_VELOCITY) return fkt_learner_is_parameter(t->learner, slot);
    if (what == FKT_SECOND)
        return t->recipe.optimizer == FKT_LEARN_ADAM && step > 0 && fkt_learner_is_parameter(t->learner, slot);
    return what == FKT_WEIGHT || (t->recipe.ema > 0 && step > 0);
}

static void name_of(char out[FULL_NAME], const struct fkt_trainer *t, const struct kind *k, uint32_t slot)
{
    snprintf(out, FULL_NAME, "%s.%s", k->prefix, t->model->net.slot[slot].name[0]);
}

static void shape_of(uint64_t shape[FKT_SLOT_RANK], const struct fkt_slot *s)
{
    for (uint32_t i = 0; i < s->rank; i++) shape[i] = s->shape[i];
}

/* ---- the numbers besides the arrays ---- */

struct numbers {
    uint64_t state[2];
    double running[2];
    double *history; /* (epochs, COLUMNS) owned */
};

static void row_of(double out[COLUMNS], const struct fkt_epoch *e)
{
    const double row[COLUMNS] = {e->epoch,
                                 e->loss,
                                 e->accuracy,
                                 e->held_loss,
                                 e->held_accuracy,
                                 e->ema_held_loss,
                                 e->ema_held_accuracy,
                                 e->rate,
                                 e->seconds,
                                 e->images_per_second};
    memcpy(out, row, sizeof row);
}

static struct fkt_epoch epoch_of(const double r[COLUMNS], uint32_t number)
{
    return (struct fkt_epoch){number, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9]};
}

/* ---- writing ---- */

static fkt_status add_numbers(struct fkt_st_writer *w, struct fkt_checksum *sum, const struct fkt_trainer *t,
                              struct numbers *x)
{
    const uint64_t two = 2, table[2] = {t->done.epochs, COLUMNS};
    fkt_status st;
    FKT_TRY(fkt_alloc(&x->history, (size_t)t->done.epochs * COLUMNS));
    for (size_t i = 0; i < t->done.epochs; i++) row_of(x->history + i * COLUMNS, &t->history[i]);
    x->state[0] = t->done.step;
    x->state[1] = t->done.hits;
    x->running[0] = t->done.loss;
    x->running[1] = t->done.seconds;
    fkt_checksum_add(sum, x->state, sizeof x->state);
    fkt_checksum_add(sum, x->running, sizeof x->running);
    fkt_checksum_add(sum, x->history, t->done.epochs * COLUMNS * sizeof *x->history);
    FKT_TRY(fkt_st_writer_add(w, "state", FKT_U64, 1, &two, x->state));
    FKT_TRY(fkt_st_writer_add(w, "running", FKT_F64, 1, &two, x->running));
    FKT_TRY(fkt_st_writer_add(w, "history", FKT_F64, 2, table, x->history));
out:
    return st;
}

/* Writes all slots of one kind at `at`, which advances. */
static fkt_status add_arrays(struct fkt_st_writer *w, struct fkt_checksum *sum, const struct fkt_trainer *t,
                             const struct kind *k, float **at)
{
    char name[FULL_NAME];
    uint64_t shape[FKT_SLOT_RANK];
    fkt_status st = FKT_OK;
    for (uint32_t s = 0; s < t->model->net.n_slots; s++) {
        const struct fkt_slot *slot = &t->model->net.slot[s];
        const size_t n = fkt_slot_count(slot);
        if (!has(t, k->what, s, t->done.step)) continue;
        name_of(name, t, k, s);
        shape_of(shape, slot);
        FKT_TRY(fkt_learner_read(t->learner, k->what, s, *at));
        for (size_t i = 0; i < n; i++)
            if (!isfinite((*at)[i])) {
                st = fkt_fail_hint(FKT_E_NUMERIC, "use a smaller rate; an older checkpoint is unchanged",
                                   "training diverged: '%s' is not finite after step %" PRIu64, name, t->done.step);
                goto out;
            }
        fkt_checksum_add(sum, *at, n * sizeof **at);
        FKT_TRY(fkt_st_writer_add(w, name, FKT_F32, slot->rank, shape, *at));
        *at += n;
    }
out:
    return st;
}

/* The kinds of device that the steps so far ran on. Not compared: a run may go on on another one, but no single run has
 * its bits then, and the recipe of its model must say so. Files of older builds do not have it. */
static const char *devices_of(const struct fkt_trainer *t)
{
    return t->elsewhere ? "cpu and cuda" : t->recipe.device.kind == FKT_DEVICE_CUDA ? "cuda" : "cpu";
}

static int ran_elsewhere(const struct fkt_safetensors *f, const struct fkt_trainer *t, uint64_t step)
{
    const char *found = fkt_safetensors_meta(f, "devices");
    return found && step > 0 && strcmp(found, devices_of(t)) != 0;
}

fkt_status fkt_trainer_save(const struct fkt_trainer *t, const char *path)
{
    struct word words[WORDS];
    struct numbers x = {.history = NULL};
    struct fkt_st_writer *w = NULL;
    struct fkt_checksum sum;
    float *arrays = NULL, *at;
    char text[WORD_MAX];
    size_t n = 0;
    fkt_status st;
    fkt_checksum_init(&sum);
    for (uint32_t s = 0; s < t->model->net.n_slots; s++) n += fkt_slot_count(&t->model->net.slot[s]);
    FKT_TRY(fkt_alloc(&arrays, KINDS * n));
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(add_numbers(w, &sum, t, &x));
    at = arrays;
    for (size_t k = 0; k < KINDS; k++) FKT_TRY(add_arrays(w, &sum, t, &kinds[k], &at));
    words_of(words, t);
    FKT_TRY(fkt_st_writer_meta(w, "format", FORMAT));
    for (size_t i = 0; i < WORDS; i++) FKT_TRY(fkt_st_writer_meta(w, words[i].key, words[i].value));
    FKT_TRY(fkt_st_writer_meta(w, "devices", devices_of(t)));
    snprintf(text, sizeof text, "%016" PRIx64, fkt_checksum_value(&sum));
    FKT_TRY(fkt_st_writer_meta(w, "checksum", text));
    FKT_TRY(fkt_st_writer_write(w, path, FKT_FILE_REPLACE | FKT_FILE_PRIVATE));
out:
    fkt_st_writer_free(w);
    fkt_free(x.history);
    fkt_free(arrays);
    return fkt_fail_in(st, "cannot save the run to checkpoint '%s'", path);
}

/* ---- reading ---- */

static fkt_status compare_words(const struct fkt_safetensors *f, const struct fkt_trainer *t, const char *path)
{
    const char *format = fkt_safetensors_meta(f, "format");
    struct word words[WORDS];
    struct fkt_recipe usual;
    char shown[FKT_ST_SHOWN], older[FKT_RECIPE_TEXT];
    if (!format || strcmp(format, FORMAT) != 0)
        return fkt_fail_hint(FKT_E_FORMAT, "give the file that a training run wrote as its checkpoint",
                             "'%s' is not a checkpoint of format " FORMAT, path);
    words_of(words, t);
    fkt_recipe_default(&usual);
    for (size_t i = 0; i < WORDS; i++) {
        const char *found = fkt_safetensors_meta(f, words[i].key);
        if (!found && i >= FACTS && fkt_recipe_field_is_new(i - FACTS)) {
            fkt_recipe_field_text(&usual, i - FACTS, older);
            found = older;
        }
        if (!found) return fkt_fail(FKT_E_FORMAT, "checkpoint '%s' does not state its %s", path, words[i].key);
        if (strcmp(found, words[i].value) != 0)
            return fkt_fail_hint(FKT_E_MISMATCH,
                                 "resume with the settings of the checkpoint, or start again without it",
                                 "checkpoint '%s' belongs to another run: its %s is %s, and this run's is %s", path,
                                 words[i].key, fkt_st_shown(shown, found), words[i].value);
    }
    return FKT_OK;
}

static fkt_status read_numbers(const struct fkt_safetensors *f, const struct fkt_trainer *t, const char *path,
                               struct numbers *x, uint64_t *epochs)
{
    const uint64_t two = 2;
    const struct fkt_tensor *state = NULL, *running = NULL, *history = fkt_safetensors_find(f, "history");
    uint64_t shape[2] = {history && history->rank == 2 ? history->shape[0] : 0, COLUMNS};
    fkt_status st;
    FKT_TRY(fkt_safetensors_want(f, &state, "state", FKT_U64, 1, &two));
    FKT_TRY(fkt_safetensors_want(f, &running, "running", FKT_F64, 1, &two));
    FKT_TRY(fkt_safetensors_want(f, &history, "history", FKT_F64, 2, shape));
    memcpy(x->state, state->data, sizeof x->state);
    memcpy(x->running, running->data, sizeof x->running);
    *epochs = shape[0];
    if (*epochs > t->recipe.epochs || x->state[0] < *epochs * t->epoch_steps ||
        x->state[0] > (*epochs + 1) * t->epoch_steps || x->state[0] > t->recipe.epochs * t->epoch_steps ||
        x->state[1] > (x->state[0] - *epochs * t->epoch_steps) * t->batch || !isfinite(x->running[0]) ||
        !(x->running[1] >= 0 && isfinite(x->running[1]))) {
        st = fkt_fail(FKT_E_FORMAT,
                      "checkpoint '%s' claims %" PRIu64 " steps and %" PRIu64 " epochs, which is impossible", path,
                      x->state[0], *epochs);
        goto out;
    }
    FKT_TRY(fkt_alloc(&x->history, (size_t)*epochs * COLUMNS));
    memcpy(x->history, history->data, (size_t)*epochs * COLUMNS * sizeof *x->history);
out:
    return st;
}

/* Every array is there, has its shape and is finite, and the checksum of all is right. `scratch` has space for the
 * largest. */
static fkt_status check_arrays(const struct fkt_safetensors *f, const struct fkt_trainer *t, const char *path,
                               struct fkt_checksum *sum, uint64_t step, float *scratch)
{
    const char *want = fkt_safetensors_meta(f, "checksum");
    size_t seen = 3;
    char name[FULL_NAME], text[WORD_MAX];
    uint64_t shape[FKT_SLOT_RANK];
    fkt_status st = FKT_OK;
    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t s = 0; s < t->model->net.n_slots; s++) {
            const struct fkt_tensor *x = NULL;
            if (!has(t, kinds[k].what, s, step)) continue;
            name_of(name, t, &kinds[k], s);
            shape_of(shape, &t->model->net.slot[s]);
            FKT_TRY(fkt_safetensors_want(f, &x, name, FKT_F32, t->model->net.slot[s].rank, shape));
            FKT_TRY(fkt_tensor_copy_f32(scratch, x));
            fkt_checksum_add(sum, scratch, (size_t)x->count * sizeof *scratch);
            seen++;
        }
    snprintf(text, sizeof text, "%016" PRIx64, fkt_checksum_value(sum));
    if (!want || strcmp(want, text) != 0)
        st = fkt_fail_hint(FKT_E_FORMAT, "use an older copy, or start again", "checkpoint '%s' is damaged: its %s",
                           path, want ? "checksum is wrong" : "checksum is missing");
    else if (fkt_safetensors_count(f) != seen)
        st = fkt_fail(FKT_E_FORMAT, "checkpoint '%s' has %zu tensors, expected %zu", path, fkt_safetensors_count(f),
                      seen);
out:
    return st;
}

static fkt_status take_arrays(const struct fkt_safetensors *f, struct fkt_trainer *t, uint64_t step, float *scratch)
{
    char name[FULL_NAME];
    fkt_status st = FKT_OK;
    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t s = 0; s < t->model->net.n_slots; s++) {
            if (!has(t, kinds[k].what, s, step)) continue;
            name_of(name, t, &kinds[k], s);
            FKT_TRY(fkt_tensor_copy_f32(scratch, fkt_safetensors_find(f, name)));
            FKT_TRY(fkt_learner_write(t->learner, kinds[k].what, s, scratch));
        }
out:
    return st;
}

fkt_status fkt_trainer_resume(struct fkt_trainer *t, const char *checkpoint)
{
    struct fkt_safetensors *f = NULL;
    struct numbers x = {.history = NULL};
    struct fkt_checksum sum;
    float *scratch = NULL;
    uint64_t epochs = 0;
    size_t most = 0;
    fkt_status st;
    if (t->done.step || t->failed_midway)
        return fkt_fail(FKT_E_STATE, "a run can only be resumed before its first step");
    for (uint32_t s = 0; s < t->model->net.n_slots; s++) {
        const size_t n = fkt_slot_count(&t->model->net.slot[s]);
        if (n > most) most = n;
    }
    FKT_TRY(fkt_alloc(&scratch, most));
    FKT_TRY(fkt_safetensors_open(&f, checkpoint));
    FKT_TRY(compare_words(f, t, checkpoint));
    FKT_TRY(read_numbers(f, t, checkpoint, &x, &epochs));
    fkt_checksum_init(&sum);
    fkt_checksum_add(&sum, x.state, sizeof x.state);
    fkt_checksum_add(&sum, x.running, sizeof x.running);
    fkt_checksum_add(&sum, x.history, (size_t)epochs * COLUMNS * sizeof *x.history);
    FKT_TRY(check_arrays(f, t, checkpoint, &sum, x.state[0], scratch));
    t->failed_midway = 1;
    FKT_TRY(take_arrays(f, t, x.state[0], scratch));
    t->done = (struct fkt_progressed){x.state[0], (uint32_t)epochs, x.running[0], x.running[1], x.state[1]};
    for (uint32_t i = 0; i < t->done.epochs; i++) t->history[i] = epoch_of(x.history + (size_t)i * COLUMNS, i + 1);
    t->elsewhere = ran_elsewhere(f, t, x.state[0]);
    t->failed_midway = 0;
out:
    fkt_safetensors_free(f);
    fkt_free(x.history);
    fkt_free(scratch);
    return st;
}
