/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_write.c - writes tensors that are in memory: header (safetensors_header.c), then their bytes in the order
 * added. One function writes to file and memory, so both have the same bytes. The file appears complete or not at all
 * (base/file.c). */
#include "tensor/safetensors_header.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"

#include <string.h>

struct fkt_st_writer {
    struct fkt_st_header head;
    const void **data; /* (head.n_items), borrowed */
};

fkt_status fkt_st_writer_new(struct fkt_st_writer **out)
{
    fkt_status st = fkt_alloc(out, 1);
    if (st == FKT_OK) fkt_st_header_init(&(*out)->head);
    return st;
}

void fkt_st_writer_free(struct fkt_st_writer *w)
{
    if (!w) return;
    fkt_st_header_clear(&w->head);
    fkt_free(w->data);
    fkt_free(w);
}

fkt_status fkt_st_writer_meta(struct fkt_st_writer *w, const char *key, const char *value)
{
    return fkt_st_header_meta(&w->head, key, value);
}

fkt_status fkt_st_writer_add(struct fkt_st_writer *w, const char *name, enum fkt_dtype dtype, unsigned rank,
                             const uint64_t *shape, const void *data)
{
    fkt_status st;
    /* The borrowed list grows first, so that a failed add leaves both lists as they were. */
    FKT_TRY(fkt_realloc(&w->data, w->head.n_items + 1));
    FKT_TRY(fkt_st_header_add(&w->head, name, dtype, rank, shape));
    w->data[w->head.n_items - 1] = data;
out:
    return st;
}

fkt_status fkt_st_writer_write(struct fkt_st_writer *w, const char *path, int flags)
{
    struct fkt_file f;
    struct fkt_text head;
    uint64_t data;
    fkt_status st;
    fkt_text_init(&head);
    FKT_TRY(fkt_st_header_render(&w->head, &head, &data));
    FKT_TRY(fkt_file_begin(&f, path, flags));
    /* A short write leaves the stream's error flag set; commit reports it. */
    (void)!fwrite(head.s, 1, head.len, f.stream);
    for (size_t i = 0; i < w->head.n_items; i++)
        if (w->head.items[i].bytes) (void)!fwrite(w->data[i], 1, w->head.items[i].bytes, f.stream);
    FKT_TRY(fkt_file_commit(&f));
out: /* the file, once begun, always went through commit, which leaves nothing open */
    fkt_text_clear(&head);
    return st;
}

fkt_status fkt_st_writer_bytes(struct fkt_st_writer *w, uint8_t **out, size_t *len)
{
    struct fkt_text head;
    uint8_t *bytes = NULL, *p;
    uint64_t data, total;
    fkt_status st;
    *out = NULL;
    *len = 0;
    fkt_text_init(&head);
    FKT_TRY(fkt_st_header_render(&w->head, &head, &data));
    if (!fkt_add_u64(data, head.len, &total) || total > SIZE_MAX) {
        st = fkt_fail(FKT_E_ARG, "tensor data is too large for memory");
        goto out;
    }
    FKT_TRY(fkt_alloc(&bytes, (size_t)total));
    memcpy(bytes, head.s, head.len);
    p = bytes + head.len;
    for (size_t i = 0; i < w->head.n_items; i++) {
        if (w->head.items[i].bytes) memcpy(p, w->data[i], w->head.items[i].bytes);
        p += w->head.items[i].bytes;
    }
    *out = bytes;
    *len = (size_t)total;
out:
    fkt_text_clear(&head);
    return st;
}
