/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - the service block of a task: the server's address, pin and deadlines, and the sites' names.
 *
 * It is under the task's hash like everything else, so that a server cannot use different addresses, deadlines or pins
 * for different sites. Only the pin is absent at first, if the server makes its certificate on its first start: adding
 * it makes another task, which is signed again (signature.c).
 *
 * The address is read more strictly than a URL (RFC 3986): "https://", a name of letters, digits, hyphens and dots or
 * an IP address, and a port. No user, path, query, blank or percent sign, so that no two programs can parse it
 * differently. The check of a host whose last label is a number follows the WHATWG URL standard: it must be an IPv4
 * address in four decimal parts.
 *
 * An insecure seed makes a whole federation repeatable for tests. It is in the task, so that a site always sees that
 * such a round is not private. It stays below 2^53, which every JSON reader holds exactly. */
#include "task/service.h"

#include "fedkt/ledger.h"

#include "task/federation.h"
#include "task/task.h"

#include "base/alloc.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <string.h>

#define SECONDS_MAX 604800U                /* a week */
#define EXPIRES_MAX UINT64_C(253402300799) /* the last second of the year 9999 */
#define SEED_MAX (UINT64_C(1) << 53)
#define PIN_HEAD "sha256//"

static const char scheme[] = "https://";
static const char address_hint[] = "an address is https://NAME:PORT, with nothing after the port";

static fkt_status bad_address(const char *address, const char *why)
{
    return fkt_fail_hint(FKT_E_ARG, address_hint, "the server's address '%s' %s", address, why);
}

/* Letters, digits and hyphens between dots, as in RFC 1123. */
static int is_host_name(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    for (const char *label = host;; label++) {
        size_t n = strspn(label, letters);
        if (n < 1 || n > 63 || label[0] == '-' || label[n - 1] == '-') return 0;
        if (label[n] == '\0') {
            struct in_addr four;
            return strspn(label, "0123456789") < n || inet_pton(AF_INET, host, &four) == 1;
        }
        if (label[n] != '.') return 0;
        label += n;
    }
}

static fkt_status take_port(const char *address, const char *text, uint16_t *port)
{
    uint64_t n;
    if (text[0] == '0' || strspn(text, "0123456789") != strlen(text) || fkt_parse_u64(&n, text, 65535) != FKT_OK)
        return bad_address(address, "has no port between 1 and 65535 after its colon");
    *port = (uint16_t)n;
    return FKT_OK;
}

fkt_status fkt_service_address(const char *address, char host[FKT_SERVICE_HOST], uint16_t *port)
{
    const size_t head = sizeof scheme - 1;
    const char *from = address + head, *to;
    int six;
    if (strlen(address) >= sizeof((struct fkt_service *)0)->address)
        return fkt_fail_hint(FKT_E_ARG, address_hint, "the server's address is longer than %zu bytes",
                             sizeof((struct fkt_service *)0)->address - 1);
    if (strncmp(address, scheme, head) != 0) return bad_address(address, "does not begin with https://");
    six = *from == '[';
    to = six ? strchr(++from, ']') : from + strcspn(from, ":");
    if (!to || (size_t)(to - from) >= FKT_SERVICE_HOST) return bad_address(address, "has no host");
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    if (six) {
        struct in6_addr a;
        to++;
        if (inet_pton(AF_INET6, host, &a) != 1) return bad_address(address, "has no IPv6 address in its brackets");
    } else if (!is_host_name(host)) {
        return bad_address(address, "has no host, or one that is neither a name nor an IP address");
    }
    *port = 443;
    if (*to == '\0') return FKT_OK;
    if (*to != ':') return bad_address(address, "has something other than a port after its brackets");
    return take_port(address, to + 1, port);
}

/* Base64 of 32 bytes is 43 digits, the last of which carries four bits, and one '='. */
static int is_pin(const char *pin)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t head = sizeof PIN_HEAD - 1;
    if (strlen(pin) != FKT_SERVICE_PIN - 1 || strncmp(pin, PIN_HEAD, head) != 0) return 0;
    return strspn(pin + head, digits) == 43 && (strchr(digits, pin[head + 42]) - digits) % 4 == 0 &&
           pin[head + 43] == '=';
}

static fkt_status set_pin(struct fkt_service *s, const char *pin)
{
    if (!is_pin(pin))
        return fkt_fail_hint(FKT_E_ARG, "a pin is \"sha256//\" and 44 characters, as the server prints it",
                             "the server's pin '%s' is not a SHA-256 hash in base64", pin);
    snprintf(s->pin, sizeof s->pin, "%s", pin);
    return FKT_OK;
}

