/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a run that was interrupted anywhere ends with the bits of one that was not; files that are damaged or of
 * another run are refused with a sentence that says why. */
#include "base/file.h"
#include "base/rng.h"
#include "classifier/checksum.h"
#include "classifier/recipe.h"
#include "nn/cpu.h"
#include "tensor/safetensors.h"
#include "tests/support/scratch.h"
#include "tests/support/toy_learning.h"

#include <sys/stat.h>
#include <unistd.h>

static struct toy toy, held;

struct stopper {
    unsigned long long at;
};

static int stop_there(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)what;
    (void)total;
    return done == ((const struct stopper *)self)->at;
}

struct end {
    struct fkt_model *model, *average;
    struct fkt_epoch history[8];
    size_t epochs;
};

static void take_end(struct end *e, const struct fkt_trainer *t)
{
    const struct fkt_epoch *h = fkt_trainer_history(t, &e->epochs);
    memcpy(e->history, h, e->epochs * sizeof *h);
    CHECK_OK(fkt_trainer_model(t, 0, &e->model));
    e->average = NULL;
    if (t->recipe.ema > 0) CHECK_OK(fkt_trainer_model(t, 1, &e->average));
}

static void end_release(struct end *e)
{
    fkt_model_free(e->model);
    fkt_model_free(e->average);
}

static void check_same_end(const struct end *a, const struct end *b)
{
    CHECK(a->epochs == b->epochs && a->epochs > 0);
    for (size_t i = 0; i < a->epochs; i++) CHECK(toy_same_epoch(a->history[i], b->history[i]));
    CHECK(toy_same(a->model, b->model));
    if (a->average) CHECK(toy_same(a->average, b->average));
}

/* Uninterrupted, then stopped after each of these steps and resumed by a new trainer. */
static void resumes_everywhere(struct fkt_trainer_spec spec, const struct fkt_learner_backend *backend,
                               const unsigned *after, size_t n)
{
    struct scratch s;
    struct end want, got;
    struct fkt_trainer *t = NULL;
    const char *file;
    scratch_init(&s);
    file = scratch_path(&s, "run.checkpoint");
    CHECK_OK(fkt_trainer_new_on(&t, &spec, backend));
    CHECK_OK(fkt_trainer_run(t, NULL));
    take_end(&want, t);
    for (size_t i = 0; i < n; i++) {
        struct stopper stop = {(unsigned long long)after[i] * t->batch};
        const struct fkt_progress p = {stop_there, &stop};
        const struct fkt_trainer_hooks hooks = {.checkpoint = file, .progress = &p};
        struct fkt_trainer *first = NULL, *second = NULL;
        CHECK_OK(fkt_trainer_new_on(&first, &spec, backend));
        CHECK_STATUS(fkt_trainer_run(first, &hooks), FKT_E_STOPPED);
        CHECK(strstr(fkt_error_hint(), "resume"));
        CHECK_OK(fkt_trainer_new_on(&second, &spec, backend));
        CHECK_OK(fkt_trainer_resume(second, file));
        CHECK(second->done.step == after[i]);
        CHECK_NEAR(second->done.seconds, first->done.seconds, 0);
        fkt_trainer_free(first);
        CHECK_OK(fkt_trainer_run(second, NULL));
        take_end(&got, second);
        check_same_end(&want, &got);
        end_release(&got);
        fkt_trainer_free(second);
    }
    end_release(&want);
    fkt_trainer_free(t);
    scratch_release(&s);
}

static void a_resumed_run_ends_with_the_same_bits(void **state)
{
    static const unsigned after[] = {1, 2, 3, 4, 5, 6};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    (void)state;
    toy_draw(&toy, 1, 26);
    toy_draw(&held, 2, 9);
    spec.held = &held.images;
    resumes_everywhere(spec, toy_steps(), after, 6);
    fkt_model_free(start);
}

