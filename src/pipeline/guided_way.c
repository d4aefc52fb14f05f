/* SPDX-License-Identifier: Apache-2.0 */
/* guided_way.c - which way images are guided, and the networks for it.
 *
 * By gradient on processors each worker has its own two networks of one thread, made on its first batch: an image's
 * numbers then do not depend on the number of workers. On a card there is one pair, which workers use in turn.
 * The twin lies beside the codec's decoder as guided.safetensors. */
#include "pipeline/guided_way.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/threads.h"
#include "nn/backends.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_MOST = 10000 };

struct seat {
    pthread_mutex_t lock;
    struct fkt_guided *guided; /* NULL: not used yet */
};

struct fkt_guided_way {
    struct fkt_guided_spec spec;
    struct fkt_guided_twin *twin; /* NULL: by gradient */
    struct seat *seat;
    unsigned seats;
    size_t batch;
};

/* Near the best speed of the kernels, while activations stay small. */
static uint32_t batch_of(uint32_t size, struct fkt_device device)
{
    const uint64_t pixels = (uint64_t)size * size, n = (device.kind == FKT_DEVICE_CUDA ? 1U << 18 : 1U << 13) / pixels;
    return (uint32_t)(n < 1 ? 1 : n);
}

static fkt_status twin_path(char **out, const struct fkt_codec *c)
{
    struct fkt_codec_facts f;
    const char *decoder, *slash;
    char *folder = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_codec_facts(c, &f));
    decoder = f.file[1] ? f.file[1] : f.file[0];
    if (!decoder) return FKT_OK;
    slash = strrchr(decoder, '/');
    FKT_TRY(fkt_strdup(&folder, slash ? decoder : "."));
    if (slash) folder[slash == decoder ? 1 : slash - decoder] = '\0';
    FKT_TRY(fkt_path_join(out, folder, "guided.safetensors"));
    if (access(*out, F_OK) == 0) goto out;
    fkt_free(*out);
    *out = NULL;
out:
    fkt_free(folder);
    return st;
}

static fkt_status open_twin(struct fkt_guided_way *w, const struct fkt_guided_source *s, const char *path)
{
    const struct fkt_device device = fkt_codec_device_used(s->codec);
    struct fkt_guided_twin_spec spec = {
        .pair = s->pair,
        .codec = s->codec_calibration,
        .features = s->guide_calibration->dim,
        .backend = fkt_backend_for(device),
        .precision = fkt_codec_dtype_used(s->codec) == FKT_CODEC_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32,
        .batch = (uint32_t)fkt_codec_batch(s->codec),
        .device = device.index};
    fkt_status st;
    FKT_TRY(fkt_codec_net(s->codec, FKT_CODEC_SIDE_DECODER, &spec.decoder));
    FKT_TRY(fkt_guided_twin_open(&w->twin, path, &spec));
    w->batch = spec.batch;
out:
    return st;
}

static fkt_status open_gradient(struct fkt_guided_way *w, const struct fkt_guided_source *s,
                                const struct fkt_guided_facts *f, unsigned threads)
{
    const struct fkt_device device = fkt_codec_device_used(s->codec);
    fkt_status st;
    w->spec = (struct fkt_guided_spec){.codec = s->codec_calibration,
                                       .features = s->guide_calibration,
                                       .size = fkt_codec_size(s->codec),
                                       .steps = f->steps,
                                       .shift = fkt_codec_size(s->codec) / 16,
                                       .rho = f->rho,
                                       .rate = f->rate,
                                       .batch = batch_of(fkt_codec_size(s->codec), device),
                                       .backend = fkt_learner_for(device),
                                       .device = device.index};
    FKT_TRY(fkt_codec_net(s->codec, FKT_CODEC_SIDE_DECODER, &w->spec.decoder));
    FKT_TRY(fkt_codec_net(s->guide, FKT_CODEC_SIDE_ENCODER, &w->spec.guide));
    w->batch = w->spec.batch;
    FKT_TRY(fkt_alloc(&w->seat, device.kind == FKT_DEVICE_CUDA ? 1 : threads));
    w->seats = device.kind == FKT_DEVICE_CUDA ? 1 : threads;
    for (unsigned i = 0; i < w->seats; i++) pthread_mutex_init(&w->seat[i].lock, NULL);
    FKT_TRY(fkt_guided_new(&w->seat[0].guided, &w->spec));
out:
    return st == FKT_E_STATE || st == FKT_E_ARG
               ? fkt_hint_code(st, FKT_HINT_GUIDED_PLAIN, "decode images without the guide")
               : st;
}

