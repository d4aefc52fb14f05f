/* SPDX-License-Identifier: Apache-2.0 */
/* moments_file.c - a site's exact moments in a file. PRIVATE: no noise is in them yet.
 * The bytes depend on the task and the integers alone, so two ways of computing the same moments give identical
 * files. */
#include "fedkt/round.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"
#include "tensor/safetensors.h"

#include <string.h>

#define FORMAT "fedkt.moments/1"

fkt_status fkt_moments_sha256(struct fkt_moments *m, char out[FKT_SHA256_HEX])
{
    const int64_t *packed;
    struct fkt_hash h;
    size_t n = fkt_moments_classes(m) * fkt_moments_block(fkt_moments_length(m));
    fkt_status st = fkt_moments_packed(m, &packed);
    if (st != FKT_OK) return st;
    fkt_hash_init(&h);
    fkt_hash_add(&h, packed, n * sizeof *packed);
    fkt_hash_hex(&h, out);
    return FKT_OK;
}

fkt_status fkt_moments_save(struct fkt_moments *m, const struct fkt_task *task, const char *path, int force)
{
    struct fkt_st_writer *w = NULL;
    const int64_t *packed;
    uint64_t shape[2] = {fkt_moments_classes(m), fkt_moments_block(fkt_moments_length(m))};
    fkt_status st;
    FKT_TRY(fkt_moments_packed(m, &packed));
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_st_writer_meta(w, "format", FORMAT));
    FKT_TRY(fkt_st_writer_meta(w, "secret", "yes: exact sums without noise; must not leave the site unprotected"));
    FKT_TRY(fkt_st_writer_meta(w, "task_sha256", task->sha256));
    FKT_TRY(fkt_st_writer_add(w, "moments", FKT_I64, 2, shape, packed));
    FKT_TRY(fkt_st_writer_write(w, path, (force ? FKT_FILE_REPLACE : 0) | FKT_FILE_PRIVATE));
out:
    fkt_st_writer_free(w);
    return st;
}

fkt_status fkt_moments_load(struct fkt_moments *into, const struct fkt_task *task, const char *path)
{
    struct fkt_safetensors *file = NULL;
    const struct fkt_tensor *t;
    const char *format, *hash;
    int64_t *packed = NULL;
    uint64_t shape[2] = {fkt_moments_classes(into), fkt_moments_block(fkt_moments_length(into))};
    fkt_status st;
    FKT_TRY(fkt_safetensors_open(&file, path));
    format = fkt_safetensors_meta(file, "format");
    hash = fkt_safetensors_meta(file, "task_sha256");
    if (!format || strcmp(format, FORMAT) != 0 || !hash) {
        st = fkt_fail_hint(FKT_E_FORMAT, "give a file made by 'fedkt moments'", "'%s' is not a moments file", path);
        goto out;
    }
    if (strcmp(hash, task->sha256) != 0) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "compute the moments again with this task",
                           "moments '%s' were made for task %.12s, not for this one (%.12s)", path, hash, task->sha256);
        goto out;
    }
    FKT_TRY(fkt_safetensors_want(file, &t, "moments", FKT_I64, 2, shape));
    FKT_TRY(fkt_alloc(&packed, (size_t)t->count));
    memcpy(packed, t->data, (size_t)t->count * sizeof *packed);
    FKT_TRY(fkt_fail_in(fkt_moments_add_packed(into, packed), "'%s'", path));
out:
    fkt_free(packed);
    fkt_safetensors_free(file);
    return fkt_hint(st, "make the file again with 'fedkt moments'");
}
