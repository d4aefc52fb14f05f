/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - images inside a tar, read in place.
 *
 * libarchive reads the headers once (it knows ustar, pax, GNU long names, and skips the data by seeking); we remember
 * where each member's bytes are and pread them when asked: a set of 27,000 images opens in a fraction of a second, and
 * nothing is unpacked to disk, so member names with ".." or absolute paths can do no harm. A member's data end, padded
 * to 512, where the next header begins: that gives the offset without knowing how many extension headers stood before
 * it. That also means that a damaged header may not be stepped over, as libarchive offers (ARCHIVE_RETRY): its member
 * would be lost and the one before it read from the wrong place. Compressed tars are unpacked to a spool first
 * (source.c). Links inside the tar are refused by name rather than lost. Cost: one pass over the headers. */
#include "images/tar.h"

#include "base/alloc.h"
#include "images/formats.h"
#include "images/layout.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <unistd.h>

static void tar_free(void *self)
{
    struct fkt_tar *t = self;
    if (!t) return;
    for (size_t i = 0; i < t->n_shards; i++) fkt_source_close(&t->shards[i]);
    fkt_free(t->shards);
    fkt_free(t->names.text);
    fkt_free(t->members);
    fkt_free(t);
}

static fkt_status tar_decode(const void *self, size_t r, uint8_t **rgb, uint32_t *w, uint32_t *h,
                             struct fkt_facts *facts)
{
    const struct fkt_tar *t = self;
    const struct fkt_member *m = &t->members[r];
    return fkt_source_decode(&t->shards[m->shard], m->at, m->size, t->bits, rgb, w, h, facts);
}

static fkt_status tar_stored(const void *self, size_t r, struct fkt_stored *out)
{
    const struct fkt_tar *t = self;
    const struct fkt_member *m = &t->members[r];
    return fkt_source_stored(&t->shards[m->shard], m->at, m->size, out);
}

static const struct fkt_dataset_backend as_folder = {"tar of ImageFolder", tar_decode, tar_free, tar_stored};
static const struct fkt_dataset_backend as_webdataset = {"WebDataset", tar_decode, tar_free, tar_stored};

/* The member's path without "./" and leading slashes, or NULL when it is to be passed over. */
static const char *member_path(struct archive_entry *e)
{
    const char *p = archive_entry_pathname_utf8(e);
    if (!p) p = archive_entry_pathname(e); /* bytes that are no UTF-8, kept as they are */
    if (!p) return NULL;
    while (*p == '/' || (p[0] == '.' && p[1] == '/')) p++;
    for (const char *s = p; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL) {
        if (!strncmp(s, "./", 2) || !strncmp(s, "../", 3)) continue;
        if (s[0] == '.' || !strncmp(s, "__MACOSX/", 9)) return NULL;
    }
    return *p ? p : NULL;
}

static fkt_status add_member(struct fkt_tar *t, const char *path, uint32_t shard, uint64_t size)
{
    struct fkt_member *m;
    fkt_status st;
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 256;
        st = fkt_realloc(&t->members, cap);
        if (st != FKT_OK) return st;
        t->cap = cap;
    }
    m = &t->members[t->n];
    m->at = 0;
    m->size = size;
    m->shard = shard;
    st = fkt_names_add(&t->names, path, strlen(path), &m->path);
    if (st == FKT_OK) t->n++;
    return st;
}

static int wanted(const char *path)
{
    return fkt_is_image_name(path) || !strcmp(fkt_ending(path), "cls") || !strcmp(fkt_ending(path), "json");
}

static fkt_status pass_over(struct fkt_dataset_builder *b, const char *tar, const char *path)
{
    return fkt_is_our_name(path) ? FKT_OK : fkt_builder_skip(b, "%s:%s", tar, path);
}

/* Handles the current entry; *pending tells that the last member still needs its offset. */
static fkt_status take_entry(struct fkt_dataset_builder *b, struct fkt_tar *t, struct archive_entry *e, uint32_t shard,
                             int *pending)
{
    const char *path = member_path(e), *tar = t->shard_paths[shard];
    int64_t size = archive_entry_size(e);
    *pending = 0;
    if (!path) return FKT_OK;
    if (archive_entry_hardlink(e) || archive_entry_filetype(e) == AE_IFLNK) {
        if (fkt_is_image_name(path))
            return fkt_fail_hint(FKT_E_FORMAT, "make the tar with --dereference --hard-dereference",
                                 "'%s:%s' is a link, not an image", tar, path);
        return pass_over(b, tar, path);
    }
    if (archive_entry_filetype(e) == AE_IFDIR) return FKT_OK;
    if (archive_entry_filetype(e) != AE_IFREG || !wanted(path)) {
        return pass_over(b, tar, path);
    }
    if (archive_entry_sparse_count(e) > 0 || size < 0)
        return fkt_fail_hint(FKT_E_FORMAT, "make the tar without --sparse", "'%s:%s' is stored with holes", tar, path);
    *pending = 1;
    return add_member(t, path, shard, (uint64_t)size);
}

