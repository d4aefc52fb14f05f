/* SPDX-License-Identifier: Apache-2.0 */
/* log_maker.c - a good log, made by hand from docs/http.md: two rounds, the first of which fails. Messages are
 * not there, only their hashes, which nobody can check anyway; signatures and files are real. */
#include "tests/support/log_maker.h"

#include "fedkt/advanced/mailbox.h"
#include "fedkt/release.h"
#include "fedkt/server.h"

#include "base/file.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "crypto/sign.h"
#include "pipeline/release.h"
#include "task/task.h"
#include "secagg/coin.h"
#include "secagg/share.h"

#include <unistd.h>

enum { OPERATOR = FED_SITES_MAX - 1 };
#define PIN "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

static void add(struct log_maker *m, json_t *line)
{
    if (!line || json_array_append_new(m->lines, line) != 0) abort();
}

/* A message that was never sent has a hash all the same. */
static void message(struct log_maker *m, int round, uint32_t site, const char *kind)
{
    char what[64], sha[FKT_SHA256_HEX];
    snprintf(what, sizeof what, "%d %u %s", round, site, kind);
    fkt_hash_bytes_hex(sha, what, strlen(what));
    add(m, json_pack("{s:s s:i s:i s:s s:i s:s s:i}", "event", "message", "round", round, "site", (int)site, "kind",
                     kind, "bytes", (int)strlen(what), "sha256", sha, "verdict", 0));
}

static void phase(struct log_maker *m, int round, const char *name, uint32_t heard, uint32_t expected)
{
    add(m, json_pack("{s:s s:i s:s s:i s:i s:s}", "event", "phase", "round", round, "phase", name, "heard", (int)heard,
                     "expected", (int)expected, "why", heard == expected ? "all" : "deadline"));
}

static void begin(struct log_maker *m, int round, char hex[2 * FKT_MAILBOX_ROUND + 1])
{
    uint8_t name[FKT_MAILBOX_ROUND];
    memset(name, 0x10 + round, sizeof name);
    fkt_hex(hex, name, sizeof name);
    add(m, json_pack("{s:s s:i s:s}", "event", "begin", "round", round, "name", hex));
}

static fkt_status confirm(struct log_maker *m, const char *round_hex, int round)
{
    struct fkt_sa_params p;
    struct fkt_share_plan shares;
    uint8_t name[FKT_MAILBOX_ROUND], session[FKT_SA_SESSION], seed[32], map[FED_SITES_MAX / 8] = {0}, hash[32], sig[64];
    char hex[2 * 64 + 1], bits[2 * sizeof map + 1];
    fkt_status st = fkt_federation_open(&m->f.task, &p, &shares);
    if (st != FKT_OK || !fkt_unhex(name, round_hex, sizeof name)) return st;
    fkt_sa_session(session, &p, name);
    memset(seed, 7, sizeof seed);
    if (fkt_sa_complete(&p)) FKT_TRY(fkt_sa_coin_seed(seed, session, NULL, NULL));
    for (uint32_t i = m->dropped; i < p.sites; i++) fkt_bitmap_set(map, i);
    fkt_sa_confirm_hash(hash, session, seed, map, fkt_bitmap_bytes(p.sites));
    fkt_hex(bits, map, fkt_bitmap_bytes(p.sites));
    fkt_hex(hex, seed, sizeof seed);
    add(m, json_pack("{s:s s:i s:s s:s s:i}", "event", "survivors", "round", round, "seed", hex, "survivors", bits,
                     "count", (int)(p.sites - m->dropped)));
    for (uint32_t i = m->dropped; i < p.sites; i++) {
        message(m, round, i, "confirm");
        fkt_sign(sig, hash, sizeof hash, m->f.secrets + (size_t)i * FKT_SA_SECRET);
        fkt_hex(hex, sig, sizeof sig);
        add(m, json_pack("{s:s s:i s:i s:s}", "event", "confirmed", "round", round, "site", (int)i, "signature", hex));
    }
out:
    return st;
}

