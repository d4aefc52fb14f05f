/* SPDX-License-Identifier: Apache-2.0 */
/* transparency_log.c - lines of JSON, each with the SHA-256 of the line before it (docs/http.md 5.1).
 *
 *   {"at":...,"entry":7,"event":"begin",...,"prev":"<hash of line 6>"}      head = hash of the last line
 *
 * Lines are in the one canonical form of json.c, so that they can be checked with or without a JSON parser. They are
 * in the journal, in the transaction of what they record; the file is written from them when the log has ended. A site
 * that received a head can check later that the published log is the one that was kept.
 *
 * Cost: one hash and one row a line. Opening reads all lines once. */
#include "server/transparency_log.h"

#include "task/task.h"

#include "base/alloc.h"
#include "base/file.h"

#include <string.h>

static void nothing(struct fkt_log_writer_head *h)
{
    h->entry = 0;
    memset(h->sha256, '0', sizeof h->sha256 - 1);
    h->sha256[sizeof h->sha256 - 1] = '\0';
}

static fkt_status take_file(struct fkt_log_writer *log, const json_t *j)
{
    const char *name = json_string_value(json_object_get(j, "name"));
    const char *sha256 = json_string_value(json_object_get(j, "sha256"));
    const json_int_t bytes = json_integer_value(json_object_get(j, "bytes"));
    struct fkt_log_writer_file *f = &log->file[log->files < FKT_LOG_WRITER_FILES ? log->files : 0];
    if (log->files >= FKT_LOG_WRITER_FILES || !name || strlen(name) >= sizeof f->name || !sha256 ||
        strlen(sha256) != FKT_HASH_HEX - 1 || bytes < 0)
        return fkt_fail(FKT_E_FORMAT, "the journal is damaged: line %llu of the transparency log names an unknown file",
                        (unsigned long long)log->last.entry);
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->sha256, sizeof f->sha256, "%s", sha256);
    f->bytes = (uint64_t)bytes;
    log->files++;
    return FKT_OK;
}

/* Does this line continue the chain? */
static fkt_status follow(void *self, uint64_t entry, const char *line)
{
    struct fkt_log_writer *log = self;
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *prev = json_string_value(json_object_get(j, "prev"));
    const char *event = json_string_value(json_object_get(j, "event"));
    json_int_t number = json_integer_value(json_object_get(j, "entry"));
    fkt_status st = FKT_OK;
    if (log->ended || entry != log->last.entry + 1 || number < 1 || (uint64_t)number != entry || !event || !prev ||
        strcmp(prev, log->last.sha256) != 0)
        st = fkt_fail_hint(FKT_E_FORMAT, "restore the state folder from a copy",
                           "the journal is damaged: line %llu of the log does not follow the one before it",
                           (unsigned long long)(log->last.entry + 1));
    else {
        log->last.entry = entry;
        log->ended = !strcmp(event, "end");
        fkt_hash_bytes_hex(log->last.sha256, line, strlen(line));
        if (!strcmp(event, "file")) st = take_file(log, j);
    }
    json_decref(j);
    return st;
}

fkt_status fkt_log_writer_open(struct fkt_log_writer *log, struct fkt_journal *journal)
{
    fkt_status st;
    memset(log, 0, sizeof *log);
    log->journal = journal;
    nothing(&log->last);
    st = fkt_journal_lines(journal, follow, log);
    log->settled = log->last;
    return st;
}

fkt_status fkt_log_writer_add(struct fkt_log_writer *log, uint64_t at, const char *event, json_t *fields)
{
    char *line = NULL;
    fkt_status st;
    if (log->ended) {
        json_decref(fields);
        return fkt_fail(FKT_E_STATE, "the transparency log has ended");
    }
    if (fields && (json_object_set_new(fields, "entry", json_integer((json_int_t)(log->last.entry + 1))) != 0 ||
                   json_object_set_new(fields, "at", json_integer((json_int_t)at)) != 0 ||
                   json_object_set_new(fields, "event", json_string(event)) != 0 ||
                   json_object_set_new(fields, "prev", json_string(log->last.sha256)) != 0)) {
        json_decref(fields);
        fields = NULL;
    }
    FKT_TRY(fkt_json_text(&line, fields, 0));
    FKT_TRY(fkt_journal_line(log->journal, log->last.entry + 1, line));
    log->last.entry++;
    fkt_hash_bytes_hex(log->last.sha256, line, strlen(line));
    log->ended = !strcmp(event, "end");
out:
    fkt_free(line);
    return st;
}

void fkt_log_writer_settled(struct fkt_log_writer *log) { log->settled = log->last; }

static fkt_status put_line(void *self, uint64_t entry, const char *line)
{
    struct fkt_file *f = self;
    (void)entry;
    if (fputs(line, f->stream) < 0 || fputc('\n', f->stream) < 0) return fkt_io_fail("write", f->path);
    return FKT_OK;
}

fkt_status fkt_log_writer_write(struct fkt_log_writer *log, const char *path)
{
    struct fkt_file f = {0};
    fkt_status st;
    FKT_TRY(fkt_file_begin(&f, path, FKT_FILE_REPLACE));
    FKT_TRY(fkt_journal_lines(log->journal, put_line, &f));
    FKT_TRY(fkt_file_commit(&f));
out:
    fkt_file_clear(&f);
    return st;
}
