/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - a codec made of two networks: pixels in, latents out, and back; and a guide, which has the first alone.
 *
 *   rgb (n,S,S,3) -> floats (n,3,S,S) in the family's range -> encoder -> (x - shift) * scale -> z (n,D)
 *
 * D = latent channels * (S / reduction)^2, in the order channel, row, column. Pixels on the way out are clamped and
 * rounded half up. In a guide the encoder begins with a resampling of the image to the side of its input, and ends with
 * the mean of each map: D = features, for any S.
 * Opening reads every weight once, for the hash in the identity; it makes no engine: those come to be on first use, one
 * for each direction, so that a site that only encodes never pays for the decoder.
 *
 * The batch is fixed by family, size and kind of device. Libraries choose kernels by batch, so that an image's latent
 * would otherwise depend on how many came with it; with a fixed batch it is the same for any chunking and any number of
 * threads. It is chosen so that kernels are near their best (within a tenth of the best batch measured) and activations
 * stay small. */
#include "codec/codec.h"
#include "codec/dtype.h"
#include "codec/family.h"
#include "codec/manifest.h"
#include "codec/cache.h"

#include "base/alloc.h"
#include "nn/backends.h"
#include "nn/cpu.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_MAX_PX = 4096, DIM_MAX = 1 << 20, GUIDE_SIZE_MIN = 8, GUIDE_SIZE_MAX = 1024 };

/* What comes to be after opening; engines are made once and never replaced. */
struct lazy {
    pthread_mutex_t lock;
    struct fkt_engine *engine[2];
};

struct network {
    struct fkt_family family;
    struct fkt_net resized; /* of a guide: the family's network behind a resampling; no operation: it is not needed */
    uint32_t input;         /* of a guide: side that images are resampled to */
    struct fkt_engine_spec spec[2];
    struct fkt_device device;
    uint32_t size, dim;
    float pixel[3][256]; /* network input of each pixel value, the same for all channels */
    struct lazy *lazy;
};

/* Images at a time: so many at so many pixels, fewer of larger ones, never more than 16. Kernels for one image alone
 * are slower, so two go together as long as that takes little memory. A card has more arithmetic units than such a
 * batch has work for: there it is 2^20 pixels, at most 256 images, whichever card it is. */
static uint32_t batch_of(const struct fkt_family *f, uint32_t size, struct fkt_device device)
{
    uint64_t pixels = (uint64_t)size * size, n = !strcmp(f->kind, "taesd") ? 8 * 32 * 32 : 16 * 64 * 64;
    if (device.kind == FKT_DEVICE_CUDA) {
        n = (1U << 20) / pixels;
        return (uint32_t)(n > 256 ? 256 : n < 1 ? 1 : n);
    }
    if (n / pixels > 16) return 16;
    if (n / pixels < 2) return size <= 256 ? 2 : 1;
    return (uint32_t)(n / pixels);
}

static void network_free(void *self)
{
    struct network *n = self;
    if (!n) return;
    if (n->lazy) {
        for (int i = 0; i < 2; i++) fkt_engine_free(n->lazy->engine[i]);
        pthread_mutex_destroy(&n->lazy->lock);
        fkt_free(n->lazy);
    }
    fkt_net_clear(&n->resized);
    fkt_family_clear(&n->family);
    fkt_free(n);
}

/* The network that runs. Its slots are the family's, so that weights fit both. */
static const struct fkt_net *net_of(const struct network *n, int side)
{
    return side == FKT_CODEC_SIDE_ENCODER && n->resized.n_ops ? &n->resized : &n->family.net[side];
}

static fkt_status set_guide(struct network *n, const struct fkt_codec_spec *spec, uint32_t input)
{
    const struct fkt_net *net = &n->family.net[FKT_CODEC_SIDE_ENCODER];
    const uint32_t step = n->family.step;
    n->input = input ? input : n->family.input;
    if (n->input % step || n->input > FKT_GUIDE_INPUT_MAX)
        return fkt_fail(FKT_E_ARG, "guide '%s' cannot have an input of %u px: its sides are multiples of %u up to %d",
                        spec->name, n->input, step, FKT_GUIDE_INPUT_MAX);
    if (spec->size < GUIDE_SIZE_MIN || spec->size > GUIDE_SIZE_MAX)
        return fkt_fail(FKT_E_ARG, "guide '%s' cannot take images of %u px: its sizes are %d to %d", spec->name,
                        spec->size, GUIDE_SIZE_MIN, GUIDE_SIZE_MAX);
    if (n->input == spec->size) return FKT_OK;
    fkt_net_init(&n->resized, 3);
    fkt_net_append(&n->resized, fkt_net_move(&n->resized, FKT_OP_RESIZE, 0, n->input), net, net->n_ops, "");
    return fkt_net_status(&n->resized);
}

