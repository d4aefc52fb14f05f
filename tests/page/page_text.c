/* SPDX-License-Identifier: Apache-2.0 */
/* page_text.c - what the server would say to a browser and to a monitor, of views that are made up.
 *
 *   page_text html | csp            the page as it is served, and its policy
 *   page_text status SCENE [SITES]  one line of JSON; page_text metrics SCENE [SITES]: Prometheus text
 * Scenes: gathering advertise coin share mask confirm reveal unmask finishing released given-up failed hostile seeded
 */
#include "base/alloc.h"
#include "net/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 5000 };

static const char *const scenes[] = {"gathering", "advertise", "coin",     "share",    "mask",   "confirm", "reveal",
                                     "unmask",    "finishing", "released", "given-up", "failed", "hostile", "seeded"};
static const char *const classes[] = {"disc", "ring", "square", "cross", "stripes", "checker", "gradient", "dots"};

static uint8_t slot[SITES_MAX];
static char name_text[SITES_MAX][40];
static const char *names[SITES_MAX];
static uint8_t roster[SITES_MAX * 32];

static int scene_of(const char *s)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i], s) == 0) return (int)i;
    return -1;
}

static void fill_facts(struct fkt_page_facts *f, const char *scene, uint32_t sites)
{
    static const char *const towns[] = {"Aarhus", "Bergen", "Cork", "Dijon", "Essen", "Faro", "Graz"};
    *f = (struct fkt_page_facts){
        .task_name = "skin lesions, spring",
        .task_sha256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        .privacy = "Protected: presence, pixels and label of any one record.\n"
                   "Differential privacy with epsilon 1 and delta 1e-5: an adversary who knows everything else, and "
                   "considers it "
                   "equally likely whether one given image was used, guesses right at most 55.1 % of the time from the "
                   "release; a coin toss is right 50 %, and a smaller epsilon is closer to that.\n"
                   "Not protected: what is true of a whole class.",
        .noise = "distributed",
        .version = "0.1.0",
        .sites = sites,
        .names = names,
        .roster = roster,
        .classes = classes,
        .n_classes = sizeof classes / sizeof *classes,
        .sparse = sites > 50 || strcmp(scene, "coin") == 0,
        .started_ms = 1753000000000};
    for (uint32_t i = 0; i < sites; i++) {
        snprintf(name_text[i], sizeof name_text[i], "Clinic of %s %u", towns[i % 7], i / 7 + 1);
        names[i] = name_text[i];
        for (int k = 0; k < 32; k++) roster[i * 32 + (uint32_t)k] = (uint8_t)(i * 7 + (uint32_t)k * 13);
    }
    if (strcmp(scene, "seeded") == 0) f->insecure = 1;
    if (strcmp(scene, "hostile") == 0) {
        f->task_name = "<img src=x onerror=alert(1)> \"\\\x01\x7f\n\xff";
        names[0] = "<script>alert(1)</script>";
        names[1] = "\xe2\x80\xae\xc3\x28 ' & `${1}`";
        f->version = "0\\1\"2\n3";
    }
}

static void fill_view(struct fkt_mailbox_view *v, int scene, uint32_t sites)
{
    int phase = scene >= 1 && scene <= 7, running = phase || scene >= 12;
    static const uint64_t refused[FKT_REFUSALS] = {1, 2, 0, 0, 0, 0, 40};
    *v = (struct fkt_mailbox_view){.stage = FKT_STAGE_GATHERING,
                                   .phase = phase     ? scenes[scene]
                                            : running ? "mask"
                                                      : "",
                                   .round = scene > 0,
                                   .sites = sites,
                                   .ready = sites - sites / 12,
                                   .needed = sites - sites / 5,
                                   .slot = slot,
                                   .stage_since = 1753000000000,
                                   .phase_since = running ? 1753000100000 : 0,
                                   .phase_until = running ? 1753000220000 : 0,
                                   .messages = 3u * sites,
                                   .message_bytes = 123456u * (uint64_t)sites,
                                   .log_entries = 7u * sites,
                                   .refused = refused,
                                   .n_refused = FKT_REFUSALS,
                                   .reason = "",
                                   .release_sha256 = ""};
    if (running) v->stage = FKT_STAGE_RUNNING;
    if (scene == 8) v->stage = FKT_STAGE_FINISHING;
    if (scene == 9) v->stage = FKT_STAGE_RELEASED;
    if (scene == 10) v->stage = FKT_STAGE_GIVEN_UP;
    if (scene == 9) v->release_sha256 = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9";
    if (scene == 10 || scene == 11) v->reason = "round 1: 7 sites are left in phase 'mask', 10 are needed";
    for (uint32_t i = 0; i < sites; i++) {
        uint8_t s = i % 12 == 11 ? FKT_SITE_AWAY : FKT_SITE_READY;
        if (running) s = i % 12 == 11 ? FKT_SITE_LOST : i % 3 ? FKT_SITE_HEARD : FKT_SITE_ASKED;
        if (scene == 8 || scene == 9) s = i % 12 == 11 ? FKT_SITE_LOST : FKT_SITE_COUNTED;
        slot[i] = s;
        v->lost += s == FKT_SITE_LOST;
        v->heard += running && s == FKT_SITE_HEARD;
        v->expected += running && s != FKT_SITE_LOST;
        v->survivors += s == FKT_SITE_COUNTED;
    }
}

static void fill_counts(struct fkt_page_counts *c)
{
    static const uint64_t within[FKT_PAGE_BOUNDS] = {0,   10,  90,  200, 400, 700, 900, 950,
                                                     980, 990, 995, 998, 999, 999, 999, 1000};
    *c = (struct fkt_page_counts){.requests = 1100,
                                  .answers_2xx = 1000,
                                  .answers_4xx = 43,
                                  .answers_5xx = 1,
                                  .bytes_in = 1 << 20,
                                  .bytes_out = 5 << 20,
                                  .connections = 12,
                                  .parked = 9,
                                  .streams = 1,
                                  .latency_sum_us = 22000007,
                                  .latency_count = 1000};
    memcpy(c->latency_le_us, within, sizeof within);
}

int main(int argc, char **argv)
{
    uint32_t sites = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 12;
    int scene = argc > 2 ? scene_of(argv[2]) : 0;
    struct fkt_page_facts facts;
    struct fkt_mailbox_view view;
    struct fkt_page_counts counts;
    struct fkt_text text;
    if (argc < 2 || scene < 0 || sites < 2 || sites > SITES_MAX) return 2;
    fkt_text_init(&text);
    fill_facts(&facts, argc > 2 ? argv[2] : "gathering", sites);
    fill_view(&view, scene, sites);
    fill_counts(&counts);
    if (strcmp(argv[1], "html") == 0) fkt_text_add(&text, fkt_page_html());
    else if (strcmp(argv[1], "csp") == 0) fkt_text_add(&text, fkt_page_csp());
    else if (strcmp(argv[1], "metrics") == 0) fkt_page_metrics(&text, &facts, &view, &counts, 1753000160000);
    else fkt_page_status(&text, &facts, &view, &counts, 1753000160000, view.stage == FKT_STAGE_RELEASED);
    fputs(text.s, stdout);
    int bad = fkt_text_status(&text) != FKT_OK;
    fkt_text_clear(&text);
    return bad;
}
