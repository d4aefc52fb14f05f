/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - all points of some cells, averaged over seeds: a row for each experiment, panel, arm and position.
 *
 * Cells come from files and are hostile: unknown experiments, numbers that are no numbers and names that are too long
 * are left out or cut. Mean and sample standard deviation; one seed has a deviation of 0 and says n = 1. */
#include "experiment/summary.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fkt_cell_text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "";
}

size_t fkt_summary_arm_place(const struct fkt_experiment *e, const char *name)
{
    const struct fkt_arm *arm;
    size_t i = 0;
    while ((arm = fkt_experiment_arm(e, i)) && strcmp(arm->name, name) != 0) i++;
    return i;
}

static size_t experiment_place(const struct fkt_experiment *e)
{
    size_t i = 0;
    while (fkt_experiment_at(i) && fkt_experiment_at(i) != e) i++;
    return i;
}

static fkt_status row_of(struct fkt_summary *s, const struct fkt_experiment *e, const json_t *cell, const json_t *point,
                         struct fkt_summary_row **out)
{
    const char *panel = fkt_cell_text(cell, "panel"), *arm = fkt_cell_text(cell, "arm"),
               *at = fkt_cell_text(point, "at"), *reference = fkt_cell_text(point, "reference");
    struct fkt_summary_row *r;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < s->n; i++) {
        r = &s->row[i];
        if (r->experiment == e && !strcmp(r->panel, panel) && !strcmp(r->arm_name, arm) && !strcmp(r->at, at) &&
            !strcmp(r->reference, reference)) {
            *out = r;
            return FKT_OK;
        }
    }
    if (s->n == s->cap) FKT_TRY(fkt_realloc(&s->row, s->cap = s->cap ? 2 * s->cap : 64));
    r = &s->row[s->n];
    memset(r, 0, sizeof *r);
    r->experiment = e;
    fkt_text_cut(r->panel, sizeof r->panel, panel);
    fkt_text_cut(r->arm_name, sizeof r->arm_name, arm);
    fkt_text_cut(r->arm, sizeof r->arm, fkt_cell_text(cell, "title"));
    fkt_text_cut(r->at, sizeof r->at, at);
    fkt_text_cut(r->reference, sizeof r->reference, reference);
    r->x = *reference ? HUGE_VAL : json_number_value(json_object_get(point, "x"));
    r->order = fkt_summary_arm_place(e, arm);
    FKT_TRY(fkt_alloc(&r->value, e->n_metrics));
    s->n++;
    *out = r;
out:
    return st;
}

static fkt_status add_value(struct fkt_summary_row *r, size_t m, const json_t *cell, double x)
{
    struct fkt_summary_value *v = &r->value[m];
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(cell, "seed"));
    fkt_status st;
    for (size_t i = 0; i < v->n; i++)
        if (v->each[i].seed == seed)
            return v->each[i].value == x
                       ? FKT_OK
                       : fkt_fail_hint(FKT_E_MISMATCH, "leave one of the runs out",
                                       "two cells of '%s', set '%s', arm '%s', seed %llu have different values at %s",
                                       fkt_cell_text(cell, "experiment"), fkt_cell_text(cell, "panel"),
                                       fkt_cell_text(cell, "arm"), (unsigned long long)seed,
                                       r->reference[0] ? r->reference : r->at);
    FKT_TRY(fkt_realloc(&v->each, v->n + 1));
    v->each[v->n++] = (struct fkt_summary_seed){seed, x};
out:
    return st;
}

static int by_seed(const void *pa, const void *pb)
{
    const struct fkt_summary_seed *a = pa, *b = pb;
    return a->seed < b->seed ? -1 : a->seed > b->seed;
}

/* In the order of seeds: the same bits whatever order the cells came in. Equal values have a deviation of exactly 0. */
static void average(struct fkt_summary_value *v)
{
    double sum = 0, squares = 0;
    if (!v->n) return;
    qsort(v->each, v->n, sizeof *v->each, by_seed);
    for (size_t i = 0; i < v->n; i++) sum += v->each[i].value - v->each[0].value;
    v->mean = v->each[0].value + sum / (double)v->n;
    for (size_t i = 0; i < v->n; i++) squares += (v->each[i].value - v->mean) * (v->each[i].value - v->mean);
    v->deviation = v->n > 1 ? sqrt(squares / (double)(v->n - 1)) : 0;
}

