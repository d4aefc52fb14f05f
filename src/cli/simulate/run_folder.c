/* SPDX-License-Identifier: Apache-2.0 */
/* run_folder.c - the files that a simulation writes.
 *
 *   run/  partition.json  moments.safetensors  results.json  report.html      not private
 *         grid.png                                                            from the first release
 *         task.json  release.safetensors  certificate.json  [synthetic/]      per epsilon; in eps-E/ when several
 *
 * Only the release and what is made from it may be published; partition, moments, results and report contain true
 * counts, real images or exact sums, and are marked as not private. */
#include "cli/simulate/run.h"

#include "fedkt/advanced/simulate.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/simulate/run_report.h"
#include "task/task.h"

#include <stdio.h>
#include <string.h>

/* Sorted keys, as all our JSON files have them. */
static fkt_status save_json(const char *folder, const char *name, const char *text)
{
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, folder, name);
    if (st == FKT_OK) st = fkt_json_save(json_loads(text, 0, NULL), path, FKT_FILE_PRIVATE);
    fkt_free(path);
    return st;
}

static fkt_status save_results(const struct fkt_sweep *w, const char *folder)
{
    char *results = NULL, *partition = NULL;
    fkt_status st;
    FKT_TRY(fkt_sweep_partition_json(w, &partition));
    FKT_TRY(save_json(folder, "partition.json", partition));
    FKT_TRY(fkt_sweep_results_json(w, &results));
    FKT_TRY(save_json(folder, "results.json", results));
out:
    fkt_string_free(results);
    fkt_string_free(partition);
    return st;
}

static fkt_status write_certificate(const struct fkt_release *r, const char *path)
{
    char *text = NULL;
    fkt_status st;
    FKT_TRY(fkt_release_certificate(r, &text));
    FKT_TRY(fkt_file_write(path, text, strlen(text), 0));
out:
    fkt_string_free(text);
    return st;
}

/* "eps-10" inside the run folder where there are several, else the run folder itself. */
static fkt_status arm_folder(const struct cli_sim *s, struct fkt_sweep *w, size_t i, const char *run,
                             struct cli_progress *progress)
{
    const struct fkt_sweep_arm *a = fkt_sweep_arm(w, i);
    char *folder = NULL, *path[4] = {0}, name[32] = "";
    fkt_status st;
    if (fkt_sweep_arms(w) > 2) snprintf(name, sizeof name, "eps-%g", a->task->privacy.epsilon);
    FKT_TRY(fkt_path_join(&folder, run, name));
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_path_join(&path[0], folder, "task.json"));
    FKT_TRY(fkt_task_save(a->task, path[0], 0));
    FKT_TRY(fkt_path_join(&path[1], folder, "release.safetensors"));
    FKT_TRY(fkt_release_save(a->release, path[1], 0));
    FKT_TRY(fkt_path_join(&path[2], folder, "certificate.json"));
    FKT_TRY(write_certificate(a->release, path[2]));
    if (!s->per_class) goto out;
    FKT_TRY(fkt_path_join(&path[3], folder, "synthetic"));
    FKT_TRY(fkt_sweep_generate(w, i, path[3], (size_t)s->per_class, (enum fkt_export_format)s->format, 0));
out:
    cli_progress_end(progress);
    for (size_t k = 0; k < CLI_COUNT(path); k++) fkt_free(path[k]);
    fkt_free(folder);
    return st;
}

fkt_status cli_run_folder(const struct cli_sim *s, const struct cli_outcome *o, struct cli_progress *progress)
{
    const struct fkt_sweep *w = o->sweep;
    struct fkt_folder f = {0};
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_folder_begin(&f, s->out, s->run.force));
    for (size_t i = 0; i + 1 < fkt_sweep_arms(w); i++) FKT_TRY(arm_folder(s, o->sweep, i, f.tmp, progress));
    FKT_TRY(fkt_path_join(&path, f.tmp, "moments.safetensors"));
    FKT_TRY(fkt_moments_save(fkt_sweep_simulation(w)->total, fkt_pipeline_task(fkt_sweep_pipeline(w)),
                             fkt_sweep_records(w), path, 0));
    FKT_TRY(save_results(w, f.tmp));
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
