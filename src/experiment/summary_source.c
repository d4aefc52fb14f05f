/* SPDX-License-Identifier: Apache-2.0 */
/* summary_source.c - where the numbers of a table come from: version, machines and seeds of its cells, for each panel.
 *
 * Cells of several runs and machines stand in one table, and a panel may have fewer seeds than another. One sentence
 * says it for all panels that have the same source. Names come from files and are hostile: they are cut and
 * escaped. */
#include "experiment/summary.h"

#include "base/alloc.h"
#include "base/text.h"
#include "fedkt/learn.h"

#include <stdlib.h>
#include <string.h>

#define BETWEEN_MACHINES " and "

/* What a run may have asked for in place of the usual, and a reader of its table must know. NETWORK: 1 + enum
 * fkt_architecture, of tables whose measures do not name it. */
enum { LIMIT, ROUNDS, PER_CLASS, NETWORK };
static const struct {
    const char *key, *title, *none; /* none: what 0 means */
} settings[FKT_SETTINGS] = {
    [LIMIT] = {"limit", "records", "all records"},
    [ROUNDS] = {"rounds", "rounds", "the usual rounds"},
    [PER_CLASS] = {"per_class", "images of a class, drawn once, for a network", "new images in each epoch"},
    [NETWORK] = {"network", "networks", "a network without a name"}};

static fkt_status source_of(struct fkt_summary *s, const struct fkt_experiment *e, const char *panel,
                            struct fkt_summary_source **out)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < s->n_sources; i++)
        if (s->source[i].experiment == e && !strcmp(s->source[i].panel, panel)) return *out = &s->source[i], FKT_OK;
    FKT_TRY(fkt_realloc(&s->source, s->n_sources + 1));
    *out = &s->source[s->n_sources++];
    memset(*out, 0, sizeof **out);
    (*out)->experiment = e;
    fkt_text_cut((*out)->panel, sizeof(*out)->panel, panel);
out:
    return st;
}

/* In the order of their bytes, so that the order of cells does not matter. */
static void note_name(struct fkt_summary_names *names, const char *found)
{
    char name[sizeof *names->name];
    size_t to = names->n;
    fkt_text_cut(name, sizeof name, found);
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->name[i], name)) return;
    if (to == FKT_NAMES_MAX) {
        names->others = 1;
        return;
    }
    for (names->n++; to && strcmp(names->name[to - 1], name) > 0; to--)
        memcpy(names->name[to], names->name[to - 1], sizeof name);
    memcpy(names->name[to], name, sizeof name);
}

void fkt_summary_source_names(struct fkt_text *t, const struct fkt_summary_names *names, const char *between,
                              fkt_escape *escape)
{
    for (size_t i = 0; i < names->n; i++) {
        fkt_text_add(t, i ? between : "");
        escape(t, names->name[i]);
    }
    if (names->others) fkt_text_addf(t, "%sothers", between);
}

/* In ascending order; those beyond FKT_SEEDS_MAX are left out. */
static void note_seed(struct fkt_summary_source *o, uint64_t seed)
{
    size_t to = o->n_seeds;
    for (size_t i = 0; i < o->n_seeds; i++)
        if (o->seed[i] == seed) return;
    if (to == FKT_SEEDS_MAX) return;
    for (o->n_seeds++; to && o->seed[to - 1] > seed; to--) o->seed[to] = o->seed[to - 1];
    o->seed[to] = seed;
}

/* 1: measures of the cell's points say which network they are of. */
static int names_its_network(const json_t *cell)
{
    const json_t *point;
    size_t i;
    json_array_foreach (json_object_get(cell, "points"), i, point)
        if (fkt_values_have_network(json_object_get(point, "values"))) return 1;
    return 0;
}

/* A network on real images has no number of drawn ones. */
static int learns_from_release(const struct fkt_experiment *e, const json_t *cell)
{
    const struct fkt_arm *arm = fkt_experiment_arm(e, fkt_summary_arm_place(e, fkt_cell_text(cell, "arm")));
    return (*fkt_cell_text(cell, "network") || names_its_network(cell)) && (!arm || arm->codec);
}

