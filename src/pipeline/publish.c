/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - from the last message of a round to the public files.
 *
 *   machine in UNMASK --lanes--> total --gather, or noise drawn here--> release (bytes in memory)
 *   release bytes (in the journal by now) --> release.safetensors, certificate.json, dataset/, grid.png
 *
 * Two steps, because the release must be in the journal between them: it is made once, and files are made of it again
 * after every crash. Central noise drawn for a release that never reached the journal was never published. The
 * images come from a seed that is the beginning of the release's hash, so they are the same every time; the seed need
 * not be secret, since sampling is post-processing (docs/method.md 1.6). Files are written under temporary names.
 *
 * The certificate is made with the release and kept beside it: a server that was upgraded in between must not change
 * what the transparency log states. Once the log has ended, existing files are compared with it; a file that must be
 * made again is made under a temporary name and moved only if it has the hash in the log. */
#include "pipeline/publish.h"

#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/secagg.h"

#include "task/federation.h"
#include "pipeline/pipeline.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "crypto/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRID_MAX ((size_t)1 << 30)

/* ---- masks ---- */

struct bench {
    struct fkt_sa_server *server;
    struct fkt_sa_lane **lanes;
};

static fkt_status take_off(void *ctx, size_t job, unsigned worker)
{
    struct bench *b = ctx;
    return fkt_sa_server_job(b->server, job, b->lanes[worker]);
}

fkt_status fkt_unmask(struct fkt_sa_server *s, unsigned threads, const struct fkt_progress *progress)
{
    struct bench b = {.server = s};
    size_t jobs = fkt_sa_server_jobs(s);
    unsigned lanes = threads ? threads : fkt_cpu_count();
    fkt_status st;
    if (jobs < lanes) lanes = (unsigned)jobs;
    FKT_TRY(fkt_alloc(&b.lanes, lanes));
    for (unsigned i = 0; i < lanes; i++) FKT_TRY(fkt_sa_lane_new(&b.lanes[i], s));
    FKT_TRY(fkt_parallel(lanes ? lanes : 1, jobs, take_off, &b, progress, "unmasking"));
    FKT_TRY(fkt_sa_server_finish(s, b.lanes, lanes));
out:
    for (unsigned i = 0; b.lanes && i < lanes; i++) fkt_sa_lane_free(b.lanes[i]);
    fkt_free(b.lanes);
    return st;
}

/* ---- release ---- */

/* The sites' ledgers have paid; the ledger here covers this release alone. */
static fkt_status add_noise(struct fkt_release *r, const struct fkt_publication *f, const int64_t *total,
                            const struct fkt_round_facts *facts)
{
    const struct fkt_task *t = fkt_pipeline_task(f->pipeline);
    const uint64_t *seed = t->service.seeded ? &t->service.insecure_seed : NULL;
    struct fkt_moments *m = NULL;
    struct fkt_privacy_plan plan;
    struct fkt_ledger ledger;
    fkt_status st;
    FKT_TRY(fkt_privacy_plan(&plan, &t->privacy));
    FKT_TRY(fkt_ledger_init(&ledger, plan.mu * plan.mu, 0));
    FKT_TRY(fkt_pipeline_moments_new(f->pipeline, &m));
    FKT_TRY(fkt_moments_add_packed(m, total));
    FKT_TRY(fkt_release_make_into(r, t, fkt_pipeline_calibration(f->pipeline, 0), m, facts, &ledger, seed));
out:
    fkt_moments_free(m);
    return st;
}

fkt_status fkt_publish_release(struct fkt_publication *f, struct fkt_sa_server *s)
{
    const struct fkt_task *t = fkt_pipeline_task(f->pipeline);
    struct fkt_round_facts facts = {.sites = t->federation.sites};
    struct fkt_release r = {0};
    const uint8_t *survivors;
    const int64_t *total;
    fkt_status st;
    fkt_publication_clear(f);
    FKT_TRY(fkt_unmask(s, f->threads, f->progress));
    FKT_TRY(fkt_sa_server_total(s, &total, &survivors));
    for (uint32_t i = 0; i < facts.sites; i++) facts.survivors += survivors[i];
    if (fkt_task_has_shares(t))
        FKT_TRY(
            fkt_release_gather_into(&r, t, fkt_pipeline_calibration(f->pipeline, 0), total, &facts, t->service.seeded));
    else FKT_TRY(add_noise(&r, f, total, &facts));
    FKT_TRY(fkt_release_bytes(&r, &f->bytes, &f->len));
    FKT_TRY(fkt_release_certificate(&r, &f->certificate));
    memcpy(f->sha256, r.sha256, sizeof f->sha256);
    f->survivors = facts.survivors;
out:
    fkt_release_clear(&r);
    if (st != FKT_OK) fkt_publication_clear(f);
    return st;
}

