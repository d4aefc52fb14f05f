/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/layouts.h"
#include "tests/support/server_world.h"

#include "fedkt/verify.h"

#include "pipeline/release.h"

#include <jansson.h>
#include <sodium.h>
#include <sqlite3.h>
#include <unistd.h>

#define SEED UINT64_C(77)
#define STEP_MS 5000U /* a carrier ticks at least so often */

/* ---- the task ---- */

static void make_task(struct server_world *w)
{
    static const char *const classes[FED_CLASSES] = {"cat", "dog"};
    const struct server_plan *p = &w->plan;
    const uint64_t keys = 4, seed = SEED;
    struct fkt_federation_choices f = {.sites = p->sites,
                                       .dropped = p->dropped,
                                       .corrupt = p->corrupt,
                                       .records = 16,
                                       .noise = p->noise,
                                       .roster = w->roster};
    struct fkt_service_choices s = {.address = "https://fedkt.example.org:8443",
                                    .gather_seconds = 20,
                                    .phase_seconds = 30,
                                    .rounds = p->rounds ? p->rounds : 3,
                                    .expires = p->expires,
                                    .insecure_seed = p->unseeded ? NULL : &seed};
    struct fkt_task_choices t = {.name = "hosted",
                                 .classes = classes,
                                 .n_classes = FED_CLASSES,
                                 .privacy = {.epsilon = 10, .delta = 1e-5},
                                 .federation = &f,
                                 .service = &s};
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_codec *codec = NULL;
    CHECK(p->sites <= SERVER_SITES_MAX);
    CHECK_OK(fkt_federation_keys(w->roster, w->secrets, p->sites + 1, &keys)); /* the last is the operator's */
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibration_embedded(&w->calibration, codec));
    CHECK_OK(
        fkt_task_make_into(&w->task, &t, &(struct fkt_part_choice){.codec = codec, .calibration = &w->calibration}, 1));
    CHECK_OK(fkt_task_sign(&w->task, w->secrets + (size_t)p->sites * FKT_SA_SECRET));
    fkt_codec_free(codec);
}

fkt_status server_world_open(struct server_world *w, const char *folder)
{
    struct fkt_server_spec spec = {.task = &w->task,
                                   .folder = folder,
                                   .out = w->out,
                                   .per_class = w->per_class,
                                   .format = w->format,
                                   .threads = 1};
    fkt_status st = fkt_server_open(&w->server, &spec);
    if (folder != w->folder) snprintf(w->folder, sizeof w->folder, "%s", folder);
    w->lives++;
    if (st == FKT_OK) fkt_server_mailbox(w->server, &w->box);
    return st;
}

/* In memory where the system has such a place: what is tested is what is there after a crash, not the disk. */
static void make_scratch(struct scratch *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->dir, sizeof s->dir, "/dev/shm/fedkt-test-XXXXXX");
    if (!mkdtemp(s->dir)) scratch_init(s);
}

void server_world_init(struct server_world *w, const struct server_plan *plan)
{
    memset(w, 0, sizeof *w);
    w->plan = *plan;
    w->now = UINT64_C(1790000000000);
    w->per_class = 2;
    make_scratch(&w->scratch);
    make_task(w);
    for (uint32_t i = 0; i < plan->sites; i++) {
        w->site[i].world = w;
        w->site[i].index = i;
    }
    CHECK_OK(server_world_open(w, scratch_path(&w->scratch, "state")));
}

void server_world_release(struct server_world *w)
{
    fkt_server_close(w->server);
    for (uint32_t i = 0; i < w->plan.sites; i++) {
        fkt_sa_client_free(w->site[i].client);
        free(w->site[i].out);
    }
    fkt_task_clear(&w->task);
    fkt_calibration_clear(&w->calibration);
    scratch_release(&w->scratch);
}

/* ---- dying ---- */

void server_world_copy(const char *from, const char *to)
{
    char command[1200];
    snprintf(command, sizeof command, "cp -a '%s' '%s'", from, to);
    CHECK(system(command) == 0);
}

void server_world_crash(struct server_world *w)
{
    char next[64];
    snprintf(next, sizeof next, "state-%u", w->lives);
    const char *copy = scratch_path(&w->scratch, next);
    server_world_copy(w->folder, copy);
    fkt_server_close(w->server);
    w->server = NULL;
    w->crashes++;
    CHECK_OK(server_world_open(w, copy));
    w->now += 1000;
    CHECK_OK(w->box.tick(w->box.self, w->now));
    CHECK_OK(w->box.settle(w->box.self));
}

