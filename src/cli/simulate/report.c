/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the report of a run as one page: method, privacy promise, accuracy and provenance.
 *
 *   header, banner | In short | What is promised | Images | Accuracy | Classes | Holders | Norms | Sum | Cost
 *   Origin
 *
 * The page is one file with its style, charts and images inside, without scripts or external resources. Everything
 * that the release does not cover (real images, true counts, norms, partitions, accuracies on real test images) has
 * a badge next to it, so that a screenshot of a part still shows it. Cost: one growing string; images dominate. */
#include "cli/simulate/report.h"

#include "base/file.h"
#include "cli/simulate/chart.h"
#include "cli/simulate/report_html.h"

#include <math.h>

static void head(struct fkt_text *t, const struct fkt_report *r)
{
    fkt_text_add(t, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" "
                    "content=\"no-referrer\">\n<title>");
    fkt_html_text(t, r->title);
    fkt_text_add(t, "</title>\n<style>\n");
    fkt_html_style(t);
    fkt_text_add(t, "</style>\n</head>\n<body>\n<main>\n");
    if (r->insecure_seed)
        fkt_text_add(t, "<div class=\"banner\" role=\"alert\">Made with --insecure-seed: anyone who knows the seed can "
                        "compute the noise. "
                        "Nothing here is private. For tests only.</div>\n");
    fkt_text_add(t, "<header>\n<h1>");
    fkt_html_text(t, r->title);
    fkt_text_add(t, "</h1>\n<p class=\"sub\">");
    fkt_html_text(t, r->dataset ? r->dataset : "");
    if (r->format) {
        fkt_text_add(t, r->dataset ? " \xc2\xb7 " : "");
        fkt_html_text(t, r->format);
    }
    if (r->size) fkt_text_addf(t, " \xc2\xb7 %u \xc3\x97 %u pixels", r->size, r->size);
    fkt_text_add(t, "</p>\n</header>\n");
}

static void figure(struct fkt_text *t, const char *caption, const uint8_t *png, size_t len, int not_private)
{
    if (!png || !len) return;
    fkt_text_add(t, "<figure><figcaption>");
    fkt_html_text(t, caption);
    if (not_private) fkt_html_badge(t);
    fkt_text_add(t, "</figcaption>");
    fkt_html_png(t, png, len, caption);
    fkt_text_add(t, "</figure>\n");
}

static void images(struct fkt_text *t, const struct fkt_report *r)
{
    struct fkt_text caption;
    size_t any = r->real_len;
    for (size_t a = 0; a < r->n_arms; a++) any += r->arms[a].grid_len;
    if (!any) return;
    fkt_html_section(t, "images", "Real and synthetic", 0);
    if (r->shown && r->shown < r->n_classes)
        fkt_text_addf(t,
                      "<p>A row is a class: the first %zu of %zu classes are shown. <code>fedkt generate</code> writes "
                      "images of every class.</p>\n",
                      r->shown, r->n_classes);
    if (r->guided) {
        fkt_text_add(t, "<p>Guided images were made ");
        fkt_html_text(t, r->guided);
        fkt_text_add(t, ", so that a public network sees in them the features that the release has of their class; "
                        "the others are the same samples without.</p>\n");
    }
    fkt_text_add(t, "<div class=\"shots\">\n");
    figure(t, "Real images", r->real_png, r->real_len, 1);
    for (size_t a = 0; a < r->n_arms; a++)
        for (int unguided = 0; unguided < 2; unguided++) {
            const struct fkt_report_arm *arm = &r->arms[a];
            fkt_text_init(&caption);
            fkt_text_addf(&caption, "%s: %s", unguided ? "Not guided" : r->guided ? "Guided" : "Synthetic", arm->name);
            if (fkt_text_status(&caption) != FKT_OK) t->st = fkt_text_status(&caption);
            figure(t, caption.s, unguided ? arm->unguided_png : arm->grid_png,
                   unguided ? arm->unguided_len : arm->grid_len,
                   !fkt_report_arm_is_private(arm) || r->insecure_seed || arm->weak[0]);
            fkt_text_clear(&caption);
        }
    fkt_text_add(t, "</div>\n</section>\n");
}

static int any_accuracy(const struct fkt_report *r)
{
    for (size_t a = 0; a < r->n_arms; a++)
        for (int h = 0; h < fkt_chart_evaluated(r); h++)
            if (r->arms[a].accuracy[h] >= 0) return 1;
    return 0;
}

