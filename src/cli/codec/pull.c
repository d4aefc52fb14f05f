/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - `fedkt codec pull NAME`: fetches published weights into the cache, checks them and records what was
 * fetched. */
#include "cli/codec/codec.h"

#include "base/alloc.h"
#include "base/file.h"
#include "codec/family.h"
#include "codec/family_config.h"
#include "codec/manifest.h"
#include "codec/cache.h"
#include "codec/pull_record.h"
#include "net/pull.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const checks[] = {"manifest", "hub", "first-seen"};
static const char *const words[] = {"as the manifest says", "as the hub states", "first seen"};

static const char *check_words(const char *check)
{
    for (size_t i = 0; i < CLI_COUNT(checks); i++)
        if (!strcmp(checks[i], check)) return words[i];
    return check;
}

static void write_down(struct fkt_weights_record *r, const char *codec, const struct fkt_pull *p)
{
    const struct fkt_hub *hub = &p->spec->hub;
    memset(r, 0, sizeof *r);
    snprintf(r->codec, sizeof r->codec, "%s", codec);
    snprintf(r->hub, sizeof r->hub, "%s", hub->endpoint);
    snprintf(r->repo, sizeof r->repo, "%s", hub->repo);
    snprintf(r->revision, sizeof r->revision, "%s", hub->revision);
    snprintf(r->commit, sizeof r->commit, "%s", p->commit);
    r->files = p->spec->files;
    for (size_t i = 0; i < r->files; i++) {
        snprintf(r->file[i].name, sizeof r->file[i].name, "%s", p->spec->file[i].name);
        snprintf(r->file[i].sha256, sizeof r->file[i].sha256, "%s", p->file[i].sha256);
        snprintf(r->file[i].checked, sizeof r->file[i].checked, "%s", checks[p->file[i].check]);
        r->file[i].size = p->file[i].size;
    }
}

/* `p` is NULL when all files were present already. */
static fkt_status print_json(const struct fkt_weights_record *r, const char *folder, const struct fkt_pull *p)
{
    json_t *files = json_array();
    for (size_t i = 0; files && i < r->files; i++) {
        json_t *f = json_pack("{s:s s:I s:s s:s s:I}", "name", r->file[i].name, "size", (json_int_t)r->file[i].size,
                              "sha256", r->file[i].sha256, "checked", r->file[i].checked, "transferred",
                              (json_int_t)(p ? p->file[i].transferred : 0));
        if (json_array_append_new(files, f) != 0) break;
    }
    return cli_print_json(json_pack("{s:s s:s s:s s:s s:s s:s? s:b s:o}", "codec", r->codec, "folder", folder, "hub",
                                    r->hub, "repo", r->repo, "revision", r->revision, "commit",
                                    r->commit[0] ? r->commit : NULL, "already_here", p == NULL, "files", files));
}

static fkt_status print(const struct fkt_weights_record *r, const char *folder, const struct fkt_pull *p)
{
    printf("%s: %s %zu files of %s, %s %s\n", r->codec, p ? "fetched" : "here already:", r->files, r->repo,
           r->commit[0] ? "commit" : "revision", r->commit[0] ? r->commit : r->revision);
    for (size_t i = 0; i < r->files; i++)
        printf("  %-38s %11llu bytes  SHA-256 %s, %s\n", r->file[i].name, (unsigned long long)r->file[i].size,
               r->file[i].sha256, check_words(r->file[i].checked));
    printf("in %s\n", folder);
    return cli_flush();
}

/* Checks the sizes of the files that were pulled; `verify` also reads them. */
static fkt_status look_at_files(const struct fkt_weights_record *r, const char *folder)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < r->files && st == FKT_OK; i++) {
        char *path = NULL;
        struct stat sb;
        st = fkt_path_join(&path, folder, r->file[i].name);
        if (st == FKT_OK && (lstat(path, &sb) != 0 || !S_ISREG(sb.st_mode) || (uint64_t)sb.st_size != r->file[i].size))
            st = fkt_fail_hint(FKT_E_MISMATCH, "give --force to fetch it again",
                               "'%s' was pulled, and is now missing or changed", path);
        fkt_free(path);
    }
    return st;
}

/* Checks what exists under the final name; *here becomes 1 when it is what was asked for. */
static fkt_status look(struct fkt_weights_record *r, const struct codec_asked *a, const struct fkt_pull_spec *spec,
                       int *here)
{
    DIR *d = opendir(spec->folder);
    struct dirent *e;
    size_t n = 0;
    fkt_status st;
    *here = 0;
    while (d && (e = readdir(d))) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    if (n == 0) return FKT_OK;
    if (!fkt_weights_record_there(spec->folder))
        return fkt_fail_hint(FKT_E_EXISTS, "use them as they are, or move the folder away",
                             "'%s' holds files that were not pulled", spec->folder);
    if (a->run.force) return FKT_OK;
    st = fkt_weights_record_load(r, spec->folder);
    if (st != FKT_OK) return st;
    if (strcmp(r->repo, spec->hub.repo) != 0 ||
        (strcmp(r->revision, spec->hub.revision) != 0 && strcmp(r->commit, spec->hub.revision) != 0))
        return fkt_fail_hint(FKT_E_EXISTS, "give --force to replace it", "'%s' holds revision '%s' of '%s' already",
                             spec->folder, r->revision, r->repo);
    if (strcmp(r->hub, spec->hub.endpoint) != 0)
        return fkt_fail_hint(FKT_E_EXISTS, "give --force to fetch it from the other hub", "'%s' was pulled from '%s'",
                             spec->folder, r->hub);
    *here = 1;
    return look_at_files(r, spec->folder);
}

