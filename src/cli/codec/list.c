/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - `fedkt codec list` and `info`: all codecs and guides and whether they are on this machine; details of one.
 */
#include "cli/codec/codec.h"

#include "base/alloc.h"
#include "codec/family.h"
#include "codec/manifest.h"
#include "codec/cache.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of the files in a folder; files that cannot be read count as 0. */
static unsigned long long folder_bytes(const char *folder)
{
    DIR *d = opendir(folder);
    unsigned long long sum = 0;
    struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat sb;
        if (fstatat(dirfd(d), e->d_name, &sb, 0) == 0 && S_ISREG(sb.st_mode)) sum += (unsigned long long)sb.st_size;
    }
    if (d) closedir(d);
    return sum;
}

enum state { ABSENT, HERE, INCOMPLETE, ANOTHER };
static const char *const state_name[] = {"not here", "here", "incomplete", "another codec"};

/* Does the folder open as this codec? Headers are read, weights are not. */
static fkt_status look_into(enum state *out, const char *folder, const char *codec)
{
    struct fkt_family_files files;
    struct fkt_family family;
    fkt_status st;
    *out = ABSENT;
    if (!fkt_codec_has_weights(folder)) return FKT_OK;
    st = fkt_family_find(&files, folder, codec);
    *out = st == FKT_E_MISMATCH ? ANOTHER : INCOMPLETE;
    if (st != FKT_OK) return st == FKT_E_NOMEM ? st : FKT_OK;
    fkt_family_files_clear(&files);
    st = fkt_family_open(&family, folder, codec, NULL);
    *out = HERE;
    if (st == FKT_E_MISMATCH) {
        *out = ANOTHER;
        st = fkt_family_open(&family, folder, NULL, NULL);
    }
    if (st == FKT_OK) fkt_family_clear(&family);
    else *out = INCOMPLETE;
    return st == FKT_E_NOMEM ? st : FKT_OK;
}

/* A row of the list. `p` is NULL for what no hub publishes. */
static fkt_status list_one(const struct fkt_member *m, const struct fkt_published *p, json_t *into)
{
    const char *summary = p ? p->summary : m->summary;
    char *folder = NULL, where[32];
    unsigned long long bytes = 0;
    enum state state = ABSENT;
    fkt_status st;
    if (m->shipped) { /* in the cache or beside the program */
        st = fkt_codec_weights_path(&folder, m->name, NULL);
        if (st != FKT_OK && st != FKT_E_IO) return st;
        st = FKT_OK; /* not here */
    } else {
        FKT_TRY(fkt_codec_cache(&folder, m->name));
    }
    if (folder) FKT_TRY(look_into(&state, folder, m->name));
    if (state != ABSENT) bytes = folder_bytes(folder);
    if (into) {
        json_t *j = json_pack("{s:s s:s s:s s:b s:b s:b s:b s:b s:s s:i s:s? s:s? s:s? s:s? s:I}", "name", m->name,
                              "family", m->kind, "summary", summary, "guide", m->guide, "shipped", m->shipped,
                              "weights", 1, "calibration_built_in", m->shipped, "here", state == HERE, "state",
                              state_name[state], "down", p ? (int)p->down : (int)m->reduction, "repo",
                              p ? p->repo : NULL, "revision", p ? p->revision : NULL, "licence", p ? p->licence : NULL,
                              "folder", state != ABSENT ? folder : NULL, "bytes", (json_int_t)bytes);
        if (json_array_append_new(into, j) != 0) st = fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
    } else {
        if (state == HERE) snprintf(where, sizeof where, "here, %.1f MB", (double)bytes / 1e6);
        else snprintf(where, sizeof where, "%s", state_name[state]);
        printf("%-18s %-16s %s\n", m->name, where, summary);
    }
out:
    fkt_free(folder);
    return st;
}

/* Names of families, whose networks the weights define. */
static fkt_status list_open_name(const struct fkt_member *m, json_t *into)
{
    char what[96];
    json_t *j;
    if (m->guide) snprintf(what, sizeof what, "guide: any %s network with torchvision's names", m->kind);
    else snprintf(what, sizeof what, "any %s network: its weights define channels and reduction", m->kind);
    if (!into) {
        printf("%-18s %-16s %s\n", m->name, "with --weights", what);
        return FKT_OK;
    }
    j = json_pack("{s:s s:s s:s s:b s:b s:b s:b s:b}", "name", m->name, "family", m->kind, "summary", what, "guide",
                  m->guide, "shipped", 0, "weights", 1, "calibration_built_in", 0, "here", 0);
    return json_array_append_new(into, j) == 0 ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
}

static fkt_status list_members(int guide, json_t *into)
{
    const struct fkt_member *m;
    fkt_status st = FKT_OK;
    for (size_t i = 0; (m = fkt_member_at(i)) && st == FKT_OK; i++) {
        const struct fkt_published *p = fkt_published_find(m->name);
        if (m->guide != guide) continue;
        st = p || m->summary ? list_one(m, p, into) : list_open_name(m, into);
    }
    return st;
}

fkt_status cli_codec_list(const struct codec_asked *a)
{
    static const char dct[] = "low-frequency DCT of the YCbCr planes, no weights, any size and length";
    json_t *all = NULL;
    fkt_status st = FKT_OK;
    if (a->run.json) {
        all = json_pack("[{s:s s:s s:s s:b s:b s:b s:b s:b}]", "name", "dct", "family", "dct", "summary", dct, "guide",
                        0, "shipped", 1, "weights", 0, "calibration_built_in", 1, "here", 1);
        if (!all) return fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
    } else {
        printf("%-18s %-16s %s\n", "dct", "built in", dct);
    }
    FKT_TRY(list_members(0, all));
    FKT_TRY(list_members(1, all));
    if (a->run.json) {
        st = cli_print_json(all);
        all = NULL;
    }
out:
    json_decref(all);
    return st;
}

