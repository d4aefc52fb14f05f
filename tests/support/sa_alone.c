/* SPDX-License-Identifier: Apache-2.0 */
/* sa_alone.c - the rest of the world of sa_alone.h. */
#include "tests/support/sa_alone.h"

#include "crypto/agree.h"
#include "crypto/group.h"
#include "crypto/seal.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"
#include "secagg/graph.h"

static void random_bytes(struct fkt_entropy *e, uint8_t *out, size_t n) { CHECK_OK(e->fill(e->self, out, n)); }

static void note(struct alone *a, char call)
{
    size_t n = strlen(a->calls);
    assert_true(n + 1 < sizeof a->calls);
    a->calls[n] = call;
}

static fkt_status door_reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct alone *a = self;
    note(a, 'r');
    assert_memory_equal(session, a->session, FKT_SA_SESSION);
    return a->refuse_reserve == FKT_OK ? FKT_OK : fkt_fail(a->refuse_reserve, "the test's ledger refuses");
}

static fkt_status door_vector(void *self, int64_t *x, uint32_t length)
{
    struct alone *a = self;
    note(a, 'v');
    assert_int_equal(length, ALONE_LENGTH);
    memcpy(x, a->x, sizeof a->x);
    return a->refuse_vector == FKT_OK ? FKT_OK : fkt_fail(a->refuse_vector, "the test has no vector");
}

static fkt_status door_spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct alone *a = self;
    note(a, 's');
    assert_memory_equal(session, a->session, FKT_SA_SESSION);
    return a->refuse_spend == FKT_OK ? FKT_OK : fkt_fail(a->refuse_spend, "the test's ledger refuses");
}

/* Keys of the others for this session; all but the roster's keys. */
static void others(struct alone *a, struct fkt_entropy *e)
{
    for (uint32_t j = 0; j < a->p.sites; j++) {
        struct alone_other *o = &a->other[j];
        uint8_t hash[32];
        random_bytes(e, o->channel, 32);
        random_bytes(e, o->mask_secret, 32);
        fkt_agree_public(o->channel_key, o->channel);
        fkt_agree_public(o->mask_key, o->mask_secret);
        CHECK_OK(fkt_scalar_random(o->coin, e));
        CHECK_OK(fkt_point_base(o->commitment, o->coin));
        CHECK_OK(fkt_scalar_random(o->plain, e));
        CHECK_OK(fkt_scalar_random(o->plain + 32, e));
        fkt_sa_advert_hash(hash, a->session, j, o->channel_key, o->mask_key);
        fkt_sign(o->advert_signature, hash, 32, o->sign);
    }
}

/* docs/protocol.md 3.1, in the words of the document. */
static void draw_like_the_site(struct alone *a)
{
    random_bytes(&a->twin, a->c, 32);
    CHECK_OK(fkt_scalar_random(a->s, &a->twin));
    CHECK_OK(fkt_scalar_random(a->u, &a->twin));
    if (!fkt_sa_complete(&a->p)) CHECK_OK(fkt_scalar_random(a->r, &a->twin));
}

int alone_zero(const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        if (b[i]) return 0;
    return 1;
}

