/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks across rounds, tasks and phases, and on the ledger: docs/attacks.md, "Rounds, tasks, ledgers". */
#include "fedkt/ledger.h"
#include "tests/support/sa_attack.h"
#include "tests/support/scratch.h"

static const enum fkt_sa_kind asked[] = {FKT_SA_M_BEGIN, FKT_SA_M_NEIGHBOURS, FKT_SA_M_DELIVER, FKT_SA_M_SURVIVORS,
                                         FKT_SA_M_CONFIRMED};
enum { ASKED = sizeof asked / sizeof asked[0] };

/* ---- each site with a real ledger, in a file of its own; its budget allows one release of its records, or more ----
 * */

struct book {
    const char *dir;
    struct sa_site *site; /* of the round that runs now */
    uint32_t number;
    double epsilon; /* budget, at delta 1e-5; 0: for one release */
    int spent;
};

static void hex(char out[FKT_SHA256_HEX], const uint8_t bytes[32])
{
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static const char *book_path(const struct book *b)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/ledger-%u.json", b->dir, b->number);
    return path;
}

static fkt_status book_reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct book *b = self;
    char records[FKT_LEDGER_NAME], task[FKT_SHA256_HEX], name[FKT_SHA256_HEX];
    const struct fkt_ledger_charge charge = {.dataset = records,
                                             .task_sha256 = task,
                                             .mu = 1,
                                             .budget_epsilon = b->epsilon,
                                             .budget_delta = b->epsilon > 0 ? 1e-5 : 0,
                                             .accounting = FKT_ACCOUNTING_ZCDP};
    b->site->reserved++;
    snprintf(records, sizeof records, "site %u", b->number);
    hex(task, b->site->world->params.task);
    hex(name, session);
    return fkt_ledger_file_reserve(book_path(b), &charge, name, NULL);
}

static fkt_status book_spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct book *b = self;
    char name[FKT_SHA256_HEX];
    fkt_status st;
    b->site->spent++;
    hex(name, session);
    st = fkt_ledger_file_spend(book_path(b), name);
    b->spent |= st == FKT_OK;
    return st;
}

static fkt_status book_vector(void *self, int64_t *x, uint32_t length)
{
    const struct book *b = self;
    b->site->asked++;
    memcpy(x, b->site->x, length * sizeof *x);
    return FKT_OK;
}

static void open_books(struct sa_attack *a, struct book *books, const struct scratch *dir)
{
    for (uint32_t i = 0; i < a->w.params.sites; i++) {
        books[i].dir = dir->dir;
        books[i].number = i;
        books[i].site = &a->w.site[i];
        a->w.site[i].doors = (struct fkt_sa_site){book_reserve, book_vector, book_spend, &books[i]};
    }
}

/* As few sites as the server needs receive the confirmations: t + 1 of ten reveal, and it has its total. */
static void tell_few(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    if (l->site > a->w.params.threshold) l->copies = 0;
    m->kind = FKT_SA_M_NONE;
}

static void restart_with_one_fewer(void **state)
{
    const struct fkt_sa_params p = sa_params(10, 2, 1, 0, 6, 5, 16);
    struct book books[10];
    struct sa_attack first, again;
    struct scratch dir;
    uint32_t spent = 0;
    (void)state;
    scratch_init(&dir);
    memset(books, 0, sizeof books);
    sa_attack_init(&first, p, 201);
    open_books(&first, books, &dir);
    first.kind = FKT_SA_M_CONFIRMED;
    first.every = 1;
    first.bend = tell_few;
    CHECK_OK(sa_attack_run(&first));
    sa_world_check(&first.w);
    for (uint32_t i = 0; i < p.sites; i++) spent += (uint32_t)books[i].spent;
    assert_int_equal(spent, p.threshold + 1);

    sa_attack_init(&again, p, 201);
    sa_attack_next_round(&again, 1);
    open_books(&again, books, &dir);
    sa_world_kill(&again.w, 9, FKT_SA_STATE_ADVERTISE); /* the one fewer */
    CHECK_STATUS(sa_attack_run(&again), FKT_E_TOO_FEW);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(again.v.site[i].said[FKT_SA_M_REVEAL], 0);
        if (!books[i].spent) continue;
        sa_attack_site_stopped(&again, i, FKT_E_BUDGET);
        assert_int_equal(sa_watch_leaked(&again.v, i), 0);
    }
    sa_attack_release(&again);
    sa_attack_release(&first);
    scratch_release(&dir);
}

