/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - many sites in one process: who holds what, who takes part, who is lost when, and the rounds that those
 * who are there can run.
 *
 *   fkt_simulate                partition, every site's moments, and their plain sum (NOT private: a reference)
 *   fkt_simulation_aggregate    one round of the aggregation over them, with fresh keys and noise, as often as wanted
 */
#ifndef FEDKT_ADVANCED_SIMULATE_H
#define FEDKT_ADVANCED_SIMULATE_H

#include "fedkt/advanced/federation.h"
#include "fedkt/image.h"
#include "fedkt/moments.h"
#include "fedkt/pipeline.h"
#include "fedkt/records.h"
#include "fedkt/status.h"
#include "fedkt/task.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_simulation_spec {
    const struct fkt_pipeline *pipeline;
    const struct fkt_dataset *data; /* records of all sites */
    const size_t *train;            /* (n_train) indices into data */
    size_t n_train;
    const uint64_t *keys; /* of all records of data, fkt_simulation_keys; NULL: computed here */
    struct fkt_partition_spec partition;
    double participation;                    /* 0 < p <= 1: share of the sites that take part */
    double dropout[FKT_SA_STATE_REVEAL + 1]; /* share of those that are lost in each phase, ADVERTISE to REVEAL */
    uint64_t seed;                           /* participation and drop-out; the partition has its own */
    int keep;                                /* 1: the sites' moments are kept for fkt_simulation_aggregate */
    unsigned threads;
    const struct fkt_progress *progress;
    struct fkt_encodings *encodings; /* NULL: none are kept */
    struct fkt_skipped *skipped;
    struct fkt_records *records; /* NULL: exact copies count; else those in the total, exact copies of all sites once */
    struct fkt_ranks *ranks; /* advanced/ranks.h: processes that share the walk; rank 0 gets the result. NULL: alone */
};
struct fkt_site_moments; /* not public */
struct fkt_simulation {
    uint32_t sites;
    uint32_t parts;                 /* sites that take part: those of the roster */
    uint32_t survivors;             /* of them, those whose moments are in the total: not lost before CONFIRM */
    uint32_t *roster;               /* (parts) ascending */
    struct fkt_federate_loss *lost; /* (n_lost) by place in the roster */
    size_t n_lost;
    uint8_t *survived; /* (sites) */
    uint32_t *owner;   /* (n_train) */
    uint32_t *counts;  /* (sites, K) records per site and class; NOT private */
    struct fkt_moments *total;
    struct fkt_site_moments *site_moments;
    struct fkt_norms norms;
    uint64_t records; /* in the total */
    uint64_t bytes_per_site;
    double seconds_encode, seconds_moments, seconds_aggregate;
};
/* By which key each record of ds is chosen, for a hold-out and for the partition: keys (size of ds). Under add-remove
 * and replace-any it is a hash of the record's stored bytes (fkt_dataset_keys): a record more or less moves no other.
 * Under `replace` it is the record's number (fkt_dataset_numbers): there are as many records in a neighbour, and the
 * one whose pixels differ must stay where it is, for the counts are published without noise. A set with a `limit` must
 * have been opened with limit_by_number then. threads 0: all. */
FKT_API FKT_MUST_USE fkt_status fkt_simulation_keys(const struct fkt_dataset *ds, enum fkt_adjacency adjacency,
                                                    unsigned threads, uint64_t *keys);
/* How many sites take part and how many of them are lost, over all phases: what a federation for this simulation must
 * be made for. FKT_E_ARG when the shares make no sense. */
FKT_API FKT_MUST_USE fkt_status fkt_simulation_size(const struct fkt_simulation_spec *spec, uint32_t *parts,
                                                    uint32_t *lost);
/* Partitions, walks the records of every site that will be in the total, adds the integers up. Release with
 * fkt_simulation_clear. */
FKT_API FKT_MUST_USE fkt_status fkt_simulate(struct fkt_simulation *out, const struct fkt_simulation_spec *spec);
FKT_API void fkt_simulation_clear(struct fkt_simulation *s);

struct fkt_simulation_round {
    const struct fkt_task *task;   /* its federation has as many sites as take part */
    const uint8_t *secrets;        /* (parts, 64) signing keys of its roster */
    const uint64_t *insecure_seed; /* NULL: from the operating system */
    unsigned threads;
    const struct fkt_progress *progress;
};
FKT_API FKT_MUST_USE fkt_status fkt_simulation_aggregate(struct fkt_federate_result *out,
                                                         const struct fkt_simulation *sim,
                                                         const struct fkt_simulation_round *round);

#ifdef __cplusplus
}
#endif
#endif
