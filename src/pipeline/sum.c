/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c - a task in cohorts: the releases of its cohorts, added up into one.
 *
 *   release of cohort 0, of cohort 2, ...  -> same division? each once? -> numbers added -> release, certificate
 *
 * Adding releases is post-processing: each keeps its promise by itself, a record is in one of them, so the sum has
 * the promise of the costliest (src/privacy/cohorts.md, step 1). The task of the sum is derived from those of the
 * cohorts and is the same for all of them (task/division.c), or they are not added.
 *
 * A cohort that gave no release is not in the sum: neither its records nor its noise. The certificate lists the cohorts
 * that are, with their sites and survivors, and everything that it states is derived from that list again when it is
 * read. What the split costs is stated against one cohort of the same sites. */
#include "pipeline/sum.h"

#include "task/division.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX (INT64_MAX / 2) /* release.c reads no larger number */

void fkt_sum_clear(struct fkt_sum *s)
{
    fkt_free(s->cohort);
    fkt_free(s->shape);
    memset(s, 0, sizeof *s);
}

static fkt_status make_room(struct fkt_sum *s, uint32_t n)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->cohort, n));
    FKT_TRY(fkt_alloc(&s->shape, n));
    s->n = n;
out:
    return st;
}

/* Ascending, different, and of the division. */
static fkt_status check_list(const struct fkt_release *r)
{
    const struct fkt_division *d = &r->task.division;
    const struct fkt_sum *s = &r->sum;
    uint64_t sites = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sites += s->shape[i].sites;
        if (s->cohort[i].index >= d->number || (i && s->cohort[i].index <= s->cohort[i - 1].index))
            return fkt_fail(FKT_E_MISMATCH, "cohort %u of %u is in the sum twice, or out of order", s->cohort[i].index,
                            d->number);
    }
    if (!s->n || sites > d->sites)
        return fkt_fail(FKT_E_MISMATCH, "%u cohorts with %llu sites, of a task with %u", s->n,
                        (unsigned long long)sites, d->sites);
    return FKT_OK;
}

fkt_status fkt_sum_plan(struct fkt_release *r)
{
    struct fkt_sum *s = &r->sum;
    fkt_status st;
    FKT_TRY(check_list(r));
    FKT_TRY(fkt_privacy_cohorts(&s->noise, &r->task.privacy, s->shape, s->n));
    r->plan = s->noise.plan;
    s->covered = fkt_privacy_covered(r->task.division.sites, s->shape, s->n);
out:
    return st;
}

/* ---- from releases ---- */

static int by_index(const void *a, const void *b)
{
    const uint32_t x = (*(const struct fkt_release *const *)a)->task.division.index;
    const uint32_t y = (*(const struct fkt_release *const *)b)->task.division.index;
    return (x > y) - (x < y);
}

static fkt_status check_same(const struct fkt_task *whole, const struct fkt_release *r, const struct fkt_release *first)
{
    struct fkt_task own = {0};
    fkt_status st = fkt_task_whole(&own, &r->task);
    if (st != FKT_OK) return st;
    if (fkt_task_is_whole(&r->task)) st = fkt_fail(FKT_E_MISMATCH, "it is a sum of cohorts already");
    else if (strcmp(own.sha256, whole->sha256) != 0)
        st = fkt_fail_hint(FKT_E_MISMATCH, "add releases of one division; ask the operator why there are two",
                           "cohort %u is of another division than cohort %u: %.12s and %.12s", r->task.division.index,
                           first->task.division.index, own.sha256, whole->sha256);
    else if (r->facts.simulated != first->facts.simulated)
        st = fkt_fail(FKT_E_MISMATCH, "cohort %u was simulated, or cohort %u was", r->task.division.index,
                      first->task.division.index);
    fkt_task_clear(&own);
    return st;
}

