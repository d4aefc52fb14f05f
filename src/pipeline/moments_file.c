/* SPDX-License-Identifier: Apache-2.0 */
/* moments_file.c - a site's exact moments in a file, and the digests of the images in them. PRIVATE: there is no noise
 * yet. The bytes depend on the task, the integers and the images alone, so two ways of computing the same moments give
 * identical files. `release` gives the digests to the ledger, and finds images that are in two files by them. */
#include "fedkt/advanced/moments.h"
#include "fedkt/pipeline.h"

#include "pipeline/records.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "base/file.h"
#include "crypto/hash.h"
#include "task/task.h"
#include "tensor/safetensors.h"

#include <string.h>

#define FORMAT "fedkt.moments/2"
#define OLD_FORMAT "fedkt.moments/1"

fkt_status fkt_moments_sha256(struct fkt_moments *m, char out[FKT_SHA256_HEX])
{
    const int64_t *packed;
    struct fkt_hash h;
    size_t n = fkt_moments_numbers(m);
    fkt_status st = fkt_moments_packed(m, &packed);
    if (st != FKT_OK) return st;
    fkt_hash_init(&h);
    fkt_hash_add(&h, packed, n * sizeof *packed);
    fkt_hash_hex(&h, out);
    return FKT_OK;
}

static fkt_status check_layout(const struct fkt_moments *m, const struct fkt_task *task)
{
    if (fkt_moments_classes(m) == task->n_classes && fkt_layout_equal(fkt_moments_layout(m), &task->layout))
        return FKT_OK;
    return fkt_fail(FKT_E_MISMATCH, "the moments do not fit the task");
}

fkt_status fkt_moments_save(struct fkt_moments *m, const struct fkt_task *task, struct fkt_records *records,
                            const char *path, int force)
{
    struct fkt_st_writer *w = NULL;
    const struct fkt_record_digest *digests;
    size_t n;
    const int64_t *packed;
    uint64_t shape[2];
    const unsigned rank = fkt_task_moments_shape(task, shape);
    fkt_status st = check_layout(m, task);
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_moments_packed(m, &packed));
    FKT_TRY(fkt_records_list(records, &digests, &n));
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_st_writer_meta(w, "format", FORMAT));
    FKT_TRY(fkt_st_writer_meta(w, "secret", "yes: exact sums without noise; must not leave the site unprotected"));
    FKT_TRY(fkt_st_writer_meta(w, "task_sha256", task->sha256));
    FKT_TRY(fkt_st_writer_add(w, "moments", FKT_I64, rank, shape, packed));
    FKT_TRY(fkt_st_writer_add(w, "records", FKT_U8, 2, (uint64_t[]){n, FKT_RECORD_DIGEST}, digests));
    FKT_TRY(fkt_st_writer_write(w, path, (force ? FKT_FILE_REPLACE : 0) | FKT_FILE_PRIVATE));
out:
    fkt_st_writer_free(w);
    return st;
}

/* Unsorted digests could hide a duplicate; an empty list could hide records. */
static fkt_status load_records(struct fkt_records *out, const struct fkt_safetensors *file, const int64_t *packed,
                               const struct fkt_task *task, const char *path)
{
    const struct fkt_tensor *t = fkt_safetensors_find(file, "records");
    uint64_t n = t && t->rank == 2 ? t->shape[0] : 0, counted = 0;
    fkt_status st;
    FKT_TRY(fkt_safetensors_want(file, &t, "records", FKT_U8, 2, (uint64_t[]){n, FKT_RECORD_DIGEST}));
    for (uint32_t k = 0; k < task->n_classes; k++)
        counted += (uint64_t)packed[fkt_layout_count(&task->layout, task->n_classes, k)];
    if (n > counted || !n != !counted)
        st = fkt_fail(FKT_E_FORMAT, "moments '%s': digests of %llu images, though %llu records were counted", path,
                      (unsigned long long)n, (unsigned long long)counted);
    for (uint64_t i = 0; i < n && st == FKT_OK; i++) {
        const struct fkt_record_digest *d = (const struct fkt_record_digest *)t->data + i;
        if (i && memcmp(d - 1, d, sizeof *d) >= 0)
            st = fkt_fail(FKT_E_FORMAT, "moments '%s': digest %llu is not above the one before it", path,
                          (unsigned long long)i);
        else st = fkt_records_add_image(out, d);
    }
out:
    return st;
}

static fkt_status check_file(const struct fkt_safetensors *file, const struct fkt_task *task, const char *path)
{
    const char *format = fkt_safetensors_meta(file, "format"), *hash = fkt_safetensors_meta(file, "task_sha256");
    if (format && !strcmp(format, OLD_FORMAT))
        return fkt_fail(FKT_E_FORMAT, "moments '%s' are of an older form, which does not say which images are in them",
                        path);
    if (!format || strcmp(format, FORMAT) != 0 || !hash)
        return fkt_fail(FKT_E_FORMAT, "'%s' is not a moments file", path);
    if (strcmp(hash, task->sha256) != 0)
        return fkt_fail_hint(FKT_E_MISMATCH, "compute the moments again with this task",
                             "moments '%s' were made for task %.12s, not for this one (%.12s)", path, hash,
                             task->sha256);
    return FKT_OK;
}

fkt_status fkt_moments_load(struct fkt_moments *into, const struct fkt_task *task, const char *path,
                            struct fkt_records *records)
{
    struct fkt_safetensors *file = NULL;
    const struct fkt_tensor *t;
    int64_t *packed = NULL;
    uint64_t shape[2];
    const unsigned rank = fkt_task_moments_shape(task, shape);
    fkt_status st;
    FKT_TRY(check_layout(into, task));
    FKT_TRY(fkt_safetensors_open(&file, path));
    FKT_TRY(check_file(file, task, path));
    FKT_TRY(fkt_safetensors_want(file, &t, "moments", FKT_I64, rank, shape));
    FKT_TRY(fkt_alloc(&packed, (size_t)t->count));
    memcpy(packed, t->data, (size_t)t->count * sizeof *packed);
    FKT_TRY(fkt_fail_in(fkt_moments_add_packed(into, packed), "'%s'", path));
    FKT_TRY(load_records(records, file, packed, task, path));
out:
    fkt_free_secret(packed);
    fkt_safetensors_free(file);
    return fkt_hint_code(st, FKT_HINT_MOMENTS_FILE, "give a moments file, or make it again");
}
