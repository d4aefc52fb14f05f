/* SPDX-License-Identifier: Apache-2.0 */
/* report_classes.c - the table of classes in the report: true and noisy count, and for each part of the record vector
 * how far the class stands out of the noise. */
#include "cli/simulate/report_html.h"

#include "cli/simulate/chart.h"

#include <math.h>

static void column(struct fkt_text *t, const struct fkt_report_arm *arm, const char *words, const char *part)
{
    fkt_text_add(t, part ? "<th class=\"sig\">" : "<th>");
    fkt_html_text(t, arm->name);
    fkt_text_addf(t, "<br>%s", words);
    if (part && *part) {
        fkt_text_add(t, ", ");
        fkt_html_text(t, part);
    }
    fkt_text_add(t, "</th>");
}

static void class_head(struct fkt_text *t, const struct fkt_report *r)
{
    fkt_text_add(t, "<div class=\"scroll\"><table><thead><tr><th>class</th>");
    if (r->counts) {
        fkt_text_add(t, "<th>true count<br>");
        fkt_html_badge(t);
        fkt_text_add(t, "</th>");
    }
    for (size_t a = 0; a < r->n_arms; a++) {
        const struct fkt_report_arm *arm = &r->arms[a];
        if (!fkt_report_arm_is_private(arm)) continue;
        if (arm->noisy_count) column(t, arm, "noisy count", NULL);
        for (size_t p = 0; p < r->n_parts; p++)
            if (arm->part[p].signal) column(t, arm, "signal / noise", r->n_parts > 1 ? r->parts[p].name : "");
    }
    fkt_text_add(t, "</tr></thead><tbody>\n");
}

static double reach_of(const struct fkt_report *r, size_t p) { return r->parts[p].reach > 0 ? r->parts[p].reach : 1; }

static int is_below(const struct fkt_report *r, const struct fkt_report_arm *a, size_t p, size_t k)
{
    const struct fkt_report_noise *n = &a->part[p];
    return n->below ? n->below[k] : n->signal && n->signal[k] < reach_of(r, p);
}

/* A class may be below the noise because of its count: the text then says so. */
static void signal_cell(struct fkt_text *t, double signal, double reach, int below)
{
    fkt_text_add(t, "<td class=\"sig\">");
    fkt_chart_signal(t, signal, reach);
    if (below && signal >= reach) fkt_text_addf(t, "<span class=\"below\">%.2f, count below noise</span></td>", signal);
    else if (below) fkt_text_addf(t, "<span class=\"below\">%.2f below noise</span></td>", signal);
    else if (isfinite(signal)) fkt_text_addf(t, "%.1f</td>", signal);
    else fkt_text_add(t, "\xe2\x80\x93</td>");
}

static int any_below(const struct fkt_report *r)
{
    for (size_t a = 0; a < r->n_arms; a++)
        for (size_t p = 0; fkt_report_arm_is_private(&r->arms[a]) && p < r->n_parts; p++)
            for (size_t k = 0; k < r->n_classes; k++)
                if (is_below(r, &r->arms[a], p, k)) return 1;
    return 0;
}

static void signal_words(struct fkt_text *t, const struct fkt_report *r)
{
    fkt_text_add(t, "<p>Signal is the largest variance of a class divided by the spectral edge of the noise. Noise "
                    "alone can reach a signal of ");
    for (size_t p = 0; p < r->n_parts; p++) {
        fkt_text_addf(t, "%s%.2f", p ? " and " : "", reach_of(r, p));
        if (r->n_parts == 1) continue;
        fkt_text_add(t, " (");
        fkt_html_text(t, r->parts[p].name);
        fkt_text_add(t, ")");
    }
    fkt_text_add(t, ", the tick of the bar: a class with less, or whose count cannot be distinguished from 0, is below "
                    "noise.");
    if (any_below(r))
        fkt_text_add(
            t,
            " A class below noise keeps its mean, but its covariance is mostly noise: interpret its images with care.");
    fkt_text_add(t, "</p>\n");
}

/* An arm without privacy has exact counts and no noise. */
static void class_row(struct fkt_text *t, const struct fkt_report *r, size_t k)
{
    fkt_text_add(t, "<tr><td>");
    fkt_html_text(t, r->classes[k]);
    fkt_text_add(t, "</td>");
    if (r->counts) {
        fkt_text_add(t, "<td>");
        fkt_html_count(t, r->counts[k]);
        fkt_text_add(t, "</td>");
    }
    for (size_t a = 0; a < r->n_arms; a++) {
        const struct fkt_report_arm *arm = &r->arms[a];
        if (!fkt_report_arm_is_private(arm)) continue;
        if (arm->noisy_count && isfinite(arm->noisy_count[k])) fkt_text_addf(t, "<td>%.0f</td>", arm->noisy_count[k]);
        else if (arm->noisy_count) fkt_text_add(t, "<td>\xe2\x80\x93</td>");
        for (size_t p = 0; p < r->n_parts; p++)
            if (arm->part[p].signal) signal_cell(t, arm->part[p].signal[k], reach_of(r, p), is_below(r, arm, p, k));
    }
    fkt_text_add(t, "</tr>\n");
}

void fkt_report_classes(struct fkt_text *t, const struct fkt_report *r)
{
    if (!r->counts && !r->n_arms) return;
    fkt_html_section(t, "classes", "Class by class", 0);
    if (r->n_parts) signal_words(t, r);
    class_head(t, r);
    for (size_t k = 0; k < r->n_classes; k++) class_row(t, r, k);
    fkt_text_add(t, "</tbody></table></div>\n</section>\n");
}
