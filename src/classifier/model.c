/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - a convolutional classifier: its network, one block of weights, class names, normalisation, origin.
 *
 * Initial weights are torchvision's: He normal by fan out for convolutions (He et al., ICCV 2015), norms 1 and 0, the
 * last layer uniform in +-1/sqrt(F). We differ in the stream: each tensor is drawn from (seed, hash of its name), so
 * that it does not depend on the rest of the network, and a new last layer equals that of a new model. */
#include "classifier/model.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 / sizeof(float) }; /* arrays begin on cache lines */

/* torchvision's numbers for ImageNet; public and customary. */
static const float imagenet_mean[3] = {0.485F, 0.456F, 0.406F}, imagenet_std[3] = {0.229F, 0.224F, 0.225F};

static size_t rounded(size_t n) { return (n + LINE - 1) / LINE * LINE; }

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

fkt_status fkt_model_duplicate(const char *const *names, uint32_t n, const char **duplicate)
{
    const char **sorted = NULL;
    fkt_status st = fkt_alloc(&sorted, n);
    *duplicate = NULL;
    if (st != FKT_OK) return st;
    memcpy(sorted, names, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (uint32_t k = 1; k < n && !*duplicate; k++)
        if (!strcmp(sorted[k - 1], sorted[k])) *duplicate = sorted[k];
    fkt_free(sorted);
    return FKT_OK;
}

static fkt_status check_names(const char *const *classes, uint32_t n)
{
    const char *duplicate = NULL;
    fkt_status st;
    if (n < 1 || n > FKT_MODEL_CLASSES_MAX)
        return fkt_fail(FKT_E_ARG, "a model cannot have %u classes: 1 to %d", n, FKT_MODEL_CLASSES_MAX);
    for (uint32_t k = 0; k < n; k++)
        if (!classes[k] || !fkt_plain_text(classes[k]))
            return fkt_fail(FKT_E_ARG, "the name of class %u is empty, not UTF-8 or has control characters", k);
    st = fkt_model_duplicate(classes, n, &duplicate);
    return duplicate ? fkt_fail(FKT_E_ARG, "two classes have the name '%s'", duplicate) : st;
}

static fkt_status check_spec(const struct fkt_model_spec *s)
{
    if (!*fkt_architecture_name(s->architecture) || !*fkt_stem_name(s->stem))
        return fkt_fail(FKT_E_ARG, "there is no architecture %d with stem %d", (int)s->architecture, (int)s->stem);
    if (s->architecture == FKT_ARCHITECTURE_RESNET8 && s->stem != FKT_STEM_CIFAR)
        return fkt_fail_hint(FKT_E_ARG, "use resnet18, or the stem 'cifar'", "'resnet8' has no stem '%s'",
                             fkt_stem_name(s->stem));
    if (s->size < FKT_MODEL_SIZE_MIN || s->size > FKT_MODEL_SIZE_MAX)
        return fkt_fail(FKT_E_ARG, "a model cannot take images of %u px: %d to %d", s->size, FKT_MODEL_SIZE_MIN,
                        FKT_MODEL_SIZE_MAX);
    for (int c = 0; c < 3; c++)
        if ((s->mean && !isfinite(s->mean[c])) || (s->std && !(s->std[c] > 0 && isfinite(s->std[c]))))
            return fkt_fail(FKT_E_ARG, "mean and std of the pixels must be finite, std above 0");
    return check_names(s->classes, s->n_classes);
}

static fkt_status copy_names(struct fkt_model *m, const char *const *classes, uint32_t n)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&m->classes, n));
    m->n_classes = n;
    for (uint32_t k = 0; k < n; k++) FKT_TRY(fkt_strdup(&m->classes[k], classes[k]));
out:
    return st;
}

static fkt_status make_slab(struct fkt_model *m)
{
    size_t total = LINE;
    fkt_status st;
    FKT_TRY(fkt_alloc(&m->array, m->net.n_slots));
    for (size_t i = 0; i < m->net.n_slots; i++) total += rounded(fkt_slot_count(&m->net.slot[i]));
    FKT_TRY(fkt_alloc(&m->slab, total));
    total = (64 - (uintptr_t)m->slab % 64) % 64 / sizeof(float);
    for (size_t i = 0; i < m->net.n_slots; i++) {
        m->array[i] = m->slab + total;
        total += rounded(fkt_slot_count(&m->net.slot[i]));
    }
out:
    return st;
}

