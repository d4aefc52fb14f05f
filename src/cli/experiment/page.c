/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - report.html of an experiment's folder: one self-contained page with plots, tables, and the paper's
 * published figures beside ours. It has no script and fetches nothing; its bytes depend on the cells alone. Style
 * and escaping are those of the report of `simulate`. */
#include "cli/experiment/page.h"

#include "cli/experiment/plot.h"
#include "cli/simulate/report_html.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 16 };

static const char *panel_title(const struct fkt_experiment *e, const char *panel)
{
    return e->panel ? panel : fkt_lab_set_title(panel);
}

static const json_t *published_points(const struct fkt_page *p, const struct fkt_experiment *e, const char *panel)
{
    const json_t *table;
    size_t i;
    json_array_foreach (p->paper, i, table) {
        const json_t *points = json_object_get(table, "points");
        if (points && !strcmp(json_string_value(json_object_get(table, "experiment")), e->name) &&
            !strcmp(json_string_value(json_object_get(points, "panel")), panel))
            return points;
    }
    return NULL;
}

/* The next panel of an experiment after row *i; NULL: none. */
static const char *next_panel(const struct fkt_summary *s, const struct fkt_experiment *e, size_t *i)
{
    const char *last = NULL;
    for (size_t k = 0; k < s->n; k++) {
        if (s->row[k].experiment != e) continue;
        if (k >= *i && (!last || strcmp(last, s->row[k].panel) != 0)) {
            *i = k + 1;
            return s->row[k].panel;
        }
        last = s->row[k].panel;
    }
    return NULL;
}

static void plots(struct fkt_text *t, const struct fkt_page *p, const struct fkt_experiment *e)
{
    const char *panel;
    size_t at = 0;
    fkt_text_add(t, "<div class=\"shots\">\n");
    while ((panel = next_panel(p->summary, e, &at))) {
        fkt_text_add(t, "<figure><figcaption>");
        fkt_html_text(t, panel_title(e, panel));
        fkt_text_add(t, "</figcaption>\n");
        fkt_plot_panel(t, p->summary, e, panel, published_points(p, e, panel), 0);
        fkt_text_add(t, "</figure>\n");
    }
    fkt_text_add(t, "</div>\n");
}

/* ---- tables ---- */

static void value_cell(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_summary_row *r, size_t m)
{
    char value[48];
    fkt_row_text(value, s, r, m);
    fkt_text_addf(t, "<td>%s</td>", *value ? value : "\xe2\x80\x93");
}

static int same_arm(const struct fkt_summary_row *a, const struct fkt_summary_row *b)
{
    return a->experiment == b->experiment && !strcmp(a->panel, b->panel) && !strcmp(a->arm_name, b->arm_name);
}

static int any_value(const struct fkt_summary *s, const struct fkt_summary_row *of, size_t m)
{
    for (size_t i = 0; i < s->n; i++)
        if (same_arm(&s->row[i], of) && s->row[i].value[m].n) return 1;
    return 0;
}

/* The columns of a table. */
struct columns {
    struct fkt_position x[COLUMNS];
    char label[COLUMNS][48];
    size_t n;
    int references;
};

static void table_head(struct fkt_text *t, const struct columns *c)
{
    fkt_text_add(t, "<div class=\"scroll\"><table class=\"ours\"><thead><tr><th>arm</th><th>measure</th>");
    for (size_t i = 0; i < c->n; i++) {
        fkt_text_add(t, "<th>");
        fkt_html_text(t, c->label[i]);
        fkt_text_add(t, "</th>");
    }
    fkt_text_add(t, c->references ? "<th>no noise</th></tr></thead><tbody>\n" : "</tr></thead><tbody>\n");
}

/* A row for each measure; the arm's name stands in the first. */
static void arm_rows(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_summary_row *r,
                     const struct columns *c)
{
    const struct fkt_experiment *e = r->experiment;
    int first = 1;
    for (size_t m = 0; m < e->n_metrics; m++) {
        if (!any_value(s, r, m)) continue;
        fkt_text_addf(t, "<tr%s><td>", first ? " class=\"first\"" : "");
        if (first) fkt_html_text(t, r->arm);
        first = 0;
        fkt_text_addf(t, "</td><td>%s</td>", fkt_metric_title(&e->metric[m]));
        for (size_t i = 0; i < c->n; i++)
            value_cell(t, s, fkt_summary_find(s, e, r->panel, r->arm_name, c->label[i], NULL), m);
        if (c->references) value_cell(t, s, fkt_summary_find(s, e, r->panel, r->arm_name, "", ""), m);
        fkt_text_add(t, "</tr>\n");
    }
}

