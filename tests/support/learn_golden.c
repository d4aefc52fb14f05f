/* SPDX-License-Identifier: Apache-2.0 */
/* learn_golden.c - steps of training beside PyTorch's; see learn_golden.h, and oracle/learn_vectors.py for the laws
 * that both sides follow: weights, where norms' biases are moved to, images, labels, signs of the projections. */
#include "tests/support/learn_golden.h"

#include "classifier/model.h"
#include "nn/loss.h"
#include "tests/support/check.h"
#include "tests/support/golden_weights.h"

enum { BATCHES = 4, SIGNS = 16, ENTRIES = 8, SKETCH = 1 + SIGNS + ENTRIES };

const struct learn_case learn_resnet8 = {"resnet8", FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 8, 32, 5e-4f, 1};
const struct learn_case learn_resnet18_cifar = {
    "resnet18_cifar", FKT_ARCHITECTURE_RESNET18, FKT_STEM_CIFAR, 4, 32, 2e-5f, 2};
const struct learn_case learn_resnet18_imagenet = {
    "resnet18_imagenet", FKT_ARCHITECTURE_RESNET18, FKT_STEM_IMAGENET, 2, 64, 2e-5f, 2};

static int ends(const char *name, const char *tail)
{
    size_t a = strlen(name), b = strlen(tail);
    return a >= b && !strcmp(name + a - b, tail);
}

/* A norm's bias away from where ReLUs bend. */
static void move_bias(float *x, const char *name, size_t n, float by)
{
    if (!ends(name, "bias") || !strcmp(name, "fc.bias")) return;
    for (size_t i = 0; i < n; i++) {
        if (strstr(name, "downsample")) x[i] += by / 2;
        else if (!strcmp(name, "bn1.bias") || ends(name, "bn2.bias")) x[i] += by;
        else x[i] += x[i] >= 0 ? by : -by;
    }
}

static void fill(struct learn_golden *g)
{
    for (uint32_t s = 0; s < g->net.n_slots; s++) {
        const struct fkt_slot *slot = &g->net.slot[s];
        uint64_t shape[FKT_SLOT_RANK];
        size_t n = fkt_slot_count(slot);
        for (unsigned i = 0; i < slot->rank; i++) shape[i] = slot->shape[i];
        golden_weights_fill(g->buffer, slot->name[0], slot->rank, shape, 0, n);
        move_bias(g->buffer, slot->name[0], n, g->k->moved);
        CHECK_OK(fkt_learner_write(g->learner, FKT_WEIGHT, s, g->buffer));
    }
}

static const struct fkt_tensor *kept(const struct learn_golden *g, const char *role, const char *name, size_t count)
{
    char key[128];
    const struct fkt_tensor *t;
    snprintf(key, sizeof key, "%s%s%s", role, name ? "/" : "", name ? name : "");
    t = fkt_safetensors_find(g->vectors, key);
    if (!t || t->count != count || t->dtype != FKT_F64) fail_msg("no %zu numbers '%s' of '%s'", count, key, g->k->name);
    return t;
}

void learn_golden_open(struct learn_golden *g, const struct learn_case *k, const struct fkt_learner_backend *backend,
                       enum fkt_precision precision)
{
    const struct fkt_learner_spec spec = {.batch = k->batch,
                                          .height = k->side,
                                          .width = k->side,
                                          .precision = precision,
                                          .threads = 2,
                                          .norm_momentum = 0.1f};
    const struct fkt_tensor *t;
    size_t largest = 0;
    char path[512];
    memset(g, 0, sizeof *g);
    g->k = k;
    snprintf(path, sizeof path, "%s/nn/learn_%s.safetensors", FKT_TEST_VECTORS, k->name);
    CHECK_OK(fkt_safetensors_open(&g->vectors, path));
    t = fkt_safetensors_find(g->vectors, "pictures");
    CHECK(t && t->dtype == FKT_I64 && t->count == 1);
    memcpy(&g->images, t->data, sizeof g->images);
    fkt_net_init(&g->net, 3);
    fkt_resnet_build(&g->net, k->architecture, k->stem, LEARN_CLASSES);
    CHECK_OK(fkt_net_status(&g->net));
    for (size_t s = 0; s < g->net.n_slots; s++) {
        size_t n = fkt_slot_count(&g->net.slot[s]);
        largest = n > largest ? n : largest;
    }
    CHECK_OK(fkt_alloc(&g->buffer, largest));
    CHECK_OK(fkt_alloc(&g->in, (size_t)3 * k->batch * k->side * k->side));
    CHECK_OK(fkt_learner_new(&g->learner, backend, &g->net, &spec));
    fill(g);
}

