/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - a labelled set on its way to disk: what the formats have in common.
 *
 *   open (names, checks) -> add x total -> close          formats: export_folder.c, export_npz.c, export_webdataset.c
 *
 * The promise of exactly `total` images is kept or the set is dropped, since an .npz states its length first.
 * classes.json (the true class names in the order of their labels) is written last in every format, so it stands beside
 * whole sets only. The bytes depend on the images and names alone: no times, users, paths or threads. Making a PNG
 * takes longer than writing it and than decoding the image on a card, so several are made at once. Memory: the images
 * of one call. */
#include "images/export.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/threads.h"

#include <string.h>

static const struct fkt_export_ops *ops_of(enum fkt_export_format format)
{
    switch (format) {
    case FKT_EXPORT_FOLDER: return &fkt_export_folder;
    case FKT_EXPORT_NPZ: return &fkt_export_npz;
    case FKT_EXPORT_WEBDATASET: return &fkt_export_webdataset;
    case FKT_EXPORT_DPIMAGEBENCH: return &fkt_export_dpimagebench;
    }
    return NULL;
}

static fkt_status check(const struct fkt_export_ops *ops, const char *split, size_t n_classes, uint32_t size,
                        size_t total)
{
    size_t bytes; /* the most that a format needs for them */
    if (!ops) return fkt_fail(FKT_E_ARG, "unknown export format");
    if (strcmp(split, "train") != 0 && strcmp(split, "test") != 0)
        return fkt_fail(FKT_E_ARG, "split '%s' is neither 'train' nor 'test'", split);
    if (n_classes < 1 || n_classes > 65536)
        return fkt_fail(FKT_E_ARG, "%zu classes: an export has 1 to 65536", n_classes);
    if (size < 1 || size > 4096)
        return fkt_fail(FKT_E_ARG, "images of %u pixels a side: an export takes 1 to 4096", size);
    if (total < 1 || !fkt_mul_size(total, (size_t)size * size * 3 * sizeof(float) + sizeof(int64_t), &bytes))
        return fkt_fail(FKT_E_ARG, "cannot export %zu images", total);
    return FKT_OK;
}

fkt_status fkt_export_open(struct fkt_export **out, const char *path, enum fkt_export_format format, const char *split,
                           const char *const *classes, size_t n_classes, uint32_t size, size_t total)
{
    struct fkt_export *e = NULL;
    fkt_status st;

    *out = NULL;
    FKT_TRY(check(ops_of(format), split, n_classes, size, total));
    FKT_TRY(fkt_alloc(&e, 1));
    e->ops = ops_of(format);
    e->n_classes = n_classes;
    e->size = size;
    e->total = total;
    FKT_TRY(fkt_strdup(&e->path, path));
    FKT_TRY(fkt_strdup(&e->split, split));
    FKT_TRY(fkt_alloc(&e->classes, n_classes));
    for (size_t k = 0; k < n_classes; k++) FKT_TRY(fkt_strdup(&e->classes[k], classes[k]));
    FKT_TRY(fkt_folder_names(&e->names, classes, n_classes));
    FKT_TRY(e->ops->open(e));
    *out = e;
    e = NULL;
out:
    fkt_export_free(e);
    return st;
}

static fkt_status add(struct fkt_export *e, uint32_t label, const uint8_t *data, size_t len)
{
    fkt_status st;
    if (label >= e->n_classes) return fkt_fail(FKT_E_ARG, "label %u is outside the %zu classes", label, e->n_classes);
    if (e->added >= e->total)
        return fkt_fail(FKT_E_STATE, "more images than the %zu announced for '%s'", e->total, e->path);
    st = e->ops->add(e, label, data, len);
    if (st == FKT_OK) e->added++;
    else e->broken = 1;
    return st;
}

struct pngs {
    const struct fkt_export *e;
    const uint8_t *rgb;
    uint8_t **data; /* (n) */
    size_t *len;    /* (n) */
};

static fkt_status make_png(void *ctx, size_t item, unsigned worker)
{
    const struct pngs *p = ctx;
    const uint32_t size = p->e->size;
    (void)worker;
    return fkt_png_encode(&p->data[item], &p->len[item], p->rgb + item * size * size * 3, size, size);
}

static fkt_status make_pngs(struct pngs *p, size_t n, unsigned threads)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&p->data, n));
    FKT_TRY(fkt_alloc(&p->len, n));
    FKT_TRY(fkt_parallel(threads, n, make_png, p, NULL, NULL));
out:
    return st;
}

fkt_status fkt_export_add_some(struct fkt_export *e, const uint32_t *label, const uint8_t *rgb, size_t n,
                               unsigned threads)
{
    const size_t pixels = (size_t)e->size * e->size * 3;
    struct pngs p = {.e = e, .rgb = rgb};
    fkt_status st = FKT_OK;
    if (e->broken) return fkt_fail(FKT_E_STATE, "the export to '%s' has failed already", e->path);
    if (e->ops->png) {
        st = make_pngs(&p, n, threads);
        e->broken = st != FKT_OK;
        if (st != FKT_OK) goto out;
    }
    for (size_t i = 0; i < n; i++)
        FKT_TRY(p.data ? add(e, label[i], p.data[i], p.len[i]) : add(e, label[i], rgb + i * pixels, pixels));
out:
    for (size_t i = 0; p.data && i < n; i++) fkt_free(p.data[i]);
    fkt_free(p.data);
    fkt_free(p.len);
    return st;
}

fkt_status fkt_export_add(struct fkt_export *e, uint32_t label, const uint8_t *rgb)
{
    return fkt_export_add_some(e, &label, rgb, 1, 1);
}

static fkt_status write_classes(const struct fkt_export *e)
{
    struct fkt_text t;
    char *path = NULL;
    fkt_status st;
    fkt_text_init(&t);
    for (size_t k = 0; k < e->n_classes; k++) {
        fkt_text_add(&t, k ? ",\n " : "[");
        fkt_json_quote(&t, e->classes[k]);
    }
    fkt_text_add(&t, "]\n");
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_path_join(&path, e->path, "classes.json"));
    FKT_TRY(fkt_file_write(path, t.s, t.len, 1));
out:
    fkt_free(path);
    fkt_text_clear(&t);
    return st;
}

fkt_status fkt_export_close(struct fkt_export **out)
{
    struct fkt_export *e = *out;
    fkt_status st = FKT_OK;
    *out = NULL;
    if (e->broken) st = fkt_fail(FKT_E_STATE, "the export to '%s' has failed already", e->path);
    else if (e->added != e->total)
        st = fkt_fail(FKT_E_STATE, "only %zu of the %zu images announced for '%s' came", e->added, e->total, e->path);
    if (st == FKT_OK) st = e->ops->finish(e);
    if (st == FKT_OK) st = write_classes(e);
    fkt_export_free(e);
    return st;
}

void fkt_export_free(struct fkt_export *e)
{
    if (!e) return;
    fkt_export_archive_drop(e);
    fkt_safe_names_free(e->classes, e->n_classes);
    fkt_safe_names_free(e->names, e->n_classes);
    fkt_free(e->path);
    fkt_free(e->split);
    fkt_free(e->made);
    fkt_free(e->labels);
    fkt_free(e->planes);
    fkt_free(e);
}
