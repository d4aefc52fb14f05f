/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - `fedkt codec verify`: checks the files of a codec, and that this machine computes correctly with them.
 *
 * First it compares the hash of each file with the record of pull, the manifest, and the table of known files; then
 * it encodes and decodes an image. It prints what was compared with what, what could not be compared, and a result:
 * verified, or not fully verified. */
#include "cli/codec/codec.h"

#include "base/alloc.h"
#include "base/file.h"
#include "codec/family.h"
#include "codec/golden.h"
#include "codec/manifest.h"
#include "codec/cache.h"
#include "codec/pull_record.h"
#include "crypto/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = FKT_RECORD_FILES + 3 };

/* What a file was compared with. */
enum against { NOTHING = 0, RECORD, MANIFEST, KNOWN };
static const char *const against_name[] = {"nothing", "record", "manifest", "known"};
static const char *const against_words[] = {"not known: nothing to compare it with", "unchanged since it was pulled",
                                            "as the manifest says", "a known file"};

struct checked {
    struct fkt_weights_record record; /* files == 0: there is none */
    size_t n;
    struct {
        char name[256], sha256[FKT_HASH_HEX];
        uint64_t size;
        enum against against;
    } file[FILES];
    const char *encoder; /* hash of the file that holds only the encoder, if known; into file[] */
};

static fkt_status differs(const char *path, const char *got, const char *want, const char *who)
{
    return fkt_fail_hint(FKT_E_MISMATCH, "fetch it again, or find out who changed it",
                         "'%s' is not what %s: its SHA-256 is %s, not %s", path, who, got, want);
}

/* Compares file i with the known files, by hash and by name. Other bytes in a file of the same name and size mean
 * damage, unless the record of pull has them; another size may be another edition (f32 instead of bf16). */
static fkt_status check_known(struct checked *c, size_t i, const char *codec, const char *path)
{
    const char *hash = c->file[i].sha256;
    const struct fkt_member *m = fkt_member_find(codec, strcspn(codec, "@"));
    const char *base = m ? m->name : codec; /* a guide's name without the side of its input */
    const struct fkt_known_file *same = fkt_known_file_find(hash), *named = fkt_known_file_named(base, c->file[i].name);
    int any = !fkt_published_find(codec) && !(m && m->shipped); /* a name of a family accepts any of its weights */
    if (same && !any && strcmp(same->codec, base) != 0)
        return fkt_fail_hint(FKT_E_MISMATCH, "give the weights of that codec",
                             "'%s' is '%s' of codec '%s', not of '%s'", path, same->name, same->codec, codec);
    if (same) {
        c->file[i].against = KNOWN;
        /* latents are recorded for a guide's own input: those of NAME@SIDE are others */
        if (strstr(same->name, "encoder") || (m && m->guide && !strchr(codec, '@'))) c->encoder = hash;
    } else if (named && named->size == c->file[i].size && c->file[i].against == NOTHING) {
        return fkt_fail_hint(FKT_E_MISMATCH, "fetch it again, or find out who changed it",
                             "'%s' is not the known file of this name: its SHA-256 is %s, not %s", path, hash,
                             named->sha256);
    }
    return FKT_OK;
}

static fkt_status check_file(struct checked *c, const char *codec, const char *path, const char *name)
{
    const struct fkt_published *p = fkt_published_find(codec);
    size_t i = c->n;
    struct stat sb;
    fkt_status st;
    if (stat(path, &sb) != 0) return fkt_io_fail("read", path);
    FKT_TRY(fkt_hash_file_hex(c->file[i].sha256, path));
    snprintf(c->file[i].name, sizeof c->file[i].name, "%s", name);
    c->file[i].size = (uint64_t)sb.st_size;
    for (size_t k = 0; k < c->record.files; k++) {
        if (strcmp(c->record.file[k].name, name) != 0) continue;
        if (strcmp(c->record.file[k].sha256, c->file[i].sha256) != 0)
            return differs(path, c->file[i].sha256, c->record.file[k].sha256, "was pulled");
        if (c->record.file[k].size != c->file[i].size)
            return fkt_fail_hint(FKT_E_MISMATCH, "fetch it again, or find out who changed the record",
                                 "'%s' has %llu bytes, but %llu in the record", path,
                                 (unsigned long long)c->file[i].size, (unsigned long long)c->record.file[k].size);
        c->file[i].against = RECORD;
    }
    for (size_t k = 0; p && k < FKT_PUBLISHED_FILES && p->file[k].name; k++) {
        if (strcmp(p->file[k].name, name) != 0 || !p->file[k].sha256) continue;
        if (strcmp(p->file[k].sha256, c->file[i].sha256) != 0)
            return differs(path, c->file[i].sha256, p->file[k].sha256, "the manifest says");
        c->file[i].against = MANIFEST;
    }
    FKT_TRY(check_known(c, i, codec, path));
    c->n++;
out:
    return st;
}

