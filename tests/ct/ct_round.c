/* SPDX-License-Identifier: Apache-2.0 */
/* ct_round.c - whole rounds (docs/protocol.md 3) with every secret of every site marked: all that it draws, its signing
 * key, its vector. What a site sends is public from there on, and so are the keys in it that the site keeps a copy of.
 * One site is lost after its shares came, so that both kinds of share are revealed.
 *
 * Two results are public, since the site visibly stops when they are no: whether an opened share is below l, and
 * whether the vector is in its range. The linker (--wrap) routes those calls through here. */
#include "crypto/entropy.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"
#include "fedkt/secagg.h"
#include "secagg/client.h"
#include "secagg/mask.h"
#include "tests/ct/ct.h"

#include <string.h>

enum { MOST = 8, LENGTH = 300, MESSAGE = 16384 };

int __real_fkt_scalar_ok(const uint8_t s[FKT_SCALAR_BYTES]);
int __wrap_fkt_scalar_ok(const uint8_t s[FKT_SCALAR_BYTES]);
int __wrap_fkt_scalar_ok(const uint8_t s[FKT_SCALAR_BYTES])
{
    int ok = __real_fkt_scalar_ok(s);
    PUBLIC(&ok, sizeof ok);
    return ok;
}

int __real_fkt_sa_in_range(const int64_t *x, uint32_t length, uint64_t bound);
int __wrap_fkt_sa_in_range(const int64_t *x, uint32_t length, uint64_t bound);
int __wrap_fkt_sa_in_range(const int64_t *x, uint32_t length, uint64_t bound)
{
    int ok = __real_fkt_sa_in_range(x, length, bound);
    PUBLIC(&ok, sizeof ok);
    return ok;
}

struct party {
    struct fkt_sa_client *client;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_sa_site doors;
    int64_t x[LENGTH];
    int lost;
};

struct round {
    struct fkt_sa_params p;
    uint8_t roster[MOST][FKT_SA_KEY];
    struct party party[MOST];
    struct fkt_sa_server *server;
};

static fkt_status ledger(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    const struct party *party = self;
    memcpy(x, party->x, length * sizeof *x);
    SECRET(x, length * sizeof *x);
    return FKT_OK;
}

static int begin(struct round *r)
{
    static const uint8_t name[FKT_SA_ROUND] = {3};
    uint8_t secret[MOST][FKT_SA_SECRET], seed[FKT_SIGN_SEED] = {0};
    for (uint32_t i = 0; i < r->p.sites; i++) {
        seed[0] = (uint8_t)i;
        fkt_sign_keypair(r->roster[i], secret[i], seed);
    }
    r->p.roster = r->roster[0];
    for (uint32_t i = 0; i < r->p.sites; i++) {
        struct party *party = &r->party[i];
        for (int64_t k = 0; k < LENGTH; k++) party->x[k] = (k - 150) * (i + 1);
        fkt_entropy_seeded_init(&party->seeded, 4, i);
        party->entropy = (struct fkt_entropy){ct_fill, &party->seeded, 0};
        party->doors = (struct fkt_sa_site){ledger, vector, ledger, party};
        CT_CHECK(fkt_sa_client_new(&party->client, &r->p, i, secret[i], &party->doors, &party->entropy) == FKT_OK);
        SECRET(party->client->secret.sign, sizeof party->client->secret.sign);
    }
    CT_CHECK(fkt_sa_server_new(&r->server, &r->p, name, 0) == FKT_OK);
    return 0;
}

