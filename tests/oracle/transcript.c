/* SPDX-License-Identifier: Apache-2.0 */
/* transcript.c - plays seeded rounds with the C code and writes each as a transcript that oracle/secagg.py can verify.
 *
 * Usage: transcript FOLDER      writes FOLDER/<name>.json for each round of the table below and prints their names
 *
 * Answers reach the server in an order drawn from the seed. A site is lost by silence, by the transport or by a Leave,
 * in any phase. Exit status 0 unless something went wrong that is no part of the round. */
#include "fedkt/advanced/secagg.h"

#include "crypto/entropy.h"
#include "crypto/sign.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 24, LENGTH = 9, LOSSES = 4, MESSAGE = 1 << 14 };
enum how { STAYS = 0, SILENT, CUT_OFF, LEAVES, LAST_WORD /* cut off once it has said it */ };

struct loss {
    enum fkt_sa_state phase;
    uint32_t throw_number; /* COIN only */
    uint32_t site;
    enum how how;
};

static const struct plan {
    const char *name;
    uint32_t sites, dropped, corrupt, degree, threshold, attempts, bits;
    enum fkt_sa_keystream keystream;
    uint64_t seed;
    struct loss loss[LOSSES];
} plans[] = {
    /* clang-format off */
    {"complete", 3, 0, 0, 2, 2, 1, 8, FKT_SA_KEYSTREAM_CHACHA20, 1, {{0}}},
    {"complete_mask", 7, 2, 1, 6, 4, 1, 20, FKT_SA_KEYSTREAM_AES_256_CTR, 2, {{FKT_SA_STATE_MASK, 0, 3, SILENT}}},
    {"complete_each", 10, 3, 1, 9, 6, 1, 32, FKT_SA_KEYSTREAM_CHACHA20, 3,
     {{FKT_SA_STATE_ADVERTISE, 0, 0, SILENT}, {FKT_SA_STATE_SHARE, 0, 9, CUT_OFF}, {FKT_SA_STATE_MASK, 0, 4, LEAVES}}},
    {"complete_late", 9, 2, 1, 8, 6, 1, 61, FKT_SA_KEYSTREAM_AES_256_CTR, 4,
     {{FKT_SA_STATE_CONFIRM, 0, 8, SILENT}, {FKT_SA_STATE_REVEAL, 0, 1, CUT_OFF}}},
    {"complete_words", 12, 4, 0, 11, 6, 1, 32, FKT_SA_KEYSTREAM_CHACHA20, 10,
     {{FKT_SA_STATE_ADVERTISE, 0, 1, LAST_WORD}, {FKT_SA_STATE_SHARE, 0, 2, LAST_WORD},
      {FKT_SA_STATE_MASK, 0, 3, LAST_WORD},
      {FKT_SA_STATE_CONFIRM, 0, 4, LAST_WORD}}},
    {"complete_no_more", 6, 1, 0, 5, 3, 1, 12, FKT_SA_KEYSTREAM_AES_256_CTR, 15,
     {{FKT_SA_STATE_ADVERTISE, 0, 1, LAST_WORD}, {FKT_SA_STATE_ADVERTISE, 0, 2, LAST_WORD}}},
    {"complete_no_shares", 6, 1, 0, 5, 3, 1, 12, FKT_SA_KEYSTREAM_AES_256_CTR, 16,
     {{FKT_SA_STATE_SHARE, 0, 1, LAST_WORD}, {FKT_SA_STATE_SHARE, 0, 2, LAST_WORD}}},
    {"complete_no_signs", 6, 1, 0, 5, 3, 1, 12, FKT_SA_KEYSTREAM_AES_256_CTR, 17,
     {{FKT_SA_STATE_MASK, 0, 1, LAST_WORD}, {FKT_SA_STATE_MASK, 0, 2, LAST_WORD}}},
    {"complete_no_shown", 6, 1, 0, 5, 3, 1, 12, FKT_SA_KEYSTREAM_AES_256_CTR, 18,
     {{FKT_SA_STATE_CONFIRM, 0, 1, LAST_WORD}, {FKT_SA_STATE_CONFIRM, 0, 2, LAST_WORD}}},
    {"complete_too_few", 5, 1, 0, 4, 3, 1, 16, FKT_SA_KEYSTREAM_CHACHA20, 5,
     {{FKT_SA_STATE_SHARE, 0, 1, SILENT}, {FKT_SA_STATE_MASK, 0, 2, SILENT}}},
    {"sparse", 16, 2, 2, 8, 5, 1, 33, FKT_SA_KEYSTREAM_CHACHA20, 6, {{0}}},
    {"sparse_throws", 20, 4, 2, 10, 6, 4, 40, FKT_SA_KEYSTREAM_AES_256_CTR, 7,
     {{FKT_SA_STATE_COIN, 1, 3, SILENT}, {FKT_SA_STATE_COIN, 2, 17, LEAVES}, {FKT_SA_STATE_MASK, 0, 12, SILENT}}},
    {"sparse_each", 24, 4, 2, 12, 7, 2, 62, FKT_SA_KEYSTREAM_CHACHA20, 8,
     {{FKT_SA_STATE_ADVERTISE, 0, 5, CUT_OFF}, {FKT_SA_STATE_SHARE, 0, 6, SILENT}, {FKT_SA_STATE_MASK, 0, 7, CUT_OFF},
      {FKT_SA_STATE_REVEAL, 0, 8, SILENT}}},
    {"sparse_words", 20, 4, 1, 12, 7, 3, 32, FKT_SA_KEYSTREAM_AES_256_CTR, 11,
     {{FKT_SA_STATE_COIN, 1, 2, LAST_WORD}, {FKT_SA_STATE_COIN, 2, 7, SILENT}, {FKT_SA_STATE_MASK, 0, 3, LAST_WORD},
      {FKT_SA_STATE_REVEAL, 0, 4, LAST_WORD}}},
    {"sparse_thin", 14, 4, 1, 4, 3, 1, 32, FKT_SA_KEYSTREAM_CHACHA20, 12,
     {{FKT_SA_STATE_MASK, 0, 2, SILENT}, {FKT_SA_STATE_MASK, 0, 3, SILENT}}},
    {"sparse_thinner", 14, 4, 1, 4, 3, 1, 32, FKT_SA_KEYSTREAM_CHACHA20, 13,
     {{FKT_SA_STATE_SHARE, 0, 2, SILENT}, {FKT_SA_STATE_SHARE, 0, 9, SILENT}, {FKT_SA_STATE_CONFIRM, 0, 5, SILENT}}},
    {"sparse_thinnest", 14, 4, 1, 4, 3, 1, 32, FKT_SA_KEYSTREAM_CHACHA20, 14,
     {{FKT_SA_STATE_ADVERTISE, 0, 2, SILENT}, {FKT_SA_STATE_ADVERTISE, 0, 9, SILENT}}},
    {"sparse_no_coin", 16, 4, 1, 8, 5, 2, 32, FKT_SA_KEYSTREAM_CHACHA20, 9,
     {{FKT_SA_STATE_COIN, 1, 2, SILENT}, {FKT_SA_STATE_COIN, 2, 3, SILENT}}},
    /* clang-format on */
};

