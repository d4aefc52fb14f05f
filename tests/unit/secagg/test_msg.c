/* SPDX-License-Identifier: Apache-2.0 */
/* Messages against bytes assembled by hand from proto/fedkt.proto, and every other encoding of the same content. */
#include "secagg/msg.h"

#include "tests/support/check.h"

enum { CAP = 4096 };

/* ---- an independent protobuf writer ---- */

struct wire {
    uint8_t b[CAP];
    size_t n;
};

static void put(struct wire *w, const void *p, size_t n)
{
    assert_true(w->n + n <= CAP);
    if (n) memcpy(w->b + w->n, p, n);
    w->n += n;
}

static void put_byte(struct wire *w, unsigned x) { put(w, &(uint8_t){(uint8_t)x}, 1); }

static void put_varint(struct wire *w, uint64_t x)
{
    for (; x > 0x7f; x >>= 7) put_byte(w, (unsigned)(x & 0x7f) | 0x80);
    put_byte(w, (unsigned)x);
}

static void put_u32(struct wire *w, unsigned field, uint32_t x)
{
    put_byte(w, field << 3);
    put_varint(w, x);
}

static void put_bytes(struct wire *w, unsigned field, const void *p, size_t n)
{
    put_byte(w, field << 3 | 2);
    put_varint(w, n);
    put(w, p, n);
}

/* ---- every kind, as the .proto has it: field numbers in order, 'b' bytes, 'u' uint32 ---- */

static const struct form {
    enum fkt_sa_kind kind;
    int to_server;
    unsigned tag;
    const char *fields;
    size_t at[4];
} forms[] = {
#define AT(f) offsetof(struct fkt_sa_msg, f)
    {FKT_SA_M_ADVERTISE,
     1,
     3,
     "bbbb",
     {AT(advertise.channel_key), AT(advertise.mask_key), AT(advertise.coin), AT(advertise.signature)}},
    {FKT_SA_M_OPEN, 1, 4, "ubb", {AT(open.attempt), AT(open.scalar), AT(open.next_coin)}},
    {FKT_SA_M_SHARES, 1, 5, "bb", {AT(shares.sealed), AT(shares.self_commitment)}},
    {FKT_SA_M_MASKED, 1, 6, "b", {AT(masked.packed)}},
    {FKT_SA_M_CONFIRM, 1, 7, "b", {AT(confirm.signature)}},
    {FKT_SA_M_REVEAL, 1, 8, "b", {AT(reveal.shares)}},
    {FKT_SA_M_LEAVE, 1, 9, "u", {AT(leave.status)}},
    {FKT_SA_M_BEGIN, 0, 2, "bb", {AT(begin.round), AT(begin.task)}},
    {FKT_SA_M_COIN, 0, 3, "uuub", {AT(coin.attempt), AT(coin.leaves), AT(coin.position), AT(coin.path)}},
    {FKT_SA_M_NEIGHBOURS, 0, 4, "bbb", {AT(neighbours.scalar), AT(neighbours.present), AT(neighbours.adverts)}},
    {FKT_SA_M_DELIVER, 0, 5, "bb", {AT(deliver.delivered), AT(deliver.sealed)}},
    {FKT_SA_M_SURVIVORS, 0, 6, "b", {AT(survivors.survivors)}},
    {FKT_SA_M_CONFIRMED, 0, 7, "bb", {AT(confirmed.present), AT(confirmed.signatures)}},
    {FKT_SA_M_ABORTED, 0, 8, "u", {AT(aborted.status)}},
};
enum { FORMS = sizeof forms / sizeof *forms, SITE = 300 };

static const uint8_t session[32] = "a session is thirty-two bytes..";
static uint8_t stuff[4][200];

static struct fkt_sa_bytes content(unsigned i) { return (struct fkt_sa_bytes){stuff[i], 40 + 45 * i}; }
static uint32_t number(unsigned i) { return 5 + 1000 * i * i * i * i * i; }