static fkt_status set_size(struct network *n, const struct fkt_codec_spec *spec)
{
    const struct fkt_family *f = &n->family;
    uint64_t side = f->guide ? 1 : spec->size / f->reduction, dim = f->latent_channels * side * side;
    if (!f->guide && (!spec->size || spec->size % f->reduction || spec->size > SIZE_MAX_PX))
        return fkt_fail(FKT_E_ARG, "codec '%s' cannot take images of %u px: its sizes are multiples of %u up to %d",
                        spec->name, spec->size, f->reduction, SIZE_MAX_PX);
    if (dim > DIM_MAX)
        return fkt_fail(FKT_E_ARG, "codec '%s' makes %llu numbers of %u px images: at most %d", spec->name,
                        (unsigned long long)dim, spec->size, DIM_MAX);
    if (spec->dim && spec->dim != dim)
        return fkt_fail_hint(FKT_E_ARG, "leave the length out, or cut it in the calibration",
                             "codec '%s' makes %llu numbers of %u px images, not %u", spec->name,
                             (unsigned long long)dim, spec->size, spec->dim);
    n->size = spec->size;
    n->dim = (uint32_t)dim;
    for (int i = 0; i < 2; i++) {
        struct fkt_engine_spec *e = &n->spec[i];
        e->batch = batch_of(f, f->guide && n->input > spec->size ? n->input : spec->size, n->device);
        e->device = n->device.index;
        e->height = e->width = i == FKT_CODEC_SIDE_ENCODER ? spec->size : (uint32_t)side;
        e->low_memory = spec->settings.low_memory;
    }
    for (int i = 0; i < 3 * 256; i++)
        n->pixel[i / 256][i % 256] =
            (float)(i % 256) / 255.0F * (float)f->pixel_scale[i / 256] + (float)f->pixel_shift[i / 256];
    return FKT_OK;
}

/* What AUTO means on this machine: bf16 on a card, where it is always faster; on a processor the encoder is timed. */
static fkt_status set_dtype(struct network *n, const struct fkt_codec_spec *spec, struct fkt_codec *c)
{
    struct fkt_dtype_trial t = {.backend = fkt_backend_for(n->device),
                                .net = net_of(n, FKT_CODEC_SIDE_ENCODER),
                                .weights = n->family.weights[FKT_CODEC_SIDE_ENCODER],
                                .spec = n->spec[FKT_CODEC_SIDE_ENCODER],
                                .measured = &c->dtype_measured};
    enum fkt_codec_dtype *out = &c->dtype;
    char processor[128], machine[256], member[96];
    const char *isa = NULL;
    fkt_status st = FKT_OK;
    *out = spec->settings.dtype;
    if (*out == FKT_CODEC_DTYPE_AUTO && n->device.kind == FKT_DEVICE_CUDA) *out = FKT_CODEC_DTYPE_BF16;
    if (*out == FKT_CODEC_DTYPE_AUTO) {
        fkt_cpu_processor(processor, sizeof processor);
        FKT_TRY(fkt_cpu_isa(&isa));
        FKT_TRY(fkt_cpu_bf16(&t.bf16));
        snprintf(machine, sizeof machine, "%s, %s, %s", processor, isa, fkt_cpu_library());
        if (n->family.guide) snprintf(member, sizeof member, "%s %s@%u", n->family.kind, n->family.variant, n->input);
        else
            snprintf(member, sizeof member, "%s f%uc%u", n->family.kind, n->family.reduction,
                     n->family.latent_channels);
        t.machine = machine;
        t.codec = member;
        FKT_TRY(fkt_dtype_choose(out, &t));
    }
    for (int i = 0; i < 2; i++)
        n->spec[i].precision = *out == FKT_CODEC_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
out:
    return st;
}

/* The shortest text that reads back as the same number: two codecs never share an identity. */
static const char *exactly(char out[32], double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, x);
        if (strtod(out, NULL) == x) break;
    }
    return out;
}

static fkt_status set_identity(const struct network *n, struct fkt_codec *c)
{
    const struct fkt_family *f = &n->family;
    char hash[FKT_HASH_HEX], number[32], scale[32], shift[40] = "";
    fkt_status st = fkt_family_sha256(f, hash);
    if (st != FKT_OK) return fkt_fail_in(st, "weights '%s'", f->path[0]);
    if (f->guide) {
        snprintf(c->identity, sizeof c->identity, "%s/1 size=%u dim=%u input=%u resample=bilinear %s weights=%s",
                 f->kind, n->size, n->dim, n->input, f->scaling, hash);
        return FKT_OK;
    }
    if (f->latent_shift != 0) snprintf(shift, sizeof shift, " shift=%s", exactly(number, f->latent_shift));
    snprintf(c->identity, sizeof c->identity, "%s/1 size=%u dim=%u scale=%s%s weights=%s", f->kind, n->size, n->dim,
             exactly(scale, f->latent_scale), shift, hash);
    return FKT_OK;
}

