/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_read.c - reads an untrusted safetensors file.
 *
 *   map -> header length -> JSON -> each tensor alone (dtype, shape, offsets) -> all together (no gap, no overlap)
 *
 * Everything is checked before use: the header's length against the file, a product of dimensions against overflow,
 * an offset against the data part, a size against shape and dtype, and finally the sorted ranges against
 * each other, so that each byte of the data part belongs to exactly one tensor. Two keys of one name are refused:
 * readers that differ on which one is used would see different weights. Stricter than the reference: keys that the
 * format does not know and ranks above 8 are refused.
 *
 * Names and metadata are borrowed from the parsed JSON, which lives as long as the handle: one block for all tensors,
 * none per tensor. The map is private and read-only; a file that another process cuts short while it is mapped ends
 * in SIGBUS, as with every mapped file, so files are replaced by rename (base/file.c) and never shortened in place.
 * Cost: the JSON parse plus a sort; the data part is not touched until it is used. */
#include "tensor/safetensors_header.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tensor/pytorch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct fkt_safetensors {
    char *path;
    void *map; /* NULL: the caller's bytes are borrowed */
    size_t map_len;
    json_t *root;               /* owns names and metadata */
    struct fkt_tensor *tensors; /* (count), by offset */
    size_t count;
};

/* The tensor being checked: named in every error. */
struct place {
    const char *file;
    char tensor[FKT_ST_SHOWN];
};

static fkt_status read_shape(struct fkt_tensor *t, uint64_t *bytes, json_t *shape, const struct place *at)
{
    size_t i;
    json_t *v;
    if (!json_is_array(shape)) return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has no shape", at->file, at->tensor);
    if (json_array_size(shape) > FKT_ST_RANK_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has %zu dimensions, at most %d", at->file, at->tensor,
                        json_array_size(shape), FKT_ST_RANK_MAX);
    t->rank = (unsigned)json_array_size(shape);
    json_array_foreach (shape, i, v) {
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return fkt_fail(FKT_E_FORMAT, "'%s': dimension %zu of tensor '%s' is not a whole number", at->file, i,
                            at->tensor);
        t->shape[i] = (uint64_t)json_integer_value(v);
    }
    if (!fkt_st_elements(t->shape, t->rank, t->dtype, &t->count, bytes))
        return fkt_fail(FKT_E_FORMAT, "'%s': the shape of tensor '%s' overflows", at->file, at->tensor);
    return FKT_OK;
}

static fkt_status read_offsets(uint64_t range[2], json_t *offsets, uint64_t data_len, const struct place *at)
{
    if (json_array_size(offsets) != 2)
        return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has no pair of data offsets", at->file, at->tensor);
    for (size_t i = 0; i < 2; i++) {
        json_t *v = json_array_get(offsets, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return fkt_fail(FKT_E_FORMAT, "'%s': a data offset of tensor '%s' is not a whole number", at->file,
                            at->tensor);
        range[i] = (uint64_t)json_integer_value(v);
    }
    if (range[0] > range[1])
        return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has its end before its start", at->file, at->tensor);
    if (range[1] > data_len)
        return fkt_fail_hint(FKT_E_FORMAT, "the file may be truncated; fetch or make it again",
                             "'%s': tensor '%s' ends at byte %" PRIu64 " of a data part of %" PRIu64, at->file,
                             at->tensor, range[1], data_len);
    return FKT_OK;
}

static fkt_status read_tensor(struct fkt_tensor *t, const char *name, json_t *info, const uint8_t *data,
                              uint64_t data_len, const char *file)
{
    struct place at = {.file = file};
    const char *dtype = json_string_value(json_object_get(info, "dtype"));
    uint64_t range[2], bytes;
    char shown[FKT_ST_SHOWN];
    fkt_status st;
    fkt_st_shown(at.tensor, name);
    if (!json_is_object(info)) return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' is not an object", file, at.tensor);
    if (json_object_size(info) > 3)
        return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has a key that the format does not know", file, at.tensor);
    t->name = name;
    if (!dtype) return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has no dtype", file, at.tensor);
    if (!fkt_dtype_parse(&t->dtype, dtype))
        return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' has unknown dtype '%s'", file, at.tensor,
                        fkt_st_shown(shown, dtype));
    FKT_TRY(read_shape(t, &bytes, json_object_get(info, "shape"), &at));
    FKT_TRY(read_offsets(range, json_object_get(info, "data_offsets"), data_len, &at));
    if (range[1] - range[0] != bytes) {
        st = fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' holds %" PRIu64 " bytes, its shape needs %" PRIu64, file,
                      at.tensor, range[1] - range[0], bytes);
        goto out;
    }
    t->data = data + range[0];
