/* SPDX-License-Identifier: Apache-2.0 */
/* sa_attack.c - scripts of a lying server and of colluding sites, on a watched world. */
#include "tests/support/sa_attack.h"

#include "crypto/seal.h"
#include "crypto/sign.h"
#include "secagg/coin.h"

struct fkt_sa_params sa_small(void) { return sa_params(6, 1, 1, 0, 4, 5, 16); }

struct fkt_sa_params sa_ring(void)
{
    struct fkt_sa_params p = sa_params(12, 2, 1, 6, 4, 5, 16);
    p.attempts = 3;
    return p;
}

/* ---- the tape ---- */

static void tape_message(struct sa_tape *t, const struct sa_message *l)
{
    struct sa_taped *at = &t->of[l->site * SA_KINDS + l->kind];
    free(at->p);
    at->p = malloc(l->len + 1);
    assert_non_null(at->p);
    memcpy(at->p, l->bytes, l->len);
    at->n = l->len;
}

const struct sa_taped *sa_taped(const struct sa_tape *t, uint32_t site, enum fkt_sa_kind kind)
{
    return &t->of[site * SA_KINDS + kind];
}

void sa_recall(const struct sa_attack *a, const struct sa_tape *t, uint32_t site, enum fkt_sa_kind kind,
               struct fkt_sa_msg *m)
{
    const struct sa_taped *at = sa_taped(t, site, kind);
    const int to_server = kind < FKT_SA_M_BEGIN;
    const size_t max = to_server ? fkt_sa_to_server_max(&a->w.params) : fkt_sa_to_site_max(&a->w.params);
    CHECK(at->p != NULL);
    CHECK_OK(fkt_sa_msg_decode(m, to_server, at->p, at->n, max));
}

/* ---- the bending ---- */

void sa_encode(struct sa_message *l, const struct fkt_sa_msg *m)
{
    CHECK_OK(fkt_sa_msg_encode(m, l->bytes, l->cap, &l->len));
}

static int is_meant(const struct sa_attack *a, const struct sa_message *l)
{
    if (!a->bend || l->kind != a->kind || (!a->every && a->struck)) return 0;
    if (a->every) return 1;
    return l->to_server ? a->of_malicious && l->site == a->malicious : !a->of_malicious && l->site == a->victim;
}

static unsigned said_by(const struct sa_attack *a, uint32_t site)
{
    unsigned n = 0;
    for (int k = 0; k < FKT_SA_M_LEAVE; k++) n += a->v.site[site].said[k];
    return n;
}

static void on_message(void *self, struct sa_world *w, struct sa_message *l)
{
    struct sa_attack *a = self;
    const size_t max = l->to_server ? fkt_sa_to_server_max(&w->params) : fkt_sa_to_site_max(&w->params);
    struct fkt_sa_msg m = {0};
    if (l->kind != FKT_SA_M_NONE) tape_message(&a->tape, l);
    if (a->mute && !l->to_server && l->kind >= a->mute) l->copies = 0;
    if (!is_meant(a, l)) return;
    CHECK_OK(fkt_sa_msg_decode(&m, l->to_server, l->bytes, l->len, max));
    if (!a->struck++) a->said = said_by(a, a->victim);
    a->bend(a, l, &m);
    if (m.kind != FKT_SA_M_NONE) sa_encode(l, &m);
    fkt_sa_msg_clear(&m);
}

static uint8_t *keep(struct sa_attack *a, size_t n)
{
    uint8_t *p = calloc(n + 1, 1);
    assert_non_null(p);
    assert_true(a->n_scratch < sizeof a->scratch / sizeof a->scratch[0]);
    a->scratch[a->n_scratch++] = p;
    return p;
}

uint8_t *sa_resize(struct sa_attack *a, struct fkt_sa_bytes *field, size_t n)
{
    uint8_t *p = keep(a, n);
    if (field->n) memcpy(p, field->p, n < field->n ? n : field->n);
    *field = (struct fkt_sa_bytes){p, n};
    return p;
}

uint8_t *sa_edit(struct sa_attack *a, struct fkt_sa_bytes *field) { return sa_resize(a, field, field->n); }

void sa_session(const struct sa_attack *a, uint8_t session[FKT_SA_SESSION])
{
    fkt_sa_session(session, &a->w.params, a->w.round);
}

void sa_post(struct sa_attack *a, uint32_t site, struct fkt_sa_msg *m)
{
    const size_t cap = 2 * fkt_sa_to_site_max(&a->w.params) + 256;
    uint8_t session[FKT_SA_SESSION], *bytes = malloc(cap);
    size_t len = 0;
    assert_non_null(bytes);
    sa_session(a, session);
    if (m->kind != FKT_SA_M_BEGIN) m->session = (struct fkt_sa_bytes){session, sizeof session};
    CHECK_OK(fkt_sa_msg_encode(m, bytes, cap, &len));
    sa_world_post(&a->w, site, 0, bytes, len);
    free(bytes);
}

void sa_drain(struct sa_attack *a)
{
    sa_world_pump(&a->w);
    while (a->w.on_wire) sa_world_step(&a->w);
}

void sa_advert(const struct sa_attack *a, uint32_t site, const uint8_t secret[FKT_SA_SECRET], const uint8_t channel[32],
               const uint8_t mask[32], uint8_t advert[FKT_SA_ADVERT])
{
    uint8_t session[FKT_SA_SESSION], hash[32];
    sa_session(a, session);
    fkt_sa_advert_hash(hash, session, site, channel, mask);
    memcpy(advert, channel, 32);
    memcpy(advert + 32, mask, 32);
    fkt_sign(advert + 64, hash, sizeof hash, secret);
}