/* What lies in the cache and cannot be used was pulled, or should have been. */
static fkt_status open_family(struct network *n, const struct fkt_codec_spec *spec, const struct fkt_codec_title *t,
                              const char *path)
{
    fkt_status st = fkt_family_open(&n->family, path, t->file ? NULL : t->base, NULL);
    if (spec->settings.weights || t->file || !fkt_published_find(t->base) || st == FKT_E_NOMEM) return st;
    st = fkt_hint_code(st, FKT_HINT_PULL_AGAIN, "fetch the weights again");
    return fkt_hint_values(st, FKT_HINT_PULL_AGAIN, t->base, NULL);
}

/* The name that takes any weights of the family. */
static void name_family(struct fkt_codec *c, const struct network *n, const struct fkt_codec_title *t)
{
    const char *kind = n->family.kind, *name = !strcmp(kind, "taesd") ? "tiny" : kind;
    if (t->input) snprintf(c->name, sizeof c->name, "%s@%u", name, t->input);
    else snprintf(c->name, sizeof c->name, "%s", name);
}

static fkt_status network_open(struct fkt_codec *c, const struct fkt_codec_spec *spec)
{
    struct fkt_codec_title title = {.input = 0};
    struct network *n = NULL;
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_codec_title(&title, spec->name));
    FKT_TRY(fkt_codec_weights_path(&path, title.base, title.file ? title.file : spec->settings.weights));
    FKT_TRY(fkt_alloc(&n, 1));
    n->device = spec->settings.device;
    FKT_TRY(fkt_device_resolve(&n->device, NULL, 0));
    FKT_TRY(fkt_alloc(&n->lazy, 1));
    pthread_mutex_init(&n->lazy->lock, NULL);
    FKT_TRY(open_family(n, spec, &title, path));
    if (title.file) name_family(c, n, &title);
    if (n->family.guide) {
        c->ops = &fkt_codec_guide;
        FKT_TRY(set_guide(n, spec, title.input));
    }
    FKT_TRY(set_size(n, spec));
    FKT_TRY(set_identity(n, c));
    FKT_TRY(set_dtype(n, spec, c));
    c->size = n->size;
    c->dim = n->dim;
    c->device = n->device;
    c->batch = n->spec[FKT_CODEC_SIDE_ENCODER].batch;
    c->self = n;
    n = NULL;
out:
    fkt_free(title.file);
    fkt_free(path);
    network_free(n);
    return st;
}

/* An encoder takes bytes, a decoder gives them. */
static fkt_status engine_of(const struct network *n, int side, struct fkt_engine **out)
{
    struct fkt_engine_spec spec = n->spec[side];
    fkt_status st = FKT_OK;
    if (side == FKT_CODEC_SIDE_ENCODER) spec.pixels_in = n->pixel;
    spec.bytes_out = side == FKT_CODEC_SIDE_DECODER;
    spec.out_scale = (float)n->family.pixel_scale[0]; /* a decoder's are the same for all channels */
    spec.out_shift = (float)n->family.pixel_shift[0];
    pthread_mutex_lock(&n->lazy->lock);
    if (!n->lazy->engine[side])
        st = fkt_engine_new(&n->lazy->engine[side], fkt_backend_for(n->device), net_of(n, side),
                            n->family.weights[side], &spec);
    *out = n->lazy->engine[side];
    pthread_mutex_unlock(&n->lazy->lock);
    return st;
}

static fkt_status network_encode(const void *self, const uint8_t *rgb, size_t n, float *z)
{
    const struct network *w = self;
    const double scale = w->family.latent_scale, shift = w->family.latent_shift;
    struct fkt_engine *e = NULL;
    fkt_status st;
    FKT_TRY(engine_of(w, FKT_CODEC_SIDE_ENCODER, &e));
    FKT_TRY(fkt_engine_run_bytes(e, rgb, n, z));
    for (size_t i = 0; i < n * w->dim; i++) z[i] = (float)((z[i] - shift) * scale);
out:
    return st;
}

