/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_results.c - a sweep as JSON: fedkt.results/1 and fedkt.partition/1 (docs/formats.md, docs/schema). Both are
 * NOT private, and marked by "not_private" and "secret". */
#include "simulate/sweep.h"

#include "pipeline/sum.h"

#include "base/alloc.h"
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

/* Keys in the order in which they were set. Takes ownership of j. */
static fkt_status text_of(json_t *j, char **out)
{
    char *raw = j ? json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    fkt_status st = FKT_OK;
    json_decref(j);
    if (!raw) return fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON, or a name in it is not UTF-8");
    st = fkt_strdup(out, raw);
    free(raw);
    return st;
}

static json_t *accuracies(const struct fkt_sweep *s, const struct sweep_arm *a)
{
    json_t *j = json_object();
    for (int k = 0; k < FKT_HEAD_KINDS; k++)
        if (a->draw[0].heads.head[k]) /* pooled moments have no QDA */
            json_object_set_new(j, fkt_head_name((enum fkt_head_kind)k),
                                json_real(fkt_score_accuracy(&a->draw[0].score[k])));
    if (s->network[0] && a->view.network >= 0) json_object_set_new(j, s->network, json_real(a->view.network));
    if (s->network[0] && a->view.unguided >= 0) {
        char name[sizeof s->network + sizeof "_unguided"];
        snprintf(name, sizeof name, "%s_unguided", s->network);
        json_object_set_new(j, name, json_real(a->view.unguided));
    }
    return j;
}

static json_t *draws_json(const struct sweep_arm *a)
{
    json_t *j = json_object();
    for (int k = 0; k < FKT_HEAD_KINDS; k++) {
        json_t *runs;
        if (!a->draw[0].heads.head[k]) continue;
        runs = json_array();
        for (size_t d = 0; d < a->view.draws; d++)
            json_array_append_new(runs, json_real(fkt_score_accuracy(&a->draw[d].score[k])));
        json_object_set_new(j, fkt_head_name((enum fkt_head_kind)k), runs);
    }
    return j;
}

/* signal: of the first part; signals: of each, where there are several. A class is below the noise if it is in any. */
static json_t *class_json(const struct sweep_arm *a, uint32_t k)
{
    const uint32_t parts = a->view.parts;
    json_t *signals = parts > 1 ? json_array() : NULL;
    int below = 0;
    for (uint32_t p = 0; p < parts; p++) {
        if (signals) json_array_append_new(signals, json_real(a->measured[p].signal[k]));
        below |= fkt_gaussians_below_noise(&a->measured[p], k);
    }
    return json_pack("{s:s s:f s:f s:f s:b s:o*}", "class", a->task.classes[k], "noisy_count", a->measured[0].count[k],
                     "count_noise", a->measured[0].count_noise[k], "signal", a->measured[0].signal[k], "below_noise",
                     below, "signals", signals);
}

/* Noise by part of the layout, where there are several. */
static json_t *noise_json(const struct sweep_arm *a)
{
    const struct fkt_part_sigma *promised = a->release.plan.sigma, *there = a->release.sigma.part;
    json_t *j = json_array();
    for (uint32_t p = 0; p < a->view.parts; p++)
        json_array_append_new(j, json_pack("{s:f s:f s:f s:f}", "sigma_sum", promised[p].sum, "sigma_moment",
                                           promised[p].moment, "sigma_sum_in_total", there[p].sum,
                                           "sigma_moment_in_total", there[p].moment));
    return j;
}

static json_t *arm_json(const struct fkt_sweep *s, const struct sweep_arm *a)
{
    const struct fkt_privacy_plan *p = &a->release.plan;
    json_t *classes = json_array(), *j;
    for (uint32_t k = 0; k < a->measured[0].classes; k++) json_array_append_new(classes, class_json(a, k));
    j = json_pack("{s:f s:f s:s s:s s:f s:f s:f s:f s:f s:s s:b s:o s:s s:f s:f s:f s:f}", "epsilon", p->spec.epsilon,
                  "delta", p->spec.delta, "adjacency", fkt_adjacency_name(p->spec.adjacency), "mechanism",
                  fkt_mechanism_name(p->spec.mechanism), "mu", p->mu, "epsilon_spent", p->epsilon_spent, "sigma_count",
                  p->sigma_count, "sigma_sum", p->sigma[0].sum, "sigma_moment", p->sigma[0].moment, "release_sha256",
                  a->release.sha256, "private", !fkt_release_not_private(&a->release), "classes", classes, "accounting",
                  "gdp", "rho", a->release.shares.counted ? a->release.shares.rho : p->mu * p->mu / 2,
                  "sigma_count_in_total", a->release.sigma.count, "sigma_sum_in_total", a->release.sigma.part[0].sum,
                  "sigma_moment_in_total", a->release.sigma.part[0].moment);
    if (j && fkt_release_promise(&a->release, NULL) == FKT_PROMISE_WEAK)
        json_object_set_new(j, "promise", json_string("weak"));
    if (a->view.parts > 1) json_object_set_new(j, "parts", noise_json(a));
    if (s->test_data) json_object_set_new(j, "accuracy", accuracies(s, a));
    if (a->view.draws > 1) json_object_set_new(j, "accuracy_runs", draws_json(a));
    return j;
}