void server_world_point(struct server_world *w)
{
    if (++w->points == w->crash_at) server_world_crash(w);
}

/* ---- a site ---- */

static fkt_status reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct server_site *s = self;
    (void)session;
    return s->spent ? fkt_fail(FKT_E_BUDGET, "the task was spent") : FKT_OK;
}

static fkt_status spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct server_site *s = self;
    (void)session;
    s->spent = 1;
    return FKT_OK;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    struct server_site *s = self;
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    int64_t exact[SERVER_LENGTH];
    fkt_status st;
    if (length != SERVER_LENGTH) return fkt_fail(FKT_E_ARG, "%u numbers", length);
    FKT_TRY(small_moments(NULL, s->index, exact));
    FKT_TRY(fkt_federation_open(&s->world->task, &params, &shares));
    if (shares.counted)
        FKT_TRY(fkt_privacy_share(x, exact, FED_CLASSES, ONE_PART(FED_LENGTH, 256), &shares, &s->noise_door));
    else memcpy(x, exact, sizeof exact);
    memcpy(s->x, x, sizeof s->x);
out:
    return st;
}

static void meet(struct server_site *s, const uint8_t round[FKT_SA_ROUND])
{
    struct server_world *w = s->world;
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    fkt_sa_client_free(s->client);
    s->client = NULL;
    s->doors = (struct fkt_sa_site){reserve, vector, spend, s};
    memcpy(s->round, round, FKT_SA_ROUND);
    s->after = 0;
    s->begun++;
    s->lost = FKT_OK;
    fkt_entropy_seeded_init(&s->keys, SEED + s->begun, 2 + 2 * (uint64_t)s->index);
    fkt_entropy_seeded_init(&s->noise, SEED, 3 + 2 * (uint64_t)s->index);
    fkt_entropy_seeded(&s->keys_door, &s->keys);
    fkt_entropy_seeded(&s->noise_door, &s->noise);
    CHECK_OK(fkt_federation_open(&w->task, &params, &shares));
    CHECK_OK(fkt_sa_client_new(&s->client, &params, s->index, w->secrets + (size_t)s->index * FKT_SA_SECRET, &s->doors,
                               &s->keys_door));
}

static int silent(const struct server_site *s)
{
    return s->silent_from != FKT_SA_STATE_BEGIN && (!s->silent_in || s->begun == s->silent_in) &&
           fkt_sa_client_state(s->client) >= s->silent_from;
}

/* A letter has come, and its settle too. */
static void read_message(struct server_site *s, const struct fkt_message *l)
{
    size_t cap = 1 << 16;
    fkt_status st;
    if (!l->len) {
        if (l->lost != FKT_OK) {
            s->lost = l->lost;
            memset(s->round, 0, sizeof s->round);
            s->after = 0;
        }
        return;
    }
    if (!s->client || memcmp(l->round, s->round, FKT_SA_ROUND) != 0) meet(s, l->round);
    s->after = l->index;
    if (!(fkt_sa_client_wants(s->client) & FKT_SA_RECV)) return;
    st = fkt_sa_client_recv(s->client, l->bytes, l->len);
    if (st != FKT_OK && st != FKT_E_TOO_FEW && st != FKT_E_BUDGET && st != FKT_E_STOPPED)
        fail_msg("site %u: %s: %s", s->index, fkt_status_name(st), fkt_error_text());
    if (!(fkt_sa_client_wants(s->client) & FKT_SA_SEND)) return;
    free(s->out);
    s->out = malloc(cap);
    CHECK_OK(fkt_sa_client_send(s->client, s->out, cap, &s->out_len));
    if (!silent(s)) return;
    s->away = s->silent_in == 0; /* it has its answer, and may bring it when it comes back */
    if (s->away) return;
    free(s->out);
    s->out = NULL;
}

/* ---- turns ---- */

static void settle(struct server_world *w)
{
    server_world_point(w);
    CHECK_OK(w->box.settle(w->box.self));
}

fkt_status server_world_tick(struct server_world *w, uint64_t ms)
{
    fkt_status st = FKT_OK;
    for (; st == FKT_OK && ms > STEP_MS; ms -= STEP_MS) {
        w->now += STEP_MS;
        st = w->box.tick(w->box.self, w->now);
        if (st == FKT_OK) CHECK_OK(w->box.settle(w->box.self));
    }
    w->now += ms;
    if (st == FKT_OK) st = w->box.tick(w->box.self, w->now);
    if (st == FKT_OK) settle(w);
    server_world_point(w);
    return st;
}