static fkt_status check_once(struct checked *c, const char *codec, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->file[i].name, name)) return FKT_OK;
    return check_file(c, codec, path, name);
}

/* All files that were pulled must be present and complete before they are used. */
static fkt_status check_record(struct checked *c, const char *codec, const char *folder)
{
    char *path = NULL;
    struct stat sb;
    fkt_status st = FKT_OK;
    if (!fkt_weights_record_there(folder)) return FKT_OK;
    FKT_TRY(fkt_weights_record_load(&c->record, folder));
    if (fkt_published_find(codec) && strcmp(c->record.codec, codec) != 0) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "give the weights of that codec",
                           "the files in '%s' were pulled as '%s', not as '%s'", folder, c->record.codec, codec);
        goto out;
    }
    for (size_t k = 0; k < c->record.files; k++) {
        FKT_TRY(fkt_path_join(&path, folder, c->record.file[k].name));
        if (stat(path, &sb) != 0) {
            st = fkt_fail_hint(FKT_E_MISMATCH, "fetch it again: fedkt codec pull NAME --force",
                               "'%s' was pulled, and is now missing", path);
            goto out;
        }
        FKT_TRY(check_once(c, codec, path));
        fkt_free(path);
        path = NULL;
    }
out:
    fkt_free(path);
    return st;
}

/* The files that the codec reads, recorded or not. */
static fkt_status check_used(struct checked *c, const char *codec, const struct fkt_codec *opened)
{
    struct fkt_codec_facts facts;
    fkt_status st;
    FKT_TRY(fkt_codec_facts(opened, &facts));
    for (int i = 0; i < 2 && facts.file[i]; i++) FKT_TRY(check_once(c, codec, facts.file[i]));
    if (facts.config) FKT_TRY(check_once(c, codec, facts.config));
out:
    return st;
}

/* Rounding between the layers is coarse in bf16. */
static double tolerance(const struct fkt_codec *c)
{
    return fkt_codec_dtype_used(c) == FKT_CODEC_DTYPE_F32 ? 1e-3 : 5e-2;
}

enum { PSNR_FLOOR = 12 }; /* a constant colour reaches at most 11 dB */

static fkt_status evaluate(const struct codec_asked *a, const struct fkt_codec *codec, const struct fkt_golden *g)
{
    if (!isnan(g->max_error) && !(g->max_error <= tolerance(codec)))
        return fkt_fail(FKT_E_NUMERIC,
                        "codec '%s' computes wrong latents here: they are off by %.3g, and at most %.3g is allowed",
                        a->codec.name, g->max_error, tolerance(codec));
    if (fkt_codec_decodes(codec) && !(g->psnr >= PSNR_FLOOR))
        return fkt_fail_hint(FKT_E_NUMERIC, "these may be weights of another codec",
                             "codec '%s' does not reconstruct an image: PSNR %.2f dB", a->codec.name, g->psnr);
    return FKT_OK;
}

/* A phrase for each thing that could not be compared. */
struct unchecked {
    const char *latents; /* NULL: they were compared, or there is no network */
    size_t files;
};

static struct unchecked find_unchecked(const struct checked *c, const struct fkt_golden *g)
{
    struct unchecked u = {NULL, 0};
    for (size_t i = 0; i < c->n; i++) u.files += c->file[i].against == NOTHING;
    if (c->n && isnan(g->max_error))
        u.latents = g->recorded ? "latents, which are recorded for 32 px only"
                                : "latents, since none are recorded for these weights";
    return u;
}

static const char *verdict(const struct unchecked *u)
{
    return u->latents || u->files ? "not fully verified" : "verified";
}