void learn_golden_release(struct learn_golden *g)
{
    fkt_learner_free(g->learner);
    fkt_net_clear(&g->net);
    fkt_safetensors_free(g->vectors);
    fkt_free(g->buffer);
    fkt_free(g->in);
    memset(g, 0, sizeof *g);
}

double learn_golden_forward(struct learn_golden *g, float *logits)
{
    const int64_t s = g->step % BATCHES;
    const uint64_t count = (uint64_t)3 * g->k->batch * g->k->side * g->k->side;
    float z[8 * LEARN_CLASSES], dz[8 * LEARN_CLASSES];
    uint32_t label[8];
    double loss;
    char name[64];
    CHECK(g->k->batch <= 8);
    snprintf(name, sizeof name, "input.%lld.%lld.weight", (long long)g->images, (long long)s);
    golden_weights_fill(g->in, name, 2, (uint64_t[]){count, 1}, 0, (size_t)count);
    for (uint32_t i = 0; i < g->k->batch; i++) label[i] = (3 * i + 7 * (uint32_t)s + i * i) % LEARN_CLASSES;
    CHECK_OK(fkt_learner_forward(g->learner, g->in, z));
    CHECK_OK(
        fkt_loss_softmax(&(struct fkt_loss){0, 1, 0}, z, label, NULL, g->k->batch, LEARN_CLASSES, &loss, dz, NULL));
    CHECK_OK(fkt_learner_backward(g->learner, dz));
    if (logits) memcpy(logits, z, g->k->batch * LEARN_CLASSES * sizeof *z);
    return loss;
}

void learn_golden_update(struct learn_golden *g)
{
    CHECK_OK(fkt_learner_step(
        g->learner, &(struct fkt_optimizer){.rate = g->k->rate, .momentum = 0.9f, .decay = 5e-4f, .nesterov = 1}));
    g->step++;
}

double learn_golden_loss(const struct learn_golden *g, const char *role, size_t step)
{
    double all[LEARN_STEPS];
    memcpy(all, kept(g, role, NULL, LEARN_STEPS)->data, sizeof all);
    return all[step];
}

double learn_golden_number(const struct learn_golden *g, uint32_t slot, const char *role)
{
    double x;
    memcpy(&x, kept(g, role, g->net.slot[slot].name[0], 1)->data, sizeof x);
    return x;
}

static uint64_t start_of(const char *name)
{
    uint64_t h = 0xCBF29CE484222325U;
    const char *part[2] = {name, "/signs"};
    for (int p = 0; p < 2; p++)
        for (const char *s = part[p]; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001B3U;
    return h + 0x9E3779B97F4A7C15U;
}

static void project(double dot[SIGNS], const float *x, size_t n, const char *name)
{
    const uint64_t start = start_of(name);
    for (int p = 0; p < SIGNS; p++) dot[p] = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t z = start + i;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
        z = (z ^ z >> 27) * 0x94D049BB133111EBU;
        z ^= z >> 31;
        for (int p = 0; p < SIGNS; p++) dot[p] += z >> p & 1 ? (double)x[i] : -(double)x[i];
    }
}

double learn_golden_error(struct learn_golden *g, enum fkt_learned what, uint32_t slot, const char *role)
{
    const char *name = g->net.slot[slot].name[0];
    const size_t n = fkt_slot_count(&g->net.slot[slot]);
    double want[SKETCH], dot[SIGNS], square = 0, largest = 0;
    memcpy(want, kept(g, role, name, SKETCH)->data, sizeof want);
    CHECK_OK(fkt_learner_read(g->learner, what, slot, g->buffer));
    project(dot, g->buffer, n, name);
    for (int p = 0; p < SIGNS; p++) square += (dot[p] - want[1 + p]) * (dot[p] - want[1 + p]) / SIGNS;
    for (size_t j = 0; j < ENTRIES; j++) { /* one number alone cannot be further off than all together */
        double apart = fabs((double)g->buffer[j * (n - 1) / (ENTRIES - 1)] - want[1 + SIGNS + j]);
        if (!(apart <= largest)) largest = apart;
    }
    return fmax(sqrt(square), largest) / want[0];
}
