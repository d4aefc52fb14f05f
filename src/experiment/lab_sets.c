/* SPDX-License-Identifier: Apache-2.0 */
/* lab_sets.c - image sets by their names: where they are in the folder of data, how they are split, at which size.
 *
 * A set is a folder or a file whose name is that of the set, with an ending of a format that is read, or without:
 * eurosat/, eurosat.tar, cifar10.tar.xz, bloodmnist.npz. A name that the table does not have is a set too: beside a
 * split `train` a test split is looked for, and of a set without the two a fifth is held out. The last opened set is
 * kept, since cells of one set follow one another. Quick runs take some records of each set; a limit is on those that
 * sites share, test splits stay whole. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct set {
    const char *name, *title, *test; /* test: name of the split; NULL: a hold-out */
    uint32_t size;
} sets[] = {
    {"demo", "embedded set", "test", 32},      {"eurosat", "EuroSAT", NULL, 32},
    {"cifar10", "CIFAR-10", "test", 32},       {"cifar100", "CIFAR-100", "test", 32},
    {"imagenette64", "ImageNette", "val", 64}, {"bloodmnist", "BloodMNIST", "test", 32},
};
enum { QUICK_RECORDS = 1000, QUICK_TESTS = 500 };
#define HOLDOUT 0.2

static const struct set *known(const char *name)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (!strcmp(sets[i].name, name)) return &sets[i];
    return NULL;
}

const char *fkt_lab_set_title(const char *name)
{
    const struct set *s = known(name);
    return s ? s->title : name;
}

fkt_status fkt_lab_find(const struct fkt_lab *lab, const char *name, char **path)
{
    static const char *const endings[] = {"", ".tar", ".npz", ".tar.xz", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2"};
    char file[96], hint[256];
    fkt_status st;
    *path = NULL;
    if (!strcmp(name, "demo")) return fkt_strdup(path, "demo:train");
    if (!lab->options.data)
        return fkt_fail_hint(FKT_E_ARG, "name the folder that has it, or take the embedded set 'demo'",
                             "set '%s' needs a folder of image sets", name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if ((size_t)snprintf(file, sizeof file, "%s%s", name, endings[i]) >= sizeof file) break;
        FKT_TRY(fkt_path_join(path, lab->options.data, file));
        if (access(*path, R_OK) == 0) return FKT_OK;
        fkt_free(*path);
        *path = NULL;
    }
    snprintf(hint, sizeof hint, "put it there as a folder '%.64s' or a file '%.64s.tar', '.npz', '.tar.xz' ...", name,
             name);
    st = fkt_fail_hint(FKT_E_IO, hint, "'%s' has no set '%s'", lab->options.data, name);
out:
    return st;
}

static fkt_status open_test(struct fkt_lab *lab, const char *path, const struct set *s)
{
    const int demo = !strcmp(s->name, "demo");
    const size_t n = fkt_dataset_classes(lab->train);
    struct fkt_dataset_options o = {.split = demo ? NULL : s->test, .limit = lab->options.quick ? QUICK_TESTS : 0};
    const char **names = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&names, n));
    for (size_t k = 0; k < n; k++) names[k] = fkt_dataset_class(lab->train, k);
    o.classes = names;
    o.n_classes = n;
    FKT_TRY(fkt_dataset_open(&lab->test, demo ? "demo:test" : path, &o));
out:
    fkt_free(names);
    return st;
}

/* Beside the split `train` of a set that the table does not have: the first of these two, else a hold-out. FKT_E_ARG:
 * it does not have that split. */
static fkt_status open_unknown_test(struct fkt_lab *lab, const char *path)
{
    static const char *const splits[] = {"test", "val"};
    for (size_t i = 0; i < 2; i++) {
        const struct set s = {.name = "", .test = splits[i]};
        const fkt_status st = open_test(lab, path, &s);
        if (st != FKT_OK && st != FKT_E_ARG) return st;
        if (st == FKT_OK && fkt_dataset_size(lab->test)) return FKT_OK;
        fkt_dataset_free(lab->test);
        lab->test = NULL;
    }
    return FKT_OK;
}

