/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - `--dtype auto`: time one batch in f32 and in bf16, take bf16 where it pays, remember the answer.
 *
 *   cache has the key? --yes--> that
 *        \--no--> plan f32, time, free; plan bf16, time, free; keep
 *
 * Feature flags do not tell: bfloat16 without the tile unit runs at half the speed of f32, with it at several times
 * that, and some machines announce a unit that cannot be used. So the machine is asked. The two plans are made one
 * after the other, never together, since a large network's weights fill gigabytes; times are the best of RUNS, or of as
 * many as fit into BUDGET seconds. The margin FKT_DTYPE_GAIN is for noise, and for the digits that are given up.
 *
 * The cache is one small JSON file, replaced as a whole. Two processes at once may both measure; one of the answers
 * stays. What it says is trusted for the word f32 or bf16 alone, but that word decides on digits: in bf16 an image has
 * other latents, within the tolerances of docs/codecs.md, and so other moments. So a file that is not ours, or that
 * others may write, counts as none; whoever needs a certain type says --dtype. */
#include "codec/dtype.h"

#include "codec/cache.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "fedkt.machine-dtype/1"
#define RUNS 5
#define BUDGET 2.0
#define CACHE_BYTES (64U << 10)
#define CACHE_ENTRIES 64U

enum fkt_codec_dtype fkt_dtype_faster(double f32_seconds, double bf16_seconds)
{
    int wins = f32_seconds > 0 && bf16_seconds > 0 && f32_seconds >= FKT_DTYPE_GAIN * bf16_seconds;
    return wins && isfinite(f32_seconds) ? FKT_CODEC_DTYPE_BF16 : FKT_CODEC_DTYPE_F32;
}

/* Best seconds of one batch. */
static fkt_status time_one(const struct fkt_dtype_trial *t, enum fkt_precision precision, const float *in, float *out,
                           double *best)
{
    struct fkt_engine_spec spec = t->spec;
    struct fkt_engine *e = NULL;
    double spent = 0;
    fkt_status st;
    *best = INFINITY;
    spec.precision = precision;
    FKT_TRY(fkt_engine_new(&e, t->backend, t->net, t->weights, &spec));
    for (int run = 0; run <= RUNS && (run < 2 || spent < BUDGET); run++) {
        double start = fkt_now(), took;
        FKT_TRY(fkt_engine_run(e, in, spec.batch, out));
        took = fkt_now() - start;
        spent += took;
        if (run > 0) *best = fmin(*best, took); /* the first one wakes pages and caches */
    }
out:
    fkt_engine_free(e);
    return st;
}

static fkt_status measure(const struct fkt_dtype_trial *t, double *f32, double *bf16)
{
    struct fkt_shape *shapes = NULL, from, to;
    float *in = NULL, *out = NULL;
    struct fkt_rng rng;
    size_t n;
    fkt_status st;
    FKT_TRY(fkt_alloc(&shapes, t->net->n_ops + 1));
    FKT_TRY(fkt_net_shapes(t->net, t->spec.height, t->spec.width, shapes));
    from = shapes[0];
    to = shapes[t->net->n_ops];
    n = (size_t)t->spec.batch * from.c * from.h * from.w;
    FKT_TRY(fkt_alloc(&in, n));
    FKT_TRY(fkt_alloc(&out, (size_t)t->spec.batch * to.c * to.h * to.w));
    fkt_rng_init(&rng, 0, 0x64747970); /* "dtyp" */
    for (size_t i = 0; i < n; i++) in[i] = (float)fkt_rng_unit(&rng);
    FKT_TRY(time_one(t, FKT_PRECISION_F32, in, out, f32));
    st = time_one(t, FKT_PRECISION_BF16, in, out, bf16);
    if (st != FKT_OK && st != FKT_E_NOMEM) { /* f32 has shown that the network is sound */
        *bf16 = INFINITY;
        st = FKT_OK;
    }
out:
    fkt_free(shapes);
    fkt_free(in);
    fkt_free(out);
    return st;
}

/* ---- the memory of it: only lack of memory is a failure ---- */

