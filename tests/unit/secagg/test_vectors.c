/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the aggregation protocol one by one, against oracle/secagg.py, which was written from
 * docs/protocol.md alone. */
#include "tests/support/check.h"
#include "tests/support/sa_json.h"

#include "crypto/group.h"
#include "crypto/seal.h"
#include "crypto/sign.h"
#include "secagg/coin.h"
#include "secagg/graph.h"
#include "secagg/mask.h"
#include "secagg/msg.h"
#include "secagg/share.h"

/* The inputs that most cases have. */
struct inputs {
    uint8_t session[32], seed[32], secret[32], peer_key[32], channel_key[32], mask_key[32];
    uint8_t delivered_hash[32];
    uint32_t site, peer;
};

static void read_inputs(struct inputs *in, const json_t *c)
{
    static const char *const names[] = {"session",     "seed",     "secret",        "peer_key",
                                        "channel_key", "mask_key", "delivered_hash"};
    uint8_t *const where[] = {in->session,     in->seed,     in->secret,        in->peer_key,
                              in->channel_key, in->mask_key, in->delivered_hash};
    memset(in, 0, sizeof *in);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_object_get(c, names[i])) sa_json_fixed(c, names[i], where[i], 32);
    if (json_object_get(c, "site")) in->site = (uint32_t)sa_json_number(c, "site");
    if (json_object_get(c, "peer")) in->peer = (uint32_t)sa_json_number(c, "peer");
}

static void check_session(const json_t *c)
{
    struct fkt_sa_params p = {0};
    uint8_t round[FKT_SA_ROUND], out[32];
    sa_json_fixed(c, "task", p.task, sizeof p.task);
    sa_json_fixed(c, "round", round, sizeof round);
    fkt_sa_session(out, &p, round);
    sa_json_check(out, 32, sa_json_get(c, "out"), "session");
}

/* Keys and hashes of 32 bytes. */
static void check_derived(const json_t *c)
{
    const char *f = sa_json_text(c, "function");
    struct inputs in;
    uint8_t out[32] = {0}, back[32];
    read_inputs(&in, c);
    if (strcmp(f, "advert_hash") == 0) fkt_sa_advert_hash(out, in.session, in.site, in.channel_key, in.mask_key);
    else if (strcmp(f, "mask_secret") == 0) fkt_sa_mask_secret(out, in.seed, in.session, in.site);
    else if (strcmp(f, "self_key") == 0) fkt_sa_self_key(out, in.seed, in.session, in.site);
    else if (strcmp(f, "self_commitment") == 0) fkt_sa_self_commitment(out, in.session, in.site, in.seed);
    else if (strcmp(f, "seal_key") == 0)
        CHECK_OK(fkt_sa_seal_keys(out, back, in.secret, in.peer_key, in.session, in.seed, in.site, in.peer));
    else if (strcmp(f, "seal_key_back") == 0)
        CHECK_OK(fkt_sa_seal_keys(back, out, in.secret, in.peer_key, in.session, in.seed, in.site, in.peer));
    else if (strcmp(f, "pair_key") == 0)
        CHECK_OK(fkt_sa_pair_key(out, in.secret, in.peer_key, in.session, in.seed, in.site, in.peer));
    else if (strcmp(f, "stream_key") == 0) fkt_sa_stream_key(out, in.secret, in.delivered_hash);
    else if (strcmp(f, "complete_seed") == 0) CHECK_OK(fkt_sa_coin_seed(out, in.session, NULL, NULL));
    else fail_msg("no such function '%s'", f);
    sa_json_check(out, 32, sa_json_get(c, "out"), f);
}

/* Hashes of a bitmap over the roster. */
static void check_list_hash(const json_t *c)
{
    const char *f = sa_json_text(c, "function");
    const int confirm = strcmp(f, "confirm_hash") == 0;
    struct sa_bytes map = sa_json_bytes(sa_json_get(c, confirm ? "survivors" : "delivered"));
    struct inputs in;
    uint8_t out[32];
    read_inputs(&in, c);
    if (confirm) fkt_sa_confirm_hash(out, in.session, in.seed, map.p, map.n);
    else fkt_sa_delivered_hash(out, in.session, in.seed, map.p, map.n);
    sa_json_check(out, 32, sa_json_get(c, "out"), f);
    free(map.p);
}

