/* SPDX-License-Identifier: Apache-2.0 */
/* experiments.c - the list of experiments, in the order in which they are shown. */
#include "experiment/list.h"

#include <string.h>

static const struct fkt_experiment *const list[] = {FKT_EXPERIMENTS(FKT_EXPERIMENT_ADDRESS)};

const struct fkt_experiment *fkt_experiment_at(size_t i) { return i < sizeof list / sizeof *list ? list[i] : NULL; }

const struct fkt_experiment *fkt_experiment_find(const char *name)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(list[i]->name, name)) return list[i];
    return NULL;
}

const struct fkt_arm *fkt_experiment_arm(const struct fkt_experiment *e, size_t i)
{
    return i < e->n_arms ? &e->arm[i] : i < e->n_arms + e->n_more ? &e->arm_more[i - e->n_arms] : NULL;
}
