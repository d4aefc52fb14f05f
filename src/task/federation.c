/* SPDX-License-Identifier: Apache-2.0 */
/* federation.c - the aggregation parameters of a task: some are chosen, the rest are derived from them, and every
 * reader derives them again.
 *
 *   chosen    sites, dropped, corrupt, security, failure, attempts, records, keystream, noise, roster
 *   derived   degree, threshold <- fkt_sa_find, for security + ceil(log2(attempts)) bits: a round goes wrong with
 *                                  2^-security over all throws of its coin (src/secagg/coin.md)
 *             noise shares      <- privacy of the task, sites - dropped - corrupt
 *             bound  = records * max(Rq^2 of each part, count scale) + the widest draw of one noise share;
 *                      pooled second moments add up over all classes: records * classes * Rq^2
 *             bits   <- fkt_sa_bits(sites, bound)
 *
 * Messages carry no parameters (docs/protocol.md 1): all of them are in the task, under its hash. Derived numbers are
 * stored too, so that an implementation in another language does not need our search, but they are always checked: a
 * task whose degree is too small, or whose ring is too narrow, is refused before anything is computed.
 *
 * The bound of one noise share: fkt_share_plan.tail bounds a total of `sites` noise shares; they are sub-Gaussian
 * with the same parameter, so tail/sqrt(sites) bounds one of them. */
#include "task/federation.h"

#include "fedkt/advanced/federation.h"

#include "task/task.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text.h"
#include "crypto/entropy.h"

#include <math.h>
#include <string.h>

#define PROTOCOL "fedkt.secagg/1"
#define SECURITY_MIN 40 /* bits; a task with less is refused */
#define SECURITY_MAX 128
#define FAILURE_MAX 64
#define ATTEMPTS_MAX 16
#define RECORDS_MAX (UINT64_C(1) << 40)
/* A server stores messages and the release as values in its journal, and SQLite limits a row to 1,000,000,000 bytes
 * (SQLITE_MAX_LENGTH). A larger task would fail after every site has spent its budget. A release also contains two
 * texts of the task, of at most 16 MiB: its limit leaves space for them. The limit of a message is lower, since
 * several copies are in memory at once. */
#define KEPT_MESSAGE ((uint64_t)512 << 20)
#define KEPT_RELEASE ((uint64_t)768 << 20)
#define KEYS_STREAM 1 /* stream of an insecure seed; 0 is the central noise, federate.c has the others */

static const uint32_t usual_security = 40, usual_failure = 20, usual_attempts = 8;

uint32_t fkt_federation_usual_dropped(uint32_t sites, uint32_t corrupt)
{
    const uint32_t tenth = sites / 10 + (sites % 10 != 0), wanted = tenth > 2 ? tenth : 2;
    const uint32_t most = sites > corrupt + 2 ? (sites - corrupt - 2) / 2 : 0;
    return wanted < most ? wanted : most;
}

fkt_status fkt_federation_check_crew(uint32_t sites, uint32_t dropped, uint32_t corrupt, enum fkt_noise_place noise)
{
    if ((uint64_t)dropped + corrupt + 2 > sites)
        return fkt_fail_hint(FKT_E_ARG, "tolerate fewer, or have more sites",
                             "of %u sites %u may be lost and %u may collude, so fewer than two honest ones are certain "
                             "to stay",
                             sites, dropped, corrupt);
    if (noise == FKT_NOISE_PLACE_DISTRIBUTED && corrupt == 0)
        return fkt_fail_hint(
            FKT_E_ARG, "let 'corrupt' be 1 or more, or add the noise in one place",
            "with 0 corrupt sites the promise depends on every site's noise, and every site knows its own share");
    return FKT_OK;
}

static fkt_status check_choices(const struct fkt_federation *f)
{
    fkt_status st;
    if (f->sites < 3 || f->sites > FKT_SA_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "a federation has 3 to %u sites, not %u", FKT_SA_SITES_MAX, f->sites);
    st = fkt_federation_check_crew(f->sites, f->dropped, f->corrupt, f->noise);
    if (st != FKT_OK) return st;
    if (f->security < SECURITY_MIN || f->security > SECURITY_MAX || f->failure < 1 || f->failure > FAILURE_MAX)
        return fkt_fail(FKT_E_ARG, "security is %d to %d bits and failure 1 to %d, not %u and %u", SECURITY_MIN,
                        SECURITY_MAX, FAILURE_MAX, f->security, f->failure);
    if (f->attempts < 1 || f->attempts > ATTEMPTS_MAX)
        return fkt_fail(FKT_E_ARG, "a site agrees to 1 to %d throws of the coin, not %u", ATTEMPTS_MAX, f->attempts);
    if (f->records < 1 || f->records > RECORDS_MAX)
        return fkt_fail(FKT_E_ARG, "a site may hold 1 to %llu records of a class, not %llu",
                        (unsigned long long)RECORDS_MAX, (unsigned long long)f->records);
    return FKT_OK;
}

