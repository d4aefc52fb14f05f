/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the folder of a run: plan.json says what was asked for, cells/KEY.json has the points of one cell.
 *
 * Files appear whole or not at all (base/file.c), so a run that is killed loses the cell that it was working on and
 * no other. The cells that a document's tables are made of are kept in one file for each experiment, a cell a line.
 * Cells hold neither times nor dates (those of experiments that measure time do, among their points): a
 * run that goes on writes the bytes that an undisturbed one writes. */
#include "experiment/store.h"

#include "experiment/lab.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELL_MAX = 1 << 20, KEPT_MAX = 64 << 20 };
#define VALUE_MAX 1e15

fkt_status fkt_store_write(const char *path, json_t *j, size_t format, int flags)
{
    char *text = j ? json_dumps(j, format | JSON_REAL_PRECISION(17)) : NULL;
    fkt_status st;
    json_decref(j);
    if (!text) return fkt_fail(FKT_E_NOMEM, "out of memory while writing '%s', or a name in it is not UTF-8", path);
    st = fkt_file_write(path, text, strlen(text), flags);
    free(text);
    return st;
}

static json_t *plan_json(const struct fkt_experiment_options *o)
{
    json_t *names = json_array(), *seeds = json_array(), *sets = json_array(), *arms = json_array(), *plan;
    for (size_t i = 0; i < o->n_experiments; i++) json_array_append_new(names, json_string(o->experiments[i]->name));
    for (size_t i = 0; i < o->n_seeds; i++) json_array_append_new(seeds, json_integer((json_int_t)o->seed[i]));
    for (size_t i = 0; i < o->n_sets; i++) json_array_append_new(sets, json_string(o->sets[i]));
    for (size_t i = 0; i < o->n_arms; i++) json_array_append_new(arms, json_string(o->arms[i]));
    plan = json_pack("{s:s s:s s:o s:b s:b s:o s:o s:s}", "schema", "fedkt.experiment/1", "version", fkt_version(),
                     "experiments", names, "quick", o->quick, "embedded", !o->data, "seeds", seeds, "sets", sets,
                     "network", o->network ? fkt_architecture_name((enum fkt_architecture)(o->network - 1)) : "none");
    if (plan && o->rounds) json_object_set_new(plan, "rounds", json_integer(o->rounds));
    if (plan && o->per_class) json_object_set_new(plan, "per_class", json_integer((json_int_t)o->per_class));
    if (plan && o->n_arms) json_object_set(plan, "arms", arms);
    json_decref(arms);
    if (plan && o->limit) json_object_set_new(plan, "limit", json_integer((json_int_t)o->limit));
    return plan;
}

/* A key in which two plans differ; "": there is none. */
static const char *difference(json_t *a, json_t *b)
{
    const char *key;
    json_t *v;
    json_object_foreach (a, key, v)
        if (!json_equal(v, json_object_get(b, key))) return key;
    json_object_foreach (b, key, v)
        if (!json_object_get(a, key)) return key;
    return "";
}

/* The plan of the folder must be the one that this run would write. */
static fkt_status compare_plan(const char *path, const struct fkt_experiment_options *o)
{
    json_t *mine = plan_json(o), *there = NULL;
    uint8_t *text = NULL;
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_file_read(&text, &len, path, CELL_MAX));
    there = json_loadb((const char *)text, len, JSON_REJECT_DUPLICATES, NULL);
    if (!mine) st = fkt_fail(FKT_E_NOMEM, "out of memory while reading '%s'", path);
    else if (!json_is_object(there))
        st = fkt_fail_hint(FKT_E_FORMAT, "choose another folder", "'%s' is not the plan of an experiment", path);
    else if (!json_equal(mine, there))
        st = fkt_fail_hint(FKT_E_MISMATCH, "go on with the options of the first run, or choose another folder",
                           "'%s' is of a run with other options: '%s' differs", path, difference(mine, there));
