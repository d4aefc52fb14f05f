/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http_client.c - what a server answers a site: a line for each answer, a code and then headers and body as
 * key=value (a key is one character), with blanks between. Whatever the server answers, the site receives only messages
 * that have a round, an index and bytes; requests carry growing numbers; pauses end; a task that is over stays over. */
#include "fuzz_support.h"

#include "base/alloc.h"
#include "net/http_client.h"

struct puppet {
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t after, answers;
    int owes, over;
};

static unsigned wants(void *self)
{
    const struct puppet *p = self;
    return p->over ? FKT_ENDPOINT_ENDED : p->owes ? FKT_ENDPOINT_SEND : FKT_ENDPOINT_RECV;
}

static void has(void *self, uint8_t round[FKT_MAILBOX_ROUND], uint32_t *after)
{
    const struct puppet *p = self;
    memcpy(round, p->round, FKT_MAILBOX_ROUND);
    *after = p->after;
}

static fkt_status send(void *self, uint8_t *out, size_t cap, size_t *len)
{
    const struct puppet *p = self;
    FUZZ_CHECK(p->owes && cap >= 3);
    memcpy(out, "abc", *len = 3);
    return FKT_OK;
}

static fkt_status sent(void *self, int taken)
{
    struct puppet *p = self;
    FUZZ_CHECK(p->owes && (taken == 0 || taken == 1));
    p->owes = 0;
    return FKT_OK;
}

static fkt_status recv(void *self, const struct fkt_message *l)
{
    struct puppet *p = self;
    FUZZ_CHECK(l->stage <= FKT_STAGE_GIVEN_UP);
    if (l->stage >= FKT_STAGE_RELEASED) p->over = 1;
    if (!l->len) return FKT_OK;
    FUZZ_CHECK(l->index > 0 && l->bytes);
    memcpy(p->round, l->round, sizeof p->round);
    p->after = l->index;
    p->owes = l->bytes[0] != 'n';
    return l->bytes[0] == 'x' ? fkt_fail(FKT_E_BUDGET, "enough") : FKT_OK;
}

static fkt_status heard_head(void *self, uint64_t entry, const char *sha256)
{
    (void)self;
    FUZZ_CHECK(entry > 0 && strlen(sha256) == 64 && strspn(sha256, "0123456789abcdef") == 64);
    return FKT_OK;
}

static void take_word(struct fkt_http_client_answer *a, char *word)
{
    const char *value = word + 2;
    if (word[0] == '\0' || word[1] != '=') return;
    switch (word[0]) {
    case 'n': a->nonce = value; break;
    case 'f': a->floor = value; break;
    case 'r': a->round = value; break;
    case 'i': a->index = value; break;
    case 's': a->stage = value; break;
    case 'l': a->lost = value; break;
    case 'a': a->log = value; break;
    case 'w': a->retry_after = value; break;
    case 'y': a->why = value; break;
    case 'b':
        a->body = (const uint8_t *)value;
        a->len = strlen(value);
        break;
    default: break;
    }
}

static void read_answer(struct fkt_http_client_answer *a, char *line)
{
    char *rest = line;
    *a = (struct fkt_http_client_answer){.code = (int)strtol(line, &rest, 10)};
    while ((line = strsep(&rest, " ")) != NULL) take_word(a, line);
}

/* The next request, with the pauses before it. 0: it is over. */
static int ask(struct fkt_http_client *c, uint64_t *now, uint64_t *number)
{
    struct fkt_http_client_request r;
    struct fkt_auth_claim claim;
    enum fkt_http_client_step step;
    uint32_t wait = 0;
    while ((step = fkt_http_client_next(c, *now, (uint32_t)*now * 2654435761U, &r, &wait)) == FKT_HTTP_CLIENT_WAIT) {
        FUZZ_CHECK(wait > 0 && wait < 302000);
        *now += wait;
    }
    if (step == FKT_HTTP_CLIENT_ENDED) return 0;
    FUZZ_CHECK(fkt_auth_read(&claim, r.headers[0] + strlen("Authorization: ")));
    FUZZ_CHECK(claim.sequence > *number && claim.sequence < UINT64_C(1) << 63);
    *number = claim.sequence;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t task[32], secret[64];
    struct puppet p = {0};
    struct fkt_endpoint side = {&p, 64, wants, has, send, sent, recv, heard_head};
    struct fkt_http_client *c = NULL;
    struct fkt_http_client_answer a;
    uint64_t now = 1000, number = 0;
    char *text = NULL, *rest, *line;
    if (fkt_alloc(&text, size + 1) != FKT_OK) return 0;
    memcpy(text, data, size);
    FUZZ_CHECK(fkt_http_client_new(
                   &c, &(struct fkt_http_client_spec){
                           .task = task, .secret = secret, .site_side = &side, .patience_seconds = 600}) == FKT_OK);
    rest = text;
    while ((line = strsep(&rest, "\n")) != NULL && ask(c, &now, &number)) {
        fkt_status st;
        read_answer(&a, line);
        now += 30;
        st = fkt_http_client_answer(c, now, &a);
        FUZZ_CHECK(strlen(fkt_http_client_trouble(c)) < 400);
        if (st == FKT_OK) continue;
        FUZZ_CHECK(fkt_error_text()[0] != '\0' && fkt_http_client_status(c) == st);
        FUZZ_CHECK(!ask(c, &now, &number));
        break;
    }
    fkt_http_client_free(c);
    fkt_free(text);
    return 0;
}
