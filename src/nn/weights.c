/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - the slots of a network bound to tensors of mapped files, or to arrays in memory.
 *
 * Binding reads only names, types and shapes; no weight is touched, so a file of gigabytes binds at once. All misfits
 * are collected before the error is made: a user with weights of another layout needs the whole list, not its first
 * line. Shapes are compared without trailing ones: (C, C) is (C, C, 1, 1), since both have the same numbers in the same
 * order; (1, C) is not (C, 1). A name that two files hold is taken from the first; the second one counts as unused. An
 * array in memory is a tensor without a file.
 * Cost: slots times tensors comparisons of names. */
#include "nn/weights.h"

#include "base/alloc.h"
#include "base/text.h"
#include "tensor/safetensors_header.h"

#include <inttypes.h>
#include <string.h>

struct part {
    const struct fkt_safetensors *file; /* NULL: an array in memory */
    const struct fkt_tensor *tensor;
};

struct bound {
    struct part part[FKT_SLOT_PARTS];
    uint32_t parts;
};

struct fkt_weights {
    struct bound *slot; /* (n_slots) */
    size_t n_slots;
    struct fkt_tensor *array; /* (n_slots) owned, with their names; NULL where tensors are of files */
};

/* State of a binding. */
struct binding {
    const struct fkt_safetensors *const *files;
    size_t n_files;
    uint8_t **used; /* (n_files)(tensors): 1 where a slot uses it */
    struct fkt_text misfits;
    size_t n_misfits, first[3]; /* ends of the first lines */
};

static void shape_text(struct fkt_text *t, const uint64_t *shape, unsigned rank)
{
    fkt_text_add(t, "(");
    for (unsigned i = 0; i < rank; i++) fkt_text_addf(t, "%s%" PRIu64, i ? "," : "", shape[i]);
    fkt_text_add(t, ")");
}

static void end_line(struct binding *b)
{
    if (b->n_misfits < sizeof b->first / sizeof *b->first) b->first[b->n_misfits] = b->misfits.len;
    b->n_misfits++;
    fkt_text_add(&b->misfits, "\n");
}

static void find(struct binding *b, const char *name, struct part *out)
{
    for (size_t i = 0; i < b->n_files; i++) {
        const struct fkt_tensor *t = fkt_safetensors_find(b->files[i], name);
        if (!t) continue;
        b->used[i][t - fkt_safetensors_at(b->files[i], 0)] = 1;
        *out = (struct part){b->files[i], t};
        return;
    }
}

static unsigned without_ones(const uint64_t *shape, unsigned rank)
{
    while (rank && shape[rank - 1] == 1) rank--;
    return rank;
}

static int same_shape(const uint64_t *a, unsigned rank_a, const uint64_t *b, unsigned rank_b)
{
    rank_a = without_ones(a, rank_a);
    rank_b = without_ones(b, rank_b);
    return rank_a == rank_b && (!rank_a || !memcmp(a, b, rank_a * sizeof *a));
}

static int holds_weights(enum fkt_dtype t) { return t == FKT_F32 || t == FKT_F16 || t == FKT_BF16 || t == FKT_F64; }

static void bind_part(struct binding *b, const struct fkt_slot *s, uint32_t k, struct part *out)
{
    uint64_t want[FKT_SLOT_RANK];
    struct fkt_text *t = &b->misfits;
    char shown[FKT_ST_SHOWN];
    for (uint32_t i = 0; i < s->rank; i++) want[i] = i ? s->shape[i] : s->shape[i] / s->parts;
    find(b, s->name[k], out);
    if (out->tensor && holds_weights(out->tensor->dtype) &&
        same_shape(out->tensor->shape, out->tensor->rank, want, s->rank))
        return;
    fkt_st_shown(shown, s->name[k]);
    if (!out->tensor) {
        fkt_text_addf(t, "'%s' ", shown);
        shape_text(t, want, s->rank);
        fkt_text_add(t, " is missing");
    } else if (!holds_weights(out->tensor->dtype)) {
        fkt_text_addf(t, "'%s' is %s, which is not a weight type", shown, fkt_dtype_name(out->tensor->dtype));
    } else {
        fkt_text_addf(t, "'%s' is ", shown);
        shape_text(t, out->tensor->shape, out->tensor->rank);
        fkt_text_add(t, ", expected ");
        shape_text(t, want, s->rank);
    }
    end_line(b);
}

static void find_unused(struct binding *b, int (*ignore)(const char *name))
{
    char shown[FKT_ST_SHOWN];
    for (size_t i = 0; i < b->n_files; i++)
        for (size_t j = 0; j < fkt_safetensors_count(b->files[i]); j++) {
            const struct fkt_tensor *t = fkt_safetensors_at(b->files[i], j);
            if (b->used[i][j] || (ignore && ignore(t->name))) continue;
            fkt_text_addf(&b->misfits, "'%s' ", fkt_st_shown(shown, t->name));
            shape_text(&b->misfits, t->shape, t->rank);
            fkt_text_add(&b->misfits, " is not part of this network");
            end_line(b);
        }
}