static void accuracy(struct fkt_text *t, const struct fkt_report *r)
{
    const int columns = fkt_chart_evaluated(r);
    if (!r->n_arms) return;
    if (!any_accuracy(r)) {
        fkt_html_section(t, "accuracy", "Accuracy", 0);
        fkt_text_add(t, "<p>Not evaluated: there are no real test images.</p>\n</section>\n");
        return;
    }
    fkt_html_section(t, "accuracy", "Accuracy", 1);
    fkt_text_add(
        t, "<p>Heads computed directly from the released statistics, evaluated on real images that were held out");
    if (r->test_records) {
        fkt_text_add(t, " (");
        fkt_html_count(t, r->test_records);
        fkt_text_add(t, ")");
    }
    if (r->network) {
        fkt_text_add(t, "; and ");
        fkt_html_text(t, r->network);
        fkt_text_add(t, ", a network trained on images drawn from each release (");
        fkt_html_text(t, r->network_recipe);
        fkt_text_add(t, "; the last epoch's accuracy)");
        if (r->unguided_network) fkt_text_add(t, ", on guided and on unguided ones");
    }
    fkt_text_add(t, ". The release does not cover the test images, so the results are marked.</p>\n");
    fkt_chart_accuracy(t, r);
    fkt_text_add(t, "<div class=\"scroll\"><table><thead><tr><th>accuracy, %</th>");
    for (int h = 0; h < columns; h++) {
        fkt_text_add(t, "<th>");
        fkt_html_text(t, fkt_chart_evaluated_name(r, h));
        fkt_text_add(t, "</th>");
    }
    fkt_text_add(t, "</tr></thead><tbody>\n");
    for (size_t a = 0; a < r->n_arms; a++) {
        const struct fkt_report_arm *arm = &r->arms[a];
        double best = -1;
        for (int h = 0; h < columns; h++) best = fmax(best, arm->accuracy[h]);
        fkt_text_add(t, "<tr><td>");
        fkt_html_text(t, arm->name);
        fkt_text_add(t, fkt_report_arm_is_private(arm) ? "</td>" : " (reference)</td>");
        for (int h = 0; h < columns; h++) {
            double v = arm->accuracy[h];
            fkt_text_add(t, v == best ? "<td class=\"best\">" : "<td>");
            if (v >= 0 && v <= 1) fkt_text_addf(t, "%.1f</td>", 100 * v);
            else fkt_text_add(t, "\xe2\x80\x93</td>");
        }
        fkt_text_add(t, "</tr>\n");
    }
    fkt_text_add(t, "</tbody></table></div>\n</section>\n");
}

static void partition(struct fkt_text *t, const struct fkt_report *r)
{
    if (!r->owned || !r->sites) return;
    fkt_html_section(t, "partition", "Who holds what", 1);
    fkt_text_add(t, "<p>A column is a site, a row a class; darker means more records. ");
    if (r->partition) {
        fkt_text_add(t, "Rule: ");
        fkt_html_text(t, r->partition);
        fkt_text_add(t, ". ");
    }
    fkt_text_add(t, "A site always sends all classes, zero-filled, so its message does not reveal this.</p>\n");
    fkt_chart_partition(t, r);
    fkt_text_add(t, "</section>\n");
}

static void norms(struct fkt_text *t, const struct fkt_report *r)
{
    const struct fkt_report_histogram *h = &r->norms;
    if (!h->bins || !h->counts || !(h->hi > h->lo)) return;
    fkt_html_section(t, "norms", "Lengths of the vectors", 1);
    fkt_text_add(t, "<p>Lengths of the images' vectors");
    if (r->n_networks > 1) {
        fkt_text_add(t, " from the ");
        fkt_html_text(t, r->networks[0].kind);
    }
    fkt_text_add(t, " before clipping to the public ball; beyond the marks they are scaled back.</p>\n");
    fkt_chart_histogram(t, h);
    fkt_text_add(t, "</section>\n");
}

/* The sites in the sum and those present at unmasking differ: a site that is lost late stays in the sum. */
static void losses(struct fkt_text *t, const struct fkt_report_aggregation *a)
{
    static const char *const phases[] = {"advertise", "coin", "share", "mask", "confirm", "reveal"};
    uint32_t gone = 0;
    const char *gap = "";
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) gone += a->lost[i];
    if (gone) {
        fkt_text_addf(t, "<p>%u stayed to the end; lost: ", a->sites - gone);
        for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
            if (!a->lost[i]) continue;
            fkt_text_addf(t, "%s%u in phase %s", gap, a->lost[i], phases[i]);
            gap = ", ";
        }
        fkt_text_add(t,
                     a->lost[4] + a->lost[5] ? ". Sites lost in confirm or reveal are in the sum.</p>\n" : ".</p>\n");
    }
    if (a->throws)
        fkt_text_addf(t, "<p>The mask graph was drawn with %u throw%s of a common random coin.</p>\n", a->throws,
                      a->throws == 1 ? "" : "s");
}

/* In cohorts every one has its own numbers. */
static void masks(struct fkt_text *t, const struct fkt_report_aggregation *a)
{
    if (a->cohorts) {
        fkt_text_addf(
            t,
            "They are divided into %u cohorts, %u of which are in it; each cohort has its own masks and the whole "
            "noise. The sum has %.2f times the standard deviation of one cohort of the same sites, and up to %u "
            "colluding sites are covered.</p>\n",
            a->cohorts, a->in_sum, a->deviation, a->covered);
        return;
    }
    fkt_text_addf(
        t,
        "Each added masks that it shares with %u others and that cancel out in the sum; %u of those can remove the "
        "masks of a lost site. Up to %u may be lost, and up to %u may collude with the server.</p>\n",
        a->degree, a->threshold, a->dropped, a->corrupt);
}

