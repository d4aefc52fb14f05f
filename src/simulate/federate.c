/* SPDX-License-Identifier: Apache-2.0 */
/* federate.c - a whole round of secure aggregation in one process, with the protocol code of a real one.
 *
 *   server --next--> messages to some sites --in parallel--> recv, send --in sequence--> server
 *                    (lost sites do not receive theirs)                                 ... until it has all
 *   server in UNMASK --lanes--> total of the survivors
 *
 * This is the transport that secagg.h leaves out, without a network: bytes are copied between client and server
 * objects. Only a few messages exist at a time, so memory is a few vectors for any number of sites, and the sites'
 * states (keys and key shares, some kilobytes each). A site's vector is made when it is needed: its exact moments are
 * requested, its noise share is added (module privacy), and the sum is masked.
 *
 * All parties are honest. A site that ends with another error than "too few are left" has found a bug or an error in
 * its data, and the round fails with its message. With a seed every site draws from its own streams, so neither
 * threads nor lost sites change what it sends. */
#include "fedkt/advanced/federation.h"

#include "pipeline/contribution.h"
#include "task/federation.h"

#include "pipeline/publish.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "base/clock.h"
#include "base/meter.h"
#include "base/threads.h"
#include "crypto/entropy.h"
#include "secagg/params.h"

#include <string.h>
#include <time.h>

enum { MAIL_PER_THREAD = 4, CLOSES_MAX = 64 };

struct hall;
struct slot { /* a site, as the round sees it */
    struct hall *hall;
    uint32_t index;
    struct fkt_sa_client *client;
    struct fkt_sa_site brings;
    struct fkt_entropy keys, noise;
    enum fkt_sa_state gone; /* lost from this phase on; FKT_SA_STATE_BEGIN: it stays */
    int missed;             /* 1: it did not answer */
    uint64_t up, down;
};

struct mail {
    uint32_t to;
    uint8_t *in, *out;
    size_t in_len, out_len;
};

struct hall {
    const struct fkt_federate_spec *spec;
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    struct fkt_sa_server *server;
    struct slot *slot;                 /* (sites) */
    struct fkt_entropy_seeded *seeded; /* (sites, 2), only with a seed */
    struct mail *mail;                 /* (cap) */
    size_t n, cap, in_max, out_max;
    unsigned threads;
    struct fkt_meter meter;
    uint32_t lost[FKT_SA_STATE_REVEAL + 1];
    double cpu_server; /* of the server's calls so far */
};

static double cpu_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a site's vector ---- */

static fkt_status no_ledger(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    struct slot *s = self;
    const struct fkt_federate_spec *spec = s->hall->spec;
    int64_t *exact = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&exact, length));
    FKT_TRY(spec->moments(spec->self, s->index, exact));
    FKT_TRY(fkt_contribution_make(x, exact, spec->task, &s->hall->shares, &s->noise));
out:
    fkt_free_secret(exact);
    return st;
}

/* ---- set-up ---- */

static void entropy_of(struct fkt_entropy *e, struct fkt_entropy_seeded *own, const uint64_t *seed, uint64_t stream)
{
    fkt_entropy_os(e);
    if (!seed) return;
    fkt_entropy_seeded_init(own, *seed, stream);
    fkt_entropy_seeded(e, own);
}

static fkt_status slot_all(struct hall *h)
{
    const struct fkt_federate_spec *spec = h->spec;
    const uint32_t n = h->params.sites;
    const uint64_t *seed = spec->insecure_seed;
    fkt_status st;
    FKT_TRY(fkt_alloc(&h->slot, n));
    if (seed) FKT_TRY(fkt_alloc(&h->seeded, 2 * (size_t)n));
    for (size_t i = 0; i < spec->n_lost; i++) {
        const struct fkt_federate_loss *l = &spec->lost[i];
        if (l->site >= n || l->phase < FKT_SA_STATE_ADVERTISE || l->phase > FKT_SA_STATE_REVEAL ||
            h->slot[l->site].gone) {
            st = fkt_fail(FKT_E_ARG, "site %u cannot be lost in phase '%s'", l->site, fkt_sa_state_name(l->phase));
            goto out;
        }
        h->slot[l->site].gone = l->phase;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct slot *s = &h->slot[i];
        s->hall = h;
        s->index = i;
        s->brings = (struct fkt_sa_site){no_ledger, vector, no_ledger, s};
        entropy_of(&s->keys, seed ? &h->seeded[2 * (size_t)i] : NULL, seed, FKT_STREAM_KEYS(i));
        entropy_of(&s->noise, seed ? &h->seeded[2 * (size_t)i + 1] : NULL, seed, FKT_STREAM_NOISE(i));
        FKT_TRY(fkt_sa_client_new(&s->client, &h->params, i, spec->secrets + (size_t)i * FKT_SA_SECRET, &s->brings,
                                  &s->keys));
    }
out:
    return st;
}

