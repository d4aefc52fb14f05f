/* SPDX-License-Identifier: Apache-2.0 */
/* folders.c - the folders of a task: the private one, the public one, and to which state the public one belongs.
 *
 *   state folder (0700)   journal.db with the facts `state` (a random name of it), `per-class` and `format`
 *   public folder         .fedkt-server: "<hash of the task> <name of the state>"
 *
 * A public folder belongs to one state. It is marked before anything is written into it. A folder without our mark that
 * holds a file with one of our names may be somebody's release, which cannot be made again: it is refused, and so is
 * one with the mark of another state, even of the same task. Temporary files are removed only in a folder of ours: the
 * journal's lock shows that the process that made them is gone.
 *
 * The number and format of the images are fixed at the first start: the log lists the files by their hashes, and a
 * server with other settings could not make the same files again.
 *
 * What could fail at the end is tried at the beginning: an empty dataset is begun where the real one will be. */
#include "server/server.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "crypto/entropy.h"
#include "task/task.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MARK ".fedkt-server"
#define PER_CLASS 100
#define TASK_HEX (2 * (size_t)32)
#define STATE_HEX (2 * (size_t)16)

static const char *const names[FKT_SERVER_PATHS] = {[FKT_SERVER_RELEASE] = "release.safetensors",
                                                    [FKT_SERVER_CERTIFICATE] = "certificate.json",
                                                    [FKT_SERVER_LOG] = "transparency.jsonl",
                                                    [FKT_SERVER_GRID] = "grid.png",
                                                    [FKT_SERVER_DATASET] = "dataset"};

/* ---- fixed at the first start ---- */

/* The stored fact; if there is none, `said` is stored. Gives *value. */
static fkt_status once(struct fkt_server *h, const char *fact, const char *said, char **value)
{
    fkt_status st;
    FKT_TRY(fkt_journal_fact(h->journal, fact, value));
    if (*value) goto out;
    FKT_TRY(fkt_journal_fact_put(h->journal, fact, said));
    FKT_TRY(fkt_strdup(value, said));
out:
    return st;
}

static fkt_status damaged(void)
{
    return fkt_fail(FKT_E_FORMAT, "the journal is damaged: the settings of the first start are invalid");
}

static fkt_status settle_choices(struct fkt_server *h, const struct fkt_server_spec *spec)
{
    const size_t wanted = spec->per_class;
    char said[32], *count = NULL, *format = NULL;
    uint64_t per_class = 0;
    fkt_status st;
    snprintf(said, sizeof said, "%zu", wanted ? wanted : PER_CLASS);
    FKT_TRY(once(h, "per-class", said, &count));
    FKT_TRY(once(h, "format", fkt_export_name(spec->format), &format));
    if (fkt_parse_u64(&per_class, count, UINT32_MAX) != FKT_OK || !per_class || fkt_export_parse(format) < 0)
        FKT_TRY(damaged());
    h->finish.per_class = (size_t)per_class;
    h->finish.format = (enum fkt_export_format)fkt_export_parse(format);
    if ((wanted && wanted != h->finish.per_class) || spec->format != h->finish.format)
        st = fkt_hint_code(fkt_fail(FKT_E_MISMATCH,
                                    "this server was first started for %s images per class as %s, not %s as %s", count,
                                    format, wanted ? said : count, fkt_export_name(spec->format)),
                           FKT_HINT_SERVER_CHOICES, "ask for the same number and format as at the first start");
out:
    fkt_free(count);
    fkt_free(format);
    return st;
}

/* ---- to which state a folder belongs ---- */

static fkt_status make_mark(struct fkt_server *h, char mark[TASK_HEX + STATE_HEX + 3])
{
    struct fkt_entropy os;
    uint8_t random[STATE_HEX / 2];
    char fresh[STATE_HEX + 1], *name = NULL;
    fkt_status st;
    fkt_entropy_os(&os);
    FKT_TRY(os.fill(os.self, random, sizeof random));
    fkt_hex(fresh, random, sizeof random);
    FKT_TRY(once(h, "state", fresh, &name));
    if (!fkt_unhex(random, name, sizeof random)) FKT_TRY(damaged());
    snprintf(mark, TASK_HEX + STATE_HEX + 3, "%s %s\n", h->task->sha256, name);
out:
    fkt_free(name);
    return st;
}

