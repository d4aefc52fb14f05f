/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - an opened task: the network, calibration and coordinates of every part of its record vectors, and one
 * record's way from latents to integers.
 *
 *   z_p (D_p) --calibration--> u_p (d_p) --coordinates--> w_p (m_p) --quantise--> q_p
 *
 * w and q hold the parts side by side. In a joined task they are one vector in one ball, and are quantised together;
 * else each part has its own ball and is quantised by itself. What a machine brings along is compared with the task
 * before anything is encoded. */
#include "pipeline/pipeline.h"

#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"

#include "task/task.h"

#include "base/alloc.h"
#include "codec/cache.h"
#include "codec/codec.h"
#include "codec/family.h"
#include "crypto/hash.h"

#include <string.h>

enum { BATCH_MAX = FKT_PIPELINE_BATCH, BATCH_USUAL = 64, BATCH_BYTES = 2 << 20 };

size_t fkt_pipeline_batch(const struct fkt_codec *c)
{
    size_t pixels = (size_t)fkt_codec_size(c) * fkt_codec_size(c) * 3, whole = fkt_codec_batch(c),
           n = BATCH_BYTES / pixels;
    if (whole > 1) return whole < BATCH_MAX ? whole : BATCH_MAX; /* a network: slow enough to be handed out so */
    if (n > BATCH_USUAL) n = BATCH_USUAL;
    return n ? n : 1;
}

size_t fkt_pipeline_batch_all(const struct fkt_pipeline *w)
{
    size_t most = 0;
    for (uint32_t p = 0; p < w->task.parts; p++) {
        const size_t n = w->codec[p] && (w->task.parts == 1 || fkt_codec_batch(w->codec[p]) > 1)
                             ? fkt_pipeline_batch(w->codec[p])
                             : 0; /* what has no batch of its own takes that of the other */
        if (n > most) most = n;
    }
    return most ? most : BATCH_USUAL;
}

/* The path of the weights: a file, or the folder of a pair. */
static int weights_at(const struct fkt_codec *codec, const char **path)
{
    struct fkt_codec_facts facts;
    const char *slash;
    if (fkt_codec_facts(codec, &facts) != FKT_OK || !facts.file[0]) return 0;
    *path = facts.file[0];
    slash = facts.file[1] ? strrchr(facts.file[0], '/') : NULL;
    return slash ? (int)(slash - facts.file[0]) : (int)strlen(facts.file[0]);
}

static fkt_status check_codec(const struct fkt_task_part *part, const struct fkt_codec *codec)
{
    const char *identity = fkt_codec_identity(codec), *path = NULL, *kind = fkt_part_name(part->kind);
    char hash[FKT_SHA256_HEX], wanted[FKT_DIFFERENCE_MAX], ours[FKT_DIFFERENCE_MAX];
    int length = weights_at(codec, &path);
    fkt_hash_bytes_hex(hash, identity, strlen(identity));
    if (!strcmp(hash, part->sha256)) return FKT_OK;
    fkt_identity_difference(part->identity, identity, wanted, ours);
    if (!length || strncmp(wanted, "weights ", 8) != 0 || strncmp(ours, "weights ", 8) != 0)
        return fkt_fail_hint(FKT_E_MISMATCH,
                             part->kind == FKT_PART_CODEC
                                 ? "all sites of a task must use the same codec: the same name, size, dim and weights"
                                 : "all sites of a task must use the same guide: the same name, size and weights",
                             "the task wants %s '%s' with %s, this one has %s", kind, part->name, wanted, ours);
    fkt_fail(FKT_E_MISMATCH, "the weights in '%.*s' are not those of the task%s: they are %s, not %s", length, path,
             part->kind == FKT_PART_CODEC ? "" : "'s guide", ours + 8, wanted + 8);
    fkt_hint_code(FKT_E_MISMATCH, FKT_HINT_WEIGHTS_VERIFY, "fetch them again, or verify them");
    return fkt_hint_values(FKT_E_MISMATCH, FKT_HINT_WEIGHTS_VERIFY, part->name, NULL);
}

