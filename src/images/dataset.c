/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c - a labelled set as other modules see it: n records, K classes, and pixels of one size on demand.
 * Everything but the backend's own reading is immutable after opening, so that reading needs no lock. */
#include "images/dataset.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "images/resize.h"

void fkt_dataset_free(struct fkt_dataset *ds)
{
    if (!ds) return;
    if (ds->vt) ds->vt->free(ds->self);
    fkt_free(ds->names.text);
    fkt_free(ds->records);
    fkt_free(ds->classes);
    fkt_free(ds);
}

size_t fkt_dataset_size(const struct fkt_dataset *ds) { return ds->n; }
size_t fkt_dataset_classes(const struct fkt_dataset *ds) { return ds->k; }
const char *fkt_dataset_class(const struct fkt_dataset *ds, size_t k)
{
    return k < ds->k ? ds->names.text + ds->classes[k] : "";
}
uint32_t fkt_dataset_label(const struct fkt_dataset *ds, size_t i) { return i < ds->n ? ds->records[i].label : 0; }
const char *fkt_dataset_name(const struct fkt_dataset *ds, size_t i)
{
    return i < ds->n ? ds->names.text + ds->records[i].name : "";
}
const char *fkt_dataset_format(const struct fkt_dataset *ds) { return ds->vt->format; }
enum fkt_fit fkt_dataset_fit(const struct fkt_dataset *ds) { return ds->fit; }
size_t fkt_dataset_skipped(const struct fkt_dataset *ds) { return ds->skipped; }
const char *fkt_dataset_skipped_name(const struct fkt_dataset *ds, size_t i)
{
    return i < ds->skipped && i < FKT_DATASET_NAMED ? ds->names.text + ds->skipped_name[i] : "";
}
size_t fkt_dataset_nested(const struct fkt_dataset *ds, const char **first)
{
    if (first) *first = ds->nested ? ds->names.text + ds->nested_name : "";
    return ds->nested;
}

fkt_status fkt_dataset_read(const struct fkt_dataset *ds, size_t i, uint32_t size, enum fkt_filter filter, uint8_t *rgb,
                            unsigned *note)
{
    return fkt_dataset_read_seen(ds, i, size, filter, rgb, note, NULL, NULL);
}

fkt_status fkt_dataset_read_seen(const struct fkt_dataset *ds, size_t i, uint32_t size, enum fkt_filter filter,
                                 uint8_t *rgb, unsigned *note, fkt_image_seen *seen, void *ctx)
{
    uint8_t *whole = NULL;
    uint32_t w = 0, h = 0;
    struct fkt_facts facts = {0};
    fkt_status st = FKT_OK;
    if (i >= ds->n) return fkt_fail(FKT_E_ARG, "there is no record %zu: the set has %zu", i, ds->n);
    if (size < 1 || size > FKT_IMAGE_MAX_SIDE)
        return fkt_fail(FKT_E_ARG, "size %u is out of range: 1 to %u", size, FKT_IMAGE_MAX_SIDE);
    FKT_TRY(ds->vt->decode(ds->self, ds->records[i].raw, &whole, &w, &h, &facts));
    if (seen && seen(ctx, whole, w, h, &facts)) goto out;
    FKT_TRY(fkt_resize(rgb, size, whole, w, h, filter, ds->fit));
    if (w != size || h != size) facts.note |= FKT_IMAGE_RESIZED;
    if (w < size || h < size) facts.note |= FKT_IMAGE_ENLARGED;
    if (note) *note = facts.note;
out:
    fkt_free_secret(whole);
    return fkt_fail_in(st, "cannot read '%s'", fkt_dataset_name(ds, i));
}

fkt_status fkt_dataset_read_original(const struct fkt_dataset *ds, size_t i, uint8_t **rgb, uint32_t *width,
                                     uint32_t *height)
{
    struct fkt_facts facts;
    return fkt_dataset_read_whole(ds, i, rgb, width, height, &facts);
}

fkt_status fkt_dataset_read_whole(const struct fkt_dataset *ds, size_t i, uint8_t **rgb, uint32_t *width,
                                  uint32_t *height, struct fkt_facts *facts)
{
    *rgb = NULL;
    *facts = (struct fkt_facts){0};
    if (i >= ds->n) return fkt_fail(FKT_E_ARG, "there is no record %zu: the set has %zu", i, ds->n);
    return fkt_fail_in(ds->vt->decode(ds->self, ds->records[i].raw, rgb, width, height, facts), "cannot read '%s'",
                       fkt_dataset_name(ds, i));
}