/* "3 tensors do not fit the network: A; B; C" from the first lines of the report. */
static fkt_status misfit_error(struct binding *b)
{
    const size_t most = sizeof b->first / sizeof *b->first;
    struct fkt_text first;
    size_t begin = 0;
    fkt_status st = fkt_text_status(&b->misfits);
    if (st != FKT_OK || !b->n_misfits) return st;
    fkt_text_init(&first);
    for (size_t i = 0; i < b->n_misfits && i < most; i++) {
        if (i) fkt_text_add(&first, "; ");
        fkt_text_addn(&first, b->misfits.s + begin, b->first[i] - begin);
        begin = b->first[i] + 1;
    }
    if (b->n_misfits > most) fkt_text_add(&first, "; ...");
    st = fkt_text_status(&first);
    if (st == FKT_OK)
        st = fkt_fail(FKT_E_MISMATCH, "%zu tensor%s not fit the network: %s", b->n_misfits,
                      b->n_misfits == 1 ? " does" : "s do", first.s);
    fkt_text_clear(&first);
    return st;
}

static fkt_status binding_begin(struct binding *b, const struct fkt_safetensors *const *files, size_t n_files)
{
    fkt_status st;
    *b = (struct binding){.files = files};
    fkt_text_init(&b->misfits);
    FKT_TRY(fkt_alloc(&b->used, n_files));
    for (; b->n_files < n_files; b->n_files++)
        FKT_TRY(fkt_alloc(&b->used[b->n_files], fkt_safetensors_count(files[b->n_files])));
out:
    return st;
}

static void binding_clear(struct binding *b)
{
    for (size_t i = 0; i < b->n_files; i++) fkt_free(b->used[i]);
    fkt_free(b->used);
    fkt_text_clear(&b->misfits);
}

fkt_status fkt_weights_bind(struct fkt_weights **out, const struct fkt_net *net,
                            const struct fkt_safetensors *const *files, size_t n_files, int (*ignore)(const char *name),
                            char **report)
{
    struct fkt_weights *w = NULL;
    struct binding b;
    fkt_status st;
    *out = NULL;
    if (report) *report = NULL;
    FKT_TRY(binding_begin(&b, files, n_files));
    FKT_TRY(fkt_net_status(net));
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_alloc(&w->slot, net->n_slots));
    for (w->n_slots = 0; w->n_slots < net->n_slots; w->n_slots++) {
        const struct fkt_slot *s = &net->slot[w->n_slots];
        w->slot[w->n_slots].parts = s->parts;
        for (uint32_t k = 0; k < s->parts; k++) bind_part(&b, s, k, &w->slot[w->n_slots].part[k]);
    }
    find_unused(&b, ignore);
    st = misfit_error(&b);
    if (st == FKT_E_MISMATCH && report) {
        *report = b.misfits.s;
        fkt_text_init(&b.misfits); /* the caller owns it now */
    }
    if (st != FKT_OK) goto out;
    *out = w;
    w = NULL;
out:
    binding_clear(&b);
    fkt_weights_free(w);
    return st;
}

fkt_status fkt_weights_from_arrays(struct fkt_weights **out, const struct fkt_net *net, const float *const *array)
{
    struct fkt_weights *w = NULL;
    char *name = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_net_status(net));
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_alloc(&w->slot, net->n_slots));
    FKT_TRY(fkt_alloc(&w->array, net->n_slots));
    for (; w->n_slots < net->n_slots; w->n_slots++) {
        const struct fkt_slot *s = &net->slot[w->n_slots];
        struct fkt_tensor *t = &w->array[w->n_slots];
        FKT_TRY(fkt_strdup(&name, s->name[0]));
        *t = (struct fkt_tensor){name, FKT_F32, s->rank, {0}, array[w->n_slots], fkt_slot_count(s)};
        for (uint32_t i = 0; i < s->rank; i++) t->shape[i] = s->shape[i];
        w->slot[w->n_slots] = (struct bound){{{NULL, t}}, 1};
    }
    *out = w;
    w = NULL;
out:
    fkt_weights_free(w);
    return st;
}

void fkt_weights_free(struct fkt_weights *w)
{
    if (!w) return;
    for (size_t i = 0; w->array && i < w->n_slots; i++) fkt_free((char *)w->array[i].name);
    fkt_free(w->array);
    fkt_free(w->slot);
    fkt_free(w);
}

fkt_status fkt_weights_read(const struct fkt_weights *w, uint32_t slot, float *out)
{
    const struct bound *b = &w->slot[slot];
    for (uint32_t k = 0; k < b->parts; k++) {
        fkt_status st = fkt_tensor_copy_f32(out, b->part[k].tensor);
        if (st != FKT_OK) return st;
        out += b->part[k].tensor->count;
    }
    return FKT_OK;
}

const float *fkt_weights_mapped(const struct fkt_weights *w, uint32_t slot)
{
    const struct bound *b = &w->slot[slot];
    const void *first = b->part[0].tensor->data;
    const uint8_t *next = first;
    if ((uintptr_t)first % _Alignof(float)) return NULL;
    for (uint32_t k = 0; k < b->parts; k++) {
        const struct fkt_tensor *t = b->part[k].tensor;
        if (t->dtype != FKT_F32 || t->data != next) return NULL;
        next += t->count * sizeof(float);
    }
    return first;
}

void fkt_weights_drop(const struct fkt_weights *w, uint32_t slot)
{
    const struct bound *b = &w->slot[slot];
    for (uint32_t k = 0; k < b->parts && b->part[k].file; k++) fkt_safetensors_drop(b->part[k].file, b->part[k].tensor);
}

const char *fkt_weights_name(const struct fkt_weights *w, uint32_t slot) { return w->slot[slot].part[0].tensor->name; }
