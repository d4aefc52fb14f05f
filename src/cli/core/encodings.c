/* SPDX-License-Identifier: Apache-2.0 */
/* encodings.c - `--encodings DIR`: the folder in which encodings are kept, for the verbs that encode. */
#include "cli/core/common.h"

#include <stdio.h>
#include <unistd.h>

fkt_status cli_open_encodings(struct fkt_encodings **out, const char *folder)
{
    *out = NULL;
    return folder ? fkt_encodings_open(out, folder) : FKT_OK;
}

fkt_status cli_close_encodings(struct fkt_encodings *e, const char *folder, const struct cli_run *r, fkt_status st)
{
    uint64_t found, made;
    if (!e) return st;
    fkt_encodings_count(e, &found, &made);
    fkt_encodings_close(e);
    if (st == FKT_E_STOPPED && made)
        return fkt_hint(st, "finished encodings are kept in the folder: run the same command again to continue");
    if (st == FKT_OK && !r->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "fedkt: of %llu images %llu were encoded now, %llu before (%s, as private as the images)\n",
                (unsigned long long)(found + made), (unsigned long long)made, (unsigned long long)found, folder);
    return st;
}
