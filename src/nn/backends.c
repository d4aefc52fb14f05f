/* SPDX-License-Identifier: Apache-2.0 */
/* backends.c - the table of implementations, fastest first. A card's backend is its folder beside onednn/ and a row at
 * the top, with functions that find out whether there is a card. Plain loops (ref/) define the results and come last:
 * every machine can run them. */
#include "nn/backends.h"

#ifdef FEDKT_CUDA
#include "nn/cuda/cards.h"
#endif

#include <stddef.h>
#include <string.h>

static const struct fkt_backend_row table[] = {
#ifdef FEDKT_CUDA
    {.name = "cuda",
     .kind = FKT_DEVICE_CUDA,
     .engine = &fkt_backend_cuda,
     .learner = &fkt_learner_cuda,
     .usable = fkt_cuda_usable,
     .cards = fkt_cuda_count,
     .check = fkt_cuda_check_card,
     .describe = fkt_cuda_describe},
#endif
    {.name = "onednn", .engine = &fkt_backend_onednn, .learner = &fkt_learner_onednn},
    {.name = "ref", .engine = &fkt_backend_ref, .learner = &fkt_learner_ref},
};
enum { ROWS = sizeof table / sizeof *table };

const struct fkt_backend_row *fkt_backend_row(size_t i) { return i < ROWS ? &table[i] : NULL; }

/* Without a name, a row of the processor. */
static int fits(const struct fkt_backend_row *r, const char *name)
{
    if (name ? strcmp(r->name, name) != 0 : r->kind != FKT_DEVICE_CPU) return 0;
    return !r->usable || r->usable();
}

const struct fkt_backend *fkt_backend_pick(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (fits(&table[i], name)) return table[i].engine;
    return NULL;
}

const struct fkt_learner_backend *fkt_learner_pick(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].learner && fits(&table[i], name)) return table[i].learner;
    return NULL;
}

/* A card has been checked by its index. */
static int of(const struct fkt_backend_row *r, struct fkt_device d)
{
    return r->kind == d.kind && (d.kind != FKT_DEVICE_CPU || !r->usable || r->usable());
}

const struct fkt_backend *fkt_backend_for(struct fkt_device d)
{
    for (size_t i = 0; i < ROWS; i++)
        if (of(&table[i], d)) return table[i].engine;
    return NULL;
}

const struct fkt_learner_backend *fkt_learner_for(struct fkt_device d)
{
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].learner && of(&table[i], d)) return table[i].learner;
    return NULL;
}
