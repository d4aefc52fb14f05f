/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - from the records that a format lists to the records that the caller asked for.
 *
 *   add all records -> keep those of one split -> rename classes by the agreed list -> order -> keep `limit`
 *
 * Classes are gathered over all splits, so that train and test of one set agree on the numbers even when a class is
 * missing in one of them. Without keep_order, classes and records are sorted bytewise: a folder and a tar of it, read
 * on different file systems, give the same records in the same order, hence the same partition from the same seed.
 *
 * An agreed class list works by name. When the set knows only numbers (MNIST, MedMNIST, WebDataset's .cls), a list of
 * words gives label i its i-th word; a list of numbers still works by name. Cost: n log n comparisons. */
#include "images/dataset.h"

#include "base/alloc.h"
#include "base/text.h"
#include "images/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_NAME = 4352 }; /* PATH_MAX and a little; a longer name is cut, it only serves sentences */

static const char *const split_names[FKT_SPLITS] = {"train", "test", "val"};

const char *fkt_split_name(const char *name)
{
    if (!strcasecmp(name, "valid") || !strcasecmp(name, "validation")) return "val";
    for (int i = 0; i < FKT_SPLITS; i++)
        if (!strcasecmp(name, split_names[i])) return split_names[i];
    return NULL;
}

fkt_status fkt_names_add(struct fkt_names *a, const char *s, size_t n, size_t *at)
{
    if (n + 1 > a->cap - a->len) {
        size_t cap = a->cap ? a->cap : 1024;
        fkt_status st;
        while (cap - a->len < n + 1) cap *= 2;
        st = fkt_realloc(&a->text, cap);
        if (st != FKT_OK) return st;
        a->cap = cap;
    }
    *at = a->len;
    memcpy(a->text + a->len, s, n);
    a->text[a->len + n] = '\0';
    a->len += n + 1;
    return FKT_OK;
}

/* Where `name` stands, or would stand, among the sorted classes; *found says which. */
static size_t find_class(const struct fkt_dataset_builder *b, const char *name, int *found)
{
    const struct fkt_dataset *ds = b->ds;
    size_t lo = 0, hi = ds->k;
    *found = 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, ds->names.text + ds->classes[b->order[mid]]);
        if (c == 0) *found = 1;
        if (c <= 0) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}