static void check_seal(const json_t *c)
{
    uint8_t key[32], plain[64], sealed[80], opened[64];
    sa_json_fixed(c, "key", key, sizeof key);
    sa_json_fixed(c, "plain", plain, sizeof plain);
    fkt_seal(sealed, plain, sizeof plain, key);
    sa_json_check(sealed, sizeof sealed, sa_json_get(c, "out"), "seal");
    CHECK(fkt_unseal(opened, sealed, sizeof opened, key) == 1);
    assert_memory_equal(opened, plain, sizeof plain);
}

static void check_sign(const json_t *c)
{
    uint8_t seed[FKT_SIGN_SEED], pk[FKT_SIGN_PUBLIC], sk[FKT_SIGN_SECRET], hash[32], sig[FKT_SIGN_BYTES];
    sa_json_fixed(c, "seed", seed, sizeof seed);
    sa_json_fixed(c, "hash", hash, sizeof hash);
    fkt_sign_keypair(pk, sk, seed);
    fkt_sign(sig, hash, sizeof hash, sk);
    sa_json_check(sig, sizeof sig, sa_json_get(c, "out"), "signature");
    CHECK(fkt_verify(sig, hash, sizeof hash, pk) == 1);
}

static struct fkt_stream *stream_of(const json_t *c)
{
    struct fkt_stream *s = NULL;
    int aes = strcmp(sa_json_text(c, "keystream"), "aes-256-ctr") == 0;
    CHECK_OK(fkt_stream_new(&s, aes ? FKT_KEYSTREAM_AES : FKT_KEYSTREAM_CHACHA20));
    return s;
}

static void check_stream(const json_t *c)
{
    struct fkt_stream *s = stream_of(c);
    uint8_t key[32], out[16];
    sa_json_fixed(c, "key", key, sizeof key);
    CHECK_OK(fkt_stream_bytes(s, key, out, sizeof out));
    sa_json_check(out, sizeof out, sa_json_get(c, "out"), "stream");
    fkt_stream_free(s);
}

static void check_message(const json_t *c)
{
    struct sa_bytes b = sa_json_bytes(sa_json_get(c, "out"));
    struct fkt_sa_msg m;
    uint8_t again[512];
    size_t len;
    CHECK_OK(fkt_sa_msg_decode(&m, (int)sa_json_number(c, "to_server"), b.p, b.n, sizeof again));
    assert_int_equal(m.kind, sa_json_number(c, "kind"));
    CHECK_OK(fkt_sa_msg_encode(&m, again, sizeof again, &len));
    sa_json_check(again, len, sa_json_get(c, "out"), "message");
    fkt_sa_msg_clear(&m);
    free(b.p);
}

static void check_graph(const json_t *c)
{
    struct fkt_sa_params p = {0};
    struct fkt_sa_graph g;
    struct inputs in;
    uint32_t *around;
    const char *site;
    json_t *want, *ring = sa_json_get(c, "ring");
    read_inputs(&in, c);
    p.sites = (uint32_t)sa_json_number(c, "sites");
    p.degree = (uint32_t)sa_json_number(c, "degree");
    CHECK_OK(fkt_sa_graph_make(&g, &p, in.session, in.seed));
    for (size_t i = 0; i < json_array_size(ring); i++)
        assert_int_equal(g.ring[i], json_integer_value(json_array_get(ring, i)));
    around = malloc(p.degree * sizeof *around);
    if (json_array_size(ring) > 0) {
        const json_t *seen = sa_json_get(c, "witnesses");
        fkt_sa_graph_witnesses(&g, around);
        for (size_t i = 0; i < p.degree; i++) assert_int_equal(around[i], json_integer_value(json_array_get(seen, i)));
    }
    json_object_foreach (sa_json_get(c, "out"), site, want) {
        fkt_sa_graph_neighbours(&g, (uint32_t)strtoul(site, NULL, 10), around);
        assert_int_equal(json_array_size(want), p.degree);
        for (size_t i = 0; i < p.degree; i++) assert_int_equal(around[i], json_integer_value(json_array_get(want, i)));
    }
    free(around);
    fkt_sa_graph_clear(&g);
}

enum { LEAVES = 16 };
struct tree {
    struct fkt_sa_leaf leaf[LEAVES];
    uint8_t key[LEAVES][2][32], coin[LEAVES][32], scalar[LEAVES][32];
    uint32_t n;
};