void alone_init(struct alone *a, enum alone_kind kind)
{
    struct fkt_entropy_seeded world_seed;
    struct fkt_entropy world;
    memset(a, 0, sizeof *a);
    fkt_entropy_seeded_init(&world_seed, 77, 1);
    fkt_entropy_seeded(&world, &world_seed);
    fkt_entropy_seeded_init(&a->seeded, 78, 1);
    fkt_entropy_seeded(&a->entropy, &a->seeded);
    fkt_entropy_seeded_init(&a->seeded_twin, 78, 1);
    fkt_entropy_seeded(&a->twin, &a->seeded_twin);
    a->p = (struct fkt_sa_params){.sites = kind == ALONE_SPARSE ? 12 : 9,
                                  .dropped = 3,
                                  .corrupt = 1,
                                  .degree = 8,
                                  .threshold = ALONE_T,
                                  .attempts = 2,
                                  .bits = kind == ALONE_SPARSE ? 41 : 21,
                                  .length = ALONE_LENGTH,
                                  .bound = 50000,
                                  .keystream =
                                      kind == ALONE_SPARSE ? FKT_SA_KEYSTREAM_CHACHA20 : FKT_SA_KEYSTREAM_AES_256_CTR,
                                  .roster = a->roster};
    random_bytes(&world, a->p.task, 32);
    random_bytes(&world, a->round, sizeof a->round);
    for (uint32_t j = 0; j < a->p.sites; j++) {
        uint8_t seed[32];
        random_bytes(&world, seed, 32);
        fkt_sign_keypair(a->roster + 32 * j, a->other[j].sign, seed);
    }
    fkt_sa_session(a->session, &a->p, a->round);
    others(a, &world);
    memcpy(a->secret, a->other[ALONE_SITE].sign, 64);
    for (uint32_t i = 0; i < ALONE_LENGTH; i++) a->x[i] = (int64_t)(i * 7919 % 100001) - 50000;
    a->x[0] = 50000;
    a->x[ALONE_LENGTH - 1] = -50000;
    a->doors = (struct fkt_sa_site){door_reserve, door_vector, door_spend, a};
    a->never_came = 1;
    a->never_shared = 4;
    a->lost = 6;
    draw_like_the_site(a);
    CHECK_OK(fkt_sa_client_new(&a->client, &a->p, ALONE_SITE, a->secret, &a->doors, &a->entropy));
}

void alone_release(struct alone *a)
{
    fkt_sa_msg_clear(&a->said);
    fkt_sa_client_free(a->client);
    a->client = NULL;
}

int alone_is_peer(const struct alone *a, uint32_t place) { return place != a->never_came && place != a->never_shared; }

/* The site's own leaf comes from what it sent; everybody else is a leaf too, save site 0 from the second throw on. */
static void make_coin(struct alone *a)
{
    struct fkt_sa_leaf leaf[ALONE_SITES_MAX];
    uint8_t scalars[ALONE_SITES_MAX * 32];
    struct fkt_sa_coin coin;
    uint32_t n = 0, own = 0;
    a->throws++;
    for (uint32_t j = a->throws > 1; j < a->p.sites; j++) {
        const struct alone_other *o = &a->other[j];
        const int site = j == ALONE_SITE;
        if (site) own = n;
        leaf[n].site = j;
        leaf[n].channel_key = site ? a->client->channel_key : o->channel_key;
        leaf[n].mask_key = site ? a->client->mask_key : o->mask_key;
        leaf[n].commitment = site ? a->client->commitment : o->commitment;
        memcpy(scalars + 32 * n++, site ? a->r : o->coin, 32);
    }
    CHECK_OK(fkt_sa_coin_build(&coin, a->session, a->throws, leaf, n));
    fkt_sa_coin_open(&coin, scalars, a->v);
    memcpy(a->root, fkt_sa_coin_root(&coin), 64);
    a->m.coin.attempt = a->throws;
    a->m.coin.leaves = n;
    a->m.coin.position = own;
    a->m.coin.path = (struct fkt_sa_bytes){a->buf[0], fkt_sa_coin_path_bytes(n, own)};
    fkt_sa_coin_path(&coin, own, a->buf[0]);
    fkt_sa_coin_clear(&coin);
}

