/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c - lines with markers and error bars as SVG: one panel of an experiment, a line for each arm.
 *
 * The view box is narrow, so that the text can be read on a telephone's width too; colours come from the page's
 * style (report_html.c), and a plot in a file of its own carries them along. A logarithmic axis has ticks at powers of
 * ten, and at 2 and 5 times them where it has less than two decades. Bars are one standard deviation over seeds.
 * References without a position are dashed lines across. Numbers that are not finite are not drawn. */
#include "cli/experiment/plot.h"

#include "cli/simulate/report_html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 480, HEIGHT = 310, LEFT = 50, RIGHT = 14, TOP = 12, BOTTOM = 44, COLOURS = 6, LINES = 24, TICKS = 24 };

struct axis {
    double lo, hi;   /* of the values, or of their logarithms */
    double from, to; /* in the view box */
    int log;
};

struct line {
    char name[48], title[96];
};

static double place(const struct axis *a, double v)
{
    const double u = a->log ? log10(v) : v;
    return a->from + (a->hi > a->lo ? (u - a->lo) / (a->hi - a->lo) : 0.5) * (a->to - a->from);
}

static void widen(struct axis *a, double v)
{
    const double u = a->log ? log10(v) : v;
    if (!isfinite(u)) return;
    if (!(a->lo <= u)) a->lo = u;
    if (!(a->hi >= u)) a->hi = u;
}

size_t fkt_plot_metric(const struct fkt_summary *s, const struct fkt_experiment *e, const char *panel)
{
    for (size_t m = 0; m < e->n_metrics; m++)
        for (size_t i = 0; i < s->n; i++)
            if (s->row[i].experiment == e && !strcmp(s->row[i].panel, panel) && !s->row[i].reference[0] &&
                s->row[i].value[m].n)
                return m;
    return 0;
}

/* Ticks of a linear axis: a step of 1, 2 or 5 times a power of ten, about five of them. */
static double step_of(double range)
{
    const double raw = range / 5, power = pow(10, floor(log10(raw)));
    return raw <= power ? power : raw <= 2 * power ? 2 * power : raw <= 5 * power ? 5 * power : 10 * power;
}

static void tick(struct fkt_text *t, const struct axis *a, double v, int horizontal)
{
    const double p = place(a, v);
    if (horizontal)
        fkt_text_addf(t, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" font-size=\"13\">%g</text>\n", p,
                      HEIGHT - BOTTOM + 18, v);
    else
        fkt_text_addf(t,
                      "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n<text x=\"%d\" y=\"%.1f\" "
                      "text-anchor=\"end\" font-size=\"13\">%g</text>\n",
                      LEFT, p, WIDTH - RIGHT, p, LEFT - 7, p + 4, v);
}

static void ticks(struct fkt_text *t, const struct axis *a, int horizontal)
{
    static const double marks[] = {1, 2, 5};
    const int sparse = a->hi - a->lo > 1.6; /* decades */
    if (!a->log) {
        const double step = step_of(a->hi > a->lo ? a->hi - a->lo : 1);
        const double first = ceil(a->lo / step - 1e-9);
        for (int i = 0; i < TICKS && (first + i) * step <= a->hi + step * 1e-6; i++)
            tick(t, a, (first + i) * step, horizontal);
        return;
    }
    for (int d = (int)floor(a->lo); d <= (int)ceil(a->hi); d++)
        for (int i = 0; i < (sparse ? 1 : 3); i++) {
            const double v = marks[i] * pow(10, d), u = log10(v);
            if (u >= a->lo - 1e-9 && u <= a->hi + 1e-9) tick(t, a, v, horizontal);
        }
}

/* Arms that have the plotted metric. */
static size_t lines_of(const struct fkt_summary *s, const struct fkt_experiment *e, const char *panel, size_t metric,
                       struct line *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct fkt_summary_row *r = &s->row[i];
        if (r->experiment != e || strcmp(r->panel, panel) != 0 || !r->value[metric].n) continue;
        if (n && !strcmp(out[n - 1].name, r->arm_name)) continue;
        if (n == LINES) break;
        fkt_text_cut(out[n].name, sizeof out[n].name, r->arm_name);
        fkt_text_cut(out[n++].title, sizeof out[n].title, r->arm);
    }
    return n;
}

