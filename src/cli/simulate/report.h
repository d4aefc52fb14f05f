/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the data of a run's report, and the function that writes the page.
 *
 * Notation: K classes, d length of u, m length of w. A record vector has parts, each with its own sums, moments and
 * noise; joined networks make one part. All pointers are borrowed until return. NULL, 0
 * and NaN mean "not known": the line or section is left out. Every string is escaped where it is printed. */
#ifndef FKT_CLI_SIMULATE_REPORT_H
#define FKT_CLI_SIMULATE_REPORT_H

#include "base/status.h"

#include "fedkt/classifier.h"
#include "fedkt/layout.h"
#include "fedkt/privacy.h"

#include <stddef.h>
#include <stdint.h>

enum {
    FKT_REPORT_HEADS = FKT_HEAD_KINDS,
    FKT_REPORT_NETWORK = FKT_REPORT_HEADS, /* if one was trained */
    FKT_REPORT_UNGUIDED,                   /* if another one was trained on unguided images */
    FKT_REPORT_EVALUATED
};

/* What an arm has of one part. */
struct fkt_report_noise {
    double sigma_sum, sigma_moment; /* in units of the ball: R, R^2 */
    const double *signal;           /* (K) signal over noise */
    const uint8_t *below;           /* (K) 1: the class is below the noise; NULL: where signal < reach */
};

/* One way of releasing the same data; the report compares arms. */
struct fkt_report_arm {
    const char *name;          /* required: "epsilon 1", "no privacy" */
    double epsilon, delta, mu; /* epsilon 0 or infinite: no privacy, a reference only */
    double sigma_count;
    struct fkt_report_noise part[FKT_PARTS_MAX];
    const char *adjacency;                 /* fkt_adjacency_name */
    const char *question;                  /* a phrase: "whether one given image was used" */
    const char *protects;                  /* a phrase: "whether any one image was used at all, ..." */
    const char *mechanism;                 /* "joint", "paper" */
    char weak[FKT_PROMISE_WORDS];          /* why its promise is weak, "epsilon 50 is above 20"; "": it is not weak */
    double accuracy[FKT_REPORT_EVALUATED]; /* 0..1 on the test images; NaN: not measured */
    const double *noisy_count;             /* (K) */
    const uint8_t *grid_png;               /* synthetic samples */
    size_t grid_len;
    const uint8_t *unguided_png; /* the same samples decoded without the guide; NULL: there is none */
    size_t unguided_len;
};

struct fkt_report_mark {
    const char *name; /* "R", "c - s" */
    double at;
};

struct fkt_report_histogram {
    const char *quantity; /* "|u|" or "log |u|" */
    const uint64_t *counts;
    size_t bins; /* 0: none */
    double lo, hi;
    const struct fkt_report_mark *marks;
    size_t n_marks;
};

struct fkt_report_pair {
    const char *name, *value;
};

/* A network that makes numbers of an image: the codec, or the guide. */
struct fkt_report_network {
    const char *kind; /* "codec", "guide" */
    const char *identity, *calibration, *coordinates;
    uint32_t dim, length, rq; /* d, m, Rq */
};

/* A part of the record vector. */
struct fkt_report_part {
    const char *name; /* "codec", "guide", "codec and guide" */
    double reach;     /* signal that noise alone may have; 0: 1 */
};

struct fkt_report_phase {
    const char *name;
    double seconds;
};

/* How the sites' numbers were added up; sites 0: without a protocol. */
struct fkt_report_aggregation {
    uint32_t sites, survivors, dropped, corrupt; /* of the roster; in the total; tolerated */
    uint32_t lost[6], throws;                    /* by phase, advertise to reveal; of the coin */
    uint32_t degree, threshold, bits;
    uint32_t counted;          /* noise shares that the promise needs; 0: added in one place */
    uint64_t up, down, packed; /* mean bytes per site; the vector is part of the upload */
    double seconds;
    uint32_t cohorts, in_sum; /* 0: one federation */
    uint32_t covered;         /* colluding sites of all, in cohorts */
    double deviation;         /* of the noise, in cohorts: against one cohort of the same sites */
};

struct fkt_report {
    const char *title;            /* required */
    const char *command;          /* the command line that made it */
    const char *dataset, *format; /* "EuroSAT", "tar of ImageFolder" */
    const char *partition;
    uint32_t size; /* S */
    const struct fkt_report_network *networks;
    size_t n_networks;
    const struct fkt_report_part *parts;
    size_t n_parts;             /* at most FKT_PARTS_MAX */
    const char *const *classes; /* (K) required */
    size_t n_classes;
    uint32_t sites, survivors;
    uint64_t records, test_records;    /* NOT private */
    const uint64_t *counts;            /* (K) true records of each class; NOT private */
    const uint32_t *owned;             /* (sites, K) records of class k at site s; NOT private */
    struct fkt_report_histogram norms; /* NOT private */
    size_t shown;                      /* classes on the sheets of samples, the first ones; 0: all */
    const uint8_t *real_png;           /* real samples; NOT private */
    size_t real_len;
    const struct fkt_report_arm *arms;
    size_t n_arms;
    const struct fkt_report_phase *phases;
    size_t n_phases;
    uint64_t bytes_per_site; /* with aggregation.sites 0: of exact numbers, which no mask hides */
    struct fkt_report_aggregation aggregation;
    const char *network, *network_recipe; /* "resnet8"; "20 epochs on ...": a phrase; NULL: none was trained */
    const char *guided;                   /* how images were guided, "by ...": a phrase; NULL: they were not */
    const char *unguided_network;         /* "resnet8, unguided": column FKT_REPORT_UNGUIDED; NULL: none was trained */
    double composed_epsilon;              /* of all private arms combined, at their delta; 0: not known */
    const struct fkt_report_pair *facts;  /* hashes, versions, machine: name and value */
    size_t n_facts;
    int insecure_seed;
    const char *version;
};

/* Writes one self-contained page: no script, no request, readable on a phone, in dark mode and in print. Atomic;
 * `flags` are those of base/file.h. */
FKT_MUST_USE fkt_status fkt_report_write(const struct fkt_report *r, const char *path, int flags);

#endif
