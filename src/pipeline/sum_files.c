/* SPDX-License-Identifier: Apache-2.0 */
/* sum_files.c - fkt_cohorts_add_up: from the public folders of the cohorts to the public files of their sum.
 *
 *   out/cohorts/0000/release.safetensors ...  -> the release that this cohort ended with? -> added up (sum.c)
 *                                             -> out/release.safetensors  certificate.json  dataset/  grid.png
 *
 * Whoever has run the cohorts says which release each of them ended with, from the state of its server: a file that
 * lies in a cohort's folder does not count by itself. */
#include "fedkt/cohorts.h"

#include "pipeline/publish.h"
#include "pipeline/sum.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { PER_CLASS = 100 };

static const char *wanted(const struct fkt_cohorts_sum_spec *s, uint32_t i)
{
    return s->release_sha256[i] && s->release_sha256[i][0] ? s->release_sha256[i] : NULL;
}

/* The sum's task has no roster, so this is not in its hash. */
static int same_sites(const struct fkt_task *a, const struct fkt_task *b)
{
    const struct fkt_federation *x = fkt_task_federation(a), *y = fkt_task_federation(b);
    return x->sites == y->sites && x->dropped == y->dropped && x->corrupt == y->corrupt &&
           !memcmp(x->roster, y->roster, (size_t)x->sites * 32);
}

static fkt_status load_one(struct fkt_release **out, const struct fkt_cohorts_sum_spec *s, uint32_t i)
{
    char name[64], own[FKT_SHA256_HEX], all[FKT_SHA256_HEX], *path = NULL;
    fkt_status st;
    snprintf(name, sizeof name, "cohorts/%04u/release.safetensors", i);
    FKT_TRY(fkt_path_join(&path, s->out, name));
    FKT_TRY(fkt_release_load(out, path));
    if (strcmp((*out)->sha256, wanted(s, i)) != 0 || (*out)->task.division.index != i)
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "'%s' is not the release that cohort %u ended with", path, i));
    FKT_TRY(fkt_task_sum_sha256(&(*out)->task, own));
    FKT_TRY(fkt_task_sum_sha256(fkt_cohorts_task(s->cohorts, i), all));
    if (strcmp(own, all) != 0 || !same_sites(&(*out)->task, fkt_cohorts_task(s->cohorts, i)))
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "'%s' is of another division, or other sites, than the task of cohort %u",
                         path, i));
out:
    fkt_free(path);
    return st;
}

static fkt_status publish(const struct fkt_cohorts_sum_spec *s, const struct fkt_release *sum)
{
    struct fkt_publication f = {.out = s->out,
                                .per_class = s->per_class ? s->per_class : PER_CLASS,
                                .format = s->format,
                                .threads = s->threads,
                                .progress = s->progress};
    struct fkt_pipeline *pipeline = NULL;
    fkt_status st;
    FKT_TRY(fkt_release_pipeline(sum, &s->settings, &pipeline));
    f.pipeline = pipeline;
    FKT_TRY(fkt_release_bytes(sum, &f.bytes, &f.len));
    FKT_TRY(fkt_release_certificate(sum, &f.certificate));
    memcpy(f.sha256, sum->sha256, sizeof f.sha256);
    st = fkt_publish_files(&f);
    if (st == FKT_E_NUMERIC) { /* a decoder refuses the numbers: release and certificate are there */
        fkt_publish_no_files(&f);
        st = FKT_OK;
    }
out:
    fkt_publication_clear(&f);
    fkt_pipeline_free(pipeline);
    return st;
}

fkt_status fkt_cohorts_add_up(struct fkt_cohorts_sum *out, const struct fkt_cohorts_sum_spec *spec)
{
    struct fkt_release **made = NULL, sum = {0};
    uint32_t n = 0, number;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!spec->cohorts || !spec->out || !spec->release_sha256)
        return fkt_fail(FKT_E_ARG, "a sum needs the cohorts' tasks, their public folder and their releases");
    number = fkt_cohorts_number(spec->cohorts);
    FKT_TRY(fkt_alloc(&made, number));
    for (uint32_t i = 0; i < number; i++)
        if (wanted(spec, i)) FKT_TRY(load_one(&made[n++], spec, i));
    FKT_TRY(fkt_release_sum_into(&sum, made, n));
    FKT_TRY(publish(spec, &sum));
    *out = (struct fkt_cohorts_sum){.in_sum = n, .sites = sum.facts.sites, .survivors = sum.facts.survivors};
    memcpy(out->release_sha256, sum.sha256, sizeof out->release_sha256);
out:
    for (uint32_t i = 0; made && i < number; i++) fkt_release_free(made[i]);
    fkt_free(made);
    fkt_release_clear(&sum);
    return st;
}