static fkt_status add_point(struct fkt_summary *s, const struct fkt_experiment *e, const json_t *cell,
                            const json_t *point)
{
    const json_t *values = json_object_get(point, "values");
    const char *given = fkt_cell_text(json_object_get(point, "facts"), "moments_sha256");
    const char *moments = given[strspn(given, "0123456789abcdef")] ? "" : given; /* a hash, or nothing */
    struct fkt_summary_row *r;
    fkt_status st;
    FKT_TRY(row_of(s, e, cell, point, &r));
    for (size_t m = 0; m < e->n_metrics; m++) {
        const json_t *v = json_object_get(values, fkt_metric_key(&e->metric[m]));
        if (json_is_number(v) && isfinite(json_number_value(v))) FKT_TRY(add_value(r, m, cell, json_number_value(v)));
    }
    if (*moments && !r->moments[0] && !r->differ) fkt_text_cut(r->moments, sizeof r->moments, moments);
    else if (*moments && strcmp(r->moments, moments) != 0) r->differ = 1, r->moments[0] = '\0';
    if (*moments) FKT_TRY(fkt_summary_moments_note(s, e, cell, moments));
out:
    return st;
}

static int compare(const void *pa, const void *pb)
{
    const struct fkt_summary_row *a = pa, *b = pb;
    const size_t ea = experiment_place(a->experiment), eb = experiment_place(b->experiment);
    int c;
    if (ea != eb) return ea < eb ? -1 : 1;
    c = strcmp(a->panel, b->panel);
    if (c) return c;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    c = strcmp(a->arm_name, b->arm_name);
    if (c) return c;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return strcmp(a->at, b->at) ? strcmp(a->at, b->at) : strcmp(a->reference, b->reference);
}

fkt_status fkt_summary_make(struct fkt_summary *out, const json_t *cells)
{
    size_t i, k;
    const json_t *cell, *point;
    fkt_status st = FKT_OK;
    memset(out, 0, sizeof *out);
    json_array_foreach (cells, i, cell) {
        const struct fkt_experiment *e = fkt_experiment_find(fkt_cell_text(cell, "experiment"));
        if (!e) continue;
        FKT_TRY(fkt_summary_source_note(out, e, cell));
        json_array_foreach (json_object_get(cell, "points"), k, point) FKT_TRY(add_point(out, e, cell, point));
    }
    for (size_t r = 0; r < out->n; r++)
        for (size_t m = 0; m < out->row[r].experiment->n_metrics; m++) average(&out->row[r].value[m]);
    fkt_summary_source_sort(out);
    fkt_summary_moments_sort(out);
    if (out->n) qsort(out->row, out->n, sizeof *out->row, compare);
out:
    if (st != FKT_OK) fkt_summary_clear(out);
    return st;
}

void fkt_summary_clear(struct fkt_summary *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t m = 0; m < s->row[i].experiment->n_metrics; m++) fkt_free(s->row[i].value[m].each);
        fkt_free(s->row[i].value);
    }
    fkt_free(s->row);
    fkt_free(s->source);
    fkt_free(s->moments);
    fkt_free(s->input);
    memset(s, 0, sizeof *s);
}

size_t fkt_summary_positions(const struct fkt_summary *s, const struct fkt_experiment *e, struct fkt_position *out,
                             char (*label)[48], size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct fkt_summary_row *r = &s->row[i];
        size_t k = 0, to;
        if (r->experiment != e || r->reference[0]) continue;
        while (k < n && strcmp(label[k], r->at) != 0) k++;
        if (k < n || n >= cap) continue;
        for (to = n; to > 0 && out[to - 1].x > r->x; to--) {
            out[to] = out[to - 1];
            memcpy(label[to], label[to - 1], sizeof *label);
        }
        out[to] = (struct fkt_position){.x = r->x};
        memcpy(label[to], r->at, sizeof *label);
        n++;
    }
    return n;
}

const struct fkt_summary_row *fkt_summary_find(const struct fkt_summary *s, const struct fkt_experiment *e,
                                               const char *panel, const char *arm, const char *at,
                                               const char *reference)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct fkt_summary_row *r = &s->row[i];
        if (r->experiment == e && !strcmp(r->panel, panel) && !strcmp(r->arm_name, arm) &&
            (reference ? r->reference[0] && (!*reference || !strcmp(r->reference, reference))
                       : !r->reference[0] && !strcmp(r->at, at)))
            return r;
    }
    return NULL;
}

int fkt_summary_references(const struct fkt_summary *s, const struct fkt_experiment *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].experiment == e && s->row[i].reference[0]) return 1;
    return 0;
}
