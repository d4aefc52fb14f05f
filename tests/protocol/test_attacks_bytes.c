/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the encoding of messages: docs/attacks.md, "Bytes". Each is tried on every message of a round in both
 * directions: a site stops, a server loses the sender and goes on. */
#include "tests/support/sa_attack.h"

static const enum fkt_sa_kind down[] = {FKT_SA_M_BEGIN, FKT_SA_M_NEIGHBOURS, FKT_SA_M_DELIVER, FKT_SA_M_SURVIVORS,
                                        FKT_SA_M_CONFIRMED};
static const enum fkt_sa_kind up[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_SHARES, FKT_SA_M_MASKED, FKT_SA_M_CONFIRM,
                                      FKT_SA_M_REVEAL};
enum { KINDS = 5 };

/* ---- protocol buffers by hand ---- */

struct field {
    const uint8_t *p; /* its tag */
    size_t n;         /* with tag and length */
    const uint8_t *body;
    size_t body_n;
};

/* Fields of a run of bytes; small lengths of one or two bytes are all there is here. */
static size_t fields(const uint8_t *p, size_t n, struct field f[4])
{
    size_t count = 0, at = 0;
    while (at < n) {
        struct field *g = &f[count++];
        size_t len, head = 2;
        assert_true(count <= 4 && at + 1 < n);
        g->p = p + at;
        len = p[at + 1] & 0x7f;
        if (p[at + 1] & 0x80) len |= (size_t)p[at + head++] << 7;
        if ((p[at] & 7) == 0) len = 0; /* a number: all of it is head */
        g->body = p + at + head;
        g->body_n = len;
        g->n = head + len;
        at += g->n;
    }
    assert_int_equal(at, n);
    return count;
}

struct text {
    uint8_t *p;
    size_t n;
};