fkt_status fkt_federation_shares(const struct fkt_task *t, struct fkt_share_plan *s)
{
    const struct fkt_federation *f = &t->federation;
    *s = (struct fkt_share_plan){.count_scale = 1};
    if (!fkt_task_has_shares(t)) return FKT_OK;
    return fkt_privacy_plan_shares(s, &t->privacy, f->sites - f->dropped - f->corrupt, f->sites);
}

static fkt_status find_graph(struct fkt_federation *f, const struct fkt_task *t)
{
    const double delta = t->privacy.delta;
    unsigned throws = 0; /* bits lost to several throws */
    fkt_status st;
    while (1U << throws < f->attempts) throws++;
    st = fkt_sa_find(f->sites, f->corrupt, f->dropped, f->security + throws, f->failure, &f->degree, &f->threshold);
    if (st == FKT_OK && f->noise == FKT_NOISE_PLACE_DISTRIBUTED && f->degree < f->sites - 1 &&
        delta < ldexp(1, -(int)f->security))
        st = fkt_fail_hint(
            FKT_E_ARG, "ask for more bits of security, or for a larger delta",
            "delta %g is below 2^-%u, the probability that a round on a sparse graph does not keep its promise", delta,
            f->security);
    return st;
}

/* The most that `records` records of one class can add to a number, by that many. */
static uint64_t largest_per_record(const struct fkt_task *t, const struct fkt_share_plan *s)
{
    uint64_t most = s->count_scale;
    for (uint32_t p = 0; p < t->layout.parts; p++) {
        const uint64_t rq = t->layout.rq[p], sum = rq * rq * (t->layout.pooled ? t->n_classes : 1);
        if (sum > most) most = sum;
    }
    return most;
}

/* Fills the derived parameters from the choices in f. */
static fkt_status derive(struct fkt_federation *f, const struct fkt_task *t, struct fkt_share_plan *s)
{
    uint64_t most;
    fkt_status st = FKT_OK;
    FKT_TRY(check_choices(f));
    FKT_TRY(find_graph(f, t));
    FKT_TRY(fkt_federation_shares(t, s));
    most = largest_per_record(t, s);
    f->bits = 0;
    if (fkt_mul_u64(f->records, most, &f->bound) &&
        fkt_add_u64(f->bound, s->tail ? (uint64_t)ceil((double)s->tail / sqrt(f->sites)) + 1 : 0, &f->bound))
        f->bits = fkt_sa_bits(f->sites, f->bound);
    if (!f->bits)
        st = fkt_fail_hint(FKT_E_ARG, "allow fewer records, or quantise them more coarsely",
                           "sums of %u sites with %llu records each do not fit 62 bits", f->sites,
                           (unsigned long long)f->records);
out:
    return st;
}

/* The rules of docs/protocol.md 1, including those for every key of the roster. */
static fkt_status to_params(struct fkt_sa_params *out, const struct fkt_federation *f, const struct fkt_task *t)
{
    const uint64_t length = fkt_task_numbers(t);
    if (length > UINT32_MAX)
        return fkt_fail(FKT_E_ARG, "a vector of %llu numbers is too long to be aggregated", (unsigned long long)length);
    *out = (struct fkt_sa_params){.sites = f->sites,
                                  .dropped = f->dropped,
                                  .corrupt = f->corrupt,
                                  .degree = f->degree,
                                  .threshold = f->threshold,
                                  .attempts = f->attempts,
                                  .bits = f->bits,
                                  .length = (uint32_t)length,
                                  .bound = f->bound,
                                  .keystream = f->keystream,
                                  .roster = f->roster};
    return fkt_sa_params_check(out);
}

fkt_status fkt_federation_fits(const struct fkt_task *t)
{
    const struct fkt_federation *f = &t->federation;
    const uint64_t length = fkt_task_numbers(t);
    uint64_t release = 8 * length; /* and centre, map and unmap of each part */
    const struct fkt_sa_params p = {
        .sites = f->sites, .degree = f->degree, .attempts = f->attempts, .bits = f->bits, .length = (uint32_t)length};
    for (uint32_t i = 0; i < t->parts; i++)
        release += 4 * t->part[i].dim * (1 + 2 * (uint64_t)t->part[i].coordinates.dim);
    if (release > KEPT_RELEASE)
        return fkt_fail_hint(FKT_E_ARG, "use fewer classes, or a codec or calibration with fewer numbers",
                             "a release of %u classes with %zu numbers a record has %llu MiB, and a server keeps at "
                             "most %llu",
                             t->n_classes, fkt_layout_length(&t->layout), (unsigned long long)(release >> 20),
                             (unsigned long long)(KEPT_RELEASE >> 20));
    if (fkt_sa_to_server_max(&p) > KEPT_MESSAGE)
        return fkt_fail_hint(
            FKT_E_ARG, "use fewer classes, a codec or calibration with fewer numbers, or fewer records per site",
            "a message of %u numbers of %u bits has %llu MiB, and a server takes at most %llu", p.length, p.bits,
            (unsigned long long)(fkt_sa_to_server_max(&p) >> 20), (unsigned long long)(KEPT_MESSAGE >> 20));
    return FKT_OK;
}

