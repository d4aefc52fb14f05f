/* SPDX-License-Identifier: Apache-2.0 */
/* xdg.h - where this user's own files lie when no path is given. */
#ifndef FKT_CLI_CORE_XDG_H
#define FKT_CLI_CORE_XDG_H

#include "base/status.h"

enum cli_xdg_folder {
    CLI_XDG_DATA,  /* to keep: $XDG_DATA_HOME/fedkt, else ~/.local/share/fedkt */
    CLI_XDG_STATE, /* of runs under way: $XDG_STATE_HOME/fedkt, else ~/.local/state/fedkt */
};
/* The path of `name` there; gives *out. With `make` its folder is made, for its owner alone (0700). FKT_E_IO with a
 * hint that names `option` when there is no such place. */
FKT_MUST_USE fkt_status cli_xdg_folder(enum cli_xdg_folder place, const char *name, const char *option, int make,
                                       char **out);

#endif
