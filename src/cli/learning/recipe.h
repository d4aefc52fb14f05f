/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h - the fields of a recipe and the options that set them. */
#ifndef FKT_CLI_LEARNING_RECIPE_H
#define FKT_CLI_LEARNING_RECIPE_H

#include "fedkt/learn.h"

#include <stddef.h>

struct cli_recipe_option {
    const char *name; /* "--batch" */
    size_t at, size;  /* offset of the field in struct fkt_recipe */
};
#define CLI_RECIPE(name, field)                                                                                        \
    {                                                                                                                  \
        name, offsetof(struct fkt_recipe, field), sizeof(((struct fkt_recipe *)0)->field)                              \
    }

/* fkt_recipe_check, with the option's name in the error for a number out of range. */
FKT_MUST_USE fkt_status cli_recipe_check(const struct fkt_recipe *r, const struct cli_recipe_option *option, size_t n);

#endif