fkt_status fkt_builder_class(struct fkt_dataset_builder *b, const char *name, uint32_t *k)
{
    struct fkt_dataset *ds = b->ds;
    fkt_status st;
    int found;
    size_t at = find_class(b, name, &found);
    if (found) {
        *k = b->order[at];
        return FKT_OK;
    }
    if (ds->k >= FKT_CLASSES_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' has too many classes: at most %u", b->path, FKT_CLASSES_MAX);
    if (ds->k == ds->k_cap) {
        size_t cap = ds->k_cap ? 2 * ds->k_cap : 16;
        st = fkt_realloc(&ds->classes, cap);
        if (st == FKT_OK) st = fkt_realloc(&b->order, cap);
        if (st != FKT_OK) return st;
        ds->k_cap = cap;
    }
    st = fkt_names_add(&ds->names, name, strlen(name), &ds->classes[ds->k]);
    if (st != FKT_OK) return st;
    memmove(b->order + at + 1, b->order + at, (ds->k - at) * sizeof *b->order);
    b->order[at] = (uint32_t)ds->k;
    *k = (uint32_t)ds->k++;
    return FKT_OK;
}

fkt_status fkt_builder_numbers(struct fkt_dataset_builder *b, uint64_t k)
{
    char name[24];
    uint32_t got;
    if (b->named && k > b->ds->k)
        return fkt_fail(FKT_E_FORMAT, "'%s' has the label %llu, out of range: %zu classes", b->path,
                        (unsigned long long)(k - 1), b->ds->k);
    if (k <= b->ds->k) return FKT_OK;
    b->numbered = 1;
    b->keep_order = 1;
    if (k > FKT_CLASSES_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' has the label %llu, out of range: at most %u classes", b->path,
                        (unsigned long long)(k - 1), FKT_CLASSES_MAX);
    for (uint64_t i = b->ds->k; i < k; i++) {
        fkt_status st;
        snprintf(name, sizeof name, "%llu", (unsigned long long)i);
        st = fkt_builder_class(b, name, &got);
        if (st != FKT_OK) return st;
    }
    return FKT_OK;
}

static int split_index(const char *split)
{
    for (int i = 0; i < FKT_SPLITS; i++)
        if (split && !strcmp(split, split_names[i])) return i;
    return -1;
}

fkt_status fkt_builder_add(struct fkt_dataset_builder *b, uint32_t k, const char *split, const char *name_fmt, ...)
{
    struct fkt_dataset *ds = b->ds;
    struct fkt_record *r;
    char name[MAX_NAME];
    va_list ap;
    int len;
    fkt_status st;
    if (k >= ds->k)
        return fkt_fail(FKT_E_FORMAT, "'%s' has the label %u, out of range: %zu classes", b->path, k, ds->k);
    if (ds->n == ds->cap) {
        size_t cap = ds->cap ? 2 * ds->cap : 256;
        st = fkt_realloc(&ds->records, cap);
        if (st != FKT_OK) return st;
        ds->cap = cap;
    }
    va_start(ap, name_fmt);
    len = vsnprintf(name, sizeof name, name_fmt, ap);
    va_end(ap);
    if (len < 0) len = 0;
    if ((size_t)len >= sizeof name) len = (int)sizeof name - 1;
    r = &ds->records[ds->n];
    r->raw = ds->n;
    r->label = k;
    r->split = (int8_t)split_index(split);
    st = fkt_names_add(&ds->names, name, (size_t)len, &r->name);
    if (st != FKT_OK) return st;
    if (r->split < 0) b->unsplit = 1;
    else b->splits |= 1U << r->split;
    ds->n++;
    return FKT_OK;
}

void fkt_builder_backend(struct fkt_dataset_builder *b, const struct fkt_dataset_backend *vt, void *self)
{
    b->ds->vt = vt;
    b->ds->self = self;
}

void fkt_builder_keep_order(struct fkt_dataset_builder *b) { b->keep_order = 1; }

/* The names that are kept are the first in bytewise order: folders are read in the order of their file system. */
fkt_status fkt_builder_skip(struct fkt_dataset_builder *b, const char *name_fmt, ...)
{
    struct fkt_dataset *ds = b->ds;
    char name[MAX_NAME];
    size_t at, kept = ds->skipped < FKT_DATASET_NAMED ? ds->skipped : FKT_DATASET_NAMED, last;
    va_list ap;
    ds->skipped++;
    va_start(ap, name_fmt);
    vsnprintf(name, sizeof name, name_fmt, ap);
    va_end(ap);
    for (at = kept; at > 0 && strcmp(name, ds->names.text + ds->skipped_name[at - 1]) < 0; at--) continue;
    if (at == FKT_DATASET_NAMED) return FKT_OK;
    last = kept < FKT_DATASET_NAMED ? kept : FKT_DATASET_NAMED - 1;
    memmove(ds->skipped_name + at + 1, ds->skipped_name + at, (last - at) * sizeof *ds->skipped_name);
    return fkt_names_add(&ds->names, name, strlen(name), &ds->skipped_name[at]);
}

static fkt_status absent_split(const struct fkt_dataset_builder *b, const char *asked)
{
    char present[64];
    int at = 0;
    if (!b->splits)
        return fkt_fail_hint(FKT_E_ARG, "leave the split out to read all records, and hold some of them out instead",
                             "'%s' has no split '%s': it is not divided into splits", b->path, asked);
    for (int i = 0; i < FKT_SPLITS; i++)
        if (b->splits & 1U << i)
            at += snprintf(present + at, sizeof present - (size_t)at, "%s'%s'", at ? ", " : "", split_names[i]);
    return fkt_fail_hint(FKT_E_ARG, "ask for one of the splits that are there", "'%s' has no split '%s', only %s",
                         b->path, asked, present);
}

/* NULL means everything, or "train" where there are splits, or the only split there is. */
static fkt_status choose_split(struct fkt_dataset_builder *b, const char *asked)
{
    struct fkt_dataset *ds = b->ds;
    const char *name = asked ? fkt_split_name(asked) : NULL;
    int want = split_index(name);
    size_t kept = 0;
    if (asked && (want < 0 || !(b->splits & 1U << want))) return absent_split(b, asked);
    if (!asked && !b->splits) return FKT_OK;
    if (!asked) {
        for (want = 0; want < FKT_SPLITS && b->splits != 1U << want; want++) continue;
        if (want == FKT_SPLITS) want = 0;
        if (!(b->splits & 1U << want)) return absent_split(b, split_names[want]);
    }
    for (size_t i = 0; i < ds->n; i++)
        if (ds->records[i].split == want) ds->records[kept++] = ds->records[i];
    ds->n = kept;
    return FKT_OK;
}

static int all_numbers(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!names[i][0] || strspn(names[i], "0123456789") != strlen(names[i])) return 0;
    return 1;
}

