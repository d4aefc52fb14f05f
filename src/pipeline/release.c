/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - from exact moments to the noised release, and its file (written by release_file.c).
 *
 *   release.safetensors:  moments I64 noised | centre, map, unmap F32 (public calibration of each part,
 *                                              release_parts.c)
 *                         metadata: format, task (canonical JSON), certificate (JSON), calibration (JSON)
 *
 * The file is all that is needed to sample images at any later time (docs/method.md 1.6), and holds nothing that was
 * not noised or public. The order is fixed: plan, debit, draw. What the certificate says is derived from the plan that
 * was really used.
 *
 * There are two inputs. Exact moments: the noise is drawn here. The total of a round with distributed noise: the noise
 * is in it, and often more than the plan counts, because the promise counts only sites that are certain to stay. So the
 * plan (what is promised) and sigma (the noise in the numbers, for estimators) are separate. */
#include "pipeline/release.h"

#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/synth.h"

#include "task/division.h"
#include "task/federation.h"
#include "task/task.h"
#include "pipeline/pipeline.h"
#include "pipeline/sum.h"

#include "base/alloc.h"
#include "base/file.h"
#include "crypto/entropy.h"
#include "crypto/hash.h"
#include "tensor/safetensors.h"

#include <math.h>
#include <string.h>

#define FORMAT "fedkt.release/1"

static fkt_status add_meta_json(struct fkt_st_writer *w, const char *key, json_t *j)
{
    char *text = NULL;
    fkt_status st = fkt_json_text(&text, j, 0);
    if (st == FKT_OK) st = fkt_st_writer_meta(w, key, text);
    fkt_free(text);
    return st;
}

/* The file in the making; tensors are borrowed from the release. Gives *w. */
static fkt_status lay_out(struct fkt_st_writer **w, const struct fkt_release *r)
{
    uint64_t shape[2];
    const unsigned rank = fkt_task_moments_shape(&r->task, shape);
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(w));
    FKT_TRY(fkt_st_writer_meta(*w, "format", FORMAT));
    FKT_TRY(add_meta_json(*w, "task", fkt_task_json(&r->task)));
    FKT_TRY(add_meta_json(*w, "certificate", fkt_certificate_json(r)));
    FKT_TRY(fkt_st_writer_add(*w, "moments", FKT_I64, rank, shape, r->moments));
    FKT_TRY(fkt_release_add_calibrations(*w, r));
out:
    return st;
}

fkt_status fkt_release_bytes(const struct fkt_release *r, uint8_t **bytes, size_t *len)
{
    struct fkt_st_writer *w = NULL;
    fkt_status st;
    *bytes = NULL;
    FKT_TRY(lay_out(&w, r));
    FKT_TRY(fkt_st_writer_bytes(w, bytes, len));
out:
    fkt_st_writer_free(w);
    return st;
}

fkt_status fkt_release_seal(struct fkt_release *r)
{
    uint8_t *bytes = NULL;
    size_t len;
    fkt_status st = fkt_release_bytes(r, &bytes, &len);
    if (st == FKT_OK) fkt_hash_bytes_hex(r->sha256, bytes, len);
    fkt_free(bytes);
    return st;
}

/* Promise and noise of a release whose task and facts are known. */
static fkt_status plan_noise(struct fkt_release *r)
{
    fkt_status st;
    if (fkt_task_is_whole(&r->task)) return fkt_sum_plan(r);
    FKT_TRY(fkt_federation_shares(&r->task, &r->shares));
    if (r->shares.counted) r->plan = r->shares.plan;
    else FKT_TRY(fkt_privacy_plan(&r->plan, &r->task.privacy));
out:
    return st;
}

/* The noise in the numbers: that of the plan, or of as many noise shares as survived. */
static fkt_status weigh_noise(struct fkt_release *r)
{
    if (r->shares.counted) return fkt_privacy_total_sigmas(&r->sigma, &r->shares, r->facts.survivors);
    if (r->sum.n) {
        r->sigma = r->sum.noise.sigma;
        return FKT_OK;
    }
    r->sigma.count = r->plan.sigma_count;
    memcpy(r->sigma.part, r->plan.sigma, sizeof r->sigma.part);
    return FKT_OK;
}

