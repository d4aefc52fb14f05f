/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - what a release promises, in JSON, derived from the plan that drew its noise
 * (docs/schema/certificate.json). Nothing in it is typed in by hand: epsilon, delta and adjacency are the task's, mu
 * and the sigmas the plan's, the hashes are computed, and the mark of an insecure seed comes from the entropy source
 * itself. A certificate that is read back is re-derived and compared; the only facts taken from it are those that
 * cannot be derived: sites, survivors, the mark, the ledger, the composed epsilon. It is the releasing party's word: a
 * file that is consistent in itself passes. */
#include "round/release.h"

#include "round/task.h"

#include "base/alloc.h"
#include "crypto/hash.h"

#include <math.h>
#include <string.h>

#define SCHEMA "fedkt.certificate/1"
#define LEDGER "file"
#define SIMULATION "none (simulation)"

static json_t *warnings(const struct fkt_release *r)
{
    json_t *list = json_array();
    if (r->insecure_seed)
        json_array_append_new(list,
                              json_string("INSECURE: the noise came from a known seed; this release is NOT private"));
    if (r->task.privacy.mechanism == FKT_PAPER)
        json_array_append_new(
            list, json_string(
                      "the paper's recipe is kept for comparison; it spends less than epsilon for the noise it adds"));
    if (r->task.privacy.adjacency == FKT_REPLACE)
        json_array_append_new(list, json_string("class counts and labels are public under this adjacency"));
    if (r->facts.simulated)
        json_array_append_new(
            list,
            json_string("made by a simulation, which keeps no ledger: every further run on these records adds up"));
    if (r->facts.composed_epsilon > r->task.privacy.epsilon * (1 + 1e-9))
        json_array_append_new(list, json_string("other releases of the same records were made beside this one: see "
                                                "composed_epsilon"));
    json_array_append_new(list,
                          json_string("one record is protected, not one person: several records of one person add up"));
    json_array_append_new(list, json_string("what the public codec was trained on is not covered"));
    return list;
}

json_t *fkt_certificate_json(const struct fkt_release *r)
{
    const struct fkt_privacy_spec *p = &r->task.privacy;
    const struct fkt_privacy_plan *q = &r->plan;
    const struct fkt_coordinates *c = &r->task.coordinates;
    double composed = fmax(r->facts.composed_epsilon, p->epsilon);
    char hash[FKT_SHA256_HEX];
    fkt_hash_bytes_hex(hash, r->moments, r->task.n_classes * fkt_moments_block(c->length) * sizeof *r->moments);
    return json_pack(
        "{s:s s:b s:s s:s s:s s:s s:s s:f s:f s:f s:f s:f s:f s:f s:[fff] s:f s:i s:s s:i s:i s:i s:{s:s "
        "s:s s:s} s:{s:s s:I s:s} s:s s:s s:i s:i s:s s:f s:s s:o}",
        "schema", SCHEMA, "private", !r->insecure_seed, "mechanism", fkt_mechanism_name(p->mechanism), "noise",
        "central: rounded Gaussian on integer sums, sampled exactly", "entropy",
        r->insecure_seed ? "INSECURE SEED" : "operating system", "adjacency", fkt_adjacency_name(p->adjacency), "unit",
        "record", "epsilon", p->epsilon, "delta", p->delta, "mu", q->mu, "epsilon_spent", q->epsilon_spent,
        "sigma_count", q->sigma_count, "sigma_sum", q->sigma_sum, "sigma_moment", q->sigma_moment, "shares",
        p->shares[0], p->shares[1], p->shares[2], "radius", c->radius, "rq", (int)c->rq, "coordinates",
        fkt_coordinate_name(c->kind), "classes", (int)r->task.n_classes, "dim", (int)c->dim, "length", (int)c->length,
        "codec", "name", r->task.codec, "identity", r->task.codec_identity, "sha256", r->task.codec_sha256,
        "calibration", "source", r->calibration.source, "images", (json_int_t)r->calibration.images, "sha256",
        r->task.calibration_sha256, "task_sha256", r->task.sha256, "noised_moments_sha256", hash, "sites",
        (int)r->facts.sites, "survivors", (int)r->facts.survivors, "ledger", r->facts.simulated ? SIMULATION : LEDGER,
        "composed_epsilon", composed, "version", fkt_version(), "warnings", warnings(r));
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
    if (json_is_array(a) && json_is_array(b) && json_array_size(a) == json_array_size(b)) {
        for (size_t i = 0; i < json_array_size(a); i++)
            if (!agrees(json_array_get(a, i), json_array_get(b, i))) return 0;
        return 1;
    }
    return json_equal(a, b);
}

fkt_status fkt_certificate_check(struct fkt_release *r, const char *text)
{
    json_error_t e;
    json_t *said = json_loads(text, JSON_REJECT_DUPLICATES, &e), *derived = NULL;
    const char *key;
    const json_t *value;
    const char *ledger;
    json_int_t sites, survivors;
    double composed;
    int private_mark;
    fkt_status st = FKT_OK;
    if (!said || json_unpack_ex(said, &e, 0, "{s:I s:I s:b s:s s:F}", "sites", &sites, "survivors", &survivors,
                                "private", &private_mark, "ledger", &ledger, "composed_epsilon", &composed) != 0) {
        st = fkt_fail(FKT_E_FORMAT, "certificate: %s", e.text);
        goto out;
    }
    if (sites < 1 || survivors < 1 || survivors > sites || sites > 1 << 24) {
        st =
            fkt_fail(FKT_E_FORMAT, "certificate: %lld survivors of %lld sites", (long long)survivors, (long long)sites);
        goto out;
    }
    r->facts.sites = (uint32_t)sites;
    r->facts.survivors = (uint32_t)survivors;
    r->insecure_seed = !private_mark;
    if (!(isfinite(composed) && composed >= r->task.privacy.epsilon * (1 - 1e-9))) {
        st = fkt_fail(FKT_E_FORMAT, "certificate: a composed epsilon of %g is less than the release alone costs",
                      composed);
        goto out;
    }
    r->facts.simulated = strcmp(ledger, LEDGER) != 0;
    r->facts.composed_epsilon = composed;
    derived = fkt_certificate_json(r);
    if (!derived) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while checking the certificate");
        goto out;
    }
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
        st = fkt_fail(FKT_E_FORMAT, "certificate: it holds a key that no certificate has");
out:
    json_decref(said);
    json_decref(derived);
    return st;
}