fkt_status cli_codec_calibration(const struct codec_asked *a, const struct fkt_codec *codec,
                                 struct fkt_calibration *cal, int *there)
{
    fkt_status st;
    *there = 1;
    if (!a->codec.calibration) {
        st = fkt_calibration_embedded(cal, codec);
        *there = st == FKT_OK;
        return st == FKT_E_STATE ? FKT_OK : st;
    }
    FKT_TRY(fkt_calibration_load(cal, a->codec.calibration));
    FKT_TRY(fkt_calibration_check(cal, codec));
out:
    return st;
}

static void print_facts(const struct fkt_codec_facts *f)
{
    for (int i = 0; i < 2 && f->file[i]; i++) printf("%-12s %s\n", i ? "" : "weights", f->file[i]);
    if (f->input)
        printf("layout       %s, %s%s%s; %u features, input %u x %u px\n", f->kind, f->layout,
               f->variant[0] ? "; " : "", f->variant, f->latent_channels, f->input, f->input);
    else if (f->layout[0])
        printf("layout       %s, %s; %u channels, %u x down, latents times %g\n", f->kind, f->layout,
               f->latent_channels, f->reduction, f->latent_scale);
    if (f->input) {
        printf("parameters   %llu\nwork         %.4g GFLOP an image\n", (unsigned long long)f->parameters[0],
               1e-9 * (double)f->flops[0]);
        return;
    }
    if (f->parameters[0])
        printf("parameters   %llu encoder, %llu decoder\n", (unsigned long long)f->parameters[0],
               (unsigned long long)f->parameters[1]);
    if (f->flops[0])
        printf("work         %.4g GFLOP to encode an image, %.4g to decode one\n", 1e-9 * (double)f->flops[0],
               1e-9 * (double)f->flops[1]);
}

static fkt_status print_info(const struct codec_asked *a, const struct fkt_codec *codec,
                             const struct fkt_calibration *cal, const struct fkt_codec_facts *facts)
{
    uint32_t S = fkt_codec_size(codec);
    char command[256];
    printf("%-12s %s\nlatent       %u numbers per %u x %u image\n", fkt_codec_decodes(codec) ? "codec" : "guide",
           fkt_codec_identity(codec), fkt_codec_dim(codec), S, S);
    print_facts(facts);
    if (facts->flops[0]) printf("numbers      %s\n", cli_dtype_words(&a->codec.settings, codec));
    cli_calibrate_command(command, sizeof command, &a->codec, codec);
    if (cal)
        printf("calibration  %s (%llu public images), %u directions\nsize |u|     exp(%.4f +- %.4f); clip radius "
               "%.4f\n",
               cal->source, (unsigned long long)cal->images, cal->dim, cal->log_mean, cal->log_spread, cal->radius);
    else printf("calibration  none; make one from a public image set:\n             %s\n", command);
    return cli_flush();
}

static json_t *pair(const uint64_t of[2])
{
    return json_pack("{s:I s:I}", "encoder", (json_int_t)of[0], "decoder", (json_int_t)of[1]);
}

static fkt_status print_json(const struct fkt_codec *codec, const struct fkt_calibration *cal,
                             const struct fkt_codec_facts *f)
{
    json_t *known = NULL, *files = json_array(), *j;
    for (int i = 0; files && i < 2 && f->file[i]; i++)
        if (json_array_append_new(files, json_string(f->file[i])) != 0) break;
    if (cal)
        known =
            json_pack("{s:s s:I s:i s:f s:f s:f}", "source", cal->source, "images", (json_int_t)cal->images, "dim",
                      (int)cal->dim, "log_mean", cal->log_mean, "log_spread", cal->log_spread, "radius", cal->radius);
    j = json_pack("{s:s s:s s:s s:s s:i s:i s:s s:o s:o s:o s:o s:i s:f s:o?}", "name", fkt_codec_name(codec),
                  "identity", fkt_codec_identity(codec), "family", f->kind, "layout", f->layout, "size",
                  (int)fkt_codec_size(codec), "dim", (int)fkt_codec_dim(codec), "codec_dtype",
                  fkt_codec_dtype_name(fkt_codec_dtype_used(codec)), "device", cli_codec_device_json(codec), "weights",
                  files, "parameters", pair(f->parameters), "flops", pair(f->flops), "down", (int)f->reduction,
                  "latent_scale", f->latent_scale, "calibration", known);
    if (f->input && j)
        json_object_set_new(j, "guide",
                            json_pack("{s:i s:i s:s}", "features", (int)f->latent_channels, "input", (int)f->input,
                                      "variant", f->variant));
    return cli_print_json(j);
}

fkt_status cli_codec_info(const struct codec_asked *a)
{
    struct fkt_codec_spec spec;
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    struct fkt_codec_facts facts;
    int there;
    fkt_status st;
    FKT_TRY(cli_codec_spec(&a->codec, &spec));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    cli_print_dtype(&a->codec.settings, codec, &a->run);
    FKT_TRY(fkt_codec_facts(codec, &facts));
    FKT_TRY(cli_codec_calibration(a, codec, &cal, &there));
    FKT_TRY(a->run.json ? print_json(codec, there ? &cal : NULL, &facts)
                        : print_info(a, codec, there ? &cal : NULL, &facts));
out:
    fkt_codec_free(codec);
    fkt_calibration_clear(&cal);
    return st;
}
