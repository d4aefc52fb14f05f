/* SPDX-License-Identifier: Apache-2.0 */
/* contribution_messages.c - the messages that a site would send in a round, for a dry run. Their lengths follow from
 * the task alone (docs/protocol.md 3) and are the same for every site. */
#include "pipeline/contribution.h"

#include "secagg/msg.h"
#include "secagg/share.h"

static struct fkt_sa_bytes of(size_t n) { return (struct fkt_sa_bytes){NULL, n}; } /* a length, and nothing to read */

static size_t bytes(struct fkt_sa_msg m, const struct fkt_sa_params *p)
{
    m.session = of(FKT_SA_SESSION);
    m.site = p->sites - 1; /* the longest number */
    return fkt_sa_msg_bytes(&m);
}

size_t fkt_contribution_messages(struct fkt_contribution_message out[FKT_CONTRIBUTION_MESSAGES],
                                 const struct fkt_sa_params *p)
{
    const int sparse = !fkt_sa_complete(p);
    const size_t peers = p->degree;
    size_t n = 0;
    out[n++] = (struct fkt_contribution_message){
        "advertise", "two public keys for this round, signed",
        bytes(
            (struct fkt_sa_msg){.kind = FKT_SA_M_ADVERTISE, .advertise = {of(32), of(32), of(sparse ? 32 : 0), of(64)}},
            p)};
    if (sparse)
        out[n++] = (struct fkt_contribution_message){
            "open", "this site's part of a coin that draws who is whose neighbour; once for each throw",
            bytes((struct fkt_sa_msg){.kind = FKT_SA_M_OPEN, .open = {p->attempts, of(32), of(32)}}, p)};
    out[n++] = (struct fkt_contribution_message){
        "shares", "for each neighbour two pieces of this site's secrets, sealed so that it alone can open them",
        bytes((struct fkt_sa_msg){.kind = FKT_SA_M_SHARES, .shares = {of(peers * FKT_SA_SEALED), of(32)}}, p)};
    out[n++] = (struct fkt_contribution_message){
        "masked",
        "sums over this site's records under masks, for every class of the task, with zeros where it has none",
        bytes((struct fkt_sa_msg){.kind = FKT_SA_M_MASKED, .masked = {of(fkt_sa_packed(p->length, p->bits))}}, p)};
    out[n++] =
        (struct fkt_contribution_message){"confirm", "a signature under the list of sites whose sums came in",
                                          bytes((struct fkt_sa_msg){.kind = FKT_SA_M_CONFIRM, .confirm = {of(64)}}, p)};
    out[n++] = (struct fkt_contribution_message){
        "reveal", "for each neighbour one of the two pieces that it gave, so that the masks come off the total",
        bytes((struct fkt_sa_msg){.kind = FKT_SA_M_REVEAL, .reveal = {of(peers * FKT_SA_SHARE_BYTES)}}, p)};
    return n;
}
