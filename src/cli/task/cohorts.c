/* SPDX-License-Identifier: Apache-2.0 */
/* cohorts.c - `fedkt task new --cohort-size`: the sites of a roster divided into cohorts, and a task for each.
 *
 *   DIR/sum.json          the task of the sum: what all cohorts have in common
 *   DIR/cohort-0000.json  the task of cohort 0, for its sites; cohort i is served at the server's port plus i
 *
 * The seed must be younger than the roster, and not of the operator's choice (docs/scale.md): so there is no default,
 * and without one the refusal prints the hash of the roster, which is to be published first, with the cohorts' size and
 * tolerance: whoever knows the seed could choose these to suit it. */
#include "cli/task/cohorts.h"

#include "cli/task/task.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "task/federation.h"
#include "task/service.h"

#include <stdio.h>
#include <string.h>

static fkt_status take_seed(struct cli_cohorts *c, const char *text)
{
    char hex[2 * sizeof c->division.roster_sha256 + 1], hint[320];
    if (text && fkt_unhex(c->division.seed, text, sizeof c->division.seed)) return FKT_OK;
    if (text) return fkt_fail(FKT_E_ARG, "--cohort-seed: '%s' is not 64 lower-case hexadecimal digits", text);
    fkt_hex(hex, c->division.roster_sha256, sizeof c->division.roster_sha256);
    snprintf(hint, sizeof hint,
             "publish the roster's hash %s, --cohort-size, --corrupt and --dropped; then give public randomness of a "
             "later, announced time as --cohort-seed",
             hex);
    return fkt_fail_hint(FKT_E_ARG, hint,
                         "a task in cohorts needs a seed that nobody could know or choose when the roster was fixed");
}

fkt_status cli_cohorts_plan(struct cli_cohorts *c, const struct cli_federation_asked *a,
                            const struct fkt_federation_choices *all, const struct fkt_roster *roster)
{
    struct fkt_division *d = &c->division;
    fkt_status st = FKT_OK;
    if (!a->cohort_size) return a->cohort_seed ? fkt_fail(FKT_E_ARG, "--cohort-seed needs --cohort-size") : FKT_OK;
    if (a->cohort_size < 3 || a->cohort_size > FKT_SA_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "--cohort-size: a cohort has 3 to %u sites", FKT_SA_SITES_MAX);
    if (all->records == FKT_RECORDS_UNKNOWN)
        return fkt_fail_hint(FKT_E_ARG, "give 1048575 or 1048577",
                             "--records 1048576 means 'no bound is known' in the task of a sum");
    if (fkt_division_number(roster->n, (uint32_t)a->cohort_size) < 2) return FKT_OK;
    c->roster = roster;
    c->corrupt = all->corrupt;
    c->dropped = all->dropped;
    c->corrupt_given = a->corrupt != NULL;
    c->dropped_given = a->dropped != NULL;
    d->sites = roster->n;
    d->records = all->records;
    FKT_TRY(fkt_division_roster(d->roster_sha256, roster->keys, roster->n));
    FKT_TRY(take_seed(c, a->cohort_seed));
    d->number = fkt_division_number(roster->n, (uint32_t)a->cohort_size);
    FKT_TRY(fkt_division_lists(&c->lists, d, roster->keys));
out:
    if (st != FKT_OK) d->number = 0;
    return st;
}

/* The server's address with its port plus `index`. */
static fkt_status address_of(char out[256], const char *address, uint32_t index)
{
    char host[FKT_SERVICE_HOST];
    uint16_t port;
    fkt_status st = fkt_service_address(address, host, &port);
    if (st != FKT_OK) return st;
    if ((uint64_t)port + index > UINT16_MAX)
        return fkt_fail_hint(FKT_E_ARG, "give a lower port, or make fewer, larger cohorts",
                             "cohort %u would be served at port %llu", index, (unsigned long long)port + index);
    if ((size_t)snprintf(out, 256, strchr(host, ':') ? "https://[%s]:%u" : "https://%s:%u", host, port + index) >= 256)
        return fkt_fail(FKT_E_ARG, "the server's address is too long");
    return FKT_OK;
}

/* What one cohort's task is made of. */
struct cohort {
    struct fkt_federation_choices federation;
    struct fkt_service_choices service;
    uint8_t *keys;
    const char **names;
    char address[256];
    uint64_t seed;
};

