/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_header.c - the header of a safetensors file, as both writers make it.
 *
 *   8 bytes N, little-endian | N bytes of JSON, padded with blanks | data part
 *   {"__metadata__":{...sorted keys...},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
 *
 * Source: the format's description in the safetensors project. The reference writer sorts tensors by alignment and
 * name; we keep the order in which they were added, which a stream can keep and every reader accepts, since it uses the
 * offsets. The blanks align the data part to eight bytes. The bytes depend on what was added and on nothing else: no
 * time, no version, no hash order. jansson escapes strings, so a name with a quote or a new line is harmless. */
#include "tensor/safetensors_header.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the data part is little-endian and is copied as it is");

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [FKT_U8] = {"U8", 1},     [FKT_I32] = {"I32", 4}, [FKT_I64] = {"I64", 8}, [FKT_F16] = {"F16", 2},
    [FKT_BF16] = {"BF16", 2}, [FKT_F32] = {"F32", 4}, [FKT_F64] = {"F64", 8}, [FKT_U16] = {"U16", 2},
    [FKT_U32] = {"U32", 4},   [FKT_I8] = {"I8", 1},   [FKT_I16] = {"I16", 2}, [FKT_BOOL] = {"BOOL", 1},
    [FKT_U64] = {"U64", 8},
};
#define DTYPES (sizeof dtypes / sizeof *dtypes)

size_t fkt_dtype_size(enum fkt_dtype t) { return (size_t)t < DTYPES ? dtypes[t].size : 0; }
const char *fkt_dtype_name(enum fkt_dtype t) { return (size_t)t < DTYPES ? dtypes[t].name : "unknown"; }

int fkt_dtype_parse(enum fkt_dtype *out, const char *name)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (!strcmp(dtypes[i].name, name)) {
            *out = (enum fkt_dtype)i;
            return 1;
        }
    return 0;
}

int fkt_st_elements(const uint64_t *shape, unsigned rank, enum fkt_dtype dtype, uint64_t *count, uint64_t *bytes)
{
    *count = 1;
    for (unsigned i = 0; i < rank; i++)
        if (!fkt_mul_u64(*count, shape[i], count)) return 0;
    return fkt_mul_u64(*count, fkt_dtype_size(dtype), bytes) && *bytes <= (uint64_t)INT64_MAX;
}

