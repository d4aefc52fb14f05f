/* SPDX-License-Identifier: Apache-2.0 */
/* xdg.h - where this user's own files lie when no path is given. */
#ifndef FKT_BASE_XDG_H
#define FKT_BASE_XDG_H

#include "base/status.h"

enum fkt_xdg_folder {
    FKT_XDG_DATA,  /* to keep: $XDG_DATA_HOME/fedkt, else ~/.local/share/fedkt */
    FKT_XDG_STATE, /* of runs under way: $XDG_STATE_HOME/fedkt, else ~/.local/state/fedkt */
};
/* The path of `name` there; gives *out. With `make` its folder is made, for its owner alone (0700). FKT_E_IO with a
 * hint when there is no such place. */
FKT_MUST_USE fkt_status fkt_xdg_folder(enum fkt_xdg_folder place, const char *name, int make, char **out);

#endif
