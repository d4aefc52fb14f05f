/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_family.c - opening a codec or a guide: weights and a config.json, recognised and bound.
 *
 * Input: one byte (bit 0: a second file for the decoder; bit 1: a config.json; the rest picks a member's name), then a
 * part for each file that is present, two bytes of length before it; the last part has no length. A recognised input
 * must be a network that can be shaped, and whose weights can be read to the last one. */
#include "fuzz_support.h"

#include "base/alloc.h"
#include "codec/family.h"

struct parts {
    const uint8_t *data;
    size_t size;
};

/* The next part; the last one takes what is left. */
static struct parts take(struct parts *in, int last)
{
    struct parts out = *in;
    if (!last && in->size >= 2) {
        size_t n = (size_t)(in->data[0] | in->data[1] << 8);
        out.data += 2;
        out.size -= 2;
        if (out.size > n) out.size = n;
    }
    in->size -= (size_t)(out.data + out.size - in->data);
    in->data = out.data + out.size;
    return out;
}

static void use(const struct fkt_family *f)
{
    char hash[FKT_HASH_HEX];
    FUZZ_CHECK(f->latent_channels >= 1 && f->latent_scale - f->latent_scale == 0);
    if (f->guide) FUZZ_CHECK(f->input && f->step && f->input % f->step == 0 && f->scaling && !f->net[1].n_ops);
    else FUZZ_CHECK(f->reduction >= 1);
    for (int i = 0; i < (f->guide ? 1 : 2); i++)
        FUZZ_CHECK(f->net[i].n_ops && f->weights[i] && fkt_net_status(&f->net[i]) == FKT_OK);
    if (fkt_family_sha256(f, hash) != FKT_OK) FUZZ_CHECK(fkt_error_text()[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_safetensors *file[2] = {NULL, NULL};
    struct fkt_family_source source = {.name = "input"};
    struct parts in = {data, size}, part;
    struct fkt_family f;
    char *report = NULL;
    int second, config;
    if (!size) return 0;
    second = data[0] & 1;
    config = data[0] >> 1 & 1;
    if (fkt_member_at((size_t)data[0] >> 2)) source.codec = fkt_member_at((size_t)data[0] >> 2)->name;
    in.data++;
    in.size--;
    for (int i = 0; i <= second; i++) {
        part = take(&in, i == second && !config);
        if (fkt_safetensors_parse(&file[i], part.data, part.size, "input") != FKT_OK) goto out;
        source.file[i] = file[i];
    }
    if (config) {
        part = take(&in, 1);
        source.config = (const char *)part.data;
        source.config_len = part.size;
    }
    if (fkt_family_recognise(&f, &source, &report) == FKT_OK) use(&f);
    else FUZZ_CHECK(fkt_error_text()[0] != '\0' && !f.net[0].op && !f.weights[0]);
    fkt_family_clear(&f);
out:
    fkt_free(report);
    fkt_safetensors_free(file[0]);
    fkt_safetensors_free(file[1]);
    return 0;
}