static void put(struct text *t, const void *p, size_t n)
{
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

/* tag, length in two bytes or, when `idle`, with one padding byte; then the bytes */
static void put_field(struct text *t, uint8_t tag, const void *p, size_t n, int idle)
{
    uint8_t head[4] = {tag, (uint8_t)n, 0, 0};
    size_t h = 2;
    if (n >= 128) {
        head[1] = (uint8_t)(0x80 | (n & 0x7f));
        head[2] = (uint8_t)(n >> 7);
        h = 3;
    }
    if (idle) {
        head[h - 1] |= 0x80;
        head[h++] = 0;
    }
    put(t, head, h);
    put(t, p, n);
}

/* What an alteration does to the fields of a message: `top` (n), the last of which is the body with `in` (m). */
typedef void (*mangler)(struct text *t, unsigned variant, const struct field *top, size_t n, const struct field *in,
                        size_t m);
static mangler mangle;

static void bend(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct field top[4], in[4];
    uint8_t *room = malloc(l->cap);
    struct text t = {room, 0};
    size_t n = fields(l->bytes, l->len, top), inside = fields(top[n - 1].body, top[n - 1].body_n, in);
    assert_non_null(room);
    mangle(&t, a->variant, top, n, in, inside);
    assert_true(t.n <= l->cap && !(t.n == l->len && memcmp(t.p, l->bytes, t.n) == 0));
    memcpy(l->bytes, t.p, t.n);
    l->len = t.n;
    m->kind = FKT_SA_M_NONE;
    free(room);
}

static void from_malicious(enum fkt_sa_kind kind, unsigned variant)
{
    struct sa_attack a;
    sa_attack_init(&a, sa_small(), 300 + variant);
    a.of_malicious = 1;
    a.v.site[a.malicious].corrupt = 1;
    a.kind = kind;
    a.bend = bend;
    a.variant = variant;
    CHECK_OK(sa_attack_run(&a));
    CHECK(a.struck == 1);
    assert_int_equal(fkt_sa_server_site(a.w.server, a.malicious), FKT_E_PEER_FORMAT);
    sa_attack_release(&a);
}

static void everywhere(mangler how, unsigned variants)
{
    mangle = how;
    for (unsigned variant = 0; variant < variants; variant++) {
        for (int k = 0; k < KINDS; k++) {
            sa_attack_simple(sa_small(), down[k], bend, variant, FKT_E_PEER_FORMAT);
            from_malicious(up[k], variant);
        }
    }
}

static void put_all(struct text *t, const struct field *f, size_t n)
{
    for (size_t i = 0; i < n; i++) put(t, f[i].p, f[i].n);
}

/* Variants: a number 15 after all, bytes 14 before all, number 100 after all, a number 15 in the body. */
static void add_unknown(struct text *t, unsigned variant, const struct field *top, size_t n, const struct field *in,
                        size_t m)
{
    uint8_t inside[4096];
    struct text body = {inside, 0};
    if (variant == 1) put(t, "\x72\x01\x00", 3);
    put_all(t, top, variant == 3 ? n - 1 : n);
    if (variant == 0) put(t, "\x78\x01", 2);
    if (variant == 2) put(t, "\xa0\x06\x01", 3);
    if (variant != 3) return;
    put_all(&body, in, m);
    put(&body, "\x78\x01", 2);
    put_field(t, top[n - 1].p[0], body.p, body.n, 0);
}

static void unknown_field(void **state)
{
    (void)state;
    everywhere(add_unknown, 4);
}

/* Variants: length of the body, of the first field in it, the body's tag. */
static void make_overlong(struct text *t, unsigned variant, const struct field *top, size_t n, const struct field *in,
                          size_t m)
{
    const struct field *last = &top[n - 1];
    uint8_t inside[4096];
    struct text body = {inside, 0};
    put_all(t, top, n - 1);
    switch (variant) {
    case 0: put_field(t, last->p[0], last->body, last->body_n, 1); break;
    case 1:
        put_field(&body, in[0].p[0], in[0].body, in[0].body_n, 1);
        put_all(&body, in + 1, m - 1);
        put_field(t, last->p[0], body.p, body.n, 0);
        break;
    default:
        t->p[t->n++] = last->p[0] | 0x80;
        t->p[t->n++] = 0;
        put(t, last->p + 1, last->n - 1);
    }
}

static void overlong_varint(void **state)
{
    (void)state;
    everywhere(make_overlong, 3);
}

/* Variants: the first field, the body, a field of the body. */
static void say_twice(struct text *t, unsigned variant, const struct field *top, size_t n, const struct field *in,
                      size_t m)
{
    uint8_t inside[4096];
    struct text body = {inside, 0};
    if (variant == 0) put(t, top[0].p, top[0].n);
    put_all(t, top, variant == 2 ? n - 1 : n);
    if (variant == 1) put(t, top[n - 1].p, top[n - 1].n);
    if (variant != 2) return;
    put(&body, in[0].p, in[0].n);
    put_all(&body, in, m);
    put_field(t, top[n - 1].p[0], body.p, body.n, 0);
}

static void field_twice(void **state)
{
    (void)state;
    everywhere(say_twice, 3);
}

/* Variants: the last field first (or, where there is one alone, in the body); an empty field 15 written out; an empty
 * body of another kind after the first. */
static void reorder(struct text *t, unsigned variant, const struct field *top, size_t n, const struct field *in,
                    size_t m)
{
    uint8_t inside[4096];
    struct text body = {inside, 0};
    if (variant) {
        put_all(t, top, n);
        put(t, variant == 1 ? "\x7a\x00" : "\x4a\x00", 2);
    } else if (n > 1) {
        put(t, top[n - 1].p, top[n - 1].n);
        put_all(t, top, n - 1);
    } else {
        put(&body, in[m - 1].p, in[m - 1].n);
        put_all(&body, in, m - 1);
        put_field(t, top[0].p[0], body.p, body.n, 0);
    }
}

/* An explicit default where the message has one: V is empty on a complete graph. */
static void spell_default(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m)
{
    struct field top[4];
    uint8_t *room = malloc(l->cap), *body = malloc(l->cap);
    struct text t = {room, 0}, b = {body, 0};
    size_t n = fields(l->bytes, l->len, top);
    (void)a;
    assert_true(room && body);
    put_all(&t, top, n - 1);
    put(&b, "\x0a\x00", 2);
    put(&b, top[n - 1].body, top[n - 1].body_n);
    put_field(&t, top[n - 1].p[0], b.p, b.n, 0);
    memcpy(l->bytes, t.p, t.n);
    l->len = t.n;
    m->kind = FKT_SA_M_NONE;
    free(room);
    free(body);
}

static void fields_out_of_order(void **state)
{
    (void)state;
    everywhere(reorder, 3);
    sa_attack_simple(sa_small(), FKT_SA_M_NEIGHBOURS, spell_default, 0, FKT_E_PEER_FORMAT);
}

/* Variants: bytes after the end; the last field of the body longer than any message. */
static void enlarge(struct text *t, unsigned variant, const struct field *top, size_t n, const struct field *in,
                    size_t m)
{
    static const uint8_t zeros[1000];
    uint8_t inside[4096], field[2048];
    struct text body = {inside, 0};
    put_all(t, top, variant == 0 ? n : n - 1);
    if (variant == 0) {
        put(t, zeros, 3);
        return;
    }
    put_all(&body, in, m - 1);
    memcpy(field, in[m - 1].body, in[m - 1].body_n);
    memset(field + in[m - 1].body_n, 0x55, 900);
    put_field(&body, in[m - 1].p[0], field, in[m - 1].body_n + 900, 0);
    put_field(t, top[n - 1].p[0], body.p, body.n, 0);
}

/* ---- one site alone, repeatedly: the same randomness and the same messages up to the altered one ---- */

struct lone {
    struct fkt_sa_client *client;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    unsigned reserved, asked, spent;
};

static fkt_status yes_reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)session;
    ((struct lone *)self)->reserved++;
    return FKT_OK;
}
static fkt_status yes_spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)session;
    ((struct lone *)self)->spent++;
    return FKT_OK;
}
static fkt_status ones(void *self, int64_t *x, uint32_t length)
{
    ((struct lone *)self)->asked++;
    for (uint32_t i = 0; i < length; i++) x[i] = 1;
    return FKT_OK;
}

