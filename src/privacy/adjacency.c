/* SPDX-License-Identifier: Apache-2.0 */
/* adjacency.c - what "neighbouring datasets" means: one table of everything that is computed from an adjacency or
 * written of it. Options, help, tasks, certificates, cards and reports read it; docs/schema is compared with it
 * (tools/check_tables.py). A further adjacency is a member of the enum, a row here, its mu^2 in
 * sensitivity.c with a proof in sensitivity.md, its name in the schemas, and a row of canaries in audit/. */
#include "privacy/adjacency.h"

#include <string.h>

static const struct {
    struct fkt_adjacency_info info;
    fkt_mu_squared_of *mu_squared;
} table[] = {
    [FKT_ADJACENCY_ADD_REMOVE] = {{.name = "add-remove",
                                   .protects = "presence, pixels and label of any one record",
                                   .hides = "whether any one image was used at all, what it shows, and its label",
                                   .question = "whether one given image was used",
                                   .counts_public = 0},
                                  fkt_mu_squared_add_remove},
    [FKT_ADJACENCY_REPLACE] = {{.name = "replace",
                                .protects = "pixels of any one record (labels and class counts are public)",
                                .hides = "what any one image shows; the number of images of each class is public",
                                .question = "which of two given images was used",
                                .counts_public = 1},
                               fkt_mu_squared_replace},
    [FKT_ADJACENCY_REPLACE_ANY] = {{.name = "replace-any",
                                    .protects = "any one record swapped for any other, label included",
                                    .hides = "what any one image shows and its label; the total number of images is "
                                             "public",
                                    .question = "which of two given images was used",
                                    .counts_public = 0},
                                   fkt_mu_squared_replace_any},
};
enum { ROWS = sizeof table / sizeof *table };

const struct fkt_adjacency_info *fkt_adjacency_info(int a) { return a >= 0 && a < ROWS ? &table[a].info : NULL; }

fkt_mu_squared_of *fkt_adjacency_mu_squared(enum fkt_adjacency a)
{
    return fkt_adjacency_info((int)a) ? table[a].mu_squared : NULL;
}

const char *fkt_adjacency_name(enum fkt_adjacency a) { return fkt_adjacency_info((int)a) ? table[a].info.name : "?"; }

const char *fkt_adjacency_protects(enum fkt_adjacency a)
{
    return fkt_adjacency_info((int)a) ? table[a].info.protects : "?";
}

int fkt_adjacency_counts_public(enum fkt_adjacency a)
{
    return fkt_adjacency_info((int)a) && table[a].info.counts_public;
}

int fkt_adjacency_parse(const char *s)
{
    for (int i = 0; s && i < ROWS; i++)
        if (!strcmp(table[i].info.name, s)) return i;
    return -1;
}
