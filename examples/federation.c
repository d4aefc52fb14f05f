/* SPDX-License-Identifier: Apache-2.0 */
/* federation.c - a whole federation in one process: a server and three sites, and a carrier of our own between them.
 *
 *   site: send -> server: deliver, settle -> site: sent          site: has -> server: collect, settle -> site: recv
 *
 * `fedkt serve` and `fedkt join` do this over HTTPS. Here a message is a buffer that changes hands, and what a carrier
 * must keep to is on one page: nothing leaves before it is settled, every answer carries the head of the transparency
 * log, the server is told the time, heavy work is done when there is some. Files go into folder "federation" of the
 * working one, which must not be there. Build it against an installed library:
 *   cc federation.c $(pkg-config --cflags --libs fedkt) */
#include "fedkt/advanced/mailbox.h"
#include "fedkt/client.h"
#include "fedkt/pipeline.h"
#include "fedkt/server.h"
#include "fedkt/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SITES = 3, CLASSES = 2 };

static fkt_status st = FKT_OK; /* the first failure ends it */
#define TRY(call) st = st == FKT_OK ? (call) : st

struct site {
    uint8_t secret[FKT_SA_SECRET];
    struct fkt_client *client;
    struct fkt_endpoint side;
};

static void make_task(struct fkt_task **task, struct site *sites)
{
    static const char *const classes[CLASSES] = {"cat", "dog"};
    uint8_t roster[SITES][FKT_SA_KEY], key[FKT_SA_KEY], secret[FKT_SA_SECRET];
    struct fkt_federation_choices federation = {.sites = SITES, .corrupt = 1, .records = 100, .roster = roster[0]};
    struct fkt_service_choices service = {.address = "https://nowhere.example:8443"};
    struct fkt_task_choices choices = {.classes = classes,
                                       .n_classes = CLASSES,
                                       .federation = &federation,
                                       .privacy = {.epsilon = 5, .delta = 1e-6},
                                       .service = &service};
    struct fkt_codec *codec = NULL;
    struct fkt_calibration calibration = {0};
    for (int i = 0; i < SITES; i++) TRY(fkt_sa_identity(roster[i], sites[i].secret, NULL));
    TRY(fkt_sa_identity(key, secret, NULL)); /* the operator's */
    TRY(fkt_codec_open(&codec, &(struct fkt_codec_spec){.name = "dct", .size = 16, .dim = 8}));
    TRY(fkt_calibration_embedded(&calibration, codec));
    TRY(fkt_task_make(task, &choices, &(struct fkt_part_choice){.codec = codec, .calibration = &calibration}, 1));
    TRY(fkt_task_sign(*task, secret));
    fkt_calibration_clear(&calibration);
    fkt_codec_free(codec);
}

/* Moments of no images at all; fkt_pipeline_moments makes them of a data set, and fills the records with what was in
 * it. */
static void open_site(struct site *s, const struct fkt_task *task, int i)
{
    int64_t *moments = calloc(fkt_layout_numbers(fkt_task_layout(task), CLASSES), sizeof *moments);
    struct fkt_records *records = NULL;
    char state[64], ledger[64];
    snprintf(state, sizeof state, "federation/site%d.db", i);
    snprintf(ledger, sizeof ledger, "federation/ledger%d.db", i);
    TRY(fkt_records_new(&records, fkt_task_privacy(task)->adjacency));
    TRY(fkt_client_open(&s->client, &(struct fkt_client_spec){.task = task,
                                                              .secret = s->secret,
                                                              .state = state,
                                                              .ledger = ledger,
                                                              .dataset = "images",
                                                              .records = records,
                                                              .moments = moments}));
    if (st == FKT_OK) fkt_client_endpoint(s->client, &s->side);
    fkt_records_free(records);
    free(moments);
}

/* One request of a site and its answer. */
static void carry(const struct fkt_mailbox *box, const struct site *s)
{
    const struct fkt_endpoint *c = &s->side;
    uint8_t round[FKT_MAILBOX_ROUND], *buf = malloc(c->out_max);
    const int sends = c->wants(c->self) == FKT_ENDPOINT_SEND;
    struct fkt_message message = {0};
    fkt_status verdict = FKT_OK;
    uint32_t after;
    uint64_t entry = 0;
    char head[65];
    size_t len = 0;
    if (sends) TRY(buf ? c->send(c->self, buf, c->out_max, &len) : FKT_E_NOMEM);
    if (sends && st == FKT_OK) verdict = box->deliver(box->self, fkt_client_site(s->client), buf, len);
    c->has(c->self, round, &after);
    if (!sends) TRY(box->collect(box->self, fkt_client_site(s->client), round, after, &message));
    TRY(box->settle(box->self)); /* fails too when deliver said that the server cannot go on */
    if (st == FKT_OK) box->head(box->self, &entry, head);
    if (entry) TRY(c->heard_head(c->self, entry, head));
    if (sends) TRY(c->sent(c->self, verdict == FKT_OK));
    else TRY(c->recv(c->self, &message));
    free(buf);
}

int main(void)
{
    struct site site[SITES] = {0};
    struct fkt_task *task = NULL;
    struct fkt_server_spec spec = {.folder = "federation/server", .per_class = 4};
    struct fkt_server *server = NULL;
    struct fkt_mailbox box = {0};
    struct fkt_verification report = {0};
    make_task(&task, site);
    spec.task = task;
    TRY(fkt_server_open(&server, &spec));
    if (st == FKT_OK) fkt_server_mailbox(server, &box);
    for (int i = 0; i < SITES && st == FKT_OK; i++) open_site(&site[i], task, i);
    for (int ended = 0; st == FKT_OK && ended < SITES;) {
        TRY(box.tick(box.self, (uint64_t)time(NULL) * 1000));
        ended = 0;
        for (int i = 0; i < SITES && st == FKT_OK; i++)
            if (site[i].side.wants(site[i].side.self) == FKT_ENDPOINT_ENDED) ended++;
            else carry(&box, &site[i]);
        if (box.has_work(box.self)) TRY(box.worked(box.self, box.work(box.self)));
        TRY(box.settle(box.self));
    }
    TRY(fkt_client_receipt(site[0].client, "federation/receipt.json", 0)); /* and what anybody can check: */
    TRY(fkt_verify_folder(&report, "federation/server/public", task, "federation/receipt.json"));
    if (st == FKT_OK) printf("release %s of %u sites\n", report.release_sha256, report.survivors);
    else fprintf(stderr, "federation: %s\n", fkt_error_text());
    for (int i = 0; i < SITES; i++) fkt_client_close(site[i].client);
    fkt_server_close(server);
    fkt_task_free(task);
    return st != FKT_OK || report.survivors != SITES;
}