void fkt_publication_clear(struct fkt_publication *f)
{
    fkt_free(f->bytes);
    fkt_string_free(f->certificate);
    f->bytes = NULL;
    f->certificate = NULL;
    f->len = 0;
    f->survivors = 0;
    memset(f->sha256, 0, sizeof f->sha256);
    memset(f->file, 0, sizeof f->file);
    f->known = f->bare = 0;
}

/* ---- files ---- */

const char *const fkt_publication_names[FKT_PUBLISH_FILES] = {
    [FKT_PUBLISH_DATASET] = "dataset", [FKT_PUBLISH_GRID] = "grid.png"};

/* Writes it unless it exists. */
static fkt_status put(const char *folder, const char *name, const void *bytes, size_t len)
{
    char *path = NULL, want[FKT_HASH_HEX], found[FKT_HASH_HEX];
    struct stat sb;
    fkt_status st;
    FKT_TRY(fkt_path_join(&path, folder, name));
    fkt_hash_bytes_hex(want, bytes, len);
    if (lstat(path, &sb) == 0 && S_ISREG(sb.st_mode) && (uint64_t)sb.st_size == len &&
        fkt_hash_file_hex(found, path) == FKT_OK && !strcmp(found, want))
        goto out;
    FKT_TRY(fkt_file_write(path, bytes, len, FKT_FILE_REPLACE));
out:
    fkt_free(path);
    return st;
}

static fkt_status make_dataset(struct fkt_publication *f, const struct fkt_release *r, const char *folder)
{
    struct fkt_generate_options o = {.per_class = f->per_class,
                                     .format = f->format,
                                     .force = 1,
                                     .threads = f->threads,
                                     .progress = f->progress,
                                     .pipeline = f->pipeline};
    uint8_t hash[FKT_HASH_BYTES];
    if (!fkt_unhex(hash, f->sha256, sizeof hash)) return fkt_fail(FKT_E_STATE, "the release has no hash");
    for (size_t i = 0; i < sizeof o.seed; i++) o.seed |= (uint64_t)hash[i] << (8 * i);
    return fkt_generate(r, folder, &o);
}

static fkt_status weigh(struct fkt_publication_file *out, const char *dataset, const char *grid)
{
    struct stat sb;
    fkt_status st;
    FKT_TRY(fkt_folder_hash(dataset, out[FKT_PUBLISH_DATASET].sha256, &out[FKT_PUBLISH_DATASET].bytes));
    FKT_TRY(fkt_hash_file_hex(out[FKT_PUBLISH_GRID].sha256, grid));
    if (lstat(grid, &sb) != 0) FKT_TRY(fkt_io_fail("read", grid));
    out[FKT_PUBLISH_GRID].bytes = (uint64_t)sb.st_size;
out:
    return st;
}

/* The first file that differs from the log; FKT_PUBLISH_FILES: none. */
static size_t differs(const struct fkt_publication *f, const struct fkt_publication_file *found)
{
    size_t i = 0;
    while (i < FKT_PUBLISH_FILES && found[i].bytes == f->file[i].bytes && !strcmp(found[i].sha256, f->file[i].sha256))
        i++;
    return i;
}

/* Do they exist as the log states? An unreadable file does not. */
static fkt_status as_logged(const struct fkt_publication *f, const char *dataset, const char *grid, int *yes)
{
    struct fkt_publication_file found[FKT_PUBLISH_FILES] = {{0}};
    fkt_status st;
    *yes = 0;
    if (!f->known) return FKT_OK;
    st = weigh(found, dataset, grid);
    if (st == FKT_E_NOMEM) return st;
    *yes = st == FKT_OK && differs(f, found) == FKT_PUBLISH_FILES;
    return FKT_OK;
}