struct site {
    struct fkt_sa_client *client;
    struct fkt_sa_site doors;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    int64_t x[LENGTH];
    uint8_t seed[FKT_SIGN_SEED], secret[FKT_SIGN_SECRET];
    uint8_t answer[MESSAGE];
    size_t len; /* of the answer that the server has not got */
    int gone;
};

struct play {
    const struct plan *plan;
    struct fkt_sa_params p;
    uint8_t roster[SITES][FKT_SA_KEY], round[FKT_SA_ROUND];
    struct site site[SITES];
    struct fkt_sa_server *server;
    struct fkt_entropy_seeded order;
    struct fkt_entropy draws;
    json_t *events;
};

static void must(fkt_status st, const char *what)
{
    if (st == FKT_OK) return;
    fprintf(stderr, "transcript: %s: %s\n", what, fkt_error_text());
    exit(1);
}

static uint64_t draw(struct play *w)
{
    uint64_t x = 0;
    must(w->draws.fill(w->draws.self, (uint8_t *)&x, 7), "entropy");
    return x;
}

static json_t *hex(const uint8_t *bytes, size_t n)
{
    char *text = malloc(2 * n + 1);
    json_t *j;
    if (!text) exit(1);
    for (size_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * n] = 0;
    j = json_string(text);
    free(text);
    return j;
}

static void note(struct play *w, const char *what, uint32_t site, const uint8_t *bytes, size_t n)
{
    json_t *e = json_pack("{s:i}", what, (int)site);
    if (bytes) json_object_set_new(e, "bytes", hex(bytes, n));
    json_array_append_new(w->events, e);
}

static fkt_status yes(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    memcpy(x, ((const struct site *)self)->x, length * sizeof *x);
    return FKT_OK;
}

