/* SPDX-License-Identifier: Apache-2.0 */
/* release_file.c - a release on its way to the disk.
 *
 *   reserve: temporary file, space for all of it  ->  the ledger pays  ->  noise is drawn
 *                                                                            ->  write: bytes, sync, rename
 *
 * A disk that is full after the ledger has paid would lose the release and its budget: noise must not be drawn twice
 * for one charge. So the space is taken first, as much as a release of the same task with zeros for moments needs: its
 * length is that of the real one but for the digits of some numbers in the certificate, for which there is room to
 * spare. The ledger's own commit is then the last step that needs space, and it changes nothing when it fails. */
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/hash.h"

enum { SPARE = 4096 }; /* beyond the length of the release with zeros */

struct fkt_release_file {
    struct fkt_file file;
};

/* More digits than any epsilon of a ledger has. */
static fkt_status longest(const struct fkt_task *task, const struct fkt_calibration *calibration,
                          const struct fkt_round_facts *facts, size_t *len)
{
    struct fkt_round_facts most = *facts;
    struct fkt_release zeros = {0};
    uint8_t *bytes = NULL;
    fkt_status st;
    most.composed_epsilon = 1.2345678901234567e+100;
    FKT_TRY(fkt_release_begin(&zeros, task, calibration, &most));
    FKT_TRY(fkt_release_bytes(&zeros, &bytes, len));
    *len += SPARE;
out:
    fkt_free(bytes);
    fkt_release_clear(&zeros);
    return st;
}

fkt_status fkt_release_reserve(struct fkt_release_file **out, const struct fkt_task *task,
                               const struct fkt_calibration *calibration, const struct fkt_round_facts *facts,
                               const char *path, int force)
{
    struct fkt_release_file *f = NULL;
    size_t len = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(longest(task, calibration, facts, &len));
    FKT_TRY(fkt_alloc(&f, 1));
    FKT_TRY(fkt_file_begin(&f->file, path, force ? FKT_FILE_REPLACE : 0));
    FKT_TRY(fkt_file_reserve(&f->file, len));
    *out = f;
    f = NULL;
out:
    fkt_release_file_free(f);
    return st;
}

static fkt_status write_all(struct fkt_file *f, struct fkt_release *r)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    fkt_status st;
    FKT_TRY(fkt_release_bytes(r, &bytes, &len));
    fkt_hash_bytes_hex(r->sha256, bytes, len);
    (void)!fwrite(bytes, 1, len, f->stream); /* a short write leaves the stream's error flag, which commit sees */
    FKT_TRY(fkt_file_commit(f));
out:
    fkt_free(bytes);
    return st;
}

fkt_status fkt_release_write(struct fkt_release_file *f, struct fkt_release *r) { return write_all(&f->file, r); }

void fkt_release_file_free(struct fkt_release_file *f)
{
    if (!f) return;
    fkt_file_clear(&f->file);
    fkt_free(f);
}

fkt_status fkt_release_save(struct fkt_release *r, const char *path, int force)
{
    struct fkt_file f = {0};
    fkt_status st;
    FKT_TRY(fkt_file_begin(&f, path, force ? FKT_FILE_REPLACE : 0));
    FKT_TRY(write_all(&f, r));
out:
    fkt_file_clear(&f);
    return st;
}
