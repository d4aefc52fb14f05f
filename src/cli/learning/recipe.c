/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - errors of a recipe, with the names of the options.
 *
 * The library checks a recipe's numbers without knowing options: its error is "the recipe's batch is 0: it must be
 * at least 1 ...". The option is found by checking each number alone in an otherwise valid recipe. */
#include "cli/learning/recipe.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

static fkt_status check_one(const struct fkt_recipe *r, const struct cli_recipe_option *o)
{
    static const char of_one[] = "the recipe's ";
    struct fkt_recipe probe;
    char text[256];
    const char *range;
    fkt_status st;
    fkt_recipe_default(&probe);
    probe.nesterov = 0; /* momentum 0 is valid without it */
    memcpy((char *)&probe + o->at, (const char *)r + o->at, o->size);
    st = fkt_recipe_check(&probe);
    if (st == FKT_OK) return st;
    snprintf(text, sizeof text, "%s", fkt_error_text());
    range = strstr(text, " is ");
    if (strncmp(text, of_one, sizeof of_one - 1) != 0 || !range)
        return FKT_OK; /* two numbers that exclude each other */
    return fkt_fail(FKT_E_ARG, "%s%s", o->name, range);
}

fkt_status cli_recipe_check(const struct fkt_recipe *r, const struct cli_recipe_option *option, size_t n)
{
    fkt_status st;
    for (size_t i = 0; i < n; i++) FKT_TRY(check_one(r, &option[i]));
    FKT_TRY(fkt_recipe_check(r));
out:
    return st;
}