out:
    json_decref(mine);
    json_decref(there);
    fkt_free(text);
    return st;
}

/* *empty: so is a folder that is not there. */
static fkt_status is_empty(const char *folder, int *empty)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (!d && errno != ENOENT) return fkt_io_fail("open", folder);
    while (d && n < 3 && readdir(d)) n++;
    if (d) closedir(d);
    *empty = n <= 2;
    return FKT_OK;
}

static fkt_status check_cells(const char *folder);

fkt_status fkt_store_begin(const char *folder, const struct fkt_experiment_options *o, int resume)
{
    char *plan = NULL, *cells = NULL;
    struct stat sb;
    int empty;
    fkt_status st;
    FKT_TRY(fkt_experiment_check(o));
    FKT_TRY(fkt_path_join(&plan, folder, "plan.json"));
    FKT_TRY(fkt_path_join(&cells, folder, "cells"));
    if (resume && stat(plan, &sb) == 0) {
        FKT_TRY(compare_plan(plan, o));
        FKT_TRY(fkt_lab_check_sets(o, folder));
        FKT_TRY(fkt_mkdirs(cells)); /* a run may have been killed before it was made */
        FKT_TRY(check_cells(cells));
        goto out;
    }
    FKT_TRY(is_empty(folder, &empty));
    if (!empty) {
        st = fkt_fail(FKT_E_EXISTS,
                      resume ? "'%s' is not empty, and has no plan of an experiment" : "'%s' is not empty", folder);
        goto out;
    }
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_store_write(plan, plan_json(o), JSON_INDENT(1), 0));
    FKT_TRY(fkt_mkdirs(cells));
out:
    fkt_free(plan);
    fkt_free(cells);
    return st;
}

static fkt_status path_of(char **out, const char *folder, const struct fkt_cell *c)
{
    char name[FKT_CELL_KEY + 16];
    snprintf(name, sizeof name, "cells/%s.json", c->key);
    return fkt_path_join(out, folder, name);
}

int fkt_store_has(const char *folder, const struct fkt_cell *c)
{
    char *path = NULL;
    const int there = path_of(&path, folder, c) == FKT_OK && access(path, R_OK) == 0;
    fkt_free(path);
    return there;
}

/* What a reader must know of the machine: it is the same for all cells of one machine. */
static json_t *machine_json(const struct fkt_experiment_options *o)
{
    struct fkt_device_facts f;
    char device[64], name[96];
    if (fkt_device_describe(o->device, &f) != FKT_OK) f.name[0] = '\0';
    fkt_text_cut(device, sizeof device, f.name); /* so that readers, who cut names too, find the threads */
    snprintf(name, sizeof name, "%s, %u thread%s", device, o->threads, o->threads == 1 ? "" : "s");
    return json_string(name);
}

static void note_rounds(json_t *j, const struct fkt_cell *c, const struct fkt_experiment_options *o)
{
    const uint32_t usual = o->quick ? c->experiment->rounds_quick : c->experiment->rounds;
    if (c->arm->rounds && o->rounds && o->rounds != usual) json_object_set_new(j, "rounds", json_integer(o->rounds));
}

fkt_status fkt_store_put(const char *folder, const struct fkt_cell *c, json_t *points,
                         const struct fkt_experiment_options *o, const json_t *notes)
{
    char *path = NULL;
    json_t *j = NULL;
    fkt_status st;
    FKT_TRY(path_of(&path, folder, c));
    j = json_pack("{s:s s:s s:s s:s s:s s:s s:I s:b s:o s:O}", "schema", "fedkt.cell/1", "version", fkt_version(),
                  "experiment", c->experiment->name, "panel", c->panel, "arm", c->arm->name, "title", c->arm->title,
                  "seed", (json_int_t)c->seed, "quick", o->quick, "machine", machine_json(o), "points", points);
    if (j) note_rounds(j, c, o);
    if (j && notes && json_object_update(j, (json_t *)notes) != 0) {
        json_decref(j);
        j = NULL;
    }
    FKT_TRY(fkt_store_write(path, j, JSON_INDENT(1), FKT_FILE_REPLACE));
out:
    json_decref(points);
    fkt_free(path);
    return st;
}

