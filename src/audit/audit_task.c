/* SPDX-License-Identifier: Apache-2.0 */
/* audit_task.c - the task of an audit: a codec alone, or a codec and a second part, with moments of each kind.
 *
 *   codec `dct` --fkt_task_make--> task of one part --its JSON with a second part--> fkt_task_parse --> federation
 *
 * The second part has no network: an audit makes record vectors itself and encodes no image, so a name is enough, and
 * whoever reads a task looks at no weights. Layout, radii and noise are derived by the code of a real task. The parts
 * have different coordinates, lengths and, where they are not joined, radii, so that noise of the wrong part shows. */
#include "fedkt/advanced/federation.h"

#include "audit/privacy_audit.h"

#include "task/federation.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <jansson.h>
#include <string.h>

enum { GUIDE_LENGTH = 2, GUIDE_RQ = 100 };
#define GUIDE_RADIUS 1.5

static const char *const layout_names[] = {"one", "parts", "pooled", "joined"};

const char *fkt_audit_layout_name(enum fkt_audit_layout l) { return layout_names[l]; }

int fkt_audit_layout_parse(const char *s)
{
    for (int i = 0; i < 4; i++)
        if (!strcmp(layout_names[i], s)) return i;
    return -1;
}

/* The asked split over the parts: a third of sum and second moment for the codec, the rest for the second part. */
static json_t *split_json(const struct fkt_privacy_spec *p, enum fkt_audit_layout layout)
{
    const double sum = p->part[0].split_sum, moment = p->part[0].split_moment;
    if (layout == FKT_AUDIT_JOINED) return json_pack("[fff]", p->split_count, sum, moment);
    return json_pack("[fffff]", p->split_count, sum / 3, moment / 3, 2 * sum / 3, 2 * moment / 3);
}

static json_t *with_second_part(const struct fkt_task *one, const struct fkt_privacy_spec *p,
                                enum fkt_audit_layout layout)
{
    const int rq = layout == FKT_AUDIT_JOINED ? (int)one->part[0].coordinates.rq : GUIDE_RQ;
    json_t *j = fkt_task_json(one), *privacy = json_object_get(j, "privacy");
    json_t *guide =
        json_pack("{s:s s:i s:s s:s s:O s:{s:s s:i s:i s:i s:f s:f s:f s:f}}", "name", "audit", "dim", GUIDE_LENGTH,
                  "identity", "audit/1", "sha256", one->part[0].sha256, "calibration",
                  json_object_get(j, "calibration"), "coordinates", "kind", "clip", "dim", GUIDE_LENGTH, "length",
                  GUIDE_LENGTH, "rq", rq, "radius", GUIDE_RADIUS, "gamma", 0.0, "log_mean", 0.0, "log_spread", 0.0);
    int bad =
        json_object_set_new(j, "guide", guide) | json_object_set_new(privacy, "budget_split", split_json(p, layout));
    if (layout != FKT_AUDIT_PARTS)
        bad |= json_object_set_new(
            j, "moments",
            json_pack("{s:b s:b}", "joined", layout == FKT_AUDIT_JOINED, "pooled", layout == FKT_AUDIT_POOLED));
    if (!bad) return j;
    json_decref(j);
    return NULL;
}

static fkt_status parse_with_second_part(struct fkt_task *out, const struct fkt_task *one,
                                         const struct fkt_privacy_spec *p, enum fkt_audit_layout layout)
{
    char *text = NULL;
    fkt_status st = fkt_json_text(&text, with_second_part(one, p, layout), 0);
    if (st == FKT_OK) st = fkt_task_parse_into(out, text, strlen(text));
    fkt_free(text);
    return st;
}

fkt_status fkt_audit_task(struct fkt_audit_world *w, const struct fkt_privacy_spec *privacy, enum fkt_noise_place place,
                          enum fkt_audit_layout layout)
{
    static const char *const names[FKT_AUDIT_CLASSES] = {"full", "empty", "half full", "hidden"};
    uint8_t roster[FKT_AUDIT_SITES * FKT_SA_KEY], secrets[FKT_AUDIT_SITES * FKT_SA_SECRET];
    const struct fkt_federation_choices federation = {.sites = FKT_AUDIT_SITES,
                                                      .dropped = FKT_AUDIT_LOST,
                                                      .corrupt = FKT_AUDIT_CORRUPT,
                                                      .records = 2 * FKT_AUDIT_RECORDS,
                                                      .roster = roster};
    const struct fkt_task_choices choices = {.name = "audit",
                                             .classes = names,
                                             .n_classes = FKT_AUDIT_CLASSES,
                                             .privacy = *privacy,
                                             .accept_weak = 1}; /* nothing was released yet */
    const struct fkt_codec_spec spec = {.name = "dct", .size = 8, .dim = FKT_AUDIT_LENGTH - 1};
    struct fkt_part_choice part = {.split_sum = privacy->part[0].split_sum,
                                   .split_moment = privacy->part[0].split_moment};
    struct fkt_codec *codec = NULL;
    struct fkt_task one = {0};
    fkt_status st;
    FKT_TRY(fkt_federation_keys(roster, secrets, FKT_AUDIT_SITES, NULL));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&w->calibration[0], codec));
    FKT_TRY(fkt_calibration_embedded(&w->calibration[1], codec));
    part.codec = codec;
    part.calibration = &w->calibration[0];
    FKT_TRY(fkt_task_make_into(layout == FKT_AUDIT_ONE ? &w->task : &one, &choices, &part, 1));
    if (layout != FKT_AUDIT_ONE) FKT_TRY(parse_with_second_part(&w->task, &one, privacy, layout));
    if (place == FKT_NOISE_PLACE_DISTRIBUTED) {
        FKT_TRY(fkt_federation_make(&w->task, &federation));
        FKT_TRY(fkt_task_seal(&w->task));
    }
    FKT_TRY(fkt_federation_shares(&w->task, &w->shares));
out:
    fkt_wipe(secrets, sizeof secrets);
    fkt_task_clear(&one);
    fkt_codec_free(codec);
    return st;
}
