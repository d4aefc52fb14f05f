/* SPDX-License-Identifier: Apache-2.0 */
/* report_privacy.c - the sections on the method and the privacy promise, first in words, then in numbers. */
#include "cli/simulate/report_html.h"

#include "cli/simulate/chart.h"
#include "task/privacy_words.h"

#include <math.h>
#include <string.h>

int fkt_report_arm_is_private(const struct fkt_report_arm *arm) { return arm->epsilon > 0 && isfinite(arm->epsilon); }

static void tile_open(struct fkt_text *t) { fkt_text_add(t, "<div class=\"tile\"><b>"); }

static void tile_close(struct fkt_text *t, const char *words, int not_private)
{
    fkt_text_addf(t, "</b><span>%s</span>", words);
    if (not_private) fkt_html_badge(t);
    fkt_text_add(t, "</div>\n");
}

/* Numbers that describe an image, of all networks together. */
static uint32_t length_of(const struct fkt_report *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->n_networks; i++) n += r->networks[i].length;
    return n;
}

static void tiles(struct fkt_text *t, const struct fkt_report *r)
{
    fkt_text_add(t, "<div class=\"tiles\">\n");
    if (r->sites) {
        tile_open(t);
        fkt_text_addf(t, "%u", r->survivors ? r->survivors : r->sites);
        tile_close(t, r->survivors && r->survivors < r->sites ? "sites that stayed to the end" : "sites", 0);
    }
    tile_open(t);
    fkt_html_count(t, r->n_classes);
    tile_close(t, "classes", 0);
    if (r->bytes_per_site) {
        tile_open(t);
        fkt_html_bytes(t, r->bytes_per_site);
        tile_close(t, r->aggregation.sites ? "sent by each site, once" : "of exact sums from each site, unmasked", 0);
    }
    if (length_of(r)) {
        tile_open(t);
        fkt_text_addf(t, "%u", length_of(r));
        tile_close(t, "numbers describe an image", 0);
    }
    if (r->records) {
        tile_open(t);
        fkt_html_count(t, r->records);
        tile_close(t, "real images", 1);
    }
    fkt_text_add(t, "</div>\n");
}

/* The most private arm, whose promise is in the summary. */
static const struct fkt_report_arm *strictest(const struct fkt_report *r)
{
    const struct fkt_report_arm *best = NULL;
    for (size_t a = 0; a < r->n_arms; a++)
        if (fkt_report_arm_is_private(&r->arms[a]) && (!best || r->arms[a].epsilon < best->epsilon)) best = &r->arms[a];
    return best;
}

static int has_images(const struct fkt_report *r)
{
    for (size_t a = 0; a < r->n_arms; a++)
        if (r->arms[a].grid_len) return 1;
    return 0;
}

static void data_words(struct fkt_text *t, const struct fkt_report *r, int safe)
{
    fkt_text_add(t, "Labelled images of ");
    fkt_html_count(t, r->n_classes);
    fkt_text_addf(t, " class%s", r->n_classes == 1 ? "" : "es");
    if (r->dataset) {
        fkt_text_add(t, " (");
        fkt_html_text(t, r->dataset);
        fkt_text_add(t, ")");
    }
    if (r->sites > 1) fkt_text_addf(t, ", spread over %u sites,", r->sites);
    if (has_images(r)) fkt_text_add(t, " were turned into one synthetic dataset");
    else fkt_text_add(t, " were turned into one set of class statistics");
    if (safe) fkt_text_add(t, has_images(r) ? " that anyone may train on" : " that anyone may use");
    fkt_text_add(t, ". No image left its site: each was encoded as ");
    if (length_of(r)) fkt_text_addf(t, "%u", length_of(r));
    else fkt_text_add(t, "a few");
    fkt_text_add(t, " numbers, and only sums over whole classes were sent");
    if (has_images(r))
        fkt_text_add(t, safe
                            ? ". Noise was added to the sums, and the images below are drawn from the noisy sums alone."
                            : ". The images below are drawn from the sums alone.");
    else
        fkt_text_add(t, safe ? ". Noise was added to the sums, and classifiers are computed from the noisy sums alone."
                             : ". Classifiers are computed from the sums alone.");
}

void fkt_report_summary(struct fkt_text *t, const struct fkt_report *r)
{
    const struct fkt_report_arm *arm = strictest(r);
    fkt_html_section(t, "summary", "In short", 0);
    fkt_text_add(t, "<p class=\"lead\">");
    data_words(t, r, arm && !r->insecure_seed && !arm->weak[0]);
    fkt_text_add(t, "</p>\n<p>");
    if (arm && !r->insecure_seed) {
        fkt_text_add(t, "<strong>Privacy.</strong> The release hides ");
        fkt_html_text(t, arm->protects ? arm->protects : "any single image");
        fkt_text_add(t, ": (\xce\xb5 = ");
        fkt_text_number(t, arm->epsilon, 6);
        fkt_text_add(t, ", \xce\xb4 = ");
        fkt_text_number(t, arm->delta, 6);
        fkt_text_add(t, ")-differential privacy");
        fkt_text_add(t, r->n_arms > 1 ? " in the strictest arm shown." : ".");
        if (arm->weak[0])
            fkt_text_addf(t, " <strong>That is a weak promise</strong> (%s): nothing here is called private.",
                          arm->weak);
        if (r->composed_epsilon > arm->epsilon) {
            fkt_text_add(t, " The releases on this page are of the same records: all of them together reveal as much "
                            "as one with \xce\xb5 = ");
            fkt_text_number(t, r->composed_epsilon, 4);
            fkt_text_add(t, ".");
        }
    } else {
        fkt_text_add(t, "<strong>Privacy.</strong> ");
        fkt_text_add(t,
                     arm ? "None: the noise came from a fixed seed." : "None: every arm shown was made without noise.");
    }
    fkt_text_add(t, " This page also shows data without noise, so that the owners of the records can evaluate the "
                    "result; each has the mark ");
    fkt_html_badge(t);
    fkt_text_add(t, ".</p>\n");
    tiles(t, r);
    fkt_text_add(t, "</section>\n");
}

