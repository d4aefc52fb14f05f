/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h - numbers of a recipe by the names of the options that they were typed after. */
#ifndef FKT_CLI_LEARNING_RECIPE_H
#define FKT_CLI_LEARNING_RECIPE_H

#include "fedkt/learn.h"

#include <stddef.h>

struct cli_recipe_option {
    const char *name; /* "--batch" */
    size_t at, size;  /* of the field in struct fkt_recipe */
};
#define CLI_RECIPE(name, field)                                                                                        \
    {                                                                                                                  \
        name, offsetof(struct fkt_recipe, field), sizeof(((struct fkt_recipe *)0)->field)                              \
    }

/* fkt_recipe_check; a number out of its range is called by its option. */
FKT_MUST_USE fkt_status cli_recipe_check(const struct fkt_recipe *r, const struct cli_recipe_option *option, size_t n);

#endif
