/* SPDX-License-Identifier: Apache-2.0 */
/* run_federation.c - the options of `fedkt simulate` about lost and colluding sites, and the lines about its rounds. */
#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/simulate.h"

#include "cli/simulate/run.h"

#include "base/alloc.h"
#include "base/text.h"
#include "pipeline/release.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static fkt_status parse_phase(const char *word, size_t len, int *phase)
{
    for (*phase = FKT_SA_STATE_ADVERTISE; *phase <= FKT_SA_STATE_REVEAL; ++*phase) {
        const char *name = fkt_sa_state_name((enum fkt_sa_state) * phase);
        if (strlen(name) == len && !memcmp(name, word, len)) return FKT_OK;
    }
    return fkt_fail(FKT_E_ARG,
                    "--dropout: '%.*s' is not one of the phases advertise, coin, share, mask, confirm or reveal",
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
            st =
                fkt_fail(FKT_E_ARG, "--dropout: '%s' is neither a fraction nor a list like mask:0.1,reveal:0.05", list);
            goto out;
        }
        FKT_TRY(fkt_fail_in(fkt_parse_double(&out[phase], colon ? colon + 1 : part[i]), "--dropout"));
    }
out:
    fkt_free(part);
    fkt_free(text);
    return st;
}

void cli_round_remark(const struct cli_sim *s, const struct fkt_sweep *w)
{
    const char *why = fkt_sweep_fallback(w);
    const struct fkt_federation *f = &fkt_sweep_arm(w, 0)->task->federation;
    if (why && !s->run.quiet) fprintf(stderr, "fedkt: %s\n", why);
    if (f->sites) cli_print_no_loss(f->dropped, &s->run);
}

/* Rejects options that cannot be honoured without masks. */
static fkt_status check_alone(const struct cli_sim *s, uint32_t parts)
{
    const char *asked = s->noise_given && s->noise == FKT_NOISE_PLACE_DISTRIBUTED ? "noise distributed"
                        : s->corrupt                                              ? "corrupt"
                        : s->dropped                                              ? "dropped"
                        : s->records                                              ? "records"
                        : s->keystream_given                                      ? "keystream"
                                                                                  : NULL;
    if (!asked) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG, "let at least three sites take part, or omit it",
                         "--%s cannot be honoured: %u site%s cannot hide in a sum", asked, parts,
                         parts == 1 ? "" : "s");
}

fkt_status cli_sim_federation(const struct cli_sim *s, struct fkt_sweep_spec *spec)
{
    struct fkt_simulation_spec sim = {.partition = spec->partition, .participation = spec->participation};
    uint32_t parts, lost;
    fkt_status st;
    FKT_TRY(parse_dropout(s->dropout, spec->dropout));
    memcpy(sim.dropout, spec->dropout, sizeof sim.dropout);
    FKT_TRY(fkt_simulation_size(&sim, &parts, &lost));
    if (parts < 3) return check_alone(s, parts);
    if (s->cohort_size && (s->cohort_size < 3 || s->cohort_size > FKT_SA_SITES_MAX))
        return fkt_fail(FKT_E_ARG, "--cohort-size: a cohort has 3 to %u sites", FKT_SA_SITES_MAX);
    spec->cohort_size = (uint32_t)s->cohort_size;
    if (parts > FKT_SA_SITES_MAX && !s->cohort_size)
        return fkt_fail_hint(FKT_E_ARG, "lower --sites or --participation, or give --cohort-size",
                             "%u sites take part; one round can have %u", parts, FKT_SA_SITES_MAX);
    if (s->noise_given) spec->noise = s->noise;
    if (s->corrupt) FKT_TRY(cli_share_of("corrupt", s->corrupt, parts, &spec->corrupt));
    if (s->dropped) FKT_TRY(cli_share_of("dropped", s->dropped, parts, &spec->dropped));
    spec->keystream = (enum fkt_sa_keystream)s->keystream;
    spec->records = s->records;
out:
    return st;
}

static void print_lost(const struct fkt_federate_result *r, uint32_t sites)
{
    const uint32_t late = r->lost[FKT_SA_STATE_CONFIRM] + r->lost[FKT_SA_STATE_REVEAL];
    const char *gap = "";
    uint32_t lost = 0;
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) lost += r->lost[phase];
    if (!lost) return;
    printf("lost: ");
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) {
        if (!r->lost[phase]) continue;
        printf("%s%u in %s", gap, r->lost[phase], fkt_sa_state_name((enum fkt_sa_state)phase));
        gap = ", ";
    }
    printf("; %u of %u sites are in the sum, %u stayed to the end\n", r->survivors, sites, r->survivors - late);
}

/* Of a sum of cohorts: what the split costs. */
static void print_cohorts(const struct fkt_sweep_arm *a)
{
    const struct fkt_sum *s = &a->release->sum;
    const struct fkt_division *d = &a->task->division;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->shape[i].sites < least) least = s->shape[i].sites;
        if (s->shape[i].sites > most) most = s->shape[i].sites;
    }
    printf("%u of %u cohorts of %u to %u sites, each with its own masked sum and noise; %.1f s\n", s->n, d->number,
           least, most, a->round->seconds);
    print_lost(a->round, d->sites);
    printf("noise of the sum: %.2f times the standard deviation of one cohort of the same sites; %u colluding sites of "
           "%u (%.2f %%) are covered\n",
           sqrt(s->noise.variance_factor), s->covered, d->sites, floor(1e4 * s->covered / d->sites) / 100);
}

void cli_round_print(const struct fkt_sweep *w)
{
    const struct fkt_sweep_arm *first = fkt_sweep_arm(w, 0);
    const struct fkt_federation *f = &first->task->federation;
    const struct fkt_federate_result *r = first->round;
    const char *why = fkt_sweep_fallback(w);
    if (first->task->division.number) {
        print_cohorts(first);
        return;
    }
    if (!r->survivors) {
        if (why) printf("%s\n", why);
        return;
    }
    printf("masked sums of %u bits, %u neighbours for each site, %u of which can replace it; %.1f s\n", f->bits,
           f->degree, f->threshold, r->seconds);
    if (r->throws) printf("the graph needed %u throw%s of the coin\n", r->throws, r->throws == 1 ? "" : "s");
    print_lost(r, f->sites);
    if (f->noise == FKT_NOISE_PLACE_DISTRIBUTED)
        printf("every site added its noise share: %u in the total, %u are needed for the promise (%u may be lost, %u "
               "may collude)\n",
               r->survivors, first->release->shares.counted, f->dropped, f->corrupt);
    else printf("%s\n", why ? why : "the noise was added to the total, in one place");
}