/* The victim's numbers are in the first total although it revealed nothing, so its reservation stands. All others could
 * pay for many releases, but they refuse, since they have spent this task. */
static void restart_with_budget_for_more(void **state)
{
    const struct fkt_sa_params p = sa_params(10, 2, 1, 0, 6, 5, 16);
    const uint32_t victim = 9;
    struct book books[10];
    struct sa_attack first, again;
    struct scratch dir;
    (void)state;
    scratch_init(&dir);
    memset(books, 0, sizeof books);
    for (uint32_t i = 0; i < p.sites; i++) books[i].epsilon = i == victim ? 0 : 100;
    sa_attack_init(&first, p, 215);
    open_books(&first, books, &dir);
    first.kind = FKT_SA_M_CONFIRMED;
    first.every = 1;
    first.bend = tell_few;
    CHECK_OK(sa_attack_run(&first));
    sa_world_check(&first.w);
    CHECK(first.w.site[victim].reserved == 1 && !books[victim].spent);

    sa_attack_init(&again, p, 215);
    sa_attack_next_round(&again, 1);
    open_books(&again, books, &dir);
    CHECK_STATUS(sa_attack_run(&again), FKT_E_TOO_FEW);
    CHECK(again.w.site[victim].asked == 1); /* its own ledger accepts it: the others protect it */
    for (uint32_t i = 0; i < p.sites; i++) {
        assert_int_equal(again.v.site[i].said[FKT_SA_M_REVEAL], 0);
        if (!books[i].spent) continue;
        sa_attack_site_stopped(&again, i, FKT_E_BUDGET);
        assert_int_equal(again.w.site[i].asked, 0);
        assert_int_equal(sa_watch_leaked(&again.v, i), 0);
    }
    sa_attack_release(&again);
    sa_attack_release(&first);
    scratch_release(&dir);
}

/* Many rounds, each ended after the masked vectors: each gives the server another set of keys and graph. */
static void rounds_without_end(void **state)
{
    struct book books[6];
    struct sa_attack a;
    struct scratch dir;
    (void)state;
    scratch_init(&dir);
    memset(books, 0, sizeof books);
    for (uint32_t round = 0; round <= FKT_LEDGER_ROUNDS; round++) {
        const int last = round == FKT_LEDGER_ROUNDS;
        sa_attack_init(&a, sa_small(), 217);
        sa_attack_next_round(&a, round);
        open_books(&a, books, &dir);
        a.mute = FKT_SA_M_SURVIVORS;
        sa_drain(&a);
        for (uint32_t i = 0; i < 6; i++) {
            assert_int_equal(a.w.site[i].asked, !last);
            if (last) assert_int_equal(sa_watch_leaked(&a.v, i), 0);
        }
        if (last) sa_attack_site_stopped(&a, 0, FKT_E_BUDGET);
        sa_attack_release(&a);
    }
    scratch_release(&dir);
}

/* The first round stops before anything was revealed, so the records are free for a new round of the task; not for the
 * same one, and not when others were in between. */
static void session_used_again(void **state)
{
    struct book books[6];
    struct sa_attack first, again;
    struct scratch dir;
    (void)state;
    scratch_init(&dir);
    memset(books, 0, sizeof books);
    sa_attack_init(&first, sa_small(), 203);
    open_books(&first, books, &dir);
    first.mute = FKT_SA_M_SURVIVORS;
    sa_drain(&first);
    sa_attack_release(&first);

    sa_attack_init(&again, sa_small(), 203);
    open_books(&again, books, &dir);
    for (uint32_t i = 0; i < 6; i++) fkt_entropy_seeded_init(&again.w.site[i].seeded, 77, i);
    CHECK_STATUS(sa_attack_run(&again), FKT_E_TOO_FEW);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(sa_watch_leaked(&again.v, i), 0);
        assert_int_equal(again.w.site[i].asked, 0);
    }
    sa_attack_site_stopped(&again, 0, FKT_E_STATE);
    sa_attack_release(&again);

    sa_attack_init(&again, sa_small(), 203);
    sa_attack_next_round(&again, 1);
    open_books(&again, books, &dir);
    again.mute = FKT_SA_M_SURVIVORS;
    sa_drain(&again);
    sa_attack_release(&again);

    sa_attack_init(&again, sa_small(), 203); /* the first one's name once more, although another took it over */
    open_books(&again, books, &dir);
    CHECK_STATUS(sa_attack_run(&again), FKT_E_TOO_FEW);
    sa_attack_site_stopped(&again, 0, FKT_E_STATE);
    sa_attack_release(&again);

    sa_attack_init(&again, sa_small(), 203);
    sa_attack_next_round(&again, 2);
    open_books(&again, books, &dir);
    CHECK_OK(sa_attack_run(&again));
    sa_attack_release(&again);
    scratch_release(&dir);
}