/* The site's answer, if it has one; *said counts it. The site that is to be lost does not send its vector. */
static int answer(struct round *r, uint32_t i, uint32_t lost, int *said)
{
    static uint8_t message[MESSAGE];
    struct fkt_sa_client *c = r->party[i].client;
    enum fkt_sa_state state = fkt_sa_client_state(c);
    size_t len;
    if (r->party[i].lost || fkt_sa_client_wants(c) != FKT_SA_SEND) return 0;
    CT_CHECK(fkt_sa_client_send(c, message, sizeof message, &len) == FKT_OK);
    CT_CHECK(ct_marked(message, len) >= 32);
    PUBLIC(message, len);
    PUBLIC(c->channel_key, sizeof c->channel_key);
    PUBLIC(c->mask_key, sizeof c->mask_key);
    PUBLIC(c->commitment, sizeof c->commitment);
    *said = 1;
    if (i == lost && state == FKT_SA_STATE_MASK) r->party[i].lost = 1;
    else CT_CHECK(fkt_sa_server_recv(r->server, i, message, len) == FKT_OK);
    return 0;
}

static int converse(struct round *r, uint32_t lost)
{
    static uint8_t message[MESSAGE];
    enum fkt_sa_state state;
    CT_CHECK(fkt_sa_to_server_max(&r->p) <= MESSAGE && fkt_sa_to_site_max(&r->p) <= MESSAGE);
    while ((state = fkt_sa_server_state(r->server)) != FKT_SA_STATE_UNMASK && state != FKT_SA_STATE_FAILED) {
        uint32_t to;
        size_t len;
        int said = 0;
        for (;;) {
            CT_CHECK(fkt_sa_server_next(r->server, &to, message, sizeof message, &len) == FKT_OK);
            if (len == 0) break;
            if (!r->party[to].lost) CT_CHECK(fkt_sa_client_recv(r->party[to].client, message, len) == FKT_OK);
            said = 1;
        }
        for (uint32_t i = 0; i < r->p.sites; i++) CT_CHECK(answer(r, i, lost, &said) == 0);
        if (!said) CT_CHECK(fkt_sa_server_close(r->server) == FKT_OK);
    }
    CT_CHECK(state == FKT_SA_STATE_UNMASK);
    return 0;
}

static int whole_round(struct fkt_sa_params p, uint32_t lost)
{
    static struct round r;
    const int64_t *total;
    const uint8_t *survivors;
    memset(&r, 0, sizeof r);
    r.p = p;
    CT_CHECK(begin(&r) == 0 && converse(&r, lost) == 0);
    CT_CHECK(fkt_sa_server_unmask(r.server) == FKT_OK);
    CT_CHECK(fkt_sa_server_total(r.server, &total, &survivors) == FKT_OK);
    for (size_t k = 0; k < LENGTH; k++) {
        int64_t want = 0;
        for (uint32_t i = 0; i < p.sites; i++) want += i == lost ? 0 : r.party[i].x[k];
        CT_CHECK(total[k] == want);
    }
    for (uint32_t i = 0; i < p.sites; i++) {
        CT_CHECK(survivors[i] == (i != lost));
        fkt_sa_client_free(r.party[i].client);
    }
    fkt_sa_server_free(r.server);
    return 0;
}

static int complete_graph(void)
{
    return whole_round((struct fkt_sa_params){.sites = 5,
                                              .dropped = 1,
                                              .corrupt = 1,
                                              .degree = 4,
                                              .threshold = 3,
                                              .attempts = 1,
                                              .bits = 24,
                                              .length = LENGTH,
                                              .bound = 1000,
                                              .keystream = FKT_SA_KEYSTREAM_AES_256_CTR},
                       2);
}

static int sparse_graph(void)
{
    return whole_round((struct fkt_sa_params){.sites = 7,
                                              .dropped = 1,
                                              .corrupt = 1,
                                              .degree = 4,
                                              .threshold = 3,
                                              .attempts = 2,
                                              .bits = 45,
                                              .length = LENGTH,
                                              .bound = 2000,
                                              .keystream = FKT_SA_KEYSTREAM_CHACHA20},
                       4);
}

int main(void)
{
    static const struct ct_case cases[] = {{"complete graph", complete_graph}, {"sparse graph", sparse_graph}};
    return ct_main(cases, sizeof cases / sizeof cases[0]);
}