fkt_status fkt_service_check_name(const char *name, const char *where)
{
    size_t n = strlen(name);
    if (n > FKT_SERVICE_NAME)
        return fkt_fail(FKT_E_ARG, "%s has a name of more than %d bytes", where, FKT_SERVICE_NAME);
    if (!fkt_plain_name(name) || name[0] == ' ' || name[n - 1] == ' ')
        return fkt_fail_hint(FKT_E_ARG,
                             "a name is plain UTF-8 text without a blank at either end and without characters that "
                             "cannot be seen",
                             "%s has a name that is empty or not plain text", where);
    return FKT_OK;
}

/* Fills s->names without duplicates; on an error the caller clears what was filled. */
static fkt_status set_names(struct fkt_service *s, const char *const *names, uint32_t sites)
{
    char where[32];
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->names, sites));
    for (uint32_t i = 0; i < sites; i++) {
        snprintf(where, sizeof where, "site %u", i);
        FKT_TRY(fkt_service_check_name(names[i], where));
        FKT_TRY(fkt_strdup(&s->names[i], names[i]));
    }
    FKT_TRY(fkt_all_different(names, sites, "site"));
out:
    return st;
}

static fkt_status check_numbers(const struct fkt_service *s)
{
    if (s->gather_seconds < 1 || s->gather_seconds > SECONDS_MAX || s->phase_seconds < 1 ||
        s->phase_seconds > SECONDS_MAX)
        return fkt_fail(FKT_E_ARG, "the server waits 1 to %u seconds, not %u for sites to gather and %u in a phase",
                        SECONDS_MAX, s->gather_seconds, s->phase_seconds);
    if (s->rounds < 1 || s->rounds > FKT_LEDGER_ROUNDS)
        return fkt_fail(FKT_E_ARG, "a server tries 1 to %d rounds, not %u", FKT_LEDGER_ROUNDS, s->rounds);
    if (s->expires > EXPIRES_MAX) return fkt_fail(FKT_E_ARG, "the task expires after the year 9999");
    if (s->insecure_seed >= SEED_MAX) return fkt_fail(FKT_E_ARG, "an insecure seed in a task must be below 2^53");
    return FKT_OK;
}

fkt_status fkt_service_make(struct fkt_task *t, const struct fkt_service_choices *c)
{
    struct fkt_service *s = &t->service;
    char host[FKT_SERVICE_HOST];
    uint16_t port;
    fkt_status st;
    if (!t->federation.sites) return fkt_fail(FKT_E_ARG, "a task with a server needs a federation");
    FKT_TRY(fkt_federation_fits(t));
    FKT_TRY(fkt_service_address(c->address, host, &port));
    snprintf(s->address, sizeof s->address, "%s", c->address);
    if (c->pin) FKT_TRY(set_pin(s, c->pin));
    s->gather_seconds = c->gather_seconds ? c->gather_seconds : 300;
    s->phase_seconds = c->phase_seconds ? c->phase_seconds : 120;
    s->rounds = c->rounds ? c->rounds : 8;
    s->expires = c->expires;
    s->seeded = c->insecure_seed != NULL;
    s->insecure_seed = c->insecure_seed ? *c->insecure_seed : 0;
    FKT_TRY(check_numbers(s));
    if (c->names) FKT_TRY(set_names(s, c->names, t->federation.sites));
out:
    return st;
}

json_t *fkt_service_json(const struct fkt_service *s, uint32_t sites)
{
    json_t *names = NULL, *seed = NULL;
    if (s->names && !(names = json_array())) return NULL;
    for (uint32_t i = 0; names && i < sites; i++)
        if (json_array_append_new(names, json_string(s->names[i])) != 0) {
            json_decref(names);
            return NULL;
        }
    if (s->seeded && !(seed = json_integer((json_int_t)s->insecure_seed))) {
        json_decref(names);
        return NULL;
    }
    return json_pack("{s:s s:s* s:I s:I s:I s:I s:o* s:o*}", "address", s->address, "pin", s->pin[0] ? s->pin : NULL,
                     "gather_seconds", (json_int_t)s->gather_seconds, "phase_seconds", (json_int_t)s->phase_seconds,
                     "rounds", (json_int_t)s->rounds, "expires", (json_int_t)s->expires, "names", names,
                     "insecure_seed", seed);
}

static fkt_status take_names(struct fkt_service *s, const json_t *list, uint32_t sites)
{
    const char **names = NULL;
    fkt_status st;
    if (!json_is_array(list) || json_array_size(list) != sites)
        return fkt_fail(FKT_E_FORMAT, "service: %zu names for %u sites", json_array_size(list), sites);
    FKT_TRY(fkt_alloc(&names, sites));
    for (uint32_t i = 0; i < sites; i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (!names[i]) {
            st = fkt_fail(FKT_E_FORMAT, "service: the name of site %u is not plain text", i);
            goto out;
        }
    }
    FKT_TRY(fkt_fail_in(set_names(s, names, sites), "service"));
out:
    fkt_free(names);
    return st;
}

