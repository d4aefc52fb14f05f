/* SPDX-License-Identifier: Apache-2.0 */
/* export_npz.c - a labelled set as one NumPy file, in one of two layouts.
 *
 *   MedMNIST's       dataset.npz   train_images uint8 (n,S,S,3), train_labels uint8 or uint16 (n,1)
 *   DPImageBench's   gen.npz       x float32 (n,3,S,S) between 0 and 1, y int64 (n): what its evaluation takes
 *
 * Source: the NPY format, version 1.0, of the NumPy documentation; an .npz is a zip of them. DPImageBench: eval.py and
 * evaluation/evaluator.py of its repository, which trains classifiers on x and y as they are. The number of images is
 * known before the first, so the array's header is final when it is written and pixels stream through. Labels wait in
 * memory for their turn. A float is pixel / 255 rounded to nearest; times 255 and cut to a byte, as DPImageBench does
 * for its FID, it gives the pixel again. */
#include "images/export.h"

#include "base/alloc.h"

#include <string.h>

static int is_bench(const struct fkt_export *e) { return e->ops == &fkt_export_dpimagebench; }
static size_t label_bytes(const struct fkt_export *e) { return is_bench(e) ? 8 : e->n_classes > 256 ? 2 : 1; }

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

static fkt_status begin_array(struct fkt_export *e, const char *name, const char *descr, const char *shape,
                              uint64_t bytes)
{
    char header[256];
    size_t n = npy_header(header, descr, shape);
    fkt_status st;
    FKT_TRY(fkt_export_archive_entry(e, name, n + bytes));
    FKT_TRY(fkt_export_archive_data(e, header, n));
out:
    return st;
}

static fkt_status npz_open(struct fkt_export *e)
{
    const uint64_t values = (uint64_t)e->total * e->size * e->size * 3;
    char shape[96], name[64];
    fkt_status st;
    FKT_TRY(fkt_alloc(&e->labels, e->total * label_bytes(e)));
    FKT_TRY(fkt_export_archive_begin(e, is_bench(e) ? "gen.npz" : "dataset.npz", 1));
    if (is_bench(e)) {
        FKT_TRY(fkt_alloc(&e->planes, (size_t)e->size * e->size * 3));
        snprintf(shape, sizeof shape, "%zu, 3, %u, %u", e->total, e->size, e->size);
        FKT_TRY(begin_array(e, "x.npy", "<f4", shape, values * sizeof(float)));
    } else {
        snprintf(shape, sizeof shape, "%zu, %u, %u, 3", e->total, e->size, e->size);
        snprintf(name, sizeof name, "%s_images.npy", e->split);
        FKT_TRY(begin_array(e, name, "|u1", shape, values));
    }
out:
    return st;
}

static fkt_status npz_add(struct fkt_export *e, uint32_t label, const uint8_t *rgb, size_t len)
{
    const size_t width = label_bytes(e), area = len / 3;
    for (size_t b = 0; b < width; b++) e->labels[e->added * width + b] = b < 4 ? (uint8_t)(label >> (8 * b)) : 0;
    if (!is_bench(e)) return fkt_export_archive_data(e, rgb, len);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < area; i++) e->planes[c * area + i] = (float)rgb[3 * i + c] / 255.0F;
    return fkt_export_archive_data(e, e->planes, len * sizeof *e->planes);
}

static fkt_status npz_finish(struct fkt_export *e)
{
    const size_t width = label_bytes(e);
    char shape[48], name[64];
    fkt_status st;
    snprintf(shape, sizeof shape, is_bench(e) ? "%zu," : "%zu, 1", e->total);
    snprintf(name, sizeof name, "%s_labels.npy", e->split);
    FKT_TRY(begin_array(e, is_bench(e) ? "y.npy" : name,
                        width == 8   ? "<i8"
                        : width == 2 ? "<u2"
                                     : "|u1",
                        shape, (uint64_t)e->total * width));
    FKT_TRY(fkt_export_archive_data(e, e->labels, e->total * width));
    FKT_TRY(fkt_export_archive_end(e));
out:
    return st;
}

const struct fkt_export_ops fkt_export_npz = {.open = npz_open, .add = npz_add, .finish = npz_finish};
const struct fkt_export_ops fkt_export_dpimagebench = {.open = npz_open, .add = npz_add, .finish = npz_finish};
