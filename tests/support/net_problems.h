/* SPDX-License-Identifier: Apache-2.0 */
/* net_problems.h - networks on which a backend is compared with the plain loops of nn/ref/. */
#ifndef FKT_TEST_NET_PROBLEMS_H
#define FKT_TEST_NET_PROBLEMS_H

#include "nn/net.h"

struct net_problem {
    const char *name;
    void (*build)(struct fkt_net *n);
    uint32_t height, width;
};
extern const struct net_problem net_problems[];
extern const int net_problems_count;
const struct net_problem *net_problem(const char *name);

#endif
