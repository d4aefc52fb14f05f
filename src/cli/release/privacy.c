/* SPDX-License-Identifier: Apache-2.0 */
/* privacy.c - `fedkt privacy`: plans the noise of a release, added in one place or as noise shares by the sites of a
 * federation. Noise shares are planned for the integers that a task's sites add up (radius FKT_RQ_DEFAULT, as in a
 * task) and printed in units of the ball, so they equal those of such a task. Several parts, pooled second moments and
 * the size of what a site sends are those of fedkt/layout.h. */
#include "fedkt/advanced/secagg.h"

#include "cli/core/common.h"
#include "cli/core/verbs.h"
#include "task/federation.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_privacy privacy;
    struct cli_run run;
    uint64_t dim, records, sites, classes;
    const char *dropped, *corrupt, *parts;
    int noise, pooled;
    double clip;
};

/* The settings of noise shares; sites 0: noise is added in one place. */
struct crew {
    uint32_t sites, dropped, corrupt, counted;
    double rho,
        surplus;   /* zCDP of the release; excess variance when no site is lost, as a fraction of the required one */
    uint32_t bits; /* of one masked number; 0: not known without --records */
};

static int noise_parse(const char *s) /* opposite default: this verb plans one place first */
{
    int place = fkt_noise_parse(s);
    return place < 0 ? place : place == FKT_NOISE_PLACE_DISTRIBUTED;
}

static int moments_parse(const char *s) { return !strcmp(s, "class") ? 0 : !strcmp(s, "pooled") ? 1 : -1; }

static fkt_status bad_part(const char *word, int len)
{
    return fkt_fail(FKT_E_ARG, "--parts: '%.*s' is not dim:R or dim:R:S:M, like 65:1.06:16:50", len, word);
}

/* One further part, d:R or d:R:S:M; without shares it has those of the first part. */
static fkt_status read_part(const char *word, size_t len, struct fkt_privacy_spec *spec, struct fkt_moments_layout *l)
{
    struct fkt_privacy_part *part = &spec->part[spec->parts];
    double number[4] = {0, 0, spec->part[0].split_sum, spec->part[0].split_moment};
    char text[160], *rest = text;
    int n = 0;
    if (len >= sizeof text) return bad_part(word, (int)len);
    memcpy(text, word, len);
    text[len] = '\0';
    for (char *next; rest && n < 4; rest = next) {
        next = strchr(rest, ':');
        if (next) *next++ = '\0';
        if (fkt_parse_double(&number[n++], rest) != FKT_OK) return bad_part(word, (int)len);
    }
    if (rest || (n != 2 && n != 4) || !(number[0] >= 1 && number[0] <= FKT_LENGTH_MAX) || number[0] != floor(number[0]))
        return bad_part(word, (int)len);
    *part = (struct fkt_privacy_part){number[1], number[2], number[3]};
    l->length[l->parts++] = (uint32_t)number[0];
    spec->parts++;
    return FKT_OK;
}

/* The whole query: the first part from --dim and --clip, further ones from --parts. */
static fkt_status read_parts(const struct asked *a, struct fkt_privacy_spec *spec, struct fkt_moments_layout *l)
{
    if (a->dim < 1 || a->dim > FKT_LENGTH_MAX)
        return fkt_fail(FKT_E_ARG, "--dim must be between 1 and %u", FKT_LENGTH_MAX);
    spec->part[0].radius = a->clip;
    spec->pooled = a->pooled;
    *l = (struct fkt_moments_layout){.parts = 1, .length = {(uint32_t)a->dim}, .pooled = a->pooled};
    for (const char *s = a->parts; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
        fkt_status st;
        if (spec->parts == FKT_PARTS_MAX)
            return fkt_fail(FKT_E_ARG, "--parts: a record vector has at most %d parts", FKT_PARTS_MAX);
        st = read_part(s, strcspn(s, ","), spec, l);
        if (st != FKT_OK) return st;
    }
    if (fkt_layout_length(l) > FKT_LENGTH_MAX)
        return fkt_fail(FKT_E_ARG, "--dim and --parts: a record vector has at most %u numbers, all parts together",
                        FKT_LENGTH_MAX);
    if (a->classes > FKT_TASK_CLASSES_MAX)
        return fkt_fail(FKT_E_ARG, "--classes must be between 1 and %u", FKT_TASK_CLASSES_MAX);
    return FKT_OK;
}

