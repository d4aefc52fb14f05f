/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - opens a codec by name and hands its work to the table of functions behind the name.
 *
 *   rgb (n,S,S,3) --encode--> z (n,D) --calibration--> u (n,d)        and back
 *
 * Latents pass through here in both directions, so a NaN is refused here: in the output
 * of an encoder and in the input of a decoder. This is not the only check: a network may hide a NaN (a
 * ReLU makes 0 of it), so weights are checked when they are read (nn/weights.c) and the values inside a network when it
 * runs for the first time (nn/onednn/check_finite.c). Source: paper, section on the frozen public autoencoder; the
 * table replaces its single fixed network, so that a weight-free codec (dct.c) and networks look the same to the
 * pipeline. */
#include "codec/codec.h"
#include "codec/dct.h"
#include "codec/family.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* "dct, taesd, ..." */
static fkt_status no_such_codec(const char *name)
{
    char hint[512];
    size_t at = (size_t)snprintf(hint, sizeof hint, "known codecs: dct");
    for (int guide = 0; guide < 2; guide++) {
        if (guide && at < sizeof hint) at += (size_t)snprintf(hint + at, sizeof hint - at, "; known guides");
        for (size_t i = 0, n = 0; fkt_member_at(i) && at < sizeof hint; i++)
            if (fkt_member_at(i)->guide == guide)
                at += (size_t)snprintf(hint + at, sizeof hint - at, "%s %s", guide && !n++ ? ":" : ",",
                                       fkt_member_at(i)->name);
    }
    return fkt_fail_hint(FKT_E_ARG, hint, "there is no codec or guide '%s'", name);
}

/* A path has a '/' or the ending of a file with weights, PyTorch's own among them: those are refused by their name. */
static int is_path(const char *name, size_t n)
{
    static const char *const endings[] = {".safetensors", ".pth", ".pt", ".ckpt", ".bin"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && !memcmp(name + n - m, endings[i], m)) return 1;
    }
    return memchr(name, '/', n) != NULL;
}

int fkt_codec_is_path(const char *name) { return is_path(name, strlen(name)); }

int fkt_codec_known(const char *name, int guide)
{
    const struct fkt_member *m = fkt_member_find(name, strcspn(name, "@"));
    return m ? m->guide == guide : !guide && !strcmp(name, fkt_codec_dct.name);
}

fkt_status fkt_codec_title(struct fkt_codec_title *out, const char *name)
{
    const char *at = strrchr(name, '@');
    size_t n = at ? (size_t)(at - name) : strlen(name);
    uint64_t input = 0;
    fkt_status st = FKT_OK;
    *out = (struct fkt_codec_title){.input = 0};
    if (at && fkt_parse_u64(&input, at + 1, FKT_GUIDE_INPUT_MAX) == FKT_OK && input) out->input = (uint32_t)input;
    else if (at && !is_path(name, strlen(name)))
        return fkt_fail_hint(FKT_E_ARG, "behind the '@' stands the side of a guide's input, as in resnet18@128",
                             "'%s' is not the name of a codec or guide", name);
    else n = strlen(name);
    if (is_path(name, n)) {
        FKT_TRY(fkt_alloc(&out->file, n + 1));
        memcpy(out->file, name, n);
    } else if (n >= sizeof out->base) {
        st = no_such_codec(name);
    } else {
        memcpy(out->base, name, n);
    }
out:
    return st;
}

fkt_status fkt_codec_open(struct fkt_codec **out, const struct fkt_codec_spec *spec)
{
    const char *name = spec->name ? spec->name : "";
    const struct fkt_member *member;
    struct fkt_codec_title title;
    struct fkt_codec *c = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_codec_title(&title, name));
    member = fkt_member_find(title.base, strlen(title.base));
    if (!member && !title.file && strcmp(name, fkt_codec_dct.name) != 0) {
        st = no_such_codec(name);
        goto out;
    }
    if (member && !member->guide && title.input) {
        st = fkt_fail(FKT_E_ARG, "codec '%s' takes images as they are: a side behind '@' is for guides", member->name);
        goto out;
    }
    FKT_TRY(fkt_alloc(&c, 1));
    c->ops = member || title.file ? &fkt_codec_network : &fkt_codec_dct;
    if (!title.file) snprintf(c->name, sizeof c->name, "%s", name);
    c->low_memory = spec->settings.low_memory;
    FKT_TRY(c->ops->open(c, spec));
    *out = c;
    c = NULL;
