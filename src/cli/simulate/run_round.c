/* SPDX-License-Identifier: Apache-2.0 */
/* run_round.c - the rounds of a simulation: what the options say of the federation, and how an arm gets its release.
 *
 *   noise in shares   every site adds its own, the protocol adds the vectors up, the total is the release
 *   central noise     the protocol adds exact vectors up, and noise is added to the total afterwards
 *   one or two sites  nobody can hide in such a sum: no masks, and central noise is the only way
 *
 * The federation tolerates what was asked to be lost, and as many sites as a task bears by default, or what --dropped
 * says, be it less; how many may collude with the server is an option. Both cost noise: the promise rests on the shares
 * of the sites that are certain to be honest and in the total.
 */
#include "cli/simulate/run.h"

#include "base/alloc.h"
#include "base/text.h"
#include "base/wipe.h"
#include "task/federation.h"

#include <stdio.h>
#include <string.h>

static fkt_status parse_phase(const char *word, size_t len, int *phase)
{
    for (*phase = FKT_SA_STATE_ADVERTISE; *phase <= FKT_SA_STATE_REVEAL; ++*phase) {
        const char *name = fkt_sa_state_name((enum fkt_sa_state) * phase);
        if (strlen(name) == len && !memcmp(name, word, len)) return FKT_OK;
    }
    return fkt_fail(FKT_E_ARG, "--dropout: '%.*s' is no phase: advertise, coin, share, mask, confirm or reveal",
                    (int)len, word);
}

/* "0.1", or "mask:0.1,reveal:0.05"; out is by phase. */
static fkt_status parse_dropout(const char *list, double *out)
{
    char *text = NULL;
    const char **part = NULL;
    size_t n = 0;
    int seen[FKT_SA_STATE_REVEAL + 1] = {0};
    fkt_status st = FKT_OK;
    if (!list) return FKT_OK;
    FKT_TRY(cli_split(list, &text, &part, &n));
    for (size_t i = 0; i < n; i++) {
        const char *colon = strchr(part[i], ':');
        int phase = FKT_SA_STATE_MASK;
        if (colon) FKT_TRY(parse_phase(part[i], (size_t)(colon - part[i]), &phase));
        if (seen[phase]++ && colon) {
            st = fkt_fail(FKT_E_ARG, "--dropout: '%s' has the phase '%s' twice", list,
                          fkt_sa_state_name((enum fkt_sa_state)phase));
            goto out;
        }
        if (!colon && n > 1) {
            st = fkt_fail(FKT_E_ARG, "--dropout: '%s' is neither a share nor a list like mask:0.1,reveal:0.05", list);
            goto out;
        }
        FKT_TRY(fkt_fail_in(fkt_parse_double(&out[phase], colon ? colon + 1 : part[i]), "--dropout"));
    }
out:
    fkt_free(part);
    fkt_free(text);
    return st;
}

const char *cli_round_fallback(const struct cli_sim *s, const struct cli_outcome *o)
{
    if (o->sim.parts < 3)
        return "fewer than three sites cannot hide in a sum: no masks, and the noise was added in one place";
    if (!s->noise_given && o->federation.choices.noise == FKT_NOISE_PLACE_CENTRAL)
        return "the paper's recipe has no form in shares: the noise was added in one place";
    return NULL;
}

void cli_round_remark(const struct cli_sim *s, const struct cli_outcome *o)
{
    const char *why = cli_round_fallback(s, o);
    if (why && !s->run.quiet) fprintf(stderr, "fedkt: %s\n", why);
    if (o->federation.choices.sites) cli_print_no_loss(o->federation.choices.dropped, &s->run);
}

/* What nobody can keep without masks is refused where it was asked for. */
static fkt_status check_alone(const struct cli_sim *s, uint32_t parts)
{
    const char *asked = s->noise_given && s->noise == FKT_NOISE_PLACE_DISTRIBUTED ? "noise distributed"
                        : s->corrupt                                              ? "corrupt"
                        : s->dropped                                              ? "dropped"
                        : s->records                                              ? "records"
                        : s->keystream_given                                      ? "keystream"
                                                                                  : NULL;
    if (!asked) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG, "let at least three sites take part, or leave it out",
                         "--%s cannot be honoured: %u site%s cannot hide in a sum", asked, parts,
                         parts == 1 ? "" : "s");
}