/* Also on the fast learner, with a moving average, one-cycle and images that are new in each epoch. */
static void so_does_one_with_every_option(void **state)
{
    static const unsigned after[] = {2, 5, 9, 1};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *teacher = toy_model(TOY_CLASSES, 9);
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    int possible;
    (void)state;
    toy.fresh = 1;
    toy_draw(&toy, 1000, 26);
    r.epochs = 3;
    r.ema = 0.7;
    r.schedule = FKT_SCHEDULE_ONE_CYCLE;
    r.smoothing = 0.1;
    r.share = 0.25;
    spec = toy_spec(&toy, start, r);
    spec.held = &held.images;
    spec.teacher = teacher;
    resumes_everywhere(spec, toy_steps(), after, 3);
    resumes_everywhere(spec, &fkt_learner_onednn, after, 4);
    spec.recipe.threads = 2;
    resumes_everywhere(spec, &fkt_learner_onednn, after, 2);
    spec.recipe.dtype = FKT_LEARN_DTYPE_BF16;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (possible) resumes_everywhere(spec, &fkt_learner_onednn, after, 2);
    toy.fresh = 0;
    fkt_model_free(start);
    fkt_model_free(teacher);
}

/* What a checkpoint holds when step `at` is reported, before the step's own is written. */
struct reader {
    const struct fkt_trainer_spec *spec;
    const char *file;
    uint64_t seen[8]; /* by reported steps; 0: none */
};

static int read_there(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct reader *r = self;
    struct fkt_trainer *t = NULL;
    (void)what;
    (void)total;
    if (access(r->file, F_OK) != 0) return 0;
    CHECK_OK(fkt_trainer_new_on(&t, r->spec, toy_steps()));
    CHECK_OK(fkt_trainer_resume(t, r->file));
    r->seen[done / 8] = t->done.step;
    fkt_trainer_free(t);
    return 0;
}

/* A checkpoint after every second step and every epoch; the last one written is of a finished run. */
static void checkpoints_come_by_steps_and_epochs(void **state)
{
    static const uint64_t want[8] = {0, 0, 0, 2, 3, 4, 4}; /* three steps an epoch */
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    struct fkt_trainer *t = NULL;
    struct scratch s;
    struct reader reader = {.spec = &spec};
    const struct fkt_progress p = {read_there, &reader};
    struct fkt_trainer_hooks hooks = {.checkpoint_steps = 2, .progress = &p};
    struct fkt_trainer *kept;
    size_t n;
    (void)state;
    scratch_init(&s);
    reader.file = hooks.checkpoint = scratch_path(&s, "run.checkpoint");
    toy_draw(&toy, 1, 26);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_run(t, &hooks));
    assert_memory_equal(reader.seen, want, sizeof want);
    CHECK_OK(fkt_trainer_new_on(&kept, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_resume(kept, hooks.checkpoint));
    fkt_trainer_history(kept, &n);
    CHECK(n == 2 && kept->done.step == 6);
    CHECK_OK(fkt_trainer_run(kept, NULL));
    CHECK_STATUS(fkt_trainer_resume(kept, hooks.checkpoint), FKT_E_STATE);
    fkt_trainer_free(kept);
    fkt_trainer_free(t);
    scratch_release(&s);
    fkt_model_free(start);
}

/* ---- other runs ---- */

static void differs(struct fkt_trainer_spec spec, const char *file, const char *what)
{
    struct fkt_trainer *t = NULL;
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_resume(t, file), FKT_E_MISMATCH);
    if (!strstr(fkt_error_text(), what)) fail_msg("'%s' does not say '%s'", fkt_error_text(), what);
    CHECK(strstr(fkt_error_hint(), "start again") && t->done.step == 0 && !t->failed_midway);
    fkt_trainer_free(t);
}

