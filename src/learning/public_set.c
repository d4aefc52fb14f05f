/* SPDX-License-Identifier: Apache-2.0 */
/* public_set.c - unlabelled public images beside those of a release: read, identified, chosen for each epoch.
 *
 * A set is identified by the digests of its images at their original size (pipeline/fingerprint.h), sorted: file names,
 * order and labels do not enter. They also find images that a test set shares with it.
 *
 *   sequence of images:  | pass 0: a permutation | pass 1: another | ...      epoch e takes `each` from e * each on
 *
 * so any epoch can be made without those before it, and over some epochs every image is seen as often. */
#include "learning/public_set.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES (1ULL << 61) /* streams of the seed; classifier/augment.c has bits 62 and 63 */

void fkt_public_set_clear(struct fkt_public_set *p)
{
    fkt_training_set_clear(&p->set);
    fkt_free(p->digests);
    fkt_free(p->order);
    memset(p, 0, sizeof *p);
}

static int compare(const void *a, const void *b) { return memcmp(a, b, sizeof(struct fkt_digest)); }

static void last_name(char *out, size_t cap, const char *path)
{
    size_t n = strlen(path), from;
    char name[256];
    while (n > 1 && path[n - 1] == '/') n--;
    for (from = n; from > 0 && path[from - 1] != '/'; from--) continue;
    snprintf(name, sizeof name, "%.*s", (int)(n - from < sizeof name ? n - from : sizeof name - 1), path + from);
    fkt_text_cut(out, cap, name);
}

static fkt_status identify(struct fkt_public_set *p, const struct fkt_dataset *ds,
                           const struct fkt_training_set_options *o)
{
    const struct fkt_pipeline_options options = {.threads = o->threads, .progress = o->progress};
    const size_t all = fkt_dataset_size(ds);
    uint8_t *bad = NULL;
    fkt_status st;
    FKT_TRY(fkt_records_digests(ds, NULL, all, &options, &p->digests, &bad));
    for (size_t i = 0; i < all; i++)
        if (!bad[i]) p->digests[p->n_digests++] = p->digests[i];
    fkt_unlabelled_end(p->digests, p->n_digests, p->sha256);
out:
    fkt_free(bad);
    return st;
}

/* The classes of ds mean nothing here. */
static fkt_status take_classes(struct fkt_training_set *p, const struct fkt_training_set *of)
{
    fkt_status st;
    for (uint32_t k = 0; k < p->n_classes; k++) fkt_free(p->classes[k]);
    fkt_free(p->classes);
    p->classes = NULL;
    p->n_classes = 0;
    FKT_TRY(fkt_alloc(&p->classes, of->n_classes));
    p->n_classes = of->n_classes;
    for (uint32_t k = 0; k < p->n_classes; k++) FKT_TRY(fkt_strdup(&p->classes[k], of->classes[k]));
out:
    return st;
}

fkt_status fkt_public_set_read(struct fkt_public_set *p, const struct fkt_dataset *ds, const char *name,
                               const struct fkt_training_set *like, enum fkt_filter filter,
                               const struct fkt_training_set_options *options)
{
    fkt_status st;
    memset(p, 0, sizeof *p);
    last_name(p->name, sizeof p->name, name);
    FKT_TRY(fkt_training_set_read(&p->set, ds, NULL, 0, like->size, filter, NULL, options));
    FKT_TRY(take_classes(&p->set, like));
    FKT_TRY(identify(p, ds, options));
out:
    if (st != FKT_OK) fkt_public_set_clear(p);
    return st;
}

static fkt_status make_pass(struct fkt_public_set *p, uint64_t pass)
{
    struct fkt_rng rng;
    fkt_status st = FKT_OK;
    if (p->order && p->pass == pass) return FKT_OK;
    if (!p->order) FKT_TRY(fkt_alloc(&p->order, p->set.n));
    for (size_t i = 0; i < p->set.n; i++) p->order[i] = i;
    fkt_rng_init(&rng, p->seed, PASSES | pass);
    fkt_rng_shuffle(&rng, p->order, p->set.n);
    p->pass = pass;
out:
    return st;
}

fkt_status fkt_public_set_append(struct fkt_public_set *p, uint32_t epoch, struct fkt_training_set *to)
{
    const size_t n = to->n + p->each, pixels = (size_t)to->size * to->size * 3, classes = to->n_classes;
    const uint64_t first = (uint64_t)epoch * p->each;
    fkt_status st;
    FKT_TRY(fkt_realloc(&to->rgb, n * pixels));
    FKT_TRY(fkt_realloc(&to->label, n));
    FKT_TRY(fkt_realloc(&to->teacher, n * classes));
    for (size_t i = 0; i < p->each; i++) {
        const size_t at = to->n + i;
        size_t from = (size_t)((first + i) % p->set.n);
        FKT_TRY(make_pass(p, (first + i) / p->set.n));
        from = p->order[from];
        memcpy(to->rgb + at * pixels, p->set.rgb + from * pixels, pixels);
        memcpy(to->teacher + at * classes, p->set.teacher + from * classes, classes * sizeof *to->teacher);
        to->label[at] = p->set.label[from];
    }
    to->n = n;
out:
    return st;
}

uint32_t fkt_most_probable(const float *logits, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < classes; k++)
        if (logits[k] > logits[best]) best = k;
    return best;
}

void fkt_public_set_label(struct fkt_public_set *p)
{
    for (size_t i = 0; i < p->set.n; i++)
        p->set.label[i] = fkt_most_probable(p->set.teacher + i * p->set.n_classes, p->set.n_classes);
}

fkt_status fkt_public_set_refuse(const struct fkt_public_set *p, const struct fkt_dataset *ds, const size_t *idx,
                                 size_t n, const char *what, const struct fkt_training_set_options *o)
{
    const struct fkt_pipeline_options options = {.threads = o->threads, .progress = o->progress};
    struct fkt_digest *digests = NULL;
    uint8_t *bad = NULL;
    size_t shared = 0, first = 0;
    fkt_status st;
    if (!idx) n = fkt_dataset_size(ds);
    FKT_TRY(fkt_records_digests(ds, idx, n, &options, &digests, &bad));
    for (size_t i = n; i-- > 0;) {
        if (bad[i] || !bsearch(&digests[i], p->digests, p->n_digests, sizeof *digests, compare)) continue;
        shared++;
        first = idx ? idx[i] : i;
    }
    if (shared)
        st = fkt_fail_hint(FKT_E_MISMATCH, "leave them out of the public images",
                           "%zu of the %zu %s are among the public images, the first is '%s'", shared, n, what,
                           fkt_dataset_name(ds, first));
out:
    fkt_free(digests);
    fkt_free(bad);
    return st;
}