static fkt_status tell(struct log_maker *m)
{
    const uint32_t n = m->f.task.federation.sites, lost = m->dropped;
    char round[2 * FKT_MAILBOX_ROUND + 1];
    fkt_status st;
    add(m, json_pack("{s:s s:s}", "event", "start", "version", "0"));
    add(m, json_pack("{s:s s:n s:s s:i}", "event", "refused", "site", "why", "unknown-site", "times", 3));
    begin(m, 1, round);
    message(m, 1, 1, "advertise");
    phase(m, 1, "advertise", 1, n);
    add(m, json_pack("{s:s s:i s:s}", "event", "failed", "round", 1, "reason", "too few sites"));
    begin(m, 2, round);
    for (uint32_t i = 0; i < n; i++) message(m, 2, i, "advertise");
    phase(m, 2, "advertise", n, n);
    for (uint32_t i = 0; i < n; i++) message(m, 2, i, "shares");
    phase(m, 2, "share", n, n);
    for (uint32_t i = lost; i < n; i++) message(m, 2, i, "masked");
    phase(m, 2, "mask", n - lost, n);
    for (uint32_t i = 0; i < lost; i++)
        add(m, json_pack("{s:s s:i s:i s:i s:s}", "event", "lost", "round", 2, "site", (int)i, "status", 24, "phase",
                         "mask"));
    FKT_TRY(confirm(m, round, 2));
    phase(m, 2, "confirm", n - lost, n - lost);
    for (uint32_t i = lost; i < n; i++) message(m, 2, i, "reveal");
    phase(m, 2, "reveal", n - lost, n - lost);
    add(m, json_pack("{s:s s:i s:i}", "event", "release", "round", 2, "survivors", (int)(n - lost)));
    add(m, json_pack("{s:s s:s}", "event", "file", "name", "grid.png"));
    add(m, json_pack("{s:s}", "event", "end"));
out:
    return st;
}

fkt_status log_maker_init(struct log_maker *m, uint32_t sites, uint32_t dropped, uint32_t corrupt)
{
    static const char *const classes[FED_CLASSES] = {"cat", "dog"};
    static const struct fkt_service_choices service = {.address = "https://fedkt.example.org:8443", .pin = PIN};
    struct fkt_federation_choices c = {.sites = sites, .dropped = dropped, .corrupt = corrupt, .records = 16};
    struct fkt_task_choices t = {.name = "audited",
                                 .classes = classes,
                                 .n_classes = FED_CLASSES,
                                 .privacy = {.epsilon = 10, .delta = 1e-5},
                                 .federation = &c,
                                 .service = &service};
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    const uint64_t seed = 4;
    struct fkt_codec *codec = NULL;
    fkt_status st;
    memset(m, 0, sizeof *m);
    m->dropped = dropped;
    m->claimed = sites - dropped;
    snprintf(m->grid, sizeof m->grid, "an image of the release");
    m->lines = json_array();
    FKT_TRY(fkt_federation_keys(m->f.roster, m->f.secrets, FED_SITES_MAX, &seed));
    c.roster = m->f.roster;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&m->f.calibration, codec));
    FKT_TRY(fkt_task_make_into(&m->f.task, &t,
                               &(struct fkt_part_choice){.codec = codec, .calibration = &m->f.calibration}, 1));
    FKT_TRY(fkt_task_sign(&m->f.task, m->f.secrets + (size_t)OPERATOR * FKT_SA_SECRET));
    add(m, json_pack("{s:s s:s s:s}", "event", "open", "schema", "fedkt.transparency/1", "version", "0"));
    m->receipt = json_pack("{s:s s:s s:i s:[] s:[]}", "schema", "fedkt.receipt/1", "task_sha256", m->f.task.sha256,
                           "site", 1, "heads", "messages");
    FKT_TRY(tell(m));
out:
    fkt_codec_free(codec);
    if (st != FKT_OK) log_maker_release(m);
    return st;
}

void log_maker_release(struct log_maker *m)
{
    small_federation_release(&m->f);
    json_decref(m->lines);
    json_decref(m->receipt);
    memset(m, 0, sizeof *m);
}

size_t log_maker_find(const struct log_maker *m, const char *event, size_t from)
{
    for (; from < json_array_size(m->lines); from++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(m->lines, from), "event")), event)) return from;
    return SIZE_MAX;
}

json_t *log_maker_line(const struct log_maker *m, const char *event, size_t from)
{
    return json_array_get(m->lines, log_maker_find(m, event, from));
}