static void a_checkpoint_of_another_run_is_named(void **state)
{
    const char *const other_names[] = {"red", "green", "violet"};
    struct fkt_model_spec ms = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 8, .classes = other_names, .n_classes = 3};
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *four = toy_model(4, 5), *renamed = NULL, *big = NULL,
                     *began = toy_model(TOY_CLASSES, 6);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe()), other;
    struct fkt_trainer *t = NULL;
    struct scratch s;
    const char *file, *taught;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "run.checkpoint");
    taught = scratch_path(&s, "taught.checkpoint");
    toy_draw(&toy, 1, 16);
    toy_draw(&held, 2, 9);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_save(t, file));
    fkt_trainer_free(t);
    other = spec;
    other.recipe.rate = 0.01;
    differs(other, file, "its rate is 0.05, and this run's is 0.01");
    other = spec;
    other.recipe.epochs = 7;
    differs(other, file, "its epochs is 2, and this run's is 7");
    other = spec;
    other.source.anew = 1;
    differs(other, file, "its set of images is the same for all epochs, and this run's is drawn for each epoch");
    other = spec;
    other.recipe.schedule = FKT_SCHEDULE_STEP;
    differs(other, file, "its schedule is cosine, and this run's is step");
    other = spec;
    other.recipe.threads = 2;
    differs(other, file, "its threads is 1, and this run's is 2");
    other = spec;
    other.recipe.seed = 99;
    differs(other, file, "its seed is 1, and this run's is 99");
    other = spec;
    other.start = four;
    differs(other, file, "its number of classes is 3, and this run's is 4");
    other.start = began;
    differs(other, file, "its checksum of the weights at the start");
    CHECK_OK(fkt_model_new(&renamed, &ms));
    other.start = renamed;
    differs(other, file, "checksum of the classes' names");
    ms.architecture = FKT_ARCHITECTURE_RESNET18;
    ms.classes = toy_names;
    CHECK_OK(fkt_model_new(&big, &ms));
    other.start = big;
    other.recipe.batch = 2;
    differs(other, file, "its architecture is resnet8, and this run's is resnet18");
    other = spec;
    other.recipe.share = 0.5;
    other.teacher = start;
    CHECK_OK(fkt_trainer_new_on(&t, &other, toy_steps()));
    CHECK_OK(fkt_trainer_save(t, taught));
    fkt_trainer_free(t);
    other.teacher = began;
    differs(other, taught, "checksum of the teacher");
    other = spec;
    other.held = &held.images;
    differs(other, file, "checksum of the held-out images");
    toy_draw(&toy, 1, 17);
    differs(spec, file, "its number of images is 16, and this run's is 17");
    toy_draw(&toy, 1, 16);
    toy.rgb[1234] ^= 1;
    differs(spec, file, "checksum of the images");
    toy.rgb[1234] ^= 1;
    toy.label[3] ^= 1;
    differs(spec, file, "checksum of the images");
    scratch_release(&s);
    fkt_model_free(start);
    fkt_model_free(four);
    fkt_model_free(began);
    fkt_model_free(renamed);
    fkt_model_free(big);
}

/* ---- damage ---- */

/* Every truncation and every flipped bit is refused, and the trainer is unchanged. */
static void damaged_files_are_refused(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *after = NULL;
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_spec spec;
    struct fkt_trainer *t = NULL;
    struct stopper stop = {8};
    const struct fkt_progress p = {stop_there, &stop};
    struct fkt_trainer_hooks hooks = {.progress = &p};
    struct scratch s;
    struct fkt_rng rng;
    uint8_t *bytes = NULL;
    size_t len = 0;
    const char *bad;
    (void)state;
    scratch_init(&s);
    hooks.checkpoint = scratch_path(&s, "run.checkpoint");
    bad = scratch_path(&s, "bad");
    toy_draw(&toy, 1, 16);
    r.ema = 0.5;
    spec = toy_spec(&toy, start, r);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_run(t, &hooks), FKT_E_STOPPED);
    fkt_trainer_free(t);
    CHECK_OK(fkt_file_read(&bytes, &len, hooks.checkpoint, 1U << 24));
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    fkt_rng_init(&rng, 4, 4);
    for (int i = 0; i < 40; i++) {
        const size_t cut = i < 3 ? (size_t)i * 7 : fkt_rng_below(&rng, len);
        fkt_status st;
        CHECK_OK(fkt_file_write(bad, bytes, cut, FKT_FILE_REPLACE));
        st = fkt_trainer_resume(t, bad);
        if (st != FKT_E_FORMAT && st != FKT_E_IO) fail_msg("cut at %zu: %s", cut, fkt_status_name(st));
    }
    for (int i = 0; i < 120; i++) { /* half of them in the head */
        const size_t at = fkt_rng_below(&rng, i % 2 ? len : 12000);
        const uint8_t bit = (uint8_t)(1U << fkt_rng_below(&rng, 8));
        fkt_status st;
        bytes[at] ^= bit;
        CHECK_OK(fkt_file_write(bad, bytes, len, FKT_FILE_REPLACE));
        bytes[at] ^= bit;
        st = fkt_trainer_resume(t, bad);
        if (st != FKT_E_FORMAT && st != FKT_E_MISMATCH && st != FKT_E_NUMERIC)
            fail_msg("bit %d of byte %zu: '%s' (%s)", bit, at, fkt_status_name(st), fkt_error_text());
    }
    CHECK_STATUS(fkt_trainer_resume(t, scratch_path(&s, "nowhere")), FKT_E_IO);
    CHECK_OK(fkt_trainer_model(t, 0, &after));
    CHECK(toy_same(start, after));
    CHECK_OK(fkt_trainer_resume(t, hooks.checkpoint));
    fkt_trainer_free(t);
    fkt_free(bytes);
    fkt_model_free(start);
    fkt_model_free(after);
    scratch_release(&s);
}