out:
    return st;
}

static int by_offset(const void *a, const void *b)
{
    const struct fkt_tensor *x = a, *y = b;
    if (x->data != y->data) return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
    if ((x->count == 0) != (y->count == 0))
        return x->count == 0 ? -1 : 1; /* empty ones first: they end where they begin */
    return strcmp(x->name, y->name);
}

static fkt_status check_cover(const struct fkt_safetensors *s, const uint8_t *data, uint64_t data_len)
{
    uint64_t end = 0;
    char shown[FKT_ST_SHOWN];
    for (size_t i = 0; i < s->count; i++) {
        const struct fkt_tensor *t = &s->tensors[i];
        uint64_t begin = (uint64_t)((const uint8_t *)t->data - data);
        if (begin < end)
            return fkt_fail(FKT_E_FORMAT, "'%s': tensor '%s' overlaps another", s->path, fkt_st_shown(shown, t->name));
        if (begin > end)
            return fkt_fail(FKT_E_FORMAT, "'%s': %" PRIu64 " bytes before tensor '%s' belong to no tensor", s->path,
                            begin - end, fkt_st_shown(shown, t->name));
        end = begin + t->count * fkt_dtype_size(t->dtype);
    }
    if (end != data_len)
        return fkt_fail(FKT_E_FORMAT, "'%s': the last %" PRIu64 " bytes belong to no tensor", s->path, data_len - end);
    return FKT_OK;
}

static fkt_status check_metadata(json_t *meta, const char *file)
{
    const char *key;
    json_t *v;
    if (meta && !json_is_object(meta)) return fkt_fail(FKT_E_FORMAT, "'%s': '__metadata__' is not an object", file);
    json_object_foreach (meta, key, v) {
        char shown[FKT_ST_SHOWN];
        if (!json_is_string(v))
            return fkt_fail(FKT_E_FORMAT, "'%s': metadata '%s' is not a string", file, fkt_st_shown(shown, key));
    }
    return FKT_OK;
}

static fkt_status parse_header(struct fkt_safetensors *s, const uint8_t *bytes, size_t len, uint64_t *header_len)
{
    json_error_t e;
    uint64_t n = 0;
    if (len < 8) return fkt_fail(FKT_E_FORMAT, "'%s' is too short to be safetensors: %zu bytes", s->path, len);
    for (unsigned i = 0; i < 8; i++) n |= (uint64_t)bytes[i] << (8 * i);
    if (n > FKT_ST_HEADER_MAX && fkt_pytorch_bytes(bytes, len)) return fkt_pytorch_refuse(s->path);
    if (n > FKT_ST_HEADER_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' is not safetensors: its header would be %" PRIu64 " bytes, at most %u",
                        s->path, n, FKT_ST_HEADER_MAX);
    if (n > len - 8)
        return fkt_fail_hint(FKT_E_FORMAT, "the file may be truncated; fetch or make it again",
                             "'%s': the header of %" PRIu64 " bytes does not fit a file of %zu", s->path, n, len);
    s->root = json_loadb((const char *)bytes + 8, (size_t)n, JSON_REJECT_DUPLICATES, &e);
    if (!s->root) {
        char shown[FKT_ST_SHOWN];
        return fkt_fail(FKT_E_FORMAT, "'%s': the header is not JSON: %s at byte %d", s->path,
                        fkt_st_shown(shown, e.text), e.position);
    }
    if (!json_is_object(s->root)) return fkt_fail(FKT_E_FORMAT, "'%s': the header is not a JSON object", s->path);
    *header_len = n;
    return FKT_OK;
}

/* Fills s, whose path is set, from bytes that outlive it. */
static fkt_status parse(struct fkt_safetensors *s, const uint8_t *bytes, size_t len)
{
    const uint8_t *data;
    uint64_t header_len = 0, data_len;
    const char *name;
    json_t *info;
    fkt_status st;
    FKT_TRY(parse_header(s, bytes, len, &header_len));
    FKT_TRY(check_metadata(json_object_get(s->root, "__metadata__"), s->path));
    data = bytes + 8 + header_len;
    data_len = len - 8 - header_len;
    FKT_TRY(fkt_alloc(&s->tensors, json_object_size(s->root)));
    json_object_foreach (s->root, name, info) {
        if (!strcmp(name, "__metadata__")) continue;
        FKT_TRY(read_tensor(&s->tensors[s->count], name, info, data, data_len, s->path));
        s->count++;
    }
    qsort(s->tensors, s->count, sizeof *s->tensors, by_offset);
    FKT_TRY(check_cover(s, data, data_len));
out:
    return st;
}

