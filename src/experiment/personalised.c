/* SPDX-License-Identifier: Apache-2.0 */
/* personalised.c - the experiment `personalised`: models for each site beside personalised federated learning by others
 * (Table 4).
 *
 * 20 sites under two partitions. Every arm is a method, on the same records at the same sites, with the same test
 * records, the same network and, where it starts anew, the same first weights (learning/personal_split.c,
 * learning/baselines/):
 *   ours      a network from the release at epsilon 10 whose last layer each site tunes (the paper's protocol), the
 *             same untouched, and the head of the release with each site's class proportions as prior
 *   alone     local training with the recipe of our networks, and by plain SGD, as the methods of others train
 *   others    FedAvg once and in rounds, Per-FedAvg, pFedMe, FedAMP, FedPHP, FedFomo, APPLE, PartialFed
 *
 * Only ours is private. Nothing is chosen by test records: last round, last epoch, default numbers, the default head.
 * The release does not depend on who holds what, so one network serves both partitions of a seed. Records go to sites
 * by their number here, and by their content in the sweep that makes the release: the exact moments are the same.
 *
 * A cell is one method under one partition: a method of 50 rounds takes long, and a kill loses no other. */
#include "experiment/lab.h"
#include "experiment/list.h"

#include "base/alloc.h"
#include "fedkt/advanced/baselines.h"
#include "fedkt/teacher.h"
#include "learning/personal.h"

#include <math.h>
#include <string.h>

enum { SITES = 20, BATCH = 32, TUNE_EPOCHS = 20 };
static const double epsilon = 10, rate = 0.05;

enum kind { OURS, HEAD, LOCAL, OTHERS }; /* of an arm; more: its way, or method */

struct job {
    struct fkt_lab *lab;
    const struct fkt_cell *cell;
    struct fkt_lab_images images;
    struct fkt_partition_spec partition;
    uint32_t rounds;
    char release[65]; /* hash; "": none */
    uint64_t full;    /* visits to sites whose steps did not fit on the card */
};

static struct fkt_lab_run release_of(const struct fkt_cell *c)
{
    return (struct fkt_lab_run){.set = c->panel,
                                .arm = c->arm,
                                .epsilon = &epsilon,
                                .n_epsilon = 1,
                                .sites = SITES,
                                .partition = "dirichlet:0.1",
                                .participation = 1,
                                .seed = c->seed};
}

/* ---- a network from the release; local training ---- */

static fkt_status ours(struct job *j, struct fkt_personal *out, struct fkt_model **model)
{
    const struct fkt_lab_run run = release_of(j->cell);
    const int local = j->cell->arm->kind == LOCAL;
    struct fkt_personal_spec spec = {.data = &j->images.train,
                                     .test = &j->images.test,
                                     .partition = j->partition,
                                     .ways = 1U << (int)j->cell->arm->more,
                                     .seed = j->cell->seed,
                                     .progress = j->lab->options.progress};
    fkt_status st;
    if (local) FKT_TRY(fkt_lab_network(j->lab, &j->images.train, j->cell->seed, model));
    else {
        FKT_TRY(fkt_lab_pretrained(j->lab, &run, model));
        memcpy(j->release, fkt_model_origin(*model)->release_sha256, sizeof j->release);
    }
    fkt_lab_recipe(j->lab, j->cell->seed, &spec.local);
    spec.local.batch = BATCH;
    spec.local.rate = rate;
    spec.tune = spec.local;
    spec.local.epochs = j->rounds;
    if (spec.local.warmup >= spec.local.epochs) spec.local.warmup = 0;
    spec.tune.epochs = TUNE_EPOCHS;
    spec.pretrained = *model;
    FKT_TRY(fkt_personalize(out, &spec));
out:
    return st;
}

/* ---- a head of the release ---- */

static fkt_status head(struct job *j, struct fkt_personal *out)
{
    const struct fkt_lab_run run = release_of(j->cell);
    const struct fkt_pipeline_options options = {.threads = j->lab->options.threads,
                                                 .progress = j->lab->options.progress};
    struct fkt_personal_head_spec spec = {
        .data = &j->images.train, .test = &j->images.test, .partition = j->partition, .seed = j->cell->seed};
    const struct fkt_release *release;
    struct fkt_teacher *teacher = NULL;
    struct fkt_sweep *sweep = NULL;
    float *logits = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_federation(j->lab, &run, &sweep));
    release = fkt_sweep_arm(sweep, 0)->release;
    memcpy(j->release, fkt_release_sha256(release), sizeof j->release);
    FKT_TRY(
        fkt_teacher_of_release(&teacher, release, fkt_sweep_pipeline(sweep), fkt_head_default(0), FKT_HEADS_DEFAULT));
    FKT_TRY(fkt_alloc(&logits, j->images.test.n * j->images.test.n_classes));
    FKT_TRY(fkt_teacher_logits(teacher, j->images.test.rgb, j->images.test.n, logits, &options));
    spec.logits = logits;
    FKT_TRY(fkt_personal_head(out, &spec));