/* A file that is consistent but false: right texts, right checksum, impossible count of steps. */
static void a_count_of_steps_that_cannot_be_is_refused(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    struct fkt_trainer *t = NULL;
    struct scratch s;
    const char *file;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "liar");
    toy_draw(&toy, 1, 16);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    for (int lie = 0; lie < 7; lie++) {
        const struct fkt_progressed honest = t->done;
        t->done.step = lie == 0 ? 3 : lie == 1 ? UINT64_MAX : lie == 6 ? 5 : 0; /* 5: one after the last */
        t->done.epochs = lie == 2 ? 1 : lie == 6 ? 2 : 0;
        t->done.hits = lie == 3 ? 100 : lie == 4 ? 1 : 0; /* one hit, before the first image */
        t->done.seconds = lie == 5 ? INFINITY : 0;
        CHECK_OK(fkt_trainer_save(t, file));
        t->done = honest;
        CHECK_STATUS(fkt_trainer_resume(t, file), FKT_E_FORMAT);
        CHECK(strstr(fkt_error_text(), "which is impossible"));
    }
    fkt_trainer_free(t);
    fkt_model_free(start);
    scratch_release(&s);
}

static void copy_words(struct fkt_st_writer *w, const struct fkt_safetensors *f)
{
    static const char *const facts[] = {"format",
                                        "checksum",
                                        "architecture",
                                        "stem",
                                        "image size",
                                        "number of classes",
                                        "checksum of the classes' names",
                                        "normalisation",
                                        "number of images",
                                        "checksum of the images",
                                        "set of images",
                                        "checksum of the held-out images",
                                        "checksum of the teacher",
                                        "checksum of the weights at the start"};
    enum { FACTS = sizeof facts / sizeof *facts };
    for (size_t i = 0; i < FACTS + FKT_RECIPE_FIELDS; i++) {
        const char *key = i < FACTS ? facts[i] : fkt_recipe_field_name(i - FACTS);
        CHECK_OK(fkt_st_writer_meta(w, key, fkt_safetensors_meta(f, key)));
    }
}

/* One tensor too many, which no checksum covers. */
static void an_extra_tensor_is_refused(void **state)
{
    static const float one = 1; /* borrowed until it is written */
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    struct fkt_trainer *t = NULL;
    struct fkt_safetensors *f = NULL;
    struct fkt_st_writer *w = NULL;
    struct scratch s;
    const char *file, *more;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "run.checkpoint");
    more = scratch_path(&s, "more");
    toy_draw(&toy, 1, 16);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_OK(fkt_trainer_save(t, file));
    CHECK_OK(fkt_safetensors_open(&f, file));
    for (int stowaway = 1; stowaway >= 0; stowaway--) {
        CHECK_OK(fkt_st_writer_new(&w));
        for (size_t i = 0; i < fkt_safetensors_count(f); i++) {
            const struct fkt_tensor *x = fkt_safetensors_at(f, i);
            CHECK_OK(fkt_st_writer_add(w, x->name, x->dtype, x->rank, x->shape, x->data));
        }
        if (stowaway) CHECK_OK(fkt_st_writer_add(w, "stowaway", FKT_F32, 0, NULL, &one));
        copy_words(w, f);
        CHECK_OK(fkt_st_writer_write(w, more, FKT_FILE_REPLACE));
        fkt_st_writer_free(w);
        CHECK_STATUS(fkt_trainer_resume(t, more), stowaway ? FKT_E_FORMAT : FKT_OK);
        if (stowaway) CHECK(strstr(fkt_error_text(), "tensors, expected"));
    }
    fkt_safetensors_free(f);
    fkt_trainer_free(t);
    fkt_model_free(start);
    scratch_release(&s);
}

/* Weights multiply by some -10^6 in each step; the last one of some run makes numbers that no float can hold, and no
 * loss shows it: then the model, or the checkpoint, does. */
