/* SPDX-License-Identifier: Apache-2.0 */
/* finder.c - finds how many neighbours a site needs, and how many of their shares.
 *
 * Source: Bell et al. (CCS 2020): when the server may claim falsely who is lost, a site is exposed when
 * 2t <= k + (its corrupt neighbours). We differ: tails are those of the exact hypergeometric law over the N - 1 others
 * of a site, and no rate is rounded, since C and D are counts; and for a cut of the ring the server chooses
 * the lost sites, so a cut is bounded by its corrupt sites alone. finder.md has the formulas and proofs.
 *
 * The only file of this module with floating point. It runs when a task is made, never inside a round. Rounding cannot
 * make a result unsafe: tails are sums of positive terms, in logarithms whose error is below 1e-9, and each is enlarged
 * by 2^SLACK before it is compared. oracle/finder.py computes the same in integers.
 *
 * Cost: at most N/2 degrees; for each a bisection over t of sums that end when terms become negligible. Under a second
 * for 65,536 sites when no degree is sufficient, otherwise milliseconds. */
#include "fedkt/advanced/secagg.h"

#include "secagg/params.h"

#include "base/status.h"

#include <math.h>

#define COMPLETE_UP_TO 50U
#define BITS_MAX 256U
#define SLACK 1e-6
#define LOG2E 1.44269504088896340736

/* log2(n!): the product below 32, Stirling's series above (its next term is below 1e-17). */
static double log2_factorial(double n)
{
    double product = 1, r, r2;
    if (n < 32) {
        for (int i = 2; i <= (int)n; i++) product *= i;
        return log2(product);
    }
    r = 1 / n, r2 = r * r;
    return (n + 0.5) * log2(n) +
           LOG2E * (0.91893853320467274178 - n + r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 / 1680))));
}

static double log2_choose(double n, double k) { return log2_factorial(n) - log2_factorial(k) - log2_factorial(n - k); }

/* An upper bound on log2 P(X >= x), where X counts the marked among k drawn from `n`, `marked` of which are marked. For
 * x up to the mean the result is 0 (certain); no caller needs more there. */
static double log2_tail(double n, double marked, double k, double x)
{
    double sum = 1, term = 1, first;
    if (x > marked || x > k) return -INFINITY;
    if (x * n <= k * marked) return 0;
    first = log2_choose(marked, x) + log2_choose(n - marked, k - x) - log2_choose(n, k);
    for (double i = x; i < marked && i < k && term > sum * 1e-18; i++) {
        term *= (marked - i) * (k - i) / ((i + 1) * (n - marked - k + i + 1));
        sum += term;
    }
    return first + log2(sum) + SLACK;
}

static double log2_sum(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return isinf(high) ? high : high + log2(1 + exp2(low - high));
}

/* finder.md 2: the neighbours of some honest site could reveal both of its secrets, or the witnesses could confirm two
 * lists of survivors. */
static double log2_surrounded(double n, double c, double k, double t)
{
    return log2_sum(log2(n - c) + log2_tail(n - 1, c, k, 2 * t - k), log2_tail(n, c, k, 2 * t - k));
}

static int cuttable(double c, double d, double k, double t)
{
    return fkt_sa_cuttable((int64_t)c, (int64_t)d, (int64_t)k, (int64_t)t);
}

/* finder.md 3: corrupt and lost sites fill k/2 adjacent places at both ends of an arc. At each end is an honest site
 * whose secret t neighbours must still reveal, although sites near it stop because they see 3t/8 or fewer survivors on
 * that side: with x corrupt sites in the run, t - k/2 + side - 2x of the side - x nearest places on its other side must
 * be corrupt. Both runs together hold k - D corrupt sites. */
static double log2_cut(double n, double c, double d, double k, double t)
{
    const double over = t - k / 2, side = floor(3 * t / 8), both = log2_tail(n - 2, c, k, k - d);
    double edge = -INFINITY, x = over;
    if (!cuttable(c, d, k, t)) return -INFINITY;
    for (; 2 * x < over + side; x++)
        edge = log2_sum(edge, log2_tail(n - 2, c, k / 2, x) + log2_tail(n - 2, c, side - x, over + side - 2 * x));
    edge = log2_sum(edge, log2_tail(n - 2, c, k / 2, x));
    return log2((n - c) * (n - c - 1) * (n - k - 1) / (n - 1)) + (2 * edge < both ? 2 * edge : both);
}

/* finder.md 5: a site or the witnesses have fewer than t left (of the others, at most D - 1 are lost for a lost site),
 * or, where the ring could be cut, a live site has at most 3t/8 on one side. */
static double log2_starved(double n, double c, double d, double k, double t)
{
    double p = log2_sum(log2(n - d) + log2_tail(n - 1, d, k, k - t + 1), log2_tail(n, d, k, k - t + 1));
    if (d > 0) p = log2_sum(p, log2(d) + log2_tail(n - 1, d - 1, k, k - t + 1));
    if (cuttable(c, d, k, t)) p = log2_sum(p, log2(2 * (n - d)) + log2_tail(n - 1, d, k / 2, k / 2 - floor(3 * t / 8)));
    return p;
}

/* The smallest t that is secure (finder.md 2). 0: not even t = k, where all neighbours would be corrupt. */
static uint32_t smallest_threshold(uint32_t n, uint32_t c, uint32_t k, double bits)
{
    uint32_t no = k / 2, yes = k; /* t = k/2 is never enough */
    if (!(log2_surrounded(n, c, k, yes) < -bits)) return 0;
    while (yes - no > 1) {
        const uint32_t t = no + (yes - no) / 2;
        if (log2_surrounded(n, c, k, t) < -bits) yes = t;
        else no = t;
    }
    return yes;
}

fkt_status fkt_sa_find(uint32_t sites, uint32_t corrupt, uint32_t dropped, unsigned security, unsigned failure,
                       uint32_t *degree, uint32_t *threshold)
{
    const uint64_t need = (uint64_t)corrupt + 2 * (uint64_t)dropped + 2;
    *degree = *threshold = 0;
    if (sites < 3 || sites > FKT_SA_SITES_MAX)
        return fkt_fail(FKT_E_ARG, "%u sites: there must be 3 to %u", sites, FKT_SA_SITES_MAX);
    if (security < 1 || security > BITS_MAX || failure < 1 || failure > BITS_MAX)
        return fkt_fail(FKT_E_ARG, "%u bits of security and %u against failure: each must be 1 to %u", security,
                        failure, BITS_MAX);
    if (sites < need)
        return fkt_fail_hint(FKT_E_ARG, "sites must be at least corrupt + 2*dropped + 2",
                             "%u sites cannot tolerate %u corrupt and %u lost ones", sites, corrupt, dropped);
    for (uint32_t k = 2; sites > COMPLETE_UP_TO && k <= sites - 2; k += 2) {
        uint32_t t;
        t = smallest_threshold(sites, corrupt, k, security + 1.0);
        if (t == 0 || !fkt_sa_only_once(sites, corrupt, dropped, k, t)) continue;
        if (!(log2_starved(sites, corrupt, dropped, k, t) < -(double)failure)) continue;
        if (!(log2_cut(sites, corrupt, dropped, k, t) < -(security + 1.0))) continue;
        *degree = k, *threshold = t;
        return FKT_OK;
    }
    *degree = sites - 1, *threshold = (sites - 1 + corrupt) / 2 + 1;
    return FKT_OK;
}