out:
    fkt_free(logits);
    fkt_teacher_free(teacher);
    fkt_sweep_free(sweep);
    return st;
}

/* ---- methods of others ---- */

static fkt_status others(struct job *j, struct fkt_personal *out, struct fkt_model **like)
{
    struct fkt_baselines_spec spec = {.data = &j->images.train,
                                      .test = &j->images.test,
                                      .partition = j->partition,
                                      .methods = 1U << (int)j->cell->arm->more,
                                      .seed = j->cell->seed,
                                      .threads = j->lab->options.threads,
                                      .device = j->lab->options.device,
                                      .progress = j->lab->options.progress,
                                      .full = &j->full};
    struct fkt_recipe recipe;
    fkt_status st;
    fkt_lab_recipe(j->lab, j->cell->seed, &recipe);
    spec.dtype = recipe.dtype;
    fkt_baseline_default(&spec.settings);
    spec.settings.rounds = j->rounds;
    spec.settings.batch = BATCH;
    spec.settings.rate = rate;
    FKT_TRY(fkt_lab_network(j->lab, &j->images.train, j->cell->seed, like));
    spec.like = *like;
    FKT_TRY(fkt_baselines_run(out, &spec));
out:
    return st;
}

/* ---- a cell ---- */

/* Numbers and sites of a part of the split; place: numbers of its records in the set, NULL: they are those. */
static fkt_status owners(struct fkt_lab_owners *out, const struct fkt_personal_part *part, uint32_t sites,
                         const size_t *place)
{
    size_t *record = NULL;
    uint32_t *owner = NULL;
    fkt_status st;
    out->n = part->start[sites];
    FKT_TRY(fkt_alloc(&record, out->n));
    out->record = record;
    FKT_TRY(fkt_alloc(&owner, out->n));
    out->owner = owner;
    for (uint32_t s = 0; s < sites; s++)
        for (size_t i = part->start[s]; i < part->start[s + 1]; i++) {
            record[i] = place ? place[part->record[i]] : part->record[i];
            owner[i] = s;
        }
out:
    return st;
}

static void owners_clear(struct fkt_lab_owners *o)
{
    fkt_free((void *)o->record);
    fkt_free((void *)o->owner);
}

/* The split that all methods of the cell's partition and seed have. */
static fkt_status note_partition(struct job *j)
{
    const struct fkt_training_set *d = &j->images.train, *t = &j->images.test;
    const struct fkt_personal_labels data = {d->label, d->n, d->n_classes}, test = {t->label, t->n, t->n_classes};
    struct fkt_lab_partition p = {.spec = j->partition, .by = "place"};
    struct fkt_personal_split split = {0};
    fkt_status st;
    FKT_TRY(fkt_personal_split_init(&split, &data, &test, &j->partition, 0, j->cell->seed));
    FKT_TRY(owners(&p.train, &split.train, split.sites, j->images.train_record));
    FKT_TRY(owners(&p.test, &split.test, split.sites, j->images.test_record));
    FKT_TRY(fkt_lab_partition(j->lab, &p));
out:
    owners_clear(&p.train);
    owners_clear(&p.test);
    fkt_personal_split_clear(&split);
    return st;
}

static void add_facts(const struct job *j, json_t *facts)
{
    json_object_set_new(facts, "records", json_integer((json_int_t)j->images.train.n));
    json_object_set_new(facts, "partition", json_string(j->lab->partition));
    if (j->full) json_object_set_new(facts, "card_was_full", json_integer((json_int_t)j->full));
}

