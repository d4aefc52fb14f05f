/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the neighbours of a site: all others, or the k/2 nearest on each side of a ring in random order.
 *
 * Source: docs/protocol.md 5, after Bell et al. (CCS 2020), who prove that such a random Harary graph is as good as one
 * with independent edges. The order is a Fisher-Yates shuffle, exactly uniform given uniform words: each draw rejects
 * the few words that would favour small numbers. We differ from Bell et al. in one point: the ring holds the whole
 * roster. A site that never joined keeps its place, so the server cannot move sites by leaving one out.
 *
 * Words come from one ChaCha20 stream. N - 1 words are read at first. About N^2/2^33 draws are rejected (one in two
 * graphs at N = 65,536, never below a thousand); when the words run out, the stream is read again at twice the length.
 * Memory: 8N bytes kept, 4N more during construction. */
#include "secagg/graph.h"

#include "fedkt/advanced/secagg.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"
#include "crypto/stream.h"

#include <string.h>

static uint32_t word(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* 1 when `n` words were enough. */
static int shuffle(uint32_t *ring, uint32_t sites, const uint8_t *words, size_t n)
{
    size_t used = 0;
    for (uint32_t i = 0; i < sites; i++) ring[i] = i;
    for (uint32_t i = sites - 1; i >= 1; i--) {
        const uint32_t m = i + 1, unfair = (UINT32_MAX % m + 1) % m; /* 2^32 mod m */
        uint32_t w, j;
        do {
            if (used == n) return 0;
            w = word(words + 4 * used++);
        } while (w > UINT32_MAX - unfair);
        j = w % m;
        w = ring[i], ring[i] = ring[j], ring[j] = w;
    }
    return 1;
}

static fkt_status order(uint32_t *ring, uint32_t sites, const uint8_t key[32])
{
    struct fkt_stream *stream = NULL;
    uint8_t *words = NULL;
    size_t n = sites - 1;
    fkt_status st;
    int done = 0;
    FKT_TRY(fkt_stream_new(&stream, FKT_KEYSTREAM_CHACHA20));
    for (; !done; n *= 2) {
        fkt_free(words);
        FKT_TRY(fkt_alloc(&words, 4 * n));
        FKT_TRY(fkt_stream_bytes(stream, key, words, 4 * n));
        done = shuffle(ring, sites, words, n);
    }
out:
    fkt_free(words);
    fkt_stream_free(stream);
    return st;
}

fkt_status fkt_sa_graph_make(struct fkt_sa_graph *g, const struct fkt_sa_params *p,
                             const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32])
{
    struct fkt_digest d;
    uint8_t key[32] = {0};
    fkt_status st;
    *g = (struct fkt_sa_graph){.sites = p->sites, .degree = p->degree};
    if (fkt_sa_complete(p)) return FKT_OK;
    fkt_digest_init(&d, "fedkt/1 graph", seed);
    fkt_digest_add(&d, session, FKT_SA_SESSION);
    fkt_digest_end(&d, key);
    FKT_TRY(fkt_alloc(&g->ring, p->sites));
    FKT_TRY(fkt_alloc(&g->place, p->sites));
    FKT_TRY(order(g->ring, p->sites, key));
    for (uint32_t i = 0; i < p->sites; i++) g->place[g->ring[i]] = i;
out:
    fkt_wipe(key, sizeof key);
    if (st != FKT_OK) fkt_sa_graph_clear(g);
    return st;
}

void fkt_sa_graph_clear(struct fkt_sa_graph *g)
{
    fkt_free(g->ring);
    fkt_free(g->place);
    memset(g, 0, sizeof *g);
}

static void sift(uint32_t *a, uint32_t root, uint32_t n)
{
    for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
        uint32_t big = a[root];
        if (child + 1 < n && a[child + 1] > a[child]) child++;
        if (a[child] <= big) return;
        a[root] = a[child], a[child] = big;
    }
}

/* Heapsort: in place, O(n log n) in the worst case; the server runs it for every site. */
static void ascending(uint32_t *a, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) sift(a, i, n);
    for (uint32_t end = n - 1; end > 0; end--) {
        uint32_t top = a[0];
        a[0] = a[end], a[end] = top;
        sift(a, 0, end);
    }
}

void fkt_sa_graph_neighbours(const struct fkt_sa_graph *g, uint32_t site, uint32_t *out)
{
    uint32_t n = 0;
    if (!g->ring) {
        for (uint32_t i = 0; i < g->sites; i++)
            if (i != site) out[n++] = i;
        return;
    }
    for (uint32_t step = 1; step <= g->degree / 2; step++) {
        out[n++] = g->ring[(g->place[site] + step) % g->sites];
        out[n++] = g->ring[(g->place[site] + g->sites - step) % g->sites];
    }
    ascending(out, n);
}

void fkt_sa_graph_witnesses(const struct fkt_sa_graph *g, uint32_t *out)
{
    memcpy(out, g->ring, g->degree * sizeof *out);
    ascending(out, g->degree);
}

int fkt_sa_graph_after(const struct fkt_sa_graph *g, uint32_t site, uint32_t neighbour)
{
    return (g->place[neighbour] + g->sites - g->place[site]) % g->sites <= g->degree / 2;
}