static void body_by_hand(struct wire *w, const struct form *f)
{
    w->n = 0;
    for (unsigned i = 0; f->fields[i]; i++)
        if (f->fields[i] == 'b') put_bytes(w, i + 1, content(i).p, content(i).n);
        else put_u32(w, i + 1, number(i));
}

static void by_hand(struct wire *w, const struct form *f, const struct wire *body)
{
    w->n = 0;
    put_bytes(w, 1, session, 32);
    if (f->to_server) put_u32(w, 2, SITE);
    put_bytes(w, f->tag, body->b, body->n);
}

static void fill(struct fkt_sa_msg *m, const struct form *f)
{
    memset(m, 0, sizeof *m);
    m->kind = f->kind;
    m->session = (struct fkt_sa_bytes){session, 32};
    m->site = SITE;
    for (unsigned i = 0; f->fields[i]; i++) {
        void *at = (char *)m + f->at[i];
        if (f->fields[i] == 'b') *(struct fkt_sa_bytes *)at = content(i);
        else *(uint32_t *)at = number(i);
    }
}

static int same_bytes(struct fkt_sa_bytes a, struct fkt_sa_bytes b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

static fkt_status decode(const struct form *f, const struct wire *w)
{
    struct fkt_sa_msg m;
    uint8_t *exact = malloc(w->n ? w->n : 1); /* so that a read beyond the end is detected */
    fkt_status st;
    if (w->n) memcpy(exact, w->b, w->n);
    st = fkt_sa_msg_decode(&m, f->to_server, exact, w->n, CAP);
    if (st != FKT_OK && (m.owner || m.kind != FKT_SA_M_NONE)) fail_msg("something is left of a refused message");
    fkt_sa_msg_clear(&m);
    free(exact);
    assert_int_equal(fkt_alloc_live(), 0);
    return st;
}

#define REFUSED(f, w) CHECK_STATUS(decode(f, w), FKT_E_PEER_FORMAT)

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < sizeof stuff[i]; j++) stuff[i][j] = (uint8_t)(i * 77 + j * 13 + 1);
    return 0;
}

static void every_kind_there_and_back(void **state)
{
    struct wire body, want, got;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        struct fkt_sa_msg m, back;
        fill(&m, f);
        body_by_hand(&body, f);
        by_hand(&want, f, &body);
        assert_int_equal(fkt_sa_msg_bytes(&m), want.n);
        CHECK_OK(fkt_sa_msg_encode(&m, got.b, CAP, &got.n));
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.b, want.b, want.n);
        CHECK_STATUS(fkt_sa_msg_encode(&m, got.b, want.n - 1, &got.n), FKT_E_ARG);
        assert_int_equal(got.n, 0);
        CHECK_OK(fkt_sa_msg_encode(&m, got.b, want.n, &got.n));

        CHECK_OK(fkt_sa_msg_decode(&back, f->to_server, want.b, want.n, want.n));
        assert_int_equal(back.kind, f->kind);
        assert_true(same_bytes(back.session, m.session));
        assert_int_equal(back.site, f->to_server ? SITE : 0);
        for (unsigned i = 0; f->fields[i]; i++) {
            const void *at = (const char *)&back + f->at[i];
            if (f->fields[i] == 'b') assert_true(same_bytes(*(const struct fkt_sa_bytes *)at, content(i)));
            else assert_int_equal(*(const uint32_t *)at, number(i));
        }
        fkt_sa_msg_clear(&back);
        assert_int_equal(fkt_alloc_live(), 0);
        CHECK_STATUS(fkt_sa_msg_decode(&back, f->to_server, want.b, want.n, want.n - 1), FKT_E_PEER_FORMAT);
    }
    CHECK_STATUS(fkt_sa_msg_encode(&(struct fkt_sa_msg){.kind = FKT_SA_M_NONE}, got.b, CAP, &got.n), FKT_E_ARG);
    CHECK_STATUS(fkt_sa_msg_encode(&(struct fkt_sa_msg){.kind = FKT_SA_M_ABORTED + 1}, got.b, CAP, &got.n), FKT_E_ARG);
}