static fkt_status open_server(struct hall *h)
{
    struct fkt_entropy_seeded own;
    struct fkt_entropy entropy;
    uint8_t round[FKT_SA_ROUND];
    fkt_status st;
    entropy_of(&entropy, &own, h->spec->insecure_seed, FKT_STREAM_ROUND);
    FKT_TRY(entropy.fill(entropy.self, round, sizeof round));
    FKT_TRY(fkt_sa_server_new(&h->server, &h->params, round, 0));
out:
    return st;
}

static fkt_status open_hall(struct hall *h, const struct fkt_federate_spec *spec)
{
    uint32_t phases;
    fkt_status st;
    h->spec = spec;
    FKT_TRY(fkt_federation_open(spec->task, &h->params, &h->shares));
    h->threads = spec->threads ? spec->threads : fkt_cpu_count();
    h->cap = (size_t)h->threads * MAIL_PER_THREAD;
    if (h->cap > h->params.sites) h->cap = h->params.sites;
    h->in_max = fkt_sa_to_site_max(&h->params);
    h->out_max = fkt_sa_to_server_max(&h->params);
    FKT_TRY(fkt_alloc(&h->mail, h->cap));
    for (size_t i = 0; i < h->cap; i++) {
        FKT_TRY(fkt_alloc(&h->mail[i].in, h->in_max));
        FKT_TRY(fkt_alloc(&h->mail[i].out, h->out_max));
    }
    phases = fkt_sa_complete(&h->params) ? 5 : 6; /* the coin is for sparse graphs */
    h->meter.total = (uint64_t)phases * h->params.sites;
    FKT_TRY(slot_all(h));
    FKT_TRY(open_server(h));
out:
    return st;
}

static void close_hall(struct hall *h)
{
    for (uint32_t i = 0; h->slot && i < h->params.sites; i++) fkt_sa_client_free(h->slot[i].client);
    for (size_t i = 0; h->mail && i < h->cap; i++) {
        fkt_free(h->mail[i].in);
        fkt_free(h->mail[i].out);
    }
    fkt_sa_server_free(h->server);
    if (h->seeded) fkt_wipe(h->seeded, 2 * (size_t)h->params.sites * sizeof *h->seeded);
    fkt_free(h->seeded);
    fkt_free(h->slot);
    fkt_free(h->mail);
    fkt_meter_clear(&h->meter);
}

/* ---- messages ---- */

/* Is the site lost in this phase? Counts a site once, when it is first missing. */
static int is_gone(struct hall *h, struct slot *s)
{
    enum fkt_sa_state phase = fkt_sa_server_state(h->server);
    if (phase < FKT_SA_STATE_ADVERTISE) phase = FKT_SA_STATE_ADVERTISE;
    if (s->gone == FKT_SA_STATE_BEGIN || phase < s->gone) return 0;
    if (!s->missed && phase <= FKT_SA_STATE_REVEAL) h->lost[phase]++;
    s->missed = 1;
    return 1;
}

static fkt_status collect(struct hall *h)
{
    const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    fkt_status st = FKT_OK;
    h->n = 0;
    while (h->n < h->cap) {
        struct mail *m = &h->mail[h->n];
        m->out_len = 0;
        FKT_TRY(fkt_sa_server_next(h->server, &m->to, m->in, h->in_max, &m->in_len));
        if (!m->in_len) break;
        FKT_TRY(fkt_meter_add(&h->meter, 1));
        if (!is_gone(h, &h->slot[m->to])) h->n++;
    }
out:
    h->cpu_server += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    return st;
}

/* The server takes the answers of the last messages. */
static fkt_status take_answers(struct hall *h)
{
    const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < h->n && st == FKT_OK; i++)
        if (h->mail[i].out_len) st = fkt_sa_server_recv(h->server, h->mail[i].to, h->mail[i].out, h->mail[i].out_len);
    h->cpu_server += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    return st;
}

