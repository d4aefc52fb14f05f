/* SPDX-License-Identifier: Apache-2.0 */
/* sites.c - crews of sites: processes that receive a message for one of their sites and return its answer.
 *
 *   parent (server)  --[site, length, bytes]-->  crew      length 0: the end, send the costs
 *                    <--[length, bytes]---------           length 0: this site is silent
 *
 * Strictly one answer to each message, so that neither side can block the other. A site's cost is the processor time of
 * its crew between message and answer, minus the time in which its vector is made up. */
#include "bench/sites.h"

#include "fedkt/advanced/secagg.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "crypto/entropy.h"
#include "crypto/sign.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct slot { /* one site of a crew */
    struct fkt_sa_client *client;
    struct fkt_sa_site site;
    struct cli_site_cost cost;
    const struct fkt_sa_params *p;
    double drawing; /* seconds in the vector callback */
};

int64_t cli_bench_number(const struct fkt_sa_params *p, uint32_t i, uint32_t j)
{
    uint64_t x = ((uint64_t)i << 32 | j) * 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9U;
    x ^= x >> 32;
    return (int64_t)(x % (2 * p->bound + 1)) - (int64_t)p->bound;
}

void cli_bench_seed(uint8_t seed[32], uint32_t i)
{
    memset(seed, 0, 32);
    memcpy(seed, "benched site", 12);
    for (int b = 0; b < 4; b++) seed[16 + b] = (uint8_t)(i >> (8 * b));
}

static fkt_status whole(int fd, void *buf, size_t len, int out)
{
    uint8_t *p = buf;
    while (len > 0) {
        ssize_t n = out ? write(fd, p, len) : read(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fkt_fail(FKT_E_IO, "the processes of a benchmark lost their connection");
        p += n;
        len -= (size_t)n;
    }
    return FKT_OK;
}

static fkt_status agree(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status draw(void *self, int64_t *x, uint32_t length)
{
    struct slot *s = self;
    double start = fkt_cpu_now();
    for (uint32_t j = 0; j < length; j++) x[j] = cli_bench_number(s->p, s->cost.site, j);
    s->drawing = fkt_cpu_now() - start;
    return FKT_OK;
}

static fkt_status sit_down(struct slot *s, const struct fkt_sa_params *p, uint32_t site)
{
    uint8_t seed[32], pk[FKT_SIGN_PUBLIC], sk[FKT_SIGN_SECRET];
    cli_bench_seed(seed, site);
    fkt_sign_keypair(pk, sk, seed);
    s->site = (struct fkt_sa_site){agree, draw, agree, s};
    s->cost.site = site;
    s->p = p;
    return fkt_sa_client_new(&s->client, p, site, sk, &s->site, NULL);
}

/* One message in, one answer out. */
static fkt_status answer(struct slot *s, uint8_t *buf, size_t cap, size_t *len, int lost)
{
    double start = fkt_cpu_now();
    fkt_status st;
    s->cost.down += *len;
    FKT_TRY(fkt_sa_client_recv(s->client, buf, *len));
    *len = 0;
    if (lost && fkt_sa_client_state(s->client) >= FKT_SA_STATE_MASK) goto out;
    FKT_TRY(fkt_sa_client_send(s->client, buf, cap, len));
    s->cost.up += *len;
    s->cost.seconds += fkt_cpu_now() - start - s->drawing;
    s->drawing = 0;
out:
    return st;
}

static fkt_status tell_costs(int fd, const struct slot *slots, uint32_t n)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < n && st == FKT_OK; i++) {
        struct cli_site_cost c = slots[i].cost;
        if (fkt_sa_client_state(slots[i].client) != FKT_SA_STATE_DONE) c.seconds = -1;
        st = whole(fd, &c, sizeof c, 1);
    }
    return st;
}