/* All fields at their defaults: nothing is written but the body's presence. */
static void empty_fields(void **state)
{
    struct wire w;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        struct fkt_sa_msg m = {.kind = f->kind}, back;
        CHECK_OK(fkt_sa_msg_encode(&m, w.b, CAP, &w.n));
        assert_int_equal(w.n, 2);
        assert_int_equal(w.b[0], f->tag << 3 | 2);
        assert_int_equal(w.b[1], 0);
        CHECK_OK(fkt_sa_msg_decode(&back, f->to_server, w.b, w.n, CAP));
        assert_int_equal(back.kind, f->kind);
        assert_int_equal(back.session.n, 0);
        fkt_sa_msg_clear(&back);
    }
    w.n = 0;
    REFUSED(&forms[0], &w);
    put_bytes(&w, 1, session, 32); /* no body */
    REFUSED(&forms[0], &w);
    REFUSED(&forms[FORMS - 1], &w);
}

static void cut_at_every_byte(void **state)
{
    struct wire body, w;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        body_by_hand(&body, f);
        by_hand(&w, f, &body);
        CHECK_OK(decode(f, &w));
        while (w.n > 0) {
            w.n--;
            REFUSED(f, &w);
        }
    }
}

static void other_spellings_outside_the_body(void **state)
{
    struct wire body, good, w;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        unsigned unknown = f->to_server ? 10 : 9;
        body_by_hand(&body, f);
        by_hand(&good, f, &body);

        w = good; /* bytes behind */
        put_byte(&w, 0);
        REFUSED(f, &w);
        w = good; /* an unknown field, then one with a number beyond 15, then a fixed32 */
        put_u32(&w, unknown, 1);
        REFUSED(f, &w);
        w = good;
        put(&w, "\x82\x01\x00", 3);
        REFUSED(f, &w);
        w = good;
        put(&w, "\x7d\1\2\3\4", 5);
        REFUSED(f, &w);
        w = good; /* the body twice */
        put_bytes(&w, f->tag, body.b, body.n);
        REFUSED(f, &w);
        w = good; /* two bodies: this and the one beside it, in either order */
        put_bytes(&w, f->tag + 1, NULL, 0);
        REFUSED(f, &w);
        w.n = 0;
        put_bytes(&w, 1, session, 32);
        put_bytes(&w, f->tag - 1 > (f->to_server ? 2U : 1U) ? f->tag - 1 : f->tag + 1, NULL, 0);
        put_bytes(&w, f->tag, body.b, body.n);
        REFUSED(f, &w);
        w.n = 0; /* session twice */
        put_bytes(&w, 1, session, 32);
        put(&w, good.b, good.n);
        REFUSED(f, &w);
        w.n = 0; /* session behind the body */
        put(&w, good.b + 34, good.n - 34);
        put(&w, good.b, 34);
        REFUSED(f, &w);
        w.n = 0; /* an empty session spelt out */
        put_bytes(&w, 1, NULL, 0);
        put(&w, good.b + 34, good.n - 34);
        REFUSED(f, &w);
        w.n = 0; /* the length of the session with an idle byte */
        put(&w, "\x0a\xa0\x00", 3);
        put(&w, good.b + 2, good.n - 2);
        REFUSED(f, &w);
        w.n = 0; /* a tag with an idle byte */
        put(&w, "\x8a\x00", 2);
        put(&w, good.b + 1, good.n - 1);
        REFUSED(f, &w);
        w.n = 0; /* session as a number */
        put_u32(&w, 1, 7);
        put(&w, good.b + 34, good.n - 34);
        REFUSED(f, &w);
    }
}