/* The victim of `a`, after it received and answered down[0..k-1]. */
static void lone_at(struct lone *s, const struct sa_attack *a, int k, const struct fkt_sa_site *doors)
{
    uint8_t out[4096];
    size_t len;
    memset(s, 0, sizeof *s);
    fkt_entropy_seeded_init(&s->seeded, a->w.seed, 1 + (uint64_t)a->victim);
    fkt_entropy_seeded(&s->entropy, &s->seeded);
    CHECK_OK(fkt_sa_client_new(&s->client, &a->w.params, a->victim, a->w.site[a->victim].secret, doors, &s->entropy));
    for (int i = 0; i < k; i++) {
        const struct sa_taped *t = sa_taped(&a->tape, a->victim, down[i]);
        CHECK_OK(fkt_sa_client_recv(s->client, t->p, t->n));
        CHECK_OK(fkt_sa_client_send(s->client, out, sizeof out, &len));
    }
}

/* Altered bytes: refused, ledger and data not called, nothing sent but one Leave. */
static void lone_refuses(struct lone *s, const uint8_t *msg, size_t len, int k, size_t where)
{
    const unsigned before = s->reserved + s->asked + s->spent;
    fkt_status st = fkt_sa_client_recv(s->client, msg, len);
    uint8_t out[4096];
    size_t n = 0;
    if (st == FKT_OK || fkt_sa_client_state(s->client) != FKT_SA_STATE_FAILED)
        fail_msg("message %d, byte %zu: accepted", k, where);
    if (s->reserved + s->asked + s->spent != before) fail_msg("message %d, byte %zu: ledger was asked", k, where);
    if (fkt_sa_client_wants(s->client) & FKT_SA_SEND) {
        CHECK_OK(fkt_sa_client_send(s->client, out, sizeof out, &n));
        CHECK(n < 48); /* session, number, status: no room for more */
    }
    CHECK(fkt_sa_client_wants(s->client) == FKT_SA_ENDED);
    CHECK_STATUS(fkt_sa_client_send(s->client, out, sizeof out, &n), st);
}

static struct fkt_sa_params tiny(void) { return sa_params(4, 1, 0, 0, 2, 2, 16); }

