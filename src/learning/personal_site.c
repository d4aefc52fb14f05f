/* SPDX-License-Identifier: Apache-2.0 */
/* personal_site.c - the work at one site of the personalised protocol (personal.c): gathers its records, evaluates
 * the common networks and tunes their last layers, trains a local network. */
#include "learning/personal.h"

#include "base/rng.h"
#include "classifier/average.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_LOCAL = 0x6c6f, STREAM_TUNE = 0x7475 };

int fkt_personal_asked(const struct fkt_personal_run *r, enum fkt_personal_way w) { return (r->ways >> w & 1) != 0; }

int fkt_personal_asked_local(const struct fkt_personal_run *r)
{
    return fkt_personal_asked(r, FKT_PERSONAL_LOCAL) || fkt_personal_asked(r, FKT_PERSONAL_FEDAVG) ||
           fkt_personal_asked(r, FKT_PERSONAL_FEDAVG_TUNED);
}

int fkt_personal_asked_average(const struct fkt_personal_run *r)
{
    return fkt_personal_asked(r, FKT_PERSONAL_FEDAVG) || fkt_personal_asked(r, FKT_PERSONAL_FEDAVG_TUNED);
}

uint64_t fkt_personal_seed(const struct fkt_personal_run *r, uint64_t stream, uint32_t site)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, r->spec->seed, stream << 32 | site);
    return fkt_rng_u64(&rng);
}

/* ---- progress ---- */

static int course_step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    struct fkt_personal_course *c = self;
    (void)what;
    (void)total;
    return c->outer->step(c->outer->self, "site images", c->before + done, c->total);
}

static const struct fkt_progress *course_hook(struct fkt_personal_course *c) { return c->outer ? &c->hook : NULL; }

/* Images that fkt_personal_base will put through a network for a site of so many records. */
static unsigned long long base_images(const struct fkt_personal_run *r, size_t train, size_t test,
                                      enum fkt_personal_way plain, enum fkt_personal_way tuned)
{
    if (fkt_personal_asked(r, tuned)) return train + 2ULL * test;
    return fkt_personal_asked(r, plain) ? test : 0;
}

static unsigned long long local_images(const struct fkt_personal_run *r, size_t train, size_t test)
{
    unsigned long long epochs = train >= FKT_PERSONAL_LEAST ? r->spec->local.epochs : 0;
    return fkt_personal_asked_local(r) ? epochs * train + (fkt_personal_asked(r, FKT_PERSONAL_LOCAL) ? test : 0) : 0;
}

size_t fkt_personal_count(const struct fkt_personal_part *p, uint32_t site)
{
    return p->start[site + 1] - p->start[site];
}

void fkt_personal_plan(struct fkt_personal_run *r)
{
    r->course = (struct fkt_personal_course){{course_step, &r->course}, r->spec->progress, 0, 0};
    for (uint32_t s = 0; s < r->split.sites; s++) {
        size_t train = fkt_personal_count(&r->split.train, s), test = fkt_personal_count(&r->split.test, s);
        r->course.total += base_images(r, train, test, FKT_PERSONAL_GLOBAL, FKT_PERSONAL_TUNED) +
                           local_images(r, train, test) +
                           base_images(r, train, test, FKT_PERSONAL_FEDAVG, FKT_PERSONAL_FEDAVG_TUNED);
    }
}

/* ---- one site ---- */

/* Appends a site's records of one set; returns their number. */
static struct fkt_images load_part(struct fkt_personal_run *r, const struct fkt_training_set *set,
                                   const struct fkt_personal_part *part, uint32_t site, size_t at)
{
    const size_t *record = part->record + part->start[site];
    size_t n = fkt_personal_count(part, site), bytes = (size_t)set->size * set->size * 3;
    for (size_t i = 0; i < n; i++) {
        memcpy(r->rgb + (at + i) * bytes, set->rgb + record[i] * bytes, bytes);
        r->label[at + i] = set->label[record[i]];
    }
    return (struct fkt_images){.rgb = r->rgb + at * bytes, .label = r->label + at, .n = n, .size = set->size};
}

void fkt_personal_load(struct fkt_personal_run *r, uint32_t site)
{
    const struct fkt_personal_spec *spec = r->spec;
    r->site = site;
    r->train = load_part(r, spec->data, &r->split.train, site, 0);
    r->test = load_part(r, spec->test ? spec->test : spec->data, &r->split.test, site, r->train.n);
}

static fkt_status predict(struct fkt_personal_run *r, const struct fkt_model *m, const struct fkt_images *p,
                          float *features)
{
    struct fkt_predict_options o = {.threads = r->spec->local.threads,
                                    .dtype = FKT_LEARN_DTYPE_F32,
                                    .progress = course_hook(&r->course),
                                    .device = r->spec->local.device};
    fkt_status st = fkt_model_predict(m, p->rgb, p->n, r->logits, features, &o);
    r->course.before += p->n;
    return st;
}