static fkt_status add_one(struct fkt_release *out, uint32_t i, const struct fkt_release *r)
{
    const struct fkt_federation *f = &r->task.federation;
    const size_t n = fkt_task_numbers(&out->task);
    struct fkt_sum_cohort *c = &out->sum.cohort[i];
    c->index = r->task.division.index;
    snprintf(c->task_sha256, sizeof c->task_sha256, "%s", r->task.sha256);
    snprintf(c->release_sha256, sizeof c->release_sha256, "%s", r->sha256);
    out->sum.shape[i] = (struct fkt_cohort){f->sites, f->dropped, f->corrupt, r->facts.survivors};
    out->facts.survivors += r->facts.survivors;
    out->facts.composed_epsilon = fmax(out->facts.composed_epsilon, r->facts.composed_epsilon);
    out->insecure_seed |= r->insecure_seed;
    for (size_t k = 0; k < n; k++) {
        out->moments[k] += r->moments[k]; /* both at most 2^62 in size */
        if (out->moments[k] > NUMBER_MAX || out->moments[k] < -NUMBER_MAX)
            return fkt_fail(FKT_E_NUMERIC, "number %zu of the sum of cohorts is beyond 2^62", k);
    }
    return FKT_OK;
}

fkt_status fkt_release_sum_into(struct fkt_release *out, struct fkt_release *const *cohort, uint32_t n)
{
    struct fkt_release **sorted = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!n) return fkt_fail(FKT_E_TOO_FEW, "no cohort has a release");
    FKT_TRY(fkt_alloc(&sorted, n));
    memcpy(sorted, cohort, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_index);
    FKT_TRY(fkt_task_whole(&out->task, &sorted[0]->task));
    for (uint32_t p = 0; p < out->task.parts; p++)
        FKT_TRY(fkt_calibration_copy(&out->calibration[p], &sorted[0]->calibration[p]));
    FKT_TRY(fkt_alloc(&out->moments, fkt_task_numbers(&out->task)));
    FKT_TRY(make_room(&out->sum, n));
    out->facts.sites = out->task.division.sites;
    out->facts.simulated = sorted[0]->facts.simulated;
    for (uint32_t i = 0; i < n; i++) {
        FKT_TRY(check_same(&out->task, sorted[i], sorted[0]));
        FKT_TRY(add_one(out, i, sorted[i]));
    }
    FKT_TRY(fkt_sum_plan(out));
    out->sigma = out->sum.noise.sigma;
    FKT_TRY(fkt_release_seal(out));
out:
    fkt_free(sorted);
    if (st != FKT_OK) fkt_release_clear(out);
    return st;
}

/* ---- in the certificate ---- */

static json_t *missing_json(const struct fkt_release *r)
{
    json_t *list = json_array();
    for (uint32_t c = 0, i = 0; list && c < r->task.division.number; c++) {
        if (i < r->sum.n && r->sum.cohort[i].index == c) i++;
        else json_array_append_new(list, json_integer(c));
    }
    return list;
}

static json_t *list_json(const struct fkt_sum *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < s->n; i++) {
        const struct fkt_cohort *c = &s->shape[i];
        json_array_append_new(
            list, json_pack("{s:I s:I s:I s:I s:I s:I s:s s:s}", "index", (json_int_t)s->cohort[i].index, "sites",
                            (json_int_t)c->sites, "survivors", (json_int_t)c->survivors, "counted",
                            (json_int_t)(c->sites - c->dropped - c->corrupt), "dropped_tolerated",
                            (json_int_t)c->dropped, "corrupt_tolerated", (json_int_t)c->corrupt, "task_sha256",
                            s->cohort[i].task_sha256, "release_sha256", s->cohort[i].release_sha256));
    }
    return list;
}

json_t *fkt_sum_json(const struct fkt_release *r)
{
    const struct fkt_division *d = &r->task.division;
    const struct fkt_privacy_plan *p = &r->plan;
    const struct fkt_cohorts_noise *q = &r->sum.noise;
    return json_pack(
        "{s:I s:I s:o s:o s:{s:f s:f s:f s:f} s:{s:f s:f s:f s:f} s:{s:f s:f s:f} s:{s:f s:f} s:{s:I s:f s:i}}",
        "number", (json_int_t)d->number, "in_sum", (json_int_t)r->sum.n, "missing", missing_json(r), "list",
        list_json(&r->sum), "promise_of_sum", "epsilon", p->spec.epsilon, "delta", p->spec.delta, "mu", p->mu,
        "epsilon_spent", p->epsilon_spent, "promise_of_one_total", "epsilon", p->spec.epsilon, "delta", p->spec.delta,
        "mu", p->mu, "epsilon_spent", p->epsilon_spent, "noise_of_sum", "sigma_count", q->sigma.count, "sigma_sum",
        q->sigma.part[0].sum, "sigma_moment", q->sigma.part[0].moment, "against_one_cohort", "variance",
        q->variance_factor, "standard_deviation", sqrt(q->variance_factor), "colluding_covered", "sites",
        (json_int_t)r->sum.covered, "share", (double)r->sum.covered / d->sites, "security", FKT_COLLUSION_BITS);
}

