/* SPDX-License-Identifier: Apache-2.0 */
/* summary_moments.c - are the exact moments of an arm the same in all cells of a panel?
 *
 * They do not depend on partition, number of sites or seed, so one machine gives one hash. Networks of another machine
 * may round in another way (docs/method.md, section 1.2): hashes are compared among the cells of each. A machine is
 * what a cell says of it, without its threads. */
#include "experiment/summary.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static void machine_of(char out[96], const json_t *cell)
{
    char *threads;
    fkt_text_cut(out, 96, fkt_cell_text(cell, "machine"));
    threads = strrchr(out, ',');
    if (threads && strstr(threads, " thread")) *threads = '\0';
}

static int same_arm(const struct fkt_summary_moments *a, const struct fkt_summary_moments *b)
{
    return a->experiment == b->experiment && !strcmp(a->panel, b->panel) && !strcmp(a->arm_name, b->arm_name);
}

fkt_status fkt_summary_moments_note(struct fkt_summary *s, const struct fkt_experiment *e, const json_t *cell,
                                    const char *hash)
{
    struct fkt_summary_moments m = {.experiment = e};
    fkt_status st = FKT_OK;
    fkt_text_cut(m.panel, sizeof m.panel, fkt_cell_text(cell, "panel"));
    fkt_text_cut(m.arm, sizeof m.arm, fkt_cell_text(cell, "title"));
    fkt_text_cut(m.arm_name, sizeof m.arm_name, fkt_cell_text(cell, "arm"));
    fkt_text_cut(m.hash, sizeof m.hash, hash);
    machine_of(m.machine, cell);
    for (size_t i = 0; i < s->n_moments; i++) {
        struct fkt_summary_moments *old = &s->moments[i];
        if (!same_arm(old, &m) || strcmp(old->machine, m.machine) != 0) continue;
        old->differ |= strcmp(old->hash, m.hash) != 0;
        return FKT_OK;
    }
    FKT_TRY(fkt_realloc(&s->moments, s->n_moments + 1));
    s->moments[s->n_moments++] = m;
out:
    return st;
}

static int compare(const void *pa, const void *pb)
{
    const struct fkt_summary_moments *a = pa, *b = pb;
    const int c = strcmp(a->panel, b->panel);
    size_t i, j;
    if (c) return c;
    i = fkt_summary_arm_place(a->experiment, a->arm_name);
    j = fkt_summary_arm_place(b->experiment, b->arm_name);
    if (i != j) return i < j ? -1 : 1;
    return strcmp(a->arm_name, b->arm_name) ? strcmp(a->arm_name, b->arm_name) : strcmp(a->machine, b->machine);
}

void fkt_summary_moments_sort(struct fkt_summary *s)
{
    if (s->n_moments) qsort(s->moments, s->n_moments, sizeof *s->moments, compare);
}

int fkt_summary_invariant(const struct fkt_summary *s, const struct fkt_experiment *e, size_t *machines)
{
    size_t most = 0;
    int found = -1;
    for (size_t i = 0; i < s->n_moments; i++) {
        size_t n = 0;
        if (s->moments[i].experiment != e) continue;
        found = found != 0 && !s->moments[i].differ;
        for (size_t k = 0; k < s->n_moments; k++) n += same_arm(&s->moments[i], &s->moments[k]);
        if (n > most) most = n;
    }
    if (machines) *machines = most;
    return found;
}