static void other_spellings_of_the_site(void **state)
{
    static const char *const sites[] = {"\x10\x00", "\x10\xac\x82\x00", "\x10\xac\x82\x80\x80\x70",
                                        "\x10\xac\x82\x80\x80\x80\x80\x80\x80\x80\x01"};
    static const size_t lengths[] = {2, 4, 6, 11};
    const struct form *f = &forms[0];
    struct wire body, w;
    (void)state;
    body_by_hand(&body, f);
    for (size_t i = 0; i < 4; i++) { /* zero spelt out; an idle byte; bits beyond 32; ten bytes */
        w.n = 0;
        put_bytes(&w, 1, session, 32);
        put(&w, sites[i], lengths[i]);
        put_bytes(&w, f->tag, body.b, body.n);
        REFUSED(f, &w);
    }
    w.n = 0; /* behind the body; twice; before the session */
    put_bytes(&w, 1, session, 32);
    put_bytes(&w, f->tag, body.b, body.n);
    put_u32(&w, 2, SITE);
    REFUSED(f, &w);
    w.n = 0;
    put_bytes(&w, 1, session, 32);
    put_u32(&w, 2, SITE);
    put_u32(&w, 2, SITE);
    put_bytes(&w, f->tag, body.b, body.n);
    REFUSED(f, &w);
    w.n = 0;
    put_u32(&w, 2, SITE);
    put_bytes(&w, 1, session, 32);
    put_bytes(&w, f->tag, body.b, body.n);
    REFUSED(f, &w);
}

/* w: the good message with field i of its body replaced by what `spell` writes. */
static void respelt(struct wire *w, const struct form *f, unsigned at, void (*spell)(struct wire *, unsigned, char))
{
    struct wire body = {.n = 0};
    for (unsigned i = 0; f->fields[i]; i++)
        if (i == at) spell(&body, i, f->fields[i]);
        else if (f->fields[i] == 'b') put_bytes(&body, i + 1, content(i).p, content(i).n);
        else put_u32(&body, i + 1, number(i));
    by_hand(w, f, &body);
}

static void spell_default(struct wire *w, unsigned i, char type)
{
    if (type == 'b') put_bytes(w, i + 1, NULL, 0);
    else put_u32(w, i + 1, 0);
}

static void spell_twice(struct wire *w, unsigned i, char type)
{
    for (int k = 0; k < 2; k++)
        if (type == 'b') put_bytes(w, i + 1, content(i).p, content(i).n);
        else put_u32(w, i + 1, number(i));
}

static void spell_idle(struct wire *w, unsigned i, char type)
{
    uint64_t x = type == 'b' ? content(i).n : number(i);
    put_byte(w, (i + 1) << 3 | (type == 'b' ? 2 : 0));
    for (; x > 0x7f; x >>= 7) put_byte(w, (unsigned)(x & 0x7f) | 0x80);
    put_byte(w, (unsigned)x | 0x80);
    put_byte(w, 0);
    if (type == 'b') put(w, content(i).p, content(i).n);
}

static void spell_other_type(struct wire *w, unsigned i, char type)
{
    if (type == 'u') put_bytes(w, i + 1, content(i).p, content(i).n);
    else put_u32(w, i + 1, 9);
}

static void spell_unknown(struct wire *w, unsigned i, char type) { spell_default(w, 6 + i, type); }

static void spell_too_long(struct wire *w, unsigned i, char type)
{
    (void)type;
    put_byte(w, (i + 1) << 3 | 2);
    put_varint(w, 0xffffffffU);
}