/* Bits of a masked number, as a task has them for sites of so many records in a class. */
static uint32_t bits_of(const struct asked *a, const struct fkt_share_plan *s, uint32_t sites)
{
    const double moment = (double)FKT_RQ_DEFAULT * FKT_RQ_DEFAULT * (a->pooled ? (double)a->classes : 1);
    const double bound = (double)a->records * fmax(moment, s->count_scale) + ceil((double)s->tail / sqrt(sites)) + 1;
    return a->records && a->classes && bound < 0x1p62 ? fkt_sa_bits(sites, (uint64_t)bound) : 0;
}

static fkt_status plan_shares(const struct asked *a, const struct fkt_privacy_spec *spec, struct fkt_privacy_plan *plan,
                              struct crew *c)
{
    struct fkt_privacy_spec integers = *spec;
    struct fkt_share_plan shares;
    fkt_status st = FKT_OK;
    if (a->sites < 3 || a->sites > FKT_SA_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "--noise distributed needs --sites between 3 and %u", FKT_SA_SITES_MAX);
    for (uint32_t p = 0; p < spec->parts; p++)
        if (!(spec->part[p].radius > 0))
            return fkt_fail(FKT_E_ARG, "%s must be positive", p ? "--parts: the radius" : "--clip");
    c->sites = (uint32_t)a->sites;
    FKT_TRY(cli_share_of("corrupt", a->corrupt ? a->corrupt : "0.1", c->sites, &c->corrupt));
    FKT_TRY(cli_dropped_of(a->dropped, c->sites, c->corrupt, &c->dropped));
    FKT_TRY(fkt_federation_check_crew(c->sites, c->dropped, c->corrupt, FKT_NOISE_PLACE_DISTRIBUTED));
    c->counted = c->sites - c->dropped - c->corrupt;
    for (uint32_t p = 0; p < spec->parts; p++) integers.part[p].radius = FKT_RQ_DEFAULT;
    FKT_TRY(fkt_privacy_plan_shares(&shares, &integers, c->counted, c->sites));
    c->rho = shares.rho;
    c->surplus = (double)c->sites / c->counted - 1;
    c->bits = bits_of(a, &shares, c->sites);
    *plan = shares.plan;
    for (uint32_t p = 0; p < spec->parts; p++) {
        const double unit = spec->part[p].radius / FKT_RQ_DEFAULT;
        plan->sigma[p].sum *= unit;
        plan->sigma[p].moment *= unit * unit;
    }
out:
    return st;
}

static void print_size(const struct fkt_moments_layout *l, const struct crew *c, const struct asked *a)
{
    const size_t numbers = fkt_layout_numbers(l, (uint32_t)a->classes);
    printf("\nwith %llu classes%s a site sends %zu numbers: %.1f KiB of 64 bits", (unsigned long long)a->classes,
           l->pooled ? " and pooled second moments" : "", numbers, (double)numbers * 8 / 1024);
    if (c->bits) printf(", %.1f KiB masked to %u bits", ceil((double)numbers * c->bits / 8) / 1024, c->bits);
    putchar('\n');
}

static void print_noise(const struct fkt_privacy_plan *p, const struct fkt_moments_layout *l)
{
    const int one = p->spec.parts == 1;
    if (p->sigma_count > 0) printf("  sigma count    %.6g records\n", p->sigma_count);
    else printf("  sigma count    0 (counts are public under this adjacency)\n");
    for (uint32_t i = 0; i < p->spec.parts; i++) {
        const double R = p->spec.part[i].radius, sum = p->sigma[i].sum, moment = p->sigma[i].moment;
        if (!one) printf("  part %u, %u numbers in a ball of radius %g:\n", i + 1, l->length[i], R);
        printf("  sigma sum      %.6g   (%.4g R)\n", sum, sum / R);
        printf("  sigma moment   %.6g   (%.4g R^2 on the diagonal, /sqrt 2 off it)\n", moment, moment / (R * R));
    }
}