fkt_status fkt_safetensors_parse(struct fkt_safetensors **out, const void *bytes, size_t len, const char *name)
{
    struct fkt_safetensors *s = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&s, 1));
    FKT_TRY(fkt_strdup(&s->path, name));
    FKT_TRY(parse(s, bytes, len));
    *out = s;
    s = NULL;
out:
    fkt_safetensors_free(s);
    return st;
}

/* O_NONBLOCK: a pipe under the file's name must not hang us; regular files ignore it. */
static fkt_status map_file(struct fkt_safetensors *s)
{
    struct stat sb;
    fkt_status st = FKT_OK;
    void *map;
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &sb) != 0) {
        st = fkt_io_fail("read", s->path);
        goto out;
    }
    if (!S_ISREG(sb.st_mode)) {
        st = fkt_fail(FKT_E_IO, "cannot read '%s': not a regular file", s->path);
        st = fkt_hint_weakly(st, "that is a folder, a pipe or a device: name a file");
        goto out;
    }
    if (sb.st_size == 0) {
        st = fkt_fail(FKT_E_FORMAT, "'%s' is empty, not safetensors", s->path);
        goto out;
    }
    map = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        st = fkt_fail(FKT_E_IO, "cannot map '%s': %s", s->path, strerror(errno));
        goto out;
    }
    s->map = map;
    s->map_len = (size_t)sb.st_size;
out:
    if (fd >= 0) close(fd);
    return st;
}

fkt_status fkt_safetensors_open(struct fkt_safetensors **out, const char *path)
{
    struct fkt_safetensors *s = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&s, 1));
    FKT_TRY(fkt_strdup(&s->path, path));
    FKT_TRY(map_file(s));
    FKT_TRY(parse(s, s->map, s->map_len));
    *out = s;
    s = NULL;
out:
    fkt_safetensors_free(s);
    return st;
}

void fkt_safetensors_free(struct fkt_safetensors *s)
{
    if (!s) return;
    if (s->map) munmap(s->map, s->map_len);
    json_decref(s->root);
    fkt_free(s->tensors);
    fkt_free(s->path);
    fkt_free(s);
}

size_t fkt_safetensors_count(const struct fkt_safetensors *s) { return s->count; }
const struct fkt_tensor *fkt_safetensors_at(const struct fkt_safetensors *s, size_t i)
{
    return i < s->count ? &s->tensors[i] : NULL;
}

const struct fkt_tensor *fkt_safetensors_find(const struct fkt_safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->tensors[i].name, name)) return &s->tensors[i];
    return NULL;
}

const char *fkt_safetensors_meta(const struct fkt_safetensors *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->root, "__metadata__"), key));
}

void fkt_safetensors_drop(const struct fkt_safetensors *s, const struct fkt_tensor *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)t->data,
              end = begin + (uintptr_t)(t->count * fkt_dtype_size(t->dtype));
    if (!s->map) return;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    /* Only advice: where the system does not support it, the pages stay. */
    if (begin < end) (void)madvise((uint8_t *)s->map + (begin - (uintptr_t)s->map), end - begin, MADV_DONTNEED);
}

static void shape_text(char *out, size_t cap, unsigned rank, const uint64_t *shape)
{
    size_t n = (size_t)snprintf(out, cap, "(");
    for (unsigned i = 0; i < rank && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%" PRIu64, i ? "," : "", shape[i]);
    if (n < cap) snprintf(out + n, cap - n, ")");
}

fkt_status fkt_safetensors_want(const struct fkt_safetensors *s, const struct fkt_tensor **out, const char *name,
                                enum fkt_dtype dtype, unsigned rank, const uint64_t *shape)
{
    const struct fkt_tensor *t = fkt_safetensors_find(s, name);
    char want[192], found[192];
    *out = NULL;
    if (!t) return fkt_fail(FKT_E_FORMAT, "'%s' has no tensor '%s'", s->path, name);
    if (t->dtype != dtype || t->rank != rank || (rank && memcmp(t->shape, shape, rank * sizeof *shape) != 0)) {
        shape_text(want, sizeof want, rank, shape);
        shape_text(found, sizeof found, t->rank, t->shape);
        return fkt_fail(FKT_E_MISMATCH, "'%s': tensor '%s' is %s %s, expected %s %s", s->path, name,
                        fkt_dtype_name(t->dtype), found, fkt_dtype_name(dtype), want);
    }
    *out = t;
    return FKT_OK;
}
