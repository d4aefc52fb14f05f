/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_stream.c - writes tensors row by row when their number of rows is known only at the end.
 *
 *   rows -> one unlinked temporary file per tensor -> close: head with the final counts, then one spool after another
 *
 * The header comes first in the file and holds the counts, so the data must be kept elsewhere until the end; memory
 * would grow with it, a temporary file does not. Cost: each byte is written twice and read once. */
#include "tensor/safetensors_header.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct spool {
    FILE *stream;
    uint64_t rows;
    size_t row; /* bytes */
};

struct fkt_st_stream {
    struct fkt_file file;
    struct fkt_st_header head; /* shapes hold n = 0 until close */
    struct spool *spools;      /* (n_spools) */
    size_t n_spools;
};

fkt_status fkt_st_stream_new(struct fkt_st_stream **out, const char *path, int flags)
{
    struct fkt_st_stream *s = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&s, 1));
    fkt_st_header_init(&s->head);
    FKT_TRY(fkt_file_begin(&s->file, path, flags));
    *out = s;
    s = NULL;
out:
    fkt_st_stream_free(s);
    return st;
}

void fkt_st_stream_free(struct fkt_st_stream *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_spools; i++)
        if (s->spools[i].stream) fclose(s->spools[i].stream);
    fkt_free(s->spools);
    fkt_st_header_clear(&s->head);
    fkt_file_clear(&s->file);
    fkt_free(s);
}

fkt_status fkt_st_stream_tensor(struct fkt_st_stream *s, const char *name, enum fkt_dtype dtype, unsigned rank_tail,
                                const uint64_t *shape_tail, size_t *id)
{
    uint64_t shape[FKT_ST_RANK_MAX] = {0}, count, row;
    fkt_status st;
    int fd = -1;
    if (rank_tail >= FKT_ST_RANK_MAX) return fkt_fail(FKT_E_ARG, "tensor '%s' has too many dimensions", name);
    if (rank_tail) memcpy(shape + 1, shape_tail, rank_tail * sizeof *shape_tail);
    if (!fkt_st_elements(shape + 1, rank_tail, dtype, &count, &row) || row > SIZE_MAX)
        return fkt_fail(FKT_E_ARG, "a row of tensor '%s' is too large to write", name);
    FKT_TRY(fkt_realloc(&s->spools, s->n_spools + 1));
    FKT_TRY(fkt_spool(&fd));
    FKT_TRY(fkt_st_header_add(&s->head, name, dtype, rank_tail + 1, shape));
    memset(&s->spools[s->n_spools], 0, sizeof *s->spools);
    s->spools[s->n_spools].row = (size_t)row;
    s->spools[s->n_spools].stream = fdopen(fd, "w+b");
    *id = s->n_spools++;
    if (!s->spools[*id].stream) {
        st = fkt_fail(FKT_E_IO, "cannot open a temporary file: %s", strerror(errno));
        goto out;
    }
    fd = -1;
out:
    if (fd >= 0) close(fd);
    return st;
}

fkt_status fkt_st_stream_meta(struct fkt_st_stream *s, const char *key, const char *value)
{
    return fkt_st_header_meta(&s->head, key, value);
}

fkt_status fkt_st_stream_rows(struct fkt_st_stream *s, size_t id, const void *rows, size_t n)
{
    size_t bytes;
    struct spool *p;
    if (id >= s->n_spools || !s->spools[id].stream)
        return fkt_fail(FKT_E_ARG, "the stream has no tensor number %zu", id);
    p = &s->spools[id];
    if (!fkt_mul_size(n, p->row, &bytes) || !fkt_add_u64(p->rows, n, &p->rows))
        return fkt_fail(FKT_E_ARG, "too many rows for tensor '%s'", s->head.items[id].name);
    if (bytes && fwrite(rows, 1, bytes, p->stream) != bytes)
        return fkt_fail_hint(FKT_E_IO, "free some space, or set TMPDIR to a folder that has more",
                             "cannot write a temporary file for '%s': %s", s->file.path, strerror(errno));
    return FKT_OK;
}

/* Writes the final row counts into the shapes. */
static fkt_status set_row_counts(struct fkt_st_stream *s)
{
    for (size_t i = 0; i < s->n_spools; i++) {
        struct fkt_st_item *it = &s->head.items[i];
        uint64_t count;
        if (s->spools[i].rows != s->spools[0].rows)
            return fkt_fail(FKT_E_STATE, "tensor '%s' has %" PRIu64 " rows, '%s' has %" PRIu64, s->head.items[0].name,
                            s->spools[0].rows, it->name, s->spools[i].rows);
        it->shape[0] = s->spools[i].rows;
        if (!fkt_st_elements(it->shape, it->rank, it->dtype, &count, &it->bytes))
            return fkt_fail(FKT_E_ARG, "tensor '%s' is too large to write", it->name);
    }
    return FKT_OK;
}

static fkt_status copy_spool(struct fkt_st_stream *s, size_t id, uint8_t *buf, size_t cap)
{
    struct spool *p = &s->spools[id];
    uint64_t left = s->head.items[id].bytes;
    if (fflush(p->stream) != 0 || fseeko(p->stream, 0, SEEK_SET) != 0)
        return fkt_fail_hint(FKT_E_IO, "free some space, or set TMPDIR to a folder that has more",
                             "cannot write a temporary file for '%s': %s", s->file.path, strerror(errno));
    while (left > 0) {
        size_t n = left < cap ? (size_t)left : cap;
        if (fread(buf, 1, n, p->stream) != n)
            return fkt_fail(FKT_E_IO, "cannot read back a temporary file for '%s'", s->file.path);
        (void)!fwrite(buf, 1, n, s->file.stream); /* commit sees a failure */
        left -= n;
    }
    return FKT_OK;
}

fkt_status fkt_st_stream_close(struct fkt_st_stream **sp)
{
    enum { CHUNK = 1 << 16 };
    struct fkt_st_stream *s = *sp;
    struct fkt_text head;
    uint8_t *buf = NULL;
    uint64_t data;
    fkt_status st;
    fkt_text_init(&head);
    FKT_TRY(set_row_counts(s));
    FKT_TRY(fkt_st_header_render(&s->head, &head, &data));
    FKT_TRY(fkt_alloc(&buf, CHUNK));
    (void)!fwrite(head.s, 1, head.len, s->file.stream);
    for (size_t i = 0; i < s->n_spools; i++) FKT_TRY(copy_spool(s, i, buf, CHUNK));
    FKT_TRY(fkt_file_commit(&s->file));
out:
    fkt_free(buf);
    fkt_text_clear(&head);
    fkt_st_stream_free(s);
    *sp = NULL;
    return st;
}