static void make_neighbours(struct alone *a)
{
    const int sparse = !fkt_sa_complete(&a->p);
    struct fkt_sa_graph graph;
    uint8_t *advert = a->buf[2];
    CHECK_OK(fkt_sa_coin_seed(a->seed, a->session, sparse ? a->root : NULL, sparse ? a->v : NULL));
    CHECK_OK(fkt_sa_graph_make(&graph, &a->p, a->session, a->seed));
    fkt_sa_graph_neighbours(&graph, ALONE_SITE, a->neighbour);
    if (sparse) fkt_sa_graph_witnesses(&graph, a->witness);
    a->witnesses = sparse ? a->p.degree : 0;
    fkt_sa_graph_clear(&graph);
    for (uint32_t i = 0; !sparse && i < a->p.degree; i++)
        if (alone_is_peer(a, i)) a->witness[a->witnesses++] = a->neighbour[i];
    for (uint32_t i = 0; i < a->p.degree; i++) {
        const struct alone_other *o = &a->other[a->neighbour[i]];
        if (i == a->never_came) continue;
        fkt_bitmap_set(a->buf[1], i);
        memcpy(advert, o->channel_key, 32);
        memcpy(advert + 32, o->mask_key, 32);
        memcpy(advert + 64, o->advert_signature, 64);
        advert += FKT_SA_ADVERT;
    }
    memcpy(a->buf[0], a->v, 32);
    a->m.neighbours.scalar = (struct fkt_sa_bytes){a->buf[0], sparse ? 32 : 0};
    a->m.neighbours.present = (struct fkt_sa_bytes){a->buf[1], 1};
    a->m.neighbours.adverts = (struct fkt_sa_bytes){a->buf[2], (size_t)(advert - a->buf[2])};
}

void alone_seal_keys(const struct alone *a, uint32_t other, uint8_t from_other[32], uint8_t to_other[32])
{
    CHECK_OK(fkt_sa_seal_keys(from_other, to_other, a->other[other].channel, a->client->channel_key, a->session,
                              a->seed, other, ALONE_SITE));
}

static void make_deliver(struct alone *a)
{
    uint8_t *sealed = a->buf[1], key[32], back[32];
    for (uint32_t j = 0; j < a->p.sites; j++)
        if (j != a->neighbour[a->never_came] && j != a->neighbour[a->never_shared]) fkt_bitmap_set(a->buf[0], j);
    for (uint32_t i = 0; i < a->p.degree; i++) {
        if (!alone_is_peer(a, i)) continue;
        alone_seal_keys(a, a->neighbour[i], key, back);
        fkt_seal(sealed, a->other[a->neighbour[i]].plain, 64, key);
        sealed += FKT_SA_SEALED;
    }
    memcpy(a->delivered, a->buf[0], 2);
    a->m.deliver.delivered = (struct fkt_sa_bytes){a->buf[0], fkt_bitmap_bytes(a->p.sites)};
    a->m.deliver.sealed = (struct fkt_sa_bytes){a->buf[1], (size_t)(sealed - a->buf[1])};
}

static void make_survivors(struct alone *a)
{
    for (uint32_t j = 0; j < a->p.sites; j++)
        if (j != a->neighbour[a->never_came] && j != a->neighbour[a->never_shared] && j != a->neighbour[a->lost])
            fkt_bitmap_set(a->buf[0], j);
    memcpy(a->survivors, a->buf[0], 2);
    a->m.survivors.survivors = (struct fkt_sa_bytes){a->buf[0], fkt_bitmap_bytes(a->p.sites)};
}

void alone_confirm(struct alone *a, uint32_t places)
{
    uint8_t *signature = a->buf[1], hash[32];
    memset(a->buf, 0, sizeof a->buf);
    fkt_sa_confirm_hash(hash, a->session, a->seed, a->survivors, fkt_bitmap_bytes(a->p.sites));
    for (uint32_t i = 0; i < a->witnesses; i++) {
        if (!(places >> i & 1)) continue;
        fkt_bitmap_set(a->buf[0], i);
        fkt_sign(signature, hash, 32, a->other[a->witness[i]].sign);
        signature += 64;
    }
    a->m.confirmed.present = (struct fkt_sa_bytes){a->buf[0], 1};
    a->m.confirmed.signatures = (struct fkt_sa_bytes){a->buf[1], (size_t)(signature - a->buf[1])};
}