static void read_tree(struct tree *t, const json_t *leaves)
{
    t->n = (uint32_t)json_array_size(leaves);
    CHECK(t->n <= LEAVES);
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *l = json_array_get(leaves, i);
        uint8_t again[32];
        sa_json_fixed(l, "channel_key", t->key[i][0], 32);
        sa_json_fixed(l, "mask_key", t->key[i][1], 32);
        sa_json_fixed(l, "coin", t->coin[i], 32);
        sa_json_fixed(l, "scalar", t->scalar[i], 32);
        CHECK_OK(fkt_point_base(again, t->scalar[i]));
        assert_memory_equal(again, t->coin[i], 32);
        t->leaf[i] = (struct fkt_sa_leaf){(uint32_t)sa_json_number(l, "site"), t->key[i][0], t->key[i][1], t->coin[i]};
    }
}

static void check_coin(const json_t *c)
{
    const json_t *out = sa_json_get(c, "out"), *paths = sa_json_get(out, "paths");
    const uint32_t number = (uint32_t)sa_json_number(c, "throw");
    struct fkt_sa_coin coin;
    struct inputs in;
    struct tree t;
    uint8_t v[32], seed[32], path[64 * 8], root[FKT_SA_NODE];
    read_inputs(&in, c);
    read_tree(&t, sa_json_get(c, "leaves"));
    CHECK_OK(fkt_sa_coin_build(&coin, in.session, number, t.leaf, t.n));
    sa_json_check(fkt_sa_coin_root(&coin), 32, sa_json_get(out, "digest"), "digest");
    sa_json_check(fkt_sa_coin_root(&coin) + 32, 32, sa_json_get(out, "point"), "point");
    for (uint32_t i = 0; i < t.n; i++) {
        const size_t bytes = fkt_sa_coin_path_bytes(t.n, i);
        CHECK(bytes <= sizeof path);
        fkt_sa_coin_path(&coin, i, path);
        sa_json_check(path, bytes, json_array_get(paths, i), "path");
        CHECK_OK(fkt_sa_coin_climb(root, in.session, number, &t.leaf[i], t.n, i, path, bytes));
        assert_memory_equal(root, fkt_sa_coin_root(&coin), FKT_SA_NODE);
    }
    fkt_sa_coin_open(&coin, t.scalar[0], v);
    sa_json_check(v, 32, sa_json_get(out, "v"), "V");
    CHECK_OK(fkt_sa_coin_seed(seed, in.session, fkt_sa_coin_root(&coin), v));
    sa_json_check(seed, 32, sa_json_get(out, "seed"), "seed");
    fkt_sa_coin_clear(&coin);
}

static void check_vector(const json_t *c)
{
    struct fkt_sa_params p = {0};
    struct fkt_sa_vector v, w;
    struct fkt_stream *s = NULL;
    size_t n;
    int64_t *x = sa_json_numbers(sa_json_get(c, "numbers"), &n), *back = malloc(n * sizeof *back);
    uint8_t *packed;
    p.length = (uint32_t)n;
    p.bits = (uint32_t)sa_json_number(c, "bits");
    packed = malloc(fkt_sa_packed(p.length, p.bits));
    CHECK_OK(fkt_sa_vector_init(&v, &p));
    CHECK_OK(fkt_sa_vector_init(&w, &p));
    fkt_sa_vector_set(&v, x);
    if (strcmp(sa_json_text(c, "function"), "mask") == 0) {
        uint8_t key[32];
        sa_json_fixed(c, "key", key, sizeof key);
        s = stream_of(c);
        CHECK_OK(fkt_sa_vector_mask(&v, s, key, (int)sa_json_number(c, "subtract")));
        fkt_stream_free(s);
    } else {
        fkt_sa_vector_pack(&v, packed);
        CHECK_OK(fkt_sa_vector_add_packed(&w, packed));
        fkt_sa_vector_signed(&w, back);
        assert_memory_equal(back, x, n * sizeof *x);
    }
    fkt_sa_vector_pack(&v, packed);
    sa_json_check(packed, fkt_sa_packed(p.length, p.bits), sa_json_get(c, "out"), "packed vector");
    fkt_sa_vector_clear(&v);
    fkt_sa_vector_clear(&w);
    free(packed);
    free(back);
    free(x);
}