fkt_status fkt_federation_make(struct fkt_task *t, const struct fkt_federation_choices *c)
{
    struct fkt_federation *f = &t->federation;
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    fkt_status st;
    *f = (struct fkt_federation){.sites = c->sites,
                                 .dropped = c->dropped,
                                 .corrupt = c->corrupt,
                                 .security = c->security ? c->security : usual_security,
                                 .failure = c->failure ? c->failure : usual_failure,
                                 .attempts = c->attempts ? c->attempts : usual_attempts,
                                 .records = c->records,
                                 .keystream = c->keystream,
                                 .noise = c->noise};
    FKT_TRY(derive(f, t, &shares));
    FKT_TRY(fkt_alloc(&f->roster, (size_t)c->sites * FKT_SA_KEY));
    memcpy(f->roster, c->roster, (size_t)c->sites * FKT_SA_KEY);
    FKT_TRY(to_params(&params, f, t));
out:
    return st;
}

json_t *fkt_federation_json(const struct fkt_federation *f)
{
    json_t *roster = json_array();
    char hex[2 * FKT_SA_KEY + 1];
    for (uint32_t i = 0; roster && i < f->sites; i++) {
        fkt_hex(hex, f->roster + (size_t)i * FKT_SA_KEY, FKT_SA_KEY);
        if (json_array_append_new(roster, json_string(hex)) != 0) {
            json_decref(roster);
            return NULL;
        }
    }
    return json_pack("{s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:s s:s s:o}", "protocol", PROTOCOL, "sites",
                     (json_int_t)f->sites, "dropped", (json_int_t)f->dropped, "corrupt", (json_int_t)f->corrupt,
                     "security", (json_int_t)f->security, "failure", (json_int_t)f->failure, "degree",
                     (json_int_t)f->degree, "threshold", (json_int_t)f->threshold, "attempts", (json_int_t)f->attempts,
                     "records", (json_int_t)f->records, "bound", (json_int_t)f->bound, "bits", (json_int_t)f->bits,
                     "keystream", fkt_keystream_name(f->keystream), "noise", fkt_noise_name(f->noise), "roster",
                     roster);
}

static fkt_status take_roster(struct fkt_federation *f, const json_t *list)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&f->roster, (size_t)f->sites * FKT_SA_KEY));
    for (uint32_t i = 0; i < f->sites; i++) {
        const json_t *v = json_array_get(list, i);
        const char *hex = json_string_value(v);
        if (!hex || !fkt_unhex(f->roster + (size_t)i * FKT_SA_KEY, hex, FKT_SA_KEY)) {
            st = fkt_fail(FKT_E_FORMAT, "federation: the key of site %u is not 64 lower-case hexadecimal digits", i);
            goto out;
        }
    }
out:
    return st;
}

/* Rows: the name of a number in the file, and its field. */
struct number {
    const char *name;
    json_int_t value;
    uint32_t *to;
};

static fkt_status take_numbers(const struct number *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (row[i].value < 0 || row[i].value > UINT32_MAX)
            return fkt_fail(FKT_E_FORMAT, "federation: '%s' is out of range", row[i].name);
        *row[i].to = (uint32_t)row[i].value;
    }
    return FKT_OK;
}

static fkt_status derived(const char *name, json_int_t said, uint64_t follows)
{
    if (said >= 0 && (uint64_t)said == follows) return FKT_OK;
    return fkt_fail_hint(FKT_E_FORMAT, "fetch the task from the operator again; to change something, make a new one",
                         "federation: '%s' is %lld, but the other parameters give %llu: it was changed by hand", name,
                         (long long)said, (unsigned long long)follows);
}