/* Many small files: one sync for all of them, before they are announced. */
static fkt_status sync_all(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = fd < 0 || syncfs(fd) != 0;
    fkt_status st = bad ? fkt_io_fail("write", folder) : FKT_OK;
    if (fd >= 0) close(fd);
    return st;
}

/* From their temporary place to their own; the sheet stands beside the set too, so that it can be shown without it. */
static fkt_status publish(struct fkt_publication *f, const char *made, const char *made_grid, const char *dataset)
{
    struct fkt_publication_file found[FKT_PUBLISH_FILES] = {{0}};
    uint8_t *png = NULL;
    size_t len, other;
    fkt_status st;
    FKT_TRY(weigh(found, made, made_grid));
    other = f->known ? differs(f, found) : FKT_PUBLISH_FILES;
    if (other < FKT_PUBLISH_FILES) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "restore the public folder from a copy, or use the version that made it",
                           "'%s', made again, does not have the hash in the transparency log",
                           fkt_publication_names[other]);
        goto out;
    }
    FKT_TRY(fkt_file_read(&png, &len, made_grid, GRID_MAX));
    FKT_TRY(put(f->out, fkt_publication_names[FKT_PUBLISH_GRID], png, len));
    fkt_remove_tree(dataset);
    if (rename(made, dataset) != 0) FKT_TRY(fkt_io_fail("write", dataset));
    memcpy(f->file, found, sizeof found);
out:
    fkt_free(png);
    return st;
}

static fkt_status make_files(struct fkt_publication *f, const char *release, const char *dataset)
{
    struct fkt_release r = {0};
    char *made = NULL, *grid = NULL;
    fkt_status st;
    FKT_TRY(fkt_release_load_into(&r, release));
    if (strcmp(r.sha256, f->sha256) != 0 || strcmp(r.task.sha256, fkt_pipeline_task(f->pipeline)->sha256) != 0)
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "'%s' is not the release that was made", release));
    FKT_TRY(fkt_path_join(&made, f->out, "dataset.tmp-made"));
    FKT_TRY(fkt_path_join(&grid, made, fkt_publication_names[FKT_PUBLISH_GRID]));
    fkt_remove_tree(made);
    FKT_TRY(make_dataset(f, &r, made));
    FKT_TRY(publish(f, made, grid, dataset));
out:
    if (made && st != FKT_OK) fkt_remove_tree(made);
    fkt_release_clear(&r);
    fkt_free(made);
    fkt_free(grid);
    return st;
}

fkt_status fkt_publish_files(struct fkt_publication *f)
{
    char *release = NULL, *dataset = NULL, *grid = NULL;
    int there;
    fkt_status st;
    FKT_TRY(put(f->out, "release.safetensors", f->bytes, f->len));
    FKT_TRY(put(f->out, "certificate.json", f->certificate, strlen(f->certificate)));
    FKT_TRY(fkt_path_join(&release, f->out, "release.safetensors"));
    FKT_TRY(fkt_path_join(&dataset, f->out, fkt_publication_names[FKT_PUBLISH_DATASET]));
    FKT_TRY(fkt_path_join(&grid, f->out, fkt_publication_names[FKT_PUBLISH_GRID]));
    FKT_TRY(as_logged(f, dataset, grid, &there));
    if (f->bare || !fkt_task_gives_images(fkt_pipeline_task(f->pipeline))) fkt_publish_no_files(f);
    else if (!there) FKT_TRY(make_files(f, release, dataset));
    FKT_TRY(sync_all(f->out));
out:
    fkt_free(release);
    fkt_free(dataset);
    fkt_free(grid);
    return st;
}

void fkt_publish_no_files(struct fkt_publication *f)
{
    char *path = NULL;
    f->bare = 1;
    for (size_t i = 0; i < FKT_PUBLISH_FILES; i++) {
        if (fkt_path_join(&path, f->out, fkt_publication_names[i]) != FKT_OK) continue;
        fkt_remove_tree(path);
        fkt_free(path);
    }
}