static void read_shape(struct fkt_sa_params *p, const json_t *c)
{
    memset(p, 0, sizeof *p);
    p->keystream = FKT_SA_KEYSTREAM_CHACHA20;
    p->sites = (uint32_t)sa_json_number(c, "sites");
    p->degree = (uint32_t)sa_json_number(c, "degree");
    p->attempts = (uint32_t)sa_json_number(c, "attempts");
    p->length = (uint32_t)sa_json_number(c, "length");
    p->bits = (uint32_t)sa_json_number(c, "bits");
}

static void check_limits(const json_t *c)
{
    const json_t *out = sa_json_get(c, "out");
    struct fkt_sa_params p;
    read_shape(&p, c);
    assert_int_equal(fkt_sa_to_server_max(&p), sa_json_number(out, "to_server"));
    assert_int_equal(fkt_sa_to_site_max(&p), sa_json_number(out, "to_site"));
}

static void check_params(struct fkt_sa_params *p, const json_t *c)
{
    fkt_status st;
    p->dropped = (uint32_t)sa_json_number(c, "dropped");
    p->corrupt = (uint32_t)sa_json_number(c, "corrupt");
    p->threshold = (uint32_t)sa_json_number(c, "threshold");
    p->bound = sa_json_number(c, "bound");
    st = fkt_sa_params_check(p);
    if ((uint64_t)st != sa_json_number(c, "out"))
        fail_msg("status %d (%s) for %s", (int)st, fkt_error_text(), json_dumps(c, 0));
}

static void check_parameters(const json_t *c)
{
    uint8_t roster[16][FKT_SA_KEY], sk[FKT_SIGN_SECRET];
    struct fkt_sa_params p;
    read_shape(&p, c);
    CHECK(p.sites <= 16);
    for (uint8_t i = 0; i < p.sites; i++) {
        const uint8_t seed[FKT_SIGN_SEED] = {i};
        fkt_sign_keypair(roster[i], sk, seed);
    }
    p.roster = roster[0];
    check_params(&p, c);
}

static void check_roster(const json_t *c)
{
    uint8_t roster[4 * FKT_SA_KEY];
    const json_t *keys = sa_json_get(c, "roster");
    struct fkt_sa_params p;
    read_shape(&p, c);
    assert_int_equal(json_array_size(keys), 4);
    for (size_t i = 0; i < 4; i++) {
        struct sa_bytes key = sa_json_bytes(json_array_get(keys, i));
        assert_int_equal(key.n, FKT_SA_KEY);
        memcpy(roster + i * FKT_SA_KEY, key.p, FKT_SA_KEY);
        free(key.p);
    }
    p.roster = roster;
    check_params(&p, c);
}

static const struct {
    const char *name;
    void (*check)(const json_t *c);
} kinds[] = {
    {"session", check_session},
    {"advert_hash", check_derived},
    {"mask_secret", check_derived},
    {"self_key", check_derived},
    {"self_commitment", check_derived},
    {"seal_key", check_derived},
    {"seal_key_back", check_derived},
    {"pair_key", check_derived},
    {"stream_key", check_derived},
    {"complete_seed", check_derived},
    {"confirm_hash", check_list_hash},
    {"delivered_hash", check_list_hash},
    {"seal", check_seal},
    {"sign", check_sign},
    {"stream", check_stream},
    {"message", check_message},
    {"graph", check_graph},
    {"coin", check_coin},
    {"pack", check_vector},
    {"mask", check_vector},
    {"limits", check_limits},
    {"parameters", check_parameters},
    {"roster", check_roster},
};

static size_t check_file(const char *name, size_t which)
{
    json_t *all = sa_json_load(name), *c;
    size_t i, seen = 0;
    json_array_foreach (all, i, c) {
        if (strcmp(sa_json_text(c, "function"), kinds[which].name) != 0) continue;
        kinds[which].check(c);
        seen++;
    }
    json_decref(all);
    return seen;
}

/* examples.json holds the numbers of docs/protocol.md section 9. */
static void test_function(void **state)
{
    const size_t which = (size_t)(uintptr_t)*state;
    if (check_file("functions", which) + check_file("examples", which) == 0)
        fail_msg("no vector for '%s'", kinds[which].name);
}

int main(void)
{
    enum { N = sizeof kinds / sizeof kinds[0] };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){kinds[i].name, test_function, NULL, NULL, (void *)(uintptr_t)i};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
