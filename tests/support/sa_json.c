/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sa_json.h"

#include "tests/support/check.h"

#include "crypto/sign.h"

json_t *sa_json_load(const char *name)
{
    char path[512];
    json_error_t error;
    json_t *j;
    snprintf(path, sizeof path, "%s/secagg/%s.json", FKT_TEST_VECTORS, name);
    j = json_load_file(path, 0, &error);
    if (!j) fail_msg("%s: %s", path, error.text);
    return j;
}

json_t *sa_json_get(const json_t *object, const char *key)
{
    json_t *j = json_object_get(object, key);
    if (!j) fail_msg("the vector has no '%s'", key);
    return j;
}

uint64_t sa_json_number(const json_t *object, const char *key)
{
    const json_t *j = sa_json_get(object, key);
    CHECK(json_is_integer(j));
    return (uint64_t)json_integer_value(j);
}

const char *sa_json_text(const json_t *object, const char *key)
{
    const json_t *j = sa_json_get(object, key);
    CHECK(json_is_string(j));
    return json_string_value(j);
}

static unsigned nibble(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    if (!at) fail_msg("'%c' is no hex digit", c);
    return (unsigned)(at - digits);
}

struct sa_bytes sa_json_bytes(const json_t *hex)
{
    struct sa_bytes b = {NULL, 0};
    const char *text = json_string_value(hex);
    if (!text) fail_msg("no string where hex should be");
    b.n = strlen(text) / 2;
    b.p = malloc(b.n + 1);
    if (!b.p) fail_msg("no memory");
    for (size_t i = 0; i < b.n; i++) b.p[i] = (uint8_t)(nibble(text[2 * i]) << 4 | nibble(text[2 * i + 1]));
    return b;
}

void sa_json_fixed(const json_t *o, const char *key, uint8_t *out, size_t n)
{
    struct sa_bytes b = sa_json_bytes(sa_json_get(o, key));
    if (b.n != n) fail_msg("'%s' has %zu bytes, not %zu", key, b.n, n);
    memcpy(out, b.p, n);
    free(b.p);
}

void sa_json_check(const uint8_t *got, size_t n, const json_t *hex, const char *what)
{
    struct sa_bytes want = sa_json_bytes(hex);
    if (n != want.n) fail_msg("%s: %zu bytes, want %zu", what, n, want.n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want.p[i]) fail_msg("%s: byte %zu is %02x, want %02x", what, i, got[i], want.p[i]);
    free(want.p);
}

int64_t *sa_json_numbers(const json_t *array, size_t *n)
{
    int64_t *x;
    *n = json_array_size(array);
    x = malloc((*n + 1) * sizeof *x);
    if (!x) fail_msg("no memory");
    for (size_t i = 0; i < *n; i++) x[i] = json_integer_value(json_array_get(array, i));
    return x;
}

void sa_json_params(struct fkt_sa_params *p, const json_t *params)
{
    const json_t *roster = sa_json_get(params, "roster");
    uint8_t *keys;
    memset(p, 0, sizeof *p);
    p->sites = (uint32_t)sa_json_number(params, "sites");
    p->dropped = (uint32_t)sa_json_number(params, "dropped");
    p->corrupt = (uint32_t)sa_json_number(params, "corrupt");
    p->degree = (uint32_t)sa_json_number(params, "degree");
    p->threshold = (uint32_t)sa_json_number(params, "threshold");
    p->attempts = (uint32_t)sa_json_number(params, "attempts");
    p->bits = (uint32_t)sa_json_number(params, "bits");
    p->length = (uint32_t)sa_json_number(params, "length");
    p->bound = sa_json_number(params, "bound");
    p->keystream = strcmp(sa_json_text(params, "keystream"), "chacha20") == 0 ? FKT_SA_KEYSTREAM_CHACHA20
                                                                              : FKT_SA_KEYSTREAM_AES_256_CTR;
    sa_json_fixed(params, "task", p->task, sizeof p->task);
    CHECK(json_array_size(roster) == p->sites);
    keys = malloc((size_t)p->sites * FKT_SA_KEY);
    if (!keys) fail_msg("no memory");
    for (uint32_t i = 0; i < p->sites; i++) {
        struct sa_bytes key = sa_json_bytes(json_array_get(roster, i));
        CHECK(key.n == FKT_SA_KEY);
        memcpy(keys + (size_t)i * FKT_SA_KEY, key.p, FKT_SA_KEY);
        free(key.p);
    }
    p->roster = keys;
}

void sa_json_params_free(struct fkt_sa_params *p) { free((void *)(uintptr_t)p->roster); }

static fkt_status yes(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    const struct sa_actor *a = self;
    CHECK(length == a->length);
    memcpy(x, a->x, length * sizeof *x);
    return FKT_OK;
}

void sa_actor_init(struct sa_actor *a, const struct fkt_sa_params *p, uint32_t index, const json_t *secrets)
{
    const json_t *mine = json_array_get(secrets, index), *source = sa_json_get(mine, "entropy");
    uint8_t seed[FKT_SIGN_SEED], pk[FKT_SIGN_PUBLIC], sk[FKT_SIGN_SECRET];
    memset(a, 0, sizeof *a);
    sa_json_fixed(mine, "signing_seed", seed, sizeof seed);
    fkt_sign_keypair(pk, sk, seed);
    fkt_entropy_seeded_init(&a->seeded, (uint64_t)json_integer_value(json_array_get(source, 0)),
                            (uint64_t)json_integer_value(json_array_get(source, 1)));
    fkt_entropy_seeded(&a->entropy, &a->seeded);
    a->x = sa_json_numbers(sa_json_get(mine, "vector"), &a->length);
    a->doors = (struct fkt_sa_site){yes, vector, yes, a};
    a->cap = fkt_sa_to_server_max(p);
    a->out = malloc(a->cap);
    if (!a->out) fail_msg("no memory");
    CHECK_OK(fkt_sa_client_new(&a->client, p, index, sk, &a->doors, &a->entropy));
}

void sa_actor_release(struct sa_actor *a)
{
    fkt_sa_client_free(a->client);
    free(a->x);
    free(a->out);
}

fkt_status sa_actor_recv(struct sa_actor *a, const uint8_t *msg, size_t len)
{
    fkt_status st = fkt_sa_client_recv(a->client, msg, len);
    a->len = 0;
    if (fkt_sa_client_wants(a->client) & FKT_SA_SEND) {
        fkt_status sent = fkt_sa_client_send(a->client, a->out, a->cap, &a->len);
        if (st == FKT_OK && sent != FKT_OK) return sent;
    }
    return st;
}
