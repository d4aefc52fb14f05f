/* SPDX-License-Identifier: Apache-2.0 */
/* cifar.c - CIFAR-10 and CIFAR-100, binary version (Krizhevsky 2009): records without any header.
 *
 *   CIFAR-10   label (1)            1024 red, 1024 green, 1024 blue     3073 bytes
 *   CIFAR-100  coarse (1) fine (1)  the same                            3074 bytes; the fine label counts
 *
 * A folder holds data_batch_1.bin .. data_batch_5.bin and test_batch.bin, or train.bin and test.bin, and the names of
 * the classes in a text file; without that file the classes are numbers. A single .bin works too, with the names beside
 * it. There is no magic number: a size that is a whole number of records is the mark, and every label is checked. */
#include "images/formats.h"

#include "base/alloc.h"
#include "base/file.h"
#include "images/packed.h"

#include <string.h>
#include <unistd.h>

enum { PIXELS = 3072, RECORD10 = PIXELS + 1, RECORD100 = PIXELS + 2 };

static const struct file {
    const char *name, *split;
    int hundred;
} files[] = {{"data_batch_1.bin", "train", 0}, {"data_batch_2.bin", "train", 0}, {"data_batch_3.bin", "train", 0},
             {"data_batch_4.bin", "train", 0}, {"data_batch_5.bin", "train", 0}, {"test_batch.bin", "test", 0},
             {"train.bin", "train", 1},        {"test.bin", "test", 1}};

static const struct file *find(const char *name)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(name, files[i].name)) return &files[i];
    return NULL;
}

int fkt_cifar_knows(const char *file_name) { return find(file_name) != NULL; }
int fkt_cifar_fits(uint64_t size) { return size > 0 && (size % RECORD10 == 0 || size % RECORD100 == 0); }

/* The names beside the data, or numbers. */
static fkt_status add_classes(struct fkt_dataset_builder *b, const char *folder, int hundred)
{
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&path, folder, hundred ? "fine_label_names.txt" : "batches.meta.txt"));
    if (access(path, R_OK) == 0) FKT_TRY(fkt_classes_from_lines(b, path));
    else FKT_TRY(fkt_builder_numbers(b, hundred ? 100 : 10));
out:
    fkt_free(path);
    return st;
}

/* Takes the source. */
static fkt_status add_file(struct fkt_dataset_builder *b, struct fkt_packed *p, struct fkt_source *source,
                           const char *path, const char *split, int hundred)
{
    const uint64_t record = hundred ? RECORD100 : RECORD10, skip = record - PIXELS;
    struct fkt_section s = {.n = (size_t)(source->size / record),
                            .at = skip,
                            .stride = record,
                            .w = 32,
                            .h = 32,
                            .channels = 3,
                            .planar = 1,
                            .source = *source};
    uint64_t size = source->size;
    fkt_status st;
    fkt_source_init(source);
    FKT_TRY(fkt_packed_add(p, &s));
    if (size == 0 || size % record) {
        st = fkt_fail_hint(FKT_E_FORMAT, "fetch the file again",
                           "'%s' is truncated: %llu bytes are no whole number of %llu-byte records", path,
                           (unsigned long long)size, (unsigned long long)record);
        goto out;
    }
    for (size_t i = 0; i < s.n; i++) {
        uint8_t label;
        FKT_TRY(fkt_source_read(&p->sections[p->n - 1].source, i * record + skip - 1, &label, 1));
        if (label >= b->ds->k) {
            st = fkt_fail(FKT_E_FORMAT, "'%s[%zu]' has the label %u, out of range: %zu classes", path, i, label,
                          b->ds->k);
            goto out;
        }
        FKT_TRY(fkt_builder_add(b, label, split, "%s[%zu]", path, i));
    }
out:
    return st;
}

fkt_status fkt_cifar_open(struct fkt_dataset_builder *b, const char *path, struct fkt_source *source)
{
    const char *slash = strrchr(path, '/');
    const struct file *known = find(slash ? slash + 1 : path);
    int hundred = known ? known->hundred : source->size % RECORD10 != 0;
    struct fkt_packed *p = NULL;
    char *folder = NULL;
    fkt_status st;
    FKT_TRY(fkt_strdup(&folder, slash ? path : "."));
    if (slash) folder[slash == path ? 1 : slash - path] = '\0';
    FKT_TRY(fkt_packed_new(&p, b, hundred ? &fkt_packed_cifar100 : &fkt_packed_cifar10));
    FKT_TRY(add_classes(b, folder, hundred));
    FKT_TRY(add_file(b, p, source, path, known ? known->split : NULL, hundred));
out:
    fkt_source_close(source);
    fkt_free(folder);
    return st;
}

fkt_status fkt_cifar_open_folder(struct fkt_dataset_builder *b, const char *path)
{
    struct fkt_packed *p = NULL;
    struct fkt_source source;
    char *file = NULL;
    fkt_status st = FKT_OK;
    fkt_source_init(&source);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fkt_free(file);
        FKT_TRY(fkt_path_join(&file, path, files[i].name));
        if (access(file, F_OK) != 0) continue;
        if (!p) {
            FKT_TRY(fkt_packed_new(&p, b, files[i].hundred ? &fkt_packed_cifar100 : &fkt_packed_cifar10));
            FKT_TRY(add_classes(b, path, files[i].hundred));
        } else if ((b->ds->vt == &fkt_packed_cifar100) != files[i].hundred) {
            st = fkt_fail(FKT_E_FORMAT, "'%s' holds both CIFAR-10 and CIFAR-100", path);
            goto out;
        }
        FKT_TRY(fkt_source_open(&source, file));
        FKT_TRY(add_file(b, p, &source, file, files[i].split, files[i].hundred));
    }
out:
    fkt_source_close(&source);
    fkt_free(file);
    return st;
}
