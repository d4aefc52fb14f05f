/* SPDX-License-Identifier: Apache-2.0 */
/* export_npz.c - a labelled set as one NumPy file in MedMNIST's layout: train_images (n,S,S,3) uint8, train_labels
 * (n,1).
 *
 * Source: the NPY format, version 1.0, of the NumPy documentation; an .npz is a zip of them. The number of images is
 * known before the first, so the array's header is final when it is written and pixels stream through. Labels wait in
 * memory for their turn, one byte each (two beyond 256 classes). */
#include "images/export.h"

#include "base/alloc.h"

#include <string.h>

static size_t label_bytes(const struct fkt_export *e) { return e->n_classes > 256 ? 2 : 1; }

/* "\x93NUMPY" 1 0, u16 length, dictionary, blanks, newline; in all a multiple of 64. `out` has 256 bytes. */
static size_t npy_header(char *out, const char *descr, const char *shape)
{
    char dict[192];
    int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    size_t total = (10 + (size_t)n + 1 + 63) / 64 * 64;
    memset(out, ' ', total);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - 10) & 255);
    out[9] = (char)((total - 10) >> 8);
    memcpy(out + 10, dict, (size_t)n);
    out[total - 1] = '\n';
    return total;
}

static fkt_status begin_array(struct fkt_export *e, const char *what, const char *descr, const char *shape,
                              uint64_t bytes)
{
    char header[256], name[64];
    size_t n = npy_header(header, descr, shape);
    fkt_status st;
    snprintf(name, sizeof name, "%s_%s.npy", e->split, what);
    FKT_TRY(fkt_export_archive_entry(e, name, n + bytes));
    FKT_TRY(fkt_export_archive_data(e, header, n));
out:
    return st;
}

static fkt_status npz_open(struct fkt_export *e)
{
    char shape[96];
    fkt_status st;
    FKT_TRY(fkt_alloc(&e->labels, e->total * label_bytes(e)));
    FKT_TRY(fkt_export_archive_begin(e, "dataset.npz", 1));
    snprintf(shape, sizeof shape, "%zu, %u, %u, 3", e->total, e->size, e->size);
    FKT_TRY(begin_array(e, "images", "|u1", shape, (uint64_t)e->total * e->size * e->size * 3));
out:
    return st;
}

static fkt_status npz_add(struct fkt_export *e, uint32_t label, const uint8_t *rgb, size_t len)
{
    size_t width = label_bytes(e);
    for (size_t b = 0; b < width; b++) e->labels[e->added * width + b] = (uint8_t)(label >> (8 * b));
    return fkt_export_archive_data(e, rgb, len);
}

static fkt_status npz_finish(struct fkt_export *e)
{
    size_t width = label_bytes(e);
    char shape[48];
    fkt_status st;
    snprintf(shape, sizeof shape, "%zu, 1", e->total);
    FKT_TRY(begin_array(e, "labels", width == 2 ? "<u2" : "|u1", shape, (uint64_t)e->total * width));
    FKT_TRY(fkt_export_archive_data(e, e->labels, e->total * width));
    FKT_TRY(fkt_export_archive_end(e));
out:
    return st;
}

const struct fkt_export_ops fkt_export_npz = {.open = npz_open, .add = npz_add, .finish = npz_finish};
