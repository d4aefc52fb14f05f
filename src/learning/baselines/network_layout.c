/* SPDX-License-Identifier: Apache-2.0 */
/* network_layout.c - where the numbers of a network lie in a flat vector:
 *
 *   | conv1.weight | bn1.weight | bn1.bias | ... | fc.weight | fc.bias | bn1.running_mean | bn1.running_var | ... |
 *   0                                                            parameters                                     state
 *
 * Span k is slot[k] of the model: first all that are learnt, in the model's order, then the statistics. A
 * layer is what shares a name up to the last dot: a norm with its statistics is one. */
#include "learning/baselines/network.h"

#include "base/alloc.h"

#include <string.h>

static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

/* The layer of slot i: that of an earlier slot with the same stem, or a new one. */
static void set_layer(const struct fkt_model *m, size_t i, uint32_t *layers, uint32_t *layer)
{
    const char *name = fkt_model_tensor(m, i).name;
    const size_t length = stem_length(name);
    for (size_t j = 0; j < i; j++) {
        const char *other = fkt_model_tensor(m, j).name;
        if (stem_length(other) == length && !strncmp(name, other, length)) {
            layer[i] = layer[j];
            return;
        }
    }
    layer[i] = (*layers)++;
}

/* 1: a layer of one-dimensional tensors, a norm; or the last two slots. */
static int keeps(const struct fkt_model *m, size_t i)
{
    return fkt_model_tensor(m, i).rank == 1 || i + 2 >= fkt_model_tensors(m);
}

/* Slots in the order of the spans. */
static void sort_slots(const struct fkt_model *m, uint32_t *slot)
{
    size_t k = 0;
    for (int statistic = 0; statistic < 2; statistic++)
        for (size_t i = 0; i < fkt_model_tensors(m); i++)
            if (fkt_model_is_statistic(m, i) == statistic) slot[k++] = (uint32_t)i;
}

fkt_status fkt_network_layout(struct fkt_network_problem *q)
{
    struct fkt_problem *p = &q->problem;
    const struct fkt_model *m = q->model;
    uint32_t *layer = NULL;
    fkt_status st;
    p->spans = fkt_model_tensors(m);
    FKT_TRY(fkt_alloc(&q->slot, p->spans));
    FKT_TRY(fkt_alloc(&q->span, p->spans));
    FKT_TRY(fkt_alloc(&layer, p->spans));
    sort_slots(m, q->slot);
    for (size_t i = 0; i < p->spans; i++) set_layer(m, i, &p->layers, layer);
    for (size_t k = 0; k < p->spans; k++) {
        const size_t i = q->slot[k];
        q->span[k] = (struct fkt_span){
            .start = p->state, .count = fkt_model_tensor(m, i).count, .layer = layer[i], .keeps = keeps(m, i)};
        p->state += q->span[k].count;
        if (!fkt_model_is_statistic(m, i)) p->parameters = p->state;
    }
    p->span = q->span;
    FKT_TRY(fkt_alloc(&q->start, p->state));
    for (size_t k = 0; k < p->spans; k++)
        memcpy(q->start + q->span[k].start, m->array[q->slot[k]], q->span[k].count * sizeof *q->start);
out:
    fkt_free(layer);
    return st;
}

void fkt_network_store(const struct fkt_network_problem *q, const float *x, struct fkt_model *m)
{
    for (size_t k = 0; k < q->problem.spans; k++)
        memcpy(m->array[q->slot[k]], x + q->span[k].start, q->span[k].count * sizeof *x);
    fkt_model_changed(m);
}