static fkt_status take_numbers(struct fkt_service *s, json_int_t gather, json_int_t phase, json_int_t rounds,
                               json_int_t expires, const json_t *seed)
{
    json_int_t seeded = json_integer_value(seed);
    if (gather < 0 || gather > UINT32_MAX || phase < 0 || phase > UINT32_MAX || rounds < 0 || rounds > UINT32_MAX ||
        expires < 0)
        return fkt_fail(FKT_E_FORMAT, "service: a number is out of range");
    if (seed && (!json_is_integer(seed) || seeded < 0))
        return fkt_fail(FKT_E_FORMAT, "service: 'insecure_seed' is not a whole number");
    s->gather_seconds = (uint32_t)gather;
    s->phase_seconds = (uint32_t)phase;
    s->rounds = (uint32_t)rounds;
    s->expires = (uint64_t)expires;
    s->seeded = seed != NULL;
    s->insecure_seed = (uint64_t)seeded;
    return fkt_fail_in(check_numbers(s), "service");
}

fkt_status fkt_service_take(struct fkt_task *t, const json_t *j)
{
    struct fkt_service *s = &t->service;
    json_t *address, *pin = NULL, *names = NULL, *seed = NULL;
    json_int_t gather, phase, rounds, expires;
    char host[FKT_SERVICE_HOST];
    uint16_t port;
    json_error_t e;
    fkt_status st;
    if (!t->federation.sites) return fkt_fail(FKT_E_FORMAT, "service: the task has no federation");
    if (json_unpack_ex((json_t *)(uintptr_t)j, &e, JSON_STRICT, "{s:o s?o s:I s:I s:I s:I s?o s?o}", "address",
                       &address, "pin", &pin, "gather_seconds", &gather, "phase_seconds", &phase, "rounds", &rounds,
                       "expires", &expires, "names", &names, "insecure_seed", &seed) != 0)
        return fkt_fail(FKT_E_FORMAT, "service: %s", e.text);
    FKT_TRY(fkt_fail_in(fkt_federation_fits(t), "service"));
    if (!json_string_value(address) || (pin && !json_string_value(pin)))
        return fkt_fail(FKT_E_FORMAT, "service: 'address' or 'pin' is not plain text");
    FKT_TRY(fkt_fail_in(fkt_service_address(json_string_value(address), host, &port), "service"));
    snprintf(s->address, sizeof s->address, "%s", json_string_value(address));
    if (pin) FKT_TRY(fkt_fail_in(set_pin(s, json_string_value(pin)), "service"));
    FKT_TRY(take_numbers(s, gather, phase, rounds, expires, seed));
    if (names) FKT_TRY(take_names(s, names, t->federation.sites));
out:
    return st;
}

fkt_status fkt_service_copy(struct fkt_service *out, const struct fkt_service *s, uint32_t sites)
{
    *out = *s;
    out->names = NULL;
    return s->names ? set_names(out, (const char *const *)s->names, sites) : FKT_OK;
}

void fkt_service_clear(struct fkt_service *s, uint32_t sites)
{
    for (uint32_t i = 0; s->names && i < sites; i++) fkt_free(s->names[i]);
    fkt_free(s->names);
    memset(s, 0, sizeof *s);
}

fkt_status fkt_task_pin(struct fkt_task *t, const char *pin)
{
    fkt_status st;
    if (!t->service.address[0])
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "task '%s' does not name a server to pin", t->name),
                             FKT_HINT_TASK_SERVER, "make a task that names the server's address");
    FKT_TRY(set_pin(&t->service, pin));
    memset(&t->signature, 0, sizeof t->signature);
    FKT_TRY(fkt_task_seal(t));
out:
    return st;
}

fkt_status fkt_task_site(const struct fkt_task *t, const uint8_t key[FKT_SA_KEY], uint32_t *site)
{
    char hex[2 * FKT_SA_KEY + 1];
    for (uint32_t i = 0; i < t->federation.sites; i++)
        if (!memcmp(t->federation.roster + (size_t)i * FKT_SA_KEY, key, FKT_SA_KEY)) {
            *site = i;
            return FKT_OK;
        }
    fkt_hex(hex, key, FKT_SA_KEY);
    return fkt_fail_hint(FKT_E_MISMATCH, "send your public key to the operator and ask for a task that has it",
                         "key %.16s... is not on the roster of task '%s'", hex, t->name);
}