static fkt_status no_calibration(const struct fkt_task_part *part)
{
    fkt_status st = fkt_fail(FKT_E_STATE, "the task wants calibration %.12s from '%s', and %s '%s' has none built in",
                             part->calibration_sha256, part->calibration_source, fkt_part_name(part->kind), part->name);
    return part->kind == FKT_PART_CODEC
               ? fkt_hint_code(st, FKT_HINT_TASK_CALIBRATION, "ask the task's author for the calibration file")
               : fkt_hint_code(st, FKT_HINT_GUIDE_CALIBRATION,
                               "ask the task's author for the guide's calibration file");
}

/* A guide that a task calls its codec could not be decoded after the release was paid for. Without the network its
 * name tells. */
static fkt_status check_kind(const struct fkt_task_part *part, const struct fkt_codec *codec)
{
    const int guide = part->kind == FKT_PART_GUIDE;
    if (codec ? guide == !fkt_codec_decodes(codec) : !fkt_codec_known(part->name, !guide)) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "ask the task's author for a task that names its networks by what they are",
                         "the task has '%s' as its %s, and it is a %s", part->name, fkt_part_name(part->kind),
                         fkt_part_name(guide ? FKT_PART_CODEC : FKT_PART_GUIDE));
}

/* Networks are compared by the hash, and certificates show the identity. */
static fkt_status check_identity(const struct fkt_task_part *part)
{
    char hash[FKT_SHA256_HEX];
    fkt_hash_bytes_hex(hash, part->identity, strlen(part->identity));
    if (!strcmp(hash, part->sha256)) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "ask the task's author for the task as it was made",
                         "the task contradicts itself: the hash of %s '%s' is not that of its identity '%s'",
                         fkt_part_name(part->kind), part->name, part->identity);
}

static fkt_status check_part(const struct fkt_task *task, uint32_t p, const struct fkt_codec *codec,
                             const struct fkt_calibration *cal)
{
    const struct fkt_task_part *part = &task->part[p];
    fkt_status st;
    FKT_TRY(check_kind(part, codec));
    if (codec) FKT_TRY(check_codec(part, codec));
    FKT_TRY(check_identity(part));
    FKT_TRY(fkt_coordinates_check(&part->coordinates));
    FKT_TRY(fkt_task_check_calibration(task, p, cal));
    if (codec) FKT_TRY(fkt_calibration_check(cal, codec));
    if (part->coordinates.dim != cal->dim || part->dim != cal->raw_dim)
        st = fkt_fail(FKT_E_MISMATCH,
                      "the task has latents of length %u and coordinates of %u, the calibration %u and %u", part->dim,
                      part->coordinates.dim, cal->raw_dim, cal->dim);
out:
    return st;
}

fkt_status fkt_pipeline_assemble(struct fkt_pipeline **out, const struct fkt_task *task, struct fkt_codec *codec[],
                                 struct fkt_calibration cal[])
{
    struct fkt_pipeline *w = NULL;
    fkt_status st = FKT_OK;
    *out = NULL;
    for (uint32_t p = 0; p < task->parts; p++) FKT_TRY(check_part(task, p, codec[p], &cal[p]));
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_task_copy(&w->task, task));
    for (uint32_t p = 0; p < task->parts; p++) {
        w->codec[p] = codec[p];
        codec[p] = NULL;
        w->calibration[p] = cal[p];
        memset(&cal[p], 0, sizeof cal[p]);
        w->at[p] = w->length;
        w->length += task->part[p].coordinates.length;
        w->coordinates[p] = task->part[p].coordinates;
    }
    *out = w;
    w = NULL;
out:
    fkt_pipeline_free(w);
    for (uint32_t p = 0; p < task->parts; p++) {
        fkt_codec_free(codec[p]);
        codec[p] = NULL;
        fkt_calibration_clear(&cal[p]);
    }
    return st;
}