/* Up to `most` sites ask; their letters are theirs after the settle. */
static uint32_t ask(struct server_world *w, uint32_t from, uint32_t most)
{
    struct fkt_message l[SERVER_SITES_MAX];
    uint32_t who[SERVER_SITES_MAX], n = 0, lives = w->lives;
    uint32_t i;
    for (i = from; i < w->plan.sites && n < most; i++) {
        struct server_site *s = &w->site[i];
        if (s->away || s->out) continue;
        CHECK_OK(w->box.collect(w->box.self, i, s->after ? s->round : NULL, s->after, &l[n]));
        uint8_t *own = malloc(l[n].len + 1);
        if (l[n].len) memcpy(own, l[n].bytes, l[n].len);
        l[n].bytes = own;
        who[n++] = i;
    }
    settle(w);
    for (uint32_t k = 0; k < n; k++) {
        if (w->lives == lives) read_message(&w->site[who[k]], &l[k]);
        free((void *)(uintptr_t)l[k].bytes);
    }
    server_world_point(w);
    return i;
}

void server_world_ask(struct server_world *w, uint32_t site) { (void)ask(w, site, 1); }

static uint32_t answer(struct server_world *w, uint32_t from, uint32_t most, uint32_t *taken)
{
    fkt_status st[SERVER_SITES_MAX];
    uint32_t who[SERVER_SITES_MAX], n = 0, lives = w->lives, i;
    for (i = from; i < w->plan.sites && n < most; i++) {
        struct server_site *s = &w->site[i];
        if (!s->out || s->away) continue;
        st[n] = w->box.deliver(w->box.self, i, s->out, s->out_len);
        if (st[n] != FKT_OK && st[n] != FKT_E_STATE)
            fail_msg("site %u: %s: %s", i, fkt_status_name(st[n]), fkt_error_text());
        who[n++] = i;
    }
    settle(w);
    for (uint32_t k = 0; k < n && w->lives == lives; k++) {
        struct server_site *s = &w->site[who[k]];
        free(s->out);
        s->out = NULL;
        if (st[k] == FKT_OK) ++*taken;
        else s->refused++;
    }
    server_world_point(w);
    return i;
}

uint32_t server_world_talk(struct server_world *w)
{
    uint32_t most = w->each ? (uint32_t)w->each : w->plan.sites, taken = 0;
    for (uint32_t i = 0; i < w->plan.sites;) i = ask(w, i, most);
    for (uint32_t i = 0; i < w->plan.sites;) i = answer(w, i, most, &taken);
    return taken;
}

void server_world_work(struct server_world *w)
{
    uint32_t lives = w->lives;
    fkt_status st;
    if (!w->box.has_work(w->box.self)) return;
    server_world_point(w);
    if (w->lives != lives) return;
    st = w->box.work(w->box.self);
    server_world_point(w);
    if (w->lives != lives) return;
    CHECK_OK(w->box.worked(w->box.self, st));
    settle(w);
    server_world_point(w);
}

struct fkt_mailbox_view server_world_view(struct server_world *w)
{
    struct fkt_mailbox_view v;
    w->box.view(w->box.self, &v);
    return v;
}

enum fkt_stage server_world_until(struct server_world *w, enum fkt_stage stage)
{
    enum fkt_stage now = FKT_STAGE_GATHERING;
    for (int turn = 0; turn < 400; turn++) {
        uint32_t taken;
        now = server_world_view(w).stage;
        if (now == stage || now >= FKT_STAGE_RELEASED) return now;
        taken = server_world_talk(w);
        if (server_world_view(w).stage == stage) return stage;
        server_world_work(w);
        CHECK_OK(server_world_tick(w, taken ? 100 : 5000));
    }
    fail_msg("it never ended: %s", fkt_stage_name(now));
    return now;
}

enum fkt_stage server_world_run(struct server_world *w)
{
    (void)server_world_until(w, FKT_STAGE_RELEASED);
    for (int i = 0; i < 5; i++) CHECK_OK(server_world_tick(w, 1000)); /* what is left behind is forgotten */
    return server_world_until(w, FKT_STAGE_RELEASED);                 /* it may have died in between */
}

/* ---- what must have come out ---- */

