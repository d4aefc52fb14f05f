/* SPDX-License-Identifier: Apache-2.0 */
/* client_join.c - a site joins a round: its signed keys, then its part of the coin (docs/protocol.md 3.1, 4).
 *
 * Entropy is drawn in the order that the document gives, since test vectors depend on it: c, s, u, r at Begin, and a
 * fresh r at each throw. An opened r is public; it is replaced at once by the one for the next throw. */
#include "secagg/client.h"
#include "secagg/coin.h"

#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/group.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"

#include <string.h>

fkt_status fkt_sa_identity(uint8_t key[FKT_SA_KEY], uint8_t secret[FKT_SA_SECRET], struct fkt_entropy *entropy)
{
    struct fkt_entropy os;
    uint8_t seed[FKT_SIGN_SEED];
    fkt_status st;
    fkt_entropy_os(&os);
    if (!entropy) entropy = &os;
    FKT_TRY(entropy->fill(entropy->self, seed, sizeof seed));
    fkt_sign_keypair(key, secret, seed);
out:
    fkt_wipe(seed, sizeof seed);
    return st;
}

static fkt_status draw_coin(struct fkt_sa_client *c)
{
    fkt_status st;
    FKT_TRY(fkt_scalar_random(c->secret.coin, c->entropy));
    FKT_TRY(fkt_point_base(c->commitment, c->secret.coin));
out:
    return st;
}

static fkt_status draw_keys(struct fkt_sa_client *c)
{
    uint8_t mask_secret[32];
    fkt_status st;
    FKT_TRY(c->entropy->fill(c->entropy->self, c->secret.channel, sizeof c->secret.channel));
    FKT_TRY(fkt_scalar_random(c->secret.mask_seed, c->entropy));
    FKT_TRY(fkt_scalar_random(c->secret.self_seed, c->entropy));
    if (!fkt_sa_complete(&c->p)) FKT_TRY(draw_coin(c));
    fkt_sa_mask_secret(mask_secret, c->secret.mask_seed, c->session, c->index);
    fkt_agree_public(c->channel_key, c->secret.channel);
    fkt_agree_public(c->mask_key, mask_secret);
    fkt_wipe(mask_secret, sizeof mask_secret);
out:
    return st;
}

fkt_status fkt_sa_client_begin(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    struct fkt_sa_msg answer = {.kind = FKT_SA_M_ADVERTISE};
    uint8_t hash[32], signature[FKT_SIGN_BYTES];
    fkt_status st;
    if (m->session.n != 0 || m->begin.round.n != FKT_SA_ROUND || m->begin.task.n != sizeof c->p.task)
        return fkt_fail(FKT_E_PEER_FORMAT, "'begin' has a session, or a round or task hash of another length");
    if (!fkt_same(m->begin.task.p, c->p.task, sizeof c->p.task))
        return fkt_fail_hint(FKT_E_PEER_AUTH, "compare your copy of the task with the one that the server uses",
                             "the server's task is not this site's task");
    fkt_sa_session(c->session, &c->p, m->begin.round.p);
    c->has_session = 1;
    FKT_TRY(draw_keys(c));
    fkt_sa_advert_hash(hash, c->session, c->index, c->channel_key, c->mask_key);
    fkt_sign(signature, hash, sizeof hash, c->secret.sign);
    answer.advertise.channel_key = (struct fkt_sa_bytes){c->channel_key, 32};
    answer.advertise.mask_key = (struct fkt_sa_bytes){c->mask_key, 32};
    answer.advertise.coin = (struct fkt_sa_bytes){c->commitment, fkt_sa_complete(&c->p) ? 0 : 32};
    answer.advertise.signature = (struct fkt_sa_bytes){signature, sizeof signature};
    FKT_TRY(fkt_sa_client_queue(c, &answer));
out:
    return st;
}

fkt_status fkt_sa_client_coin(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    const struct fkt_sa_leaf own = {c->index, c->channel_key, c->mask_key, c->commitment};
    struct fkt_sa_msg answer = {.kind = FKT_SA_M_OPEN};
    uint8_t opened[32] = {0};
    fkt_status st;
    if (m->coin.attempt != c->throws + 1 || m->coin.attempt > c->p.attempts)
        return fkt_fail(FKT_E_PEER_FORMAT, "throw %u of the coin comes after %u, and at most %u are allowed",
                        m->coin.attempt, c->throws, c->p.attempts);
    if (m->coin.leaves > c->p.sites)
        return fkt_fail(FKT_E_PEER_FORMAT, "the coin has %u leaves for %u sites", m->coin.leaves, c->p.sites);
    FKT_TRY(fkt_sa_coin_climb(c->root, c->session, m->coin.attempt, &own, m->coin.leaves, m->coin.position,
                              m->coin.path.p, m->coin.path.n));
    c->throws = m->coin.attempt;
    memcpy(opened, c->secret.coin, sizeof opened);
    FKT_TRY(draw_coin(c));
    answer.open.attempt = c->throws;
    answer.open.scalar = (struct fkt_sa_bytes){opened, sizeof opened};
    answer.open.next_coin = (struct fkt_sa_bytes){c->commitment, sizeof c->commitment};
    FKT_TRY(fkt_sa_client_queue(c, &answer));
out:
    fkt_wipe(opened, sizeof opened);
    return st;
}