/* Of the first arm; null if there was no protocol. */
static json_t *round_json(const struct fkt_sweep *s)
{
    const struct sweep_arm *a = &s->arm[0];
    const struct fkt_federation *f = s->division.number ? &a->largest : &a->task.federation;
    const struct fkt_federate_result *r = &a->round;
    const uint32_t sites = s->division.number ? s->division.sites : f->sites;
    json_t *lost, *cohorts = NULL;
    if (!f->sites) return json_null();
    if (s->division.number) {
        cohorts = fkt_sum_json(&a->release);
        json_object_update_new(cohorts, json_pack("{s:f s:f s:f}", "cpu_seconds_sites", r->cpu_sites,
                                                  "cpu_seconds_servers", r->cpu_server, "seconds_sum", a->seconds_sum));
    }
    lost = json_object();
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++)
        json_object_set_new(lost, fkt_sa_state_name((enum fkt_sa_state)phase), json_integer(r->lost[phase]));
    return json_pack("{s:s s:s s:I s:I s:I s:I s:I s:I s:I s:o s:I s:{s:I s:I s:I} s:f s:o*}", "protocol",
                     "fedkt.secagg/1", "noise", fkt_noise_name(f->noise), "sites", (json_int_t)sites,
                     "dropped_tolerated", (json_int_t)f->dropped, "corrupt_tolerated", (json_int_t)f->corrupt, "degree",
                     (json_int_t)f->degree, "threshold", (json_int_t)f->threshold, "bits", (json_int_t)f->bits,
                     "survivors", (json_int_t)r->survivors, "lost", lost, "throws", (json_int_t)r->throws, "traffic",
                     "up", (json_int_t)r->up, "down", (json_int_t)r->down, "packed", (json_int_t)r->packed, "seconds",
                     r->seconds, "cohorts", cohorts);
}

static json_t *device_json(const struct fkt_sweep *s)
{
    const struct fkt_device codec = fkt_codec_device_used(fkt_pipeline_encoder(s->pipeline, 0));
    const struct fkt_device d = s->device.kind == FKT_DEVICE_CUDA ? s->device : codec;
    struct fkt_device_facts f;
    if (fkt_device_describe(d, &f) != FKT_OK) f.name[0] = '\0';
    return json_pack("{s:s s:i s:s}", "kind", d.kind == FKT_DEVICE_CUDA ? "cuda" : "cpu", "index", d.index, "name",
                     f.name);
}

/* The parts of the record vector, where there is a guide. */
static json_t *parts_json(const struct fkt_sweep *s)
{
    const struct fkt_task *t = fkt_pipeline_task(s->pipeline);
    json_t *j = json_array();
    for (uint32_t p = 0; p < t->parts; p++) {
        const struct fkt_task_part *part = &t->part[p];
        json_array_append_new(
            j, json_pack("{s:s s:s s:s s:s s:i s:i s:s}", "kind", fkt_part_name(part->kind), "name", part->name,
                         "identity", part->identity, "dtype",
                         fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_pipeline_encoder(s->pipeline, p))), "dim",
                         (int)part->coordinates.dim, "length", (int)part->coordinates.length, "coordinates",
                         fkt_coordinate_name(part->coordinates.kind)));
    }
    return j;
}

static json_t *guided_json(const struct fkt_guided_facts *f)
{
    if (f->kind == FKT_GUIDED_TWIN) return json_pack("{s:s s:s}", "way", "twin", "twin_sha256", f->twin_sha256);
    if (f->kind == FKT_GUIDED_NONE) return json_pack("{s:s}", "way", "none");
    return json_pack("{s:s s:i s:f s:f}", "way", "gradient", "steps", (int)f->steps, "rho", f->rho, "rate", f->rate);
}

static void set_parts(json_t *j, const struct fkt_sweep *s)
{
    const struct fkt_task *t = fkt_pipeline_task(s->pipeline);
    if (t->parts == 1 && t->part[0].kind == FKT_PART_CODEC && !t->layout.pooled) return;
    json_object_set_new(j, "parts", parts_json(s));
    json_object_set_new(j, "guided", guided_json(&s->guided));
    json_object_set_new(j, "joined", json_boolean(t->joined));
    json_object_set_new(j, "moments", json_string(t->layout.pooled ? "pooled" : "class"));
}

