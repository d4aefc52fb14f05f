/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - who holds which record, for experiments that play many sites on one set. Each record gets exactly one
 * owner, and all depends on the seed alone.
 *
 *   iid           one shuffle, cut into equal parts
 *   dirichlet     for each class: shares of the sites ~ Dirichlet(alpha), the shuffled class cut at floor(cumulated
 * share * n_c) (Hsu et al. 2019 as most people run it) pfllib        the same, but a site that has reached n/sites
 * records takes nothing of the classes that follow, and the whole is drawn again until each site has min_records
 * (PFLlib, dataset_utils.py, after Yurochkin et al. 2019) pathological  each site holds k classes; the sites of a class
 * share it evenly (McMahan et al. 2017 in PFLlib's form)
 *
 * Where we differ from PFLlib: shares are made from logarithms of gammas, so that alpha = 0.001 does not give 0/0;
 * re-draws end after 10,000 with a sentence; and pathological sites take the classes in turn around a shuffled circle
 * (site s takes k from place s*k on), so that each class has floor or ceil(sites*k/classes) owners. PFLlib gives ceil
 * to the first classes and, when that does not divide, silently drops the records of the last. With whole quotients
 * both give the same picture. Cost: n + classes*sites. */
#include "base/alloc.h"
#include "base/rng.h"
#include "fedkt/image.h"
#include "images/by_class.h"

#include <math.h>
#include <string.h>

enum { MAX_DRAWS = 10000, DEFAULT_MIN_RECORDS = 10 };

/* Streams of the seed, so that no two uses of it walk the same numbers. */
enum { STREAM_IID = 0x11d, STREAM_SHARES = 0xd1, STREAM_RECORDS = 0xd2, STREAM_PATHOLOGICAL = 0x9a };

static fkt_status partition_iid(uint32_t *owner, size_t n, const struct fkt_partition_spec *spec)
{
    size_t *order = NULL;
    struct fkt_rng rng;
    fkt_status st = fkt_alloc(&order, n);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < n; i++) order[i] = i;
    fkt_rng_init(&rng, spec->seed, STREAM_IID);
    fkt_rng_shuffle(&rng, order, n);
    for (size_t i = 0; i < n; i++) owner[order[i]] = (uint32_t)((unsigned __int128)i * spec->sites / n);
    fkt_free(order);
    return FKT_OK;
}

/* share (sites): Dirichlet(alpha) over the sites with open[s]; at least one is open. */
static void draw_shares(double *share, const uint8_t *open, uint32_t sites, double alpha, struct fkt_rng *rng)
{
    double top = -INFINITY, total = 0;
    for (uint32_t s = 0; s < sites; s++) {
        share[s] = fkt_rng_log_gamma(rng, alpha);
        if (open[s] && share[s] > top) top = share[s];
    }
    for (uint32_t s = 0; s < sites; s++) {
        share[s] = open[s] ? exp(share[s] - top) : 0;
        total += share[s];
    }
    for (uint32_t s = 0; s < sites; s++) share[s] /= total;
}

struct draw {
    const struct fkt_by_class *c;
    size_t classes;
    const struct fkt_partition_spec *spec;
    double cap;    /* a site that holds this many is closed for the classes that follow; 0: none */
    size_t *size;  /* (sites) what each site holds */
    double *share; /* (sites) scratch */
    uint8_t *open; /* (sites) scratch */
};

/* One draw over all classes into d->size; with `owner` also hands out the records. Only the sizes decide whether a draw
 * is kept, so a draw that is thrown away costs classes*sites, not n. */
static void draw_dirichlet(struct draw *d, struct fkt_rng *shares, uint32_t *owner, struct fkt_rng *shuffles)
{
    const uint32_t sites = d->spec->sites;
    memset(d->size, 0, sites * sizeof *d->size);
    for (size_t k = 0; k < d->classes; k++) {
        size_t *records = d->c->records + d->c->start[k], count = d->c->start[k + 1] - d->c->start[k], from = 0;
        uint32_t last = 0;
        double sum = 0;
        if (!count) continue;
        for (uint32_t s = 0; s < sites; s++) {
            d->open[s] = !(d->cap > 0) || (double)d->size[s] < d->cap;
            if (d->open[s]) last = s; /* rounding of the sum may leave a record over: it is the last open site's */
        }
        if (owner) fkt_rng_shuffle(shuffles, records, count);
        draw_shares(d->share, d->open, sites, d->spec->alpha, shares);
        for (uint32_t s = 0; s < sites; s++) {
            size_t to;
            sum += d->share[s];
            to = s >= last ? count : (size_t)(sum * (double)count);
            if (to > count) to = count;
            for (size_t i = from; owner && i < to; i++) owner[records[i]] = s;
            d->size[s] += to - from;
            from = to;
        }
    }
}

static size_t smallest(const size_t *size, uint32_t sites)
{
    size_t least = size[0];
    for (uint32_t s = 1; s < sites; s++)
        if (size[s] < least) least = size[s];
    return least;
}

