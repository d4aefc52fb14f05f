/* SPDX-License-Identifier: Apache-2.0 */
/* summary_inputs.c - what the cells of a report are made of: one name must stand for one thing in all of them.
 *
 * Cells of several runs are joined by names. A JPEG copy of a set and its published files, two sets `public`, or one
 * run with such a set and one without, must not make one table without a word. Cells say what they are made of
 * (lab.h, fkt_lab_use); those of older versions do not, and are taken as they are. A hash of a set is of the records
 * that were taken of it, so runs with other limits are not compared. */
#include "experiment/lab.h"
#include "experiment/summary.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 256 };

/* There was no such set: `public` alone. */
static int is_none(const struct fkt_summary_input *i)
{
    char none[FKT_SHA256_HEX];
    fkt_lab_fingerprint_of_none(none);
    return !strcmp(i->hash, none);
}

/* The cell, and enough of the hash to find it among files. */
static void words_of(const struct fkt_summary_input *i, char out[WORDS])
{
    if (is_none(i)) snprintf(out, WORDS, "%s, with none", i->cell);
    else snprintf(out, WORDS, "%s, with %.12s", i->cell, i->hash);
}

static const char *hint_of(const char *name)
{
    return fkt_experiment_is_input(name)
               ? "make a report of each run, and keep cells in two folders; or compute cells again, with the weights "
                 "and "
                 "the calibration files (calibration-*.safetensors beside the encodings) of one run"
               : "the folder of each run has the hashes, in sets/NAME.json; make a report of each run, and keep cells "
                 "in two folders";
}

/* Two codecs with the weights of one: a run looks at its own cells alone, one process of several or one that goes on at
 * a part of them. */
static fkt_status check_weights(const struct fkt_summary_input *was, const struct fkt_summary_input *found)
{
    const size_t n = strlen(FKT_WEIGHTS_INPUT);
    if (strncmp(was->name, FKT_WEIGHTS_INPUT, n) != 0 || strncmp(found->name, FKT_WEIGHTS_INPUT, n) != 0 ||
        !strcmp(was->name, found->name) || strcmp(was->hash, found->hash) != 0)
        return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH,
                         "the cells of one of them are wrong: delete them, and compute them with that codec's weights",
                         "codecs '%s' and '%s' have the same weights: %s; and %s", was->name + n, found->name + n,
                         was->cell, found->cell);
}

static fkt_status note(struct fkt_summary *s, const struct fkt_summary_input *found)
{
    char one[WORDS], other[WORDS];
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const struct fkt_summary_input *was = &s->input[i];
        FKT_TRY(check_weights(was, found));
        if (strcmp(was->name, found->name) != 0 || was->limit != found->limit || was->quick != found->quick) continue;
        if (!strcmp(was->hash, found->hash)) return FKT_OK;
        words_of(was, one);
        words_of(found, other);
        return fkt_fail_hint(FKT_E_MISMATCH, hint_of(found->name),
                             "two cells were made with different '%s': %s; and %s", found->name, one, other);
    }
    FKT_TRY(fkt_realloc(&s->input, s->n_inputs + 1));
    s->input[s->n_inputs++] = *found;
out:
    return st;
}

/* Public images, those of calibrations and weights are taken whole. */
static int is_limited(const char *name) { return strcmp(name, FKT_PUBLIC_SET) != 0 && !fkt_experiment_is_input(name); }

static void describe(char out[192], const struct fkt_experiment *e, const json_t *cell)
{
    char words[256];
    snprintf(words, sizeof words, "'%s', set '%s', arm '%s', seed %lld", e->name, fkt_cell_text(cell, "panel"),
             fkt_cell_text(cell, "arm"), (long long)json_integer_value(json_object_get(cell, "seed")));
    fkt_text_cut(out, 192, words);
}

fkt_status fkt_summary_inputs_note(struct fkt_summary *s, const struct fkt_experiment *e, const json_t *cell)
{
    const char *name;
    json_t *v;
    fkt_status st = FKT_OK;
    json_object_foreach (json_object_get(cell, "inputs"), name, v) {
        struct fkt_summary_input found = {0};
        if (!json_is_string(v)) continue;
        describe(found.cell, e, cell);
        fkt_text_cut(found.name, sizeof found.name, name);
        fkt_text_cut(found.hash, sizeof found.hash, json_string_value(v));
        if (is_limited(name)) {
            found.limit = json_integer_value(json_object_get(cell, "limit"));
            found.quick = json_is_true(json_object_get(cell, "quick"));
        }
        FKT_TRY(note(s, &found));
    }
out:
    return st;
}