int fkt_store_is_json(const struct dirent *d) { return fkt_ends_in(d->d_name, ".json") && d->d_name[0] != '.'; }

/* Its values are numbers that a table can print. */
static int is_point(const json_t *point)
{
    json_t *values = json_object_get(point, "values"), *v;
    const char *key;
    json_object_foreach (values, key, v)
        if (!json_is_number(v) || !(fabs(json_number_value(v)) <= VALUE_MAX)) return 0;
    return json_object_size(values) > 0;
}

static int is_cell(const json_t *j)
{
    const char *schema = json_string_value(json_object_get(j, "schema"));
    const json_t *seed = json_object_get(j, "seed"), *points = json_object_get(j, "points"), *point;
    size_t i;
    if (!json_is_integer(seed) || json_integer_value(seed) < 0 || !schema || strcmp(schema, "fedkt.cell/1") != 0)
        return 0;
    json_array_foreach (points, i, point)
        if (!is_point(point)) return 0;
    return json_array_size(points) > 0;
}

/* line: its number among those of the file; 0: the file is the cell. */
static fkt_status add_cell(json_t *into, const char *text, size_t len, const char *path, size_t line)
{
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    fkt_status st = FKT_OK;
    if (!is_cell(j))
        st = line ? fkt_fail(FKT_E_FORMAT, "line %zu of '%s' is not a cell of an experiment", line, path)
                  : fkt_fail_hint(FKT_E_FORMAT, "delete it: a run that goes on computes it again",
                                  "'%s' is not a cell of an experiment", path);
    else if (json_array_append(into, j) != 0) st = fkt_fail(FKT_E_NOMEM, "out of memory while reading '%s'", path);
    json_decref(j);
    return st;
}

/* One cell, or one in each line. */
static fkt_status read_cells(const char *path, int lines, json_t *into)
{
    uint8_t *text = NULL;
    const char *at, *end;
    size_t len, line = 0;
    fkt_status st;
    FKT_TRY(fkt_file_read(&text, &len, path, lines ? KEPT_MAX : CELL_MAX));
    at = (const char *)text;
    for (const char *stop = at + len; at < stop; at = end + 1) {
        end = lines ? memchr(at, '\n', (size_t)(stop - at)) : NULL;
        if (!end) end = stop;
        FKT_TRY(add_cell(into, at, (size_t)(end - at), path, lines ? ++line : 0));
    }
    if (!len)
        st = fkt_fail_hint(FKT_E_FORMAT, lines ? "" : "delete it: a run that goes on computes it again",
                           "'%s' is empty", path);
out:
    fkt_free(text);
    return st;
}

static int is_kept(const struct dirent *d) { return fkt_ends_in(d->d_name, ".jsonl") && d->d_name[0] != '.'; }

/* All files of a folder that `choose` takes, by name. */
static fkt_status read_folder(const char *folder, int (*choose)(const struct dirent *), json_t *into)
{
    struct dirent **list = NULL;
    char *path = NULL;
    const int n = scandir(folder, &list, choose, alphasort);
    fkt_status st = n < 0 ? fkt_io_fail("read", folder) : FKT_OK;
    for (int i = 0; i < n && st == FKT_OK; i++) {
        st = fkt_path_join(&path, folder, list[i]->d_name);
        if (st == FKT_OK) st = read_cells(path, choose == is_kept, into);
        fkt_free(path);
        path = NULL;
    }
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
    return st;
}

/* Those of a run that goes on, before it computes others. */
static fkt_status check_cells(const char *folder)
{
    json_t *cells = json_array();
    const fkt_status st = cells ? read_folder(folder, fkt_store_is_json, cells)
                                : fkt_fail(FKT_E_NOMEM, "out of memory while reading '%s'", folder);
    json_decref(cells);
    return st;
}

