/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - bytes at offsets: a plain file, or the decompressed copy of a compressed one. */
#ifndef FKT_IMAGES_SOURCE_H
#define FKT_IMAGES_SOURCE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct archive;
struct fkt_stored; /* backend.h, and so is: */
struct fkt_facts;

struct fkt_source {
    int fd; /* -1 when closed */
    uint64_t size;
    uint64_t room; /* bytes that may still be unpacked from it */
};
void fkt_source_init(struct fkt_source *s);
/* Opens a regular file. Files packed with gzip, xz, zstd or bzip2 (seen from their first bytes) are unpacked once to a
 * spool; those packed twice, and those that unpack to far more than their size, are refused. */
FKT_MUST_USE fkt_status fkt_source_open(struct fkt_source *s, const char *path);
/* The same without unpacking; the sentence of a failure does not name the file. */
FKT_MUST_USE fkt_status fkt_source_open_plain(struct fkt_source *s, const char *path);
void fkt_source_close(struct fkt_source *s);

/* All of len bytes at `at`, or FKT_E_FORMAT when the file ends first. Safe from several threads. */
FKT_MUST_USE fkt_status fkt_source_read(const struct fkt_source *s, uint64_t at, void *out, size_t len);
/* The same into *out, whose block is used again; at most FKT_IMAGE_MAX_FILE. */
FKT_MUST_USE fkt_status fkt_source_stored(const struct fkt_source *s, uint64_t at, uint64_t size,
                                          struct fkt_stored *out);
/* Reads the image in `size` bytes at `at`; see fkt_image_decode_memory. */
FKT_MUST_USE fkt_status fkt_source_decode(const struct fkt_source *s, uint64_t at, uint64_t size, unsigned bits,
                                          uint8_t **rgb, uint32_t *w, uint32_t *h, struct fkt_facts *facts);

/* Appends to a spool at s->size, which grows. */
FKT_MUST_USE fkt_status fkt_source_append(struct fkt_source *s, const void *data, size_t len);
/* Appends all data of the current entry of `a`, which reads `from`: at most from->room bytes, which shrinks. path is
 * for the sentence. */
FKT_MUST_USE fkt_status fkt_source_append_entry(struct fkt_source *s, struct archive *a, struct fkt_source *from,
                                                const char *path);

/* What the first bytes say. */
enum fkt_kind { FKT_KIND_UNKNOWN, FKT_KIND_TAR, FKT_KIND_ZIP, FKT_KIND_IDX };
FKT_MUST_USE fkt_status fkt_source_kind(const struct fkt_source *s, enum fkt_kind *kind);

#endif