static fkt_status add_point(const struct job *j, const struct fkt_personal *p, json_t *points)
{
    const int way = (int)j->cell->arm->more;
    const double value[] = {p->mean[way], p->pooled[way], p->spread[way]};
    static const char *const key[] = {"mean", "pooled", "spread"};
    json_t *values = json_object(),
           *facts = j->release[0] ? json_pack("{s:s}", "release_sha256", j->release) : json_object();
    if (!isfinite(value[0])) {
        json_decref(values);
        json_decref(facts);
        return fkt_fail(FKT_E_STATE, "no site has a test record");
    }
    for (size_t i = 0; i < FKT_COUNT(value); i++)
        if (isfinite(value[i])) json_object_set_new(values, key[i], json_real(value[i]));
    if (facts) add_facts(j, facts);
    return fkt_point_add(points, j->cell->x, NULL, values, facts);
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const struct fkt_experiment_options *o = &lab->options;
    struct job j = {.lab = lab, .cell = c, .partition = {.sites = SITES, .seed = c->seed}};
    struct fkt_personal result = {0};
    struct fkt_model *model = NULL;
    fkt_status st;
    j.rounds = o->rounds ? o->rounds : o->quick ? c->experiment->rounds_quick : c->experiment->rounds;
    FKT_TRY(fkt_partition_parse(&j.partition, fkt_partition_of_label(c->x[0].label, c->panel)));
    FKT_TRY(fkt_lab_images(lab, c->panel, &j.images));
    if (c->arm->kind == OTHERS) FKT_TRY(others(&j, &result, &model));
    else if (c->arm->kind == HEAD) FKT_TRY(head(&j, &result));
    else FKT_TRY(ours(&j, &result, &model));
    FKT_TRY(note_partition(&j));
    FKT_TRY(add_point(&j, &result, points));
out:
    fkt_model_free(model);
    fkt_personal_clear(&result);
    fkt_lab_images_clear(&j.images);
    return st;
}

#define RELEASE .codec = "fedkt-ae", .guide = "fedkt-guide", .noise = -1
#define METHOD(word, text, which)                                                                                      \
    {                                                                                                                  \
        .name = word, .title = text, .kind = OTHERS, .more = which, .trains = 1, .rounds = 1                           \
    }
static const struct fkt_arm arms[] = {
    {.name = "tuned",
     .title = "ours: network from the release, last layer tuned",
     RELEASE,
     .kind = OURS,
     .more = FKT_PERSONAL_TUNED,
     .trains = 1},
    {.name = "untouched",
     .title = "ours: network from the release, untouched",
     RELEASE,
     .kind = OURS,
     .more = FKT_PERSONAL_GLOBAL,
     .trains = 1},
    {.name = "head-prior",
     .title = "ours: head of the release, site's proportions",
     RELEASE,
     .kind = HEAD,
     .more = FKT_PERSONAL_HEAD_PRIOR},
    {.name = "local",
     .title = "local only, recipe of our networks",
     .kind = LOCAL,
     .more = FKT_PERSONAL_LOCAL,
     .trains = 1,
     .rounds = 1},
    METHOD("local-sgd", "local only, plain SGD", FKT_BASELINE_LOCAL),
    METHOD("fedavg-once", "FedAvg, one round", FKT_BASELINE_FEDAVG_ONCE),
    METHOD("fedavg", "FedAvg", FKT_BASELINE_FEDAVG),
    METHOD("perfedavg", "Per-FedAvg", FKT_BASELINE_PERFEDAVG),
    METHOD("pfedme", "pFedMe", FKT_BASELINE_PFEDME),
    METHOD("fedamp", "FedAMP", FKT_BASELINE_FEDAMP),
    METHOD("fedphp", "FedPHP", FKT_BASELINE_FEDPHP),
    METHOD("fedfomo", "FedFomo", FKT_BASELINE_FEDFOMO),
    METHOD("apple", "APPLE", FKT_BASELINE_APPLE),
    METHOD("partialfed", "PartialFed", FKT_BASELINE_PARTIALFED),
};
static const char *const sets[] = {"cifar10", "cifar100"};
static const struct fkt_position partitions[] = {{0, "pathological"}, {1, "dirichlet:0.1"}};
static const struct fkt_metric metrics[] = {{"mean", "mean over sites", 100, 1, 0},
                                            {"pooled", "all test records", 100, 1, 0},
                                            {"spread", "standard deviation over sites", 100, 1, 0}};

const struct fkt_experiment fkt_experiment_personalised = {
    .name = "personalised",
    .title = "Personalised models",
    .paper = "Table 4",
    .about = "a model for each of 20 sites, ours at epsilon 10, beside personalised federated learning by others",
    .time =
        "quick: 75 s of processor time; CIFAR-10, 50 rounds, resnet8: some 14 h of it (an estimate); resnet18: a card",
    .x_title = "partition",
    .y_title = "accuracy, %",
    .x = partitions,
    .n_x = FKT_COUNT(partitions),
    .x_quick = partitions,
    .n_quick = FKT_COUNT(partitions),
    .apart = 1,
    .arm = arms,
    .n_arms = FKT_COUNT(arms),
    .sets = sets,
    .n_sets = FKT_COUNT(sets),
    .metric = metrics,
    .n_metrics = FKT_COUNT(metrics),
    .rounds = 50,
    .rounds_quick = 2,
    .run = run};