/* A site receives its message and sends the answer. */
static fkt_status answer(void *ctx, size_t item, unsigned worker)
{
    struct hall *h = ctx;
    struct mail *m = &h->mail[item];
    struct slot *s = &h->slot[m->to];
    fkt_status st = fkt_sa_client_recv(s->client, m->in, m->in_len);
    (void)worker;
    s->down += m->in_len;
    if (st != FKT_OK && st != FKT_E_TOO_FEW) return fkt_fail_in(st, "site %u", m->to);
    if (!(fkt_sa_client_wants(s->client) & FKT_SA_SEND)) return FKT_OK;
    st = fkt_sa_client_send(s->client, m->out, h->out_max, &m->out_len);
    s->up += m->out_len;
    return fkt_fail_in(st, "site %u", m->to);
}

static fkt_status converse(struct hall *h)
{
    int closes = 0;
    fkt_status st = FKT_OK;
    while (fkt_sa_server_state(h->server) < FKT_SA_STATE_UNMASK) {
        FKT_TRY(collect(h));
        if (h->n) {
            closes = 0;
            FKT_TRY(fkt_parallel(h->threads, h->n, answer, h, NULL, "aggregating"));
            FKT_TRY(take_answers(h));
        } else if (fkt_sa_server_state(h->server) < FKT_SA_STATE_UNMASK) { /* all present sites have answered */
            if (closes++ == CLOSES_MAX) {
                st = fkt_fail(FKT_E_STATE, "the round makes no progress in phase '%s'",
                              fkt_sa_state_name(fkt_sa_server_state(h->server)));
                goto out;
            }
            FKT_TRY(fkt_sa_server_close(h->server));
        }
    }
    if (fkt_sa_server_state(h->server) == FKT_SA_STATE_FAILED)
        st = fkt_fail(FKT_E_TOO_FEW, "the round failed: too few of %u sites were left", h->params.sites);
out:
    return st;
}

static fkt_status report(struct fkt_federate_result *out, const struct hall *h)
{
    const uint32_t n = h->params.sites, length = h->params.length;
    const int64_t *total;
    const uint8_t *survivors;
    struct fkt_sa_census census;
    uint64_t up = 0, down = 0;
    fkt_status st;
    FKT_TRY(fkt_sa_server_total(h->server, &total, &survivors));
    FKT_TRY(fkt_alloc(&out->total, length));
    FKT_TRY(fkt_alloc(&out->survived, n));
    memcpy(out->total, total, length * sizeof *total);
    memcpy(out->survived, survivors, n);
    for (uint32_t i = 0; i < n; i++)
        if (survivors[i]) {
            out->survivors++;
            up += h->slot[i].up;
            down += h->slot[i].down;
        }
    fkt_sa_server_census(h->server, &census);
    out->throws = census.throws;
    out->packed = fkt_sa_packed(length, h->params.bits);
    out->up = out->survivors ? up / out->survivors : 0;
    out->down = out->survivors ? down / out->survivors : 0;
    memcpy(out->lost, h->lost, sizeof out->lost);
out:
    return st;
}

fkt_status fkt_federate(struct fkt_federate_result *out, const struct fkt_federate_spec *spec)
{
    struct hall h = {0};
    double start = fkt_now(), cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), spoken, cpu_spoken;
    fkt_status st;
    memset(out, 0, sizeof *out);
    fkt_meter_init(&h.meter, spec->progress, "aggregating", 0);
    FKT_TRY(open_hall(&h, spec));
    FKT_TRY(converse(&h));
    spoken = fkt_now();
    cpu_spoken = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    FKT_TRY(fkt_unmask(h.server, h.threads, spec->progress));
    FKT_TRY(report(out, &h));
    out->seconds = fkt_now() - start;
    out->seconds_unmask = fkt_now() - spoken;
    out->cpu_sites = cpu_spoken - cpu - h.cpu_server;
    out->cpu_server = h.cpu_server + cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_spoken;
out:
    close_hall(&h);
    if (st != FKT_OK) fkt_federate_clear(out);
    return st;
}

void fkt_federate_clear(struct fkt_federate_result *r)
{
    fkt_free_secret(r->total); /* exact if the noise is central */
    fkt_free(r->survived);
    memset(r, 0, sizeof *r);
}