static fkt_status print_json(const struct codec_asked *a, const struct checked *c, const struct fkt_golden *g,
                             const struct fkt_codec *codec, const char *place)
{
    struct unchecked u = find_unchecked(c, g);
    json_t *files = json_array(), *golden, *not_checked = json_array();
    for (size_t i = 0; files && i < c->n; i++) {
        json_t *f = json_pack("{s:s s:I s:s s:s}", "name", c->file[i].name, "size", (json_int_t)c->file[i].size,
                              "sha256", c->file[i].sha256, "compared_with", against_name[c->file[i].against]);
        if (json_array_append_new(files, f) != 0) break;
    }
    if (u.latents) json_array_append_new(not_checked, json_string("latents"));
    if (u.files) json_array_append_new(not_checked, json_string("files"));
    golden = json_pack("{s:i s:o? s:b s:o?}", "size", (int)fkt_codec_size(codec), "psnr",
                       isnan(g->psnr) ? NULL : json_real(g->psnr), "latents_compared", !isnan(g->max_error),
                       "max_error", isnan(g->max_error) ? NULL : json_real(g->max_error));
    return cli_print_json(json_pack(
        "{s:s s:s s:s s:o s:s? s:o s:o s:s s:o}", "codec", a->codec.name, "identity", fkt_codec_identity(codec),
        "codec_dtype", fkt_codec_dtype_name(fkt_codec_dtype_used(codec)), "device", cli_codec_device_json(codec),
        "weights", place, "files", files, "image", golden, "verdict", verdict(&u), "not_checked", not_checked));
}

static fkt_status print(const struct codec_asked *a, const struct checked *c, const struct fkt_golden *g,
                        const struct fkt_codec *codec)
{
    struct unchecked u = find_unchecked(c, g);
    printf("%s\n", fkt_codec_identity(codec));
    for (size_t i = 0; i < c->n; i++)
        printf("  %-38s SHA-256 %s, %s\n", c->file[i].name, c->file[i].sha256, against_words[c->file[i].against]);
    printf("  an image of %u px is ", fkt_codec_size(codec));
    if (fkt_codec_decodes(codec)) printf("reconstructed with PSNR %.2f dB", g->psnr);
    else printf("encoded");
    printf(", in %s", cli_dtype_words(&a->codec.settings, codec));
    if (!isnan(g->max_error)) printf("; its latents are within %.2g of PyTorch's", g->max_error);
    printf("\n%s", verdict(&u));
    if (u.latents || u.files) printf("; not checked: %s", u.latents ? u.latents : "");
    if (u.files) printf("%s%zu file%s without a known hash", u.latents ? "; " : "", u.files, u.files == 1 ? "" : "s");
    puts("");
    return cli_flush();
}

fkt_status cli_codec_verify(const struct codec_asked *a)
{
    const struct fkt_published *p = fkt_published_find(a->codec.name);
    const struct fkt_member *m = fkt_member_find(a->codec.name, strcspn(a->codec.name, "@"));
    struct fkt_codec_spec spec;
    struct fkt_codec *codec = NULL;
    struct checked *c = NULL;
    struct fkt_golden golden;
    char *place = NULL;
    fkt_status st;
    if (!a->codec_given) return fkt_fail_hint(FKT_E_ARG, "see 'fedkt codec list'", "verify needs the name of a codec");
    FKT_TRY(fkt_alloc(&c, 1));
    FKT_TRY(cli_codec_spec(&a->codec, &spec));
    if (p && !a->size_given) spec.size = p->down <= 8 ? FKT_GOLDEN_SIZE : p->down >= 64 ? 128 : 64;
    if (!p && m && m->shipped && !a->size_given) spec.size = FKT_GOLDEN_SIZE;
    if (p || (m && m->shipped)) FKT_TRY(fkt_codec_weights_path(&place, m->name, a->codec.settings.weights));
    if (p) FKT_TRY(check_record(c, a->codec.name, place));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    cli_print_dtype(&a->codec.settings, codec, &a->run);
    FKT_TRY(check_used(c, a->codec.name, codec));
    FKT_TRY(fkt_golden_run(&golden, codec, c->encoder));
    FKT_TRY(evaluate(a, codec, &golden));
    FKT_TRY(a->run.json ? print_json(a, c, &golden, codec, place) : print(a, c, &golden, codec));
out:
    fkt_free(place);
    fkt_free(c);
    fkt_codec_free(codec);
    return st;
}
