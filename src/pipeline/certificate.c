/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - what a release promises, in JSON, derived from the plan that drew its noise
 * (docs/schema/certificate.json). Nothing in it is given by the caller: epsilon, delta and adjacency are the task's, mu
 * and the sigmas the plan's, the hashes are computed, and the mark of an insecure seed comes from the entropy source
 * itself. With distributed noise it states how many noise shares the promise counts (those of the honest sites that are
 * certain to be in a total) and how many there were.
 *
 * A certificate that is read back is re-derived and compared; the only facts taken from it are those that cannot be
 * derived: sites, survivors, the mark, the ledger, the composed epsilon. It is the claim of the releasing party: a
 * file that is consistent passes. */
#include "pipeline/release.h"
#include "pipeline/sum.h"

#include "task/part.h"

#include "base/alloc.h"
#include "crypto/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "fedkt.certificate/1"
#define LEDGER_FILE "file"
#define LEDGER_IN_MEMORY "memory"
#define LEDGERS_OF_SITES "each site's own"
#define SIMULATION "none (simulation)"
#define SYSTEM "operating system"

static int has_shares(const struct fkt_release *r) { return r->shares.counted > 0 || r->sum.n > 0; }

/* With a server, or with distributed noise, the sites' ledgers have paid: the releasing process has no ledger. */
static int has_sites_ledgers(const struct fkt_release *r)
{
    return !r->facts.simulated && (r->task.service.address[0] != '\0' || has_shares(r));
}

static const char *ledger_of(const struct fkt_release *r)
{
    if (r->facts.simulated) return SIMULATION;
    if (has_sites_ledgers(r)) return LEDGERS_OF_SITES;
    return r->paid_by_file ? LEDGER_FILE : LEDGER_IN_MEMORY;
}

static json_t *warnings(const struct fkt_release *r)
{
    char why[FKT_PROMISE_WORDS], words[FKT_PROMISE_WORDS + 64];
    json_t *list = json_array();
    if (r->insecure_seed)
        json_array_append_new(list,
                              json_string("INSECURE: the noise came from a known seed; this release is NOT private"));
    if (fkt_release_promise(r, why) == FKT_PROMISE_WEAK) {
        snprintf(words, sizeof words, "WEAK PROMISE: %s; this release is not called private", why);
        json_array_append_new(list, json_string(words));
    }
    if (r->task.privacy.mechanism == FKT_MECHANISM_PAPER)
        json_array_append_new(
            list, json_string(
                      "the paper's recipe is kept for comparison; it spends less than epsilon for the noise it adds"));
    if (fkt_adjacency_counts_public(r->task.privacy.adjacency))
        json_array_append_new(list, json_string("class counts and labels are public under this adjacency"));
    if (r->facts.simulated)
        json_array_append_new(
            list,
            json_string("made by a simulation, which keeps no ledger: every further run on these records adds up"));
    if (!strcmp(ledger_of(r), LEDGER_IN_MEMORY))
        json_array_append_new(list, json_string("the program that made it kept its ledger in memory: no file knows "
                                                "what else is released of these records"));
    if (has_sites_ledgers(r))
        json_array_append_new(list, json_string("what else was released of these records only each site's own ledger "
                                                "knows: composed_epsilon is of this release alone"));
    if (r->facts.composed_epsilon > r->task.privacy.epsilon * (1 + 1e-9))
        json_array_append_new(list, json_string("other releases of the same dataset were made beside this one: see "
                                                "composed_epsilon"));
    if (r->sum.n) fkt_sum_warnings(list, r);
    json_array_append_new(list,
                          json_string("one record is protected, not one person: several records of one person add up"));
    for (uint32_t p = 0; p < r->task.parts; p++) {
        snprintf(words, sizeof words, "what the public %s was trained on is not covered",
                 fkt_part_name(r->task.part[p].kind));
        json_array_append_new(list, json_string(words));
    }
    return list;
}

/* Which noise shares the promise counts, and how much more noise there is; null with central noise, and for a sum of
 * cohorts, where it is stated for each. */
static json_t *noise_shares(const struct fkt_release *r)
{
    const struct fkt_federation *f = &r->task.federation;
    if (!r->shares.counted) return json_null();
    return json_pack("{s:I s:I s:f s:I s:I}", "counted", (json_int_t)r->shares.counted, "in_total",
                     (json_int_t)r->facts.survivors, "surplus_variance",
                     (double)r->facts.survivors / r->shares.counted - 1, "dropped_tolerated", (json_int_t)f->dropped,
                     "corrupt_tolerated", (json_int_t)f->corrupt);
}

/* Against whom the promise holds. A simulation holds all sites in one process. On a sparse graph some round in
 * 2^security has a site that is surrounded by corrupt ones (src/secagg/finder.md); a complete graph has none. */
