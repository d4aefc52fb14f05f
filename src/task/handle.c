/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - a task as the handle that the public header shows, so that a task may gain members without a new soname.
 *
 * Inside the library a task is a member of another struct: the functions that end in _into fill it. */
#include "task/task.h"

#include "base/alloc.h"

void fkt_task_free(struct fkt_task *t)
{
    if (!t) return;
    fkt_task_clear(t);
    fkt_free(t);
}

/* Passes *t on, or frees it when st is an error. */
static fkt_status give(struct fkt_task **out, struct fkt_task *t, fkt_status st)
{
    if (st == FKT_OK) *out = t;
    else fkt_task_free(t);
    return st;
}

fkt_status fkt_task_make(struct fkt_task **out, const struct fkt_task_choices *choices,
                         const struct fkt_part_choice *parts, uint32_t n)
{
    struct fkt_task *t = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&t, 1);
    if (st == FKT_OK) st = fkt_task_make_into(t, choices, parts, n);
    return give(out, t, st);
}

fkt_status fkt_task_parse(struct fkt_task **out, const char *json, size_t len)
{
    struct fkt_task *t = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&t, 1);
    if (st == FKT_OK) st = fkt_task_parse_into(t, json, len);
    return give(out, t, st);
}

fkt_status fkt_task_load(struct fkt_task **out, const char *path)
{
    struct fkt_task *t = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&t, 1);
    if (st == FKT_OK) st = fkt_task_load_into(t, path);
    return give(out, t, st);
}

const char *fkt_task_name(const struct fkt_task *t) { return t->name; }
const char *fkt_task_sha256(const struct fkt_task *t) { return t->sha256; }
uint32_t fkt_task_classes(const struct fkt_task *t) { return t->n_classes; }
const char *fkt_task_class(const struct fkt_task *t, uint32_t k) { return k < t->n_classes ? t->classes[k] : ""; }
uint32_t fkt_task_size(const struct fkt_task *t) { return t->size; }
enum fkt_filter fkt_task_filter(const struct fkt_task *t) { return t->filter; }
enum fkt_fit fkt_task_fit(const struct fkt_task *t) { return t->fit; }
uint32_t fkt_task_parts(const struct fkt_task *t) { return t->parts; }
int fkt_task_joined(const struct fkt_task *t) { return t->joined; }
const struct fkt_moments_layout *fkt_task_layout(const struct fkt_task *t) { return &t->layout; }

const struct fkt_task_part *fkt_task_part(const struct fkt_task *t, uint32_t p)
{
    return p < t->parts ? &t->part[p] : NULL;
}

const struct fkt_task_part *fkt_task_part_of(const struct fkt_task *t, enum fkt_part_kind kind)
{
    for (uint32_t p = 0; p < t->parts; p++)
        if (t->part[p].kind == kind) return &t->part[p];
    return NULL;
}

const struct fkt_privacy_spec *fkt_task_privacy(const struct fkt_task *t) { return &t->privacy; }

const struct fkt_federation *fkt_task_federation(const struct fkt_task *t)
{
    return t->federation.sites ? &t->federation : NULL;
}

const struct fkt_division *fkt_task_division(const struct fkt_task *t)
{
    return t->division.number ? &t->division : NULL;
}

const struct fkt_service *fkt_task_service(const struct fkt_task *t)
{
    return t->service.address[0] ? &t->service : NULL;
}

const struct fkt_signature *fkt_task_signature(const struct fkt_task *t)
{
    return t->signature.there ? &t->signature : NULL;
}
