/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h - what cells share, for the files lab*.c. */
#ifndef FKT_EXPERIMENT_LAB_H
#define FKT_EXPERIMENT_LAB_H

#include "experiment/experiment.h"

struct fkt_lab {
    struct fkt_experiment_options options;
    char *folder; /* of encodings and calibrations */
    struct fkt_encodings *encodings;
    char set[64]; /* the open one; "": none */
    struct fkt_dataset *train, *test;
};
FKT_MUST_USE fkt_status fkt_lab_find(const struct fkt_lab *lab, const char *name, char **path); /* gives *path */
void fkt_lab_close_set(struct fkt_lab *lab);
/* A sweep of the run that has not been run: its records, partition and pipeline. */
FKT_MUST_USE fkt_status fkt_lab_sweep_new(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep **out);

#endif
