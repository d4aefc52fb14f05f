/* SPDX-License-Identifier: Apache-2.0 */
/* run_folder.c - what a simulation leaves behind.
 *
 *   run/  partition.json  moments.safetensors  results.json  report.html      not private
 *         grid.png                                                            from the first release
 *         task.json  release.safetensors  certificate.json  [synthetic/]      per epsilon; in eps-E/ when several
 *
 * Only the release and what is made from it may leave; partition, moments, results and report show true counts, real
 * images or exact sums, and say so. */
#include "cli/simulate/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/simulate/run_report.h"
#include "fedkt/learn.h"
#include "task/task.h"

#include <stdio.h>
#include <string.h>

static json_t *accuracies(const struct cli_sim *s, const struct cli_arm *a)
{
    json_t *j = json_object();
    for (int k = 0; k < FKT_HEAD_KINDS; k++)
        json_object_set_new(j, fkt_head_name((enum fkt_head_kind)k), json_real(fkt_score_accuracy(&a->score[k])));
    if (s->train)
        json_object_set_new(j, fkt_architecture_name((enum fkt_architecture)(s->train - 1)), json_real(a->network));
    return j;
}

static json_t *arm_json(const struct cli_sim *s, const struct cli_outcome *o, const struct cli_arm *a)
{
    const struct fkt_privacy_plan *p = &a->release.plan;
    json_t *classes = json_array(), *j;
    for (uint32_t k = 0; k < a->measured.classes; k++)
        json_array_append_new(classes, json_pack("{s:s s:f s:f s:f s:b}", "class", a->task.classes[k], "noisy_count",
                                                 a->measured.count[k], "count_noise", a->measured.count_noise[k],
                                                 "signal", a->measured.signal[k], "below_noise",
                                                 fkt_gaussians_below_noise(&a->measured, k)));
    j = json_pack("{s:f s:f s:s s:s s:f s:f s:f s:f s:f s:s s:b s:o s:s s:f s:f s:f s:f}", "epsilon", p->spec.epsilon,
                  "delta", p->spec.delta, "adjacency", fkt_adjacency_name(p->spec.adjacency), "mechanism",
                  fkt_mechanism_name(p->spec.mechanism), "mu", p->mu, "epsilon_spent", p->epsilon_spent, "sigma_count",
                  p->sigma_count, "sigma_sum", p->sigma_sum, "sigma_moment", p->sigma_moment, "release_sha256",
                  a->release.sha256, "private", !fkt_release_not_private(&a->release), "classes", classes, "accounting",
                  "gdp", "rho", a->release.shares.counted ? a->release.shares.rho : p->mu * p->mu / 2,
                  "sigma_count_in_total", a->release.sigma[0], "sigma_sum_in_total", a->release.sigma[1],
                  "sigma_moment_in_total", a->release.sigma[2]);
    cli_mark_weak_release(j, &a->release);
    if (o->test_set) json_object_set_new(j, "accuracy", accuracies(s, a));
    if (a->n_repeats) json_object_set_new(j, "accuracy_runs", cli_repeats_json(a));
    return j;
}

json_t *cli_results_json(const struct cli_sim *s, const struct cli_outcome *o)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    const struct cli_arm *first = &o->arm[0];
    double release = 0, generate = 0;
    json_t *arms = json_array(), *j;
    for (size_t i = 0; i + 1 < o->n_arms; i++) {
        json_array_append_new(arms, arm_json(s, o, &o->arm[i]));
        release += o->arm[i].seconds_release;
        generate += o->arm[i].seconds_generate;
    }
    j = json_pack(
        "{s:s s:s s:i s:i s:I s:i s:i s:i s:s s:s s:s s:s s:I s:f s:f s:f s:s s:s s:I s:I s:o s:{s:f s:f s:f s:f "
        "s:f s:f} s:[s s s s s s s]}",
        "schema", "fedkt.results/1", "version", fkt_version(), "sites", (int)o->sim.sites, "survivors",
        (int)o->sim.survivors, "records", (json_int_t)o->sim.records, "classes", (int)t->n_classes, "dim",
        (int)t->coordinates.dim, "length", (int)t->coordinates.length, "codec", t->codec_identity, "codec_dtype",
        fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_pipeline_codec(o->pipeline))), "coordinates",
        fkt_coordinate_name(t->coordinates.kind), "partition", s->partition, "bytes_per_site",
        (json_int_t)(first->round.survivors ? first->round.up : o->sim.bytes_per_site), "epsilon",
        first->release.plan.spec.epsilon, "delta", first->release.plan.spec.delta, "composed_epsilon",
        o->composed_epsilon, "moments_sha256", o->moments_sha256, "release_sha256", first->release.sha256, "skipped",
        (json_int_t)o->skipped.count, "test_images", (json_int_t)o->n_test, "arms", arms, "seconds", "encode",
        o->sim.seconds_encode, "moments", o->sim.seconds_moments, "aggregate", o->sim.seconds_aggregate, "release",
        release, "generate", generate, "evaluate", o->seconds_evaluate, "not_private", "records", "moments_sha256",
        "accuracy", "accuracy_without_privacy", "skipped", "test_images", "seconds");
    if (j && o->test_set) {
        json_object_set_new(j, "accuracy", accuracies(s, first));
        json_object_set_new(j, "accuracy_without_privacy", accuracies(s, &o->arm[o->n_arms - 1]));
    }
    if (j && s->train) json_object_set_new(json_object_get(j, "seconds"), "train", json_real(o->seconds_train));
    if (j) json_object_set_new(j, "aggregation", cli_round_json(o));
    if (j)
        json_object_set_new(j, "noise",
                            json_string(fkt_noise_name(first->release.shares.counted ? FKT_NOISE_PLACE_DISTRIBUTED
                                                                                     : FKT_NOISE_PLACE_CENTRAL)));
    if (j && s->seeded) json_object_set_new(j, "insecure_seed", json_integer((json_int_t)s->insecure_seed));
    return j;
}

