/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - `fedkt codec calibrate`: makes a public calibration from a PUBLIC image set. */
#include "cli/codec/codec.h"

#include "base/output.h"

#include <string.h>

fkt_status cli_codec_calibrate(const struct codec_asked *a)
{
    struct fkt_codec_spec spec;
    struct fkt_codec *codec = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_calibration cal = {0};
    struct cli_progress progress;
    struct fkt_pipeline_options o = {.progress = &progress.hook};
    struct cli_data set = a->data;
    const char *slash;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    if (a->data.path) {
        st = fkt_fail_hint(FKT_E_ARG, "give a PUBLIC image set with --public: a calibration is published",
                           "calibrate does not take --data, which is for private images");
        goto out;
    }
    set.path = a->public_set;
    set.fit = a->codec.fit;
    set.unlabelled = 1;
    if (!set.path || !a->out) {
        st = fkt_fail(FKT_E_ARG, "calibrate needs --public (a PUBLIC image set) and --out");
        goto out;
    }
    if (a->data.skip_bad) {
        st = fkt_fail(FKT_E_ARG, "calibrate reads every image: remove the bad ones instead of --skip-bad");
        goto out;
    }
    if (a->top > UINT32_MAX) {
        st = fkt_fail(FKT_E_ARG, "--top must be at most %u", UINT32_MAX);
        goto out;
    }
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(cli_codec_spec(&a->codec, &spec));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    cli_print_dtype(&a->codec.settings, codec, &a->run);
    FKT_TRY(cli_not_an_input(a->out, set.path));
    FKT_TRY(cli_not_an_input(a->out, a->codec.settings.weights));
    FKT_TRY(fkt_output_file(a->out, a->run.force));
    FKT_TRY(cli_open_data(&ds, &set, NULL, &a->run));
    slash = strrchr(set.path, '/');
    FKT_TRY(fkt_calibrate(&cal, codec, ds, (enum fkt_filter)a->codec.filter, (uint32_t)a->top,
                          a->source           ? a->source
                          : slash && slash[1] ? slash + 1
                                              : set.path,
                          &o));
    FKT_TRY(fkt_calibration_save(&cal, a->out, a->run.force));
    cli_progress_end(&progress);
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack("{s:s s:s s:I s:i s:f s:f s:f s:o}", "calibration", a->out, "source",
                                         cal.source, "images", (json_int_t)cal.images, "dim", (int)cal.dim, "log_mean",
                                         cal.log_mean, "log_spread", cal.log_spread, "radius", cal.radius, "device",
                                         cli_codec_device_json(codec))));
    else
        printf("calibration of %s from %llu images of '%s' in %s\n%u directions, |u| = exp(%.4f +- %.4f), clip radius "
               "%.4f\n",
               fkt_codec_identity(codec), (unsigned long long)cal.images, cal.source, a->out, cal.dim, cal.log_mean,
               cal.log_spread, cal.radius);
out:
    cli_progress_end(&progress);
    fkt_calibration_clear(&cal);
    fkt_dataset_free(ds);
    fkt_codec_free(codec);
    return st;
}
