/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - which cells a run has: every experiment, panel, arm, position and seed, in that order. The order and the
 * keys depend on the options alone, so that a run that goes on finds the cells of the first one. */
#include "experiment/list.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const char *const embedded[] = {"demo"};

struct cells {
    struct fkt_cell *list;
    size_t n, cap;
};

void fkt_position_label(const struct fkt_position *x, char out[48])
{
    if (x->label) snprintf(out, 48, "%s", x->label);
    else snprintf(out, 48, "%g", x->x);
}

int fkt_cell_is_first(const struct fkt_cell *c) { return c->x == c->experiment->x || c->x == c->experiment->x_quick; }

int fkt_cell_is_last(const struct fkt_cell *c)
{
    const struct fkt_experiment *e = c->experiment;
    return c->x + c->n_x == e->x + e->n_x || c->x + c->n_x == e->x_quick + e->n_quick;
}

static int is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

int fkt_experiment_is_input(const char *name)
{
    return !strncmp(name, FKT_CALIBRATION_INPUT, strlen(FKT_CALIBRATION_INPUT)) ||
           !strncmp(name, FKT_WEIGHTS_INPUT, strlen(FKT_WEIGHTS_INPUT));
}

int fkt_experiment_plain(const char *word, char room[96])
{
    int plain = *word && *word != '.';
    size_t n = 0;
    for (const char *s = word; *s; s++) {
        const int good = is_plain(*s) && (n || *s != '.');
        plain &= good;
        if (room && n < 95) room[n] = good ? *s : '-';
        n++;
    }
    if (room) room[n < 95 ? n : 95] = '\0';
    return plain && n < 64;
}

static fkt_status add(struct cells *c, const struct fkt_cell *cell, int one)
{
    char at[104] = "", label[48], word[96];
    struct fkt_cell *to;
    fkt_status st = FKT_OK;
    if (c->n == c->cap) FKT_TRY(fkt_realloc(&c->list, c->cap = c->cap ? 2 * c->cap : 64));
    to = &c->list[c->n++];
    *to = *cell;
    if (one) {
        fkt_position_label(&cell->x[0], label);
        (void)fkt_experiment_plain(label, word);
        snprintf(at, sizeof at, ".%s", word);
    }
    snprintf(to->key, sizeof to->key, "%s.%s.%s%s.%llu", cell->experiment->name, cell->panel, cell->arm->name, at,
             (unsigned long long)cell->seed);
out:
    return st;
}

int fkt_experiment_trains(const struct fkt_experiment *e, const struct fkt_experiment_options *o)
{
    return o->network && (!o->quick || e->trains_quick);
}

static int is_asked(const struct fkt_arm *arm, const struct fkt_experiment_options *o)
{
    for (size_t i = 0; i < o->n_arms; i++)
        if (!strcmp(o->arms[i], arm->name)) return 1;
    return !o->n_arms;
}

/* The bounds by real records do not depend on the position: one cell. */
static fkt_status add_arm(struct cells *c, struct fkt_cell *cell, const struct fkt_experiment_options *o)
{
    const struct fkt_experiment *e = cell->experiment;
    const struct fkt_position *x = o->quick ? e->x_quick : e->x;
    const size_t n = o->quick ? e->n_quick : e->n_x;
    const int real = cell->arm->kind == FKT_ARM_REAL;
    fkt_status st = FKT_OK;
    if (cell->arm->trains && !o->network) return FKT_OK;
    if (!is_asked(cell->arm, o)) return FKT_OK;
    for (size_t s = 0; s < o->n_seeds; s++) {
        cell->seed = o->seed[s];
        for (size_t i = 0; i < n; i += e->apart && !real ? 1 : n) {
            cell->x = x + i;
            cell->n_x = e->apart && !real ? 1 : n;
            FKT_TRY(add(c, cell, e->apart && !real));
        }
    }
out:
    return st;
}

static fkt_status add_experiment(struct cells *c, const struct fkt_experiment *e,
                                 const struct fkt_experiment_options *o)
{
    const char *const *panel = e->panel;
    size_t n = e->n_panels;
    fkt_status st = FKT_OK;
    if (e->needs_network && !o->network) return FKT_OK;
    if (!panel) {
        panel = o->n_sets ? o->sets : o->data ? e->sets : embedded;
        n = o->n_sets ? o->n_sets : o->data ? e->n_sets : 1;
    }
    for (size_t p = 0; p < n; p++)
        for (size_t a = 0; a < e->n_arms + (o->quick ? 0 : e->n_more); a++) {
            struct fkt_cell cell = {.experiment = e, .panel = panel[p], .arm = fkt_experiment_arm(e, a)};
            FKT_TRY(add_arm(c, &cell, o));
        }
out:
    return st;
}

fkt_status fkt_experiment_cells(const struct fkt_experiment_options *o, struct fkt_cell **out, size_t *n)
{
    struct cells c = {0};
    fkt_status st = FKT_OK;
    *out = NULL;
    *n = 0;
    for (size_t i = 0; i < o->n_experiments; i++) FKT_TRY(add_experiment(&c, o->experiments[i], o));
    *out = c.list;
    *n = c.n;
    c.list = NULL;
out:
    fkt_free(c.list);
    return st;
}

fkt_status fkt_experiment_check(const struct fkt_experiment_options *o)
{
    struct fkt_cell *cells;
    size_t n;
    fkt_status st;
    if (o->limit > UINT32_MAX) return fkt_fail(FKT_E_ARG, "a limit of %zu records: at most 2^32 - 1", o->limit);
    st = fkt_experiment_cells(o, &cells, &n);
    fkt_free(cells);
    if (st != FKT_OK || n) return st;
    return fkt_fail_hint(FKT_E_ARG, "name other arms, or let networks be trained",
                         "the experiments have no cells under these options");
}