static void definition(struct fkt_text *t, const char *name, const char *value)
{
    if (!value) return;
    fkt_text_addf(t, "<dt>%s</dt><dd>", name);
    fkt_html_text(t, value);
    fkt_text_add(t, "</dd>\n");
}

static void quantity(struct fkt_text *t, const char *name, double x)
{
    if (!(x > 0)) return;
    fkt_text_addf(t, "<dt>%s</dt><dd>", name);
    fkt_text_number(t, x, 4);
    fkt_text_add(t, "</dd>\n");
}

/* One part has no name here. */
static void noise(struct fkt_text *t, const struct fkt_report *r, const char *name, size_t p, double sigma)
{
    if (!(sigma > 0)) return;
    fkt_text_addf(t, "<dt>noise on %s", name);
    if (r->n_parts > 1) {
        fkt_text_add(t, ", ");
        fkt_html_text(t, r->parts[p].name);
    }
    fkt_text_add(t, "</dt><dd>");
    fkt_text_number(t, sigma, 4);
    fkt_text_add(t, "</dd>\n");
}

static void promise(struct fkt_text *t, const struct fkt_report_arm *arm)
{
    fkt_text_add(t, "<p><strong>Protected:</strong> ");
    fkt_html_text(t, arm->protects ? arm->protects : "any single image");
    fkt_text_add(t, ".</p>\n");
    if (arm->mu > 0 && isfinite(arm->mu)) {
        fkt_text_add(t, "<p>An adversary who knows everything else, and considers it equally likely ");
        fkt_html_text(t, arm->question ? arm->question : fkt_adjacency_info(FKT_ADJACENCY_ADD_REMOVE)->question);
        fkt_text_addf(t,
                      ", guesses right at most <strong>%.1f %%</strong> of the time from this release alone; a coin "
                      "toss is right 50 %%.</p>\n",
                      fkt_guess_percent(arm->mu));
    }
}

static void card(struct fkt_text *t, const struct fkt_report *r, size_t a)
{
    const struct fkt_report_arm *arm = &r->arms[a];
    fkt_text_addf(t, "<div class=\"card a%zu\"><h3>", fkt_chart_colour(r, a));
    fkt_html_text(t, arm->name);
    if (!fkt_report_arm_is_private(arm)) {
        fkt_text_add(t, " ");
        fkt_html_badge(t);
        fkt_text_add(
            t, "</h3>\n<p class=\"big\">no noise</p>\n<p>A reference without noise, to measure the cost of privacy. "
               "Nothing is protected: neither this release nor anything made from it may be published.</p></div>\n");
        return;
    }
    fkt_text_addf(t, "</h3>\n<p class=\"big\">\xce\xb5 = %g</p>\n", arm->epsilon);
    if (r->insecure_seed)
        fkt_text_add(
            t, "<p class=\"below\">Nothing is protected: the noise can be removed by anyone who knows the seed.</p>\n");
    else promise(t, arm);
    if (arm->weak[0])
        fkt_text_addf(t, "<p class=\"below\">Weak promise: %s. Nothing made of it is called private.</p>\n", arm->weak);
    fkt_text_add(t, "<dl>\n");
    quantity(t, "\xce\xb4", arm->delta);
    quantity(t, "\xce\xbc (Gaussian DP)", arm->mu);
    definition(t, "adjacency", arm->adjacency);
    definition(t, "unit", "one image");
    definition(t, "mechanism", arm->mechanism);
    quantity(t, "noise on counts", arm->sigma_count);
    for (size_t p = 0; p < r->n_parts; p++) {
        noise(t, r, "sums", p, arm->part[p].sigma_sum);
        noise(t, r, "moments", p, arm->part[p].sigma_moment);
    }
    fkt_text_add(t, "</dl></div>\n");
}

void fkt_report_privacy(struct fkt_text *t, const struct fkt_report *r)
{
    if (!r->n_arms) return;
    fkt_html_section(t, "privacy", "What is promised", 0);
    fkt_text_add(t, "<div class=\"cards\">\n");
    for (size_t a = 0; a < r->n_arms; a++) card(t, r, a);
    fkt_text_add(t, "</div>\n<p class=\"note\" style=\"margin-top:14px\"><strong>Not protected:</strong> what is true "
                    "of a whole class; several images "
                    "of one person taken together (the promise weakens with their number); the public images behind "
                    "the frozen networks; sites that send "
                    "wrong numbers on purpose. Releasing the same images again adds up: \xce\xbc\xc2\xb2 (or \xcf\x81) "
                    "of the releases is summed. Noise is given as "
                    "standard deviations in units of the ball of a part: 1, R and R\xc2\xb2.</p>\n</section>\n");
}
