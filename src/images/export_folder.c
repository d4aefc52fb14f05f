/* SPDX-License-Identifier: Apache-2.0 */
/* export_folder.c - a labelled set as an ImageFolder: train/<class>/000017.png, and a row for each in
 * train/metadata.jsonl.
 *
 * Two libraries must give each image our label. torchvision numbers the sorted names of the folders, so the names are
 * in our order (export_names.c). Hugging Face's `datasets` reads metadata.jsonl, but only one that lies in the folder
 * of its split, and takes every key of it for a column.
 *
 * The folder is the caller's temporary one and gets its final name when all is there, so single images are written
 * directly; one syncfs at the end replaces a fsync for each. A second split may follow in the same folder. */
#include "images/export.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fkt_status disk_fail(const char *path)
{
    int code = errno;
    if (code == ENOSPC || code == EDQUOT)
        return fkt_fail_hint(FKT_E_IO, "free some space or choose another output folder; nothing was left half-written",
                             "cannot write '%s': %s", path, strerror(code));
    return fkt_fail(code == EEXIST ? FKT_E_EXISTS : FKT_E_IO, "cannot write '%s': %s", path, strerror(code));
}

static fkt_status folder_open(struct fkt_export *e)
{
    char *path = NULL, *rows = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&e->made, e->n_classes));
    FKT_TRY(fkt_path_join(&path, e->path, e->split));
    if (mkdir(path, 0777) != 0) {
        st = disk_fail(path);
        goto out;
    }
    FKT_TRY(fkt_path_join(&rows, path, "metadata.jsonl"));
    FKT_TRY(fkt_file_begin(&e->file, rows, 1));
out:
    fkt_free(path);
    fkt_free(rows);
    return st;
}

static fkt_status write_plain(const char *path, const uint8_t *data, size_t len)
{
    FILE *f = fopen(path, "wbx");
    fkt_status st = FKT_OK;
    if (!f) return disk_fail(path);
    if (fwrite(data, 1, len, f) != len) st = disk_fail(path);
    if (fclose(f) != 0 && st == FKT_OK) st = disk_fail(path);
    return st;
}

static fkt_status make_class_folder(struct fkt_export *e, uint32_t label)
{
    struct fkt_text path;
    fkt_status st;
    fkt_text_init(&path);
    fkt_text_addf(&path, "%s/%s/%s", e->path, e->split, e->names[label]);
    FKT_TRY(fkt_text_status(&path));
    if (mkdir(path.s, 0777) != 0) {
        st = disk_fail(path.s);
        goto out;
    }
    e->made[label] = 1;
out:
    fkt_text_clear(&path);
    return st;
}

static fkt_status folder_add(struct fkt_export *e, uint32_t label, const uint8_t *png, size_t len)
{
    struct fkt_text path, row;
    fkt_status st;

    fkt_text_init(&path);
    fkt_text_init(&row);
    if (!e->made[label]) FKT_TRY(make_class_folder(e, label));
    fkt_text_addf(&path, "%s/%s/%s/%06zu.png", e->path, e->split, e->names[label], e->added);
    FKT_TRY(fkt_text_status(&path));
    FKT_TRY(write_plain(path.s, png, len));
    fkt_text_add(&row, "{\"file_name\": ");
    fkt_json_quote(&row, path.s + strlen(e->path) + 1 + strlen(e->split) + 1);
    fkt_text_addf(&row, ", \"label\": %u, \"class\": ", label);
    fkt_json_quote(&row, e->classes[label]);
    fkt_text_add(&row, "}\n");
    FKT_TRY(fkt_text_status(&row));
    if (fwrite(row.s, 1, row.len, e->file.stream) != row.len) st = disk_fail(e->file.path);
out:
    fkt_text_clear(&path);
    fkt_text_clear(&row);
    return st;
}

static fkt_status folder_finish(struct fkt_export *e)
{
    int fd = open(e->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = fd >= 0 && syncfs(fd) != 0;
    fkt_status st = bad ? disk_fail(e->path) : FKT_OK;
    if (fd >= 0) close(fd);
    return st == FKT_OK ? fkt_file_commit(&e->file) : st;
}

const struct fkt_export_ops fkt_export_folder = {
    .open = folder_open, .add = folder_add, .finish = folder_finish, .png = 1};
