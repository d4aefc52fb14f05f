/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - what can be said of an output before the work that makes it. Paths are compared without links, and a name
 * that does not exist yet counts where its folder does. */
#include "base/output.h"

#include "base/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An absolute path without links, also for a name that does not exist yet in a folder that does; "" when neither
 * does. */
static void canonical(char out[PATH_MAX], const char *path)
{
    char dir[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    out[0] = '\0';
    if (realpath(path, real)) {
        snprintf(out, PATH_MAX, "%s", real);
        return;
    }
    snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (realpath(dir, real)) snprintf(out, PATH_MAX, "%s/%s", real, base);
}

static int lies_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return n && !strncmp(path, folder, n) && path[n] == '/';
}

int fkt_same_place(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    canonical(x, a);
    canonical(y, b);
    return !strcmp(a, b) || (x[0] && !strcmp(x, y));
}

int fkt_output_replaces(const char *out, const char *in)
{
    char a[PATH_MAX], b[PATH_MAX];
    if (!out || !in) return 0;
    canonical(a, out);
    canonical(b, in);
    return a[0] && b[0] && (!strcmp(a, b) || lies_below(b, a) || (lies_below(a, b) && access(a, F_OK) == 0));
}

fkt_status fkt_output_file(const char *path, int force)
{
    struct fkt_file f;
    fkt_status st = fkt_file_begin(&f, path, force);
    if (st == FKT_OK) fkt_file_clear(&f);
    return st;
}

fkt_status fkt_output_folder(const char *path, int force)
{
    struct fkt_folder f;
    fkt_status st = fkt_folder_begin(&f, path, force);
    if (st == FKT_OK) fkt_folder_clear(&f);
    return st;
}
