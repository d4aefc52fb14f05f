/* SPDX-License-Identifier: Apache-2.0 */
/* score.c - counting hits: a confusion matrix, rows = truth, and the accuracies read off it. */
#include "fedkt/classifier.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

fkt_status fkt_score_init(struct fkt_score *s, uint32_t classes)
{
    memset(s, 0, sizeof *s);
    if (classes < 1) return fkt_fail(FKT_E_ARG, "cannot count hits of 0 classes");
    fkt_status st = fkt_alloc(&s->confusion, (size_t)classes * classes);
    if (st == FKT_OK) s->classes = classes;
    return st;
}

void fkt_score_clear(struct fkt_score *s)
{
    fkt_free(s->confusion);
    memset(s, 0, sizeof *s);
}

fkt_status fkt_score_add(struct fkt_score *s, const uint32_t *truth, const uint32_t *guess, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (truth[i] >= s->classes || guess[i] >= s->classes)
            return fkt_fail(FKT_E_ARG, "label %u of record %zu is out of range: there are %u classes",
                            truth[i] >= s->classes ? truth[i] : guess[i], i, s->classes);
    for (size_t i = 0; i < n; i++) s->confusion[(size_t)truth[i] * s->classes + guess[i]]++;
    return FKT_OK;
}

static uint64_t row_total(const struct fkt_score *s, size_t k)
{
    uint64_t total = 0;
    for (size_t j = 0; j < s->classes; j++) total += s->confusion[k * s->classes + j];
    return total;
}

static double share(uint64_t hits, uint64_t total) { return total ? (double)hits / (double)total : NAN; }

uint64_t fkt_score_total(const struct fkt_score *s)
{
    uint64_t total = 0;
    for (size_t k = 0; k < s->classes; k++) total += row_total(s, k);
    return total;
}

double fkt_score_accuracy(const struct fkt_score *s)
{
    uint64_t hits = 0;
    for (size_t k = 0; k < s->classes; k++) hits += s->confusion[k * s->classes + k];
    return share(hits, fkt_score_total(s));
}

double fkt_score_class_accuracy(const struct fkt_score *s, uint32_t k)
{
    if (k >= s->classes) return NAN;
    return share(s->confusion[(size_t)k * s->classes + k], row_total(s, k));
}