static fkt_status network_decode(const void *self, const float *z, size_t n, uint8_t *rgb)
{
    const struct network *w = self;
    const double scale = w->family.latent_scale, shift = w->family.latent_shift;
    struct fkt_engine *e = NULL;
    float *in = NULL;
    fkt_status st;
    FKT_TRY(engine_of(w, FKT_CODEC_SIDE_DECODER, &e));
    FKT_TRY(fkt_alloc(&in, n * w->dim));
    for (size_t i = 0; i < n * w->dim; i++) {
        in[i] = (float)(z[i] / scale + shift);
        if (isfinite(in[i])) continue;
        st = fkt_fail(FKT_E_NUMERIC, "number %zu of latent %zu is too large for the decoder of '%s'", i % w->dim,
                      i / w->dim, w->family.kind);
        goto out;
    }
    FKT_TRY(fkt_fail_in(fkt_engine_run_to_bytes(e, in, n, rgb), "decoder of '%s'", w->family.kind));
out:
    fkt_free(in);
    return st;
}

/* Numbers that were learnt: the statistics of batch norms are none. */
static uint64_t parameters(const struct fkt_net *n)
{
    uint64_t sum = fkt_net_parameters(n);
    for (size_t i = 0; i < n->n_ops; i++)
        if (n->op[i].kind == FKT_OP_BATCH_NORM)
            sum -= fkt_slot_count(&n->slot[n->op[i].mean]) + fkt_slot_count(&n->slot[n->op[i].var]);
    return sum;
}

static fkt_status network_net(const void *self, int side, struct fkt_codec_net *out)
{
    const struct network *w = self;
    const struct fkt_net *n = net_of(w, side);
    struct fkt_shape *shapes = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&shapes, n->n_ops + 1));
    FKT_TRY(fkt_net_shapes(n, w->spec[side].height, w->spec[side].width, shapes));
    *out = (struct fkt_codec_net){.net = n,
                                  .weights = w->family.weights[side],
                                  .input = shapes[0],
                                  .output = shapes[n->n_ops],
                                  .latent_scale = w->family.latent_scale,
                                  .latent_shift = w->family.latent_shift};
    for (int k = 0; k < 3; k++) {
        out->pixel_scale[k] = (float)w->family.pixel_scale[k];
        out->pixel_shift[k] = (float)w->family.pixel_shift[k];
    }
out:
    fkt_free(shapes);
    return st;
}

static fkt_status flops(const struct network *w, int side, uint64_t *out)
{
    const struct fkt_net *n = net_of(w, side);
    struct fkt_shape *shapes = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&shapes, n->n_ops + 1));
    FKT_TRY(fkt_net_shapes(n, w->spec[side].height, w->spec[side].width, shapes));
    *out = fkt_net_flops(n, shapes);
out:
    fkt_free(shapes);
    return st;
}

static fkt_status network_facts(const void *self, struct fkt_codec_facts *out)
{
    const struct network *w = self;
    const struct fkt_family *f = &w->family;
    fkt_status st = FKT_OK;
    snprintf(out->kind, sizeof out->kind, "%s", f->kind);
    snprintf(out->layout, sizeof out->layout, "%s", f->layout);
    snprintf(out->variant, sizeof out->variant, "%s", f->variant);
    out->input = w->input;
    out->latent_channels = f->latent_channels;
    out->reduction = f->reduction;
    out->latent_scale = f->latent_scale;
    out->latent_shift = f->latent_shift;
    out->config = f->config;
    for (int i = 0; i < (f->guide ? 1 : 2); i++) {
        out->parameters[i] = parameters(&f->net[i]);
        out->batch[i] = w->spec[i].batch;
        out->file[i] = f->path[i];
        FKT_TRY(flops(w, i, &out->flops[i]));
        pthread_mutex_lock(&w->lazy->lock);
        if (w->lazy->engine[i]) {
            out->packed_bytes[i] = fkt_engine_facts(w->lazy->engine[i])->packed_bytes;
            out->workspace_bytes[i] = fkt_engine_facts(w->lazy->engine[i])->workspace_bytes;
        }
        pthread_mutex_unlock(&w->lazy->lock);
    }
out:
    return st;
}

/* Beside the weights, one for each size. */
static fkt_status network_calibration(const void *self, char **out)
{
    const struct network *w = self;
    const char *file = w->family.path[0], *slash = strrchr(file, '/');
    size_t folder = slash ? (size_t)(slash - file) + 1 : 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(out, folder + 48));
    memcpy(*out, file, folder);
    snprintf(*out + folder, 48, "calibration-%u.safetensors", w->size);
    if (access(*out, F_OK) == 0) return FKT_OK;
    fkt_free(*out);
    *out = NULL;
out:
    return st;
}

const struct fkt_codec_ops fkt_codec_network = {
    .name = "network",
    .open = network_open,
    .encode = network_encode,
    .decode = network_decode,
    .facts = network_facts,
    .calibration_file = network_calibration,
    .net = network_net,
    .free = network_free,
};

const struct fkt_codec_ops fkt_codec_guide = {
    .name = "guide",
    .open = network_open,
    .encode = network_encode,
    .facts = network_facts,
    .calibration_file = network_calibration,
    .net = network_net,
    .free = network_free,
};
