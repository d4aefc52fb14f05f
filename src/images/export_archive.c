/* SPDX-License-Identifier: Apache-2.0 */
/* export_archive.c - zip and tar through libarchive, without any trace of machine, user or time.
 *
 * tar (ustar): times are 1 January 1980 UTC, owner 0. zip: its clock field is local time, so the entry's time is 1970,
 * which libarchive clamps to the field's smallest value in every time zone. Entries are deflated, never merely stored:
 * a zip written without seeking puts sizes after the data, and only deflated data shows its own end to a reader that
 * streams. */
#include "images/export.h"

#include "base/alloc.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

enum { TAR_TIME = 315532800 };

/* A write that failed, or else what libarchive itself has to say; FKT_OK when all is good and nothing was lost. */
static fkt_status answer(struct fkt_export *e, int good)
{
    const char *text = archive_error_string(e->archive);
    if (e->lost) {
        errno = e->lost;
        return fkt_io_fail("write", e->file.path); /* one sentence, whether this write failed or the last one */
    }
    if (good) return FKT_OK;
    if (archive_errno(e->archive) == ENOMEM)
        return fkt_fail(FKT_E_NOMEM, "out of memory: cannot write '%s'", e->file.path);
    return fkt_fail(FKT_E_IO, "cannot write '%s': %s", e->file.path, text ? text : "unknown failure");
}

/* Never fails as far as libarchive knows: after a failed write, version 3.6 leaks its buffers when freed. */
static la_ssize_t to_stream(struct archive *a, void *client, const void *data, size_t n)
{
    struct fkt_export *e = client;
    (void)a;
    if (!e->lost && fwrite(data, 1, n, e->file.stream) != n) e->lost = errno ? errno : EIO;
    return (la_ssize_t)n;
}

fkt_status fkt_export_archive_begin(struct fkt_export *e, const char *file_name, int zip)
{
    char *path = NULL;
    fkt_status st;
    int r;

    FKT_TRY(fkt_path_join(&path, e->path, file_name));
    FKT_TRY(fkt_file_begin(&e->file, path, 0));
    e->archive = archive_write_new();
    if (!e->archive) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory: cannot write '%s'", path);
        goto out;
    }
    r = zip ? archive_write_set_format_zip(e->archive) : archive_write_set_format_ustar(e->archive);
    if (r == ARCHIVE_OK && zip) r = archive_write_zip_set_compression_deflate(e->archive);
    if (r == ARCHIVE_OK && zip) r = archive_write_set_bytes_in_last_block(e->archive, 1);
    if (r == ARCHIVE_OK) r = archive_write_open(e->archive, e, NULL, to_stream, NULL);
    st = answer(e, r == ARCHIVE_OK);
out:
    fkt_free(path);
    if (st != FKT_OK) fkt_export_archive_drop(e);
    return st;
}

fkt_status fkt_export_archive_entry(struct fkt_export *e, const char *name, uint64_t size)
{
    struct archive_entry *entry = archive_entry_new();
    int zip = (archive_format(e->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
    fkt_status st;
    if (!entry) return fkt_fail(FKT_E_NOMEM, "out of memory: cannot write '%s'", e->file.path);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, zip ? 0 : TAR_TIME, 0);
    st = answer(e, archive_write_header(e->archive, entry) == ARCHIVE_OK);
    archive_entry_free(entry);
    return st;
}

fkt_status fkt_export_archive_data(struct fkt_export *e, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        la_ssize_t n = archive_write_data(e->archive, p, len);
        fkt_status st = answer(e, n > 0);
        if (st != FKT_OK) return st;
        p += n;
        len -= (size_t)n;
    }
    return FKT_OK;
}

fkt_status fkt_export_archive_end(struct fkt_export *e)
{
    fkt_status st = answer(e, archive_write_close(e->archive) == ARCHIVE_OK);
    if (st != FKT_OK) {
        fkt_export_archive_drop(e);
        return st;
    }
    archive_write_free(e->archive);
    e->archive = NULL;
    return fkt_file_commit(&e->file);
}

void fkt_export_archive_drop(struct fkt_export *e)
{
    if (e->archive) {
        e->lost = ECANCELED; /* free finishes the archive first: let it, into nothing */
        archive_write_free(e->archive);
        e->archive = NULL;
    }
    fkt_file_clear(&e->file);
}