fkt_status fkt_model_blank(struct fkt_model **out, const struct fkt_model_spec *spec)
{
    struct fkt_model *m = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(check_spec(spec));
    FKT_TRY(fkt_alloc(&m, 1));
    m->architecture = spec->architecture;
    m->stem = spec->stem;
    m->size = spec->size;
    m->features = fkt_resnet_features(spec->architecture);
    memcpy(m->mean, spec->mean ? spec->mean : imagenet_mean, sizeof m->mean);
    memcpy(m->std, spec->std ? spec->std : imagenet_std, sizeof m->std);
    FKT_TRY(copy_names(m, spec->classes, spec->n_classes));
    fkt_net_init(&m->net, 3);
    fkt_resnet_build(&m->net, m->architecture, m->stem, m->n_classes);
    FKT_TRY(fkt_net_status(&m->net));
    FKT_TRY(make_slab(m));
    FKT_TRY(fkt_model_engines_new(&m->engines));
    *out = m;
    m = NULL;
out:
    fkt_model_free(m);
    return st;
}

void fkt_model_free(struct fkt_model *m)
{
    if (!m) return;
    fkt_model_engines_free(m->engines);
    if (m->classes)
        for (uint32_t k = 0; k < m->n_classes; k++) fkt_free(m->classes[k]);
    fkt_free(m->classes);
    fkt_free(m->slab);
    fkt_free(m->array);
    fkt_net_clear(&m->net);
    fkt_free(m);
}

/* FNV-1a, 64 bits. */
static uint64_t name_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325U;
    for (; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001b3U;
    return h;
}

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

int fkt_model_is_statistic(const struct fkt_model *m, size_t slot)
{
    const char *name = m->net.slot[slot].name[0];
    return ends_with(name, ".running_mean") || ends_with(name, ".running_var");
}

void fkt_model_draw(struct fkt_model *m, size_t slot, uint64_t seed)
{
    const struct fkt_slot *s = &m->net.slot[slot];
    const size_t n = fkt_slot_count(s);
    const char *name = s->name[0];
    float *x = m->array[slot];
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, name_hash(name));
    if (s->rank == 4) {
        double deviation = sqrt(2.0 / ((double)s->shape[0] * s->shape[2] * s->shape[3]));
        for (size_t i = 0; i < n; i++) x[i] = (float)(deviation * fkt_rng_normal(&rng));
    } else if (slot + 2 >= m->net.n_slots) {
        double bound = 1 / sqrt((double)m->features);
        for (size_t i = 0; i < n; i++) x[i] = (float)(bound * (2 * fkt_rng_unit(&rng) - 1));
    } else {
        float value = ends_with(name, ".weight") || ends_with(name, ".running_var") ? 1.0F : 0.0F;
        for (size_t i = 0; i < n; i++) x[i] = value;
    }
}

fkt_status fkt_model_new(struct fkt_model **out, const struct fkt_model_spec *spec)
{
    fkt_status st = fkt_model_blank(out, spec);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < (*out)->net.n_slots; i++) fkt_model_draw(*out, i, spec->seed);
    return FKT_OK;
}

fkt_status fkt_model_new_head(struct fkt_model **out, const struct fkt_model *m, const char *const *classes,
                              uint32_t n_classes, uint64_t seed)
{
    const struct fkt_model_spec spec = {.architecture = m->architecture,
                                        .stem = m->stem,
                                        .size = m->size,
                                        .classes = classes,
                                        .n_classes = n_classes,
                                        .mean = m->mean,
                                        .std = m->std};
    const size_t n = m->net.n_slots;
    fkt_status st = fkt_model_blank(out, &spec);
    if (st != FKT_OK) return st;
    (*out)->origin = m->origin;
    for (size_t i = 0; i + 2 < n; i++)
        memcpy((*out)->array[i], m->array[i], fkt_slot_count(&m->net.slot[i]) * sizeof(float));
    for (size_t i = n - 2; i < n; i++) fkt_model_draw(*out, i, seed);
    return FKT_OK;
}

