/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sa_to_site.c - what a server sends: the decoder, and a site in each of its states. fuzz_sa.h draws
 * the input; how = 1 and no edits is the honest message.
 *
 * Whatever it receives, a site follows the protocol or stops: no vector before its ledger reserved, no share before it
 * spent, and after a failure one Leave and nothing else, however many messages follow. */
#include "fedkt/advanced/secagg.h"

#include "fuzz_sa.h"

struct alone {
    const struct fuzz_sa_world *f;
    uint32_t site;
    unsigned reserved, asked, spent;
};

static fkt_status reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)session;
    ((struct alone *)self)->reserved++;
    return FKT_OK;
}
static fkt_status spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)session;
    ((struct alone *)self)->spent++;
    return FKT_OK;
}
static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    struct alone *a = self;
    FUZZ_CHECK(a->reserved == 1);
    a->asked++;
    memcpy(x, a->f->x[a->site], length * sizeof *x);
    return FKT_OK;
}

/* One answer, if there is one: its kind. */
static enum fkt_sa_kind answer(const struct alone *a, struct fkt_sa_client *c)
{
    uint8_t out[FUZZ_SA_ROOM];
    struct fkt_sa_msg m = {0};
    enum fkt_sa_kind kind;
    size_t len;
    if (!(fkt_sa_client_wants(c) & FKT_SA_SEND)) return FKT_SA_M_NONE;
    FUZZ_CHECK(fkt_sa_client_send(c, out, sizeof out, &len) == FKT_OK && len > 0);
    FUZZ_CHECK(fkt_sa_msg_decode(&m, 1, out, len, fkt_sa_to_server_max(&a->f->p)) == FKT_OK && m.site == a->site);
    kind = m.kind;
    fkt_sa_msg_clear(&m);
    FUZZ_CHECK(kind != FKT_SA_M_MASKED || (a->reserved == 1 && a->asked == 1 && a->spent == 0));
    FUZZ_CHECK(kind != FKT_SA_M_REVEAL || a->spent == 1);
    FUZZ_CHECK((kind == FKT_SA_M_LEAVE) == (fkt_sa_client_state(c) == FKT_SA_STATE_FAILED));
    return kind;
}

/* The rest of the honest round, to a site that may have failed. */
static void talk_on(const struct alone *a, struct fkt_sa_client *c, int from, int sparse)
{
    fkt_status first = FKT_OK;
    for (int k = from; k < FUZZ_SA_PHASES; k++) {
        const enum fkt_sa_kind kind = fuzz_sa_down[k];
        fkt_status st;
        if (k == FUZZ_SA_COIN && !sparse) continue;
        st = fkt_sa_client_recv(c, a->f->tape[a->site][kind].p, a->f->tape[a->site][kind].n);
        FUZZ_CHECK(st == FKT_OK || fkt_error_text()[0] != '\0');
        if (first != FKT_OK && fkt_sa_client_state(c) == FKT_SA_STATE_FAILED) {
            FUZZ_CHECK(st == first); /* sticky */
            FUZZ_CHECK(answer(a, c) == FKT_SA_M_NONE);
        }
        if (fkt_sa_client_state(c) == FKT_SA_STATE_FAILED) first = st;
        (void)answer(a, c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int sparse = size && data[0] >> 3 & 1;
    struct alone a = {.f = fuzz_sa_world(sparse)};
    const struct fkt_sa_site calls = {reserve, vector, spend, &a};
    int phase = size ? (data[0] & 7) % FUZZ_SA_PHASES : 0;
    uint8_t msg[2 * FUZZ_SA_ROOM];
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_sa_client *c = NULL;
    enum fkt_sa_kind said;
    size_t len;
    fkt_status st;
    if (phase == FUZZ_SA_COIN && !sparse) phase = 0;
    a.site = size ? (data[0] >> 4 & 7U) % a.f->p.sites : 0;
    len = fuzz_sa_message(a.f, a.site, fuzz_sa_down[phase], data, size, msg, sizeof msg);
    fuzz_sa_decode(a.f, 0, msg, len);
    fkt_entropy_seeded_init(&seeded, a.f->seed, 1 + (uint64_t)a.site);
    fkt_entropy_seeded(&entropy, &seeded);
    FUZZ_CHECK(fkt_sa_client_new(&c, &a.f->p, a.site, a.f->secret[a.site], &calls, &entropy) == FKT_OK);
    for (int k = 0; k < phase; k++) {
        const enum fkt_sa_kind kind = fuzz_sa_down[k];
        if (k == FUZZ_SA_COIN && !sparse) continue;
        FUZZ_CHECK(fkt_sa_client_recv(c, a.f->tape[a.site][kind].p, a.f->tape[a.site][kind].n) == FKT_OK);
        FUZZ_CHECK(answer(&a, c) == fuzz_sa_up[k]);
    }
    st = fkt_sa_client_recv(c, msg, len);
    FUZZ_CHECK((st == FKT_OK) == (fkt_sa_client_state(c) != FKT_SA_STATE_FAILED));
    FUZZ_CHECK(st == FKT_OK || fkt_error_text()[0] != '\0');
    said = answer(&a, c);
    FUZZ_CHECK(st == FKT_OK || said == FKT_SA_M_LEAVE || said == FKT_SA_M_NONE);
    FUZZ_CHECK(a.reserved <= 1 && a.asked <= a.reserved && a.spent <= a.asked);
    talk_on(&a, c, phase, sparse);
    FUZZ_CHECK(a.reserved <= 1 && a.asked <= a.reserved && a.spent <= a.asked);
    fkt_sa_client_free(c);
    return 0;
}
