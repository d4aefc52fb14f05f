/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - where the weights of a codec are on this machine.
 *
 *   settings.weights                        a file, or a folder with the published files
 *   else  $FEDKT_MODELS/<codec>/            weights in place of those that come with the program (models.c)
 *   else  $FEDKT_CACHE/codecs/<codec>/      our own variable, absolute or not, as it is
 *   else  $XDG_CACHE_HOME/fedkt/codecs/...  XDG Base Directory Specification 0.8: a relative path is to be ignored
 *   else  $HOME/.cache/fedkt/codecs/...     the default of that specification
 *   else  share/fedkt/models/<codec>/       what was installed with the program (models.c)
 *
 * Weights are a cache in the specification's sense: they can be fetched again. This file only chooses the path and
 * says what to do when nothing is there; the codec reads the files. */
#include "codec/cache.h"

#include "codec/codec.h"
#include "codec/family.h"
#include "codec/manifest.h"
#include "codec/models.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A codec's name becomes a folder's name: letters, digits, '-', '_' and '.', and not '.' or '..'. */
static fkt_status check_name(const char *codec)
{
    size_t n = strspn(codec, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    if (n == 0 || n > 64 || codec[n] != '\0' || codec[0] == '.')
        return fkt_fail(FKT_E_ARG, "'%s' is not a name for a codec", codec);
    return FKT_OK;
}

/* The cache's root: *base and what comes below it. */
static fkt_status root(const char **base, const char **below)
{
    const char *own = getenv("FEDKT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *below = "";
    *base = own && *own ? own : NULL;
    if (*base) return FKT_OK;
    *below = "/fedkt";
    *base = xdg && *xdg == '/' ? xdg : NULL;
    if (*base) return FKT_OK;
    *below = "/.cache/fedkt";
    *base = home && *home == '/' ? home : NULL;
    if (*base) return FKT_OK;
    return fkt_hint_code(
        fkt_fail(FKT_E_IO, "there is no folder for the cache: FEDKT_CACHE, XDG_CACHE_HOME and HOME are unset"),
        FKT_HINT_CACHE, "set FEDKT_CACHE to a folder, or say where the weights are");
}

fkt_status fkt_codec_cache(char **out, const char *codec)
{
    const char *base, *below;
    size_t n;
    fkt_status st;
    *out = NULL;
    FKT_TRY(check_name(codec));
    FKT_TRY(root(&base, &below));
    n = strlen(base);
    while (n > 1 && base[n - 1] == '/') n--;
    if (n > (1 << 16)) {
        st = fkt_fail(FKT_E_ARG, "the path of the cache is too long");
        goto out;
    }
    FKT_TRY(fkt_alloc(out, n + strlen(below) + strlen(codec) + 16));
    snprintf(*out, n + strlen(below) + strlen(codec) + 16, "%.*s%s/codecs/%s", (int)n, base, below, codec);
out:
    return st;
}

int fkt_codec_has_weights(const char *folder)
{
    static const char ending[] = ".safetensors";
    DIR *d = opendir(folder);
    struct dirent *e;
    int found = 0;
    while (d && !found && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        found = e->d_name[0] != '.' && n >= sizeof ending && !strcmp(e->d_name + n - (sizeof ending - 1), ending);
    }
    if (d) closedir(d);
    return found;
}

void fkt_codec_put_hint(char *out, size_t cap, const char *codec, const char *folder)
{
    const struct fkt_published *p = fkt_published_find(codec);
    char pair[192] = "";
    if (p && !strcmp(p->family, "taesd"))
        snprintf(pair, sizeof pair, ", or %s_encoder.safetensors and %s_decoder.safetensors,", codec, codec);
    if (p)
        snprintf(out, cap, "put %s and %s of '%s'%s into '%s'", p->file[0].name, p->file[1].name, p->repo, pair,
                 folder);
    else snprintf(out, cap, "put its safetensors files into '%s'", folder);
}

static fkt_status check_given(const char *weights)
{
    struct stat sb;
    fkt_status st = FKT_OK;
    if (stat(weights, &sb) != 0) st = fkt_fail(FKT_E_IO, "cannot read weights '%s': %s", weights, strerror(errno));
    else if (!S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode))
        st = fkt_fail(FKT_E_ARG, "weights '%s' are neither a file nor a folder", weights);
    return fkt_hint_code(st, FKT_HINT_WEIGHTS_KIND,
                         "weights are a safetensors file, or a folder with the published files");
}

static fkt_status absent(const char *codec, const char *folder)
{
    const struct fkt_member *m = fkt_member_find(codec, strlen(codec));
    char put[320];
    fkt_status st;
    if (m && m->shipped)
        return fkt_fail_hint(FKT_E_IO,
                             "install it whole, or set FEDKT_MODELS to the folder 'models' of the source tree",
                             "the weights of '%s', which come with the program, are not beside it", codec);
    if (!strcmp(codec, "efficientnet-lite0"))
        return fkt_fail_hint(FKT_E_IO, "they come in a Python package and are converted once: docs/codecs.md, 'Guides'",
                             "the weights of guide '%s' are not on this machine", codec);
    if (!fkt_published_find(codec))
        return fkt_hint_code(fkt_fail(FKT_E_IO, "there are no weights for codec '%s'", codec), FKT_HINT_WEIGHTS_PATH,
                             "say where they are: the name stands for any weights of its family");
    fkt_codec_put_hint(put, sizeof put, codec, folder);
    st = fkt_fail(FKT_E_IO, "the weights of %s '%s' are not on this machine",
                  fkt_codec_known(codec, 1) ? "guide" : "codec", codec);
    return fkt_hint_values(fkt_hint_code(st, FKT_HINT_PULL, put), FKT_HINT_PULL, codec, NULL);
}

fkt_status fkt_codec_guide_failure(fkt_status st, const char *name)
{
    const enum fkt_hint was = st == FKT_OK ? FKT_HINT_NONE : fkt_error_hint_code();
    const enum fkt_hint now = was == FKT_HINT_PULL ? FKT_HINT_GUIDE_PULL : FKT_HINT_GUIDE_WEIGHTS_KIND;
    struct fkt_failure f;
    if (was == FKT_HINT_WEIGHTS_PATH)
        return fkt_hint_code(fkt_fail(st, "there are no weights for guide '%s'", name), FKT_HINT_GUIDE_WEIGHTS,
                             "say where they are: the name stands for any weights of its family");
    if (was != FKT_HINT_PULL && was != FKT_HINT_WEIGHTS_KIND) return st;
    fkt_failure_save(&f, st);
    fkt_fail(st, "%s", f.text);
    return fkt_hint_values(fkt_hint_code(st, now, f.hint), now, f.value[0], NULL);
}

fkt_status fkt_codec_weights_path(char **out, const char *codec, const char *weights)
{
    char *folder = NULL;
    int shipped;
    fkt_status st, no_cache;
    *out = NULL;
    if (weights) {
        st = check_given(weights);
        return st == FKT_OK ? fkt_strdup(out, weights) : st;
    }
    FKT_TRY(check_name(codec));
    FKT_TRY(fkt_models_named(out, codec));
    if (*out) goto out;
    no_cache = fkt_codec_cache(&folder, codec); /* a service without HOME still has what was installed */
    if (no_cache == FKT_E_NOMEM) {
        st = no_cache;
        goto out;
    }
    if (no_cache == FKT_OK && fkt_codec_has_weights(folder)) {
        *out = folder;
        folder = NULL;
        goto out;
    }
    FKT_TRY(fkt_models_installed(out, codec));
    if (*out) goto out;
    shipped = fkt_member_find(codec, strlen(codec)) && fkt_member_find(codec, strlen(codec))->shipped;
    st = no_cache == FKT_OK || shipped ? absent(codec, folder) : fkt_codec_cache(&folder, codec);
out:
    fkt_free(folder);
    return st;
}