fkt_status fkt_store_read(const char *place, json_t **out)
{
    char *cells = NULL;
    json_t *all = json_array();
    struct stat sb;
    fkt_status st;
    *out = NULL;
    if (!all) return fkt_fail(FKT_E_NOMEM, "out of memory while reading '%s'", place);
    FKT_TRY(fkt_path_join(&cells, place, "cells"));
    if (fkt_ends_in(place, ".jsonl")) FKT_TRY(read_cells(place, 1, all));
    else if (stat(cells, &sb) == 0) FKT_TRY(read_folder(cells, fkt_store_is_json, all));
    else {
        FKT_TRY(read_folder(place, is_kept, all));
        if (!json_array_size(all)) st = fkt_fail(FKT_E_FORMAT, "'%s' has no cells of an experiment", place);
        if (st != FKT_OK) goto out;
    }
    *out = all;
    all = NULL;
out:
    json_decref(all);
    fkt_free(cells);
    return st;
}

/* ---- kept cells ---- */

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static char *line_of(const json_t *cell)
{
    return json_dumps(cell, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
}

/* All cells that are kept there already must be among the lines. */
static fkt_status lose_nothing(const char *path, char *const *line, size_t n)
{
    json_t *old = json_array();
    const json_t *cell;
    size_t i;
    fkt_status st = FKT_OK;
    if (access(path, F_OK) == 0) FKT_TRY(read_cells(path, 1, old));
    json_array_foreach (old, i, cell) {
        char *text = line_of(cell);
        const int there = text && bsearch(&text, line, n, sizeof *line, by_text);
        free(text);
        if (!there) {
            st = fkt_fail_hint(FKT_E_EXISTS, "name that file among the cells of the report, or delete it first",
                               "'%s' keeps cells that are not among these", path);
            goto out;
        }
    }
out:
    json_decref(old);
    return st;
}

/* Lines in the order of their bytes, each once: the file depends on the cells alone, not on their folders. */
static fkt_status keep_one(const char *folder, const char *name, const json_t *cells)
{
    const size_t n = json_array_size(cells);
    char file[96], *path = NULL, **line = NULL;
    struct fkt_text t;
    const json_t *cell;
    size_t i, lines = 0;
    fkt_status st;
    fkt_text_init(&t);
    FKT_TRY(fkt_alloc(&line, n));
    json_array_foreach (cells, i, cell) {
        const char *of = json_string_value(json_object_get(cell, "experiment"));
        if (!of || strcmp(of, name) != 0) continue;
        line[lines] = line_of(cell);
        if (!line[lines++]) {
            st = fkt_fail(FKT_E_NOMEM, "out of memory for the cells of '%s'", name);
            goto out;
        }
    }
    if (!lines) goto out;
    qsort(line, lines, sizeof *line, by_text);
    snprintf(file, sizeof file, "%s.jsonl", name);
    FKT_TRY(fkt_path_join(&path, folder, file));
    FKT_TRY(lose_nothing(path, line, lines));
    for (i = 0; i < lines; i++)
        if (!i || strcmp(line[i], line[i - 1]) != 0) fkt_text_addf(&t, "%s\n", line[i]);
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_file_write(path, t.s, t.len, FKT_FILE_REPLACE));
out:
    for (i = 0; line && i < n; i++) free(line[i]);
    fkt_free(line);
    fkt_free(path);
    fkt_text_clear(&t);
    return st;
}

fkt_status fkt_store_keep(const char *folder, const json_t *cells)
{
    const struct fkt_experiment *e;
    fkt_status st = fkt_mkdirs(folder);
    for (size_t i = 0; st == FKT_OK && (e = fkt_experiment_at(i)); i++) st = keep_one(folder, e->name, cells);
    return st;
}