fkt_status cli_round_plan(const struct cli_sim *s, struct fkt_simulation_spec *spec, struct cli_federation *out)
{
    struct fkt_federation_choices *c = &out->choices;
    uint32_t parts, lost;
    fkt_status st;
    FKT_TRY(parse_dropout(s->dropout, spec->dropout));
    FKT_TRY(fkt_simulation_size(spec, &parts, &lost));
    if (parts < 3) return check_alone(s, parts);
    c->noise = (enum fkt_noise_place)s->noise;
    if (!s->noise_given && s->privacy.mechanism == FKT_MECHANISM_PAPER) c->noise = FKT_NOISE_PLACE_CENTRAL;
    if (parts > FKT_SA_SITES_MAX) {
        st = fkt_fail_hint(FKT_E_ARG, "lower --sites or --participation", "%u sites take part; one round can have %u",
                           parts, FKT_SA_SITES_MAX);
        goto out;
    }
    FKT_TRY(cli_share_of("corrupt", s->corrupt ? s->corrupt : "0.1", parts, &c->corrupt));
    FKT_TRY(cli_dropped_of(s->dropped, parts, c->corrupt, &c->dropped));
    if (!s->dropped && lost > c->dropped) c->dropped = lost;
    c->keystream = (enum fkt_sa_keystream)s->keystream;
    c->records = s->records ? s->records : FKT_RECORDS_UNKNOWN;
    c->sites = parts;
    FKT_TRY(fkt_alloc(&out->roster, (size_t)parts * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&out->secrets, (size_t)parts * FKT_SA_SECRET));
    FKT_TRY(fkt_federation_keys(out->roster, out->secrets, parts, s->seeded ? &s->insecure_seed : NULL));
    c->roster = out->roster;
out:
    return st;
}

fkt_status cli_round_price(const struct fkt_task *task, double *mu2, double *rho)
{
    struct fkt_share_plan shares;
    struct fkt_privacy_plan plan;
    fkt_status st;
    FKT_TRY(fkt_federation_shares(task, &shares));
    plan = shares.plan;
    if (!shares.counted) FKT_TRY(fkt_privacy_plan(&plan, &task->privacy));
    *mu2 = plan.mu * plan.mu;
    *rho = shares.rho;
out:
    return st;
}

/* Whoever takes the masks off adds the noise. */
static fkt_status release_total(const struct cli_outcome *o, const struct cli_arm *a, const int64_t *total,
                                const struct fkt_round_facts *facts, struct fkt_ledger *ledger, const uint64_t *seed,
                                struct fkt_release *out)
{
    struct fkt_moments *m = NULL;
    fkt_status st;
    FKT_TRY(fkt_pipeline_moments_new(o->pipeline, &m));
    FKT_TRY(fkt_moments_add_packed(m, total));
    FKT_TRY(fkt_release_make(out, &a->task, fkt_pipeline_calibration(o->pipeline), m, facts, ledger, seed));
out:
    fkt_moments_free(m);
    return st;
}