static fkt_status partition_dirichlet(uint32_t *owner, const struct fkt_by_class *c, size_t n, size_t classes,
                                      const struct fkt_partition_spec *spec)
{
    const int capped = spec->rule == FKT_PARTITION_PFLLIB;
    size_t want = !capped ? 0 : spec->min_records ? spec->min_records : DEFAULT_MIN_RECORDS;
    struct draw d = {.c = c, .classes = classes, .spec = spec, .cap = capped ? (double)n / spec->sites : 0};
    struct fkt_rng shares, before, shuffles;
    fkt_status st = FKT_OK;
    if (want > n / spec->sites)
        return fkt_fail_hint(FKT_E_ARG, "use fewer sites, or a smaller least number of records",
                             "%zu records cannot give %u sites %zu records each", n, spec->sites, want);
    FKT_TRY(fkt_alloc(&d.size, spec->sites));
    FKT_TRY(fkt_alloc(&d.share, spec->sites));
    FKT_TRY(fkt_alloc(&d.open, spec->sites));
    fkt_rng_init(&shares, spec->seed, STREAM_SHARES);
    fkt_rng_init(&shuffles, spec->seed, STREAM_RECORDS);
    for (int i = 0; i < MAX_DRAWS; i++) {
        before = shares;
        draw_dirichlet(&d, &shares, NULL, NULL);
        if (smallest(d.size, spec->sites) < want) continue;
        draw_dirichlet(&d, &before, owner, &shuffles);
        goto out;
    }
    st = fkt_fail_hint(
        FKT_E_ARG,
        "use fewer sites, a larger alpha or a smaller least number of records, or the plain rule 'dirichlet'",
        "no draw of %d gave each of %u sites %zu records", MAX_DRAWS, spec->sites, want);
out:
    fkt_free(d.size);
    fkt_free(d.share);
    fkt_free(d.open);
    return st;
}

static fkt_status check_pathological(size_t filled, const struct fkt_partition_spec *spec)
{
    if (spec->k < 1 || spec->k > filled)
        return fkt_fail_hint(FKT_E_ARG, "choose 1 to the number of classes that have records",
                             "a site cannot hold %u of %zu classes", spec->k, filled);
    if ((uint64_t)spec->sites * spec->k < filled)
        return fkt_fail_hint(FKT_E_ARG, "use more sites, or more classes per site: every record must have an owner",
                             "%u sites of %u classes each leave some of the %zu classes to nobody", spec->sites,
                             spec->k, filled);
    return FKT_OK;
}

static fkt_status partition_pathological(uint32_t *owner, const struct fkt_by_class *c, size_t classes,
                                         const struct fkt_partition_spec *spec)
{
    size_t *circle = NULL, filled = 0;
    uint64_t slots = (uint64_t)spec->sites * spec->k;
    struct fkt_rng rng;
    fkt_status st = FKT_OK;
    FKT_TRY(fkt_alloc(&circle, classes));
    for (size_t k = 0; k < classes; k++)
        if (c->start[k + 1] > c->start[k]) circle[filled++] = k;
    FKT_TRY(check_pathological(filled, spec));
    fkt_rng_init(&rng, spec->seed, STREAM_PATHOLOGICAL);
    fkt_rng_shuffle(&rng, circle, filled);
    for (size_t place = 0; place < filled;
         place++) { /* slots place, place + filled, ... of the circle hold this class */
        size_t k = circle[place], count = c->start[k + 1] - c->start[k], *records = c->records + c->start[k];
        uint64_t owners = (slots - place + filled - 1) / filled;
        fkt_rng_shuffle(&rng, records, count);
        for (size_t i = 0; i < count; i++) {
            uint64_t turn = (uint64_t)((unsigned __int128)i * owners / count);
            owner[records[i]] = (uint32_t)((place + turn * filled) / spec->k);
        }
    }
out:
    fkt_free(circle);
    return st;
}

fkt_status fkt_partition(uint32_t *owner, const uint32_t *labels, size_t n, size_t classes,
                         const struct fkt_partition_spec *spec)
{
    struct fkt_by_class c;
    fkt_status st;
    if (spec->sites < 1) return fkt_fail(FKT_E_ARG, "a partition needs at least one site");
    if (n == 0) return fkt_fail(FKT_E_ARG, "there are no records to share out");
    if ((spec->rule == FKT_PARTITION_DIRICHLET || spec->rule == FKT_PARTITION_PFLLIB) &&
        !(spec->alpha >= 1e-6 && spec->alpha <= 1e9))
        return fkt_fail(FKT_E_ARG, "alpha %g is out of range: 1e-6 to 1e9", spec->alpha);
    st = fkt_by_class_init(&c, labels, n, classes);
    if (st != FKT_OK) return st;
    switch (spec->rule) {
    case FKT_PARTITION_IID: st = partition_iid(owner, n, spec); break;
    case FKT_PARTITION_DIRICHLET:
    case FKT_PARTITION_PFLLIB: st = partition_dirichlet(owner, &c, n, classes, spec); break;
    case FKT_PARTITION_PATHOLOGICAL: st = partition_pathological(owner, &c, classes, spec); break;
    default: st = fkt_fail(FKT_E_ARG, "unknown partition rule %d", (int)spec->rule);
    }
    fkt_by_class_release(&c);
    return st;
}
