/* SPDX-License-Identifier: Apache-2.0 */
/* federation.c - the options of `fedkt task new` that describe a federation: its sites and how many may be lost or
 * collude. */
#include "cli/task/federation.h"

#include "task/division.h"

#include <string.h>

static int any_given(const struct cli_federation_asked *a)
{
    return a->sites || a->records || a->dropped || a->corrupt || a->keystream_given || a->noise_given ||
           a->cohort_size || a->cohort_seed;
}

fkt_status cli_federation_choices(const struct cli_federation_asked *a, struct fkt_federation_choices *out,
                                  struct fkt_roster *roster)
{
    uint32_t n;
    fkt_status st;
    memset(roster, 0, sizeof *roster);
    *out = (struct fkt_federation_choices){.records = a->records,
                                           .keystream = (enum fkt_sa_keystream)a->keystream,
                                           .noise = (enum fkt_noise_place)a->noise};
    if (!a->roster && !any_given(a)) return FKT_OK;
    if (!a->roster) return fkt_fail(FKT_E_ARG, "a federation needs the keys of its sites: give --roster");
    if (!a->records) return fkt_fail(FKT_E_ARG, "a federation needs a bound on a site's records: give --records");
    if (a->cohort_size) FKT_TRY(fkt_roster_load_all(roster, a->roster));
    else FKT_TRY(fkt_roster_load(roster, a->roster));
    n = roster->n;
    if (a->sites && a->sites != n) {
        st = fkt_fail(FKT_E_ARG, "--sites: '%s' has %u keys, not %llu", a->roster, n, (unsigned long long)a->sites);
        goto out;
    }
    FKT_TRY(fkt_roster_apply(roster, out, NULL));
    FKT_TRY(cli_share_of("corrupt", a->corrupt ? a->corrupt : "0.1", n, &out->corrupt));
    FKT_TRY(cli_dropped_of(a->dropped, n, out->corrupt, &out->dropped));
out:
    return st;
}
