/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - the summary of an experiment as CSV (a line for each number), as JSON, and as a Markdown table whose
 * columns are positions, with the paper's published figures below.
 *
 * Markdown is for documents that people read from top to bottom: it has fewer rows than the others. */
#include "experiment/summary.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 16 };

void fkt_value_text(char out[32], const struct fkt_summary_value *v, const struct fkt_metric *m)
{
    if (!v->n) snprintf(out, 32, "%s", "");
    else if (v->n > 1 && v->deviation > 0)
        snprintf(out, 32, "%.*f \xc2\xb1 %.*f", m->digits, m->scale * v->mean, m->digits, m->scale * v->deviation);
    else snprintf(out, 32, "%.*f", m->digits, m->scale * v->mean);
}

int fkt_summary_fewer(const struct fkt_summary *s, const struct fkt_summary_row *r, size_t m)
{
    for (size_t i = 0; i < s->n_sources; i++)
        if (s->source[i].experiment == r->experiment && !strcmp(s->source[i].panel, r->panel))
            return r->value[m].n && r->value[m].n < s->source[i].n_seeds;
    return 0;
}

void fkt_row_text(char out[48], const struct fkt_summary *s, const struct fkt_summary_row *r, size_t m)
{
    const size_t n = r ? r->value[m].n : 0;
    char value[32] = "";
    if (r) fkt_value_text(value, &r->value[m], &r->experiment->metric[m]);
    if (r && fkt_summary_fewer(s, r, m)) snprintf(out, 48, "%s (%zu seed%s)", value, n, n == 1 ? "" : "s");
    else snprintf(out, 48, "%s", value);
}

/* RFC 4180. Cells of others may hold anything. */
static void csv_field(struct fkt_text *t, const char *s)
{
    const char *quote = s[strcspn(s, ",\"\r\n")] ? "\"" : "";
    fkt_text_add(t, quote);
    for (; *s; s++) fkt_text_addf(t, *s == '"' ? "\"\"" : "%c", *s);
    fkt_text_addf(t, "%s,", quote);
}

void fkt_markdown_text(struct fkt_text *t, const char *s)
{
    for (; *s; s++) {
        if (*s == '<') fkt_text_add(t, "&lt;");
        else if (*s == '>') fkt_text_add(t, "&gt;");
        else if (*s == '|' || *s == '\\' || *s == '`' || *s == '[' || *s == ']') fkt_text_addf(t, "\\%c", *s);
        else fkt_text_addf(t, "%c", (unsigned char)*s < ' ' ? ' ' : *s);
    }
}

void fkt_table_csv(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e)
{
    char number[FKT_DOUBLE_TEXT];
    fkt_text_add(t, "experiment,panel,arm,at,reference,measure,seeds,mean,deviation,moments_sha256\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct fkt_summary_row *r = &s->row[i];
        for (size_t m = 0; r->experiment == e && m < e->n_metrics; m++) {
            const struct fkt_summary_value *v = &r->value[m];
            if (!v->n) continue;
            csv_field(t, e->name);
            csv_field(t, r->panel);
            csv_field(t, r->arm);
            csv_field(t, r->at);
            csv_field(t, r->reference);
            csv_field(t, fkt_metric_key(&e->metric[m]));
            fkt_double_text(number, v->mean);
            fkt_text_addf(t, "%zu,%s,", v->n, number);
            fkt_double_text(number, v->deviation);
            fkt_text_addf(t, "%s,%s\n", number, r->moments);
        }
    }
}

static json_t *values_json(const struct fkt_summary_row *r)
{
    json_t *j = json_object();
    for (size_t m = 0; m < r->experiment->n_metrics; m++)
        if (r->value[m].n)
            json_object_set_new(j, fkt_metric_key(&r->experiment->metric[m]),
                                json_pack("{s:I s:f s:f}", "seeds", (json_int_t)r->value[m].n, "mean", r->value[m].mean,
                                          "deviation", r->value[m].deviation));
    return j;
}

/* By panel, of those that had something else than the usual. */
static json_t *settings_json(const struct fkt_summary *s, const struct fkt_experiment *e)
{
    json_t *all = json_object(), *one;
    for (size_t i = 0; i < s->n_sources; i++) {
        if (s->source[i].experiment != e) continue;
        one = fkt_summary_source_settings(&s->source[i]);
        if (json_object_size(one)) json_object_set(all, s->source[i].panel, one);
        json_decref(one);
    }
    return all;
}

