/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sa_to_server.c - what a site sends: the decoder, and the server in each of its phases, when all the other sites
 * are honest. fuzz_sa.h draws the input.
 *
 * Whatever one site says, the server ends; and when it ends with a total, that is the honest one, less the site or with
 * the vector that it sent. In the last phase one malicious site among four cannot even stop the round. */
#include "fedkt/advanced/secagg.h"

#include "fuzz_sa.h"

static void feed(const struct fuzz_sa_world *f, struct fkt_sa_server *s, uint32_t site, int phase)
{
    const enum fkt_sa_kind kind = fuzz_sa_up[phase];
    fkt_status st = fkt_sa_server_recv(s, site, f->tape[site][kind].p, f->tape[site][kind].n);
    FUZZ_CHECK(st == FKT_OK || fkt_error_text()[0] != '\0');
}

static void hear_out(const struct fuzz_sa_world *f, struct fkt_sa_server *s)
{
    uint8_t out[FUZZ_SA_ROOM];
    uint32_t to;
    size_t len;
    do {
        FUZZ_CHECK(fkt_sa_server_next(s, &to, out, sizeof out, &len) == FKT_OK);
        FUZZ_CHECK(len <= fkt_sa_to_site_max(&f->p));
        if (len) fuzz_sa_decode(f, 0, out, len);
    } while (len);
}

static int open_phase(const struct fkt_sa_server *s)
{
    const enum fkt_sa_state state = fkt_sa_server_state(s);
    return state != FKT_SA_STATE_UNMASK && state != FKT_SA_STATE_DONE && state != FKT_SA_STATE_FAILED;
}

/* The total, unless the malicious site's own vector is in it: then it cannot be checked. */
static void check_total(const struct fuzz_sa_world *f, const struct fkt_sa_server *s, uint32_t malicious,
                        int its_vector)
{
    const int64_t *total;
    const uint8_t *survivors;
    FUZZ_CHECK(fkt_sa_server_total(s, &total, &survivors) == FKT_OK);
    for (uint32_t k = 0; k < f->p.length; k++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < f->p.sites; i++) sum += survivors[i] ? f->x[i][k] : 0;
        FUZZ_CHECK(total[k] == sum || (its_vector && survivors[malicious]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int sparse = size && data[0] >> 3 & 1;
    const struct fuzz_sa_world *f = fuzz_sa_world(sparse);
    const uint32_t malicious = size ? (data[0] >> 4 & 7U) % f->p.sites : 0;
    int phase = size ? (data[0] & 7) % FUZZ_SA_PHASES : 0, its_vector;
    uint8_t msg[2 * FUZZ_SA_ROOM];
    struct fkt_sa_server *s = NULL;
    size_t len;
    fkt_status st;
    if (phase == FUZZ_SA_COIN && !sparse) phase = 0;
    len = fuzz_sa_message(f, malicious, fuzz_sa_up[phase], data, size, msg, sizeof msg);
    fuzz_sa_decode(f, 1, msg, len);
    FUZZ_CHECK(fkt_sa_server_new(&s, &f->p, f->round, 0) == FKT_OK);
    for (int k = 0; k < FUZZ_SA_PHASES; k++) {
        if (k == FUZZ_SA_COIN && !sparse) continue;
        hear_out(f, s);
        for (uint32_t i = 0; i < f->p.sites; i++)
            if (i != malicious || k != phase) feed(f, s, i, k);
        if (k != phase) continue;
        st = fkt_sa_server_recv(s, malicious, msg, len);
        FUZZ_CHECK(st == FKT_OK || fkt_error_text()[0] != '\0');
    }
    for (int n = 0; open_phase(s); n++) { /* sites that waited for the malicious one */
        st = fkt_sa_server_close(s);
        FUZZ_CHECK(n < 10 && (st == FKT_OK || !open_phase(s)));
    }
    hear_out(f, s);
    its_vector = fuzz_sa_up[phase] == FKT_SA_M_MASKED;
    st = fkt_sa_server_unmask(s);
    FUZZ_CHECK(st == FKT_OK || fkt_sa_server_state(s) == FKT_SA_STATE_FAILED);
    if (st == FKT_OK) check_total(f, s, malicious, its_vector);
    FUZZ_CHECK(st == FKT_OK || fuzz_sa_up[phase] != FKT_SA_M_REVEAL);
    fkt_sa_server_free(s);
    return 0;
}