static void other_spellings_inside_the_body(void **state)
{
    void (*const spell[])(struct wire *, unsigned, char) = {spell_default,    spell_twice,   spell_idle,
                                                            spell_other_type, spell_unknown, spell_too_long};
    struct wire body, w, swapped;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        for (unsigned i = 0; f->fields[i]; i++)
            for (size_t k = 0; k < sizeof spell / sizeof *spell; k++) {
                respelt(&w, f, i, spell[k]);
                REFUSED(f, &w);
            }
        body_by_hand(&body, f);
        put_u32(&body, 5, 1); /* unknown, behind */
        by_hand(&w, f, &body);
        REFUSED(f, &w);
        if (!f->fields[1]) continue;
        swapped.n = 0; /* fields in the wrong order */
        for (int i = (int)strlen(f->fields) - 1; i >= 0; i--)
            if (f->fields[i] == 'b')
                put_bytes(&swapped, (unsigned)i + 1, content((unsigned)i).p, content((unsigned)i).n);
            else put_u32(&swapped, (unsigned)i + 1, number((unsigned)i));
        by_hand(&w, f, &swapped);
        REFUSED(f, &w);
    }
}

/* A message with one flipped bit is refused, or is the canonical encoding of what was read. */
static void flipped_bits(void **state)
{
    struct wire body, w, again;
    size_t accepted = 0;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        body_by_hand(&body, f);
        by_hand(&w, f, &body);
        for (size_t bit = 0; bit < 8 * w.n; bit++)
            for (int direction = 0; direction < 2; direction++) {
                struct fkt_sa_msg m;
                fkt_status st;
                w.b[bit / 8] ^= (uint8_t)(1U << bit % 8);
                st = fkt_sa_msg_decode(&m, direction, w.b, w.n, CAP);
                if (st == FKT_OK) {
                    accepted++;
                    CHECK_OK(fkt_sa_msg_encode(&m, again.b, CAP, &again.n));
                    assert_int_equal(again.n, w.n);
                    assert_memory_equal(again.b, w.b, w.n);
                } else assert_int_equal(st, FKT_E_PEER_FORMAT);
                fkt_sa_msg_clear(&m);
                w.b[bit / 8] ^= (uint8_t)(1U << bit % 8);
            }
    }
    assert_true(accepted > 1000); /* flips inside of bytes fields */
    assert_int_equal(fkt_alloc_live(), 0);
}

/* A thousand unknown or repeated fields must not become a thousand allocations, nor even one. */
static void nonsense_takes_no_memory(void **state)
{
    struct wire w = {.n = 0}, body = {.n = 0};
    struct fkt_sa_msg m;
    (void)state;
    put_bytes(&w, 1, session, 32);
    while (w.n + 2 < CAP) put(&w, "\x7a\x00", 2);
    while (body.n + 100 < CAP) put(&body, "\x0a\x01x", 3);
    fkt_alloc_fault_at(1, 1);
    CHECK_STATUS(fkt_sa_msg_decode(&m, 1, w.b, w.n, CAP), FKT_E_PEER_FORMAT);
    by_hand(&w, &forms[3], &body);
    CHECK_STATUS(fkt_sa_msg_decode(&m, 1, w.b, w.n, CAP), FKT_E_PEER_FORMAT);
    CHECK_STATUS(fkt_sa_msg_decode(&m, 1, w.b, CAP + 1, CAP), FKT_E_PEER_FORMAT); /* by its length alone */
    fkt_alloc_fault_at(0, 0);
}

static void memory_runs_out(void **state)
{
    struct wire body, w;
    (void)state;
    for (const struct form *f = forms; f < forms + FORMS; f++) {
        size_t failed = 0;
        body_by_hand(&body, f);
        by_hand(&w, f, &body);
        for (;; failed++) {
            fkt_status st;
            fkt_alloc_fault_at(failed + 1, 0);
            st = decode(f, &w);
            fkt_alloc_fault_at(0, 0);
            if (st == FKT_OK) break;
            assert_int_equal(st, FKT_E_NOMEM);
        }
        assert_true(failed >= 3); /* message, session, body */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_there_and_back),
        cmocka_unit_test(empty_fields),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(other_spellings_outside_the_body),
        cmocka_unit_test(other_spellings_of_the_site),
        cmocka_unit_test(other_spellings_inside_the_body),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(nonsense_takes_no_memory),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
