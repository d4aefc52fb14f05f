/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h - the fields of a recipe as a table: valid values, and how a checkpoint stores them. */
#ifndef FKT_CLASSIFIER_RECIPE_H
#define FKT_CLASSIFIER_RECIPE_H

#include "fedkt/learn.h"

enum { FKT_RECIPE_FIELDS = 22, FKT_RECIPE_TEXT = 40 };
enum { FKT_EPOCHS_MAX = 1000000, FKT_BATCH_MAX = 65536, FKT_PAD_MAX = 256 };

const char *fkt_recipe_field_name(size_t i); /* "epochs", "batch", ... */
/* The field as text, the same text for the same bits: doubles with 17 digits, the schedule and type by name, threads as
 * the number that will be used. */
void fkt_recipe_field_text(const struct fkt_recipe *r, size_t i, char out[FKT_RECIPE_TEXT]);
/* 1: checkpoints of format /1 that are older than the field do not have it; their runs had its default. */
int fkt_recipe_field_is_new(size_t i);

#endif