static json_t *holds_against(const struct fkt_release *r)
{
    const struct fkt_federation *f = &r->task.federation;
    char words[320], bits[80] = "";
    if (r->insecure_seed) return json_string("nobody: the noise came from a known seed");
    if (r->facts.simulated) return json_string("readers of the release; one process held all records and keys");
    if (r->sum.n) return fkt_sum_holds_against(r);
    if (!f->sites) return json_string("readers of the release; whoever added the noise saw exact sums");
    if (!r->shares.counted)
        return json_string("readers of the release; the server saw the exact total, and no single site's numbers");
    if (f->degree + 1 < f->sites)
        snprintf(bits, sizeof bits, ", and except with probability 2^-%u for each round begun", f->security);
    snprintf(words, sizeof words,
             "readers of the release and the server with up to %u colluding site%s, assuming that every survivor "
             "outside the colluding ones added its share; towards the server as long as the cryptography holds%s",
             f->corrupt, f->corrupt == 1 ? "" : "s", bits);
    return json_string(words);
}

/* What is claimed of part p, into `to`: the certificate itself for a codec, an object of its own for a guide. Joined
 * parts have one noise, which is stated once, with the first of them. */
static int part_json(json_t *to, const struct fkt_release *r, uint32_t p)
{
    const struct fkt_task_part *part = &r->task.part[p];
    const struct fkt_coordinates *c = &part->coordinates;
    json_t *facts = json_pack("{s:s s:i s:i s:f s:i s:{s:s s:I s:s}}", "coordinates", fkt_coordinate_name(c->kind),
                              "dim", (int)c->dim, "length", (int)c->length, "radius", c->radius, "rq", (int)c->rq,
                              "calibration", "source", r->calibration[p].source, "images",
                              (json_int_t)r->calibration[p].images, "sha256", part->calibration_sha256);
    int bad = json_object_update(to, facts);
    json_decref(facts);
    if (p && r->task.joined) return bad;
    bad |= json_object_set_new(to, "sigma_sum", json_real(r->plan.sigma[p].sum));
    bad |= json_object_set_new(to, "sigma_moment", json_real(r->plan.sigma[p].moment));
    return bad;
}

static int parts_json(json_t *certificate, const struct fkt_release *r)
{
    int bad = 0;
    for (uint32_t p = 0; p < r->task.parts; p++) {
        const struct fkt_task_part *part = &r->task.part[p];
        json_t *network =
            json_pack("{s:s s:s s:s}", "name", part->name, "identity", part->identity, "sha256", part->sha256);
        bad |= part_json(part->kind == FKT_PART_GUIDE ? network : certificate, r, p);
        bad |= json_object_set_new(certificate, fkt_part_name(part->kind), network); /* last: it may free `network` */
    }
    return bad | fkt_parts_moments_json(certificate, &r->task);
}

json_t *fkt_certificate_json(const struct fkt_release *r)
{
    const struct fkt_privacy_spec *p = &r->task.privacy;
    const struct fkt_privacy_plan *q = &r->plan;
    double composed = fmax(r->facts.composed_epsilon, p->epsilon);
    int shared = has_shares(r);
    char hash[FKT_SHA256_HEX];
    json_t *j;
    fkt_hash_bytes_hex(hash, r->moments, fkt_task_numbers(&r->task) * sizeof *r->moments);
    j = json_pack(
        "{s:s s:b s:s s:s s:s s:s s:s s:f s:f s:f s:f s:f s:o s:i s:s s:s s:i s:i s:s s:f s:s s:o s:s s:f s:o s:o "
        "s:s*}",
        "schema", SCHEMA, "private", !fkt_release_not_private(r), "mechanism", fkt_mechanism_name(p->mechanism),
        "noise",
        shared ? "distributed: discrete Gaussian shares on integer sums, sampled exactly, added by each site before "
                 "masking"
               : "central: rounded Gaussian on integer sums, sampled exactly",
        "entropy", r->insecure_seed ? "INSECURE SEED" : SYSTEM, "adjacency", fkt_adjacency_name(p->adjacency), "unit",
        "record", "epsilon", p->epsilon, "delta", p->delta, "mu", q->mu, "epsilon_spent", q->epsilon_spent,
        "sigma_count", q->sigma_count, "budget_split", fkt_split_json(p), "classes", (int)r->task.n_classes,
        "task_sha256", r->task.sha256, "noised_moments_sha256", hash, "sites", (int)r->facts.sites, "survivors",
        (int)r->facts.survivors, "ledger", ledger_of(r), "composed_epsilon", composed, "version", fkt_version(),
        "warnings", warnings(r), "accounting", "gdp", "rho", r->shares.counted ? r->shares.rho : q->mu * q->mu / 2,
        "noise_shares", noise_shares(r), "holds_against", holds_against(r), "promise",
        fkt_release_promise(r, NULL) == FKT_PROMISE_WEAK ? "weak" : NULL);
    if (j && parts_json(j, r) == 0 && (!r->sum.n || json_object_set_new(j, "cohorts", fkt_sum_json(r)) == 0)) return j;
    json_decref(j);
    return NULL;
}

fkt_status fkt_release_certificate(const struct fkt_release *r, char **json)
{
    return fkt_json_text(json, fkt_certificate_json(r), 2);
}