/* All that can. */
static void make_confirmed(struct alone *a)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < a->witnesses; i++)
        if (fkt_bitmap_get(a->survivors, a->witness[i])) places |= 1U << i;
    alone_confirm(a, places);
}

void alone_make(struct alone *a, enum fkt_sa_kind kind)
{
    memset(&a->m, 0, sizeof a->m);
    memset(a->buf, 0, sizeof a->buf);
    a->m.kind = kind;
    if (kind != FKT_SA_M_BEGIN) a->m.session = (struct fkt_sa_bytes){a->session, FKT_SA_SESSION};
    switch (kind) {
    case FKT_SA_M_BEGIN:
        a->m.begin.round = (struct fkt_sa_bytes){a->round, FKT_SA_ROUND};
        a->m.begin.task = (struct fkt_sa_bytes){memcpy(a->buf[0], a->p.task, 32), 32};
        return;
    case FKT_SA_M_COIN: make_coin(a); return;
    case FKT_SA_M_NEIGHBOURS: make_neighbours(a); return;
    case FKT_SA_M_DELIVER: make_deliver(a); return;
    case FKT_SA_M_SURVIVORS: make_survivors(a); return;
    case FKT_SA_M_CONFIRMED: make_confirmed(a); return;
    case FKT_SA_M_ABORTED: a->m.aborted.status = FKT_E_TOO_FEW; return;
    default: fail_msg("no message of the server");
    }
}

fkt_status alone_tell(struct alone *a)
{
    CHECK_OK(fkt_sa_msg_encode(&a->m, a->bytes, ALONE_CAP, &a->len));
    return fkt_sa_client_recv(a->client, a->bytes, a->len);
}

void alone_hear(struct alone *a)
{
    fkt_sa_msg_clear(&a->said);
    CHECK_OK(fkt_sa_client_send(a->client, a->heard, ALONE_CAP, &a->heard_len));
    assert_true(a->heard_len <= fkt_sa_to_server_max(&a->p));
    CHECK_OK(fkt_sa_msg_decode(&a->said, 1, a->heard, a->heard_len, fkt_sa_to_server_max(&a->p)));
    assert_int_equal(a->said.site, ALONE_SITE);
    assert_int_equal(a->said.session.n, FKT_SA_SESSION);
    assert_memory_equal(a->said.session.p, a->session, FKT_SA_SESSION);
    if (a->said.kind == FKT_SA_M_OPEN) CHECK_OK(fkt_scalar_random(a->r, &a->twin)); /* of the next throw */
}

enum fkt_sa_kind alone_next(const struct alone *a, enum fkt_sa_state state)
{
    switch (state) {
    case FKT_SA_STATE_BEGIN: return FKT_SA_M_BEGIN;
    case FKT_SA_STATE_ADVERTISE: return fkt_sa_complete(&a->p) ? FKT_SA_M_NEIGHBOURS : FKT_SA_M_COIN;
    case FKT_SA_STATE_COIN: return a->throws < 2 ? FKT_SA_M_COIN : FKT_SA_M_NEIGHBOURS;
    case FKT_SA_STATE_SHARE: return FKT_SA_M_DELIVER;
    case FKT_SA_STATE_MASK: return FKT_SA_M_SURVIVORS;
    case FKT_SA_STATE_CONFIRM: return FKT_SA_M_CONFIRMED;
    default: return FKT_SA_M_NONE;
    }
}

void alone_drive(struct alone *a, enum fkt_sa_state state)
{
    for (;;) {
        enum fkt_sa_state at = fkt_sa_client_state(a->client);
        enum fkt_sa_kind next = alone_next(a, at);
        if (at == state && (at != FKT_SA_STATE_COIN || next == FKT_SA_M_NEIGHBOURS)) return;
        if (next == FKT_SA_M_NONE) fail_msg("the site is in state '%s'", fkt_sa_state_name(at));
        alone_make(a, next);
        CHECK_OK(alone_tell(a));
        alone_hear(a);
    }
}
