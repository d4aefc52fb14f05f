/* SPDX-License-Identifier: Apache-2.0 */
/* student.h - networks of the lab: from a release, and from images in memory. */
#ifndef FKT_EXPERIMENT_STUDENT_H
#define FKT_EXPERIMENT_STUDENT_H

#include "experiment/lab.h"

#include "fedkt/train.h"

/* Of a network on real images; others change it. */
void fkt_lab_recipe(const struct fkt_lab *lab, uint64_t seed, struct fkt_recipe *r);
/* A network with the classes and size of `like`, from scratch; its accuracy on test after the last epoch. */
FKT_MUST_USE fkt_status fkt_lab_learn(const struct fkt_lab *lab, const struct fkt_image_source *images,
                                      const struct fkt_training_set *like, const struct fkt_recipe *recipe,
                                      const struct fkt_training_set *test, double *accuracy);
/* Was the same network trained already? Then its accuracy is filled in. */
int fkt_lab_recall(const struct fkt_lab *lab, struct fkt_lab_student *s);
void fkt_lab_remember(struct fkt_lab *lab, const struct fkt_lab_student *s);
/* The network of one arm of a sweep that has run: fkt_sweep_set_network. */
FKT_MUST_USE fkt_status fkt_lab_train(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep *sweep,
                                      size_t arm);

#endif
