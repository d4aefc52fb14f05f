/* SPDX-License-Identifier: Apache-2.0 */
/* family_files.c - which files a path to weights means.
 *
 *   folder/diffusion_pytorch_model.safetensors (+ config.json)      diffusers
 *   folder/model.safetensors (+ config.json)                        efficientvit; a guide
 *   folder/encoder.safetensors and decoder.safetensors              our own codec, in TAESD's layout
 *   folder/NAME_encoder.safetensors and NAME_decoder.safetensors    TAESD's own; several pairs: the codec's name picks
 *   any one of these files: its config.json, or the other half of the pair, is looked for beside it
 *
 * The first that is there counts. Contents are not looked at here. A pair under the name of one member is not taken for
 * another: taesd and taesdxl have the same shapes, so that nothing later would notice. */
#include "codec/family.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tensor/pytorch.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char encoder_end[] = "_encoder.safetensors", decoder_end[] = "_decoder.safetensors";

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

static int exists(const char *path)
{
    struct stat sb;
    return lstat(path, &sb) == 0 || errno != ENOENT; /* one that cannot be read, a link to nowhere too, is said when it
                                                        is opened */
}

/* folder/name when it is there, else NULL. */
static fkt_status probe(char **out, const char *folder, const char *name)
{
    fkt_status st = fkt_path_join(out, folder, name);
    if (st == FKT_OK && !exists(*out)) {
        fkt_free(*out);
        *out = NULL;
    }
    return st;
}

static fkt_status read_config(struct fkt_family_files *f, const char *folder)
{
    fkt_status st;
    FKT_TRY(probe(&f->config_path, folder, "config.json"));
    if (f->config_path) FKT_TRY(fkt_file_read(&f->config, &f->config_len, f->config_path, FKT_CONFIG_BYTES_MAX));
out:
    return st;
}

/* The pairs of a folder: how many, and the one that is wanted. */
struct pairs {
    const char *codec;
    size_t n;
    char stem[128];        /* of the wanted one, or of the last */
    int exact;             /* stem is the codec's name */
    struct fkt_text names; /* "a, b" */
};