static fkt_status take_cohort(struct fkt_sum *s, uint32_t i, const json_t *j)
{
    json_int_t index, sites, survivors, counted, dropped, corrupt;
    const char *task, *release;
    json_error_t e;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:I s:I s:I s:I s:I s:I s:s s:s}", "index", &index,
                       "sites", &sites, "survivors", &survivors, "counted", &counted, "dropped_tolerated", &dropped,
                       "corrupt_tolerated", &corrupt, "task_sha256", &task, "release_sha256", &release) != 0)
        return fkt_fail(FKT_E_FORMAT, "certificate: cohorts: %s", e.text);
    if (index < 0 || index >= FKT_DIVISION_WHOLE || sites < 3 || sites > FKT_SA_SITES_MAX || survivors < 1 ||
        survivors > sites || dropped < 0 || dropped > sites || corrupt < 0 || corrupt > sites ||
        strlen(task) != FKT_SHA256_HEX - 1 || strlen(release) != FKT_SHA256_HEX - 1)
        return fkt_fail(FKT_E_FORMAT, "certificate: cohort %u of its list has a number or hash out of range", i);
    s->cohort[i].index = (uint32_t)index;
    snprintf(s->cohort[i].task_sha256, sizeof s->cohort[i].task_sha256, "%s", task);
    snprintf(s->cohort[i].release_sha256, sizeof s->cohort[i].release_sha256, "%s", release);
    s->shape[i] = (struct fkt_cohort){(uint32_t)sites, (uint32_t)dropped, (uint32_t)corrupt, (uint32_t)survivors};
    return FKT_OK;
}

fkt_status fkt_sum_take(struct fkt_release *r, const char *certificate)
{
    json_t *root = json_loads(certificate, JSON_REJECT_DUPLICATES, NULL);
    const json_t *list = json_object_get(json_object_get(root, "cohorts"), "list");
    const size_t n = json_array_size(list);
    fkt_status st = FKT_OK;
    if (!n || n > r->task.division.number) {
        st = fkt_fail(FKT_E_FORMAT, "certificate: it does not list the cohorts that are in the sum");
        goto out;
    }
    FKT_TRY(make_room(&r->sum, (uint32_t)n));
    for (uint32_t i = 0; i < n; i++) FKT_TRY(take_cohort(&r->sum, i, json_array_get(list, i)));
out:
    json_decref(root);
    return st;
}

json_t *fkt_sum_holds_against(const struct fkt_release *r)
{
    const uint32_t missing = r->task.division.number - r->sum.n;
    char words[768];
    snprintf(words, sizeof words,
             "readers of the release and of the total of every cohort in the sum, the operator among them, with up to "
             "the tolerated number of colluding sites in each of these cohorts: if sites were assigned by randomness "
             "that nobody could know or "
             "choose when their keys were fixed, with up to %u colluding sites of %u, except with probability 2^-%d; "
             "assuming that every survivor outside the colluding ones added its share, and towards the operator as "
             "long as the cryptography holds%s",
             r->sum.covered, r->task.division.sites, FKT_COLLUSION_BITS,
             missing ? "; nothing is stated for the sites of the cohorts that are not in the sum" : "");
    return json_string(words);
}

void fkt_sum_warnings(json_t *list, const struct fkt_release *r)
{
    const uint32_t missing = r->task.division.number - r->sum.n;
    char words[160];
    if (!missing) return;
    snprintf(words, sizeof words, "%u of %u cohorts gave no release: their sites are not in the sum", missing,
             r->task.division.number);
    json_array_append_new(list, json_string(words));
}
