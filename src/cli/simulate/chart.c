/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c - the charts of the report, as inline SVG.
 *
 * Plain rectangles, lines and text in a fixed view box that scales with the page; colours come from the page's
 * style, so the same chart works in light mode, dark mode and print. Numbers that are not finite are not drawn.
 * Cost: at most 6,000 rectangles. */
#include "cli/simulate/chart.h"

#include "cli/simulate/report_html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 960, MAX_COLUMNS = 100, MAX_ROWS = 60 };

size_t fkt_chart_colour(const struct fkt_report *r, size_t a)
{
    size_t before = 0;
    for (size_t i = 0; i < a; i++) before += (size_t)fkt_report_arm_is_private(&r->arms[i]);
    return fkt_report_arm_is_private(&r->arms[a]) ? before % 5 : 5;
}

static void open_svg(struct fkt_text *t, double height, const char *title)
{
    fkt_text_addf(t, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"%s\">\n", WIDTH, height, title);
}

static void label(struct fkt_text *t, double x, double y, const char *anchor, const char *class, int size,
                  const char *words)
{
    fkt_text_addf(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\"%s%s%s>", x, y, anchor, size,
                  *class ? " class=\"" : "", class, *class ? "\"" : "");
    fkt_html_text(t, words);
    fkt_text_add(t, "</text>\n");
}