static void marker(struct fkt_text *t, size_t colour, double x, double y)
{
    switch (colour % 3) {
    case 0: fkt_text_addf(t, "<circle class=\"a%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", colour, x, y); break;
    case 1:
        fkt_text_addf(t, "<rect class=\"a%zu\" x=\"%.1f\" y=\"%.1f\" width=\"7.6\" height=\"7.6\"/>\n", colour, x - 3.8,
                      y - 3.8);
        break;
    default: fkt_text_addf(t, "<path class=\"a%zu\" d=\"M%.1f %.1fl4.8 8.4h-9.6z\"/>\n", colour, x, y - 5.2);
    }
}

struct plot {
    struct axis x, y;
    const struct fkt_summary *s;
    const struct fkt_experiment *e;
    const char *panel;
    size_t metric;
};

static int is_of(const struct plot *p, const struct fkt_summary_row *r, const struct line *l)
{
    return r->experiment == p->e && !strcmp(r->panel, p->panel) && !strcmp(r->arm_name, l->name) &&
           r->value[p->metric].n;
}

static void draw_points(struct fkt_text *t, const struct plot *p, const struct line *l, size_t colour)
{
    const double scale = p->e->metric[p->metric].scale;
    size_t n = 0;
    fkt_text_addf(t, "<polyline class=\"l%zu\" points=\"", colour);
    for (size_t i = 0; i < p->s->n; i++) {
        const struct fkt_summary_row *r = &p->s->row[i];
        double x, y;
        if (!is_of(p, r, l) || r->reference[0]) continue;
        x = place(&p->x, r->x);
        y = place(&p->y, scale * r->value[p->metric].mean);
        if (isfinite(x) && isfinite(y)) fkt_text_addf(t, "%s%.1f,%.1f", n++ ? " " : "", x, y);
    }
    fkt_text_add(t, "\"/>\n");
}

/* Markers with their bars, and the references. */
static void draw_marks(struct fkt_text *t, const struct plot *p, const struct line *l, size_t colour)
{
    const double scale = p->e->metric[p->metric].scale;
    for (size_t i = 0; i < p->s->n; i++) {
        const struct fkt_summary_row *r = &p->s->row[i];
        const struct fkt_summary_value *v = &r->value[p->metric];
        const double x = place(&p->x, r->x), y = place(&p->y, scale * v->mean),
                     up = place(&p->y, scale * (v->mean + v->deviation)),
                     down = place(&p->y, scale * (v->mean - v->deviation));
        if (!is_of(p, r, l) || !isfinite(y)) continue;
        if (r->reference[0]) {
            fkt_text_addf(t, "<line class=\"l%zu ref\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", colour, LEFT,
                          y, WIDTH - RIGHT, y);
            continue;
        }
        if (!isfinite(x)) continue;
        if (v->n > 1 && isfinite(up) && isfinite(down))
            fkt_text_addf(t, "<path class=\"l%zu\" d=\"M%.1f %.1fV%.1fm-3 0h6m-6 %.1fh6\"/>\n", colour, x, down, up,
                          down - up);
        marker(t, colour, x, y);
    }
}

static void draw_lines(struct fkt_text *t, const struct plot *p, const struct line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        draw_points(t, p, &lines[i], i % COLOURS);
        draw_marks(t, p, &lines[i], i % COLOURS);
    }
}

static void draw_published(struct fkt_text *t, const struct plot *p, const json_t *published)
{
    const json_t *pair;
    size_t i;
    json_array_foreach (json_object_get(published, "values"), i, pair) {
        const double x = place(&p->x, json_number_value(json_array_get(pair, 0))),
                     y = place(&p->y, json_number_value(json_array_get(pair, 1)));
        fkt_text_addf(t, "<path class=\"pub\" d=\"M%.1f %.1fl6 6l-6 6l-6-6z\"/>\n", x, y - 6);
    }
}

