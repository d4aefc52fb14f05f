/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - which site holds which record, for experiments that simulate many sites on one set.
 *
 *   seed, rule, sites, classes --> for each class the probabilities of the sites
 *   seed, the record's key     --> a number u in [0, 1)  --> the site: the inverse of the class's distribution at u
 *
 *   iid           equal probabilities
 *   dirichlet     for each class: probabilities ~ Dirichlet(alpha) (Hsu et al. 2019 as most people run it)
 *   pfllib        the same, but a site whose share has reached 1/sites takes nothing of the classes that follow, and
 *                 the whole is drawn again until each site has min_share/sites (PFLlib, dataset_utils.py, after
 *                 Yurochkin et al. 2019)
 *   pathological  each site holds k classes; equal parts of each (McMahan et al. 2017 in PFLlib's form)
 *
 * Where we differ from all of these: they shuffle a class and cut it at floor(share * n_c). Then one record more moves
 * others to other sites, and with sites that do not take part the private sum changes by several records. The cuts
 * favour the last site too: with small shares it gets a record in nearly every class, the first one rarely. Here each
 * record is placed alone, so sizes are multinomial and every site is alike. PFLlib's cap and least size are kept in
 * expectation, for a set whose classes have one size: the real sizes may not enter.
 *
 * Where we differ from PFLlib besides: shares are made from logarithms of gammas, so that alpha = 0.001 does not give
 * 0/0; re-draws end after 10,000 with a sentence; and pathological sites take the classes in turn around a shuffled
 * circle (site s takes k from place s*k on), so that each class has floor or ceil(sites*k/classes) owners. PFLlib gives
 * ceil to the first classes and, when that does not divide, drops the records of the last. All classes of the list
 * stand in the circle, also those without records. Cost: n log sites + classes*sites. */
#include "base/alloc.h"
#include "base/rng.h"
#include "fedkt/image.h"
#include "images/by_class.h"
#include "images/choice.h"

#include <math.h>
#include <string.h>

enum { MAX_DRAWS = 10000 };

/* One of n equally likely numbers. */
static uint64_t pick(const struct fkt_partition_spec *spec, uint64_t key, uint64_t n)
{
    return (uint64_t)((unsigned __int128)fkt_choice(spec->seed, FKT_CHOICE_SITE, key) * n >> 64);
}

/* ---- dirichlet and pfllib ---- */

struct draw {
    const struct fkt_partition_spec *spec;
    size_t classes;
    double cap;    /* a site with this share of an even set is closed for the classes that follow; 0: none */
    double *held;  /* (sites) share of an even set so far */
    double *share; /* (sites) of the class at hand */
};

/* d->share: Dirichlet(alpha) over the sites that are not closed. At least one is open: shares of k < classes classes
 * add up to k/classes < 1, and closed sites alone would add up to 1. */
static void draw_class(struct draw *d, uint64_t number, size_t k)
{
    const uint32_t sites = d->spec->sites;
    double top = -INFINITY, total = 0;
    struct fkt_rng rng;
    fkt_rng_init(&rng, fkt_choice(d->spec->seed, FKT_CHOICE_PROPORTIONS, number), k);
    for (uint32_t s = 0; s < sites; s++) {
        double x = fkt_rng_log_gamma(&rng, d->spec->alpha);
        d->share[s] = d->cap > 0 && d->held[s] >= d->cap ? -INFINITY : x;
        if (d->share[s] > top) top = d->share[s];
    }
    for (uint32_t s = 0; s < sites; s++) {
        d->share[s] = exp(d->share[s] - top);
        total += d->share[s];
    }
    for (uint32_t s = 0; s < sites; s++) {
        d->share[s] /= total;
        d->held[s] += d->share[s] / (double)d->classes;
    }
}

/* The site at which the summed shares pass u: upto (sites) ascends to 1, and u < 1. */
static uint32_t site_at(const double *upto, uint32_t sites, double u)
{
    uint32_t lo = 0, hi = sites - 1;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (u < upto[mid]) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}

/* Sums d->share in place. The last site with a share ends at 1: rounding must not leave a gap behind it. */
static void sum_up(double *share, uint32_t sites)
{
    uint32_t last = sites - 1;
    while (!(share[last] > 0)) last--;
    for (uint32_t s = 1; s < sites; s++) share[s] += share[s - 1];
    for (uint32_t s = last; s < sites; s++) share[s] = 1;
}

static void place_records(struct draw *d, uint64_t number, uint32_t *owner, const struct fkt_by_class *c,
                          const uint64_t *keys)
{
    memset(d->held, 0, d->spec->sites * sizeof *d->held);
    for (size_t k = 0; k < d->classes; k++) {
        draw_class(d, number, k);
        sum_up(d->share, d->spec->sites);
        for (size_t i = c->start[k]; i < c->start[k + 1]; i++) {
            size_t r = c->records[i];
            owner[r] = site_at(d->share, d->spec->sites, fkt_choice_unit(d->spec->seed, FKT_CHOICE_SITE, keys[r]));
        }
    }
}

/* The first draw in which each site has `least`; looks at no record. */
static fkt_status find_draw(struct draw *d, double least, uint64_t *number)
{
    const uint32_t sites = d->spec->sites;
    for (*number = 0; *number < MAX_DRAWS; ++*number) {
        uint32_t s = 0;
        memset(d->held, 0, sites * sizeof *d->held);
        for (size_t k = 0; k < d->classes; k++) draw_class(d, *number, k);
        while (s < sites && d->held[s] >= least) s++;
        if (s == sites) return FKT_OK;
    }
    return fkt_fail_hint(FKT_E_ARG, "use fewer sites or a larger alpha, or the plain rule 'dirichlet'",
                         "no draw of %d gave each of %u sites a share of %g", MAX_DRAWS, sites, least);
}

static fkt_status partition_dirichlet(uint32_t *owner, const struct fkt_by_class *c, const uint64_t *keys,
                                      size_t classes, const struct fkt_partition_spec *spec)
{
    const int capped = spec->rule == FKT_PARTITION_PFLLIB;
    const double least = spec->min_share > 0 ? spec->min_share : 0.01;
    struct draw d = {.spec = spec, .classes = classes, .cap = capped ? 1.0 / spec->sites : 0};
    uint64_t number = 0;
    fkt_status st;
    if (!(spec->min_share >= 0 && spec->min_share <= 1))
        return fkt_fail(FKT_E_ARG, "a least share of %g of an even part is out of range: 0 to 1", spec->min_share);
    FKT_TRY(fkt_alloc(&d.held, spec->sites));
    FKT_TRY(fkt_alloc(&d.share, spec->sites));
    if (capped) FKT_TRY(find_draw(&d, least / spec->sites, &number));
    place_records(&d, number, owner, c, keys);
out:
    fkt_free(d.held);
    fkt_free(d.share);
    return st;
}

/* ---- pathological ---- */

static fkt_status check_pathological(size_t classes, const struct fkt_partition_spec *spec)
{
    if (spec->k < 1 || spec->k > classes)
        return fkt_fail_hint(FKT_E_ARG, "choose 1 to the number of classes", "a site cannot hold %u of %zu classes",
                             spec->k, classes);
    if ((uint64_t)spec->sites * spec->k < classes)
        return fkt_fail_hint(FKT_E_ARG, "use more sites, or more classes per site: every record must have an owner",
                             "%u sites of %u classes each leave some of the %zu classes without a site", spec->sites,
                             spec->k, classes);
    return FKT_OK;
}

static fkt_status partition_pathological(uint32_t *owner, const struct fkt_by_class *c, const uint64_t *keys,
                                         size_t classes, const struct fkt_partition_spec *spec)
{
    size_t *circle = NULL;
    uint64_t slots = (uint64_t)spec->sites * spec->k;
    struct fkt_rng rng;
    fkt_status st = FKT_OK;
    FKT_TRY(check_pathological(classes, spec));
    FKT_TRY(fkt_alloc(&circle, classes));
    for (size_t k = 0; k < classes; k++) circle[k] = k;
    fkt_rng_init(&rng, spec->seed, FKT_CHOICE_CIRCLE);
    fkt_rng_shuffle(&rng, circle, classes);
    for (size_t place = 0; place < classes; place++) { /* slots place, place + classes, ... hold this class */
        uint64_t owners = (slots - place + classes - 1) / classes;
        for (size_t i = c->start[circle[place]]; i < c->start[circle[place] + 1]; i++) {
            size_t r = c->records[i];
            owner[r] = (uint32_t)((place + pick(spec, keys[r], owners) * classes) / spec->k);
        }
    }
out:
    fkt_free(circle);
    return st;
}

fkt_status fkt_partition(uint32_t *owner, const uint32_t *labels, const uint64_t *keys, size_t n, size_t classes,
                         const struct fkt_partition_spec *spec)
{
    struct fkt_by_class c;
    fkt_status st;
    if (spec->sites < 1) return fkt_fail(FKT_E_ARG, "a partition needs at least one site");
    if (n == 0) return fkt_fail(FKT_E_ARG, "there are no records to partition");
    if ((spec->rule == FKT_PARTITION_DIRICHLET || spec->rule == FKT_PARTITION_PFLLIB) &&
        !(spec->alpha >= 1e-6 && spec->alpha <= 1e9))
        return fkt_fail(FKT_E_ARG, "alpha %g is out of range: 1e-6 to 1e9", spec->alpha);
    st = fkt_by_class_init(&c, labels, n, classes);
    if (st != FKT_OK) return st;
    switch (spec->rule) {
    case FKT_PARTITION_IID:
        for (size_t i = 0; i < n; i++) owner[i] = (uint32_t)pick(spec, keys[i], spec->sites);
        break;
    case FKT_PARTITION_DIRICHLET:
    case FKT_PARTITION_PFLLIB: st = partition_dirichlet(owner, &c, keys, classes, spec); break;
    case FKT_PARTITION_PATHOLOGICAL: st = partition_pathological(owner, &c, keys, classes, spec); break;
    default: st = fkt_fail(FKT_E_ARG, "unknown partition rule %d", (int)spec->rule);
    }
    fkt_by_class_clear(&c);
    return st;
}