/* ---- messages of another round ---- */

/* The message becomes the one that the same site received in `other`, kind asked[variant]. */
static void put_other(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    const struct sa_taped *old = sa_taped(a->other, l->site, asked[a->variant]);
    CHECK(old->p != NULL && old->n <= l->cap);
    memcpy(l->bytes, old->p, old->n);
    l->len = old->n;
    m->kind = FKT_SA_M_NONE;
}

static void phase_replayed(void **state)
{
    struct sa_attack first, a;
    (void)state;
    sa_attack_init(&first, sa_small(), 205);
    CHECK_OK(sa_attack_run(&first));
    for (unsigned k = 1; k < ASKED; k++) {
        sa_attack_init(&a, sa_small(), 205);
        sa_attack_next_round(&a, 1);
        a.kind = asked[k];
        a.bend = put_other;
        a.variant = k;
        a.other = &first.tape;
        (void)sa_attack_run(&a);
        sa_attack_stopped(&a, FKT_E_PEER_AUTH);
        sa_attack_release(&a);
    }
    sa_attack_release(&first);
}

static void cross(struct sa_attack *to, const struct sa_attack *from, enum fkt_sa_kind kind)
{
    const struct sa_taped *t = sa_taped(&from->tape, to->victim, kind);
    const unsigned leaked = sa_watch_leaked(&to->v, to->victim);
    CHECK(t->p != NULL);
    sa_world_post(&to->w, to->victim, 0, t->p, t->n);
    sa_drain(to);
    sa_attack_site_stopped(to, to->victim, FKT_E_PEER_AUTH);
    assert_int_equal(sa_watch_leaked(&to->v, to->victim), leaked);
}

/* Two rounds of the same sites run side by side and are exchanged in each phase; the servers' messages too. */
static void rounds_mixed(void **state)
{
    (void)state;
    for (unsigned k = 1; k < ASKED; k++) {
        struct sa_attack a, b;
        const struct sa_taped *advert;
        sa_attack_init(&a, sa_small(), 207);
        sa_attack_init(&b, sa_small(), 207);
        sa_attack_next_round(&b, 1);
        a.mute = b.mute = asked[k];
        sa_drain(&a);
        sa_drain(&b);
        cross(&a, &b, asked[k]);
        cross(&b, &a, asked[k]);
        advert = sa_taped(&b.tape, 0, FKT_SA_M_ADVERTISE);
        CHECK_STATUS(fkt_sa_server_recv(a.w.server, 0, advert->p, advert->n), FKT_E_STATE);
        CHECK(fkt_sa_server_site(a.w.server, 0) == FKT_OK);
        sa_attack_release(&b);
        sa_attack_release(&a);
    }
}

/* ---- messages out of order, but otherwise right: the same round, run before ---- */

static void phase_skipped(void **state)
{
    struct sa_attack whole, a;
    (void)state;
    sa_attack_init(&whole, sa_small(), 209);
    CHECK_OK(sa_attack_run(&whole));
    for (unsigned due = 0; due < ASKED; due++) {
        for (unsigned came = 0; came < ASKED; came++) {
            if (came == due || came + 1 == due) continue; /* right, or the last once more, which is ignored */
            sa_attack_init(&a, sa_small(), 209);
            a.kind = asked[due];
            a.bend = put_other;
            a.variant = came;
            a.other = &whole.tape;
            (void)sa_attack_run(&a);
            sa_attack_stopped(&a, due == 0 ? FKT_E_PEER_AUTH : FKT_E_PEER_FORMAT); /* no session before Begin */
            sa_attack_release(&a);
        }
    }
    sa_attack_release(&whole);
}