fkt_status cli_round_clear(const struct cli_sim *s, const struct cli_outcome *o, const struct cli_arm *a, uint64_t seed,
                           struct fkt_ledger *ledger, const struct fkt_progress *progress, struct fkt_release *out,
                           struct fkt_federate_result *round)
{
    const struct fkt_calibration *cal = fkt_pipeline_calibration(o->pipeline);
    const uint64_t *seeded = s->seeded ? &seed : NULL;
    struct fkt_round_facts facts = {o->sim.sites, o->sim.survivors, 1, o->composed_epsilon};
    struct fkt_simulation_round how = {&a->task, o->federation.secrets, seeded, o->threads, progress};
    char why[256];
    double mu2, rho;
    fkt_status st;
    if (!a->task.federation.sites) return fkt_release_make(out, &a->task, cal, o->sim.total, &facts, ledger, seeded);
    FKT_TRY(cli_round_price(&a->task, &mu2, &rho));
    if (rho > 0) FKT_TRY(fkt_ledger_debit(ledger, mu2));
    st = fkt_simulation_aggregate(round, &o->sim, &how);
    if (st == FKT_E_TOO_FEW) {
        snprintf(why, sizeof why, "%s", fkt_error_text());
        st = fkt_fail_hint(st,
                           "let fewer sites be lost, plan for more with --dropped, or run it again: keys and graph are "
                           "drawn afresh",
                           "%s", why);
    }
    FKT_TRY(st);
    facts.sites = o->sim.parts;
    facts.survivors = round->survivors;
    if (rho > 0) FKT_TRY(fkt_release_gather(out, &a->task, cal, round->total, &facts, s->seeded));
    else FKT_TRY(release_total(o, a, round->total, &facts, ledger, seeded, out));
out:
    fkt_free_secret(round->total); /* exact where the noise is central */
    round->total = NULL;
    return st;
}

void cli_round_print(const struct cli_sim *s, const struct cli_outcome *o)
{
    const struct fkt_federation *f = &o->arm[0].task.federation;
    const struct fkt_federate_result *r = &o->arm[0].round;
    const char *why = cli_round_fallback(s, o), *gap = "";
    uint32_t lost = 0, late = r->lost[FKT_SA_STATE_CONFIRM] + r->lost[FKT_SA_STATE_REVEAL];
    if (!r->survivors) {
        if (why) printf("%s\n", why);
        return;
    }
    printf("masked sums of %u bits, %u neighbours for each site, %u of which can stand in for it; %.1f s\n", f->bits,
           f->degree, f->threshold, r->seconds);
    if (r->throws) printf("the graph took %u throw%s of the coin\n", r->throws, r->throws == 1 ? "" : "s");
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) lost += r->lost[phase];
    if (lost) {
        printf("lost: ");
        for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) {
            if (!r->lost[phase]) continue;
            printf("%s%u in %s", gap, r->lost[phase], fkt_sa_state_name((enum fkt_sa_state)phase));
            gap = ", ";
        }
        printf("; %u of %u sites are in the sum, %u stayed to the end\n", r->survivors, f->sites, r->survivors - late);
    }
    if (f->noise == FKT_NOISE_PLACE_DISTRIBUTED)
        printf("every site added its share of the noise: %u in the total, %u are enough for the promise (%u may be "
               "lost, %u may collude)\n",
               r->survivors, o->arm[0].release.shares.counted, f->dropped, f->corrupt);
    else printf("%s\n", why ? why : "the noise was added to the total, in one place");
}

json_t *cli_round_json(const struct cli_outcome *o)
{
    const struct fkt_federation *f = &o->arm[0].task.federation;
    const struct fkt_federate_result *r = &o->arm[0].round;
    json_t *lost;
    if (!f->sites) return json_null();
    lost = json_object();
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++)
        json_object_set_new(lost, fkt_sa_state_name((enum fkt_sa_state)phase), json_integer(r->lost[phase]));
    return json_pack("{s:s s:s s:I s:I s:I s:I s:I s:I s:I s:o s:I s:{s:I s:I s:I} s:f}", "protocol", "fedkt.secagg/1",
                     "noise", fkt_noise_name(f->noise), "sites", (json_int_t)f->sites, "dropped_tolerated",
                     (json_int_t)f->dropped, "corrupt_tolerated", (json_int_t)f->corrupt, "degree",
                     (json_int_t)f->degree, "threshold", (json_int_t)f->threshold, "bits", (json_int_t)f->bits,
                     "survivors", (json_int_t)r->survivors, "lost", lost, "throws", (json_int_t)r->throws, "traffic",
                     "up", (json_int_t)r->up, "down", (json_int_t)r->down, "packed", (json_int_t)r->packed, "seconds",
                     r->seconds);
}