fkt_status fkt_pipeline_network(struct fkt_codec **out, const struct fkt_task *task, uint32_t p,
                                const struct fkt_codec_settings *settings)
{
    const struct fkt_task_part *part = &task->part[p];
    struct fkt_codec_spec spec = {.name = part->name, .size = task->size, .dim = part->dim};
    fkt_status st;
    *out = NULL;
    if (settings) spec.settings = *settings;
    if (part->kind == FKT_PART_GUIDE) spec.settings.weights = settings ? settings->guide_weights : NULL;
    st = fkt_codec_open(out, &spec);
    FKT_TRY(part->kind == FKT_PART_GUIDE ? fkt_codec_guide_failure(st, part->name) : st);
    FKT_TRY(check_codec(part, *out));
out:
    if (st != FKT_OK) {
        fkt_codec_free(*out);
        *out = NULL;
    }
    return st;
}

static const char *calibration_path(const struct fkt_part_files *files, enum fkt_part_kind kind)
{
    return !files ? NULL : kind == FKT_PART_GUIDE ? files->guide_calibration : files->calibration;
}

static fkt_status part_calibration(struct fkt_calibration *out, const struct fkt_task_part *part,
                                   const struct fkt_codec *codec, const char *path)
{
    if (path) return fkt_calibration_load(out, path);
    if (!fkt_codec_has_calibration(part->name)) return no_calibration(part);
    return fkt_calibration_embedded(out, codec);
}

static void close_parts(struct fkt_codec *codec[FKT_PARTS_MAX], struct fkt_calibration cal[FKT_PARTS_MAX])
{
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) {
        fkt_codec_free(codec[p]);
        fkt_calibration_clear(&cal[p]);
    }
}

fkt_status fkt_pipeline_open(struct fkt_pipeline **out, const struct fkt_task *task, const struct fkt_part_files *files,
                             const struct fkt_codec_settings *settings)
{
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_codec *codec[FKT_PARTS_MAX] = {NULL};
    fkt_status st = FKT_OK;
    *out = NULL;
    for (uint32_t p = 0; p < task->parts; p++) /* before the calibrations: they cannot fit wrong weights */
        FKT_TRY(fkt_pipeline_network(&codec[p], task, p, settings));
    for (uint32_t p = 0; p < task->parts; p++)
        FKT_TRY(part_calibration(&cal[p], &task->part[p], codec[p], calibration_path(files, task->part[p].kind)));
    return fkt_pipeline_assemble(out, task, codec, cal);
out:
    close_parts(codec, cal);
    return st;
}

/* A calibration from its file, or the one that is built in: for that the network is opened, into *codec. */
static fkt_status latents_calibration(struct fkt_calibration *out, struct fkt_codec **codec,
                                      const struct fkt_task *task, uint32_t p, const char *path)
{
    const struct fkt_task_part *part = &task->part[p];
    struct fkt_failure why;
    fkt_status st;
    if (path) return fkt_calibration_load(out, path);
    if (fkt_member_find(part->name, strlen(part->name)) && !fkt_codec_has_calibration(part->name))
        return no_calibration(part);
    st = fkt_pipeline_network(codec, task, p, NULL);
    if (st == FKT_OK) st = part_calibration(out, part, *codec, NULL);
    if (st == FKT_OK || st == FKT_E_NOMEM) return st;
    fkt_failure_save(&why, st);
    return fkt_hint_code(fkt_fail(st, "%s", why.text),
                         part->kind == FKT_PART_CODEC ? FKT_HINT_CALIBRATION_ALONE : FKT_HINT_GUIDE_CALIBRATION,
                         "give the task's calibration file: then nothing else is needed");
}

fkt_status fkt_pipeline_open_latents(struct fkt_pipeline **out, const struct fkt_task *task,
                                     const struct fkt_part_files *files)
{
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_codec *codec[FKT_PARTS_MAX] = {NULL};
    fkt_status st = FKT_OK;
    *out = NULL;
    for (uint32_t p = 0; p < task->parts; p++)
        FKT_TRY(latents_calibration(&cal[p], &codec[p], task, p, calibration_path(files, task->part[p].kind)));
    return fkt_pipeline_assemble(out, task, codec, cal);
out:
    close_parts(codec, cal);
    return st;
}

