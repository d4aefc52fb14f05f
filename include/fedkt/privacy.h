/* SPDX-License-Identifier: Apache-2.0 */
/* privacy.h - what a release costs, and the one joint Gaussian mechanism that makes it.
 *
 * Noise N(0, s_n^2) on counts and, in each part of the record vector, N(0, s_m^2) on sums, and on second moments
 * variance s_M^2 on the diagonal, s_M^2/2 off it. Callers give (epsilon, delta, adjacency); sigma is derived here and
 * never taken from outside. A ledger is debited before noise is drawn. The mechanism itself is in advanced/privacy.h:
 * fkt_release_make (release.h) runs it. */
#ifndef FEDKT_PRIVACY_H
#define FEDKT_PRIVACY_H

#include "fedkt/layout.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_adjacency { FKT_ADJACENCY_ADD_REMOVE = 0, FKT_ADJACENCY_REPLACE = 1, FKT_ADJACENCY_REPLACE_ANY = 2 };
/* The default budget split, as parts for count, sum and second moment (docs/method.md 1.4). */
#define FKT_BUDGET_SPLIT_COUNT 1
#define FKT_BUDGET_SPLIT_SUM 24
#define FKT_BUDGET_SPLIT_MOMENT 75
/* With a codec and a guide: the count as above, and for each of the two parts its sum and its second moment. */
#define FKT_BUDGET_SPLIT_CODEC_SUM 8
#define FKT_BUDGET_SPLIT_CODEC_MOMENT 25
#define FKT_BUDGET_SPLIT_GUIDE_SUM 16
#define FKT_BUDGET_SPLIT_GUIDE_MOMENT 50
/* paper: needs FKT_ADJACENCY_REPLACE and one part that is not pooled */
enum fkt_mechanism { FKT_MECHANISM_JOINT = 0, FKT_MECHANISM_PAPER = 1 };

struct fkt_privacy_part {
    double radius;                  /* of the part's ball: Rq for a release, R for a look at the cost */
    double split_sum, split_moment; /* budget split: shares of mu^2; any scale, the same for all parts */
};
struct fkt_privacy_spec {
    double epsilon, delta; /* 0 < epsilon <= 1000, 0 < delta < 1: no defaults */
    enum fkt_adjacency adjacency;
    enum fkt_mechanism mechanism;
    double split_count; /* the budget split's share for counts; may be 0 for replace */
    uint32_t parts;
    struct fkt_privacy_part part[FKT_PARTS_MAX]; /* (parts) */
    int pooled; /* one second moment per part for all classes together; the bounds are the same: sensitivity.md */
};

/* The noise of one part. */
struct fkt_part_sigma {
    double sum;    /* s_m */
    double moment; /* s_M: standard deviation on the diagonal */
    double cross;  /* s_M / sqrt 2, rounded up: off the diagonal */
};
/* The noise of a whole vector, in the units of the moments. */
struct fkt_sigmas {
    double count;
    struct fkt_part_sigma part[FKT_PARTS_MAX];
};

struct fkt_privacy_plan {
    struct fkt_privacy_spec spec;
    double mu;                                  /* GDP parameter that the sigmas below really give, rounded up */
    double sigma_count;                         /* s_n; 0: counts are public (replace) */
    struct fkt_part_sigma sigma[FKT_PARTS_MAX]; /* (spec.parts) */
    double epsilon_spent; /* epsilon at spec.delta that mu gives (<= spec.epsilon; far below it for `paper`) */
};

FKT_API FKT_MUST_USE fkt_status fkt_privacy_plan(struct fkt_privacy_plan *plan, const struct fkt_privacy_spec *spec);
FKT_API double
fkt_privacy_mu(double epsilon,
               double delta); /* largest safe mu: delta(epsilon; mu) <= delta; rounded down; NaN on bad input */
FKT_API double fkt_privacy_delta(double epsilon, double mu); /* rounded up */
FKT_API double fkt_privacy_epsilon(double delta, double mu); /* smallest epsilon, rounded up */
/* From which promise on a release may be called private. A weak one is made only if the caller accepted it, and then
 * everything that is made under it says so. records: a public bound on all records together, 0: there is none. why
 * (may be NULL): "epsilon 1000 is above 20 and delta 0.9 is above 0.001"; "" for a sound one. NaN is weak. */
enum fkt_promise { FKT_PROMISE_SOUND = 0, FKT_PROMISE_WEAK = 1 };
#define FKT_PROMISE_EPSILON 20.0
#define FKT_PROMISE_DELTA 1e-3 /* where there is no bound, or one below 1000 */
#define FKT_PROMISE_WORDS 160
FKT_API enum fkt_promise fkt_privacy_promise(double epsilon, double delta, double records, char why[FKT_PROMISE_WORDS]);
FKT_API double fkt_promise_delta(double records); /* the largest delta of a sound promise */

/* mu^2 adds up exactly under composition of Gaussian mechanisms, those with noise in shares included. A charge
 * of another program may be zCDP, mu^2 = 2 rho; a sum that holds one is turned into epsilon by
 * fkt_privacy_epsilon_zcdp. */
struct fkt_ledger {
    double budget_mu2; /* what may be spent in all */
    double spent_mu2;
    uint64_t entries;
    char task_sha256[65]; /* "": kept in memory by the caller; else a ledger file has paid for one release of this
                             task (fkt_ledger_file_pay) */
};
FKT_API FKT_MUST_USE fkt_status fkt_ledger_init(struct fkt_ledger *l, double budget_mu2, double spent_mu2);
FKT_API FKT_MUST_USE fkt_status fkt_ledger_debit(struct fkt_ledger *l,
                                                 double mu2); /* FKT_E_BUDGET if short; then nothing changes */

/* In which accounting a sum of mu^2 holds: a charge of another program may be zCDP, with mu^2 = 2 rho. */
enum fkt_accounting { FKT_ACCOUNTING_GDP = 0, FKT_ACCOUNTING_ZCDP = 1 };

/* Names, as in a task and on the command line; -1 when unknown. */
FKT_API const char *fkt_adjacency_name(enum fkt_adjacency a);
FKT_API int fkt_adjacency_parse(const char *s);
FKT_API const char *fkt_adjacency_protects(enum fkt_adjacency a); /* a clause: "pixels of one record" */
FKT_API int fkt_adjacency_counts_public(enum fkt_adjacency a);    /* 1: class counts are released exactly */
/* What is written of an adjacency; 0, 1, ... gives all of them, then NULL. */
struct fkt_adjacency_info {
    const char *name;     /* "add-remove" */
    const char *protects; /* for a reader who knows the terms: "pixels of any one record ..." */
    const char *hides;    /* in plain words, for a dataset card: "what any one image shows ..." */
    const char *question; /* what an attacker tries to decide: "whether one given image was used" */
    int counts_public;
};
FKT_API const struct fkt_adjacency_info *fkt_adjacency_info(int a);
FKT_API const char *fkt_mechanism_name(enum fkt_mechanism m);
FKT_API int fkt_mechanism_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