static void aggregation(struct fkt_text *t, const struct fkt_report *r)
{
    const struct fkt_report_aggregation *a = &r->aggregation;
    if (!a->sites) return;
    fkt_html_section(t, "aggregation", "Secure aggregation", 0);
    fkt_text_addf(t, "<p>%u of %u sites are in the sum. ", a->survivors, a->sites);
    masks(t, a);
    losses(t, a);
    fkt_text_add(t, "<p>");
    if (a->counted)
        fkt_text_addf(
            t,
            "Each site added its noise share before masking: in a federation no party holds a sum without it. "
            "The promise needs %u noise shares; %u are in the sum, so it has %.0f %% more variance than "
            "%s.</p>\n",
            a->counted, a->survivors, 100 * ((double)a->survivors / a->counted - 1),
            a->cohorts ? "its cohorts promise" : "promised");
    else
        fkt_text_add(t, "The noise was added to the sum afterwards: the party that added it saw the exact sum, but no "
                        "single site's numbers.</p>\n");
    fkt_text_add(t, "<dl>\n<dt>a site sent</dt><dd>");
    fkt_html_bytes(t, a->up);
    fkt_text_add(t, ", of which its vector takes ");
    fkt_html_bytes(t, a->packed);
    if (a->bits) fkt_text_addf(t, " of %u-bit numbers", a->bits);
    fkt_text_add(t, "</dd>\n<dt>a site received</dt><dd>");
    fkt_html_bytes(t, a->down);
    fkt_text_addf(t,
                  "</dd>\n<dt>time, all sites and the server in one process</dt><dd>%.2f s</dd>\n</dl>\n</section>\n",
                  a->seconds);
}

static void cost(struct fkt_text *t, const struct fkt_report *r)
{
    if (!r->n_phases && !r->bytes_per_site) return;
    fkt_html_section(t, "cost", "What it took", 0);
    if (r->bytes_per_site) {
        fkt_text_add(t, "<p>Each site sent ");
        fkt_html_bytes(t, r->bytes_per_site);
        if (!r->aggregation.sites)
            fkt_text_add(t, " of exact sums without masks, since fewer than three sites cannot hide in a sum,");
        fkt_text_add(t, " once and trained no network.</p>\n");
    }
    if (r->n_phases) fkt_chart_phases(t, r->phases, r->n_phases);
    fkt_text_add(t, "</section>\n");
}

static void fact(struct fkt_text *t, const char *name, const char *value)
{
    if (!value) return;
    fkt_text_add(t, "<dt>");
    fkt_html_text(t, name);
    fkt_text_add(t, "</dt><dd><code>");
    fkt_html_text(t, value);
    fkt_text_add(t, "</code></dd>\n");
}

static void provenance(struct fkt_text *t, const struct fkt_report *r)
{
    fkt_html_section(t, "provenance", "Provenance", 0);
    if (r->command) {
        fkt_text_add(t, "<pre>");
        fkt_html_text(t, r->command);
        fkt_text_add(t, "</pre>\n");
    }
    fkt_text_add(t, "<dl>\n");
    for (size_t i = 0; i < r->n_networks; i++) {
        const struct fkt_report_network *n = &r->networks[i];
        fact(t, n->kind, n->identity);
        fact(t, "calibration", n->calibration);
        fact(t, "coordinates", n->coordinates);
        if (n->dim) fkt_text_addf(t, "<dt>d, m, Rq</dt><dd><code>%u, %u, %u</code></dd>\n", n->dim, n->length, n->rq);
    }
    for (size_t i = 0; i < r->n_facts; i++) fact(t, r->facts[i].name, r->facts[i].value);
    fact(t, "fedkt", r->version);
    fkt_text_add(t, "</dl>\n</section>\n");
}

fkt_status fkt_report_write(const struct fkt_report *r, const char *path, int flags)
{
    struct fkt_text t;
    fkt_status st;
    fkt_text_init(&t);
    if (!r->title || !r->classes || !r->n_classes) {
        st = fkt_fail(FKT_E_ARG, "the report has no title or no classes");
        goto out;
    }
    head(&t, r);
    fkt_report_summary(&t, r);
    fkt_report_privacy(&t, r);
    images(&t, r);
    accuracy(&t, r);
    fkt_report_classes(&t, r);
    partition(&t, r);
    norms(&t, r);
    aggregation(&t, r);
    cost(&t, r);
    provenance(&t, r);
    fkt_text_add(&t,
                 "<footer>One file, no scripts, nothing loaded from elsewhere.</footer>\n</main>\n</body>\n</html>\n");
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_file_write(path, t.s, t.len, flags));
out:
    fkt_text_clear(&t);
    return st;
}