/* logits: of the records that the site is evaluated on. */
static fkt_status evaluate(struct fkt_personal_run *r, enum fkt_personal_way way, const float *logits)
{
    struct fkt_evaluation own = {0};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&own, r->spec->data->n_classes));
    FKT_TRY(fkt_evaluation_add(&own, logits, r->test.label, r->test.n));
    FKT_TRY(fkt_evaluation_add(&r->pooled[way], logits, r->test.label, r->test.n));
    r->out->site[r->site].accuracy[way] = fkt_evaluation_accuracy(&own);
out:
    fkt_evaluation_clear(&own);
    return st;
}

static fkt_status predict_and_evaluate(struct fkt_personal_run *r, const struct fkt_model *m, enum fkt_personal_way way)
{
    fkt_status st;
    if (!r->test.n) return FKT_OK;
    st = predict(r, m, &r->test, NULL);
    return st == FKT_OK ? evaluate(r, way, r->logits) : st;
}

void fkt_personal_disown(struct fkt_model *m, const char *how, const struct fkt_model *before)
{
    struct fkt_model_origin o = {0};
    snprintf(o.data, sizeof o.data, "%s", how);
    if (before) fkt_model_origin_add(&o, "network: ", fkt_model_origin(before));
    fkt_model_set_origin(m, &o);
}

fkt_status fkt_personal_hand_out(const struct fkt_personal_run *r, enum fkt_personal_way way, const struct fkt_model *m)
{
    return r->spec->model ? r->spec->model(r->spec->ctx, r->site, way, m) : FKT_OK;
}

/* r->features: of the site's records, as base gave them. The saved model is evaluated, from pixels. */
static fkt_status tune(struct fkt_personal_run *r, const struct fkt_model *base, enum fkt_personal_way way)
{
    struct fkt_recipe recipe = r->spec->tune;
    struct fkt_model *m = NULL;
    char how[96];
    fkt_status st;
    recipe.seed = fkt_personal_seed(r, STREAM_TUNE, r->site);
    FKT_TRY(fkt_model_copy(&m, base));
    snprintf(how, sizeof how, "last layer tuned on %zu records of one site", r->train.n);
    FKT_TRY(fkt_head_tune(m, &recipe, r->features, r->train.label, r->train.n));
    fkt_personal_disown(m, how, base);
    FKT_TRY(fkt_personal_hand_out(r, way, m));
    FKT_TRY(predict_and_evaluate(r, m, way));
out:
    fkt_model_free(m);
    return st;
}

fkt_status fkt_personal_base(struct fkt_personal_run *r, const struct fkt_model *base, enum fkt_personal_way plain,
                             enum fkt_personal_way tuned)
{
    struct fkt_images all = {.rgb = r->rgb, .label = r->label, .n = r->train.n + r->test.n, .size = r->train.size};
    fkt_status st = FKT_OK;
    if (!fkt_personal_asked(r, tuned))
        return fkt_personal_asked(r, plain) ? predict_and_evaluate(r, base, plain) : FKT_OK;
    if (!all.n) return FKT_OK;
    FKT_TRY(predict(r, base, &all, r->features));
    if (fkt_personal_asked(r, plain) && r->test.n)
        FKT_TRY(evaluate(r, plain, r->logits + r->train.n * r->spec->data->n_classes));
    FKT_TRY(tune(r, base, tuned));
out:
    return st;
}

static fkt_status same_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    (void)epoch;
    *out = *(const struct fkt_images *)ctx;
    return FKT_OK;
}

static fkt_status train_local(struct fkt_personal_run *r, struct fkt_model **out)
{
    struct fkt_trainer_spec spec = {
        .start = r->start, .recipe = r->spec->local, .source = {.images = same_images, .ctx = &r->train}};
    struct fkt_trainer_hooks hooks = {.progress = course_hook(&r->course)};
    struct fkt_trainer *trainer = NULL;
    char how[96];
    fkt_status st;
    spec.recipe.seed = fkt_personal_seed(r, STREAM_LOCAL, r->site);
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, spec.recipe.ema > 0, out));
    snprintf(how, sizeof how, "trained on %zu records of one site", r->train.n);
    fkt_personal_disown(*out, how, NULL);
    r->course.before += (unsigned long long)r->train.n * spec.recipe.epochs;
out:
    fkt_trainer_free(trainer);
    return st;
}

fkt_status fkt_personal_local(struct fkt_personal_run *r)
{
    struct fkt_model *m = NULL;
    fkt_status st = FKT_OK;
    if (!fkt_personal_asked_local(r) || !(r->train.n + r->test.n)) return FKT_OK;
    if (r->train.n >= FKT_PERSONAL_LEAST) {
        FKT_TRY(train_local(r, &m));
        if (fkt_personal_asked_average(r)) FKT_TRY(fkt_model_average_add(r->sum, m, r->train.n));
    } else {
        FKT_TRY(fkt_model_copy(&m, r->start));
    }
    FKT_TRY(fkt_personal_hand_out(r, FKT_PERSONAL_LOCAL, m));
    if (fkt_personal_asked(r, FKT_PERSONAL_LOCAL)) FKT_TRY(predict_and_evaluate(r, m, FKT_PERSONAL_LOCAL));
out:
    fkt_model_free(m);
    return st;
}
