/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c - the header of a NumPy array (NEP 1, versions 1.0 to 3.0):
 *
 *   \x93NUMPY major minor length(2 or 4, little-endian) dictionary data
 *   dictionary: "{'descr': '|u1', 'fortran_order': False, 'shape': (100, 28, 28), }"
 *
 * The dictionary is Python's literal syntax; we look for the three keys and take nothing else from it. Shape times
 * element width must be what is left of the member, to the byte. */
#include "images/npy.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 65536 };

static fkt_status bad(const char *why) { return fkt_fail(FKT_E_FORMAT, "not a NumPy array that can be read: %s", why); }

/* What stands after 'key': in the dictionary, blanks skipped; NULL when there is no such key. */
static const char *value_of(const char *dict, const char *key)
{
    const char *p = strstr(dict, key);
    if (!p) return NULL;
    p += strlen(key);
    while (*p == ' ') p++;
    if (*p++ != ':') return NULL;
    while (*p == ' ') p++;
    return p;
}

static fkt_status parse_type(struct fkt_npy *a, const char *p)
{
    if (!p || (*p != '\'' && *p != '"')) return bad("no element type");
    p++;
    a->big_endian = *p == '>';
    if (*p && strchr("<>|=", *p)) p++;
    a->kind = *p;
    if (!*p || p[1] < '1' || p[1] > '8' || (p[2] != '\'' && p[2] != '"')) return bad("elements of an unknown type");
    a->width = (unsigned)(p[1] - '0');
    return FKT_OK;
}

static fkt_status parse_shape(struct fkt_npy *a, const char *p)
{
    if (!p || *p++ != '(') return bad("no shape");
    for (a->dims = 0;;) {
        char *end;
        unsigned long long x;
        while (*p == ' ' || *p == ',') p++;
        if (*p == ')') return FKT_OK;
        if (*p < '0' || *p > '9' || a->dims == FKT_NPY_DIMS) return bad("an invalid shape");
        x = strtoull(p, &end, 10);
        if (x > UINT32_MAX * 256ULL) return bad("an invalid shape");
        a->shape[a->dims++] = x;
        p = end;
        if (*p == 'L') p++; /* Python 2 */
    }
}

static fkt_status parse(struct fkt_npy *a, const char *dict)
{
    const char *order = value_of(dict, "'fortran_order'");
    fkt_status st = parse_type(a, value_of(dict, "'descr'"));
    if (st == FKT_OK) st = parse_shape(a, value_of(dict, "'shape'"));
    if (st != FKT_OK) return st;
    if (!order || strncmp(order, "False", 5))
        return bad("it is in Fortran order, save it with numpy.ascontiguousarray");
    return FKT_OK;
}

fkt_status fkt_npy_read(struct fkt_npy *a, const struct fkt_source *s, uint64_t at, uint64_t size)
{
    static const char disagree[] = "its shape and its size disagree";
    uint8_t head[12] = {0};
    char *dict = NULL;
    uint64_t len, fixed, bytes;
    fkt_status st = FKT_OK;
    memset(a, 0, sizeof *a);
    if (size < sizeof head) return bad("it is too short");
    FKT_TRY(fkt_source_read(s, at, head, sizeof head));
    if (memcmp(head, "\x93NUMPY", 6) || head[6] < 1 || head[6] > 3) {
        st = bad("wrong magic number or version");
        goto out;
    }
    fixed = head[6] == 1 ? 10 : 12;
    len = head[8] | (uint64_t)head[9] << 8;
    if (head[6] > 1) len |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
    if (len > MAX_HEADER || fixed + len > size) {
        st = bad("its header is too long");
        goto out;
    }
    FKT_TRY(fkt_alloc(&dict, len + 1));
    FKT_TRY(fkt_source_read(s, at + fixed, dict, len));
    FKT_TRY(parse(a, dict));
    a->at = at + fixed + len;
    bytes = a->width;
    for (int i = 0; i < a->dims && st == FKT_OK; i++)
        if (!fkt_mul_u64(bytes, a->shape[i], &bytes)) st = bad(disagree); /* at once: a later 0 would hide it */
    if (st == FKT_OK && bytes != size - fixed - len) st = bad(disagree);
out:
    fkt_free(dict);
    return st;
}

fkt_status fkt_npy_integer(const struct fkt_npy *a, const uint8_t *raw, uint64_t *out)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < a->width; i++) x = x << 8 | raw[a->big_endian ? i : a->width - 1 - i];
    if (a->kind == 'i' && x >> (8 * a->width - 1)) return fkt_fail(FKT_E_FORMAT, "a label is negative");
    *out = x;
    return FKT_OK;
}