static char *slurp(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *s;
    if (!f) fail_msg("no file '%s'", path);
    fseek(f, 0, SEEK_END);
    *len = (size_t)ftell(f);
    rewind(f);
    s = malloc(*len + 1);
    CHECK(fread(s, 1, *len, f) == *len);
    s[*len] = '\0';
    fclose(f);
    return s;
}

static void sha256_hex(char out[65], const void *p, size_t n)
{
    uint8_t h[32];
    crypto_hash_sha256(h, p, n);
    sodium_bin2hex(out, 65, h, sizeof h);
}

/* One line: its keys, its place, and that it is in the one form that it may have. */
static int line_ok(const char *line, size_t entry, char prev[65], const char *event)
{
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    char *again = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
    const char *what = json_string_value(json_object_get(j, "event"));
    int is;
    if (!j || !again || strcmp(again, line) != 0) fail_msg("line %zu is not canonical: %s", entry, line);
    CHECK((size_t)json_integer_value(json_object_get(j, "entry")) == entry);
    CHECK(json_is_integer(json_object_get(j, "at")) && what);
    if (strcmp(json_string_value(json_object_get(j, "prev")), prev) != 0) fail_msg("the chain breaks at %zu", entry);
    sha256_hex(prev, line, strlen(line));
    is = !strcmp(what, event);
    free(again);
    json_decref(j);
    return is;
}

size_t server_world_chain(const char *path, const char *event)
{
    char prev[65];
    size_t len, n = 0, found = 0;
    char *text = slurp(path, &len), *line = text;
    memset(prev, '0', 64);
    prev[64] = '\0';
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        found += (size_t)line_ok(line, ++n, prev, event);
        if (n == 1) CHECK(strstr(line, "\"event\":\"open\""));
        if (end + 1 == text + len) CHECK(strstr(line, "\"event\":\"end\""));
    }
    CHECK(line == text + len && n > 2);
    free(text);
    return found;
}

size_t server_world_count(struct server_world *w, const char *event)
{
    char path[600], prev[65];
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    size_t n = 0, found = 0;
    memset(prev, '0', 64);
    prev[64] = '\0';
    server_world_copy(w->folder, scratch_path(&w->scratch, "look"));
    snprintf(path, sizeof path, "%s/look/journal.db", w->scratch.dir);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(db, "SELECT text FROM line ORDER BY entry", -1, &s, NULL) == SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
        found += (size_t)line_ok((const char *)sqlite3_column_text(s, 0), ++n, prev, event);
    sqlite3_finalize(s);
    sqlite3_close(db);
    nftw(scratch_path(&w->scratch, "look"), scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    return found;
}

void server_world_check(struct server_world *w)
{
    struct fkt_mailbox_view v = server_world_view(w);
    struct fkt_round_facts facts = {.sites = w->plan.sites, .survivors = v.survivors};
    struct fkt_release made = {0}, read = {0};
    struct fkt_verification report;
    char public[600];
    int64_t total[SERVER_LENGTH] = {0};
    uint32_t counted = 0;
    CHECK(v.stage == FKT_STAGE_RELEASED);
    for (uint32_t i = 0; i < w->plan.sites; i++) {
        if (v.slot[i] != FKT_SITE_COUNTED) continue;
        counted++;
        for (int k = 0; k < SERVER_LENGTH; k++) total[k] += w->site[i].x[k];
    }
    CHECK(counted == v.survivors && counted >= w->plan.sites - w->plan.dropped);
    CHECK_OK(fkt_release_load_into(&read, w->box.file(w->box.self, "release.safetensors")));
    CHECK(!strcmp(read.sha256, v.release_sha256));
    if (w->plan.noise == FKT_NOISE_PLACE_DISTRIBUTED) {
        CHECK_OK(fkt_release_gather_into(&made, &w->task, &w->calibration, total, &facts, !w->plan.unseeded));
        CHECK(!strcmp(made.sha256, v.release_sha256));
    }
    CHECK(read.insecure_seed == !w->plan.unseeded && !read.facts.simulated);
    CHECK(server_world_chain(w->box.file(w->box.self, "transparency.jsonl"), "release") == 1);
    CHECK(access(w->box.file(w->box.self, "certificate.json"), R_OK) == 0);
    CHECK(access(w->box.file(w->box.self, "grid.png"), R_OK) == 0);
    snprintf(public, sizeof public, "%s/public", w->folder);
    CHECK_OK(fkt_verify_folder(&report, public, &w->task, NULL));
    CHECK(report.survivors == counted && !strcmp(report.release_sha256, v.release_sha256));
    fkt_release_clear(&made);
    fkt_release_clear(&read);
}
