/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c - opens an image set for a verb and prints what was found in it.
 *
 * The lines are for the user at this machine only: class counts are as private as the images. They reveal a set that
 * was opened one folder too high, and files that are not images. */
#include "cli/core/common.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdio.h>

enum { CLASSES_TOLD = 12 };

struct fkt_dataset_options cli_data_options(const struct cli_data *d)
{
    return (struct fkt_dataset_options){.split = d->split,
                                        .limit = (size_t)d->limit,
                                        .limit_by_number = d->limit_by_number,
                                        .skip_bad = d->skip_bad,
                                        .unlabelled = d->unlabelled,
                                        .fit = (enum fkt_fit)d->fit,
                                        .bits = d->bits > UINT32_MAX ? UINT32_MAX : (uint32_t)d->bits};
}

fkt_status cli_open_data(struct fkt_dataset **out, const struct cli_data *d, const struct fkt_task *task,
                         const struct cli_run *r)
{
    struct fkt_dataset_options o = cli_data_options(d);
    fkt_status st;
    if (task) {
        o.fit = task->fit;
        o.limit_by_number = fkt_adjacency_counts_public(task->privacy.adjacency);
        o.classes = (const char *const *)task->classes;
        o.n_classes = task->n_classes;
    }
    st = fkt_dataset_open(out, d->path, &o);
    return st == FKT_OK ? cli_print_dataset(*out, d->path, r) : st;
}

const char *cli_limit_remark(const struct cli_data *d, enum fkt_adjacency adjacency)
{
    if (!d->limit || fkt_adjacency_counts_public(adjacency)) return NULL;
    return "with --limit the promise covers the records that were kept; for the whole set it is weaker "
           "(docs/privacy.md, 'What --limit costs')";
}

void cli_print_limit(const struct cli_data *d, enum fkt_adjacency adjacency)
{
    const char *remark = cli_limit_remark(d, adjacency);
    if (remark) fprintf(stderr, "fedkt: %s\n", remark);
}

/* "12 images of 2 classes: a 7, b 5" */
static fkt_status add_classes(struct fkt_text *t, const struct fkt_dataset *ds)
{
    size_t n = fkt_dataset_size(ds), classes = fkt_dataset_classes(ds), *count = NULL;
    fkt_status st = fkt_alloc(&count, classes);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < n; i++) count[fkt_dataset_label(ds, i)]++;
    fkt_text_addf(t, "%zu image%s of %zu class%s:", n, n == 1 ? "" : "s", classes, classes == 1 ? "" : "es");
    for (size_t k = 0; k < classes && k < CLASSES_TOLD; k++)
        fkt_text_addf(t, "%s %s %zu", k ? "," : "", fkt_dataset_class(ds, k), count[k]);
    if (classes > CLASSES_TOLD) fkt_text_addf(t, " and %zu more", classes - CLASSES_TOLD);
    fkt_free(count);
    return FKT_OK;
}

/* ": 'a', 'b', 'c' and 11 more" */
static void add_skipped(struct fkt_text *t, const struct fkt_dataset *ds)
{
    size_t n = fkt_dataset_skipped(ds);
    fkt_text_addf(t, "skipped %zu file%s that %s not read as images:", n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
    for (size_t i = 0; i < n && i < FKT_DATASET_NAMED; i++)
        fkt_text_addf(t, "%s '%s'", i ? "," : "", fkt_dataset_skipped_name(ds, i));
    if (n > FKT_DATASET_NAMED) fkt_text_addf(t, " and %zu more", n - FKT_DATASET_NAMED);
}

/* Prints the line in t, and cuts it back to the prefix that every line has. */
static fkt_status say(struct fkt_text *t, size_t begin)
{
    fkt_status st = fkt_text_status(t);
    if (st != FKT_OK) return st;
    cli_say(t->s);
    t->len = begin;
    t->s[begin] = '\0';
    return FKT_OK;
}

fkt_status cli_print_dataset(const struct fkt_dataset *ds, const char *path, const struct cli_run *r)
{
    struct fkt_text t;
    const char *inside;
    size_t nested = fkt_dataset_nested(ds, &inside), begin;
    fkt_status st = FKT_OK;
    if (r->quiet) return FKT_OK;
    fkt_text_init(&t);
    fkt_text_addf(&t, "fedkt: '%s': ", path);
    begin = t.len;
    FKT_TRY(add_classes(&t, ds));
    FKT_TRY(say(&t, begin));
    if (fkt_dataset_skipped(ds)) {
        add_skipped(&t, ds);
        FKT_TRY(say(&t, begin));
    }
    if (nested) {
        fkt_text_addf(&t,
                      "%zu image%s in a folder inside a class folder, such as '%s'; if those folders are the classes, "
                      "give the folder that holds them",
                      nested, nested == 1 ? " lies" : "s lie", inside);
        FKT_TRY(say(&t, begin));
    }
out:
    fkt_text_clear(&t);
    return st;
}
