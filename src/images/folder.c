/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - ImageFolder on disk: listing the files, and reading one.
 *
 * Links to files are followed everywhere, links to folders on the first two levels only, where splits and classes
 * are (people link those together from several disks); deeper they are passed over, and a folder that is its own
 * ancestor always is, so that a loop of links can neither hang the listing nor list a record twice. A link that
 * leads nowhere becomes a record whose reading fails. Hidden files and folders are ignored. Cost: one readdir per
 * folder, a stat only for links, a look at the first bytes of files without an ending; nothing else is opened before
 * it is read. */
#include "images/formats.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "images/decode.h"
#include "images/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 32, LINK_DEPTH = 2 };

struct list {
    size_t *at; /* offsets into names */
    size_t n, cap;
};

struct folder {
    char *root;
    unsigned bits;
    struct fkt_names names; /* paths relative to the root */
    struct list images, folders;
};

struct walk {
    struct fkt_dataset_builder *b;
    struct folder *f;
    struct fkt_text path; /* of the folder at hand, relative; "" or ending in a slash */
    struct {
        dev_t dev;
        ino_t ino;
    } above[MAX_DEPTH + 1];
};

static void folder_free(void *self)
{
    struct folder *f = self;
    if (!f) return;
    fkt_free(f->root);
    fkt_free(f->names.text);
    fkt_free(f->images.at);
    fkt_free(f->folders.at);
    fkt_free(f);
}

static fkt_status open_image(const struct folder *f, size_t r, struct fkt_source *s)
{
    char *path = NULL;
    fkt_status st;
    fkt_source_init(s);
    FKT_TRY(fkt_path_join(&path, f->root, f->names.text + f->images.at[r]));
    FKT_TRY(fkt_source_open_plain(s, path));
out:
    fkt_free(path);
    return st;
}

static fkt_status folder_decode(const void *self, size_t r, uint8_t **rgb, uint32_t *w, uint32_t *h,
                                struct fkt_facts *facts)
{
    const struct folder *f = self;
    struct fkt_source s;
    fkt_status st;
    FKT_TRY(open_image(f, r, &s));
    FKT_TRY(fkt_source_decode(&s, 0, s.size, f->bits, rgb, w, h, facts));
out:
    fkt_source_close(&s);
    return st;
}

static fkt_status folder_stored(const void *self, size_t r, struct fkt_stored *out)
{
    struct fkt_source s;
    fkt_status st;
    FKT_TRY(open_image(self, r, &s));
    FKT_TRY(fkt_source_stored(&s, 0, s.size, out));
out:
    fkt_source_close(&s);
    return st;
}

static const struct fkt_dataset_backend backend = {"ImageFolder", folder_decode, folder_free, folder_stored};

static fkt_status remember(struct walk *w, struct list *l, const char *name)
{
    size_t keep = w->path.len;
    fkt_status st;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 256;
        st = fkt_realloc(&l->at, cap);
        if (st != FKT_OK) return st;
        l->cap = cap;
    }
    fkt_text_add(&w->path, name);
    st = fkt_text_status(&w->path);
    if (st == FKT_OK) st = fkt_names_add(&w->f->names, w->path.s, w->path.len, &l->at[l->n]);
    if (st == FKT_OK) l->n++;
    w->path.len = keep;
    w->path.s[keep] = '\0';
    return st;
}

enum what { A_FILE, A_FOLDER, A_LINKED_FOLDER, NOWHERE, OTHER };

