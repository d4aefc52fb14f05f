/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - every key, commitment and signed hash of the protocol, each in one place for site and server
 * (docs/protocol.md 3). */
#ifndef FKT_SECAGG_SHARE_H
#define FKT_SECAGG_SHARE_H

#include "secagg/params.h"

#define FKT_SA_ADVERT 128 /* channel key, mask key, signature */
#define FKT_SA_SEALED 80
#define FKT_SA_SHARE_BYTES 32

void fkt_sa_mask_secret(uint8_t sk[32], const uint8_t mask_seed[32], const uint8_t session[FKT_SA_SESSION],
                        uint32_t site);
void fkt_sa_advert_hash(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], uint32_t site,
                        const uint8_t channel_key[32], const uint8_t mask_key[32]);
void fkt_sa_confirm_hash(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32],
                         const uint8_t *survivors, size_t bytes);
void fkt_sa_delivered_hash(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32],
                           const uint8_t *delivered, size_t bytes);
/* The key of the stream between two sites that were both sent this list of delivered sites. */
void fkt_sa_stream_key(uint8_t out[32], const uint8_t pair_key[32], const uint8_t delivered_hash[32]);
void fkt_sa_self_commitment(uint8_t out[32], const uint8_t session[FKT_SA_SESSION], uint32_t site,
                            const uint8_t self_seed[32]);
void fkt_sa_self_key(uint8_t out[32], const uint8_t self_seed[32], const uint8_t session[FKT_SA_SESSION],
                     uint32_t site);
/* Both return FKT_E_PEER_AUTH, naming `peer`, when its key is of low order or not canonical. One agreement gives the
 * seal keys of both directions. */
FKT_MUST_USE fkt_status fkt_sa_pair_key(uint8_t out[32], const uint8_t mask_secret[32], const uint8_t peer_key[32],
                                        const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32], uint32_t site,
                                        uint32_t peer);
FKT_MUST_USE fkt_status fkt_sa_seal_keys(uint8_t to_peer[32], uint8_t from_peer[32], const uint8_t channel_secret[32],
                                         const uint8_t peer_key[32], const uint8_t session[FKT_SA_SESSION],
                                         const uint8_t seed[32], uint32_t site, uint32_t peer);

#endif