/* 1: the cell says something of the setting: heads stand beside networks, and few arms have rounds. An arm that cannot
 * do without a network had one, whether its cell names it (those of older versions do not) or not. */
static int setting_of(const struct fkt_experiment *e, const json_t *cell, size_t i, long long *value)
{
    const struct fkt_arm *arm = fkt_experiment_arm(e, fkt_summary_arm_place(e, fkt_cell_text(cell, "arm")));
    *value = json_integer_value(json_object_get(cell, settings[i].key));
    if (i == PER_CLASS) return *value || learns_from_release(e, cell);
    if (i == ROUNDS) return arm && arm->rounds;
    if (i != NETWORK) return 1;
    *value = fkt_architecture_parse(fkt_cell_text(cell, settings[i].key)) + 1;
    return (*value > 0 || e->needs_network || (arm && arm->trains)) && !names_its_network(cell);
}

static void value_words(struct fkt_text *t, size_t i, long long value)
{
    if (!value) fkt_text_add(t, settings[i].none);
    else if (i == NETWORK) fkt_text_add(t, fkt_architecture_name((enum fkt_architecture)(value - 1)));
    else fkt_text_addf(t, "%lld %s", value, settings[i].title);
}

static fkt_status refuse(const struct fkt_summary_source *o, size_t i, long long value)
{
    const int unnamed = i == NETWORK && (!value || !o->setting[i]); /* cells of older versions */
    struct fkt_text t;
    fkt_status st;
    fkt_text_init(&t);
    value_words(&t, i, o->setting[i]);
    fkt_text_add(&t, ", and ");
    value_words(&t, i, value);
    FKT_TRY(fkt_text_status(&t));
    st = fkt_fail_hint(FKT_E_MISMATCH,
                       unnamed ? "compute the cells again that name no network, or make a report of each"
                               : "make a report of each",
                       "cells of '%s', set '%s', have different settings: %s", o->experiment->name, o->panel, t.s);
out:
    fkt_text_clear(&t);
    return st;
}

static fkt_status note_settings(struct fkt_summary_source *o, const json_t *cell)
{
    for (size_t i = 0; i < FKT_SETTINGS; i++) {
        long long value;
        if (!setting_of(o->experiment, cell, i, &value)) continue;
        if (o->noted[i] && o->setting[i] != value) return refuse(o, i, value);
        o->setting[i] = value;
        o->noted[i] = 1;
    }
    return FKT_OK;
}

fkt_status fkt_summary_source_note(struct fkt_summary *s, const struct fkt_experiment *e, const json_t *cell)
{
    const int quick = json_is_true(json_object_get(cell, "quick"));
    const json_t *seed = json_object_get(cell, "seed");
    struct fkt_summary_source *o;
    fkt_status st;
    for (size_t i = 0; i < s->n_sources; i++)
        if (s->source[i].experiment == e && s->source[i].quick != quick)
            return fkt_fail_hint(FKT_E_MISMATCH, "make a report of each",
                                 "some cells of '%s' are quick ones, and others are not", e->name);
    FKT_TRY(source_of(s, e, fkt_cell_text(cell, "panel"), &o));
    FKT_TRY(note_settings(o, cell));
    FKT_TRY(fkt_summary_inputs_note(s, e, cell));
    o->quick = quick;
    note_name(&o->machine, fkt_cell_text(cell, "machine"));
    note_name(&o->version, fkt_cell_text(cell, "version"));
    if (json_is_integer(seed)) note_seed(o, (uint64_t)json_integer_value(seed));
out:
    return st;
}

static int by_panel(const void *pa, const void *pb)
{
    const struct fkt_summary_source *a = pa, *b = pb;
    return strcmp(a->panel, b->panel);
}

void fkt_summary_source_sort(struct fkt_summary *s)
{
    if (s->n_sources) qsort(s->source, s->n_sources, sizeof *s->source, by_panel);
}

int fkt_summary_source_quick(const struct fkt_summary *s, const struct fkt_experiment *e)
{
    for (size_t i = 0; i < s->n_sources; i++)
        if (s->source[i].experiment == e) return s->source[i].quick;
    return 0;
}

/* ---- in words ---- */