static json_t *partition_json(const struct cli_sim *s, const struct cli_outcome *o)
{
    uint32_t K = fkt_pipeline_task(o->pipeline)->n_classes;
    json_t *counts = json_array(), *lost = json_array(), *classes = json_array(), *owner = json_array();
    for (uint32_t k = 0; k < K; k++)
        json_array_append_new(classes, json_string(fkt_pipeline_task(o->pipeline)->classes[k]));
    for (uint32_t i = 0; i < o->sim.sites; i++) {
        json_t *row = json_array();
        for (uint32_t k = 0; k < K; k++) json_array_append_new(row, json_integer(o->sim.counts[(size_t)i * K + k]));
        json_array_append_new(counts, row);
        if (!o->sim.survived[i]) json_array_append_new(lost, json_integer(i));
    }
    for (size_t i = 0; i < o->n_train; i++) json_array_append_new(owner, json_integer(o->sim.owner[i]));
    return json_pack("{s:s s:b s:s s:I s:i s:o s:o s:o s:o}", "schema", "fedkt.partition/1", "secret", 1, "rule",
                     s->partition, "seed", (json_int_t)s->seed, "sites", (int)o->sim.sites, "classes", classes,
                     "counts", counts, "not_heard", lost, "owner", owner);
}

static fkt_status save_json(const char *folder, const char *name, json_t *j)
{
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, folder, name);
    if (st == FKT_OK) st = fkt_json_save(j, path, FKT_FILE_PRIVATE);
    else json_decref(j);
    fkt_free(path);
    return st;
}

static fkt_status arm_folder(const struct cli_sim *s, const struct fkt_pipeline *pipeline, struct cli_arm *a,
                             const char *run, struct cli_progress *progress)
{
    char *folder = NULL, *path = NULL, *certificate = NULL;
    struct fkt_generate_options g = {.per_class = (size_t)s->per_class,
                                     .seed = s->seed,
                                     .format = (enum fkt_export_format)s->format,
                                     .estimate = {(enum fkt_estimator)s->estimator, 0, 0},
                                     .threads = (unsigned)s->run.threads,
                                     .progress = &progress->hook,
                                     .pipeline = pipeline};
    double start = fkt_now();
    fkt_status st;
    FKT_TRY(fkt_path_join(&folder, run, a->folder));
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_path_join(&path, folder, "task.json"));
    FKT_TRY(fkt_task_save(&a->task, path, 0));
    fkt_free(path);
    path = NULL;
    FKT_TRY(fkt_path_join(&path, folder, "release.safetensors"));
    FKT_TRY(fkt_release_save(&a->release, path, 0));
    fkt_free(path);
    path = NULL;
    FKT_TRY(fkt_path_join(&path, folder, "certificate.json"));
    FKT_TRY(fkt_release_certificate(&a->release, &certificate));
    FKT_TRY(fkt_file_write(path, certificate, strlen(certificate), 0));
    fkt_free(path);
    path = NULL;
    if (s->per_class) {
        FKT_TRY(fkt_path_join(&path, folder, "synthetic"));
        FKT_TRY(fkt_generate(&a->release, path, &g));
        a->seconds_generate = fkt_now() - start;
    }
out:
    cli_progress_end(progress);
    fkt_string_free(certificate);
    fkt_free(path);
    fkt_free(folder);
    return st;
}

fkt_status cli_run_folder(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress)
{
    struct fkt_folder f = {0};
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_folder_begin(&f, s->out, s->run.force));
    for (size_t i = 0; i + 1 < o->n_arms; i++) FKT_TRY(arm_folder(s, o->pipeline, &o->arm[i], f.tmp, progress));
    FKT_TRY(fkt_path_join(&path, f.tmp, "moments.safetensors"));
    FKT_TRY(fkt_moments_save(o->sim.total, fkt_pipeline_task(o->pipeline), o->records, path, 0));
    FKT_TRY(save_json(f.tmp, "partition.json", partition_json(s, o)));
    FKT_TRY(save_json(f.tmp, "results.json", cli_results_json(s, o)));
    FKT_TRY(cli_progress_check("while writing the run folder"));
    FKT_TRY(cli_run_images(s, o, f.tmp));
    FKT_TRY(cli_progress_check("while writing the run folder"));
    FKT_TRY(fkt_folder_commit(&f));
out:
    fkt_folder_fail(&f, st);
    fkt_free(path);
    fkt_folder_clear(&f);
    return st;
}
