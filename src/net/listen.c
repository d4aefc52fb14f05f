/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - binds the socket here, because libmicrohttpd would only report that it did not start. */
#include "net/listen.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* host "" for all addresses. */
static fkt_status split(char host[256], char port[8], const char *where)
{
    const char *colon = strrchr(where, ':'), *start = where;
    size_t n = colon ? (size_t)(colon - where) : 0;
    uint64_t number;
    if (n >= 2 && where[0] == '[' && where[n - 1] == ']') {
        start++;
        n -= 2;
    } else if (colon && memchr(where, ':', n)) {
        colon = NULL; /* an IPv6 address without its brackets */
    }
    if (!colon || n >= 256 || fkt_parse_u64(&number, colon + 1, 65535) != FKT_OK)
        return fkt_fail_hint(FKT_E_ARG, "write ADDRESS:PORT, as in 0.0.0.0:8443, [::]:8443 or 127.0.0.1:0",
                             "'%s' is not an address to listen on", where);
    memcpy(host, start, n);
    host[n] = '\0';
    snprintf(port, 8, "%u", (unsigned)number);
    return FKT_OK;
}

void fkt_listen_peer(uint8_t out[16], const struct sockaddr *a)
{
    memset(out, 0, 16);
    if (a && a->sa_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
    } else if (a && a->sa_family == AF_INET) {
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
    }
}

int fkt_listen_loopback(const uint8_t peer[16])
{
    static const uint8_t mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127}, six[16] = {[15] = 1};
    return memcmp(peer, mapped, sizeof mapped) == 0 || memcmp(peer, six, sizeof six) == 0;
}

static int is_local(const struct sockaddr *a)
{
    uint8_t peer[16];
    fkt_listen_peer(peer, a);
    return fkt_listen_loopback(peer);
}

int fkt_listen_names_here(const char *host)
{
    char name[64];
    struct in_addr four;
    const char *end = host[0] == '[' ? strchr(host, ']') : strchr(host, ':');
    const size_t n = !end ? strlen(host) : (size_t)(end - host) + (*end == ']');
    uint64_t port;
    if (n >= sizeof name || (host[0] == '[' && !end)) return 0;
    if (host[n] && (host[n] != ':' || fkt_parse_u64(&port, host + n + 1, 65535) != FKT_OK)) return 0;
    memcpy(name, host, n);
    name[n] = '\0';
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0) return 1;
    return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

static void describe(struct fkt_listen *out)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN] = "";
    memset(&a, 0, sizeof a);
    (void)getsockname(out->fd, (struct sockaddr *)&a, &len);
    out->local = is_local((struct sockaddr *)&a);
    if (a.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&a;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(out->address, sizeof out->address, "[%s]:%u", host, ntohs(six->sin6_port));
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&a;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(out->address, sizeof out->address, "%s:%u", host, ntohs(four->sin_port));
    }
}

static fkt_status fail_bind(const char *where)
{
    if (errno == EADDRINUSE)
        return fkt_fail_hint(FKT_E_IO,
                             "is another server running? stop it: the task names the port for the sites; "
                             "another port needs a new task, or a forwarder",
                             "cannot listen on '%s': the port is in use", where);
    if (errno == EACCES)
        return fkt_fail_hint(FKT_E_IO, "choose a port above 1023, or give the program CAP_NET_BIND_SERVICE",
                             "cannot listen on '%s': this port is for privileged programs", where);
    if (errno == EADDRNOTAVAIL)
        return fkt_fail_hint(FKT_E_IO, "name an address of this machine, or 0.0.0.0 for all of them",
                             "cannot listen on '%s': this machine does not have that address", where);
    return fkt_fail(FKT_E_IO, "cannot listen on '%s': %s", where, strerror(errno));
}

fkt_status fkt_listen_open(struct fkt_listen *out, const char *where)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[256], port[8];
    const int yes = 1, no = 0;
    fkt_status st = split(host, port, where);
    int e;
    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (st != FKT_OK) return st;
    if (strcasecmp(host, "localhost") == 0)
        snprintf(host, sizeof host, "127.0.0.1"); /* a minimal Debian has no /etc/hosts */
    e = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
    if (e) return fkt_fail(FKT_E_ARG, "cannot listen on '%s': %s", where, gai_strerror(e));
    out->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (out->fd >= 0) {
        (void)setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (found->ai_family == AF_INET6) (void)setsockopt(out->fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    }
    if (out->fd < 0 || bind(out->fd, found->ai_addr, found->ai_addrlen) != 0 || listen(out->fd, BACKLOG) != 0) {
        st = fail_bind(where);
        if (out->fd >= 0) close(out->fd);
        out->fd = -1;
    } else {
        describe(out);
    }
    freeaddrinfo(found);
    return st;
}