fkt_status fkt_pipeline_no_codec(const struct fkt_pipeline *w, uint32_t part)
{
    const struct fkt_task_part *p = &w->task.part[part];
    return fkt_fail(FKT_E_STATE, "%s '%s' is not open: this pipeline begins at latents", fkt_part_name(p->kind),
                    p->name);
}

fkt_status fkt_pipeline_can_encode(const struct fkt_pipeline *w)
{
    for (uint32_t p = 0; p < w->task.parts; p++)
        if (!w->codec[p]) return fkt_pipeline_no_codec(w, p);
    return FKT_OK;
}

int fkt_task_gives_images(const struct fkt_task *t) { return t->part[0].kind == FKT_PART_CODEC && !t->layout.pooled; }

fkt_status fkt_task_has_images(const struct fkt_task *t)
{
    if (fkt_task_gives_images(t)) return FKT_OK;
    if (t->part[0].kind != FKT_PART_CODEC)
        return fkt_fail_hint(FKT_E_STATE, "a task with a codec gives images",
                             "task '%s' has guide '%s' and no codec: it gives heads, and no images", t->name,
                             t->part[0].name);
    return fkt_fail_hint(FKT_E_STATE, "a task with moments by class gives images",
                         "task '%s' has pooled moments: it gives heads, and no images", t->name);
}

fkt_status fkt_pipeline_can_decode(const struct fkt_pipeline *w)
{
    fkt_status st = fkt_task_has_images(&w->task);
    if (st == FKT_OK && !w->codec[0]) st = fkt_pipeline_no_codec(w, 0);
    return st;
}

void fkt_pipeline_free(struct fkt_pipeline *w)
{
    if (!w) return;
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) {
        fkt_codec_free(w->codec[p]);
        fkt_calibration_clear(&w->calibration[p]);
    }
    fkt_task_clear(&w->task);
    fkt_free(w);
}

const struct fkt_task *fkt_pipeline_task(const struct fkt_pipeline *w) { return &w->task; }

const struct fkt_codec *fkt_pipeline_codec(const struct fkt_pipeline *w)
{
    return w->task.part[0].kind == FKT_PART_CODEC ? w->codec[0] : NULL;
}

const struct fkt_codec *fkt_pipeline_encoder(const struct fkt_pipeline *w, uint32_t part)
{
    return part < w->task.parts ? w->codec[part] : NULL;
}

const struct fkt_calibration *fkt_pipeline_calibration(const struct fkt_pipeline *w, uint32_t part)
{
    return part < w->task.parts ? &w->calibration[part] : NULL;
}

size_t fkt_pipeline_length(const struct fkt_pipeline *w) { return w->length; }

size_t fkt_pipeline_room(const struct fkt_pipeline *w)
{
    size_t most = 0;
    for (uint32_t p = 0; p < w->task.parts; p++)
        if (w->task.part[p].coordinates.dim > most) most = w->task.part[p].coordinates.dim;
    return most;
}

fkt_status fkt_pipeline_record(const struct fkt_pipeline *w, const float *const z[], double *u, double *wv, int32_t *q)
{
    fkt_status st = FKT_OK;
    for (uint32_t p = w->task.parts; p-- > 0;) { /* part 0 last: u stays */
        const struct fkt_coordinates *c = &w->coordinates[p];
        fkt_calibration_forward(&w->calibration[p], z[p], u);
        FKT_TRY(fkt_coordinates_forward(c, u, wv + w->at[p]));
        if (!w->task.joined) FKT_TRY(fkt_quantise(c, wv + w->at[p], q + w->at[p]));
    }
    if (w->task.joined) FKT_TRY(fkt_quantise_joined(w->coordinates, w->task.parts, w->task.layout.rq[0], wv, q));
out:
    return st;
}