/* Reals may differ in their last digits between two machines' libm; everything else must be equal. */
static int agrees(const json_t *a, const json_t *b)
{
    if (json_is_real(a) && json_is_number(b)) {
        double x = json_real_value(a), y = json_number_value(b);
        return fabs(x - y) <= 1e-9 * fabs(x);
    }
    if (json_is_object(a) && json_is_object(b) && json_object_size(a) == json_object_size(b)) {
        const char *key;
        const json_t *value;
        json_object_foreach ((json_t *)(uintptr_t)a, key, value)
            if (!agrees(value, json_object_get(b, key))) return 0;
        return 1;
    }
    if (json_is_array(a) && json_is_array(b) && json_array_size(a) == json_array_size(b)) {
        for (size_t i = 0; i < json_array_size(a); i++)
            if (!agrees(json_array_get(a, i), json_array_get(b, i))) return 0;
        return 1;
    }
    return json_equal(a, b);
}

fkt_status fkt_facts_check(const struct fkt_task *task, const struct fkt_round_facts *facts)
{
    const struct fkt_federation *f = &task->federation;
    if (facts->sites < 1 || facts->survivors < 1 || facts->survivors > facts->sites)
        return fkt_fail(FKT_E_FORMAT, "%u survivors of %u sites", facts->survivors, facts->sites);
    if (f->sites && (facts->sites != f->sites || facts->survivors < f->sites - f->dropped))
        return fkt_fail(FKT_E_FORMAT, "%u survivors of %u sites, though the task has %u and may lose %u",
                        facts->survivors, facts->sites, f->sites, f->dropped);
    if (task->division.number && !f->sites && facts->sites != task->division.sites)
        return fkt_fail(FKT_E_FORMAT, "%u sites, though the task has %u", facts->sites, task->division.sites);
    return FKT_OK;
}

/* Older certificates lack the keys that distinguish distributed from central noise. */
static void forget_what_was_not_asked(json_t *derived, const json_t *said, const struct fkt_release *r)
{
    static const char *const later[] = {"accounting", "rho", "noise_shares", "holds_against"};
    if (r->task.federation.sites || r->sum.n) return;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (json_object_get(said, later[i])) return;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) json_object_del(derived, later[i]);
}

fkt_status fkt_certificate_check(struct fkt_release *r, const char *text)
{
    json_error_t e;
    json_t *said = json_loads(text, JSON_REJECT_DUPLICATES, &e), *derived = NULL;
    const char *key;
    const json_t *value;
    const char *ledger, *entropy;
    json_int_t sites, survivors;
    double composed;
    fkt_status st = FKT_OK;
    if (!said || json_unpack_ex(said, &e, 0, "{s:I s:I s:s s:s s:F}", "sites", &sites, "survivors", &survivors,
                                "entropy", &entropy, "ledger", &ledger, "composed_epsilon", &composed) != 0) {
        st = fkt_fail(FKT_E_FORMAT, "certificate: %s", e.text);
        goto out;
    }
    if (sites < 0 || survivors < 0 || sites > 1 << 24 || survivors > 1 << 24) {
        st =
            fkt_fail(FKT_E_FORMAT, "certificate: %lld survivors of %lld sites", (long long)survivors, (long long)sites);
        goto out;
    }
    r->facts.sites = (uint32_t)sites;
    r->facts.survivors = (uint32_t)survivors;
    FKT_TRY(fkt_fail_in(fkt_facts_check(&r->task, &r->facts), "certificate"));
    if (r->sum.n && r->sum.noise.survivors != r->facts.survivors)
        FKT_TRY(fkt_fail(FKT_E_FORMAT, "certificate: %u survivors, but %u in its cohorts", r->facts.survivors,
                         r->sum.noise.survivors));
    r->insecure_seed = strcmp(entropy, SYSTEM) != 0;
    if (!(isfinite(composed) && composed >= r->task.privacy.epsilon * (1 - 1e-9))) {
        st = fkt_fail(FKT_E_FORMAT, "certificate: a composed epsilon of %g is less than the release alone costs",
                      composed);
        goto out;
    }
    r->facts.simulated = !strcmp(ledger, SIMULATION);
    r->paid_by_file = !strcmp(ledger, LEDGER_FILE);
    r->facts.composed_epsilon = composed;
    derived = fkt_certificate_json(r);
    if (!derived) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while checking the certificate");
        goto out;
    }
    forget_what_was_not_asked(derived, said, r);
    json_object_foreach (derived, key, value) {
        if (!strcmp(key, "version")) continue; /* a release of another version is read as long as its claims hold */
        if (!agrees(value, json_object_get(said, key))) {
            st =
                fkt_fail_hint(FKT_E_MISMATCH, "the file contradicts itself: it was damaged or changed; do not trust it",
                              "certificate: '%s' does not follow from the task and the moments", key);
            goto out;
        }
    }
    if (json_object_size(said) != json_object_size(derived))
        st = fkt_fail(FKT_E_FORMAT, "certificate: it holds an unknown key");
out:
    json_decref(said);
    json_decref(derived);
    return st;
}
