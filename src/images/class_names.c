/* SPDX-License-Identifier: Apache-2.0 */
/* class_names.c - names for numbered classes, from a file beside the data: CIFAR's *.txt (one name a line), or the
 * classes.json (an array of names) that our own exporter writes. They are added before the records, in the order of
 * their labels; a label beyond them is then out of range. For an ImageFolder the same classes.json says which class a
 * folder stands for. */
#include "images/formats.h"

#include "base/alloc.h"
#include "base/file.h"
#include "images/export.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 24 };

static fkt_status add_name(struct fkt_dataset_builder *b, const char *name, const char *path)
{
    size_t had = b->ds->k;
    uint32_t k;
    fkt_status st = fkt_builder_class(b, name, &k);
    if (st == FKT_OK && k != had) st = fkt_fail(FKT_E_FORMAT, "class '%s' is listed twice in '%s'", name, path);
    b->named = 1;
    fkt_builder_keep_order(b);
    return st;
}

fkt_status fkt_classes_from_lines(struct fkt_dataset_builder *b, const char *path)
{
    uint8_t *data = NULL;
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_file_read(&data, &len, path, MAX_FILE));
    for (char *line = (char *)data, *next; *line; line = next) {
        size_t n = strcspn(line, "\r\n");
        next = line + n + (line[n] != '\0');
        line[n] = '\0';
        if (n) FKT_TRY(add_name(b, line, path));
    }
out:
    fkt_free(data);
    return st;
}

fkt_status fkt_classes_from_json(struct fkt_dataset_builder *b, const char *folder)
{
    char *path = NULL;
    uint8_t *data = NULL;
    size_t len;
    json_t *root = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&path, folder, "classes.json"));
    if (access(path, F_OK) != 0) goto out;
    FKT_TRY(fkt_file_read(&data, &len, path, MAX_FILE));
    root = json_loadb((const char *)data, len, 0, NULL);
    for (size_t i = 0; i < json_array_size(root); i++) {
        const char *name = json_string_value(json_array_get(root, i));
        if (!name || !*name) break;
        FKT_TRY(add_name(b, name, path));
    }
    if (!json_is_array(root) || b->ds->k != json_array_size(root) || b->ds->k == 0)
        st = fkt_fail_hint(FKT_E_FORMAT, "remove it to go by numbers", "'%s' is not a JSON array of class names", path);
out:
    json_decref(root);
    fkt_free(data);
    fkt_free(path);
    return st;
}

/* Gives both lists when the file is an array of names; else neither. */
static fkt_status take_folders(struct fkt_dataset_builder *b, const json_t *root)
{
    size_t n = json_is_array(root) ? json_array_size(root) : 0;
    fkt_status st = FKT_OK;
    if (n < 1 || n > FKT_CLASSES_MAX) return FKT_OK;
    for (size_t i = 0; i < n; i++)
        if (!json_string_length(json_array_get(root, i))) return FKT_OK;
    FKT_TRY(fkt_alloc(&b->folder_classes, n));
    b->n_folders = n;
    for (size_t i = 0; i < n; i++)
        FKT_TRY(fkt_strdup(&b->folder_classes[i], json_string_value(json_array_get(root, i))));
    FKT_TRY(fkt_folder_names(&b->folders, (const char *const *)b->folder_classes, n));
out:
    return st;
}

fkt_status fkt_classes_of_folders(struct fkt_dataset_builder *b, const char *folder)
{
    char *path = NULL;
    uint8_t *data = NULL;
    size_t len;
    json_t *root = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&path, folder, "classes.json"));
    if (access(path, R_OK) != 0) goto out;
    st = fkt_file_read(&data, &len, path, MAX_FILE);
    if (st == FKT_E_NOMEM) goto out;
    if (st == FKT_OK) root = json_loadb((const char *)data, len, 0, NULL);
    st = root ? take_folders(b, root) : FKT_OK;
out:
    json_decref(root);
    fkt_free(data);
    fkt_free(path);
    return st;
}
