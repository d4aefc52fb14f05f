/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - `fedkt keygen | enroll`: the keys of the participants. A secret key never leaves the machine that made
 * it; the operator receives the public parts and collects them in the roster. */
#include "cli/core/common.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include "fedkt/keys.h"

#include "task/division.h"

#include "base/alloc.h"
#include "base/output.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct asked {
    const char *out, *name, *public_path, *key, *roster;
    struct cli_words sites;
    struct cli_run run;
};

/* ---- keygen ---- */

static fkt_status print_key(const struct asked *a, const struct fkt_key *k, const char *public_path)
{
    char hex[2 * FKT_SA_KEY + 1], print[FKT_FINGERPRINT];
    fkt_hex(hex, k->site.key, sizeof k->site.key);
    fkt_fingerprint(print, k->site.key);
    if (a->run.json)
        return cli_print_json(json_pack("{s:s s:s s:s s:s s:s}", "key", a->key ? a->key : a->out, "public_part",
                                        public_path, "name", k->site.name, "public", hex, "fingerprint", print));
    if (!a->key) printf("secret key   %s (stays here; only you can read it)\n", a->out);
    printf("public part  %s (for the others: a site sends it to the operator, the operator to the sites)\npublic key   "
           "%s\nfingerprint  %s (compare it by telephone)\n",
           public_path, hex, print);
    return FKT_OK;
}

/* --force was given, and a file existed. */
static void print_replaced(const struct fkt_site_key *old)
{
    static const uint8_t none[FKT_SA_KEY];
    char print[FKT_FINGERPRINT];
    if (!memcmp(old->key, none, sizeof none)) return;
    fkt_fingerprint(print, old->key);
    fprintf(
        stderr,
        "fedkt: key %s was replaced and cannot be recovered; tasks whose roster has it cannot be joined with the new "
        "one\n",
        print);
}

static fkt_status run_keygen(const struct asked *a, const char *public_path)
{
    const char *secret_path = a->key ? a->key : a->out;
    struct fkt_key k;
    struct fkt_site_key old;
    fkt_status st;
    memset(&k, 0, sizeof k);
    if (cli_not_an_input(public_path, secret_path) != FKT_OK) {
        st = fkt_fail(FKT_E_ARG, "--public-key: '%s' is the file of the secret key", public_path);
        goto out;
    }
    if (!a->key && !a->run.force && access(a->out, F_OK) == 0) {
        st = fkt_fail_hint(FKT_E_EXISTS, "choose another name; --force would destroy the old key",
                           "'%s' exists already, and may be a key that is on a roster", a->out);
        goto out;
    }
    FKT_TRY(fkt_output_file(public_path, a->run.force));
    if (a->key) {
        FKT_TRY(fkt_key_load(&k, a->key));
    } else {
        FKT_TRY(fkt_key_make(&k, a->name));
        FKT_TRY(fkt_key_save(&k, a->out, a->run.force, &old));
        print_replaced(&old);
    }
    FKT_TRY(
        fkt_hint(fkt_site_key_save(&k, public_path, a->run.force),
                 "the secret key was written; write its public part with 'fedkt keygen --key FILE --public-key FILE'"));
    FKT_TRY(print_key(a, &k, public_path));
out:
    fkt_key_clear(&k);
    return st;
}

static fkt_status with_public_path(const struct asked *a)
{
    char *made = NULL;
    fkt_status st;
    if (!a->out == !a->key)
        return fkt_fail(FKT_E_ARG, "give --out for a new key, or --key for the public part of one that you have");
    if (a->key && (a->name || !a->public_path))
        return fkt_fail(FKT_E_ARG, a->name ? "--name: the name of an existing key cannot be changed"
                                           : "--key needs --public-key, the file for the public part");
    if (a->public_path) return run_keygen(a, a->public_path);
    FKT_TRY(fkt_alloc(&made, strlen(a->out) + sizeof ".pub"));
    snprintf(made, strlen(a->out) + sizeof ".pub", "%s.pub", a->out);
    FKT_TRY(run_keygen(a, made));
out:
    fkt_free(made);
    return st;
}

int cli_keygen(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("out", &a.out, "FILE", 0, "file for the secret key, readable by you alone"),
        CLI_OPT_TEXT("name", &a.name, "TEXT", 0, "name of this site or operator; it is published"),
        CLI_OPT_TEXT("public-key", &a.public_path, "FILE", 0,
                     "file for the public part (default: --out with .pub appended)"),
        CLI_OPT_TEXT("key", &a.key, "FILE", 0,
                     "write the public part of this existing key to --public-key, and make no new key"),
        CLI_TALK_ROWS(a.run),
        CLI_OPT_FLAG("force", &a.run.force, "replace an existing key, which is then lost"),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    cli_keep_secrets();
    return code >= 0 ? code : cli_misuse(self, with_public_path(&a));
}

/* ---- enroll ---- */

static fkt_status print_enrolled(const struct asked *a, const struct fkt_site_key *sites, uint32_t n, uint32_t total)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        char hex[2 * FKT_SA_KEY + 1], print[FKT_FINGERPRINT];
        fkt_hex(hex, sites[i].key, sizeof sites[i].key);
        fkt_fingerprint(print, sites[i].key);
        if (list)
            json_array_append_new(list, json_pack("{s:I s:s s:s s:s}", "site", (json_int_t)(total - n + i), "name",
                                                  sites[i].name, "key", hex, "fingerprint", print));
        if (!a->run.json) printf("site %u  %s  %s\n", total - n + i, print, sites[i].name);
    }
    if (a->run.json)
        return cli_print_json(
            json_pack("{s:s s:I s:o}", "roster", a->roster, "sites", (json_int_t)total, "enrolled", list));
    json_decref(list);
    printf("%u site%s in %s\n", total, total == 1 ? "" : "s", a->roster);
    return FKT_OK;
}

static fkt_status run_enroll(const struct asked *a)
{
    struct fkt_site_key *sites = NULL;
    uint32_t total;
    fkt_status st;
    if (a->sites.n > FKT_ROSTER_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "a roster holds at most %u sites", FKT_ROSTER_SITES_MAX);
    FKT_TRY(fkt_alloc(&sites, a->sites.n));
    for (size_t i = 0; i < a->sites.n; i++) FKT_TRY(fkt_site_key_load(&sites[i], a->sites.list[i]));
    FKT_TRY(fkt_roster_enroll(a->roster, sites, (uint32_t)a->sites.n, &total));
    FKT_TRY(print_enrolled(a, sites, (uint32_t)a->sites.n, total));
out:
    fkt_free(sites);
    return st;
}

int cli_enroll(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("roster", &a.roster, "FILE", 1, "the roster; sites are appended"),
        CLI_OPT_WORDS("SITE.pub", &a.sites, 1, "public parts of the sites' keys, in the order of the sites' numbers"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_enroll(&a));
}
