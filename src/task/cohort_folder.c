/* SPDX-License-Identifier: Apache-2.0 */
/* cohort_folder.c - the tasks of all cohorts, from the folder that `fedkt task new --cohort-size` has written.
 *
 *   cohort-0000.json, cohort-0001.json, ...  -> each of its cohort? one division? every enrolled site in one of them?
 *
 * Each task is checked by itself when it is read (division.c): a key in the wrong cohort makes it invalid. What only
 * the reader of all of them can see is checked here. */
#include "fedkt/cohorts.h"

#include "task/division.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

static const char unchanged[] = "give a folder that was made for a task in cohorts, unchanged";

struct fkt_cohorts {
    uint32_t n;
    struct fkt_task *task; /* (n) owned, as the next */
    char **file;           /* (n) */
};

static fkt_status load_one(struct fkt_task *out, char **path, const char *folder, uint32_t i)
{
    char name[32];
    fkt_status st;
    snprintf(name, sizeof name, "cohort-%04u.json", i);
    FKT_TRY(fkt_path_join(path, folder, name));
    FKT_TRY(fkt_task_load_into(out, *path));
    if (out->division.number && out->division.index == i) goto out;
    st = fkt_fail_hint(FKT_E_MISMATCH, unchanged, "'%s' is not the task of cohort %u", *path, i);
out:
    return st;
}

static fkt_status make_room(struct fkt_cohorts *c, const char *folder)
{
    struct fkt_task first = {0};
    char *path = NULL;
    fkt_status st;
    FKT_TRY(load_one(&first, &path, folder, 0));
    if (first.division.number > FKT_COHORTS_MAX)
        FKT_TRY(fkt_fail_hint(FKT_E_ARG, "make fewer, larger cohorts", "%u cohorts; one process serves at most %u",
                              first.division.number, FKT_COHORTS_MAX));
    FKT_TRY(fkt_alloc(&c->task, first.division.number));
    FKT_TRY(fkt_alloc(&c->file, first.division.number));
    c->n = first.division.number;
out:
    fkt_task_clear(&first);
    fkt_free(path);
    return st;
}

static fkt_status check_same(const struct fkt_cohorts *c)
{
    char first[FKT_SHA256_HEX], own[FKT_SHA256_HEX];
    fkt_status st;
    FKT_TRY(fkt_task_sum_sha256(&c->task[0], first));
    for (uint32_t i = 1; i < c->n; i++) {
        FKT_TRY(fkt_task_sum_sha256(&c->task[i], own));
        if (strcmp(first, own) != 0)
            FKT_TRY(fkt_fail_hint(FKT_E_MISMATCH, unchanged, "'%s' is of another division than '%s'", c->file[i],
                                  c->file[0]));
    }
out:
    return st;
}

/* Every enrolled site is in the task of its cohort. */
static fkt_status check_rosters(const struct fkt_cohorts *c, const char *folder)
{
    struct fkt_division_keys keys = {0};
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < c->n; i++) FKT_TRY(fkt_division_keys_add(&keys, &c->task[i].federation));
    FKT_TRY(fkt_division_keys_check(&keys, &c->task[0].division));
out:
    fkt_division_keys_clear(&keys);
    if (st != FKT_E_MISMATCH) return st;
    return fkt_hint(fkt_fail_in(st, "'%s'", folder), unchanged);
}

fkt_status fkt_cohorts_load(struct fkt_cohorts **out, const char *folder)
{
    struct fkt_cohorts *c = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&c, 1));
    FKT_TRY(make_room(c, folder));
    for (uint32_t i = 0; i < c->n; i++) FKT_TRY(load_one(&c->task[i], &c->file[i], folder, i));
    FKT_TRY(check_same(c));
    FKT_TRY(check_rosters(c, folder));
    *out = c;
    c = NULL;
out:
    fkt_cohorts_free(c);
    return st;
}

void fkt_cohorts_free(struct fkt_cohorts *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->n; i++) {
        fkt_task_clear(&c->task[i]);
        fkt_free(c->file[i]);
    }
    fkt_free(c->task);
    fkt_free(c->file);
    fkt_free(c);
}

uint32_t fkt_cohorts_number(const struct fkt_cohorts *c) { return c->n; }

const struct fkt_task *fkt_cohorts_task(const struct fkt_cohorts *c, uint32_t i)
{
    return i < c->n ? &c->task[i] : NULL;
}

const char *fkt_cohorts_file(const struct fkt_cohorts *c, uint32_t i) { return i < c->n ? c->file[i] : NULL; }

uint32_t fkt_task_cohort_of(const struct fkt_task *t, const uint8_t key[FKT_SA_KEY])
{
    const struct fkt_division *d = &t->division;
    return d->number ? fkt_division_cohort(d->seed, d->number, key) : FKT_DIVISION_WHOLE;
}

fkt_status fkt_task_sum_sha256(const struct fkt_task *t, char out[FKT_SHA256_HEX])
{
    struct fkt_task whole = {0};
    fkt_status st = fkt_task_whole(&whole, t);
    if (st != FKT_OK) return st;
    memcpy(out, whole.sha256, FKT_SHA256_HEX);
    fkt_task_clear(&whole);
    return FKT_OK;
}