fkt_status fkt_federation_take(struct fkt_task *t, const json_t *j)
{
    struct fkt_federation *f = &t->federation;
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    const char *protocol, *keystream, *noise;
    json_int_t sites, dropped, corrupt, security, failure, degree, threshold, attempts, records, bound, bits;
    json_t *roster;
    json_error_t e;
    int stream, place;
    fkt_status st = FKT_OK;
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT,
                       "{s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:s s:s s:o}", "protocol", &protocol, "sites",
                       &sites, "dropped", &dropped, "corrupt", &corrupt, "security", &security, "failure", &failure,
                       "degree", &degree, "threshold", &threshold, "attempts", &attempts, "records", &records, "bound",
                       &bound, "bits", &bits, "keystream", &keystream, "noise", &noise, "roster", &roster) != 0)
        return fkt_fail(FKT_E_FORMAT, "federation: %s", e.text);
    if (strcmp(protocol, PROTOCOL) != 0) return fkt_fail(FKT_E_FORMAT, "federation: protocol is not '" PROTOCOL "'");
    stream = fkt_keystream_parse(keystream);
    place = fkt_noise_parse(noise);
    if (stream < 0) return fkt_fail(FKT_E_FORMAT, "federation: unknown keystream '%s'", keystream);
    if (place < 0) return fkt_fail(FKT_E_FORMAT, "federation: unknown place of noise '%s'", noise);
    f->keystream = (enum fkt_sa_keystream)stream;
    f->noise = (enum fkt_noise_place)place;
    FKT_TRY(take_numbers((struct number[]){{"sites", sites, &f->sites},
                                           {"dropped", dropped, &f->dropped},
                                           {"corrupt", corrupt, &f->corrupt},
                                           {"security", security, &f->security},
                                           {"failure", failure, &f->failure},
                                           {"attempts", attempts, &f->attempts}},
                         6));
    f->records = records < 0 ? 0 : (uint64_t)records;
    if (json_array_size(roster) != f->sites) /* before the search runs for sites that have no keys */
        return fkt_fail(FKT_E_FORMAT, "federation: %zu keys for %u sites", json_array_size(roster), f->sites);
    FKT_TRY(fkt_fail_in(derive(f, t, &shares), "federation"));
    FKT_TRY(derived("degree", degree, f->degree));
    FKT_TRY(derived("threshold", threshold, f->threshold));
    FKT_TRY(derived("bound", bound, f->bound));
    FKT_TRY(derived("bits", bits, f->bits));
    FKT_TRY(take_roster(f, roster));
    FKT_TRY(fkt_fail_in(to_params(&params, f, t), "federation"));
out:
    return st;
}

fkt_status fkt_federation_copy(struct fkt_federation *out, const struct fkt_federation *f)
{
    fkt_status st;
    *out = *f;
    out->roster = NULL;
    if (!f->sites) return FKT_OK;
    FKT_TRY(fkt_alloc(&out->roster, (size_t)f->sites * FKT_SA_KEY));
    memcpy(out->roster, f->roster, (size_t)f->sites * FKT_SA_KEY);
out:
    if (st != FKT_OK) memset(out, 0, sizeof *out);
    return st;
}

void fkt_federation_clear(struct fkt_federation *f)
{
    fkt_free(f->roster);
    memset(f, 0, sizeof *f);
}

fkt_status fkt_federation_open(const struct fkt_task *task, struct fkt_sa_params *params, struct fkt_share_plan *shares)
{
    struct fkt_federation f = task->federation;
    fkt_status st;
    if (!f.sites)
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "task '%s' has no federation", task->name), FKT_HINT_TASK_ROSTER,
                             "make a task with a roster of its sites");
    FKT_TRY(derive(&f, task, shares));
    if (f.degree != task->federation.degree || f.threshold != task->federation.threshold ||
        f.bits != task->federation.bits || f.bound != task->federation.bound) {
        st = fkt_fail(FKT_E_MISMATCH, "the derived parameters of task '%s' do not match its choices", task->name);
        goto out;
    }
    FKT_TRY(to_params(params, &f, task));
    if (!fkt_unhex(params->task, task->sha256, sizeof params->task)) {
        st = fkt_fail(FKT_E_STATE, "task '%s' has no hash", task->name);
        goto out;
    }
out:
    return st;
}

fkt_status fkt_federation_keys(uint8_t *roster, uint8_t *secrets, uint32_t n, const uint64_t *insecure_seed)
{
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    fkt_status st = FKT_OK;
    memset(&seeded, 0, sizeof seeded);
    fkt_entropy_os(&entropy);
    if (insecure_seed) {
        fkt_entropy_seeded_init(&seeded, *insecure_seed, KEYS_STREAM);
        fkt_entropy_seeded(&entropy, &seeded);
    }
    for (uint32_t i = 0; i < n && st == FKT_OK; i++)
        st = fkt_sa_identity(roster + (size_t)i * FKT_SA_KEY, secrets + (size_t)i * FKT_SA_SECRET, &entropy);
    fkt_wipe(&seeded, sizeof seeded);
    return st;
}
