/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - codec and guide of a task from options, each with its calibration and its share of the budget. */
#include "cli/core/parts.h"

#include "codec/cache.h"
#include "codec/codec.h"

#include <stdio.h>
#include <string.h>

int cli_moments_parse(const char *word) { return !strcmp(word, "class") ? 0 : !strcmp(word, "pooled") ? 1 : -1; }

static int is_none(const char *name) { return !name || !strcmp(name, "none"); }

const char *cli_guide_name(const struct cli_codec *c)
{
    if (c->guide) return is_none(c->guide) ? NULL : c->guide;
    return is_none(c->name) || !strcmp(c->name, FKT_DEFAULT_CODEC) ? FKT_DEFAULT_GUIDE : NULL;
}

fkt_status cli_parts_want_images(const struct cli_codec *c, const char *option)
{
    if (is_none(c->name))
        return fkt_fail_hint(FKT_E_ARG, "name a codec with --codec",
                             "%s: without a codec there are heads, and no images", option);
    if (c->pooled)
        return fkt_fail_hint(FKT_E_ARG, "leave --moments out, or give --moments class",
                             "%s: pooled moments give heads, and no images", option);
    return FKT_OK;
}

/* `fedkt codec calibrate` for this network: its weights are --weights there, also for a guide. */
static void calibrate_command(char out[256], const struct cli_codec *c, const struct fkt_codec *codec, int guide)
{
    const char *name = guide ? cli_guide_name(c) : c->name;
    struct cli_codec shown = *c;
    if (guide) shown.settings.weights = c->settings.guide_weights;
    if (fkt_codec_is_path(name)) shown.settings.weights = name;
    cli_calibrate_command(out, 256, &shown, codec);
}

static fkt_status no_calibration(const struct cli_codec *c, const struct fkt_codec *codec, int guide)
{
    char command[256], hint[384];
    calibrate_command(command, c, codec, guide);
    snprintf(hint, sizeof hint, "make one from a public image set and give it with --%scalibration: %s",
             guide ? "guide-" : "", command);
    if (fkt_codec_has_calibration(fkt_codec_name(codec))) /* it has some, for other sizes */
        return fkt_fail_hint(FKT_E_STATE, hint, "%s '%s' has no built-in calibration for images of %u px",
                             guide ? "guide" : "codec", fkt_codec_name(codec), fkt_codec_size(codec));
    return fkt_fail_hint(FKT_E_STATE, hint, "%s '%s' has no built-in calibration", guide ? "guide" : "codec",
                         fkt_codec_name(codec));
}

/* A shipped network at another size than those of its calibrations. */
static fkt_status no_calibration_for_size(const struct cli_codec *c, const struct fkt_codec *codec, int guide)
{
    char command[256], hint[384];
    calibrate_command(command, c, codec, guide);
    snprintf(hint, sizeof hint, "give --size 32 or 64, or --%s, or a calibration of your own with --%scalibration: %s",
             !guide             ? "codec " FKT_PLAIN_CODEC
             : is_none(c->name) ? "codec " FKT_PLAIN_CODEC " --guide none"
                                : "guide none",
             guide ? "guide-" : "", command);
    return fkt_fail_hint(FKT_E_STATE, hint, "%s '%s' has no built-in calibration for this size: %u",
                         guide ? "guide" : "codec", fkt_codec_name(codec), fkt_codec_size(codec));
}

/* The weights were named as the network itself: --codec FILE or --guide FILE. */
static fkt_status no_such_file(fkt_status st, int guide)
{
    struct fkt_failure f;
    fkt_failure_save(&f, st);
    return fkt_fail_hint(st,
                         guide ? "--guide takes a name of 'fedkt codec list', a safetensors file, or a folder with one"
                               : "--codec takes a name of 'fedkt codec list', a safetensors file, or a folder with the "
                                 "published files",
                         "%s", f.text);
}

/* The network and its calibration, into the next place of *out. */
static fkt_status open_part(struct cli_parts *out, const struct cli_codec *c, int guide)
{
    const char *file = guide ? c->guide_calibration : c->calibration;
    struct fkt_codec **codec = &out->codec[out->n];
    struct fkt_calibration *cal = &out->calibration[out->n];
    struct fkt_codec_spec spec;
    fkt_status st;
    FKT_TRY(cli_codec_spec(c, &spec));
    if (guide) {
        spec.name = cli_guide_name(c);
        spec.dim = 0;
        spec.settings.weights = c->settings.guide_weights;
    }
    if (guide && fkt_codec_known(spec.name, 0)) /* before anyone fetches its weights */
        return fkt_fail_hint(FKT_E_ARG, "give a guide, for example fedkt-guide", "'%s' is a codec, not a guide",
                             spec.name);
    if (!guide && fkt_codec_known(spec.name, 1))
        return fkt_fail_hint(FKT_E_ARG, "give a codec, for example fedkt-ae, and this one as the guide",
                             "'%s' is a guide, not a codec: it has no decoder", spec.name);
    out->n++;
    st = fkt_codec_open(codec, &spec);
    if (st != FKT_OK && fkt_error_hint_code() == FKT_HINT_WEIGHTS_KIND && fkt_codec_is_path(spec.name))
        st = no_such_file(st, guide);
    FKT_TRY(guide ? fkt_codec_guide_failure(st, spec.name) : st);
    FKT_TRY(fkt_codec_want(*codec, guide));
    if (file) {
        FKT_TRY(fkt_calibration_load(cal, file));
        FKT_TRY(fkt_calibration_check(cal, *codec));
    } else {
        st = fkt_calibration_embedded(cal, *codec);
        if (st == FKT_E_STATE && fkt_codec_has_calibration(fkt_codec_name(*codec)) &&
            fkt_codec_is_network(fkt_codec_name(*codec)))
            st = no_calibration_for_size(c, *codec, guide);
        else if (st == FKT_E_STATE) st = no_calibration(c, *codec, guide);
        FKT_TRY(st);
    }
out:
    return st;
}