static void look_at(struct pairs *p, const char *entry)
{
    size_t n;
    if (!ends_with(entry, encoder_end) && !ends_with(entry, decoder_end)) return;
    n = strlen(entry) - strlen(encoder_end);
    if (n >= sizeof p->stem) return;
    if (p->exact) return;
    if (p->n && strlen(p->stem) == n && !memcmp(p->stem, entry, n)) return; /* the other half of the last one */
    p->exact = p->codec && strlen(p->codec) == n && !memcmp(p->codec, entry, n);
    snprintf(p->stem, sizeof p->stem, "%.*s", (int)n, entry);
    fkt_text_addf(&p->names, "%s%s", p->n ? ", " : "", p->stem);
    p->n++;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names in order, so that halves of a pair stand side by side and messages do not depend on the file system. */
static fkt_status list(char ***out, size_t *n, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    size_t room = 0;
    fkt_status st = FKT_OK;
    if (!dir) return fkt_io_fail("read", folder);
    while ((e = readdir(dir))) {
        if (!ends_with(e->d_name, encoder_end) && !ends_with(e->d_name, decoder_end)) continue;
        if (*n == room) FKT_TRY(fkt_realloc(out, room = room ? 2 * room : 8));
        FKT_TRY(fkt_strdup(&(*out)[*n], e->d_name));
        ++*n;
    }
    if (*n > 1) qsort(*out, *n, sizeof **out, by_name);
out:
    closedir(dir);
    return st;
}

/* A codec of this name takes whatever pair there is. */
static int takes_any(const char *codec) { return !codec || !strcmp(codec, "tiny"); }

/* The pair at `where` carries another member's name than the codec's. */
static fkt_status others(const char *where, const char *stem, const char *codec)
{
    char hint[256];
    snprintf(hint, sizeof hint, "open codec '%s', or give the weights of '%s'", stem, codec);
    return fkt_fail_hint(FKT_E_MISMATCH, hint, "'%s' holds the weights of '%s', not of '%s'", where, stem, codec);
}

/* The first file of a folder that has a name of PyTorch's; "" when there is none. */
static void find_pickle(char out[128], const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    out[0] = '\0';
    while (dir && (e = readdir(dir)))
        if (fkt_pytorch_name(e->d_name) && strlen(e->d_name) < 128 && (!*out || strcmp(e->d_name, out) < 0))
            snprintf(out, 128, "%s", e->d_name);
    if (dir) closedir(dir);
}

/* A folder without weights, or with weights that only PyTorch reads. */
static fkt_status nothing_in(const char *folder)
{
    char name[128], path[256], hint[FKT_PYTORCH_HINT];
    find_pickle(name, folder);
    if (!*name)
        return fkt_fail_hint(FKT_E_IO,
                             "wanted: diffusion_pytorch_model.safetensors, model.safetensors, or a pair "
                             "NAME_encoder.safetensors and NAME_decoder.safetensors",
                             "folder '%s' holds no weights", folder);
    snprintf(path, sizeof path, "%s/*%s", folder, strrchr(name, '.'));
    fkt_pytorch_hint(hint, path);
    return fkt_fail_hint(FKT_E_FORMAT, hint, "folder '%s' holds no safetensors, but PyTorch's own format: '%s'", folder,
                         name);
}

static fkt_status evaluate(const struct pairs *p, const char *folder)
{
    const struct fkt_member *m = fkt_member_find(p->stem, strlen(p->stem));
    int free_choice = takes_any(p->codec);
    if (!p->n) return nothing_in(folder);
    if (p->exact || (p->n == 1 && (free_choice || !m))) return FKT_OK;
    if (p->n == 1) return others(folder, p->stem, p->codec);
    if (!free_choice)
        return fkt_fail_hint(FKT_E_MISMATCH, "put the pair of this codec there, or give another folder",
                             "folder '%s' holds %zu pairs, and '%s' is not among them: %s", folder, p->n, p->codec,
                             p->names.s);
    return fkt_fail_hint(FKT_E_MISMATCH, "name the codec or give one of the files", "folder '%s' holds %zu pairs: %s",
                         folder, p->n, p->names.s);
}

static fkt_status set_pair(struct fkt_family_files *f, const char *before, size_t n)
{
    const char *const ends[2] = {encoder_end, decoder_end};
    for (int i = 0; i < 2; i++) {
        fkt_status st = fkt_alloc(&f->path[i], n + sizeof encoder_end);
        if (st != FKT_OK) return st;
        memcpy(f->path[i], before, n);
        memcpy(f->path[i] + n, ends[i], sizeof encoder_end);
    }
    return FKT_OK;
}

static fkt_status find_pair(struct fkt_family_files *f, const char *folder, const char *codec)
{
    struct pairs p = {.codec = codec};
    char **names = NULL, *before = NULL;
    size_t n = 0;
    fkt_status st;
    fkt_text_init(&p.names);
    FKT_TRY(list(&names, &n, folder));
    for (size_t i = 0; i < n; i++) look_at(&p, names[i]);
    FKT_TRY(fkt_text_status(&p.names));
    FKT_TRY(evaluate(&p, folder));
    FKT_TRY(fkt_path_join(&before, folder, p.stem));
    FKT_TRY(set_pair(f, before, strlen(before)));
out:
    for (size_t i = 0; i < n; i++) fkt_free(names[i]);
    fkt_free(names);
    fkt_free(before);
    fkt_text_clear(&p.names);
    return st;
}

/* The pair without a name; path[0] stays NULL where neither half is there. */
static fkt_status find_bare_pair(struct fkt_family_files *f, const char *folder)
{
    char *half[2] = {NULL, NULL};
    fkt_status st;
    FKT_TRY(probe(&half[0], folder, encoder_end + 1));
    FKT_TRY(probe(&half[1], folder, decoder_end + 1));
    if (!half[0] && !half[1]) goto out;
    for (int i = 0; i < 2; i++) FKT_TRY(fkt_path_join(&f->path[i], folder, (i ? decoder_end : encoder_end) + 1));
out:
    fkt_free(half[0]);
    fkt_free(half[1]);
    return st;
}

static fkt_status find_in_folder(struct fkt_family_files *f, const char *folder, const char *codec)
{
    static const char *const singles[] = {"diffusion_pytorch_model.safetensors", "model.safetensors"};
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < 2 && !f->path[0] && st == FKT_OK; i++) st = probe(&f->path[0], folder, singles[i]);
    if (st == FKT_OK && !f->path[0]) {
        st = find_bare_pair(f, folder);
        if (st != FKT_OK || f->path[0]) return st;
    }
    if (st != FKT_OK) return st;
    return f->path[0] ? read_config(f, folder) : find_pair(f, folder, codec);
}

static fkt_status find_by_file(struct fkt_family_files *f, const char *path, const char *codec)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = NULL;
    fkt_status st;
    if (!strcmp(name, encoder_end + 1) || !strcmp(name, decoder_end + 1)) {
        FKT_TRY(fkt_strdup(&folder, slash ? path : "."));
        if (slash) folder[slash == path ? 1 : slash - path] = '\0';
        FKT_TRY(find_bare_pair(f, folder));
        goto out;
    }
    if (ends_with(name, encoder_end) || ends_with(name, decoder_end)) {
        const struct fkt_member *m = fkt_member_find(name, strlen(name) - strlen(encoder_end));
        if (m && !takes_any(codec) && strcmp(m->name, codec) != 0) return others(path, m->name, codec);
        return set_pair(f, path, strlen(path) - strlen(encoder_end));
    }
    FKT_TRY(fkt_strdup(&f->path[0], path));
    FKT_TRY(fkt_strdup(&folder, slash ? path : "."));
    if (slash) folder[slash == path ? 1 : slash - path] = '\0';
    FKT_TRY(read_config(f, folder));
out:
    fkt_free(folder);
    return st;
}

fkt_status fkt_family_find(struct fkt_family_files *out, const char *path, const char *codec)
{
    struct stat sb;
    fkt_status st;
    *out = (struct fkt_family_files){0};
    if (stat(path, &sb) != 0) return fkt_io_fail("read", path);
    st = S_ISDIR(sb.st_mode) ? find_in_folder(out, path, codec) : find_by_file(out, path, codec);
    if (st == FKT_OK) return FKT_OK;
    fkt_family_files_clear(out);
    return st;
}

void fkt_family_files_clear(struct fkt_family_files *f)
{
    fkt_free(f->path[0]);
    fkt_free(f->path[1]);
    fkt_free(f->config_path);
    fkt_free(f->config);
    *f = (struct fkt_family_files){0};
}
