/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the names of each choice, in one table: tasks, certificates and the command line use it. */
#include "fedkt/codec.h"
#include "fedkt/federation.h"
#include "fedkt/image.h"
#include "fedkt/advanced/mailbox.h"
#include "fedkt/moments.h"
#include "fedkt/privacy.h"
#include "fedkt/synth.h"
#include "fedkt/task.h"

#include <string.h>

static const char *const mechanisms[] = {"joint", "paper"};
static const char *const coordinates[] = {"gain-shape", "clip"};
static const char *const parts[] = {"codec", "guide"};
static const char *const filters[] = {"bilinear", "bicubic", "lanczos", "box"};
static const char *const fits[] = {"crop", "pad", "stretch"};
static const char *const estimators[] = {"clamp", "rie"};
static const char *const dtypes[] = {"f32", "bf16", "auto"};
static const char *const noises[] = {"distributed", "central"};
static const char *const keystreams[] = {"aes-256-ctr", "chacha20"};
static const char *const exports[] = {"folder", "npz", "webdataset", "dpimagebench"};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const char *const stages[] = {"gathering", "running", "finishing", "released", "given-up"};
static const char *const refusals[] = {"unknown-site", "signature", "other-task", "replayed",
                                       "too-large",    "too-often", "malformed"};

static int look_up(const char *const *table, size_t n, const char *s)
{
    for (size_t i = 0; s && i < n; i++)
        if (!strcmp(table[i], s)) return (int)i;
    return -1;
}

static const char *name_of(const char *const *table, size_t n, int i)
{
    return i >= 0 && (size_t)i < n ? table[i] : "?";
}

const char *fkt_mechanism_name(enum fkt_mechanism m) { return name_of(mechanisms, COUNT(mechanisms), (int)m); }
int fkt_mechanism_parse(const char *s) { return look_up(mechanisms, COUNT(mechanisms), s); }
const char *fkt_coordinate_name(enum fkt_coordinate_kind k) { return name_of(coordinates, COUNT(coordinates), (int)k); }
int fkt_coordinate_parse(const char *s) { return look_up(coordinates, COUNT(coordinates), s); }
const char *fkt_part_name(enum fkt_part_kind k) { return name_of(parts, COUNT(parts), (int)k); }
const char *fkt_filter_name(enum fkt_filter f) { return name_of(filters, COUNT(filters), (int)f); }
int fkt_filter_parse(const char *s) { return look_up(filters, COUNT(filters), s); }
const char *fkt_fit_name(enum fkt_fit f) { return name_of(fits, COUNT(fits), (int)f); }
int fkt_fit_parse(const char *s) { return look_up(fits, COUNT(fits), s); }
const char *fkt_estimator_name(enum fkt_estimator e) { return name_of(estimators, COUNT(estimators), (int)e); }
int fkt_estimator_parse(const char *s) { return look_up(estimators, COUNT(estimators), s); }
const char *fkt_export_name(enum fkt_export_format f) { return name_of(exports, COUNT(exports), (int)f); }
int fkt_export_parse(const char *s) { return look_up(exports, COUNT(exports), s); }
const char *fkt_codec_dtype_name(enum fkt_codec_dtype d) { return name_of(dtypes, COUNT(dtypes), (int)d); }
int fkt_codec_dtype_parse(const char *s) { return look_up(dtypes, COUNT(dtypes), s); }
const char *fkt_noise_name(enum fkt_noise_place n) { return name_of(noises, COUNT(noises), (int)n); }
int fkt_noise_parse(const char *s) { return look_up(noises, COUNT(noises), s); }
const char *fkt_keystream_name(enum fkt_sa_keystream k) { return name_of(keystreams, COUNT(keystreams), (int)k); }
int fkt_keystream_parse(const char *s) { return look_up(keystreams, COUNT(keystreams), s); }
const char *fkt_stage_name(enum fkt_stage s) { return name_of(stages, COUNT(stages), (int)s); }
const char *fkt_refusal_name(enum fkt_refusal r) { return name_of(refusals, COUNT(refusals), (int)r); }
