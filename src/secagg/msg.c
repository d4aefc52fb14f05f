/* SPDX-License-Identifier: Apache-2.0 */
/* msg.c - encodes and decodes the messages of docs/protocol.md, plain structs to bytes and back, with protobuf-c.
 *
 *   decode: length <= max -> tags ascend -> unpack -> pack again, byte by byte against what came -> struct fkt_sa_msg
 *
 * Protocol buffers allow many encodings of one message: fields in any order, twice, unknown, explicit defaults, padded
 * varints. Here signatures and duplicate detection work on bytes, so a message has one encoding (2.4). The decoder
 * enforces it by encoding the result again and comparing. The comparison needs no memory: protobuf-c packs into a
 * buffer callback that only compares. But decoding itself allocates for every unknown or repeated field; so a first
 * pass over the tags, which allocates nothing, accepts at most one field of each number.
 *
 * One row of `rows` is all that is known about a kind: its number in the oneof, its descriptor, and the offsets of its
 * fields in struct fkt_sa_msg in the order of their numbers. Types and offsets in protobuf-c's structs come from the
 * descriptor.
 *
 * Memory comes from base/alloc.h with its size stored in front, so that it can be wiped when it is freed: opened
 * scalars and shares pass through here. Cost: one copy of each field, and one pass of comparison. */
#include "secagg/msg.h"

#include "base/alloc.h"
#include "crypto/entropy.h"

#include <fedkt.pb-c.h>

#include <string.h>

enum { FIELDS_MAX = 4, HEAD = 16 /* keeps the alignment of malloc */ };

struct row {
    int to_server;
    uint32_t tag; /* number in the oneof */
    const ProtobufCMessageDescriptor *body;
    size_t n, at[FIELDS_MAX];
};

#define AT(field) offsetof(struct fkt_sa_msg, field)
#define SERVER(NAME) 1, FEDKT__V1__TO_SERVER__BODY_##NAME
#define SITE(NAME) 0, FEDKT__V1__TO_SITE__BODY_##NAME
static const struct row rows[] = {
    [FKT_SA_M_ADVERTISE] = {SERVER(ADVERTISE),
                            &fedkt__v1__advertise__descriptor,
                            4,
                            {AT(advertise.channel_key), AT(advertise.mask_key), AT(advertise.coin),
                             AT(advertise.signature)}},
    [FKT_SA_M_OPEN] = {SERVER(OPEN),
                       &fedkt__v1__open__descriptor,
                       3,
                       {AT(open.attempt), AT(open.scalar), AT(open.next_coin)}},
    [FKT_SA_M_SHARES] = {SERVER(SHARES),
                         &fedkt__v1__shares__descriptor,
                         2,
                         {AT(shares.sealed), AT(shares.self_commitment)}},
    [FKT_SA_M_MASKED] = {SERVER(MASKED), &fedkt__v1__masked__descriptor, 1, {AT(masked.packed)}},
    [FKT_SA_M_CONFIRM] = {SERVER(CONFIRM), &fedkt__v1__confirm__descriptor, 1, {AT(confirm.signature)}},
    [FKT_SA_M_REVEAL] = {SERVER(REVEAL), &fedkt__v1__reveal__descriptor, 1, {AT(reveal.shares)}},
    [FKT_SA_M_LEAVE] = {SERVER(LEAVE), &fedkt__v1__leave__descriptor, 1, {AT(leave.status)}},
    [FKT_SA_M_BEGIN] = {SITE(BEGIN), &fedkt__v1__begin__descriptor, 2, {AT(begin.round), AT(begin.task)}},
    [FKT_SA_M_COIN] = {SITE(COIN),
                       &fedkt__v1__coin__descriptor,
                       4,
                       {AT(coin.attempt), AT(coin.leaves), AT(coin.position), AT(coin.path)}},
    [FKT_SA_M_NEIGHBOURS] = {SITE(NEIGHBOURS),
                             &fedkt__v1__neighbours__descriptor,
                             3,
                             {AT(neighbours.scalar), AT(neighbours.present), AT(neighbours.adverts)}},
    [FKT_SA_M_DELIVER] = {SITE(DELIVER),
                          &fedkt__v1__deliver__descriptor,
                          2,
                          {AT(deliver.delivered), AT(deliver.sealed)}},
    [FKT_SA_M_SURVIVORS] = {SITE(SURVIVORS), &fedkt__v1__survivors__descriptor, 1, {AT(survivors.survivors)}},
    [FKT_SA_M_CONFIRMED] = {SITE(CONFIRMED),
                            &fedkt__v1__confirmed__descriptor,
                            2,
                            {AT(confirmed.present), AT(confirmed.signatures)}},
    [FKT_SA_M_ABORTED] = {SITE(ABORTED), &fedkt__v1__aborted__descriptor, 1, {AT(aborted.status)}},
};
#define KINDS (sizeof rows / sizeof *rows)

