/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - images of one size stored one after the other, uncompressed: one pread and a change of layout give a
 * record. Sections (files of a set, arrays of a .npz) are few, so that the right one is found by looking at each. Their
 * size is checked before they are added, so that no record takes more memory than a JPEG may. Cost: the read. */
#include "images/packed.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "images/decode.h"

#include <string.h>

static void packed_free(void *self)
{
    struct fkt_packed *p = self;
    if (!p) return;
    for (size_t i = 0; i < p->n; i++)
        if (!p->sections[i].shared) fkt_source_close(&p->sections[i].source);
    fkt_free(p->sections);
    fkt_free(p);
}

static void planes_to_rgb(uint8_t *rgb, const uint8_t *planes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) rgb[3 * i + c] = planes[c * n + i];
}

static const struct fkt_section *section_of(const struct fkt_packed *p, size_t r)
{
    const struct fkt_section *s = p->sections;
    while (r - s->first >= s->n) s++;
    return s;
}

/* The pixels as they lie in the file. */
static fkt_status packed_stored(const void *self, size_t r, struct fkt_stored *out)
{
    const struct fkt_section *s = section_of(self, r);
    const uint64_t len = (uint64_t)s->w * s->h * s->channels;
    return fkt_source_stored(&s->source, s->at + (r - s->first) * s->stride, len, out);
}

static fkt_status packed_decode(const void *self, size_t r, uint8_t **rgb, uint32_t *w, uint32_t *h,
                                struct fkt_facts *facts)
{
    const struct fkt_section *s = section_of(self, r);
    struct fkt_pixels px = {0};
    uint8_t *out = NULL;
    struct fkt_stored data = {0};
    size_t n = (size_t)s->w * s->h;
    fkt_status st = FKT_OK;
    *rgb = NULL;
    FKT_TRY(packed_stored(self, r, &data));
    px.samples = data.bytes;
    data.bytes = NULL;
    if (s->planar) {
        FKT_TRY(fkt_alloc(&out, 3 * n));
        planes_to_rgb(out, px.samples, n);
    } else {
        px.w = s->w;
        px.h = s->h;
        px.channels = s->channels;
        if (px.channels == 1) facts->note |= FKT_IMAGE_WAS_GREY;
        FKT_TRY(fkt_pixels_to_rgb(&px, &out));
    }
    *rgb = out;
    *w = s->w;
    *h = s->h;
out:
    fkt_free(data.bytes);
    fkt_free(px.samples);
    return st;
}

const struct fkt_dataset_backend fkt_packed_cifar10 = {"CIFAR-10 binary", packed_decode, packed_free, packed_stored};
const struct fkt_dataset_backend fkt_packed_cifar100 = {"CIFAR-100 binary", packed_decode, packed_free, packed_stored};
const struct fkt_dataset_backend fkt_packed_idx = {"MNIST idx", packed_decode, packed_free, packed_stored};
const struct fkt_dataset_backend fkt_packed_npz = {"MedMNIST npz", packed_decode, packed_free, packed_stored};

fkt_status fkt_packed_new(struct fkt_packed **out, struct fkt_dataset_builder *b, const struct fkt_dataset_backend *vt)
{
    fkt_status st = fkt_alloc(out, 1);
    if (st == FKT_OK) fkt_builder_backend(b, vt, *out);
    return st;
}

fkt_status fkt_packed_add(struct fkt_packed *p, struct fkt_section *s)
{
    uint64_t pixels = (uint64_t)s->w * s->h * s->channels, last = 0, end = 0;
    fkt_status st = FKT_OK;
    s->first = p->n ? p->sections[p->n - 1].first + p->sections[p->n - 1].n : 0;
    FKT_TRY(fkt_image_check_size("the images are", s->w, s->h));
    if (s->n && (!fkt_mul_u64(s->n - 1, s->stride, &last) || !fkt_add_u64(last, s->at, &last) ||
                 !fkt_add_u64(last, pixels, &end) || end > s->source.size)) {
        st = fkt_fail_hint(FKT_E_FORMAT, "fetch the file again",
                           "the file is truncated: %zu images of %u x %u do not fit into it", s->n, s->w, s->h);
        goto out;
    }
    FKT_TRY(fkt_realloc(&p->sections, p->n + 1));
    p->sections[p->n++] = *s;
    fkt_source_init(&s->source);
out:
    if (!s->shared) fkt_source_close(&s->source);
    return st;
}