out:
    fkt_free(title.file);
    fkt_free(c);
    return st;
}

fkt_status fkt_codec_want(const struct fkt_codec *c, int guide)
{
    if (guide == !fkt_codec_decodes(c)) return FKT_OK;
    if (guide)
        return fkt_fail_hint(FKT_E_ARG, "give a guide, for example fedkt-guide", "'%s' is a codec, not a guide",
                             c->name);
    return fkt_fail_hint(FKT_E_ARG, "give a codec, for example fedkt-ae, and this one as the guide",
                         "'%s' is a guide, not a codec: it has no decoder", c->name);
}

void fkt_codec_free(struct fkt_codec *c)
{
    if (!c) return;
    c->ops->free(c->self);
    fkt_free(c);
}

const char *fkt_codec_name(const struct fkt_codec *c) { return c->name; }
uint32_t fkt_codec_size(const struct fkt_codec *c) { return c->size; }
uint32_t fkt_codec_dim(const struct fkt_codec *c) { return c->dim; }
enum fkt_codec_dtype fkt_codec_dtype_used(const struct fkt_codec *c) { return c->dtype; }
struct fkt_device fkt_codec_device_used(const struct fkt_codec *c) { return c->device; }
size_t fkt_codec_batch(const struct fkt_codec *c) { return c->batch ? c->batch : 1; }
const char *fkt_codec_identity(const struct fkt_codec *c) { return c->identity; }
int fkt_codec_decodes(const struct fkt_codec *c) { return c->ops->decode != NULL; }
int fkt_codec_dtype_measured(const struct fkt_codec *c) { return c->dtype_measured; }

int fkt_codec_is_network(const char *name) { return strcmp(name, fkt_codec_dct.name) != 0; }

int fkt_codec_has_calibration(const char *name)
{
    const struct fkt_member *m = fkt_member_find(name, strcspn(name, "@"));
    return !strcmp(name, fkt_codec_dct.name) || (m && m->shipped);
}

/* "size=32 ..." -> "size 32"; a hash is cut to the twelve digits that people compare. */
static void show_word(char out[FKT_DIFFERENCE_MAX], const char *word)
{
    int n = (int)strcspn(word, " "), key = (int)strcspn(word, "= ");
    if (!n) snprintf(out, FKT_DIFFERENCE_MAX, "nothing");
    else if (key == n) snprintf(out, FKT_DIFFERENCE_MAX, "kind %.*s", n, word);
    else snprintf(out, FKT_DIFFERENCE_MAX, "%.*s %.*s", key, word, n - key - 1 > 40 ? 12 : n - key - 1, word + key + 1);
}

void fkt_identity_difference(const char *a, const char *b, char in_a[FKT_DIFFERENCE_MAX], char in_b[FKT_DIFFERENCE_MAX])
{
    for (;;) {
        size_t n = strcspn(a, " "), m = strcspn(b, " ");
        if (n != m || memcmp(a, b, n) != 0 || !a[n] || !b[m]) break;
        a += n + 1;
        b += m + 1;
    }
    show_word(in_a, a);
    show_word(in_b, b);
}

fkt_status fkt_codec_facts(const struct fkt_codec *c, struct fkt_codec_facts *out)
{
    memset(out, 0, sizeof *out);
    out->latent_scale = 1;
    snprintf(out->kind, sizeof out->kind, "%.23s", c->name);
    return c->ops->facts ? c->ops->facts(c->self, out) : FKT_OK;
}

static fkt_status check_finite(const struct fkt_codec *c, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < c->dim; j++)
            if (!isfinite(z[i * c->dim + j]))
                return fkt_fail(FKT_E_NUMERIC, "number %u of latent %zu of codec '%s' is not finite", j, i, c->name);
    return FKT_OK;
}

static fkt_status no_decoder(const struct fkt_codec *c)
{
    return fkt_fail_hint(FKT_E_STATE, "images are decoded from the latents of a codec",
                         "guide '%s' has no decoder: it makes no images", c->name);
}

fkt_status fkt_codec_encode(const struct fkt_codec *c, const uint8_t *rgb, size_t n, float *z)
{
    fkt_status st = c->ops->encode(c->self, rgb, n, z);
    return st == FKT_OK ? check_finite(c, z, n) : st;
}