union top {
    ProtobufCMessage base;
    Fedkt__V1__ToServer to_server;
    Fedkt__V1__ToSite to_site;
};
union body { /* large enough for any body */
    ProtobufCMessage base;
    Fedkt__V1__Advertise advertise;
    Fedkt__V1__Open open;
    Fedkt__V1__Shares shares;
    Fedkt__V1__Masked masked;
    Fedkt__V1__Confirm confirm;
    Fedkt__V1__Reveal reveal;
    Fedkt__V1__Leave leave;
    Fedkt__V1__Begin begin;
    Fedkt__V1__Coin coin;
    Fedkt__V1__Neighbours neighbours;
    Fedkt__V1__Deliver deliver;
    Fedkt__V1__Survivors survivors;
    Fedkt__V1__Confirmed confirmed;
    Fedkt__V1__Aborted aborted;
};

/* protobuf-c only reads through these pointers; its struct lacks const. */
static ProtobufCBinaryData lend(struct fkt_sa_bytes b)
{
    return (ProtobufCBinaryData){.len = b.n, .data = (uint8_t *)(uintptr_t)b.p};
}

static struct fkt_sa_bytes borrow(const ProtobufCBinaryData *b) { return (struct fkt_sa_bytes){b->data, b->len}; }

/* Copies field i of the body from, and below to, its place in m. */
static void body_from_msg(ProtobufCMessage *body, const struct row *r, const struct fkt_sa_msg *m)
{
    for (size_t i = 0; i < r->n; i++) {
        const ProtobufCFieldDescriptor *f = &r->body->fields[i];
        const void *from = (const char *)m + r->at[i];
        void *to = (char *)body + f->offset;
        if (f->type == PROTOBUF_C_TYPE_BYTES) *(ProtobufCBinaryData *)to = lend(*(const struct fkt_sa_bytes *)from);
        else *(uint32_t *)to = *(const uint32_t *)from;
    }
}

static void msg_from_body(struct fkt_sa_msg *m, const struct row *r, const ProtobufCMessage *body)
{
    for (size_t i = 0; i < r->n; i++) {
        const ProtobufCFieldDescriptor *f = &r->body->fields[i];
        const void *from = (const char *)body + f->offset;
        void *to = (char *)m + r->at[i];
        if (f->type == PROTOBUF_C_TYPE_BYTES) *(struct fkt_sa_bytes *)to = borrow(from);
        else *(uint32_t *)to = *(const uint32_t *)from;
    }
}

struct message {
    union top top;
    union body body;
};

/* Fills l with what protobuf-c needs, borrowing the bytes of m; 0 when the kind is unknown. */
static int assemble(struct message *l, const struct fkt_sa_msg *m)
{
    const struct row *r;
    if (m->kind == FKT_SA_M_NONE || m->kind >= KINDS) return 0;
    r = &rows[m->kind];
    protobuf_c_message_init(r->body, &l->body);
    body_from_msg(&l->body.base, r, m);
    if (r->to_server) {
        fedkt__v1__to_server__init(&l->top.to_server);
        l->top.to_server.session = lend(m->session);
        l->top.to_server.site = m->site;
        l->top.to_server.body_case = r->tag;
        l->top.to_server.advertise = &l->body.advertise;
    } else {
        fedkt__v1__to_site__init(&l->top.to_site);
        l->top.to_site.session = lend(m->session);
        l->top.to_site.body_case = r->tag;
        l->top.to_site.begin = &l->body.begin;
    }
    return 1;
}

const char *fkt_sa_kind_name(enum fkt_sa_kind kind)
{
    static const char *const names[] = {"unreadable", "advertise", "open",   "shares",
                                        "masked",     "confirm",   "reveal", "leave"};
    return kind <= FKT_SA_M_LEAVE ? names[kind] : "";
}

size_t fkt_sa_msg_bytes(const struct fkt_sa_msg *m)
{
    struct message l;
    return assemble(&l, m) ? protobuf_c_message_get_packed_size(&l.top.base) : 0;
}

fkt_status fkt_sa_msg_encode(const struct fkt_sa_msg *m, uint8_t *out, size_t cap, size_t *len)
{
    struct message l;
    size_t need;
    *len = 0;
    if (!assemble(&l, m)) return fkt_fail(FKT_E_ARG, "there is no message of kind %d", (int)m->kind);
    need = protobuf_c_message_get_packed_size(&l.top.base);
    if (need > cap) return fkt_fail(FKT_E_ARG, "a message of %zu bytes does not fit into %zu", need, cap);
    *len = protobuf_c_message_pack(&l.top.base, out);
    return FKT_OK;
}

static int varint(const uint8_t **p, const uint8_t *end, uint64_t *x)
{
    *x = 0;
    for (unsigned shift = 0; shift < 35 && *p < end; shift += 7) {
        uint8_t b = *(*p)++;
        *x |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) return 1;
    }
    return 0;
}