static void set_up(struct play *w, const struct plan *plan)
{
    memset(w, 0, sizeof *w);
    w->plan = plan;
    w->events = json_array();
    w->p = (struct fkt_sa_params){.sites = plan->sites,
                                  .dropped = plan->dropped,
                                  .corrupt = plan->corrupt,
                                  .degree = plan->degree,
                                  .threshold = plan->threshold,
                                  .attempts = plan->attempts,
                                  .bits = plan->bits,
                                  .length = LENGTH,
                                  .keystream = plan->keystream};
    w->p.bound = ((UINT64_C(1) << (plan->bits - 1)) - 1) / plan->sites;
    w->p.roster = w->roster[0];
    fkt_entropy_seeded_init(&w->order, plan->seed, UINT64_MAX);
    fkt_entropy_seeded(&w->draws, &w->order);
    must(w->draws.fill(w->draws.self, w->p.task, sizeof w->p.task), "entropy");
    must(w->draws.fill(w->draws.self, w->round, sizeof w->round), "entropy");
    for (uint32_t i = 0; i < plan->sites; i++) {
        struct site *s = &w->site[i];
        must(w->draws.fill(w->draws.self, s->seed, sizeof s->seed), "entropy");
        fkt_sign_keypair(w->roster[i], s->secret, s->seed);
        for (int j = 0; j < LENGTH; j++) s->x[j] = (int64_t)(draw(w) % (2 * w->p.bound + 1)) - (int64_t)w->p.bound;
        s->x[i % LENGTH] = i % 2 ? (int64_t)w->p.bound : -(int64_t)w->p.bound;
        fkt_entropy_seeded_init(&s->seeded, plan->seed, i);
        fkt_entropy_seeded(&s->entropy, &s->seeded);
        s->doors = (struct fkt_sa_site){yes, vector, yes, s};
    }
    for (uint32_t i = 0; i < plan->sites; i++)
        must(fkt_sa_client_new(&w->site[i].client, &w->p, i, w->site[i].secret, &w->site[i].doors, &w->site[i].entropy),
             plan->name);
    must(fkt_sa_server_new(&w->server, &w->p, w->round, 0), plan->name);
}

/* Everything that the server has to say, straight to the sites; their answers wait in site.answer. */
static size_t tell(struct play *w)
{
    uint8_t msg[MESSAGE];
    size_t told = 0;
    for (;; told++) {
        struct site *s;
        fkt_status st;
        uint32_t to;
        size_t len;
        must(fkt_sa_server_next(w->server, &to, msg, sizeof msg, &len), "next");
        if (len == 0) return told;
        note(w, "to", to, msg, len);
        s = &w->site[to];
        st = fkt_sa_client_recv(s->client, msg, len); /* one with too few others about it leaves */
        if (st != FKT_OK && st != FKT_E_TOO_FEW && fkt_sa_server_state(w->server) != FKT_SA_STATE_FAILED)
            must(st, "a site refuses");
        if (fkt_sa_client_wants(s->client) & FKT_SA_SEND)
            must(fkt_sa_client_send(s->client, s->answer, sizeof s->answer, &s->len), "send");
    }
}

static enum how fate(const struct play *w, uint32_t site)
{
    const enum fkt_sa_state phase = fkt_sa_server_state(w->server);
    struct fkt_sa_census census;
    fkt_sa_server_census(w->server, &census);
    for (int i = 0; i < LOSSES; i++) {
        const struct loss *l = &w->plan->loss[i];
        if (l->how != STAYS && l->site == site && l->phase == phase &&
            (phase != FKT_SA_STATE_COIN || l->throw_number == census.throws))
            return l->how;
    }
    return STAYS;
}

/* A message may be the one that ends the round. */
static void say(struct play *w, uint32_t i)
{
    const struct site *s = &w->site[i];
    fkt_status st;
    note(w, "from", i, s->answer, s->len);
    st = fkt_sa_server_recv(w->server, i, s->answer, s->len);
    if (fkt_sa_server_state(w->server) != FKT_SA_STATE_FAILED) must(st, "the server refuses");
}

static void cut_off(struct play *w, uint32_t i)
{
    note(w, "lost", i, NULL, 0);
    if (fkt_sa_server_lost(w->server, i) != FKT_OK && fkt_sa_server_state(w->server) != FKT_SA_STATE_FAILED) exit(1);
    w->site[i].gone = 1;
}