/* ---- life ---- */

static unsigned open_attacks; /* several may run side by side; when the last is released, all memory must be back */
static size_t live_before;

void sa_attack_init(struct sa_attack *a, struct fkt_sa_params p, uint64_t seed)
{
    if (open_attacks++ == 0) live_before = fkt_alloc_live();
    *a = (struct sa_attack){.victim = 2, .malicious = 4};
    a->tape.sites = p.sites;
    a->tape.of = calloc((size_t)p.sites * SA_KINDS, sizeof *a->tape.of);
    assert_non_null(a->tape.of);
    CHECK_OK(sa_world_init(&a->w, &p, seed));
    a->w.hook = on_message;
    a->w.self = a;
    assert_int_equal(sa_watch_init(&a->v, &a->w), 0);
}

void sa_attack_next_round(struct sa_attack *a, uint8_t name)
{
    a->w.round[0] ^= name;
    fkt_sa_server_free(a->w.server);
    a->w.server = NULL;
    CHECK_OK(fkt_sa_server_new(&a->w.server, &a->w.params, a->w.round, 0));
    for (uint32_t i = 0; i < a->w.params.sites; i++)
        fkt_entropy_seeded_init(&a->w.site[i].seeded, a->w.seed ^ name, 1000 + i);
}

fkt_status sa_attack_run(struct sa_attack *a)
{
    fkt_status st = sa_world_run(&a->w);
    sa_world_finish_wire(&a->w);
    if (st == FKT_OK && (a->of_malicious || !a->bend)) sa_world_check(&a->w); /* a server that lies may fool itself */
    return st;
}

void sa_attack_site_stopped(struct sa_attack *a, uint32_t site, fkt_status status)
{
    const struct sa_site *s = &a->w.site[site];
    struct fkt_sa_msg m = {0};
    if (a->v.broken[0]) fail_msg("%s", a->v.broken);
    if (fkt_sa_client_state(s->client) != FKT_SA_STATE_FAILED)
        fail_msg("site %u is in state '%s' and did not stop", site, fkt_sa_state_name(fkt_sa_client_state(s->client)));
    if (s->status != status)
        fail_msg("site %u stopped with '%s', not with '%s'", site, fkt_status_name(s->status), fkt_status_name(status));
    if (!a->v.site[site].said[FKT_SA_M_ADVERTISE]) return; /* it never joined: it does not even leave */
    sa_recall(a, &a->tape, site, FKT_SA_M_LEAVE, &m);
    /* of what is wrong at home no word: those statuses are below or above the peers' */
    assert_int_equal(m.leave.status, status >= FKT_E_PEER_FORMAT && status <= FKT_E_TOO_FEW ? status : FKT_E_STOPPED);
    fkt_sa_msg_clear(&m);
}

void sa_attack_stopped(struct sa_attack *a, fkt_status status)
{
    CHECK(a->struck > 0);
    sa_attack_site_stopped(a, a->victim, status);
    assert_int_equal(said_by(a, a->victim), a->said + a->may_say);
}

void sa_attack_honest_spent(const struct sa_attack *a)
{
    for (uint32_t i = 0; i < a->w.params.sites; i++) {
        if (i == a->malicious) continue;
        assert_int_equal(a->w.site[i].spent, 1);
        CHECK(fkt_sa_client_state(a->w.site[i].client) == FKT_SA_STATE_DONE);
    }
}

void sa_attack_release(struct sa_attack *a)
{
    if (a->v.broken[0]) fail_msg("%s", a->v.broken);
    sa_watch_release(&a->v);
    sa_world_release(&a->w);
    for (size_t i = 0; i < a->n_scratch; i++) free(a->scratch[i]);
    for (size_t i = 0; i < (size_t)a->tape.sites * SA_KINDS; i++) free(a->tape.of[i].p);
    free(a->tape.of);
    if (--open_attacks == 0) assert_int_equal(fkt_alloc_live(), live_before);
}

void sa_attack_simple(struct fkt_sa_params p, enum fkt_sa_kind kind, sa_bender bend, unsigned variant,
                      fkt_status status)
{
    struct sa_attack a;
    sa_attack_init(&a, p, 100 + variant);
    a.kind = kind;
    a.bend = bend;
    a.variant = variant;
    (void)sa_attack_run(&a);
    sa_attack_stopped(&a, status);
    sa_attack_release(&a);
}

void sa_seal_as_liar(const struct sa_attack *a, uint32_t to, const uint8_t plain[64], uint8_t box[FKT_SA_SEALED])
{
    uint8_t session[32], seed[32], key[32], back[32];
    struct fkt_sa_msg advert = {0};
    sa_session(a, session);
    CHECK_OK(fkt_sa_coin_seed(seed, session, NULL, NULL));
    sa_recall(a, &a->tape, to, FKT_SA_M_ADVERTISE, &advert);
    CHECK_OK(fkt_sa_seal_keys(key, back, a->v.site[a->malicious].drawn, advert.advertise.channel_key.p, session, seed,
                              a->malicious, to));
    fkt_seal(box, plain, 64, key);
    fkt_sa_msg_clear(&advert);
}