static json_t *base_json(const struct fkt_sweep *s, json_t *arms)
{
    const struct fkt_task *t = fkt_pipeline_task(s->pipeline);
    const struct sweep_arm *first = &s->arm[0];
    const struct fkt_task_part *codec = fkt_task_part_of(t, FKT_PART_CODEC);
    struct fkt_sweep_seconds seconds;
    char partition[FKT_PARTITION_TEXT];
    uint32_t dim = 0;
    for (uint32_t p = 0; p < t->parts; p++) dim += t->part[p].coordinates.dim;
    fkt_sweep_seconds(s, &seconds);
    fkt_partition_text(&s->spec.partition, partition);
    return json_pack(
        "{s:s s:s s:i s:i s:I s:i s:i s:i s:s? s:s s:o s:s s:s s:I s:f s:f s:f s:s s:s s:I s:I s:o s:{s:f s:f s:f s:f "
        "s:f s:f} s:[s s s s s s s]}",
        "schema", "fedkt.results/1", "version", fkt_version(), "sites", (int)s->sim.sites, "survivors",
        (int)(s->division.number ? first->round.survivors : s->sim.survivors), "records", (json_int_t)s->sim.records,
        "classes", (int)t->n_classes, "dim", (int)dim, "length", (int)fkt_layout_length(&t->layout), "codec",
        codec ? codec->identity : NULL, "codec_dtype",
        fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_pipeline_encoder(s->pipeline, 0))), "device", device_json(s),
        "coordinates", fkt_coordinate_name(t->part[0].coordinates.kind), "partition", partition, "bytes_per_site",
        (json_int_t)(first->round.survivors ? first->round.up : s->sim.bytes_per_site), "epsilon",
        first->release.plan.spec.epsilon, "delta", first->release.plan.spec.delta, "composed_epsilon",
        s->composed_epsilon, "moments_sha256", s->moments_sha256, "release_sha256", first->release.sha256, "skipped",
        (json_int_t)s->skipped.count, "test_images", (json_int_t)s->n_test, "arms", arms, "seconds", "encode",
        seconds.encode, "moments", seconds.moments, "aggregate", seconds.aggregate, "release", seconds.release,
        "generate", seconds.generate, "evaluate", seconds.evaluate, "not_private", "records", "moments_sha256",
        "accuracy", "accuracy_without_privacy", "skipped", "test_images", "seconds");
}

fkt_status fkt_sweep_results_json(const struct fkt_sweep *s, char **json)
{
    const struct sweep_arm *first = &s->arm[0];
    const int shared = first->release.shares.counted || first->release.sum.n;
    json_t *arms, *j;
    *json = NULL;
    if (!s->done) return fkt_fail(FKT_E_STATE, "the sweep has not run to its end");
    arms = json_array();
    for (size_t i = 0; i + 1 < s->n_arms; i++) json_array_append_new(arms, arm_json(s, &s->arm[i]));
    j = base_json(s, arms);
    if (j) set_parts(j, s);
    if (j && s->test_data) {
        json_object_set_new(j, "accuracy", accuracies(s, first));
        json_object_set_new(j, "accuracy_without_privacy", accuracies(s, &s->arm[s->n_arms - 1]));
    }
    if (j && s->network[0]) json_object_set_new(json_object_get(j, "seconds"), "train", json_real(s->seconds_train));
    if (j) json_object_set_new(j, "aggregation", round_json(s));
    if (j)
        json_object_set_new(
            j, "noise", json_string(fkt_noise_name(shared ? FKT_NOISE_PLACE_DISTRIBUTED : FKT_NOISE_PLACE_CENTRAL)));
    if (j && s->seeded) json_object_set_new(j, "insecure_seed", json_integer((json_int_t)s->insecure_seed));
    return text_of(j, json);
}

fkt_status fkt_sweep_partition_json(const struct fkt_sweep *s, char **json)
{
    const struct fkt_task *t = fkt_pipeline_task(s->pipeline);
    const uint32_t K = t->n_classes;
    json_t *counts, *lost, *classes, *owner;
    char partition[FKT_PARTITION_TEXT];
    *json = NULL;
    if (!s->sim.owner) return fkt_fail(FKT_E_STATE, "the sweep has not run");
    fkt_partition_text(&s->spec.partition, partition);
    counts = json_array();
    lost = json_array();
    classes = json_array();
    owner = json_array();
    for (uint32_t k = 0; k < K; k++) json_array_append_new(classes, json_string(t->classes[k]));
    for (uint32_t i = 0; i < s->sim.sites; i++) {
        json_t *row = json_array();
        for (uint32_t k = 0; k < K; k++) json_array_append_new(row, json_integer(s->sim.counts[(size_t)i * K + k]));
        json_array_append_new(counts, row);
        if (!s->sim.survived[i]) json_array_append_new(lost, json_integer(i));
    }
    for (size_t i = 0; i < s->n_train; i++) json_array_append_new(owner, json_integer(s->sim.owner[i]));
    return text_of(json_pack("{s:s s:b s:s s:I s:i s:o s:o s:o s:o}", "schema", "fedkt.partition/1", "secret", 1,
                             "rule", partition, "seed", (json_int_t)s->spec.partition.seed, "sites", (int)s->sim.sites,
                             "classes", classes, "counts", counts, "not_heard", lost, "owner", owner),
                   json);
}