static fkt_status settle(const struct fkt_guided_options *o, struct fkt_guided_facts *f)
{
    *f = (struct fkt_guided_facts){.kind = o->kind,
                                   .steps = o->steps ? o->steps : FKT_GUIDED_STEPS,
                                   .rho = o->rho != 0 ? o->rho : FKT_GUIDED_RHO,
                                   .rate = o->rate != 0 ? o->rate : FKT_GUIDED_RATE};
    if (f->steps > STEPS_MOST || !(f->rho > 0 && isfinite(f->rho)) || !(f->rate > 0 && isfinite(f->rate)))
        return fkt_fail(FKT_E_ARG, "guided images take 1 to %d steps, and a rho and a rate above 0", STEPS_MOST);
    if (o->kind != FKT_GUIDED_AUTO && o->kind != FKT_GUIDED_NONE && o->kind != FKT_GUIDED_ON &&
        o->kind != FKT_GUIDED_GRADIENT)
        return fkt_fail(FKT_E_ARG, "there is no such way to guide images");
    return FKT_OK;
}

static void plain(struct fkt_guided_facts *f, const char *why)
{
    *f = (struct fkt_guided_facts){.kind = FKT_GUIDED_NONE, .gradient_possible = *why != '\0'};
    snprintf(f->why, sizeof f->why, "%s", why);
}

/* The twin, where the kind allows it and there is one; f->kind says what became of it. */
static fkt_status try_twin(struct fkt_guided_way *w, const struct fkt_guided_source *s, struct fkt_guided_facts *f)
{
    char *path = NULL;
    fkt_status st;
    FKT_TRY(twin_path(&path, s->codec));
    if (path) {
        st = open_twin(w, s, path);
        if (st == FKT_E_MISMATCH && f->kind == FKT_GUIDED_AUTO) {
            plain(f, fkt_error_text());
            st = FKT_OK;
        } else if (st == FKT_OK) {
            *f = (struct fkt_guided_facts){.kind = FKT_GUIDED_TWIN};
            memcpy(f->twin_sha256, fkt_guided_twin_sha256(w->twin), sizeof f->twin_sha256);
        }
    } else if (f->kind == FKT_GUIDED_AUTO) {
        plain(f, "there is no decoder of guided images beside the codec's weights");
    } else {
        f->kind = FKT_GUIDED_GRADIENT;
    }
out:
    fkt_free(path);
    return st;
}

/* A codec without a network is decoded alone; asked for by name, it cannot be guided. */
static fkt_status no_network(const struct fkt_codec *c, struct fkt_guided_facts *f)
{
    char why[128];
    snprintf(why, sizeof why, "codec '%s' has no network, and images are guided through one", fkt_codec_name(c));
    if (f->kind != FKT_GUIDED_AUTO)
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "%s", why), FKT_HINT_GUIDED_PLAIN,
                             "decode images without the guide");
    plain(f, why);
    f->gradient_possible = 0;
    return FKT_OK;
}

fkt_status fkt_guided_way_open(struct fkt_guided_way **out, const struct fkt_guided_source *s,
                               const struct fkt_guided_options *o, unsigned threads, struct fkt_guided_facts *f)
{
    struct fkt_guided_way *w = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(settle(o, f));
    if (f->kind == FKT_GUIDED_NONE || (f->kind == FKT_GUIDED_AUTO && !s->guide_calibration)) {
        plain(f, "");
        return FKT_OK;
    }
    if (!s->guide_calibration)
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "images cannot be guided: the release has no guide"),
                             FKT_HINT_GUIDED_PLAIN, "decode images without a guide");
    if (!fkt_codec_is_network(fkt_codec_name(s->codec))) return no_network(s->codec, f);
    FKT_TRY(fkt_alloc(&w, 1));
    if (f->kind != FKT_GUIDED_GRADIENT) FKT_TRY(try_twin(w, s, f));
    if (f->kind == FKT_GUIDED_GRADIENT && !s->guide) {
        st = fkt_fail(FKT_E_STATE, "images cannot be guided by gradient: the guide's network is not open");
        goto out;
    }
    if (f->kind == FKT_GUIDED_GRADIENT) FKT_TRY(open_gradient(w, s, f, threads ? threads : fkt_cpu_count()));
    if (f->kind != FKT_GUIDED_NONE) {
        *out = w;
        w = NULL;
    }
out:
    fkt_guided_way_free(w);
    return st;
}

void fkt_guided_way_free(struct fkt_guided_way *w)
{
    if (!w) return;
    for (unsigned i = 0; i < w->seats; i++) {
        fkt_guided_free(w->seat[i].guided);
        pthread_mutex_destroy(&w->seat[i].lock);
    }
    fkt_free(w->seat);
    fkt_guided_twin_free(w->twin);
    fkt_free(w);
}

size_t fkt_guided_way_batch(const struct fkt_guided_way *w) { return w->batch; }

fkt_status fkt_guided_way_run(struct fkt_guided_way *w, unsigned worker, const struct fkt_guided_image *image,
                              const double *u, const double *s, size_t n, uint8_t *rgb)
{
    struct seat *seat;
    fkt_status st = FKT_OK;
    if (w->twin) return fkt_guided_twin_run(w->twin, u, s, n, rgb);
    seat = &w->seat[worker % w->seats];
    pthread_mutex_lock(&seat->lock);
    if (!seat->guided) st = fkt_guided_new(&seat->guided, &w->spec);
    if (st == FKT_OK) st = fkt_guided_run(seat->guided, image, u, s, n, rgb, NULL);
    pthread_mutex_unlock(&seat->lock);
    return st;
}
