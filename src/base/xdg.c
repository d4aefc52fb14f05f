/* SPDX-License-Identifier: Apache-2.0 */
/* xdg.c - the XDG Base Directory Specification 0.8: a variable that is unset, empty or a relative path counts for
 * nothing, and a folder that is not there is made with mode 0700. A ledger and the state of a round are private, so the
 * last folder, which is ours, is 0700 even where it existed with more. */
#include "base/xdg.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *variable, *below_home, *what, *file;
} places[] = {
    [FKT_XDG_DATA] = {"XDG_DATA_HOME", ".local/share", "data", "ledger"},
    [FKT_XDG_STATE] = {"XDG_STATE_HOME", ".local/state", "state", "state"},
};

/* mkdir -p with mode 0700 for what is new; `folder` is the caller's to scribble in. */
static fkt_status make_folder(char *folder)
{
    struct stat sb;
    fkt_status st;
    for (char *s = folder + 1;; s++) {
        const char c = *s;
        if (c != '/' && c != '\0') continue;
        *s = '\0';
        FKT_TRY(fkt_mkdir(folder, 0700));
        *s = c;
        if (c == '\0') break;
    }
    if (chmod(folder, 0700) != 0 || stat(folder, &sb) != 0) st = fkt_io_fail("make private", folder);
    else st = fkt_private_check(&sb, folder, 0);
out:
    return st;
}

fkt_status fkt_xdg_folder(enum fkt_xdg_folder place, const char *name, int make, char **out)
{
    const char *own = getenv(places[place].variable), *home = getenv("HOME");
    char *base = NULL, *folder = NULL;
    fkt_status st;
    *out = NULL;
    if (own && *own == '/') FKT_TRY(fkt_strdup(&base, own));
    else if (home && *home == '/') FKT_TRY(fkt_path_join(&base, home, places[place].below_home));
    else {
        st = fkt_hint_code(fkt_fail(FKT_E_IO, "there is no place for this user's %s: %s and HOME are unset",
                                    places[place].what, places[place].variable),
                           FKT_HINT_NAME_FILE, "name the file, or set HOME");
        st = fkt_hint_values(st, FKT_HINT_NAME_FILE, places[place].file, NULL);
        goto out;
    }
    FKT_TRY(fkt_path_join(&folder, base, "fedkt"));
    if (make) FKT_TRY(make_folder(folder));
    FKT_TRY(fkt_path_join(out, folder, name));
out:
    fkt_free(base);
    fkt_free(folder);
    return st;
}