static void our_table(struct fkt_text *t, const struct fkt_page *p, const struct fkt_experiment *e)
{
    const struct fkt_summary *s = p->summary;
    const struct fkt_summary_row *last = NULL;
    struct columns c = {.references = fkt_summary_references(s, e)};
    c.n = fkt_summary_positions(s, e, c.x, c.label, COLUMNS);
    table_head(t, &c);
    for (size_t i = 0; i < s->n; i++) {
        const struct fkt_summary_row *r = &s->row[i];
        if (r->experiment != e || (last && same_arm(last, r))) continue;
        if (!last || strcmp(last->panel, r->panel) != 0) {
            fkt_text_addf(t, "<tr class=\"group\"><th colspan=\"%zu\">", 2 + c.n + (size_t)c.references);
            fkt_html_text(t, panel_title(e, r->panel));
            fkt_text_add(t, "</th></tr>\n");
        }
        arm_rows(t, s, r, &c);
        last = r;
    }
    fkt_text_add(t, "</tbody></table></div>\n");
}

static void paper_table(struct fkt_text *t, const json_t *table)
{
    const json_t *row, *v;
    size_t i, k;
    fkt_text_add(t, "<h3>The paper, ");
    fkt_html_text(t, json_string_value(json_object_get(table, "source")));
    fkt_text_add(t, "</h3>\n<div class=\"scroll\"><table class=\"paper\"><thead><tr>");
    json_array_foreach (json_object_get(table, "columns"), i, v) {
        fkt_text_add(t, "<th>");
        fkt_html_text(t, json_string_value(v));
        fkt_text_add(t, "</th>");
    }
    fkt_text_add(t, "</tr></thead><tbody>\n");
    json_array_foreach (json_object_get(table, "rows"), i, row) {
        fkt_text_add(t, "<tr>");
        json_array_foreach (row, k, v) {
            fkt_text_add(t, "<td>");
            if (json_is_string(v)) fkt_html_text(t, json_string_value(v));
            else fkt_text_addf(t, "%g", json_number_value(v));
            fkt_text_add(t, "</td>");
        }
        fkt_text_add(t, "</tr>\n");
    }
    fkt_text_add(t, "</tbody></table></div>\n");
}

static void invariance(struct fkt_text *t, const struct fkt_page *p, const struct fkt_experiment *e)
{
    size_t machines = 0;
    const int same = e->invariant ? fkt_summary_invariant(p->summary, e, &machines) : -1;
    if (same < 0) return;
    fkt_text_addf(t,
                  same ? "<p><b>The exact moments are the same, to the bit, in all cells of each arm and set%s</b>, "
                         "whatever the partition, the number of sites and the seed. SHA-256:</p>\n<dl>\n"
                       : "<p class=\"below\">The exact moments of an arm differ between cells%s.</p>\n<dl>\n",
                  machines > 1 ? " that one machine has computed" : "");
    for (size_t i = 0; i < p->summary->n_moments; i++) {
        const struct fkt_summary_moments *m = &p->summary->moments[i];
        if (m->experiment != e) continue;
        fkt_text_add(t, "<dt>");
        fkt_html_text(t, panel_title(e, m->panel));
        fkt_text_add(t, ", ");
        fkt_html_text(t, m->arm);
        if (machines > 1) fkt_text_add(t, ", "), fkt_html_text(t, m->machine);
        fkt_text_addf(t, "</dt><dd><code>%.16s</code>%s</dd>\n", m->hash, m->differ ? " and others" : "");
    }
    fkt_text_add(t, "</dl>\n");
}

static void section(struct fkt_text *t, const struct fkt_page *p, const struct fkt_experiment *e)
{
    const json_t *table;
    size_t i;
    fkt_html_section(t, e->name, e->title, 0);
    fkt_text_add(t, "<p class=\"sub\"><code>");
    fkt_html_text(t, e->name);
    fkt_text_add(t, "</code>: ");
    fkt_html_text(t, e->about);
    fkt_text_add(t, ". Paper: ");
    fkt_html_text(t, e->paper);
    fkt_text_add(t, e->measures_time ? ". These figures do not repeat to the bit: they hold times, or noise of the "
                                       "operating system.</p>\n"
                                     : ".</p>\n");
    fkt_text_addf(t, "<p class=\"%s\">", fkt_summary_source_quick(p->summary, e) ? "below" : "sub");
    fkt_summary_source_text(t, p->summary, e, fkt_html_text);
    fkt_text_add(t, ".</p>\n");
    if (e->plotted) plots(t, p, e);
    our_table(t, p, e);
    invariance(t, p, e);
    json_array_foreach (p->paper, i, table)
        if (!strcmp(json_string_value(json_object_get(table, "experiment")), e->name)) paper_table(t, table);
    fkt_text_add(t, "</section>\n");
}

static int has_rows(const struct fkt_summary *s, const struct fkt_experiment *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].experiment == e) return 1;
    return 0;
}