fkt_status fkt_release_begin(struct fkt_release *out, const struct fkt_task *task,
                             const struct fkt_calibration *calibration, const struct fkt_round_facts *facts)
{
    fkt_status st;
    out->facts = *facts;
    FKT_TRY(fkt_task_copy(&out->task, task));
    for (uint32_t p = 0; p < task->parts; p++) FKT_TRY(fkt_calibration_copy(&out->calibration[p], &calibration[p]));
    FKT_TRY(fkt_alloc(&out->moments, fkt_task_numbers(task)));
    FKT_TRY(fkt_facts_check(task, facts));
    FKT_TRY(plan_noise(out));
out:
    return st;
}

fkt_status fkt_release_make_into(struct fkt_release *out, const struct fkt_task *task,
                                 const struct fkt_calibration *calibration, struct fkt_moments *m,
                                 const struct fkt_round_facts *facts, struct fkt_ledger *ledger,
                                 const uint64_t *insecure_seed)
{
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    const int64_t *exact;
    uint32_t K = task->n_classes;
    fkt_status st;
    memset(out, 0, sizeof *out);
    memset(&seeded, 0, sizeof seeded);
    if (fkt_moments_classes(m) != K || !fkt_layout_equal(fkt_moments_layout(m), &task->layout))
        return fkt_fail(FKT_E_MISMATCH, "the moments do not fit the task");
    if (fkt_task_has_shares(task))
        return fkt_hint_code(
            fkt_fail(FKT_E_MISMATCH, "task '%s' has distributed noise, which each site adds itself", task->name),
            FKT_HINT_TASK_CENTRAL, "use a task without a federation, or with central noise");
    if (fkt_task_is_whole(task))
        return fkt_fail(FKT_E_MISMATCH, "task '%s' is of a sum of cohorts, each of which makes its own release",
                        task->name);
    if (ledger->task_sha256[0] && strcmp(ledger->task_sha256, task->sha256) != 0)
        return fkt_fail(FKT_E_MISMATCH, "the ledger file has paid for task %.12s, and this one is %.12s",
                        ledger->task_sha256, task->sha256);
    fkt_entropy_os(&entropy);
    if (insecure_seed) {
        fkt_entropy_seeded_init(&seeded, *insecure_seed, 0);
        fkt_entropy_seeded(&entropy, &seeded);
    }
    FKT_TRY(fkt_release_begin(out, task, calibration, facts));
    out->insecure_seed = !entropy.secure;
    out->paid_by_file = ledger->task_sha256[0] != '\0';
    FKT_TRY(fkt_moments_packed(m, &exact));
    FKT_TRY(fkt_privacy_release(out->moments, exact, K, &task->layout, &out->plan, ledger, &entropy));
    FKT_TRY(weigh_noise(out));
    FKT_TRY(fkt_release_seal(out));
out:
    fkt_wipe(&seeded, sizeof seeded);
    if (st != FKT_OK) fkt_release_clear(out);
    return st;
}

fkt_status fkt_release_gather_into(struct fkt_release *out, const struct fkt_task *task,
                                   const struct fkt_calibration *calibration, const int64_t *total,
                                   const struct fkt_round_facts *facts, int insecure_seed)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!fkt_task_has_shares(task))
        return fkt_fail(FKT_E_MISMATCH, "task '%s' has no distributed noise, so its total has none", task->name);
    FKT_TRY(fkt_release_begin(out, task, calibration, facts));
    out->insecure_seed = insecure_seed;
    FKT_TRY(fkt_privacy_gather(out->moments, total, task->n_classes, &task->layout, &out->shares, facts->survivors));
    FKT_TRY(weigh_noise(out));
    FKT_TRY(fkt_release_seal(out));
out:
    if (st != FKT_OK) fkt_release_clear(out);
    return st;
}

void fkt_release_clear(struct fkt_release *r)
{
    fkt_task_clear(&r->task);
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_calibration_clear(&r->calibration[p]);
    fkt_sum_clear(&r->sum);
    fkt_free(r->moments);
    memset(r, 0, sizeof *r);
}

enum fkt_promise fkt_release_promise(const struct fkt_release *r, char why[FKT_PROMISE_WORDS])
{
    const double composed = r->facts.composed_epsilon;
    if (fkt_task_promise(&r->task, why) == FKT_PROMISE_WEAK) return FKT_PROMISE_WEAK;
    if (composed <= FKT_PROMISE_EPSILON * (1 + 1e-9)) return FKT_PROMISE_SOUND;
    if (why)
        snprintf(why, FKT_PROMISE_WORDS, "epsilon %.6g of all releases together is above %g", composed,
                 FKT_PROMISE_EPSILON);
    return FKT_PROMISE_WEAK;
}

