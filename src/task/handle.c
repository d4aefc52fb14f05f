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

fkt_status fkt_task_make(struct fkt_task **out, const struct fkt_task_choices *choices, const struct fkt_codec *codec,
                         const struct fkt_calibration *calibration)
{
    struct fkt_task *t = NULL;
    fkt_status st;
    *out = NULL;
    st = fkt_alloc(&t, 1);
    if (st == FKT_OK) st = fkt_task_make_into(t, choices, codec, calibration);
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
const char *fkt_task_codec(const struct fkt_task *t) { return t->codec; }
uint32_t fkt_task_codec_dim(const struct fkt_task *t) { return t->codec_dim; }
const char *fkt_task_codec_identity(const struct fkt_task *t) { return t->codec_identity; }
const char *fkt_task_calibration_source(const struct fkt_task *t) { return t->calibration_source; }
const char *fkt_task_calibration_sha256(const struct fkt_task *t) { return t->calibration_sha256; }
const struct fkt_coordinates *fkt_task_coordinates(const struct fkt_task *t) { return &t->coordinates; }
const struct fkt_privacy_spec *fkt_task_privacy(const struct fkt_task *t) { return &t->privacy; }

const struct fkt_federation *fkt_task_federation(const struct fkt_task *t)
{
    return t->federation.sites ? &t->federation : NULL;
}

const struct fkt_service *fkt_task_service(const struct fkt_task *t)
{
    return t->service.address[0] ? &t->service : NULL;
}

const struct fkt_signature *fkt_task_signature(const struct fkt_task *t)
{
    return t->signature.there ? &t->signature : NULL;
}