fkt_status fkt_table_json(char **out, const struct fkt_summary *s, const struct fkt_experiment *e)
{
    const int invariant = e->invariant ? fkt_summary_invariant(s, e, NULL) : -1;
    const struct fkt_summary_source source = fkt_summary_source_all(s, e);
    json_t *rows = json_array(), *j;
    struct fkt_text seeds, version, machine;
    char *text;
    fkt_status st;
    fkt_text_init(&seeds);
    fkt_text_init(&version);
    fkt_text_init(&machine);
    fkt_summary_source_names(&version, &source.version, ", ", fkt_text_add);
    fkt_summary_source_names(&machine, &source.machine, " and ", fkt_text_add);
    fkt_summary_source_seeds(&seeds, &source);
    for (size_t i = 0; i < s->n; i++) {
        const struct fkt_summary_row *r = &s->row[i];
        if (r->experiment != e) continue;
        j = json_pack("{s:s s:s s:s s:o}", "panel", r->panel, "arm", r->arm_name, "title", r->arm, "values",
                      values_json(r));
        if (r->reference[0]) json_object_set_new(j, "reference", json_string(r->reference));
        else json_object_set_new(j, "x", json_real(r->x)), json_object_set_new(j, "at", json_string(r->at));
        if (r->moments[0]) json_object_set_new(j, "moments_sha256", json_string(r->moments));
        json_array_append_new(rows, j);
    }
    j = json_pack("{s:s s:s s:s s:s s:s s:s s:s s:b s:o}", "schema", "fedkt.table/1", "experiment", e->name, "paper",
                  e->paper, "version", version.s, "machine", machine.s, "seeds", seeds.s, "delta", "1e-5", "quick",
                  source.quick, "rows", rows);
    fkt_text_clear(&seeds);
    fkt_text_clear(&version);
    fkt_text_clear(&machine);
    if (j && invariant >= 0) json_object_set_new(j, "same_moments", json_boolean(invariant));
    if (j) json_object_set_new(j, "settings", settings_json(s, e));
    text = j ? json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(j);
    if (!text) return fkt_fail(FKT_E_NOMEM, "out of memory while writing a table");
    st = fkt_strdup(out, text);
    free(text);
    return st;
}

/* ---- Markdown ---- */

static void markdown_row(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_summary_row *first, size_t m,
                         const char *panel, char (*label)[48], size_t n)
{
    const struct fkt_experiment *e = first->experiment;
    char value[48];
    fkt_text_add(t, "| ");
    fkt_markdown_text(t, panel);
    fkt_text_add(t, " | ");
    fkt_markdown_text(t, first->arm);
    fkt_text_addf(t, " | %s |", fkt_metric_title(&e->metric[m]));
    for (size_t c = 0; c < n; c++) {
        fkt_row_text(value, s, fkt_summary_find(s, e, first->panel, first->arm_name, label[c], NULL), m);
        fkt_text_addf(t, " %s |", value);
    }
    fkt_row_text(value, s, fkt_summary_find(s, e, first->panel, first->arm_name, "", ""), m);
    if (fkt_summary_references(s, e)) fkt_text_addf(t, " %s |", value);
    fkt_text_add(t, "\n");
}

/* Of the heads a document has the best one and the default one; CSV, JSON and the report have all. */
static int is_detail(const struct fkt_metric *m) { return !m->key && m->head != (int)fkt_head_default(0); }

static int has_metric(const struct fkt_summary *s, const struct fkt_summary_row *first, size_t m)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].experiment == first->experiment && !strcmp(s->row[i].panel, first->panel) &&
            !strcmp(s->row[i].arm_name, first->arm_name) && s->row[i].value[m].n)
            return 1;
    return 0;
}

static void markdown_paper(struct fkt_text *t, const json_t *table)
{
    const json_t *columns = json_object_get(table, "columns"), *rows = json_object_get(table, "rows"), *row, *v;
    size_t i, k;
    fkt_text_addf(t, "\nThe paper, %s:\n\n|", json_string_value(json_object_get(table, "source")));
    json_array_foreach (columns, i, v) fkt_text_addf(t, " %s |", json_string_value(v));
    fkt_text_add(t, "\n|");
    json_array_foreach (columns, i, v) fkt_text_add(t, " --- |");
    fkt_text_add(t, "\n");
    json_array_foreach (rows, i, row) {
        fkt_text_add(t, "|");
        json_array_foreach (row, k, v) {
            if (json_is_string(v)) fkt_text_addf(t, " %s |", json_string_value(v));
            else fkt_text_addf(t, " %g |", json_number_value(v));
        }
        fkt_text_add(t, "\n");
    }
}

void fkt_table_markdown(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e,
                        const json_t *paper)
{
    struct fkt_position x[COLUMNS];
    char label[COLUMNS][48];
    const size_t n = fkt_summary_positions(s, e, x, label, COLUMNS);
    const int references = fkt_summary_references(s, e);
    const struct fkt_summary_row *last = NULL;
    const json_t *table;
    size_t i;
    fkt_text_addf(t, "| %s | arm | measure |", e->panel ? "panel" : "set");
    for (size_t c = 0; c < n; c++) {
        fkt_text_add(t, " ");
        fkt_markdown_text(t, label[c]);
        fkt_text_add(t, " |");
    }
    fkt_text_add(t, references ? " no noise |\n| --- | --- | --- | --- |" : "\n| --- | --- | --- |");
    for (size_t c = 0; c < n; c++) fkt_text_add(t, " --- |");
    fkt_text_add(t, "\n");
    for (size_t k = 0; k < s->n; k++) {
        const struct fkt_summary_row *r = &s->row[k];
        if (r->experiment != e) continue;
        if (last && !strcmp(last->panel, r->panel) && !strcmp(last->arm_name, r->arm_name)) continue;
        last = r;
        for (size_t m = 0; m < e->n_metrics; m++)
            if (!is_detail(&e->metric[m]) && has_metric(s, r, m))
                markdown_row(t, s, r, m, e->panel ? r->panel : fkt_lab_set_title(r->panel), label, n);
    }
    json_array_foreach (paper, i, table)
        if (!strcmp(json_string_value(json_object_get(table, "experiment")), e->name)) markdown_paper(t, table);
}
