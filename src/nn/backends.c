/* SPDX-License-Identifier: Apache-2.0 */
/* backends.c - the table of implementations, fastest first. A GPU backend is its folder beside onednn/ and one row at
 * the top, with a function that finds out whether there is a device. Plain loops (ref/) define the results and come
 * last: every machine can run them. */
#include "nn/backends.h"

#include <stddef.h>
#include <string.h>

static const struct fkt_backend_row table[] = {
    {"onednn", &fkt_backend_onednn, &fkt_learner_onednn, NULL},
    {"ref", &fkt_backend_ref, &fkt_learner_ref, NULL},
};

const struct fkt_backend_row *fkt_backend_row(size_t i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

static int fits(const struct fkt_backend_row *r, const char *name)
{
    return (!name || !strcmp(r->name, name)) && (!r->usable || r->usable());
}

const struct fkt_backend *fkt_backend_pick(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (fits(&table[i], name)) return table[i].engine;
    return NULL;
}

const struct fkt_learner_backend *fkt_learner_pick(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].learner && fits(&table[i], name)) return table[i].learner;
    return NULL;
}
