/* SPDX-License-Identifier: Apache-2.0 */
/* sa_watch.c - a world's transcript held against what no honest site may do. */
#include "tests/support/sa_watch.h"

#include "crypto/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void broke(struct sa_watch *v, const char *fmt, ...)
{
    va_list ap;
    if (v->broken[0]) return;
    va_start(ap, fmt);
    vsnprintf(v->broken, sizeof v->broken, fmt, ap);
    va_end(ap);
}

/* ---- what a site draws ---- */

static fkt_status record(void *self, uint8_t *out, size_t len)
{
    struct sa_watched *s = self;
    fkt_status st = s->inner.fill(s->inner.self, out, len);
    if (st != FKT_OK) return st;
    if (s->n_drawn + len > s->cap) {
        size_t cap = 2 * (s->n_drawn + len);
        uint8_t *grown = realloc(s->drawn, cap);
        if (!grown) return FKT_E_NOMEM;
        s->drawn = grown;
        s->cap = cap;
    }
    memcpy(s->drawn + s->n_drawn, out, len);
    s->n_drawn += len;
    return FKT_OK;
}

/* 3.1: channel secret (32 bytes), s (64), u (64), on a sparse graph coins; last, coefficients of s, then of u. */
static void learn_polynomials(struct sa_watch *v, uint32_t site)
{
    struct sa_watched *s = &v->site[site];
    const size_t t = v->world->params.threshold, tail = 2 * (t - 1) * 64;
    const uint8_t *from;
    if (s->n_drawn < 160 + tail) {
        broke(v, "site %u drew %zu bytes, too few for what it sent", site, s->n_drawn);
        return;
    }
    s->poly = malloc(2 * t * 32);
    if (!s->poly) {
        broke(v, "no memory to watch");
        return;
    }
    from = s->drawn + s->n_drawn - tail;
    for (size_t kind = 0; kind < 2; kind++) {
        uint8_t *poly = s->poly + kind * t * 32;
        fkt_scalar_reduce(poly, s->drawn + 32 + 64 * kind);
        for (size_t i = 1; i < t; i++) fkt_scalar_reduce(poly + i * 32, from + 64 * (kind * (t - 1) + i - 1));
    }
}

int sa_watch_share(const struct sa_watch *v, uint32_t owner, unsigned kind, uint32_t holder, uint8_t share[32])
{
    const size_t t = v->world->params.threshold;
    const struct sa_watched *s = &v->site[owner];
    const uint8_t *poly;
    uint8_t x[32] = {0};
    if (!s->poly) return 0;
    poly = s->poly + (kind == SA_U ? t * 32 : 0);
    for (int i = 0; i < 4; i++) x[i] = (uint8_t)((holder + 1) >> (8 * i));
    memcpy(share, poly + (t - 1) * 32, 32);
    for (size_t i = t - 1; i-- > 0;) fkt_scalar_fold(share, poly + i * 32, x, share);
    return 1;
}

/* ---- what a site says ---- */

static void take_reveal(struct sa_watch *v, uint32_t site, struct fkt_sa_bytes shares)
{
    struct sa_watched *s = &v->site[site];
    const uint32_t n = v->world->params.sites;
    uint8_t(*table)[2][32] = malloc(n * sizeof *table);
    uint8_t *dealt = calloc(n, 1);
    if (!s->gave) s->gave = calloc(n, 1);
    if (!table || !dealt || !s->gave) {
        broke(v, "no memory to watch");
        goto out;
    }
    for (uint32_t o = 0; o < n; o++)
        dealt[o] =
            (uint8_t)(sa_watch_share(v, o, SA_U, site, table[o][0]) && sa_watch_share(v, o, SA_S, site, table[o][1]));
    for (size_t at = 0; at + 32 <= shares.n; at += 32) {
        unsigned known = 0;
        for (uint32_t o = 0; o < n; o++) {
            for (unsigned kind = 0; dealt[o] && kind < 2; kind++) {
                if (memcmp(shares.p + at, table[o][kind], 32) != 0) continue;
                s->gave[o] |= (uint8_t)(kind ? SA_S : SA_U);
                known++;
            }
            if (s->gave[o] == (SA_U | SA_S)) broke(v, "site %u revealed both kinds of share of site %u", site, o);
        }
        v->revealed += known;
        if (!known && v->honest_only) broke(v, "site %u revealed a number that is no share", site);
    }
out:
    free(table);
    free(dealt);
}