const char *fkt_st_shown(char out[FKT_ST_SHOWN], const char *s)
{
    size_t n = 0;
    for (; *s && n + 4 < FKT_ST_SHOWN; n++) {
        size_t control = fkt_control_length(s);
        out[n] = control ? '?' : *s;
        s += control ? control : 1;
    }
    if (*s) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

void fkt_st_header_init(struct fkt_st_header *h) { memset(h, 0, sizeof *h); }

void fkt_st_header_clear(struct fkt_st_header *h)
{
    for (size_t i = 0; i < h->n_items; i++) fkt_free(h->items[i].name);
    for (size_t i = 0; i < h->n_pairs; i++) {
        fkt_free(h->pairs[i].key);
        fkt_free(h->pairs[i].value);
    }
    fkt_free(h->items);
    fkt_free(h->pairs);
    fkt_st_header_init(h);
}

static fkt_status check_utf8(const char *what, const char *s)
{
    char shown[FKT_ST_SHOWN];
    json_t *j = json_string(s);
    if (!j) return fkt_fail(FKT_E_ARG, "%s '%s' is not UTF-8", what, fkt_st_shown(shown, s));
    json_decref(j);
    return FKT_OK;
}

fkt_status fkt_st_header_meta(struct fkt_st_header *h, const char *key, const char *value)
{
    struct fkt_st_pair p = {NULL, NULL};
    char shown[FKT_ST_SHOWN];
    size_t at = 0;
    fkt_status st;
    FKT_TRY(check_utf8("metadata key", key));
    FKT_TRY(check_utf8("metadata value", value));
    while (at < h->n_pairs && strcmp(h->pairs[at].key, key) < 0) at++;
    if (at < h->n_pairs && !strcmp(h->pairs[at].key, key)) {
        st = fkt_fail(FKT_E_ARG, "metadata key '%s' is given twice", fkt_st_shown(shown, key));
        goto out;
    }
    FKT_TRY(fkt_strdup(&p.key, key));
    FKT_TRY(fkt_strdup(&p.value, value));
    FKT_TRY(fkt_realloc(&h->pairs, h->n_pairs + 1));
    memmove(h->pairs + at + 1, h->pairs + at, (h->n_pairs - at) * sizeof *h->pairs);
    h->pairs[at] = p;
    h->n_pairs++;
    p.key = p.value = NULL;
out:
    fkt_free(p.key);
    fkt_free(p.value);
    return st;
}

fkt_status fkt_st_header_add(struct fkt_st_header *h, const char *name, enum fkt_dtype dtype, unsigned rank,
                             const uint64_t *shape)
{
    struct fkt_st_item it = {.dtype = dtype, .rank = rank};
    char shown[FKT_ST_SHOWN];
    uint64_t count;
    fkt_status st;
    FKT_TRY(check_utf8("tensor name", name));
    fkt_st_shown(shown, name);
    if ((size_t)dtype >= DTYPES || rank > FKT_ST_RANK_MAX) {
        st = fkt_fail(FKT_E_ARG, "tensor '%s' has no known dtype, or more than %d dimensions", shown, FKT_ST_RANK_MAX);
        goto out;
    }
    if (!strcmp(name, "__metadata__")) {
        st = fkt_fail(FKT_E_ARG, "tensor name '__metadata__' is reserved");
        goto out;
    }
    for (size_t i = 0; i < h->n_items; i++)
        if (!strcmp(h->items[i].name, name)) {
            st = fkt_fail(FKT_E_ARG, "tensor '%s' is added twice", shown);
            goto out;
        }
    if (rank) memcpy(it.shape, shape, rank * sizeof *shape);
    if (!fkt_st_elements(it.shape, rank, dtype, &count, &it.bytes)) {
        st = fkt_fail(FKT_E_ARG, "tensor '%s' is too large to write", shown);
        goto out;
    }
    FKT_TRY(fkt_strdup(&it.name, name));
    FKT_TRY(fkt_realloc(&h->items, h->n_items + 1));
    h->items[h->n_items++] = it;
    it.name = NULL;
out:
    fkt_free(it.name);
    return st;
}

static fkt_status add_json(struct fkt_text *out, const char *s)
{
    json_t *j = json_string(s);
    char *dump = j ? json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    fkt_status st =
        dump ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory: cannot escape a string of %zu bytes", strlen(s));
    if (dump) fkt_text_add(out, dump);
    free(dump);
    json_decref(j);
    return st;
}

static fkt_status render_item(const struct fkt_st_item *it, struct fkt_text *out, uint64_t *offset)
{
    uint64_t end;
    fkt_status st = add_json(out, it->name);
    if (st != FKT_OK) return st;
    if (!fkt_add_u64(*offset, it->bytes, &end) || end > (uint64_t)INT64_MAX)
        return fkt_fail(FKT_E_ARG, "tensor data is too large to write");
    fkt_text_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", fkt_dtype_name(it->dtype));
    for (unsigned i = 0; i < it->rank; i++) fkt_text_addf(out, "%s%" PRIu64, i ? "," : "", it->shape[i]);
    fkt_text_addf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *offset, end);
    *offset = end;
    return FKT_OK;
}

fkt_status fkt_st_header_render(const struct fkt_st_header *h, struct fkt_text *out, uint64_t *data)
{
    static const char room[8] = {0};
    size_t start = out->len, len;
    fkt_status st;
    *data = 0;
    fkt_text_addn(out, room, sizeof room);
    fkt_text_add(out, "{");
    if (h->n_pairs) fkt_text_add(out, "\"__metadata__\":{");
    for (size_t i = 0; i < h->n_pairs; i++) {
        if (i) fkt_text_add(out, ",");
        FKT_TRY(add_json(out, h->pairs[i].key));
        fkt_text_add(out, ":");
        FKT_TRY(add_json(out, h->pairs[i].value));
    }
    if (h->n_pairs) fkt_text_add(out, h->n_items ? "}," : "}");
    for (size_t i = 0; i < h->n_items; i++) {
        if (i) fkt_text_add(out, ",");
        FKT_TRY(render_item(&h->items[i], out, data));
    }
    fkt_text_add(out, "}");
    while (fkt_text_status(out) == FKT_OK && (out->len - start) % 8) fkt_text_add(out, " ");
    FKT_TRY(fkt_text_status(out));
    len = out->len - start - sizeof room;
    if (len > FKT_ST_HEADER_MAX) {
        st = fkt_fail(FKT_E_ARG, "safetensors header of %zu bytes is above the format's limit of %u", len,
                      FKT_ST_HEADER_MAX);
        goto out;
    }
    for (size_t i = 0; i < sizeof room; i++) out->s[start + i] = (char)(((uint64_t)len >> (8 * i)) & 0xff);
out:
    return st;
}
