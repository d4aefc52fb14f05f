/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens a path (or "demo:...") as a dataset. Nothing is decoded here: an image that cannot be read is found
 * when it is read, and the reader then counts it or stops (skip_bad is an option of the reader). */
#include "images/formats.h"

#include "base/alloc.h"

#include <string.h>

fkt_status fkt_dataset_options_check(const struct fkt_dataset_options *o)
{
    if (o && o->bits && (o->bits < 9 || o->bits > 16))
        return fkt_fail(FKT_E_ARG, "a depth of %u bits is out of range: 9 to 16", o->bits);
    if (o && (unsigned)o->fit > FKT_FIT_STRETCH) return fkt_fail(FKT_E_ARG, "unknown fit %d", (int)o->fit);
    if (!o || !o->classes) return FKT_OK;
    if (o->n_classes == 0) return fkt_fail(FKT_E_ARG, "the class list is empty");
    if (o->n_classes > FKT_CLASSES_MAX)
        return fkt_fail(FKT_E_ARG, "the class list has %zu names: at most %u", o->n_classes, FKT_CLASSES_MAX);
    for (size_t i = 0; i < o->n_classes; i++)
        if (!o->classes[i] || !o->classes[i][0])
            return fkt_fail(FKT_E_ARG, "class %zu of the class list has no name", i);
    return FKT_OK;
}

fkt_status fkt_dataset_open(struct fkt_dataset **out, const char *path, const struct fkt_dataset_options *options)
{
    struct fkt_dataset_builder b;
    fkt_status st;
    memset(&b, 0, sizeof b);
    *out = NULL;
    FKT_TRY(fkt_dataset_options_check(options));
    FKT_TRY(fkt_alloc(&b.ds, 1));
    b.path = path;
    b.bits = options ? options->bits : 0;
    b.unlabelled = options && options->unlabelled;
    b.ds->fit = options ? options->fit : FKT_FIT_CROP;
    FKT_TRY(!strncmp(path, "demo:", 5) ? fkt_procedural_open(&b, path + 5) : fkt_recognise(&b, path));
    FKT_TRY(fkt_builder_finish(&b, options));
    *out = b.ds;
    b.ds = NULL;
out:
    fkt_builder_clear(&b);
    fkt_dataset_free(b.ds);
    return st;
}