/* An error without another hint gets one about fetching without this network. */
static fkt_status way_out(fkt_status st, const char *codec, const char *folder)
{
    char put[320], hint[384];
    if (st != FKT_E_IO) return st;
    fkt_codec_put_hint(put, sizeof put, codec, folder);
    snprintf(hint, sizeof hint, "without a network: fetch them elsewhere and %s", put);
    return fkt_hint(st, hint);
}

static fkt_status fetch_all(const struct codec_asked *a, struct fkt_pull_spec *spec)
{
    struct cli_progress progress;
    struct fkt_weights_record record;
    struct fkt_pull p = {.lock = -1};
    int here;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    progress.bytes = 1;
    spec->how.progress = &progress.hook;
    st = fkt_pull_begin(&p, spec);
    if (st == FKT_E_IO)
        st = fkt_hint(st, "set FEDKT_CACHE to a writable folder, or fetch the files by hand and give them "
                          "with --weights");
    if (st != FKT_OK) goto out;
    FKT_TRY(look(&record, a, spec, &here));
    if (!here) {
        FKT_TRY(way_out(fkt_pull_fetch(&p), a->codec.name, spec->folder));
        FKT_TRY(cli_progress_check("before the files were put into place"));
        if (!p.commit[0] && !a->run.quiet)
            cli_say("fedkt: the hub names no commit: that all files are of one version is not known");
        write_down(&record, a->codec.name, &p);
        FKT_TRY(fkt_weights_record_save(&record, p.part));
        FKT_TRY(fkt_pull_commit(&p));
    }
    cli_progress_end(&progress);
    FKT_TRY(a->run.json ? print_json(&record, spec->folder, here ? NULL : &p)
                        : print(&record, spec->folder, here ? NULL : &p));
out:
    cli_progress_end(&progress);
    fkt_pull_clear(&p);
    return st;
}

fkt_status cli_codec_pull(const struct codec_asked *a)
{
    const struct fkt_published *known = fkt_published_find(a->codec.name);
    const struct fkt_member *member = fkt_member_find(a->codec.name, strlen(a->codec.name));
    const char *authority = a->authority ? a->authority : getenv("FEDKT_CACERT");
    struct fkt_pull_spec spec = {.force = a->run.force};
    char *endpoint = NULL, *folder = NULL;
    fkt_status st;
    if (!a->codec_given) return fkt_fail_hint(FKT_E_ARG, "see 'fedkt codec list'", "pull needs the name of a codec");
    if (!known && member && member->shipped)
        return fkt_fail_hint(FKT_E_ARG, "use it by its name; 'fedkt codec info' says where its files are",
                             "'%s' comes with the program: there is nothing to pull", a->codec.name);
    if (!known && member && member->summary)
        return fkt_fail_hint(FKT_E_ARG,
                             "they come in a Python package and are converted once: docs/codecs.md, 'Guides'",
                             "no hub publishes the weights of guide '%s'", a->codec.name);
    if (!known)
        return fkt_fail_hint(FKT_E_ARG, "see 'fedkt codec list'", "no weights are published for a codec '%s'",
                             a->codec.name);
    if (a->stall > 3600) return fkt_fail(FKT_E_ARG, "--stall must be at most 3600");
    if (a->codec.settings.weights) return fkt_fail(FKT_E_ARG, "pull fills the cache: --weights has no place here");
    FKT_TRY(fkt_hub_endpoint(&endpoint, a->hub));
    FKT_TRY(fkt_codec_cache(&folder, known->name));
    spec.hub = (struct fkt_hub){endpoint, known->repo, a->revision ? a->revision : known->revision};
    spec.folder = folder;
    spec.how.cacert = authority && *authority ? authority : NULL;
    spec.how.stall_seconds = (unsigned)a->stall;
    for (; spec.files < FKT_PULL_FILES && known->file[spec.files].name; spec.files++)
        spec.file[spec.files] = (struct fkt_pull_wanted){
            known->file[spec.files].name, known->file[spec.files].sha256, known->file[spec.files].size,
            strcmp(known->file[spec.files].name, "config.json") ? 0 : FKT_CONFIG_BYTES_MAX};
    if (a->revision) /* the manifest knows one revision alone */
        for (size_t i = 0; i < spec.files; i++) spec.file[i].sha256 = NULL, spec.file[i].size = 0;
    FKT_TRY(fetch_all(a, &spec));
out:
    fkt_free(endpoint);
    fkt_free(folder);
    return st;
}