/* ---- tasks ---- */

static void name_other_task(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    (void)l;
    sa_edit(a, &m->begin.task)[a->variant] ^= 1;
}

static void task_of_another(void **state)
{
    const unsigned at[] = {0, 15, 31};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct sa_attack a;
        sa_attack_init(&a, sa_small(), 211);
        a.kind = FKT_SA_M_BEGIN;
        a.bend = name_other_task;
        a.variant = at[i];
        CHECK_OK(sa_attack_run(&a)); /* the others go on */
        sa_attack_stopped(&a, FKT_E_PEER_AUTH);
        assert_int_equal(a.v.site[a.victim].n_drawn, 0);
        sa_attack_release(&a);
    }
}

/* Site 4 was given a task with C = 0 and t = 3, of another hash; the server names it that hash. In the others' round
 * its advert is then one of another session, whether the server accepts it or sends it to a victim. */
static void put_lowered_advert(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct fkt_sa_msg low = {0};
    uint8_t *advert;
    sa_recall(a, a->other, a->malicious, FKT_SA_M_ADVERTISE, &low);
    if (l->to_server) {
        const struct sa_taped *t = sa_taped(a->other, a->malicious, FKT_SA_M_ADVERTISE);
        memcpy(l->bytes, t->p, t->n);
        l->len = t->n;
        m->kind = FKT_SA_M_NONE;
    } else {
        advert = sa_edit(a, &m->neighbours.adverts) + FKT_SA_ADVERT * sa_rank(l->site, a->malicious);
        memcpy(advert, low.advertise.channel_key.p, 32);
        memcpy(advert + 32, low.advertise.mask_key.p, 32);
        memcpy(advert + 64, low.advertise.signature.p, 64);
    }
    fkt_sa_msg_clear(&low);
}

static void threshold_lowered(void **state)
{
    struct fkt_sa_params p = sa_params(6, 1, 0, 0, 3, 5, 16);
    struct sa_attack low, a;
    (void)state;
    p.task[0] ^= 0xff;
    sa_attack_init(&low, p, 213);
    CHECK_OK(sa_attack_run(&low));

    sa_attack_init(&a, sa_small(), 213);
    a.kind = FKT_SA_M_ADVERTISE;
    a.of_malicious = 1;
    a.bend = put_lowered_advert;
    a.other = &low.tape;
    CHECK_OK(sa_attack_run(&a)); /* goes on without site 4, whose advert is of no round that the server knows */
    CHECK(a.struck == 1 && fkt_sa_server_site(a.w.server, a.malicious) == FKT_E_STOPPED);
    sa_attack_release(&a);

    sa_attack_init(&a, sa_small(), 213);
    a.kind = FKT_SA_M_NEIGHBOURS;
    a.bend = put_lowered_advert;
    a.other = &low.tape;
    (void)sa_attack_run(&a);
    sa_attack_stopped(&a, FKT_E_PEER_AUTH);
    sa_attack_release(&a);
    sa_attack_release(&low);
}

static void begin_again(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct fkt_sa_msg begin = {0};
    uint8_t *round;
    (void)l;
    sa_recall(a, &a->tape, a->victim, FKT_SA_M_BEGIN, &begin);
    m->kind = FKT_SA_M_BEGIN;
    m->session.n = 0;
    m->begin.round = begin.begin.round;
    m->begin.task = begin.begin.task;
    round = sa_edit(a, &m->begin.round);
    sa_edit(a, &m->begin.task);
    round[0] ^= 1;
    fkt_sa_msg_clear(&begin);
}

static void second_begin(void **state)
{
    (void)state;
    for (unsigned k = 1; k < ASKED; k++) sa_attack_simple(sa_small(), asked[k], begin_again, k, FKT_E_PEER_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phase_replayed),
        cmocka_unit_test(rounds_mixed),
        cmocka_unit_test(task_of_another),
        cmocka_unit_test(threshold_lowered),
        cmocka_unit_test(second_begin),
        cmocka_unit_test(restart_with_one_fewer),
        cmocka_unit_test(session_used_again),
        cmocka_unit_test(phase_skipped),
        cmocka_unit_test(restart_with_budget_for_more),
        cmocka_unit_test(rounds_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