/* Says which classes there are, as many as fit. */
static fkt_status not_in_list(const struct fkt_dataset *ds, const struct fkt_record *r, const char *const *list,
                              size_t n)
{
    char hint[384];
    size_t at = (size_t)snprintf(hint, sizeof hint, "the list has"), i;
    for (i = 0; i < n && at + strlen(list[i]) + 80 < sizeof hint; i++)
        at += (size_t)snprintf(hint + at, sizeof hint - at, "%s '%s'", i ? "," : "", list[i]);
    if (i < n) at += (size_t)snprintf(hint + at, sizeof hint - at, " and %zu more", n - i);
    snprintf(hint + at, sizeof hint - at, "; rename the folder, or move it away");
    return fkt_fail_hint(FKT_E_MISMATCH, hint, "'%s' is of class '%s', which is not in the class list of %zu",
                         ds->names.text + r->name, ds->names.text + ds->classes[r->label], n);
}

/* map[old class] = new class; UINT32_MAX where the list does not have it. */
static fkt_status map_to_list(struct fkt_dataset_builder *b, uint32_t *map, const char *const *list, size_t n)
{
    struct fkt_dataset *ds = b->ds;
    int by_place = b->numbered && !all_numbers(list, n);
    size_t old_k = ds->k;
    fkt_status st;
    for (size_t i = 0; i < old_k; i++) map[i] = by_place && i < n ? (uint32_t)i : UINT32_MAX;
    for (size_t i = 0; i < n && !by_place; i++) {
        int found;
        size_t at = find_class(b, list[i], &found);
        if (!found) continue;
        if (map[b->order[at]] != UINT32_MAX)
            return fkt_fail(FKT_E_ARG, "class '%s' is listed twice in the class list", list[i]);
        map[b->order[at]] = (uint32_t)i;
    }
    for (size_t i = 0; i < ds->n; i++) {
        const struct fkt_record *r = &ds->records[i];
        if (map[r->label] == UINT32_MAX) return not_in_list(ds, r, list, n);
    }
    if (n > ds->k_cap) {
        st = fkt_realloc(&ds->classes, n);
        if (st != FKT_OK) return st;
        ds->k_cap = n;
    }
    for (size_t i = 0; i < n; i++) {
        st = fkt_names_add(&ds->names, list[i], strlen(list[i]), &ds->classes[i]);
        if (st != FKT_OK) return st;
    }
    ds->k = n;
    return FKT_OK;
}

static fkt_status sort_classes(struct fkt_dataset_builder *b, uint32_t *map)
{
    struct fkt_dataset *ds = b->ds;
    size_t *sorted = NULL;
    fkt_status st = fkt_alloc(&sorted, ds->k);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < ds->k; i++) {
        map[b->order[i]] = (uint32_t)i;
        sorted[i] = ds->classes[b->order[i]];
    }
    fkt_free(ds->classes);
    ds->classes = sorted;
    ds->k_cap = ds->k;
    return FKT_OK;
}