static void check_ledger(struct sa_watch *v, uint32_t site, enum fkt_sa_kind kind)
{
    const struct sa_site *s = &v->world->site[site];
    if (kind == FKT_SA_M_MASKED && s->reserved != 1) broke(v, "site %u sent its vector before it reserved", site);
    if (kind == FKT_SA_M_MASKED && s->spent != 0) broke(v, "site %u spent before it sent its vector", site);
    if (kind == FKT_SA_M_REVEAL && s->spent != 1) broke(v, "site %u revealed before it spent", site);
    if (kind == FKT_SA_M_REVEAL && s->reserved != 1) broke(v, "site %u revealed and never reserved", site);
}

static void check_order(struct sa_watch *v, uint32_t site, enum fkt_sa_kind kind)
{
    const struct sa_watched *s = &v->site[site];
    const unsigned most = kind == FKT_SA_M_OPEN ? v->world->params.attempts : 1;
    const int failed = fkt_sa_client_state(v->world->site[site].client) == FKT_SA_STATE_FAILED;
    if (s->said[kind] > most) broke(v, "site %u sent message kind %d too often", site, (int)kind);
    if (failed != (kind == FKT_SA_M_LEAVE))
        broke(v, "site %u sent message kind %d, %s", site, (int)kind,
              failed ? "after it failed" : "and had not failed");
    if (s->said[FKT_SA_M_LEAVE] && kind != FKT_SA_M_LEAVE) broke(v, "site %u spoke after its Leave", site);
    for (int later = (int)kind + 1; later < FKT_SA_M_LEAVE; later++)
        if (kind != FKT_SA_M_LEAVE && s->said[later]) broke(v, "site %u went back to message kind %d", site, (int)kind);
}

static void watch_message(struct sa_watch *v, const struct sa_message *message)
{
    struct sa_world *w = v->world;
    struct sa_watched *s = &v->site[message->site];
    const size_t max = fkt_sa_to_server_max(&w->params);
    struct fkt_sa_msg m = {0};
    if (fkt_sa_msg_decode(&m, 1, message->bytes, message->len, max) != FKT_OK) {
        if (!s->corrupt) broke(v, "site %u sent bytes that do not decode", message->site);
        return;
    }
    s->said[m.kind]++;
    if (m.kind == FKT_SA_M_SHARES && !s->poly) learn_polynomials(v, message->site);
    if (!s->corrupt) {
        if (m.site != message->site) broke(v, "site %u calls itself %u", message->site, m.site);
        check_ledger(v, message->site, m.kind);
        check_order(v, message->site, m.kind);
    }
    if (m.kind == FKT_SA_M_REVEAL && !s->corrupt) take_reveal(v, message->site, m.reveal.shares);
    fkt_sa_msg_clear(&m);
}

static void on_message(void *self, struct sa_world *w, struct sa_message *message)
{
    struct sa_watch *v = self;
    if (message->to_server) watch_message(v, message);
    if (v->inner) v->inner(v->inner_self, w, message);
}

/* ---- life ---- */

int sa_watch_init(struct sa_watch *v, struct sa_world *w)
{
    *v = (struct sa_watch){.world = w, .inner = w->hook, .inner_self = w->self};
    v->site = calloc(w->params.sites, sizeof *v->site);
    if (!v->site) return -1;
    for (uint32_t i = 0; i < w->params.sites; i++) {
        v->site[i].inner = w->site[i].entropy;
        w->site[i].entropy = (struct fkt_entropy){record, &v->site[i], 0};
    }
    w->hook = on_message;
    w->self = v;
    return 0;
}

void sa_watch_release(struct sa_watch *v)
{
    for (uint32_t i = 0; v->site && i < v->world->params.sites; i++) {
        v->world->site[i].entropy = v->site[i].inner;
        free(v->site[i].drawn);
        free(v->site[i].poly);
        free(v->site[i].gave);
    }
    free(v->site);
    *v = (struct sa_watch){0};
}

uint32_t sa_watch_known(const struct sa_watch *v, uint32_t owner, unsigned kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->world->params.sites; i++) {
        if (i == owner) continue;
        n += v->site[i].corrupt || (v->site[i].gave && (v->site[i].gave[owner] & kind));
    }
    return n;
}

unsigned sa_watch_leaked(const struct sa_watch *v, uint32_t site)
{
    return v->site[site].said[FKT_SA_M_MASKED] + v->site[site].said[FKT_SA_M_REVEAL];
}