static int same_names(const struct fkt_summary_names *a, const struct fkt_summary_names *b)
{
    for (size_t i = 0; i < a->n && a->n == b->n; i++)
        if (strcmp(a->name[i], b->name[i]) != 0) return 0;
    return a->n == b->n && a->others == b->others;
}

static int same(const struct fkt_summary_source *a, const struct fkt_summary_source *b)
{
    return a->experiment == b->experiment && same_names(&a->version, &b->version) &&
           same_names(&a->machine, &b->machine) && !memcmp(a->setting, b->setting, sizeof a->setting) &&
           a->n_seeds == b->n_seeds && !memcmp(a->seed, b->seed, a->n_seeds * sizeof *a->seed);
}

void fkt_summary_source_seeds(struct fkt_text *t, const struct fkt_summary_source *o)
{
    for (size_t i = 0; i < o->n_seeds; i++) fkt_text_addf(t, "%s%llu", i ? ", " : "", (unsigned long long)o->seed[i]);
}

/* No panel before it has the same source. */
static int is_first(const struct fkt_summary *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same(&s->source[k], &s->source[i])) return 0;
    return 1;
}

/* Panels are named where not all have this source. */
static void panels_text(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_summary_source *like,
                        fkt_escape *escape)
{
    const struct fkt_experiment *e = like->experiment;
    size_t all = 0, alike = 0;
    for (size_t i = 0; i < s->n_sources; i++) {
        all += s->source[i].experiment == e;
        alike += same(&s->source[i], like);
    }
    if (alike == all) return;
    for (size_t i = 0, n = 0; i < s->n_sources; i++)
        if (same(&s->source[i], like)) {
            fkt_text_add(t, n++ ? ", " : "");
            escape(t, e->panel ? s->source[i].panel : fkt_lab_set_title(s->source[i].panel));
        }
    fkt_text_add(t, ": ");
}

static void settings_text(struct fkt_text *t, const struct fkt_summary_source *o)
{
    for (size_t k = 0; k < FKT_SETTINGS; k++) {
        if (!o->setting[k]) continue;
        fkt_text_add(t, "; ");
        value_words(t, k, o->setting[k]);
    }
}

void fkt_summary_source_text(struct fkt_text *t, const struct fkt_summary *s, const struct fkt_experiment *e,
                             fkt_escape *escape)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_sources; i++) {
        const struct fkt_summary_source *o = &s->source[i];
        if (o->experiment != e || !is_first(s, i)) continue;
        if (n++) fkt_text_add(t, ". ");
        panels_text(t, s, o, escape);
        fkt_text_add(t, "fedkt ");
        fkt_summary_source_names(t, &o->version, ", ", escape);
        fkt_text_add(t, "; ");
        fkt_summary_source_names(t, &o->machine, BETWEEN_MACHINES, escape);
        fkt_text_add(t, o->n_seeds == 1 ? "; seed " : "; seeds ");
        fkt_summary_source_seeds(t, o);
        settings_text(t, o);
        if (o->quick) fkt_text_add(t, "; quick cells, which are not results");
    }
}

json_t *fkt_summary_source_settings(const struct fkt_summary_source *o)
{
    json_t *j = json_object();
    for (size_t k = 0; j && k < FKT_SETTINGS; k++) {
        if (!o->setting[k]) continue;
        json_object_set_new(j, settings[k].key,
                            k == NETWORK
                                ? json_string(fkt_architecture_name((enum fkt_architecture)(o->setting[k] - 1)))
                                : json_integer(o->setting[k]));
    }
    return j;
}

struct fkt_summary_source fkt_summary_source_all(const struct fkt_summary *s, const struct fkt_experiment *e)
{
    struct fkt_summary_source all = {.experiment = e, .quick = fkt_summary_source_quick(s, e)};
    for (size_t i = 0; i < s->n_sources; i++) {
        const struct fkt_summary_source *o = &s->source[i];
        if (o->experiment != e) continue;
        for (size_t k = 0; k < o->version.n; k++) note_name(&all.version, o->version.name[k]);
        for (size_t k = 0; k < o->machine.n; k++) note_name(&all.machine, o->machine.name[k]);
        for (size_t k = 0; k < o->n_seeds; k++) note_seed(&all, o->seed[k]);
    }
    return all;
}