/* Is an existing mark ours? */
static fkt_status check_mark(const struct fkt_server *h, const char *path, const char *mark)
{
    uint8_t *found = NULL;
    size_t len = 0;
    fkt_status st;
    FKT_TRY(fkt_file_read(&found, &len, path, 4096));
    if (len == strlen(mark) && memcmp(found, mark, len) == 0) goto out;
    if (len > TASK_HEX && memcmp(found, mark, TASK_HEX) == 0)
        st = fkt_fail(FKT_E_EXISTS, "'%s' is the public folder of another state of this task", h->out);
    else st = fkt_fail(FKT_E_EXISTS, "'%s' is the public folder of another task's server", h->out);
    fkt_hint_code(st, FKT_HINT_SERVER_FOLDER, "name another public folder, or the state folder that it belongs to");
out:
    fkt_free(found);
    return st;
}

static fkt_status claim(struct fkt_server *h)
{
    char mark[TASK_HEX + STATE_HEX + 3], *path = NULL;
    struct stat sb;
    fkt_status st;
    FKT_TRY(make_mark(h, mark));
    FKT_TRY(fkt_journal_settle(h->journal, NULL)); /* a reader of the mark must find the state that it names */
    FKT_TRY(fkt_path_join(&path, h->out, MARK));
    if (lstat(path, &sb) == 0) {
        st = check_mark(h, path, mark);
        goto out;
    }
    for (size_t i = 0; i < FKT_SERVER_PATHS; i++)
        if (lstat(h->path[i], &sb) == 0) {
            st = fkt_hint_code(fkt_fail(FKT_E_EXISTS, "'%s' exists, and this server has not made it", h->path[i]),
                               FKT_HINT_SERVER_NEW_FOLDER, "name a new folder, or move what is in this one away");
            goto out;
        }
    FKT_TRY(fkt_file_write(path, mark, strlen(mark), 0));
out:
    fkt_free(path);
    return st;
}

/* What a process that was killed left under temporary names. The folder is ours, and we hold the lock. */
static void sweep(const struct fkt_server *h)
{
    DIR *d = opendir(h->out);
    struct dirent *e;
    char *path = NULL;
    while (d && (e = readdir(d)))
        for (size_t i = 0; i < FKT_SERVER_PATHS; i++) {
            size_t n = strlen(names[i]);
            if (strncmp(e->d_name, names[i], n) != 0 || strncmp(e->d_name + n, ".tmp-", 5) != 0) continue;
            if (fkt_path_join(&path, h->out, e->d_name) != FKT_OK) continue;
            fkt_remove_tree(path);
            fkt_free(path);
        }
    if (d) closedir(d);
}

fkt_status fkt_server_open_out(struct fkt_server *h, const struct fkt_server_spec *spec)
{
    fkt_status st;
    if (spec->out) FKT_TRY(fkt_strdup(&h->out, spec->out));
    else FKT_TRY(fkt_path_join(&h->out, spec->folder, "public"));
    h->finish = (struct fkt_publication){
        .pipeline = h->pipeline, .out = h->out, .threads = spec->threads, .progress = spec->progress};
    FKT_TRY(settle_choices(h, spec));
    FKT_TRY(fkt_mkdirs(h->out));
    for (size_t i = 0; i < FKT_SERVER_PATHS; i++) FKT_TRY(fkt_path_join(&h->path[i], h->out, names[i]));
    FKT_TRY(claim(h));
    sweep(h);
out:
    return st;
}

fkt_status fkt_server_try_out(const struct fkt_server *h)
{
    const struct fkt_task *t = h->task;
    struct fkt_folder f = {0};
    struct fkt_export *e = NULL;
    fkt_status st;
    FKT_TRY(fkt_folder_begin(&f, h->path[FKT_SERVER_DATASET], 1));
    FKT_TRY(fkt_export_open(&e, f.tmp, h->finish.format, "train", (const char *const *)t->classes, t->n_classes,
                            t->size, h->finish.per_class * t->n_classes));
out:
    fkt_folder_fail(&f, st);
    fkt_export_free(e);
    fkt_folder_clear(&f);
    return st;
}