static void line(struct fkt_text *t, const char *class, double x1, double y1, double x2, double y2)
{
    fkt_text_addf(t, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

static void box(struct fkt_text *t, const char *class, double x, double y, double w, double h, double round)
{
    fkt_text_addf(t, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.0f\"/>\n", class,
                  x, y, w, h, round);
}

static void legend(struct fkt_text *t, const struct fkt_report *r)
{
    fkt_text_add(t, "<div class=\"legend\">");
    for (size_t a = 0; a < r->n_arms; a++) {
        fkt_text_addf(t, "<span class=\"a%zu\"><i></i>", fkt_chart_colour(r, a));
        fkt_html_text(t, r->arms[a].name);
        fkt_text_add(t, "</span>");
    }
    fkt_text_add(t, "</div>\n");
}

int fkt_chart_evaluated(const struct fkt_report *r)
{
    return !r->network ? FKT_REPORT_HEADS : r->unguided_network ? FKT_REPORT_EVALUATED : FKT_REPORT_UNGUIDED;
}

const char *fkt_chart_evaluated_name(const struct fkt_report *r, int column)
{
    return column < FKT_REPORT_HEADS       ? fkt_head_title((enum fkt_head_kind)column)
           : column == FKT_REPORT_UNGUIDED ? r->unguided_network
                                           : r->network;
}

void fkt_chart_accuracy(struct fkt_text *t, const struct fkt_report *r)
{
    const int columns = fkt_chart_evaluated(r);
    const double left = 56, right = 12, top = 22, plot = 250, bottom = 34, group = (WIDTH - left - right) / columns;
    double bar = group * 0.78 / (double)(r->n_arms ? r->n_arms : 1), chance = plot / (double)r->n_classes;
    char words[32], class[8];
    if (bar > 72) bar = 72;
    legend(t, r);
    open_svg(t, top + plot + bottom,
             r->network ? "accuracy of three heads and a network for each arm"
                        : "accuracy of three heads for each arm");
    for (int tick = 0; tick <= 100; tick += 25) {
        double y = top + plot * (1 - tick / 100.0);
        line(t, tick ? "grid" : "axis", left, y, WIDTH - right, y);
        snprintf(words, sizeof words, "%d %%", tick);
        label(t, left - 10, y + 4, "end", "", 13, words);
    }
    for (int h = 0; h < columns; h++) {
        double x0 = left + group * (h + 0.5) - bar * (double)r->n_arms / 2;
        for (size_t a = 0; a < r->n_arms; a++) {
            double v = r->arms[a].accuracy[h];
            if (!(v >= 0 && v <= 1)) continue;
            snprintf(class, sizeof class, "a%zu", fkt_chart_colour(r, a));
            box(t, class, x0 + bar * (double)a + bar * 0.06, top + plot * (1 - v), bar * 0.88, plot * v, 3);
            snprintf(words, sizeof words, "%.1f", 100 * v);
            label(t, x0 + bar * ((double)a + 0.5), top + plot * (1 - v) - 6, "middle", "strong", bar > 30 ? 13 : 9,
                  words);
        }
        label(t, left + group * (h + 0.5), top + plot + 24, "middle", "strong", 14, fkt_chart_evaluated_name(r, h));
    }
    line(t, "chance", left, top + plot - chance, WIDTH - right, top + plot - chance);
    label(t, WIDTH - right, top + plot - chance - 5, "end", "", 12, "chance");
    fkt_text_add(t, "</svg>\n");
}

/* Mean number of records per site over the sites of column x and the classes of row y. */
static double cell_mean(const struct fkt_report *r, size_t x, size_t columns, size_t y, size_t rows)
{
    size_t s0 = x * r->sites / columns, s1 = (x + 1) * r->sites / columns, k0 = y * r->n_classes / rows,
           k1 = (y + 1) * r->n_classes / rows;
    double sum = 0;
    for (size_t s = s0; s < s1; s++)
        for (size_t k = k0; k < k1; k++) sum += r->owned[s * r->n_classes + k];
    return sum / (double)(s1 - s0);
}

static void row_name(struct fkt_text *t, const struct fkt_report *r, size_t y, size_t rows, double x, double at)
{
    size_t k0 = y * r->n_classes / rows, k1 = (y + 1) * r->n_classes / rows, n = 0, used = 0;
    char words[96];
    if (k1 - k0 > 1) {
        snprintf(words, sizeof words, "classes %zu to %zu", k0, k1 - 1);
    } else { /* at most 20 characters, none cut */
        const char *name = r->classes[k0];
        for (; name[used] && n < 20; n++) used += fkt_utf8_length(name + used) ? fkt_utf8_length(name + used) : 1;
        snprintf(words, sizeof words, "%.*s%s", (int)used, name, name[used] ? "..." : "");
    }
    label(t, x, at, "end", "", 13, words);
}

void fkt_chart_partition(struct fkt_text *t, const struct fkt_report *r)
{
    size_t columns = r->sites < MAX_COLUMNS ? r->sites : MAX_COLUMNS,
           rows = r->n_classes < MAX_ROWS ? r->n_classes : MAX_ROWS;
    const double left = 170, top = 6, right = 8;
    double w = (WIDTH - left - right) / (double)columns, h = rows <= 20 ? 24 : 14, most = 0, wide = w > 64 ? 64 : w;
    char words[96];
    for (size_t y = 0; y < rows; y++)
        for (size_t x = 0; x < columns; x++) most = fmax(most, cell_mean(r, x, columns, y, rows));
    open_svg(t, top + h * (double)rows + 40, "records of each class at each site");
    box(t, "track", left, top, wide * (double)columns, h * (double)rows, 2);
    for (size_t y = 0; y < rows; y++) {
        row_name(t, r, y, rows, left - 10, top + h * ((double)y + 0.5) + 4.5);
        for (size_t x = 0; x < columns; x++) {
            double v = cell_mean(r, x, columns, y, rows), ink = most > 0 ? sqrt(v / most) : 0;
            if (!(v > 0)) continue;
            fkt_text_addf(
                t,
                "<rect class=\"cell\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.2f\"/>\n",
                left + wide * (double)x, top + h * (double)y, wide * (wide > 6 ? 0.96 : 1), h * 0.96,
                0.08 + 0.92 * ink);
            if (wide < 34 || columns < r->sites) continue;
            snprintf(words, sizeof words, "%.0f", v);
            label(t, left + wide * ((double)x + 0.48), top + h * ((double)y + 0.5) + 4, "middle",
                  ink > 0.6 ? "on" : "strong", 11, words);
        }
    }
    if (columns < r->sites)
        snprintf(words, sizeof words, "%u sites, in %zu bins of about %u", r->sites, columns,
                 (r->sites + MAX_COLUMNS / 2) / MAX_COLUMNS);
    else snprintf(words, sizeof words, "%u site%s", r->sites, r->sites == 1 ? "" : "s");
    label(t, left, top + h * (double)rows + 24, "start", "", 13, words);
    snprintf(words, sizeof words, "darkest cell: %.0f records%s", most, columns < r->sites ? " a site" : "");
    label(t, WIDTH - right, top + h * (double)rows + 24, "end", "", 13, words);
    fkt_text_add(t, "</svg>\n");
}

void fkt_chart_histogram(struct fkt_text *t, const struct fkt_report_histogram *h)
{
    const double left = 16, right = 16, top = 34, plot = 180, wide = WIDTH - left - right;
    double most = 0, bar = wide / (double)h->bins;
    char words[64];
    for (size_t i = 0; i < h->bins; i++) most = fmax(most, (double)h->counts[i]);
    open_svg(t, top + plot + 52, "histogram of norms");
    for (size_t i = 0; i < h->bins; i++) {
        double v = most > 0 ? plot * (double)h->counts[i] / most : 0;
        if (v > 0) box(t, "a0", left + bar * (double)i, top + plot - v, bar * 0.92, v, 1);
    }
    line(t, "axis", left, top + plot, left + wide, top + plot);
    for (int tick = 0; tick <= 5; tick++) {
        double x = left + wide * tick / 5;
        snprintf(words, sizeof words, "%.3g", h->lo + (h->hi - h->lo) * tick / 5);
        label(t, x, top + plot + 20, tick == 0 ? "start" : tick == 5 ? "end" : "middle", "", 13, words);
    }
    label(t, left + wide / 2, top + plot + 44, "middle", "strong", 13, h->quantity ? h->quantity : "|u|");
    for (size_t m = 0; m < h->n_marks; m++) {
        double x = left + wide * (h->marks[m].at - h->lo) / (h->hi - h->lo);
        if (!(x >= left && x <= left + wide)) continue;
        line(t, "mark", x, top - 12, x, top + plot);
        label(t, x, top - 18,
              x < left + 60          ? "start"
              : x > left + wide - 60 ? "end"
                                     : "middle",
              "marktext", 13, h->marks[m].name);
    }
    fkt_text_add(t, "</svg>\n");
}

void fkt_chart_signal(struct fkt_text *t, double signal, double reach)
{
    double x = signal > 0 ? signal / (1 + signal) : 0, tick = 96 * reach / (1 + reach);
    fkt_text_add(t, "<svg class=\"inline\" viewBox=\"0 0 96 10\" aria-hidden=\"true\">");
    box(t, "track", 0, 1, 96, 8, 4);
    if (x > 0) box(t, signal < reach ? "bad" : "a0", 0, 1, 96 * x, 8, 4);
    line(t, "axis", tick, 0, tick, 10);
    fkt_text_add(t, "</svg>");
}

void fkt_chart_phases(struct fkt_text *t, const struct fkt_report_phase *phases, size_t n)
{
    const double left = 170, step = 30;
    double most = 0;
    char words[32];
    for (size_t i = 0; i < n; i++) most = fmax(most, phases[i].seconds);
    open_svg(t, step * (double)n + 4, "seconds of each phase");
    for (size_t i = 0; i < n; i++) {
        double s = phases[i].seconds, w = most > 0 && s > 0 ? (WIDTH - left - 110) * s / most : 0, y = step * (double)i;
        label(t, left - 10, y + 20, "end", "", 14, phases[i].name);
        box(t, "a0", left, y + 5, w < 2 ? 2 : w, step - 10, 3);
        snprintf(words, sizeof words, s < 10 ? "%.2f s" : "%.1f s", s);
        label(t, left + w + 10, y + 20, "start", "strong", 14, isfinite(s) ? words : "not timed");
    }
    fkt_text_add(t, "</svg>\n");
}