/* ---- the page ---- */

static const char own_style[] =
    ".l0{stroke:var(--a0)}.l1{stroke:var(--a1)}.l2{stroke:var(--a2)}.l3{stroke:var(--a3)}.l4{stroke:var(--a4)}"
    ".l5{stroke:var(--a5)}svg polyline,svg .l0,svg .l1,svg .l2,svg .l3,svg .l4,svg .l5{fill:none;stroke-width:1.8}"
    "svg .ref{stroke-dasharray:5 4;stroke-width:1.2}svg .pub{fill:none;stroke:var(--ink);stroke-width:1.4}"
    "main{max-width:1360px}svg.plot{max-width:640px}section h3{margin-top:18px}table.paper th{white-space:normal}"
    /* a shadow at the side on which a table goes on */
    ".scroll{margin:14px 0;background:linear-gradient(90deg,var(--card) 30%,transparent) 0 0/40px 100% no-repeat local,"
    "linear-gradient(270deg,var(--card) 30%,transparent) 100% 0/40px 100% no-repeat local,"
    "linear-gradient(90deg,var(--line),transparent) 0 0/14px 100% no-repeat,"
    "linear-gradient(270deg,var(--line),transparent) 100% 0/14px 100% no-repeat}"
    "table.ours td:nth-child(2),table.ours th:nth-child(2),tr.group th{text-align:left}"
    "table.ours td,table.ours th{padding:5px 7px}table.ours td:nth-child(2){white-space:normal;min-width:10em}"
    "table.ours td{border-bottom:0}tr.first td{border-top:1px solid var(--line)}"
    "tr.group th{padding-top:14px;color:var(--ink)}tr.first td:first-child{font-weight:600}"
    "@media(max-width:560px){table{font-size:.8rem}th,td{padding:4px 6px}table.ours "
    "td:first-child,table.ours td:nth-child(2){white-space:normal;min-width:6em}}\n";

static void head(struct fkt_text *t, const struct fkt_page *p)
{
    const struct fkt_summary *s = p->summary;
    const struct fkt_experiment *e;
    fkt_text_add(t, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                    "content=\"width=device-width,initial-scale=1\"><title>fedkt experiments</title>\n<style>");
    fkt_html_style(t);
    fkt_text_add(t, own_style);
    fkt_text_add(t,
                 "</style></head>\n<body><main>\n<header><h1>Tables and figures of the paper, again</h1>\n"
                 "<p class=\"lead\">Ours beside the paper's own mechanism, on the same records, and what the paper has "
                 "published.</p>\n<p class=\"sub\">Delta is 1e-5. Values are means, with one standard deviation over "
                 "seeds where there are several. The best head is the best of all on the test images, so it is a bound "
                 "on the choice of one.</p>\n");
    fkt_text_add(t, "<p class=\"note\">Measurements: all randomness, noise included, comes from the seeds, so nothing "
                    "here is private. Do not publish cells of records that must stay secret.</p>\n<p>");
    for (size_t i = 0, n = 0; (e = fkt_experiment_at(i)); i++)
        if (has_rows(s, e)) fkt_text_addf(t, "%s<a href=\"#%s\">%s</a>", n++ ? " \xc2\xb7 " : "", e->name, e->name);
    fkt_text_add(t, "</p></header>\n");
}

static void left_out(struct fkt_text *t, const json_t *skipped)
{
    const json_t *j;
    size_t i;
    if (!json_array_size(skipped)) return;
    fkt_html_section(t, "skipped", "Cells that were skipped", 0);
    fkt_text_add(t, "<dl>\n");
    json_array_foreach (skipped, i, j) {
        fkt_text_add(t, "<dt><code>");
        fkt_html_text(t, json_string_value(json_object_get(j, "cell")));
        fkt_text_add(t, "</code></dt><dd>");
        fkt_html_text(t, json_string_value(json_object_get(j, "why")));
        if (json_object_get(j, "hint")) {
            fkt_text_add(t, "<br>hint: ");
            fkt_html_text(t, json_string_value(json_object_get(j, "hint")));
        }
        fkt_text_add(t, "</dd>\n");
    }
    fkt_text_add(t, "</dl></section>\n");
}

static fkt_status write_text(const char *folder, const char *name, struct fkt_text *t)
{
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_text_status(t));
    FKT_TRY(fkt_path_join(&path, folder, name));
    FKT_TRY(fkt_file_write(path, t->s, t->len, FKT_FILE_REPLACE));
out:
    fkt_free(path);
    return st;
}