static enum what look(DIR *d, const struct dirent *e)
{
    struct stat sb;
    if (e->d_type == DT_REG) return A_FILE;
    if (e->d_type == DT_DIR) return A_FOLDER;
    if (fstatat(dirfd(d), e->d_name, &sb, 0) != 0) return NOWHERE;
    if (S_ISREG(sb.st_mode)) return A_FILE;
    if (!S_ISDIR(sb.st_mode)) return OTHER;
    return fstatat(dirfd(d), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(sb.st_mode) ? A_LINKED_FOLDER
                                                                                              : A_FOLDER;
}

static fkt_status walk(struct walk *w, int depth);

static fkt_status enter(struct walk *w, const char *name, int depth)
{
    size_t keep = w->path.len;
    fkt_status st = depth < LINK_DEPTH ? remember(w, &w->f->folders, name) : FKT_OK;
    if (st != FKT_OK) return st;
    fkt_text_add(&w->path, name);
    fkt_text_add(&w->path, "/");
    st = fkt_text_status(&w->path);
    if (st == FKT_OK) st = walk(w, depth + 1);
    w->path.len = keep;
    w->path.s[keep] = '\0';
    return st;
}

/* Archives of hospitals write DICOM files without an ending. They are not read, but they are images: as records they
 * fail with the command that converts them, instead of being passed over. */
static int is_nameless_dicom(DIR *d, const char *name)
{
    char magic[4];
    int fd, yes;
    if (*fkt_ending(name)) return 0;
    fd = openat(dirfd(d), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    yes = pread(fd, magic, sizeof magic, FKT_DICOM_HEAD - sizeof magic) == (ssize_t)sizeof magic &&
          !memcmp(magic, "DICM", sizeof magic);
    close(fd);
    return yes;
}

static fkt_status visit(struct walk *w, DIR *d, const struct dirent *e, int depth)
{
    const int inside = depth > 0 || (w->b->unlabelled && !fkt_is_our_name(e->d_name));
    enum what what = look(d, e);
    if (what == A_FOLDER || (what == A_LINKED_FOLDER && depth < LINK_DEPTH)) return enter(w, e->d_name, depth);
    /* a pipe, socket or device called like an image is an image that cannot be read, as a link to nowhere is */
    if (what != A_LINKED_FOLDER && inside && fkt_is_image_name(e->d_name)) return remember(w, &w->f->images, e->d_name);
    if (what == A_FILE && inside && is_nameless_dicom(d, e->d_name)) return remember(w, &w->f->images, e->d_name);
    if (depth <= 1 && what == A_FILE && fkt_is_our_name(e->d_name)) return FKT_OK;
    if (what == A_FILE && fkt_is_image_name(e->d_name)) w->b->loose = 1;
    return fkt_builder_skip(w->b, "%s/%s%s", w->f->root, w->path.s, e->d_name);
}

static fkt_status walk(struct walk *w, int depth)
{
    char *path = NULL;
    DIR *d = NULL;
    struct dirent *e;
    struct stat sb;
    fkt_status st;
    FKT_TRY(fkt_path_join(&path, w->f->root, w->path.s));
    if (depth > MAX_DEPTH) {
        st = fkt_fail(FKT_E_FORMAT, "'%s' is nested too deep: more than %d folders", path, MAX_DEPTH);
        goto out;
    }
    d = opendir(path);
    if (!d || fstat(dirfd(d), &sb) != 0) {
        st = fkt_fail(FKT_E_IO, "cannot read folder '%s': %s", path, strerror(errno));
        goto out;
    }
    for (int i = 0; i < depth; i++)
        if (w->above[i].dev == sb.st_dev && w->above[i].ino == sb.st_ino) {
            FKT_TRY(fkt_builder_skip(w->b, "%s", path));
            if (depth <= LINK_DEPTH) w->f->folders.n--; /* not a class either */
            goto out;
        }
    w->above[depth].dev = sb.st_dev;
    w->above[depth].ino = sb.st_ino;
    while ((errno = 0, e = readdir(d)))
        if (!fkt_is_hidden(e->d_name)) FKT_TRY(visit(w, d, e, depth));
    if (errno) st = fkt_fail(FKT_E_IO, "cannot read folder '%s': %s", path, strerror(errno));
out:
    if (d) closedir(d);
    fkt_free(path);
    return st;
}

fkt_status fkt_imagefolder_open(struct fkt_dataset_builder *b, const char *path)
{
    struct folder *f = NULL;
    struct walk w;
    const char **paths = NULL;
    char *prefix = NULL;
    fkt_status st;
    memset(&w, 0, sizeof w);
    fkt_text_init(&w.path);
    FKT_TRY(fkt_alloc(&f, 1));
    fkt_builder_backend(b, &backend, f);
    FKT_TRY(fkt_strdup(&f->root, path));
    f->bits = b->bits;
    w.b = b;
    w.f = f;
    FKT_TRY(walk(&w, 0));
    FKT_TRY(fkt_alloc(&paths, f->images.n + f->folders.n));
    for (size_t i = 0; i < f->images.n; i++) paths[i] = f->names.text + f->images.at[i];
    for (size_t i = 0; i < f->folders.n; i++) paths[f->images.n + i] = f->names.text + f->folders.at[i];
    FKT_TRY(fkt_path_join(&prefix, path, ""));
    FKT_TRY(fkt_classes_of_folders(b, path));
    if (f->images.n) FKT_TRY(fkt_layout_add(b, prefix, paths, f->images.n, 0, paths + f->images.n, f->folders.n));
    b->no_empty = 1;
out:
    fkt_free(paths);
    fkt_free(prefix);
    fkt_text_clear(&w.path);
    return st;
}