static fkt_status fill(struct cohort *o, const struct cli_cohorts *c, uint32_t index,
                       const struct fkt_federation_choices *all, const struct cli_service *service)
{
    const uint32_t *site = c->lists.site + c->lists.first[index];
    const uint32_t n = c->lists.first[index + 1] - c->lists.first[index];
    fkt_status st;
    o->federation = *all;
    o->federation.sites = n;
    o->federation.corrupt = c->corrupt_given ? fkt_division_share(c->corrupt, n, c->division.sites) : (n + 9) / 10;
    o->federation.dropped = c->dropped_given ? fkt_division_share(c->dropped, n, c->division.sites)
                                             : fkt_federation_usual_dropped(n, o->federation.corrupt);
    FKT_TRY(fkt_alloc(&o->keys, (size_t)n * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&o->names, n));
    for (uint32_t i = 0; i < n; i++) {
        memcpy(o->keys + (size_t)i * FKT_SA_KEY, c->roster->keys + (size_t)site[i] * FKT_SA_KEY, FKT_SA_KEY);
        o->names[i] = c->roster->names[site[i]];
    }
    o->federation.roster = o->keys;
    o->service = service->choices;
    if (!o->service.address) goto out;
    FKT_TRY(address_of(o->address, service->choices.address, index));
    o->service.address = o->address;
    if (o->service.names) o->service.names = o->names;
    if (o->service.insecure_seed) {
        o->seed = fkt_division_seed(*o->service.insecure_seed, index);
        o->service.insecure_seed = &o->seed;
    }
out:
    return st;
}

static fkt_status write_one(struct cli_cohorts *c, const struct fkt_folder *folder, const struct fkt_task *whole,
                            uint32_t index, const struct cohort *o, const char *key)
{
    struct fkt_task t = {0};
    char name[32], *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_task_cohort(&t, whole, index, &o->federation, o->service.address ? &o->service : NULL));
    if (key) FKT_TRY(cli_task_sign_with(&t, key));
    snprintf(name, sizeof name, "cohort-%04u.json", index);
    FKT_TRY(fkt_path_join(&path, folder->tmp, name));
    FKT_TRY(fkt_task_save(&t, path, 0));
    c->least = !c->least || t.federation.sites < c->least ? t.federation.sites : c->least;
    c->most = t.federation.sites > c->most ? t.federation.sites : c->most;
out:
    fkt_free(path);
    fkt_task_clear(&t);
    return fkt_fail_in(st, "cohort %u", index);
}

fkt_status cli_cohorts_make(struct cli_cohorts *c, const struct fkt_task *whole,
                            const struct fkt_federation_choices *all, const struct cli_service *service,
                            const char *key)
{
    struct fkt_folder folder = {0};
    char *path = NULL;
    fkt_status st;
    c->is_signed = key != NULL;
    c->has_server = service->choices.address != NULL;
    FKT_TRY(fkt_folder_begin(&folder, c->out, c->run->force));
    FKT_TRY(fkt_path_join(&path, folder.tmp, "sum.json"));
    FKT_TRY(fkt_task_save(whole, path, 0));
    for (uint32_t i = 0; i < c->division.number; i++) {
        struct cohort one = {.seed = 0};
        st = fill(&one, c, i, all, service);
        if (st == FKT_OK) st = write_one(c, &folder, whole, i, &one, key);
        fkt_free(one.keys);
        fkt_free(one.names);
        FKT_TRY(st);
    }
    FKT_TRY(fkt_folder_commit(&folder));
out:
    fkt_folder_fail(&folder, st);
    fkt_folder_clear(&folder);
    fkt_free(path);
    return st;
}

fkt_status cli_cohorts_print(const struct cli_cohorts *c, const struct fkt_task *whole)
{
    const struct fkt_division *d = &c->division;
    char seed[65], roster[65];
    json_t *j;
    fkt_hex(seed, d->seed, sizeof d->seed);
    fkt_hex(roster, d->roster_sha256, sizeof d->roster_sha256);
    if (c->run->json) {
        j = json_pack("{s:s s:s s:i s:i s:{s:I s:I s:I s:I s:s s:s} s:b s:b}", "task", c->out, "sha256", whole->sha256,
                      "classes", (int)whole->n_classes, "length", (int)fkt_layout_length(&whole->layout), "cohorts",
                      "number", (json_int_t)d->number, "sites", (json_int_t)d->sites, "smallest", (json_int_t)c->least,
                      "largest", (json_int_t)c->most, "seed", seed, "roster_sha256", roster, "signed", c->is_signed,
                      "private", cli_task_is_private(whole));
        cli_mark_weak(j, whole);
        return cli_print_json(j);
    }
    printf("%u tasks in %s, one for each cohort of %u to %u sites; together %u sites\n", d->number, c->out, c->least,
           c->most, d->sites);
    printf("sum    %s\nroster %s\nseed   %s\n", whole->sha256, roster, seed);
    printf("%s\n", c->is_signed ? "signed" : "not signed yet");
    if (c->has_server) printf("next: 'fedkt serve --task %s' serves all of them and adds their releases up\n", c->out);
    cli_print_weak(whole);
    return cli_flush();
}

void cli_cohorts_clear(struct cli_cohorts *c) { fkt_division_lists_clear(&c->lists); }