static fkt_status write_tables(const struct fkt_page *p, const struct fkt_experiment *e, const char *folder)
{
    char name[192], word[96], *json = NULL;
    struct fkt_text t;
    const char *panel;
    size_t at = 0;
    fkt_status st;
    fkt_text_init(&t);
    fkt_table_csv(&t, p->summary, e);
    snprintf(name, sizeof name, "tables/%s.csv", e->name);
    FKT_TRY(write_text(folder, name, &t));
    FKT_TRY(fkt_table_json(&json, p->summary, e));
    fkt_text_clear(&t);
    fkt_text_init(&t);
    fkt_text_add(&t, json);
    snprintf(name, sizeof name, "tables/%s.json", e->name);
    FKT_TRY(write_text(folder, name, &t));
    while (e->plotted && (panel = next_panel(p->summary, e, &at))) {
        fkt_text_clear(&t);
        fkt_text_init(&t);
        fkt_plot_panel(&t, p->summary, e, panel, published_points(p, e, panel), 1);
        (void)fkt_experiment_plain(panel, word);
        snprintf(name, sizeof name, "plots/%s-%s.svg", e->name, word);
        FKT_TRY(write_text(folder, name, &t));
    }
out:
    fkt_free(json);
    fkt_text_clear(&t);
    return st;
}

static fkt_status make_folder(const char *folder, const char *name)
{
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, folder, name);
    if (st == FKT_OK) st = fkt_mkdirs(path);
    fkt_free(path);
    return st;
}

fkt_status fkt_page_write(const struct fkt_page *p, const char *folder)
{
    const struct fkt_experiment *e;
    struct fkt_text t;
    fkt_status st;
    fkt_text_init(&t);
    FKT_TRY(make_folder(folder, "tables"));
    FKT_TRY(make_folder(folder, "plots"));
    head(&t, p);
    for (size_t i = 0; (e = fkt_experiment_at(i)); i++) {
        if (!has_rows(p->summary, e)) continue;
        FKT_TRY(write_tables(p, e, folder));
        section(&t, p, e);
    }
    left_out(&t, p->skipped);
    fkt_text_add(&t,
                 "<footer>Made by fedkt experiment from the cells of this folder.</footer>\n</main></body></html>\n");
    FKT_TRY(write_text(folder, "report.html", &t));
out:
    fkt_text_clear(&t);
    return st;
}

/* ---- blocks of a document ---- */

static fkt_status fill_one(const struct fkt_page *p, const struct fkt_experiment *e, const char *text,
                           struct fkt_text *out, int *found)
{
    char first[96], last[96];
    const char *from, *to;
    size_t machines = 0;
    int same;
    snprintf(first, sizeof first, "<!-- experiment:%s -->\n", e->name);
    snprintf(last, sizeof last, "<!-- /experiment:%s -->", e->name);
    from = strstr(text, first);
    to = from ? strstr(from, last) : NULL;
    *found = to != NULL;
    if (!to) return fkt_text_add(out, text), FKT_OK;
    from += strlen(first);
    fkt_text_addn(out, text, (size_t)(from - text));
    fkt_text_add(out, "\n");
    fkt_summary_source_text(out, p->summary, e, fkt_markdown_text);
    fkt_text_add(out, ".\n\n");
    fkt_table_markdown(out, p->summary, e, p->paper);
    same = e->invariant ? fkt_summary_invariant(p->summary, e, &machines) : -1;
    if (same == 0)
        fkt_text_add(out,
                     "\n**The exact moments of an arm and set differ between cells that name the same machine.**\n");
    if (same == 1)
        fkt_text_addf(out, "\nThe exact moments of each arm and set are the same in all cells%s (SHA-256).\n",
                      machines > 1 ? " that one machine has computed" : "");
    fkt_text_add(out, "\n");
    fkt_text_add(out, to);
    return FKT_OK;
}

fkt_status fkt_page_fill(const struct fkt_page *p, const char *file, size_t *filled)
{
    const struct fkt_experiment *e;
    struct fkt_text now, next;
    uint8_t *bytes = NULL;
    size_t len;
    int found;
    fkt_status st;
    *filled = 0;
    fkt_text_init(&now);
    FKT_TRY(fkt_file_read(&bytes, &len, file, 64 << 20));
    fkt_text_addn(&now, (const char *)bytes, len);
    for (size_t i = 0; (e = fkt_experiment_at(i)); i++) {
        if (!has_rows(p->summary, e)) continue;
        fkt_text_init(&next);
        st = fill_one(p, e, now.s, &next, &found);
        if (st == FKT_OK) st = fkt_text_status(&next);
        fkt_text_clear(&now);
        now = next;
        if (st != FKT_OK) goto out;
        *filled += (size_t)found;
    }
    if (*filled) FKT_TRY(fkt_file_write(file, now.s, now.len, FKT_FILE_REPLACE));
out:
    fkt_text_clear(&now);
    fkt_free(bytes);
    return st;
}