fkt_status fkt_codec_decode(const struct fkt_codec *c, const float *z, size_t n, uint8_t *rgb)
{
    fkt_status st = c->ops->decode ? check_finite(c, z, n) : no_decoder(c);
    return st == FKT_OK ? c->ops->decode(c->self, z, n, rgb) : st;
}

fkt_status fkt_codec_net(const struct fkt_codec *c, int side, struct fkt_codec_net *out)
{
    memset(out, 0, sizeof *out);
    if (!c->ops->net) return fkt_fail(FKT_E_STATE, "codec '%s' has no networks", c->name);
    if (side == FKT_CODEC_SIDE_DECODER && !c->ops->decode) return no_decoder(c);
    return c->ops->net(c->self, side, out);
}

static fkt_status no_calibration(const struct fkt_codec *c)
{
    char size[16];
    fkt_status st;
    snprintf(size, sizeof size, "%u", c->size);
    st = fkt_hint_code(fkt_fail(FKT_E_STATE, "%s '%s' has no built-in calibration%s%s",
                                c->ops->decode ? "codec" : "guide", c->name,
                                fkt_codec_has_calibration(c->name) ? " for this size: " : "",
                                fkt_codec_has_calibration(c->name) ? size : ""),
                       FKT_HINT_CALIBRATE, "make one from a public image set");
    return fkt_hint_values(st, FKT_HINT_CALIBRATE, c->name, size);
}

/* A shipped one lies beside the weights: a file like any other, with the list of its public images. */
static fkt_status shipped_calibration(struct fkt_calibration *out, const struct fkt_codec *c)
{
    char *path = NULL;
    fkt_status st = FKT_OK;
    if (c->ops->calibration_file && fkt_codec_has_calibration(c->name))
        FKT_TRY(c->ops->calibration_file(c->self, &path));
    if (!path) return no_calibration(c);
    FKT_TRY(fkt_calibration_load(out, path));
    FKT_TRY(fkt_calibration_check(out, c));
out:
    if (st != FKT_OK) fkt_calibration_clear(out);
    fkt_free(path);
    return st;
}

fkt_status fkt_calibration_embedded(struct fkt_calibration *out, const struct fkt_codec *c)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!c->ops->calibrate) return shipped_calibration(out, c);
    st = fkt_calibration_init(out, c->dim, c->dim);
    if (st != FKT_OK) return st;
    c->ops->calibrate(c->self, out);
    snprintf(out->codec, sizeof out->codec, "%s", c->identity);
    return FKT_OK;
}

/* The S of "dct/1 size=S ..."; 0: none. */
static uint32_t size_in(const char *identity)
{
    static const char key[] = " size=";
    const char *at = strstr(identity, key);
    char digits[8];
    uint64_t size = 0;
    if (!at) return 0;
    at += sizeof key - 1;
    snprintf(digits, sizeof digits, "%.*s", (int)strcspn(at, " "), at);
    return fkt_parse_u64(&size, digits, FKT_DCT_SIZE_MAX) == FKT_OK ? (uint32_t)size : 0;
}

static int same_calibration(const struct fkt_calibration *a, const struct fkt_calibration *b)
{
    const size_t d = a->dim, raw = a->raw_dim;
    return d == b->dim && raw == b->raw_dim && a->images == b->images && a->n_digests == b->n_digests &&
           a->log_mean == b->log_mean && a->log_spread == b->log_spread && a->radius == b->radius &&
           !strcmp(a->source, b->source) && !strcmp(a->codec, b->codec) &&
           !memcmp(a->centre, b->centre, raw * sizeof *a->centre) &&
           !memcmp(a->map, b->map, d * raw * sizeof *a->map) && !memcmp(a->unmap, b->unmap, d * raw * sizeof *a->unmap);
}

fkt_status fkt_calibration_built_in(const struct fkt_calibration *cal)
{
    const struct fkt_codec_spec spec = {.name = fkt_codec_dct.name, .size = size_in(cal->codec), .dim = cal->raw_dim};
    struct fkt_calibration own = {0};
    struct fkt_codec *codec = NULL;
    int same = 0;
    fkt_status st = fkt_codec_open(&codec, &spec);
    if (st == FKT_OK) st = fkt_calibration_embedded(&own, codec);
    if (st == FKT_OK) same = same_calibration(cal, &own);
    fkt_calibration_clear(&own);
    fkt_codec_free(codec);
    if (same || st == FKT_E_NOMEM) return st;
    return fkt_fail(FKT_E_FORMAT, "it says that it was made of no images, and it is not the one built into the codec");
}