static fkt_status check_numbers(const struct cli_codec *c)
{
    if (c->rq && (c->rq < FKT_RQ_MIN || c->rq > FKT_RQ_MAX))
        return fkt_fail(FKT_E_ARG, "--rq must be between %u and %u", FKT_RQ_MIN, FKT_RQ_MAX);
    if (c->gamma < 0) return fkt_fail(FKT_E_ARG, "--gamma must be positive");
    if (c->clip < 0) return fkt_fail(FKT_E_ARG, "--clip must be positive");
    return FKT_OK;
}

/* What cannot be meant, before a network is opened. */
static fkt_status check_parts(const struct cli_codec *c)
{
    const int no_guide = !cli_guide_name(c);
    if (is_none(c->name) && no_guide)
        return fkt_fail_hint(FKT_E_ARG, "name one with --codec or --guide", "a task needs a codec, a guide, or both");
    if (is_none(c->name) && (c->calibration || c->settings.weights || c->dim))
        return fkt_fail(FKT_E_ARG, "%s needs a codec, and --codec is none",
                        c->calibration        ? "--calibration"
                        : c->settings.weights ? "--weights"
                                              : "--dim");
    if (no_guide && (c->guide_calibration || c->settings.guide_weights))
        return fkt_fail(FKT_E_ARG, "%s needs --guide",
                        c->guide_calibration ? "--guide-calibration" : "--guide-weights");
    if (c->joined && (is_none(c->name) || no_guide)) return fkt_fail(FKT_E_ARG, "--joined needs a codec and a guide");
    return check_numbers(c);
}

/* --budget-split: the count, then sum and second moment of each part of the layout. */
static fkt_status split_budget(struct cli_parts *parts, struct fkt_task_choices *task, const char *text)
{
    const uint32_t n = task->joined ? 1 : parts->n;
    double split[1 + 2 * FKT_PARTS_MAX];
    size_t got;
    if (!text) return FKT_OK;
    if (cli_reals("budget-split", text, split, CLI_COUNT(split), &got) != FKT_OK || got != 1 + 2 * (size_t)n)
        return n == 1
                   ? fkt_fail(FKT_E_ARG, "--budget-split: '%s' is not three numbers like " CLI_BUDGET_SPLIT, text)
                   : fkt_fail(FKT_E_ARG, "--budget-split: '%s' is not five numbers like " CLI_BUDGET_SPLIT_GUIDE, text);
    task->privacy.split_count = split[0];
    for (uint32_t p = 0; p < n; p++) {
        parts->choice[p].split_sum = split[1 + 2 * p];
        parts->choice[p].split_moment = split[2 + 2 * p];
        if (!(split[1 + 2 * p] > 0 && split[2 + 2 * p] > 0))
            return fkt_fail(FKT_E_ARG, "--budget-split: sum and moment must be above 0");
    }
    return FKT_OK;
}

fkt_status cli_open_parts(struct cli_parts *out, struct fkt_task_choices *task, const struct cli_codec *c,
                          const struct cli_privacy *p, double epsilon)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    *task = (struct fkt_task_choices){.filter = (enum fkt_filter)c->filter,
                                      .fit = (enum fkt_fit)c->fit,
                                      .joined = c->joined,
                                      .pooled = c->pooled,
                                      .privacy = {.epsilon = epsilon,
                                                  .delta = p->delta,
                                                  .adjacency = (enum fkt_adjacency)p->adjacency,
                                                  .mechanism = (enum fkt_mechanism)p->mechanism},
                                      .accept_weak = 1}; /* cli_check_promise names the option */
    FKT_TRY(check_parts(c));
    if (!is_none(c->name)) FKT_TRY(open_part(out, c, 0));
    if (cli_guide_name(c)) FKT_TRY(open_part(out, c, 1));
    for (uint32_t i = 0; i < out->n; i++)
        out->choice[i] = (struct fkt_part_choice){.codec = out->codec[i],
                                                  .calibration = &out->calibration[i],
                                                  .coordinates = (enum fkt_coordinate_kind)c->coordinates,
                                                  .gamma = c->gamma,
                                                  .clip = fkt_codec_decodes(out->codec[i]) ? c->clip : 0,
                                                  .rq = (uint32_t)c->rq};
    FKT_TRY(split_budget(out, task, p->split));
out:
    if (st != FKT_OK) cli_parts_clear(out);
    return st;
}

void cli_parts_clear(struct cli_parts *parts)
{
    for (uint32_t i = 0; i < FKT_PARTS_MAX; i++) {
        fkt_codec_free(parts->codec[i]);
        fkt_calibration_clear(&parts->calibration[i]);
    }
    memset(parts, 0, sizeof *parts);
}
