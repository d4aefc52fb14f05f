/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_support.h - what several targets need: input bytes as a file of a given name, and reading a whole dataset.
 *
 * Dataset readers look at names as well as at contents, so the bytes go into a private folder (in memory where the
 * system has /dev/shm) that lives as long as the process. */
#ifndef FKT_FUZZ_SUPPORT_H
#define FKT_FUZZ_SUPPORT_H

#include "fedkt/image.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise of the library that the input broke: stop here, so that the input is kept. */
#define FUZZ_CHECK(cond)                                                                                               \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);                                       \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#define FUZZ_NAMES 4 /* different file names in one target */

struct fuzz_folder {
    char path[64];
    pid_t owner;
    char files[FUZZ_NAMES][128];
    size_t n;
};

static struct fuzz_folder fuzz_here;

static inline void fuzz_folder_remove(void)
{
    if (fuzz_here.owner != getpid()) return;
    for (size_t i = 0; i < fuzz_here.n; i++) unlink(fuzz_here.files[i]);
    rmdir(fuzz_here.path);
}

/* The folder that holds the files; made on first use. */
static inline const char *fuzz_folder(void)
{
    if (fuzz_here.owner == getpid()) return fuzz_here.path;
    fuzz_here.n = 0;
    snprintf(fuzz_here.path, sizeof fuzz_here.path, "/dev/shm/fedkt-fuzz-XXXXXX");
    if (!mkdtemp(fuzz_here.path)) {
        snprintf(fuzz_here.path, sizeof fuzz_here.path, "/tmp/fedkt-fuzz-XXXXXX");
        FUZZ_CHECK(mkdtemp(fuzz_here.path) != NULL);
    }
    fuzz_here.owner = getpid();
    FUZZ_CHECK(atexit(fuzz_folder_remove) == 0);
    return fuzz_here.path;
}

/* Writes the bytes as folder/name; the path stays valid for the process's life. */
static inline const char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
    char path[128];
    size_t i;
    int fd;
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    for (i = 0; i < fuzz_here.n && strcmp(fuzz_here.files[i], path) != 0; i++) continue;
    if (i == fuzz_here.n) {
        FUZZ_CHECK(fuzz_here.n < FUZZ_NAMES);
        memcpy(fuzz_here.files[fuzz_here.n++], path, sizeof path);
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    return fuzz_here.files[i];
}

/* When `path` opens as a dataset, all that the header promises must hold; the first three records are read. */
static inline void fuzz_dataset(const char *path)
{
    enum { SIDE = 8, RECORDS = 3 };
    struct fkt_dataset *ds = NULL;
    uint8_t rgb[SIDE * SIDE * 3];
    size_t n;
    if (fkt_dataset_open(&ds, path, NULL) != FKT_OK) {
        FUZZ_CHECK(ds == NULL && fkt_error_text()[0] != '\0');
        return;
    }
    n = fkt_dataset_size(ds);
    FUZZ_CHECK(fkt_dataset_format(ds)[0] != '\0');
    for (size_t k = 0; k < fkt_dataset_classes(ds); k++) FUZZ_CHECK(fkt_dataset_class(ds, k) != NULL);
    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(fkt_dataset_label(ds, i) < fkt_dataset_classes(ds));
        FUZZ_CHECK(fkt_dataset_name(ds, i) != NULL);
        if (i < RECORDS && fkt_dataset_read(ds, i, SIDE, FKT_FILTER_BILINEAR, rgb, NULL) != FKT_OK)
            FUZZ_CHECK(fkt_error_text()[0] != '\0');
    }
    fkt_dataset_free(ds);
}

#endif