fkt_status fkt_model_copy(struct fkt_model **out, const struct fkt_model *m)
{
    fkt_status st = fkt_model_new_head(out, m, (const char *const *)m->classes, m->n_classes, 0);
    if (st != FKT_OK) return st;
    (*out)->nameless = m->nameless;
    for (size_t i = m->net.n_slots - 2; i < m->net.n_slots; i++)
        memcpy((*out)->array[i], m->array[i], fkt_slot_count(&m->net.slot[i]) * sizeof(float));
    return FKT_OK;
}

/* The origin of the new weights is unknown here. */
void fkt_model_changed(struct fkt_model *m)
{
    fkt_model_engines_drop(m->engines);
    memset(&m->origin, 0, sizeof m->origin);
}

void fkt_model_pixels(const struct fkt_model *m, float table[3][256])
{
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) table[c][v] = ((float)v / 255.0F - m->mean[c]) / m->std[c];
}

enum fkt_architecture fkt_model_architecture(const struct fkt_model *m) { return m->architecture; }
enum fkt_stem fkt_model_stem(const struct fkt_model *m) { return m->stem; }
uint32_t fkt_model_size(const struct fkt_model *m) { return m->size; }
uint32_t fkt_model_classes(const struct fkt_model *m) { return m->n_classes; }
const char *fkt_model_class(const struct fkt_model *m, uint32_t k) { return k < m->n_classes ? m->classes[k] : ""; }
int fkt_model_named(const struct fkt_model *m) { return !m->nameless; }
uint32_t fkt_model_features(const struct fkt_model *m) { return m->features; }
const float *fkt_model_mean(const struct fkt_model *m) { return m->mean; }
const float *fkt_model_std(const struct fkt_model *m) { return m->std; }
const struct fkt_model_origin *fkt_model_origin(const struct fkt_model *m) { return &m->origin; }

/* Numbers that are learnt; the statistics of norms are not. */
uint64_t fkt_model_parameters(const struct fkt_model *m)
{
    uint64_t sum = fkt_net_parameters(&m->net);
    for (size_t i = 0; i < m->net.n_slots; i++)
        if (fkt_model_is_statistic(m, i)) sum -= fkt_slot_count(&m->net.slot[i]);
    return sum;
}

/* One printable line: bytes that are not UTF-8 or would control a terminal become '?'. */
static void one_line(char *out, size_t cap, const char *s)
{
    fkt_text_cut(out, cap, s);
    for (size_t n; *out; out += n ? n : 1) {
        n = fkt_control_length(out);
        memset(out, '?', n);
    }
}

void fkt_model_set_origin(struct fkt_model *m, const struct fkt_model_origin *origin)
{
    const struct fkt_model_origin o = *origin; /* which may be the model's own */
    m->origin = (struct fkt_model_origin){.is_private = o.is_private != 0, .epsilon = o.epsilon, .delta = o.delta};
    one_line(m->origin.adjacency, sizeof m->origin.adjacency, o.is_private ? o.adjacency : "");
    one_line(m->origin.release_sha256, sizeof m->origin.release_sha256, o.release_sha256);
    one_line(m->origin.fit, sizeof m->origin.fit, o.fit);
    one_line(m->origin.data, sizeof m->origin.data, o.data);
    one_line(m->origin.public_images, sizeof m->origin.public_images, o.public_images);
    one_line(m->origin.recipe, sizeof m->origin.recipe, o.recipe);
}

size_t fkt_model_tensors(const struct fkt_model *m) { return m->net.n_slots; }

struct fkt_model_tensor fkt_model_tensor(const struct fkt_model *m, size_t i)
{
    struct fkt_model_tensor t = {0};
    if (i >= m->net.n_slots) return t;
    t.name = m->net.slot[i].name[0];
    t.rank = m->net.slot[i].rank;
    memcpy(t.shape, m->net.slot[i].shape, sizeof t.shape);
    t.count = fkt_slot_count(&m->net.slot[i]);
    t.data = m->array[i];
    return t;
}