/* A set that has a split, but not `train`, has one alone, and its images are both: a part is held out. */
static fkt_status open_unknown(struct fkt_lab *lab, const char *path, struct fkt_dataset_options o)
{
    fkt_status st;
    o.split = "train";
    st = fkt_dataset_open(&lab->train, path, &o);
    if (st == FKT_OK) return open_unknown_test(lab, path);
    if (st != FKT_E_ARG) return st;
    o.split = NULL;
    return fkt_dataset_open(&lab->train, path, &o);
}

static size_t records_of(const struct fkt_experiment_options *o)
{
    return o->limit ? o->limit : o->quick ? QUICK_RECORDS : 0;
}

/* A test image of a class without training images would count as a mistake of whatever is tested. A limit below the
 * number of classes leaves some of them out, as it was asked for. */
static fkt_status check_classes(const struct fkt_lab *lab, const char *set)
{
    const size_t limit = records_of(&lab->options), k = fkt_dataset_classes(lab->train);
    uint8_t *has = NULL;
    fkt_status st = FKT_OK;
    if (!lab->test || (limit && limit < k)) return FKT_OK;
    FKT_TRY(fkt_alloc(&has, k));
    for (size_t i = 0; i < fkt_dataset_size(lab->train); i++) has[fkt_dataset_label(lab->train, i)] = 1;
    for (size_t i = 0; i < fkt_dataset_size(lab->test); i++) {
        const uint32_t label = fkt_dataset_label(lab->test, i);
        if (has[label]) continue;
        st = fkt_fail_hint(FKT_E_MISMATCH, "classes of both splits must have the same names",
                           "set '%s': test image '%s' is of class '%s', which has no training images", set,
                           fkt_dataset_name(lab->test, i), fkt_dataset_class(lab->train, label));
        goto out;
    }
out:
    fkt_free(has);
    return st;
}

void fkt_lab_close_set(struct fkt_lab *lab)
{
    fkt_dataset_free(lab->train);
    fkt_dataset_free(lab->test);
    lab->train = lab->test = NULL;
    lab->set[0] = '\0';
}

/* Records of a limit go by their number, so that arms of all adjacencies have the same ones. */
static fkt_status open_set(struct fkt_lab *lab, const char *name)
{
    const struct set *s = known(name);
    const int split = s && s->test && strcmp(name, "demo") != 0;
    const struct fkt_dataset_options o = {
        .split = split ? "train" : NULL, .limit = records_of(&lab->options), .limit_by_number = 1};
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_find(lab, name, &path));
    if (s) FKT_TRY(fkt_dataset_open(&lab->train, path, &o));
    else FKT_TRY(open_unknown(lab, path, o));
    if (s && s->test) FKT_TRY(open_test(lab, path, s));
    FKT_TRY(check_classes(lab, name));
    snprintf(lab->set, sizeof lab->set, "%s", name);
    FKT_TRY(fkt_lab_fingerprint(lab));
    if (lab->run) FKT_TRY(fkt_lab_note_set(lab));
out:
    fkt_free(path);
    if (st != FKT_OK) fkt_lab_close_set(lab);
    return st;
}

fkt_status fkt_lab_set(struct fkt_lab *lab, const char *name, struct fkt_lab_set *out)
{
    const struct set *s = known(name);
    fkt_status st = FKT_OK;
    if (strlen(name) >= sizeof lab->set) return fkt_fail(FKT_E_ARG, "'%.32s...' is not the name of a set", name);
    if (strcmp(lab->set, name) != 0) {
        fkt_lab_close_set(lab);
        FKT_TRY(open_set(lab, name));
    }
    *out = (struct fkt_lab_set){.name = name,
                                .sha256 = lab->set_sha256,
                                .data = lab->train,
                                .test = lab->test,
                                .holdout = lab->test ? 0 : HOLDOUT,
                                .size = s ? s->size : 32};
    FKT_TRY(fkt_lab_use(lab, name, lab->set_sha256));
    FKT_TRY(fkt_lab_note_limit(lab));
out:
    return st;
}
