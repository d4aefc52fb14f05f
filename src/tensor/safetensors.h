/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.h - named tensors and string metadata in one file; the file is untrusted. */
#ifndef FKT_TENSOR_SAFETENSORS_H
#define FKT_TENSOR_SAFETENSORS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum fkt_dtype {
    FKT_U8 = 0,
    FKT_I32,
    FKT_I64,
    FKT_F16,
    FKT_BF16,
    FKT_F32,
    FKT_F64,
    FKT_U16,
    FKT_U32,
    FKT_I8,
    FKT_I16,
    FKT_BOOL,
    FKT_U64
};
#define FKT_ST_RANK_MAX 8

size_t fkt_dtype_size(enum fkt_dtype t);
const char *fkt_dtype_name(enum fkt_dtype t); /* "F32" ... */

struct fkt_tensor {
    const char *name;
    enum fkt_dtype dtype;
    unsigned rank;
    uint64_t shape[FKT_ST_RANK_MAX];
    const void *data; /* may be unaligned for its type: read with memcpy or fkt_tensor_copy_* */
    uint64_t count;   /* elements */
};

struct fkt_safetensors;
/* Maps the file; every offset, shape, overlap, gap and length is checked before use. Allocates *out. */
FKT_MUST_USE fkt_status fkt_safetensors_open(struct fkt_safetensors **out, const char *path);
FKT_MUST_USE fkt_status fkt_safetensors_parse(struct fkt_safetensors **out, const void *bytes, size_t len,
                                              const char *name); /* borrows bytes */
void fkt_safetensors_free(struct fkt_safetensors *s);
size_t fkt_safetensors_count(const struct fkt_safetensors *s);
const struct fkt_tensor *fkt_safetensors_at(const struct fkt_safetensors *s, size_t i);
const struct fkt_tensor *fkt_safetensors_find(const struct fkt_safetensors *s, const char *name); /* NULL when absent */
const char *fkt_safetensors_meta(const struct fkt_safetensors *s, const char *key);               /* NULL when absent */
/* Finds a tensor and checks dtype and shape; the failure names file, tensor, what was wanted and what was found. */
FKT_MUST_USE fkt_status fkt_safetensors_want(const struct fkt_safetensors *s, const struct fkt_tensor **out,
                                             const char *name, enum fkt_dtype dtype, unsigned rank,
                                             const uint64_t *shape);
/* Copies as float (F32, F16, BF16, F64); FKT_E_NUMERIC, naming the element, on NaN or infinity. */
FKT_MUST_USE fkt_status fkt_tensor_copy_f32(float *out, const struct fkt_tensor *t);

/* The pages that lie wholly inside this tensor of the file may leave memory; they are read again when touched.
 * No effect on borrowed bytes. */
void fkt_safetensors_drop(const struct fkt_safetensors *s, const struct fkt_tensor *t);

/* Writing (`flags` of base/file.h): the bytes depend only on what was added and in which order. */
struct fkt_st_writer;
FKT_MUST_USE fkt_status fkt_st_writer_new(struct fkt_st_writer **out);
void fkt_st_writer_free(struct fkt_st_writer *w);
FKT_MUST_USE fkt_status fkt_st_writer_meta(struct fkt_st_writer *w, const char *key, const char *value); /* copies */
FKT_MUST_USE fkt_status fkt_st_writer_add(struct fkt_st_writer *w, const char *name, enum fkt_dtype dtype,
                                          unsigned rank, const uint64_t *shape,
                                          const void *data); /* copies name, borrows data until write */
FKT_MUST_USE fkt_status fkt_st_writer_write(struct fkt_st_writer *w, const char *path, int flags); /* atomic */
/* The same bytes in memory; allocates *out. */
FKT_MUST_USE fkt_status fkt_st_writer_bytes(struct fkt_st_writer *w, uint8_t **out, size_t *len);

/* A file of tensors whose rows arrive one by one and whose number of rows is known only at the end (latents).
 * Tensors share the leading dimension n. Rows of tensor t are `row` bytes; each tensor is spooled, so memory does
 * not grow. */
struct fkt_st_stream;
FKT_MUST_USE fkt_status fkt_st_stream_new(struct fkt_st_stream **out, const char *path, int flags);
FKT_MUST_USE fkt_status fkt_st_stream_tensor(struct fkt_st_stream *s, const char *name, enum fkt_dtype dtype,
                                             unsigned rank_tail, const uint64_t *shape_tail, size_t *id);
FKT_MUST_USE fkt_status fkt_st_stream_meta(struct fkt_st_stream *s, const char *key, const char *value);
FKT_MUST_USE fkt_status fkt_st_stream_rows(struct fkt_st_stream *s, size_t id, const void *rows, size_t n);
FKT_MUST_USE fkt_status fkt_st_stream_close(
    struct fkt_st_stream **s); /* FKT_E_STATE when the tensors have different row counts; *s becomes NULL */
void fkt_st_stream_free(struct fkt_st_stream *s);

#endif