static fkt_status map_classes(struct fkt_dataset_builder *b, const struct fkt_dataset_options *o)
{
    struct fkt_dataset *ds = b->ds;
    uint32_t *map = NULL;
    fkt_status st = FKT_OK;
    int list = o && o->classes;
    if (!list && b->keep_order) return FKT_OK;
    FKT_TRY(fkt_alloc(&map, ds->k));
    FKT_TRY(list ? map_to_list(b, map, o->classes, o->n_classes) : sort_classes(b, map));
    for (size_t i = 0; i < ds->n; i++) ds->records[i].label = map[ds->records[i].label];
out:
    fkt_free(map);
    return st;
}

static int by_label_then_name(const void *a, const void *b, void *names)
{
    const struct fkt_record *x = a, *y = b;
    const char *text = names;
    int c;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    c = strcmp(text + x->name, text + y->name);
    return c ? c : (x->raw > y->raw) - (x->raw < y->raw);
}

static fkt_status refuse_empty(const struct fkt_dataset *ds)
{
    size_t *count = NULL;
    fkt_status st = FKT_OK;
    FKT_TRY(fkt_alloc(&count, ds->k));
    for (size_t i = 0; i < ds->n; i++) count[ds->records[i].label]++;
    for (size_t k = 0; k < ds->k; k++)
        if (!count[k]) {
            st = fkt_fail_hint(FKT_E_FORMAT,
                               "put images into it or remove it; a task may have classes that a site has none of",
                               "class folder '%s' holds no images", ds->names.text + ds->classes[k]);
            break;
        }
out:
    fkt_free(count);
    return st;
}

/* In a tar a member may occur twice (tar -r): the later one replaces the earlier, as when it is unpacked. */
static void drop_replaced(struct fkt_dataset *ds)
{
    size_t kept = 0;
    for (size_t i = 0; i < ds->n; i++) {
        const struct fkt_record *r = &ds->records[i], *next = r + 1;
        if (i + 1 < ds->n && r->label == next->label && !strcmp(ds->names.text + r->name, ds->names.text + next->name))
            continue;
        ds->records[kept++] = *r;
    }
    ds->n = kept;
}

fkt_status fkt_builder_finish(struct fkt_dataset_builder *b, const struct fkt_dataset_options *o)
{
    struct fkt_dataset *ds = b->ds;
    fkt_status st = FKT_OK;
    if (b->splits && b->unsplit)
        return fkt_fail(FKT_E_FORMAT, "'%s' has records inside and outside of its splits", b->path);
    if (ds->n == 0)
        return fkt_fail_hint(FKT_E_FORMAT,
                             b->loose
                                 ? "its images are not in class folders: give the folder above, in which each class "
                                   "has a folder of its name"
                                 : FKT_FORMATS_HINT,
                             "'%s' holds no images in class folders (%zu other files)", b->path, ds->skipped);
    if (b->no_empty && !(o && o->classes)) FKT_TRY(refuse_empty(ds));
    FKT_TRY(choose_split(b, o ? o->split : NULL));
    FKT_TRY(map_classes(b, o));
    if (!b->keep_order) {
        qsort_r(ds->records, ds->n, sizeof *ds->records, by_label_then_name, ds->names.text);
        drop_replaced(ds);
    }
    for (size_t i = 0; i < ds->n; i++) ds->records[i].number = i;
    FKT_TRY(fkt_limit_keep(ds, o ? o->limit : 0, o && o->limit_by_number));
out:
    return st;
}

void fkt_builder_clear(struct fkt_dataset_builder *b)
{
    fkt_free(b->order);
    b->order = NULL;
    fkt_safe_names_free(b->folders, b->n_folders);
    fkt_safe_names_free(b->folder_classes, b->n_folders);
    b->folders = b->folder_classes = NULL;
    b->n_folders = 0;
}