static void ranges(struct plot *p, const json_t *published)
{
    const double scale = p->e->metric[p->metric].scale;
    const json_t *pair;
    size_t k;
    for (size_t i = 0; i < p->s->n; i++) {
        const struct fkt_summary_row *r = &p->s->row[i];
        const struct fkt_summary_value *v = &r->value[p->metric];
        if (r->experiment != p->e || strcmp(r->panel, p->panel) || !v->n) continue;
        if (!r->reference[0]) widen(&p->x, r->x);
        widen(&p->y, scale * (v->mean + v->deviation));
        widen(&p->y, scale * (v->mean - v->deviation));
    }
    json_array_foreach (json_object_get(published, "values"), k, pair) {
        widen(&p->x, json_number_value(json_array_get(pair, 0)));
        widen(&p->y, json_number_value(json_array_get(pair, 1)));
    }
    if (!p->y.log) { /* some room, and no accuracy beyond 100 */
        const double room = fmax((p->y.hi - p->y.lo) * 0.08, 1e-3);
        p->y.lo -= room;
        p->y.hi += room;
        if (scale == 100 && p->y.hi > 100) p->y.hi = 100;
    } else {
        p->y.lo -= 0.05;
        p->y.hi += 0.05;
    }
}

static void legend(struct fkt_text *t, const struct line *lines, size_t n, const json_t *published)
{
    fkt_text_add(t, "<div class=\"legend\">");
    for (size_t i = 0; i < n; i++) {
        fkt_text_addf(t, "<span class=\"a%zu\"><i></i>", i % COLOURS);
        fkt_html_text(t, lines[i].title);
        fkt_text_add(t, "</span>");
    }
    if (published) {
        fkt_text_add(t, "<span>\xe2\x97\x87 ");
        fkt_html_text(t, json_string_value(json_object_get(published, "title")));
        fkt_text_add(t, "</span>");
    }
    fkt_text_add(t, "</div>\n");
}

static const char plot_style[] =
    "<style>text{fill:#626974;font-family:sans-serif}.strong{fill:#22262d}.grid{stroke:#e5e2db}.axis{stroke:#626974}"
    ".a0{fill:#33739f}.a1{fill:#d08a32}.a2{fill:#5c9068}.a3{fill:#8b6aa8}.a4{fill:#b5574f}.a5{fill:#87909c}"
    ".l0{stroke:#33739f}.l1{stroke:#d08a32}.l2{stroke:#5c9068}.l3{stroke:#8b6aa8}.l4{stroke:#b5574f}.l5{stroke:#87909c}"
    "polyline,.l0,.l1,.l2,.l3,.l4,.l5{fill:none;stroke-width:1.8}.ref{stroke-dasharray:5 "
    "4;stroke-width:1.2}.pub{fill:none;stroke:#22262d;stroke-width:1.4}</style>\n";

static void titles(struct fkt_text *t, const struct plot *p)
{
    fkt_text_addf(t, "<line class=\"axis\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, HEIGHT - BOTTOM,
                  WIDTH - RIGHT, HEIGHT - BOTTOM);
    fkt_text_addf(t, "<text class=\"strong\" x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"13\">",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
    fkt_html_text(t, p->e->x_title);
    fkt_text_addf(t,
                  "</text>\n<text class=\"strong\" font-size=\"13\" text-anchor=\"middle\" "
                  "transform=\"translate(12 %d) rotate(-90)\">",
                  (TOP + HEIGHT - BOTTOM) / 2);
    fkt_html_text(t, fkt_metric_title(&p->e->metric[p->metric]));
    fkt_text_add(t, p->e->metric[p->metric].scale == 100 ? ", %</text>\n" : "</text>\n");
}

void fkt_plot_panel(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e, const char *panel,
                    const json_t *published, int alone)
{
    struct plot p = {.x = {NAN, NAN, LEFT + 12, WIDTH - RIGHT - 12, e->x_log},
                     .y = {NAN, NAN, HEIGHT - BOTTOM, TOP, e->y_log},
                     .s = s,
                     .e = e,
                     .panel = panel,
                     .metric = fkt_plot_metric(s, e, panel)};
    struct line lines[LINES];
    const size_t n = lines_of(s, e, panel, p.metric, lines);
    ranges(&p, published);
    if (!(p.x.hi >= p.x.lo && p.y.hi >= p.y.lo)) return;
    if (!alone) legend(t, lines, n, published);
    fkt_text_addf(t, "<svg%s viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
                  alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : " class=\"plot\"", WIDTH, HEIGHT);
    fkt_html_text(t, e->title);
    fkt_text_add(t, "\">\n");
    if (alone) fkt_text_add(t, plot_style);
    ticks(t, &p.y, 0);
    ticks(t, &p.x, 1);
    titles(t, &p);
    draw_lines(t, &p, lines, n);
    if (published) draw_published(t, &p, published);
    fkt_text_add(t, "</svg>\n");
}