static fkt_status crew_life(int fd, unsigned crew, unsigned crews, const struct fkt_sa_params *p, const uint8_t *lost)
{
    struct slot *slots = NULL;
    uint8_t *buf = NULL;
    size_t up = fkt_sa_to_server_max(p), cap = fkt_sa_to_site_max(p);
    uint32_t n = (p->sites - crew + crews - 1) / crews, head[2], back;
    fkt_status st;
    if (cap < up) cap = up;
    FKT_TRY(fkt_alloc(&slots, n));
    FKT_TRY(fkt_alloc(&buf, cap));
    for (uint32_t i = 0; i < n; i++) FKT_TRY(sit_down(&slots[i], p, crew + i * crews));
    for (;;) {
        size_t len;
        FKT_TRY(whole(fd, head, sizeof head, 0));
        if (head[1] == 0) break;
        len = head[1];
        FKT_TRY(whole(fd, buf, len, 0));
        FKT_TRY(answer(&slots[head[0] / crews], buf, cap, &len, lost[head[0]]));
        back = (uint32_t)len;
        FKT_TRY(whole(fd, &back, sizeof back, 1));
        FKT_TRY(whole(fd, buf, len, 1));
    }
    st = tell_costs(fd, slots, n);
out:
    for (uint32_t i = 0; slots && i < n; i++) fkt_sa_client_free(slots[i].client);
    fkt_free(slots);
    fkt_free(buf);
    return st;
}

fkt_status cli_crews_start(struct cli_crew *crews, unsigned n, const struct fkt_sa_params *p, const uint8_t *lost)
{
    for (unsigned i = 0; i < n; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            return fkt_fail(FKT_E_IO, "no socket pair for a benchmark: %s", strerror(errno));
        crews[i].pid = fork();
        if (crews[i].pid == 0) {
            for (unsigned j = 0; j < i; j++) close(crews[j].fd);
            close(pair[0]);
            _exit(crew_life(pair[1], i, n, p, lost) == FKT_OK ? 0 : 1);
        }
        close(pair[1]);
        crews[i].fd = pair[0];
        crews[i].busy = 0;
        if (crews[i].pid < 0) {
            close(pair[0]);
            return fkt_fail(FKT_E_IO, "no process for a benchmark: %s", strerror(errno));
        }
    }
    return FKT_OK;
}

fkt_status cli_crew_give(struct cli_crew *c, uint32_t site, const uint8_t *msg, size_t len)
{
    uint32_t head[2] = {site, (uint32_t)len};
    fkt_status st;
    FKT_TRY(whole(c->fd, head, sizeof head, 1));
    FKT_TRY(whole(c->fd, (void *)(uintptr_t)msg, len, 1));
    c->busy = 1;
    c->site = site;
out:
    return st;
}

fkt_status cli_crew_take(struct cli_crew *c, uint8_t *msg, size_t cap, size_t *len)
{
    uint32_t n;
    fkt_status st;
    *len = 0;
    c->busy = 0;
    FKT_TRY(whole(c->fd, &n, sizeof n, 0));
    if (n > cap) return fkt_fail(FKT_E_IO, "a site of the benchmark sent %u bytes, more than any message has", n);
    FKT_TRY(whole(c->fd, msg, n, 0));
    *len = n;
out:
    return st;
}

fkt_status cli_crews_end(struct cli_crew *crews, unsigned n, struct cli_site_cost *costs, size_t *n_costs)
{
    uint32_t end[2] = {0, 0};
    fkt_status st = FKT_OK;
    *n_costs = 0;
    for (unsigned i = 0; i < n; i++) {
        struct cli_site_cost c;
        int code;
        FKT_TRY(whole(crews[i].fd, end, sizeof end, 1));
        while (read(crews[i].fd, &c, sizeof c) == sizeof c)
            if (c.seconds >= 0) costs[(*n_costs)++] = c;
        close(crews[i].fd);
        while (waitpid(crews[i].pid, &code, 0) < 0 && errno == EINTR) continue;
        crews[i].pid = 0;
        if (!WIFEXITED(code) || WEXITSTATUS(code) != 0)
            return fkt_fail(FKT_E_IO, "a process of the benchmark's sites failed");
    }
out:
    return st;
}

void cli_crews_kill(struct cli_crew *crews, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (crews[i].pid > 0) {
            close(crews[i].fd);
            kill(crews[i].pid, SIGKILL);
            waitpid(crews[i].pid, NULL, 0);
        }
}