static fkt_status index_shard(struct fkt_dataset_builder *b, struct fkt_tar *t, uint32_t shard)
{
    const struct fkt_source *s = &t->shards[shard];
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    fkt_status st = FKT_OK;
    int pending = 0, r;
    if (!a) return fkt_fail(FKT_E_NOMEM, "out of memory in the archive library");
    archive_read_support_format_tar(a);
    archive_read_support_filter_none(a);
    if (lseek(s->fd, 0, SEEK_SET) != 0 || archive_read_open_fd(a, s->fd, 1U << 16) != ARCHIVE_OK) {
        st = fkt_fail(FKT_E_FORMAT, "cannot read '%s': %s", t->shard_paths[shard], archive_error_string(a));
        goto out;
    }
    for (;;) {
        r = archive_read_next_header(a, &e);
        if (pending) { /* the header just reached, or the end, lies behind the padded data of the member before it */
            struct fkt_member *m = &t->members[t->n - 1];
            uint64_t next = (uint64_t)archive_read_header_position(a), padded = (m->size + 511) & ~(uint64_t)511;
            if (m->size > s->size || padded > next || next - padded > s->size - m->size) r = ARCHIVE_FATAL;
            m->at = next - padded;
        }
        if (r == ARCHIVE_EOF) break;
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN) { /* WARN: a name that this locale cannot spell; the bytes are fine */
            const char *why = archive_error_string(a);
            st = fkt_fail_hint(FKT_E_FORMAT, "fetch the file again", "damaged or truncated tar '%s': %s",
                               t->shard_paths[shard], why ? why : "a member lies outside of the file");
            break;
        }
        FKT_TRY(take_entry(b, t, e, shard, &pending));
    }
out:
    archive_read_free(a);
    return st;
}

/* The images alone, laid out by their folders. */
static fkt_status add_as_folder(struct fkt_dataset_builder *b, struct fkt_tar *t)
{
    const char **paths = NULL;
    char *prefix = NULL;
    size_t kept = 0, n = strlen(t->shard_paths[0]);
    fkt_status st;
    for (size_t i = 0; i < t->n; i++) {
        const char *member = t->names.text + t->members[i].path;
        if (fkt_is_image_name(member)) t->members[kept++] = t->members[i];
        else FKT_TRY(pass_over(b, t->shard_paths[0], member));
    }
    t->n = kept;
    FKT_TRY(fkt_alloc(&paths, t->n));
    FKT_TRY(fkt_alloc(&prefix, n + 2));
    memcpy(prefix, t->shard_paths[0], n);
    prefix[n] = ':';
    for (size_t i = 0; i < t->n; i++) paths[i] = t->names.text + t->members[i].path;
    FKT_TRY(fkt_layout_add(b, prefix, paths, t->n, 1, NULL, 0));
out:
    fkt_free(paths);
    fkt_free(prefix);
    return st;
}

fkt_status fkt_tars_open(struct fkt_dataset_builder *b, const char *const *paths, size_t n, struct fkt_source *first)
{
    struct fkt_tar *t = NULL;
    int web;
    fkt_status st;
    if (n == 0) { /* `first` is NULL then */
        st = fkt_fail(FKT_E_IO, "'%s' does not hold tars any more", b->path);
        goto out;
    }
    FKT_TRY(fkt_alloc(&t, 1));
    fkt_builder_backend(b, &as_folder, t);
    FKT_TRY(fkt_alloc(&t->shards, n));
    for (size_t i = 0; i < n; i++) fkt_source_init(&t->shards[i]);
    t->n_shards = n;
    t->shard_paths = paths;
    t->bits = b->bits;
    if (first) {
        t->shards[0] = *first;
        fkt_source_init(first);
    }
    for (size_t i = 0; i < n; i++) {
        if (t->shards[i].fd < 0) FKT_TRY(fkt_source_open(&t->shards[i], paths[i]));
        FKT_TRY(index_shard(b, t, (uint32_t)i));
    }
    web = fkt_webdataset_looks(t);
    if (!web && n > 1) {
        st = fkt_fail_hint(FKT_E_FORMAT, "open one of the tars, or unpack them side by side",
                           "'%s' holds %zu tars that are not a WebDataset: no .cls or .json beside the images", b->path,
                           n);
        goto out;
    }
    if (web) fkt_builder_backend(b, &as_webdataset, t);
    FKT_TRY(web ? fkt_webdataset_add(b, t) : add_as_folder(b, t));
    fkt_free(t->names.text);
    memset(&t->names, 0, sizeof t->names);
    t->shard_paths = NULL;
out:
    if (first) fkt_source_close(first);
    return st;
}