static void a_diverging_last_step_is_not_saved(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5), *m = NULL;
    struct fkt_recipe r = toy_recipe();
    struct fkt_trainer_hooks hooks = {0};
    struct scratch s;
    int said = 0;
    (void)state;
    scratch_init(&s);
    toy_draw(&toy, 1, 8);
    r.momentum = r.nesterov = 0;
    r.rate = 1e6;
    r.decay = 0.9;
    r.schedule = FKT_SCHEDULE_CONSTANT;
    for (r.epochs = 1; r.epochs < 12 && !said; r.epochs++) {
        struct fkt_trainer_spec spec = toy_spec(&toy, start, r);
        struct fkt_trainer *t = NULL;
        CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
        if (fkt_trainer_run(t, &hooks) == FKT_OK && fkt_trainer_model(t, 0, &m) != FKT_OK) {
            CHECK(strstr(fkt_error_text(), "is not finite after step"));
            hooks.checkpoint = scratch_path(&s, "run.checkpoint");
            CHECK_STATUS(fkt_trainer_save(t, hooks.checkpoint), FKT_E_NUMERIC);
            CHECK(strstr(fkt_error_text(), "cannot save the run") && access(hooks.checkpoint, F_OK) != 0);
            said = 1;
        }
        fkt_model_free(m);
        m = NULL;
        fkt_trainer_free(t);
    }
    CHECK(said);
    fkt_model_free(start);
    scratch_release(&s);
}

static void a_model_is_no_checkpoint(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    struct fkt_trainer *t = NULL;
    struct scratch s;
    const char *file;
    (void)state;
    scratch_init(&s);
    file = scratch_path(&s, "model.safetensors");
    toy_draw(&toy, 1, 16);
    CHECK_OK(fkt_model_save(start, file, 0));
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_resume(t, file), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "is not a checkpoint"));
    fkt_trainer_free(t);
    fkt_model_free(start);
    scratch_release(&s);
}

static void a_checkpoint_that_cannot_be_written_stops_the_run(void **state)
{
    struct fkt_model *start = toy_model(TOY_CLASSES, 5);
    struct fkt_trainer_spec spec = toy_spec(&toy, start, toy_recipe());
    const struct fkt_trainer_hooks hooks = {.checkpoint = "/nonexistent/run.checkpoint"};
    struct fkt_trainer *t = NULL;
    (void)state;
    toy_draw(&toy, 1, 16);
    CHECK_OK(fkt_trainer_new_on(&t, &spec, toy_steps()));
    CHECK_STATUS(fkt_trainer_run(t, &hooks), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "/nonexistent/run.checkpoint"));
    fkt_trainer_free(t);
    fkt_model_free(start);
}

static uint64_t sum_of(const char *a, size_t n, const char *b, size_t m)
{
    struct fkt_checksum c;
    fkt_checksum_init(&c);
    fkt_checksum_add(&c, a, n);
    if (b) fkt_checksum_add(&c, b, m);
    return fkt_checksum_value(&c);
}

static void checksums_tell_bytes_lengths_and_order_apart(void **state)
{
    char text[40] = "0123456789abcdefghijklmnopqrstuvwxyz", other[40];
    const uint64_t whole = sum_of(text, 36, NULL, 0);
    (void)state;
    CHECK(whole == sum_of(text, 36, NULL, 0));
    for (size_t i = 0; i < 36; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(other, text, sizeof other);
            other[i] = (char)(other[i] ^ (1 << bit));
            CHECK(sum_of(other, 36, NULL, 0) != whole);
        }
    CHECK(sum_of(text, 35, NULL, 0) != whole);
    CHECK(sum_of("a\0", 2, NULL, 0) != sum_of("a", 1, NULL, 0));
    CHECK(sum_of("ab", 2, "c", 1) != sum_of("a", 1, "bc", 2));
    CHECK(sum_of("ab", 2, "c", 1) != sum_of("c", 1, "ab", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_run_ends_with_the_same_bits),
        cmocka_unit_test(so_does_one_with_every_option),
        cmocka_unit_test(checkpoints_come_by_steps_and_epochs),
        cmocka_unit_test(a_checkpoint_of_another_run_is_named),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(a_count_of_steps_that_cannot_be_is_refused),
        cmocka_unit_test(an_extra_tensor_is_refused),
        cmocka_unit_test(a_diverging_last_step_is_not_saved),
        cmocka_unit_test(a_model_is_no_checkpoint),
        cmocka_unit_test(a_checkpoint_that_cannot_be_written_stops_the_run),
        cmocka_unit_test(checksums_tell_bytes_lengths_and_order_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