static void print(const struct fkt_privacy_plan *p, const struct fkt_moments_layout *l, const struct crew *c,
                  const struct asked *a)
{
    char why[FKT_PROMISE_WORDS];
    printf("epsilon %.6g, delta %.3g, adjacency %s, mechanism %s\n", p->spec.epsilon, p->spec.delta,
           fkt_adjacency_name(p->spec.adjacency), fkt_mechanism_name(p->spec.mechanism));
    if (fkt_privacy_promise(p->spec.epsilon, p->spec.delta, 0, why) == FKT_PROMISE_WEAK)
        printf("WEAK PROMISE: %s; nothing made of it is called private\n", why);
    printf("protects: %s\n\n", fkt_adjacency_protects(p->spec.adjacency));
    if (c->sites) {
        printf("  noise shares   %u of %u are needed: %u sites may be lost, %u may collude\n", c->counted, c->sites,
               c->dropped, c->corrupt);
    }
    printf("  mu (GDP)       %.6g\n", p->mu);
    print_noise(p, l);
    if (c->sites) {
        printf("  when no site is lost, the total has %.3g %% more variance than this\n", 100 * c->surplus);
        printf("  epsilon spent  %.6g\n", p->epsilon_spent);
    } else if (p->epsilon_spent < 0.999 * p->spec.epsilon)
        printf("  this noise spends only epsilon %.4g: the recipe wastes the rest\n", p->epsilon_spent);
    for (uint32_t i = 0; a->records && i < p->spec.parts; i++) {
        const double n = (double)a->records, R = p->spec.part[i].radius;
        /* the covariance of pooled moments is an average over the records of all classes */
        const double all = n * (l->pooled && a->classes ? (double)a->classes : 1);
        if (i == 0) printf("\nwith %llu records in a class:\n", (unsigned long long)a->records);
        if (p->spec.parts > 1) printf("  part %u:\n", i + 1);
        printf("  noise in each coordinate of the mean       %.3g R\n", p->sigma[i].sum / n / R);
        printf("  spectral edge of the noise in a covariance %.3g R^2   (directions with less variance are below the "
               "noise)\n",
               sqrt(2.0 * l->length[i]) * p->sigma[i].moment / all / (R * R));
    }
    if (a->classes) print_size(l, c, a);
}

/* Everything beyond the keys that a query of one part without classes has. */
static void add_parts(json_t *j, const struct fkt_privacy_plan *p, const struct fkt_moments_layout *l,
                      const struct crew *c, const struct asked *a)
{
    json_t *parts = json_array();
    for (uint32_t i = 0; i < p->spec.parts; i++) {
        const struct fkt_privacy_part *part = &p->spec.part[i];
        json_array_append_new(parts, json_pack("{s:I s:f s:[ff] s:f s:f}", "dim", (json_int_t)l->length[i], "clip",
                                               part->radius, "budget_split", part->split_sum, part->split_moment,
                                               "sigma_sum", p->sigma[i].sum, "sigma_moment", p->sigma[i].moment));
    }
    if (p->spec.parts > 1) json_object_set(j, "parts", parts);
    json_decref(parts);
    if (l->pooled) json_object_set_new(j, "moments", json_string("pooled"));
    if (a->classes) {
        const size_t numbers = fkt_layout_numbers(l, (uint32_t)a->classes);
        json_t *size = json_pack("{s:I s:I s:I}", "classes", (json_int_t)a->classes, "numbers", (json_int_t)numbers,
                                 "bytes_per_site", (json_int_t)(numbers * sizeof(int64_t)));
        if (size && c->bits) {
            json_object_set_new(size, "bits", json_integer(c->bits));
            json_object_set_new(size, "bytes_masked", json_integer((json_int_t)ceil((double)numbers * c->bits / 8)));
        }
        json_object_set_new(j, "size", size);
    }
}

