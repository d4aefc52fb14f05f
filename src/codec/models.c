/* SPDX-License-Identifier: Apache-2.0 */
/* models.c - where the networks that come with the program are.
 *
 *   $FEDKT_MODELS/<name>/                    before the cache: whoever sets it wants other weights; a folder that
 *                                            cannot be read is an error, for the same reason
 *   BESIDE/../share/fedkt/models/<name>/     behind the cache; BESIDE is the folder of the shared library, then that of
 *                                            the running program
 *
 * An installed file knows its place from where it was loaded, not from a path that was compiled in, so that a package
 * can be unpacked anywhere. Debian's library folder has one level more (lib/x86_64-linux-gnu): BESIDE/../.. is tried as
 * well. A build tree has the same shape: its share/fedkt/models is a link to the source tree's (CMakeLists.txt). */
#include "codec/models.h"

#include "codec/cache.h"

#include "base/alloc.h"
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fkt_status in_folder(char **out, const char *models, const char *name)
{
    char *folder = NULL;
    fkt_status st = fkt_path_join(&folder, models, name);
    if (st == FKT_OK && fkt_codec_has_weights(folder)) *out = folder;
    else fkt_free(folder);
    return st;
}

fkt_status fkt_models_named(char **out, const char *name)
{
    const char *models = getenv("FEDKT_MODELS");
    *out = NULL;
    if (!models || !*models) return FKT_OK;
    if (access(models, R_OK | X_OK) != 0)
        return fkt_fail_hint(FKT_E_IO, "correct it, or unset it to use what comes with the program",
                             "cannot read folder '%s', which FEDKT_MODELS names: %s", models, strerror(errno));
    return in_folder(out, models, name);
}

/* `file` is in FOLDER; looks below share of the folder above FOLDER, and of the one above that. */
static fkt_status beside(char **out, const char *file, const char *name)
{
    char real[PATH_MAX], *slash, *models = NULL;
    fkt_status st = FKT_OK;
    if (!realpath(file, real)) return FKT_OK; /* a program that was removed while it runs */
    for (int up = 0; up < 3 && st == FKT_OK && !*out && (slash = strrchr(real, '/')); up++) {
        *slash = '\0';
        if (!up) continue; /* the file's own folder */
        st = fkt_path_join(&models, real, "share/fedkt/models");
        if (st == FKT_OK) st = in_folder(out, models, name);
        fkt_free(models);
        models = NULL;
    }
    return st;
}

fkt_status fkt_models_installed(char **out, const char *name)
{
    static const char here; /* an address inside the library, or inside the program that it is linked into */
    Dl_info loaded;
    fkt_status st = FKT_OK;
    *out = NULL;
    if (dladdr(&here, &loaded) && loaded.dli_fname && strchr(loaded.dli_fname, '/'))
        st = beside(out, loaded.dli_fname, name);
    if (st == FKT_OK && !*out) st = beside(out, "/proc/self/exe", name);
    return st;
}
