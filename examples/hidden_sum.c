/* SPDX-License-Identifier: Apache-2.0 */
/* hidden_sum.c - five sites add up three numbers each, and nobody sees anybody's: secure aggregation in one page.
 *
 *   Begin -> Advertise -> Neighbours -> Shares -> Deliver -> Masked -> Survivors -> Confirm -> Confirmed -> Reveal
 *
 * Here one process plays all parts and a message is a buffer that changes hands; in life each site runs its own machine
 * and the messages travel. Site 3 is lost after it has given out its shares: the sum is that of the other four. A site
 * of your own asks a real ledger where `agree` says yes to everything, and adds its share of noise in `numbers`
 * (fkt_privacy_share), so that the sum itself protects the records behind it. Build it against an installed library:
 *   cc hidden_sum.c $(pkg-config --cflags --libs fedkt) */
#include "fedkt/advanced/secagg.h"
#include "fedkt/fedkt.h"

#include <stdio.h>
#include <string.h>

enum { SITES = 5, LENGTH = 3, LOST = 3 };

static const int64_t holds[SITES][LENGTH] = {{1, 10, -100}, {2, 20, -200}, {3, 30, -300}, {4, 40, -400}, {5, 50, -500}};

static fkt_status agree(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status numbers(void *self, int64_t *x, uint32_t length)
{
    memcpy(x, self, length * sizeof *x);
    return FKT_OK;
}

/* Carries messages until the server has nothing more to say, then tells it not to wait any longer for the lost. */
static fkt_status carry(struct fkt_sa_server *server, struct fkt_sa_client **site, uint8_t *buf, size_t cap)
{
    fkt_status st = FKT_OK;
    while (st == FKT_OK && fkt_sa_server_state(server) < FKT_SA_STATE_UNMASK) {
        uint32_t to = 0;
        size_t len = 0;
        st = fkt_sa_server_next(server, &to, buf, cap, &len);
        if (st == FKT_OK && len == 0) {
            st = fkt_sa_server_close(server);
            continue;
        }
        if (st == FKT_OK) st = fkt_sa_client_recv(site[to], buf, len);
        if (to == LOST && fkt_sa_client_state(site[to]) == FKT_SA_STATE_MASK) continue; /* its vector never arrives */
        if (st == FKT_OK) st = fkt_sa_client_send(site[to], buf, cap, &len);
        if (st == FKT_OK) st = fkt_sa_server_recv(server, to, buf, len);
    }
    return st;
}

int main(void)
{
    uint8_t roster[SITES][FKT_SA_KEY], secret[SITES][FKT_SA_SECRET], buf[4096];
    struct fkt_sa_params p = {.sites = SITES,
                              .dropped = 1,
                              .corrupt = 1,
                              .attempts = 1,
                              .length = LENGTH,
                              .bound = 1000,
                              .roster = &roster[0][0]};
    const uint8_t round[FKT_SA_ROUND] = "the first round";
    struct fkt_sa_client *site[SITES] = {0};
    struct fkt_sa_site brings[SITES];
    struct fkt_sa_server *server = NULL;
    const int64_t *total = NULL;
    const uint8_t *survivors = NULL;
    int64_t own[SITES][LENGTH];
    fkt_status st = fkt_sa_find(p.sites, p.corrupt, p.dropped, 40, 20, &p.degree, &p.threshold);

    memcpy(own, holds, sizeof own);
    p.bits = fkt_sa_bits(p.sites, p.bound);
    for (int i = 0; i < SITES && st == FKT_OK; i++) st = fkt_sa_identity(roster[i], secret[i], NULL);
    for (uint32_t i = 0; i < SITES && st == FKT_OK; i++) {
        brings[i] = (struct fkt_sa_site){agree, numbers, agree, own[i]};
        st = fkt_sa_client_new(&site[i], &p, i, secret[i], &brings[i], NULL);
    }
    if (st == FKT_OK) st = fkt_sa_server_new(&server, &p, round, 0);
    if (st == FKT_OK) st = carry(server, site, buf, sizeof buf);
    if (st == FKT_OK) st = fkt_sa_server_unmask(server);
    if (st == FKT_OK) st = fkt_sa_server_total(server, &total, &survivors);
    if (st == FKT_OK) {
        printf("sum over the sites");
        for (int i = 0; i < SITES; i++)
            if (survivors[i]) printf(" %d", i);
        printf(": %lld %lld %lld\n", (long long)total[0], (long long)total[1], (long long)total[2]);
        if (total[0] != 11 || total[1] != 110 || total[2] != -1100) st = FKT_E_NUMERIC;
    } else {
        fprintf(stderr, "%s\n", fkt_error_text());
    }
    for (int i = 0; i < SITES; i++) fkt_sa_client_free(site[i]);
    fkt_sa_server_free(server);
    return st == FKT_OK ? 0 : 1;
}
