/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - the limit of open files, shared by the servers of a process.
 *
 *   limit = PROCESS + servers * (SERVER + connections of each)
 *
 * Each connection is a descriptor, and a long poll holds one as long as a site waits. A process without free
 * descriptors accepts no connection and opens no file, a journal neither. So connections are limited to what is left
 * when everything else has what it needs. The soft limit of most systems is 1,024; up to the hard one it is ours to
 * raise. */
#include "net/descriptors.h"

#include <sys/resource.h>

enum {
    PROCESS = 256, /* standard streams, weights, images that are written on all threads */
    SERVER = 32    /* listening socket, epoll and wake-up descriptors, journal: 7 while it waits; the log, files */
};

uint32_t fkt_descriptors_share(uint32_t servers, uint32_t most, uint64_t *limit)
{
    const uint64_t want = PROCESS + (uint64_t)servers * (SERVER + (uint64_t)most);
    uint64_t has = want, each;
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        if (r.rlim_cur < want) { /* RLIM_INFINITY is the largest number */
            const rlim_t before = r.rlim_cur;
            r.rlim_cur = r.rlim_max < want ? r.rlim_max : want;
            if (setrlimit(RLIMIT_NOFILE, &r) != 0) r.rlim_cur = before;
        }
        has = r.rlim_cur;
    }
    if (limit) *limit = has;
    each = servers && has > PROCESS ? (has - PROCESS) / servers : 0;
    each = each > SERVER ? each - SERVER : 0;
    return each < most ? (uint32_t)each : most;
}