static fkt_status cache_path(char **folder, char **path)
{
    char *slash;
    fkt_status st;
    FKT_TRY(fkt_codec_cache(folder, "any"));
    slash = strrchr(*folder, '/');
    if (slash) *slash = '\0';
    FKT_TRY(fkt_path_join(path, *folder, "machine-dtype.json"));
out:
    return st;
}

static int is_ours(const char *path)
{
    struct stat sb;
    return lstat(path, &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_uid == geteuid() &&
           !(sb.st_mode & (S_IWGRP | S_IWOTH));
}

/* Everything in the file, or an empty list where there is nothing that can be used. Gives *out. */
static fkt_status cache_read(json_t **out, const char *path)
{
    uint8_t *text = NULL;
    size_t n = 0, known;
    fkt_status st = is_ours(path) ? fkt_file_read(&text, &n, path, CACHE_BYTES) : FKT_E_IO;
    *out = NULL;
    if (st == FKT_E_NOMEM) return st;
    if (st == FKT_OK) *out = json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES, NULL);
    fkt_free(text);
    known = json_object_size(json_object_get(*out, "choices")); /* 0 for everything that is not an object */
    if (known > 0 && known < CACHE_ENTRIES) return FKT_OK;
    json_decref(*out);
    *out = json_pack("{s:s s:{}}", "schema", SCHEMA, "choices");
    return *out ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory while reading '%s'", path);
}

static int recall(const json_t *cache, const char *key, enum fkt_codec_dtype *out)
{
    const json_t *entry = json_object_get(json_object_get(cache, "choices"), key);
    const char *word = json_string_value(json_object_get(entry, "dtype"));
    if (!word || (strcmp(word, "f32") != 0 && strcmp(word, "bf16") != 0)) return 0;
    *out = word[0] == 'b' ? FKT_CODEC_DTYPE_BF16 : FKT_CODEC_DTYPE_F32;
    return 1;
}

static fkt_status remember(json_t *cache, const char *folder, const char *path, const char *key, json_t *entry)
{
    char *text = NULL;
    fkt_status st;
    json_object_set_new(json_object_get(cache, "choices"), key, entry);
    text = json_dumps(cache, JSON_INDENT(1) | JSON_SORT_KEYS);
    if (!text) return fkt_fail(FKT_E_NOMEM, "out of memory while writing '%s'", path);
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_file_write(path, text, strlen(text), FKT_FILE_REPLACE | FKT_FILE_PRIVATE));
out:
    free(text);
    return st;
}

fkt_status fkt_dtype_choose(enum fkt_codec_dtype *out, const struct fkt_dtype_trial *t)
{
    char key[512], *folder = NULL, *path = NULL;
    json_t *cache = NULL;
    double f32, bf16;
    fkt_status st;
    *out = FKT_CODEC_DTYPE_F32;
    if (t->measured) *t->measured = 0;
    if (!t->bf16) return FKT_OK;
    snprintf(key, sizeof key, "%s | %s %u px, batch %u%s", t->machine, t->codec, t->spec.height, t->spec.batch,
             t->spec.low_memory ? ", low memory" : "");
    st = cache_path(&folder, &path);
    if (st == FKT_OK) st = cache_read(&cache, path);
    if (st == FKT_E_NOMEM) goto out;
    st = FKT_OK;
    if (recall(cache, key, out)) goto out;
    FKT_TRY(measure(t, &f32, &bf16));
    if (t->measured) *t->measured = 1;
    *out = fkt_dtype_faster(f32, bf16);
    if (!cache) goto out;
    st = remember(cache, folder, path, key,
                  json_pack("{s:s s:f s:f}", "dtype", *out == FKT_CODEC_DTYPE_BF16 ? "bf16" : "f32", "f32_seconds", f32,
                            "bf16_seconds", isfinite(bf16) ? bf16 : -1.0));
    if (st != FKT_E_NOMEM) st = FKT_OK;
out:
    json_decref(cache);
    fkt_free(path);
    fkt_free(folder);
    return st;
}