static fkt_status print_json(const struct fkt_privacy_plan *plan, const struct fkt_privacy_spec *spec,
                             const struct fkt_moments_layout *l, const struct crew *crew, const struct asked *a)
{
    const struct fkt_privacy_part *part = &spec->part[0];
    const double n = (double)a->records, all = n * (l->pooled && a->classes ? (double)a->classes : 1);
    json_t *j = json_pack("{s:f s:f s:f s:f s:f s:f s:f s:s s:s s:s s:i s:f s:[fff] s:s}", "mu", plan->mu,
                          "sigma_count", plan->sigma_count, "sigma_sum", plan->sigma[0].sum, "sigma_moment",
                          plan->sigma[0].moment, "epsilon", spec->epsilon, "delta", spec->delta, "epsilon_spent",
                          plan->epsilon_spent, "adjacency", fkt_adjacency_name(spec->adjacency), "mechanism",
                          fkt_mechanism_name(spec->mechanism), "protects", fkt_adjacency_protects(spec->adjacency),
                          "dim", (int)a->dim, "clip", a->clip, "budget_split", spec->split_count, part->split_sum,
                          part->split_moment, "noise", crew->sites ? "distributed" : "central");
    if (j && a->records)
        json_object_set_new(j, "with_records",
                            json_pack("{s:I s:f s:f}", "records", (json_int_t)a->records, "mean_noise",
                                      plan->sigma[0].sum / n, "covariance_edge",
                                      sqrt(2 * (double)a->dim) * plan->sigma[0].moment / all));
    if (j && fkt_privacy_promise(spec->epsilon, spec->delta, 0, NULL) == FKT_PROMISE_WEAK)
        json_object_set_new(j, "promise", json_string("weak"));
    if (j && crew->sites)
        json_object_set_new(j, "federation",
                            json_pack("{s:I s:I s:I s:I s:f s:f}", "sites", (json_int_t)crew->sites, "dropped",
                                      (json_int_t)crew->dropped, "corrupt", (json_int_t)crew->corrupt, "counted",
                                      (json_int_t)crew->counted, "rho", crew->rho, "surplus", crew->surplus));
    if (j) add_parts(j, plan, l, crew, a);
    return cli_print_json(j);
}

static fkt_status run(const struct asked *a)
{
    struct fkt_moments_layout layout;
    struct fkt_privacy_spec spec;
    struct fkt_privacy_plan plan;
    struct crew crew = {0};
    double eps;
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_privacy_spec(&a->privacy, eps, &spec));
    FKT_TRY(read_parts(a, &spec, &layout));
    FKT_TRY(cli_accept_promise("promise", spec.epsilon, spec.delta, a->privacy.accept_weak));
    if (a->noise) FKT_TRY(plan_shares(a, &spec, &plan, &crew));
    else if (a->sites || a->dropped || a->corrupt)
        return fkt_fail(FKT_E_ARG, "--sites, --dropped and --corrupt are for noise shares: give --noise distributed");
    else FKT_TRY(fkt_privacy_plan(&plan, &spec));
    plan.spec = spec; /* radii in units of the ball, not of the integers */
    if (a->run.json) FKT_TRY(print_json(&plan, &spec, &layout, &crew, a));
    else print(&plan, &layout, &crew, a);
out:
    return st;
}

int cli_privacy(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_PRIVACY_ROWS(a.privacy, 1),
        CLI_WEAK_ROW(a.privacy.accept_weak),
        CLI_OPT_HEAD("the query"),
        CLI_OPT_WHOLE("dim", &a.dim, "d", 1, "length of the record vector"),
        CLI_OPT_REAL("clip", &a.clip, "R", 1, "radius of the ball that holds every record"),
        CLI_OPT_TEXT(
            "parts", &a.parts, "d:R[:S:M],...", 0,
            "further parts of the record vector, a guide's for example: length, radius, budget of sum and second "
            "moment (default: as the first part)"),
        CLI_OPT_CHOICE("moments", &a.pooled, moments_parse, "class or pooled",
                       "a second moment for each class, or one for all of them"),
        CLI_OPT_POSITIVE("classes", &a.classes, "K", 0, "number of classes, to print what a site sends"),
        CLI_OPT_POSITIVE("records", &a.records, "n", 0,
                         "records in a class, to print the noise's effect on it; delta is compared with 1e-3 only, "
                         "while 'task new' also compares it with 1/(records of all sites)"),
        CLI_OPT_HEAD("who adds it"),
        CLI_OPT_CHOICE("noise", &a.noise, noise_parse, "central or distributed",
                       "one place after the sum, or every site its noise share before masking"),
        CLI_OPT_POSITIVE("sites", &a.sites, "N", 0, "sites of the federation, for noise shares"),
        CLI_OPT_TEXT("dropped", &a.dropped, "F|N", 0,
                     "fraction (0.1; rounded up) or number (1) of sites that may be lost (default: 0.1 and at least 2, "
                     "but 1 of five or six sites and 0 of fewer)"),
        CLI_OPT_TEXT(
            "corrupt", &a.corrupt, "F|N", 0,
            "fraction (0.1; rounded up) or number (1) of sites that may collude with the server (default: 0.1)"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