const char *fkt_release_not_private(const struct fkt_release *r)
{
    if (r->insecure_seed) return "the noise came from a known seed";
    return fkt_release_promise(r, NULL) == FKT_PROMISE_WEAK ? "the promise is weak" : NULL;
}

static fkt_status load_moments(struct fkt_release *r, const struct fkt_safetensors *file)
{
    uint64_t shape[2];
    const unsigned rank = fkt_task_moments_shape(&r->task, shape);
    const struct fkt_tensor *t;
    fkt_status st;
    FKT_TRY(fkt_safetensors_want(file, &t, "moments", FKT_I64, rank, shape));
    FKT_TRY(fkt_alloc(&r->moments, (size_t)t->count));
    memcpy(r->moments, t->data, (size_t)t->count * sizeof *r->moments);
    for (uint64_t i = 0; i < t->count; i++)
        if (r->moments[i] > INT64_MAX / 2 || r->moments[i] < -(INT64_MAX / 2)) {
            st = fkt_fail(FKT_E_NUMERIC, "moment %llu is beyond 2^62", (unsigned long long)i);
            goto out;
        }
out:
    return st;
}

fkt_status fkt_release_load_into(struct fkt_release *out, const char *path)
{
    struct fkt_safetensors *file = NULL;
    const char *format, *task, *certificate;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_safetensors_open(&file, path));
    format = fkt_safetensors_meta(file, "format");
    task = fkt_safetensors_meta(file, "task");
    certificate = fkt_safetensors_meta(file, "certificate");
    if (!format || strcmp(format, FORMAT) != 0 || !task || !certificate) {
        st = fkt_hint_code(fkt_fail(FKT_E_FORMAT, "'%s' is not a release file", path), FKT_HINT_RELEASE_FILE,
                           "give a release file");
        goto out;
    }
    FKT_TRY(fkt_task_parse_into(&out->task, task, strlen(task)));
    FKT_TRY(fkt_release_load_calibrations(out, file));
    FKT_TRY(load_moments(out, file));
    if (fkt_task_is_whole(&out->task)) FKT_TRY(fkt_sum_take(out, certificate));
    FKT_TRY(plan_noise(out));
    FKT_TRY(fkt_certificate_check(out, certificate));
    FKT_TRY(weigh_noise(out));
    FKT_TRY(fkt_hash_file_hex(out->sha256, path));
out:
    fkt_safetensors_free(file);
    if (st != FKT_OK) {
        if (st != FKT_E_IO && st != FKT_E_NOMEM && !strstr(fkt_error_text(), path))
            fkt_fail_in(st, "cannot use '%s'", path);
        if (st != FKT_E_IO && st != FKT_E_NOMEM)
            fkt_hint(st, "the file is damaged or was changed after it was made; fetch it again");
        fkt_release_clear(out);
    }
    return st;
}

static fkt_status open_parts(const struct fkt_release *r, const struct fkt_codec_settings *settings, int codec_alone,
                             struct fkt_pipeline **out)
{
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_codec *codec[FKT_PARTS_MAX] = {NULL};
    fkt_status st = FKT_OK;
    *out = NULL;
    for (uint32_t p = 0; p < r->task.parts; p++) {
        if (!codec_alone || r->task.part[p].kind == FKT_PART_CODEC)
            FKT_TRY(fkt_pipeline_network(&codec[p], &r->task, p, settings));
        FKT_TRY(fkt_calibration_copy(&cal[p], &r->calibration[p]));
    }
    return fkt_pipeline_assemble(out, &r->task, codec, cal);
out:
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) {
        fkt_codec_free(codec[p]);
        fkt_calibration_clear(&cal[p]);
    }
    return st;
}

fkt_status fkt_release_pipeline(const struct fkt_release *r, const struct fkt_codec_settings *settings,
                                struct fkt_pipeline **out)
{
    return open_parts(r, settings, 0, out);
}

fkt_status fkt_release_has_images(const struct fkt_release *r)
{
    return fkt_hint_code(fkt_task_has_images(&r->task), FKT_HINT_HEADS, "use its heads");
}

fkt_status fkt_release_pipeline_codec(const struct fkt_release *r, const struct fkt_codec_settings *settings,
                                      struct fkt_pipeline **out)
{
    fkt_status st = fkt_release_has_images(r);
    *out = NULL;
    return st == FKT_OK ? open_parts(r, settings, 1, out) : st;
}
