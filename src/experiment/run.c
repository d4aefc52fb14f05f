/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - runs the cells of a folder that are not there yet.
 *
 * A cell that fails (data missing, weights missing, a set that cannot be read) is skipped with its reason, and the
 * others go on. A stop and a lack of memory end the run, and so does a folder that refuses a file: cells after it would
 * be computed for nothing. What was skipped is not a cell: the next run tries it again. */
#include "experiment/store.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/meter.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fkt_status compute(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    fkt_lab_begin_cell(lab);
    return c->arm->kind == FKT_ARM_REAL ? fkt_lab_real(lab, c, points) : c->experiment->run(lab, c, points);
}

static int ends_run(const struct fkt_lab *lab, fkt_status st)
{
    return st == FKT_E_STOPPED || st == FKT_E_NOMEM || (st != FKT_OK && fkt_lab_unwritable(lab));
}

/* Sentence and hint may name a path that is not UTF-8. */
static fkt_status skip(const struct fkt_experiment_run *run, const struct fkt_cell *c, json_t *skipped)
{
    char words[512], why[768], hint[512];
    const struct fkt_skip s = {why, hint};
    fkt_text_cut(why, sizeof why, fkt_error_text());
    if (run->hint) run->hint(words, sizeof words);
    fkt_text_cut(hint, sizeof hint, run->hint ? words : fkt_error_hint());
    if (json_array_append_new(
            skipped, json_pack("{s:s s:s s:s*}", "cell", c->key, "why", why, "hint", hint[0] ? hint : NULL)) != 0)
        return fkt_fail(FKT_E_NOMEM, "out of memory while noting a cell that was skipped");
    if (run->done) run->done(run->ctx, c, &s);
    return FKT_OK;
}

static fkt_status one(const struct fkt_experiment_run *run, struct fkt_lab *lab, const struct fkt_cell *c,
                      json_t *skipped)
{
    json_t *points = json_array();
    fkt_status st = points ? compute(lab, c, points) : fkt_fail(FKT_E_NOMEM, "out of memory for the points of a cell");
    if (st != FKT_OK && !ends_run(lab, st)) {
        st = skip(run, c, skipped);
        goto out;
    }
    if (st == FKT_OK)
        FKT_TRY(fkt_store_put(run->folder, c, json_incref(points), fkt_lab_options(lab), fkt_lab_notes(lab)));
    if (st == FKT_OK && run->done) run->done(run->ctx, c, NULL);
out:
    json_decref(points);
    return st;
}

/* skipped.json; a process among several writes skipped-RANK.json, and the first one joins them afterwards. */
static fkt_status skipped_path(const struct fkt_experiment_run *run, uint32_t rank, char **path)
{
    char name[48] = "skipped.json";
    if (run->ranks > 1 && rank < run->ranks) snprintf(name, sizeof name, "skipped-%u.json", rank);
    return fkt_path_join(path, run->folder, name);
}

static fkt_status write_skipped(const struct fkt_experiment_run *run, uint32_t rank, const json_t *skipped)
{
    char *text = json_dumps(skipped, JSON_INDENT(1)), *path = NULL;
    fkt_status st;
    FKT_TRY(skipped_path(run, rank, &path));
    st = text ? fkt_file_write(path, text, strlen(text), FKT_FILE_REPLACE)
              : fkt_fail(FKT_E_NOMEM, "out of memory while writing '%s'", path);
out:
    free(text);
    fkt_free(path);
    return st;
}

fkt_status fkt_experiment_gather(const struct fkt_experiment_run *run, json_t *skipped)
{
    json_t *more = NULL;
    char *path = NULL;
    fkt_status st = FKT_OK;
    if (run->ranks == 1) return FKT_OK;
    for (uint32_t r = 0; r < run->ranks; r++) {
        FKT_TRY(skipped_path(run, r, &path));
        more = r == run->rank ? NULL : json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        if (more) json_array_extend(skipped, more);
        json_decref(more);
        fkt_remove_tree(path);
        fkt_free(path);
        path = NULL;
    }
    FKT_TRY(write_skipped(run, run->ranks, skipped));
out:
    fkt_free(path);
    return st;
}

fkt_status fkt_experiment_run(const struct fkt_experiment_run *run, json_t **skipped)
{
    struct fkt_cell *cells = NULL;
    struct fkt_lab *lab = NULL;
    struct fkt_meter meter;
    size_t n = 0;
    fkt_status st;
    fkt_meter_init(&meter, run->cells, "cells", 0);
    *skipped = json_array();
    if (!*skipped) return fkt_fail(FKT_E_NOMEM, "out of memory for the list of cells");
    FKT_TRY(fkt_experiment_check(run->options));
    FKT_TRY(fkt_experiment_cells(run->options, &cells, &n));
    for (size_t i = run->rank; i < n; i += run->ranks) meter.total += !fkt_store_has(run->folder, &cells[i]);
    FKT_TRY(fkt_lab_new(&lab, run->options, run->folder, run->encodings));
    for (size_t i = run->rank; i < n; i += run->ranks) {
        if (fkt_store_has(run->folder, &cells[i])) continue;
        FKT_TRY(one(run, lab, &cells[i], *skipped));
        FKT_TRY(fkt_meter_add(&meter, 1));
    }
    FKT_TRY(write_skipped(run, run->rank, *skipped));
out:
    fkt_meter_clear(&meter);
    fkt_lab_free(lab);
    fkt_free(cells);
    return st;
}