static void hand_over(struct play *w, uint32_t i)
{
    struct site *s = &w->site[i];
    switch (s->gone ? SILENT : fate(w, i)) {
    case STAYS: say(w, i); break;
    case LEAVES: { /* nonsense from the server, as far as this site can tell */
        static const uint8_t nonsense[] = {0xff};
        if (fkt_sa_client_recv(s->client, nonsense, sizeof nonsense) == FKT_OK) exit(1);
        must(fkt_sa_client_send(s->client, s->answer, sizeof s->answer, &s->len), "leave");
        say(w, i);
        s->gone = 1;
        break;
    }
    case LAST_WORD:
        say(w, i);
        cut_off(w, i);
        break;
    case CUT_OFF: cut_off(w, i); break;
    case SILENT: s->gone = 1; break;
    }
    s->len = 0;
}

static int running(const struct play *w)
{
    const enum fkt_sa_state s = fkt_sa_server_state(w->server);
    return s != FKT_SA_STATE_UNMASK && s != FKT_SA_STATE_FAILED;
}

static void run(struct play *w)
{
    while (running(w)) {
        const size_t told = tell(w);
        uint32_t waiting[SITES], n = 0;
        for (uint32_t i = 0; i < w->p.sites; i++)
            if (w->site[i].len) waiting[n++] = i;
        if (told == 0 && n == 0) {
            json_array_append_new(w->events, json_pack("{s:b}", "close", 1));
            if (fkt_sa_server_close(w->server) != FKT_OK && running(w)) must(fkt_sa_server_close(w->server), "close");
        }
        while (n > 0 && running(w)) {
            const uint32_t pick = (uint32_t)(draw(w) % n), i = waiting[pick];
            waiting[pick] = waiting[--n];
            hand_over(w, i);
        }
    }
    tell(w);
}

static json_t *secrets(const struct play *w)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < w->p.sites; i++) {
        json_t *x = json_array(), *s = json_object();
        for (int j = 0; j < LENGTH; j++) json_array_append_new(x, json_integer(w->site[i].x[j]));
        json_object_set_new(s, "signing_seed", hex(w->site[i].seed, FKT_SIGN_SEED));
        json_object_set_new(s, "entropy", json_pack("[I,I]", (json_int_t)w->plan->seed, (json_int_t)i));
        json_object_set_new(s, "vector", x);
        json_array_append_new(all, s);
    }
    return all;
}

static json_t *params(const struct play *w)
{
    json_t *roster = json_array(), *j;
    for (uint32_t i = 0; i < w->p.sites; i++) json_array_append_new(roster, hex(w->roster[i], FKT_SA_KEY));
    j = json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:s}", "sites", (int)w->p.sites, "dropped", (int)w->p.dropped,
                  "corrupt", (int)w->p.corrupt, "degree", (int)w->p.degree, "threshold", (int)w->p.threshold,
                  "attempts", (int)w->p.attempts, "length", (int)w->p.length, "bits", (int)w->p.bits, "bound",
                  (json_int_t)w->p.bound, "keystream",
                  w->p.keystream == FKT_SA_KEYSTREAM_CHACHA20 ? "chacha20" : "aes-256-ctr");
    json_object_set_new(j, "task", hex(w->p.task, sizeof w->p.task));
    json_object_set_new(j, "roster", roster);
    return j;
}

static json_t *transcript(struct play *w)
{
    json_t *t = json_object();
    json_object_set_new(t, "params", params(w));
    json_object_set_new(t, "round", hex(w->round, sizeof w->round));
    json_object_set_new(t, "secrets", secrets(w));
    json_object_set(t, "events", w->events);
    if (fkt_sa_server_state(w->server) == FKT_SA_STATE_UNMASK) {
        const int64_t *total;
        const uint8_t *survivors;
        json_t *sum = json_array(), *who = json_array();
        must(fkt_sa_server_unmask(w->server), "unmask");
        must(fkt_sa_server_total(w->server, &total, &survivors), "total");
        for (int j = 0; j < LENGTH; j++) json_array_append_new(sum, json_integer(total[j]));
        for (uint32_t i = 0; i < w->p.sites; i++)
            if (survivors[i]) json_array_append_new(who, json_integer(i));
        json_object_set_new(t, "survivors", who);
        json_object_set_new(t, "total", sum);
    } else {
        json_object_set_new(t, "failed", json_true());
    }
    return t;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: transcript FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        static struct play w;
        char path[512];
        json_t *t;
        set_up(&w, &plans[i]);
        run(&w);
        t = transcript(&w);
        snprintf(path, sizeof path, "%s/%s.json", argv[1], plans[i].name);
        if (json_dump_file(t, path, JSON_INDENT(0) | JSON_COMPACT) != 0) return 1;
        printf("%s\n", path);
        json_decref(t);
        json_decref(w.events);
        for (uint32_t k = 0; k < w.p.sites; k++) fkt_sa_client_free(w.site[k].client);
        fkt_sa_server_free(w.server);
    }
    return 0;
}
