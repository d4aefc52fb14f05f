/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h - what cells share, for the files lab*.c and student.c. */
#ifndef FKT_EXPERIMENT_LAB_H
#define FKT_EXPERIMENT_LAB_H

#include "experiment/experiment.h"

enum { FKT_LAB_STUDENTS = 64 };
/* A network that was trained, by what it learnt from (student.c). */
struct fkt_lab_student {
    char from[FKT_SHA256_HEX]; /* hash of a release, or the name of a set; "": none */
    size_t per_class;
    uint64_t seed;
    uint32_t epochs;
    double accuracy;
};

struct fkt_lab {
    struct fkt_experiment_options options;
    char *folder; /* of encodings and calibrations */
    struct fkt_encodings *encodings;
    char set[64]; /* the open one; "": none */
    struct fkt_dataset *train, *test;
    struct fkt_lab_student student[FKT_LAB_STUDENTS]; /* the last ones */
    size_t n_students;
};
FKT_MUST_USE fkt_status fkt_lab_find(const struct fkt_lab *lab, const char *name, char **path); /* gives *path */
void fkt_lab_close_set(struct fkt_lab *lab);

#endif