/* Every length that is too short, for a site and for the server. */
static void truncated_message(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, tiny(), 311);
    CHECK_OK(sa_attack_run(&a));
    for (int k = 0; k < KINDS; k++) {
        const struct sa_taped *t = sa_taped(&a.tape, a.victim, down[k]);
        for (size_t n = 0; n < t->n; n += n < 64 || n + 64 > t->n ? 1 : 7) {
            struct lone s;
            const struct fkt_sa_site doors = {yes_reserve, ones, yes_spend, &s};
            lone_at(&s, &a, k, &doors);
            lone_refuses(&s, t->p, n, k, n);
            fkt_sa_client_free(s.client);
        }
    }
    for (int k = 0; k < KINDS; k++) {
        const struct sa_taped *t = sa_taped(&a.tape, 0, up[k]);
        struct fkt_sa_msg m;
        for (size_t n = 0; n < t->n; n++)
            CHECK_STATUS(fkt_sa_msg_decode(&m, 1, t->p, n, fkt_sa_to_server_max(&a.w.params)), FKT_E_PEER_FORMAT);
    }
    sa_attack_release(&a);
}

/* A bit of every other byte. The round's name alone may be any: it makes another session, and a ledger knows those. */
static void flipped_message(void **state)
{
    struct sa_attack a;
    (void)state;
    sa_attack_init(&a, tiny(), 313);
    CHECK_OK(sa_attack_run(&a));
    for (int k = 0; k < KINDS; k++) {
        const struct sa_taped *t = sa_taped(&a.tape, a.victim, down[k]);
        uint8_t *bytes = malloc(t->n);
        assert_non_null(bytes);
        for (size_t at = 0; at < t->n; at += at < 64 ? 1 : 3) {
            struct lone s;
            const struct fkt_sa_site doors = {yes_reserve, ones, yes_spend, &s};
            if (k == 0 && at >= 4 && at < 20) continue;
            memcpy(bytes, t->p, t->n);
            bytes[at] ^= (uint8_t)(1U << (at % 8));
            lone_at(&s, &a, k, &doors);
            lone_refuses(&s, bytes, t->n, k, at);
            fkt_sa_client_free(s.client);
        }
        free(bytes);
    }
    sa_attack_release(&a);
}

/* A message with one field of 60,000 bytes, and proper in all else. */
static size_t make_huge(struct sa_attack *a, int to_server, uint8_t huge[61000])
{
    static uint8_t field[60000];
    struct fkt_sa_msg m = {.kind = to_server ? FKT_SA_M_MASKED : FKT_SA_M_SURVIVORS};
    uint8_t session[FKT_SA_SESSION];
    size_t len;
    sa_session(a, session);
    m.session = (struct fkt_sa_bytes){session, sizeof session};
    if (to_server) m.masked.packed = (struct fkt_sa_bytes){field, sizeof field};
    else m.survivors.survivors = (struct fkt_sa_bytes){field, sizeof field};
    CHECK_OK(fkt_sa_msg_encode(&m, huge, 61000, &len));
    return len;
}

/* The length is checked before any allocation: without memory the result is the same. */
static void oversize_message(void **state)
{
    static uint8_t huge[61000];
    struct sa_attack a;
    size_t len;
    struct lone s;
    const struct fkt_sa_site doors = {yes_reserve, ones, yes_spend, &s};
    (void)state;
    everywhere(enlarge, 2);
    sa_attack_init(&a, tiny(), 317);
    CHECK_OK(sa_attack_run(&a));
    len = make_huge(&a, 0, huge);
    for (int k = 0; k < KINDS; k++) {
        lone_at(&s, &a, k, &doors);
        fkt_alloc_fault_at(1, 1);
        lone_refuses(&s, huge, len, k, len);
        fkt_alloc_fault_at(0, 0);
        CHECK_STATUS(fkt_sa_client_recv(s.client, huge, 1), FKT_E_PEER_FORMAT);
        fkt_sa_client_free(s.client);
    }
    sa_attack_release(&a);
    sa_attack_init(&a, tiny(), 317);
    len = make_huge(&a, 1, huge);
    fkt_alloc_fault_at(1, 1);
    CHECK_STATUS(fkt_sa_server_recv(a.w.server, 0, huge, len), FKT_E_PEER_FORMAT);
    fkt_alloc_fault_at(0, 0);
    sa_attack_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_field),       cmocka_unit_test(overlong_varint),  cmocka_unit_test(field_twice),
        cmocka_unit_test(fields_out_of_order), cmocka_unit_test(oversize_message), cmocka_unit_test(truncated_message),
        cmocka_unit_test(flipped_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