/* 1 when p (n) is a sequence of whole fields, varints or bytes, whose numbers ascend and are below 16; at depth 0 the
 * same must hold inside the bodies, which are the fields from number `body` on. */
static int fields_ascend(const uint8_t *p, size_t n, unsigned body, int depth)
{
    const uint8_t *end = p + n;
    unsigned last = 0;
    while (p < end) {
        unsigned number = *p >> 3, type = *p & 7;
        uint64_t x;
        if (*p++ > 0x7f || number <= last || (type != 0 && type != 2) || !varint(&p, end, &x)) return 0;
        last = number;
        if (type == 0) continue;
        if (x > (uint64_t)(end - p)) return 0;
        if (depth == 0 && number >= body && !fields_ascend(p, (size_t)x, 0, 1)) return 0;
        p += x;
    }
    return 1;
}

static void *get_memory(void *failed, size_t size)
{
    size_t *head = size < SIZE_MAX / 2 ? fkt_malloc_raw(HEAD + size) : NULL;
    if (!head) {
        *(int *)failed = 1;
        return NULL;
    }
    *head = size;
    return (char *)head + HEAD;
}

static void free_memory(void *failed, void *p)
{
    size_t *head = (size_t *)((char *)p - HEAD);
    (void)failed;
    fkt_wipe(head, HEAD + *head);
    fkt_free(head);
}

/* The buffer that protobuf-c packs into: it keeps nothing and compares with the received bytes. Where the two differ is
 * not a secret: both follow from bytes that a sender chose. */
struct comparer {
    ProtobufCBuffer base;
    const uint8_t *want;
    size_t left;
    int same;
};

static void compare(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
    struct comparer *l = (struct comparer *)buffer;
    if (!l->same || len > l->left || (len && memcmp(l->want, data, len) != 0)) {
        l->same = 0;
        return;
    }
    l->want += len;
    l->left -= len;
}

static int canonical(const ProtobufCMessage *top, const ProtobufCMessage *body, const uint8_t *msg, size_t len)
{
    struct comparer l = {.base = {.append = compare}, .want = msg, .left = len, .same = 1};
    if (top->n_unknown_fields || body->n_unknown_fields) return 0; /* protobuf-c would pack them too */
    protobuf_c_message_pack_to_buffer(top, &l.base);
    return l.same && l.left == 0;
}

static enum fkt_sa_kind kind_of(int to_server, uint32_t tag)
{
    for (unsigned k = FKT_SA_M_NONE + 1; k < KINDS; k++)
        if (rows[k].to_server == to_server && rows[k].tag == tag) return (enum fkt_sa_kind)k;
    return FKT_SA_M_NONE;
}

fkt_status fkt_sa_msg_decode(struct fkt_sa_msg *m, int to_server, const uint8_t *msg, size_t len, size_t max)
{
    int failed = 0;
    ProtobufCAllocator memory = {.alloc = get_memory, .free = free_memory, .allocator_data = &failed};
    const ProtobufCMessage *body = NULL;
    union top *top;
    uint32_t tag;
    to_server = to_server != 0;
    memset(m, 0, sizeof *m);
    if (len > max)
        return fkt_fail(FKT_E_PEER_FORMAT, "a message of %zu bytes is longer than any message of this round (%zu)", len,
                        max);
    if (!fields_ascend(msg, len, to_server ? FEDKT__V1__TO_SERVER__BODY_ADVERTISE : FEDKT__V1__TO_SITE__BODY_BEGIN, 0))
        return fkt_fail(FKT_E_PEER_FORMAT, "a message is truncated, or its fields are out of order");
    top = (union top *)protobuf_c_message_unpack(
        to_server ? &fedkt__v1__to_server__descriptor : &fedkt__v1__to_site__descriptor, &memory, len, msg);
    if (!top && failed) return fkt_fail(FKT_E_NOMEM, "out of memory: cannot decode a message of %zu bytes", len);
    if (!top) return fkt_fail(FKT_E_PEER_FORMAT, "a message is not of this protocol");
    m->owner = top;
    tag = to_server ? top->to_server.body_case : top->to_site.body_case;
    m->kind = kind_of(to_server, tag);
    if (m->kind != FKT_SA_M_NONE) body = to_server ? &top->to_server.advertise->base : &top->to_site.begin->base;
    if (!body || !canonical(&top->base, body, msg, len)) {
        fkt_sa_msg_clear(m);
        return fkt_fail(FKT_E_PEER_FORMAT, "a message has no body, or is not in canonical form");
    }
    m->session = borrow(to_server ? &top->to_server.session : &top->to_site.session);
    m->site = to_server ? top->to_server.site : 0;
    msg_from_body(m, &rows[m->kind], body);
    return FKT_OK;
}

void fkt_sa_msg_clear(struct fkt_sa_msg *m)
{
    ProtobufCAllocator memory = {.free = free_memory};
    if (m->owner) protobuf_c_message_free_unpacked(m->owner, &memory);
    memset(m, 0, sizeof *m);
}