static const char *in(char path[512], const char *folder, const char *name)
{
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

/* Release, certificate and image; their hashes go where the lines do not hold any yet. */
static fkt_status files(struct log_maker *m, const char *folder)
{
    struct fkt_round_facts facts = {m->f.task.federation.sites, m->claimed, 0, 0};
    json_t *line = log_maker_line(m, "release", 0);
    int64_t total[FED_CLASSES * FED_BLOCK], one[FED_CLASSES * FED_BLOCK];
    struct fkt_release r = {0};
    char *certificate = NULL, sha[FKT_SHA256_HEX], path[512];
    fkt_status st;
    memset(total, 0, sizeof total);
    for (uint32_t i = m->dropped; i < facts.sites; i++) {
        FKT_TRY(small_moments(NULL, i, one));
        for (size_t k = 0; k < sizeof one / sizeof *one; k++) total[k] += one[k];
    }
    if (m->made_up) total[1] = m->made_up;
    FKT_TRY(fkt_release_gather_into(&r, &m->f.task, &m->f.calibration, total, &facts, m->seeded));
    FKT_TRY(fkt_release_save(&r, in(path, folder, "release.safetensors"), 1));
    FKT_TRY(fkt_release_certificate(&r, &certificate));
    FKT_TRY(fkt_file_write(in(path, folder, "certificate.json"), certificate, strlen(certificate), FKT_FILE_REPLACE));
    FKT_TRY(fkt_file_write(in(path, folder, "grid.png"), m->grid, strlen(m->grid), FKT_FILE_REPLACE));
    if (line && !json_object_get(line, "sha256")) json_object_set_new(line, "sha256", json_string(r.sha256));
    fkt_hash_bytes_hex(sha, certificate, strlen(certificate));
    if (line && !json_object_get(line, "certificate_sha256"))
        json_object_set_new(line, "certificate_sha256", json_string(sha));
    line = log_maker_line(m, "file", 0);
    fkt_hash_bytes_hex(sha, m->grid, strlen(m->grid));
    if (line && !json_object_get(line, "sha256")) {
        json_object_set_new(line, "sha256", json_string(sha));
        json_object_set_new(line, "bytes", json_integer((json_int_t)strlen(m->grid)));
    }
out:
    fkt_string_free(certificate);
    fkt_release_clear(&r);
    return st;
}

/* What site 1 was told and sent: every third head, and all its messages. */
static void remember(const json_t *line, json_t *receipt, json_int_t entry, const char *sha, const char *round)
{
    if (entry % 3 == 0)
        json_array_append_new(json_object_get(receipt, "heads"), json_pack("{s:I s:s}", "entry", entry, "sha256", sha));
    if (!strcmp(json_string_value(json_object_get(line, "event")), "message") &&
        json_integer_value(json_object_get(line, "site")) == 1)
        json_array_append_new(json_object_get(receipt, "messages"),
                              json_pack("{s:s s:O s:O s:O s:b}", "round", round, "kind", json_object_get(line, "kind"),
                                        "sha256", json_object_get(line, "sha256"), "bytes",
                                        json_object_get(line, "bytes"), "taken", 1));
}

static fkt_status open_line(struct log_maker *m, const char *folder)
{
    char path[512];
    json_t *line = log_maker_line(m, "open", 0), *task;
    fkt_status st = fkt_task_save(&m->f.task, in(path, folder, "task.json"), 1);
    if (st != FKT_OK) return st;
    task = json_load_file(path, 0, NULL);
    if (line && !json_object_get(line, "task")) json_object_set_new(line, "task", task);
    else json_decref(task);
    return FKT_OK;
}

fkt_status log_maker_write(struct log_maker *m, const char *folder)
{
    struct fkt_text log;
    json_t *receipt = json_deep_copy(m->receipt);
    char head[FKT_SHA256_HEX], round[2 * FKT_MAILBOX_ROUND + 1] = "", *text = NULL, path[512];
    fkt_status st;
    fkt_text_init(&log);
    memset(head, '0', sizeof head - 1);
    head[sizeof head - 1] = '\0';
    FKT_TRY(files(m, folder));
    FKT_TRY(open_line(m, folder));
    for (size_t i = 0; i < json_array_size(m->lines); i++) {
        json_t *line = json_copy(json_array_get(m->lines, i));
        const char *name = json_string_value(json_object_get(line, "name"));
        if (!strcmp(json_string_value(json_object_get(line, "event")), "begin") && name)
            snprintf(round, sizeof round, "%s", name);
        json_object_set_new(line, "entry", json_integer((json_int_t)i + 1));
        json_object_set_new(line, "at", json_integer(1700000000000 + (json_int_t)i));
        json_object_set_new(line, "prev", json_string(head));
        fkt_string_free(text);
        json_incref(line);
        st = fkt_json_text(&text, line, 0);
        if (st == FKT_OK) {
            fkt_hash_bytes_hex(head, text, strlen(text));
            fkt_text_addf(&log, "%s\n", text);
            remember(line, receipt, (json_int_t)i + 1, head, round);
        }
        json_decref(line);
        FKT_TRY(st);
    }
    FKT_TRY(fkt_text_status(&log));
    FKT_TRY(fkt_file_write(in(path, folder, "transparency.jsonl"), log.s, log.len, FKT_FILE_REPLACE));
    FKT_TRY(fkt_json_save(json_incref(receipt), in(path, folder, "receipt.json"), FKT_FILE_REPLACE));
out:
    fkt_string_free(text);
    fkt_text_clear(&log);
    json_decref(receipt);
    return st;
}
