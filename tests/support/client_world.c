/* SPDX-License-Identifier: Apache-2.0 */
/* client_world.c - a server, four plain sites and one on a state file, all in one thread. */
#include "tests/support/client_world.h"

#include "base/file.h"
#include "pipeline/records.h"

#include <sqlite3.h>
#include <sys/wait.h>

void aw_records(struct fkt_records **out, uint8_t byte)
{
    const struct fkt_record_digest *list;
    struct fkt_record_digest digest;
    size_t n;
    memset(&digest, byte, sizeof digest);
    CHECK_OK(fkt_records_new(out, FKT_ADJACENCY_ADD_REMOVE));
    CHECK_OK(fkt_records_add_image(*out, &digest));
    CHECK_OK(fkt_records_list(*out, &list, &n)); /* now, so that a test that counts allocations sees none of it */
}

void aw_init(struct aw *w, struct scratch *s, enum fkt_noise_place noise, const uint64_t *seed)
{
    static const char *const classes[FED_CLASSES] = {"cat", "dog"};
    static const uint64_t keys = 4;
    struct fkt_federation_choices c = {.sites = AW_SITES, .dropped = 1, .corrupt = 1, .records = 16, .noise = noise};
    struct fkt_service_choices service = {.address = "https://fedkt.example.org:8443", .insecure_seed = seed};
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_task_choices t = {.name = "attended",
                                 .classes = classes,
                                 .n_classes = FED_CLASSES,
                                 .privacy = {.epsilon = 10, .delta = 1e-5},
                                 .federation = &c,
                                 .service = &service};
    struct fkt_codec *codec = NULL;
    memset(w, 0, sizeof *w);
    CHECK_OK(fkt_federation_keys(w->f.roster, w->f.secrets, AW_SITES, &keys));
    c.roster = w->f.roster;
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibration_embedded(&w->f.calibration, codec));
    CHECK_OK(fkt_task_make_into(&w->f.task, &t,
                                &(struct fkt_part_choice){.codec = codec, .calibration = &w->f.calibration}, 1));
    fkt_codec_free(codec);
    CHECK_OK(fkt_federation_open(&w->f.task, &w->params, &w->shares));
    CHECK_OK(small_moments(NULL, AW_ME, w->moments));
    aw_records(&w->records, 0xa5);
    snprintf(w->state, sizeof w->state, "%s", scratch_path(s, "state"));
    snprintf(w->ledger, sizeof w->ledger, "%s", scratch_path(s, "ledger"));
    CHECK_OK(fkt_alloc(&w->in, fkt_sa_to_site_max(&w->params)));
    CHECK_OK(fkt_alloc(&w->newest, fkt_sa_to_site_max(&w->params)));
    CHECK_OK(fkt_alloc(&w->out, fkt_sa_to_server_max(&w->params)));
}

void aw_forget(const struct aw *w)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char path[256];
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(path, sizeof path, "%s%s", w->state, tails[i]);
        (void)unlink(path);
        snprintf(path, sizeof path, "%s%s", w->ledger, tails[i]);
        (void)unlink(path);
    }
}

/* ---- the site ---- */

struct fkt_client_spec aw_spec(const struct aw *w)
{
    return (struct fkt_client_spec){.task = &w->f.task,
                                    .secret = w->f.secrets + AW_ME * FKT_SA_SECRET,
                                    .state = w->state,
                                    .ledger = w->ledger,
                                    .dataset = AW_DATASET,
                                    .records = w->records,
                                    .moments = w->moments};
}

fkt_status aw_open(struct aw *w)
{
    struct fkt_client_spec spec = aw_spec(w);
    fkt_status st = fkt_client_open(&w->a, &spec);
    if (st == FKT_OK) fkt_client_endpoint(w->a, &w->c);
    return st;
}

void aw_close(struct aw *w)
{
    fkt_client_close(w->a);
    w->a = NULL;
}

void aw_crash(struct aw *w)
{
    aw_close(w);
    CHECK_OK(aw_open(w));
}

/* ---- the others ---- */

static fkt_status aw_no_ledger(void *self, const uint8_t session[FKT_SA_SESSION])
{
    (void)self;
    (void)session;
    return FKT_OK;
}

static fkt_status aw_vector(void *self, int64_t *x, uint32_t length)
{
    struct aw_other *o = self;
    int64_t exact[AW_NUMBERS];
    CHECK(length == AW_NUMBERS);
    CHECK_OK(small_moments(NULL, o->index, exact));
    return fkt_contribution_make(x, exact, &o->world->f.task, &o->world->shares, &o->noise);
}

static void aw_end_round(struct aw *w)
{
    for (int i = 0; i < AW_SITES; i++) fkt_sa_client_free(w->other[i].client);
    memset(w->other, 0, sizeof w->other);
    fkt_sa_server_free(w->server);
    w->server = NULL;
}

void aw_begin_round(struct aw *w, uint8_t name)
{
    aw_end_round(w);
    memset(w->round, name, sizeof w->round);
    w->newest_len = w->newest_index = 0;
    memset(w->said, 0, sizeof w->said);
    CHECK_OK(fkt_sa_server_new(&w->server, &w->params, w->round, 0));
    for (uint32_t i = 0; i < AW_SITES; i++) {
        struct aw_other *o = &w->other[i];
        if (i == AW_ME) continue;
        o->index = i;
        o->world = w;
        o->brings = (struct fkt_sa_site){aw_no_ledger, aw_vector, aw_no_ledger, o};
        fkt_entropy_seeded_init(&o->own[0], AW_SEED, FKT_STREAM_KEYS(i));
        fkt_entropy_seeded_init(&o->own[1], AW_SEED, FKT_STREAM_NOISE(i));
        fkt_entropy_seeded(&o->keys, &o->own[0]);
        fkt_entropy_seeded(&o->noise, &o->own[1]);
        CHECK_OK(fkt_sa_client_new(&o->client, &w->params, i, w->f.secrets + i * FKT_SA_SECRET, &o->brings, &o->keys));
    }
}

void aw_pump(struct aw *w)
{
    for (;;) {
        uint32_t to;
        size_t len;
        CHECK_OK(fkt_sa_server_next(w->server, &to, w->in, fkt_sa_to_site_max(&w->params), &len));
        if (!len) return;
        if (to == AW_ME) {
            memcpy(w->newest, w->in, w->newest_len = len);
            w->newest_index++;
            continue;
        }
        if (w->other[to].gone) continue;
        if (fkt_sa_client_recv(w->other[to].client, w->in, len) == FKT_E_STATE) continue;
        if (!(fkt_sa_client_wants(w->other[to].client) & FKT_SA_SEND)) continue;
        CHECK_OK(fkt_sa_client_send(w->other[to].client, w->out, fkt_sa_to_server_max(&w->params), &len));
        if (fkt_sa_server_recv(w->server, to, w->out, len) == FKT_E_NOMEM) fail_msg("out of memory");
    }
}

/* ---- between server and site ---- */

struct fkt_message aw_message(const struct aw *w)
{
    struct fkt_message l = {
        .index = w->newest_index, .bytes = w->newest, .len = w->newest_len, .stage = FKT_STAGE_RUNNING};
    memcpy(l.round, w->round, sizeof l.round);
    return l;
}

int aw_has_news(const struct aw *w)
{
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t after;
    w->c.has(w->c.self, round, &after);
    return w->newest_len && (memcmp(round, w->round, sizeof round) != 0 || after < w->newest_index);
}

fkt_status aw_recv(struct aw *w)
{
    struct fkt_message l = aw_message(w);
    return w->c.recv(w->c.self, &l);
}

fkt_status aw_carry(struct aw *w, int *taken)
{
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t after;
    char hash[FKT_HASH_HEX];
    size_t len;
    fkt_status st;
    *taken = 0;
    FKT_TRY(w->c.send(w->c.self, w->out, w->c.out_max, &len));
    fkt_hash_bytes_hex(hash, w->out, len);
    w->c.has(w->c.self, round, &after);
    CHECK(after < AW_MESSAGES);
    if (w->said[after][0] && strcmp(w->said[after], hash) != 0) w->said_twice++;
    memcpy(w->said[after], hash, sizeof hash);
    *taken = fkt_sa_server_recv(w->server, AW_ME, w->out, len) == FKT_OK;
out:
    return st;
}

int aw_step(struct aw *w)
{
    int taken;
    aw_pump(w);
    if (w->c.wants(w->c.self) & FKT_ENDPOINT_SEND) {
        CHECK_OK(aw_carry(w, &taken));
        CHECK_OK(w->c.sent(w->c.self, taken));
        return 1;
    }
    if (!aw_has_news(w)) return 0;
    CHECK_OK(aw_recv(w));
    return 1;
}

void aw_run(struct aw *w)
{
    while (aw_step(w)) continue;
}

fkt_status aw_tell(struct aw *w, enum fkt_stage stage, fkt_status lost)
{
    struct fkt_message l = {.stage = stage, .lost = lost};
    memcpy(l.round, w->round, sizeof l.round);
    return w->c.recv(w->c.self, &l);
}

void aw_release(struct aw *w)
{
    fkt_records_free(w->records);
    aw_close(w);
    aw_end_round(w);
    fkt_free(w->in);
    fkt_free(w->out);
    fkt_free(w->newest);
    small_federation_release(&w->f);
    aw_forget(w);
}

/* ---- the file ---- */

static int look_into(const char *path, const void *what, size_t n)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    int found = 0;
    for (size_t i = 0; i < 4; i++) {
        char name[256];
        uint8_t *bytes = NULL;
        size_t len;
        snprintf(name, sizeof name, "%s%s", path, tails[i]);
        if (access(name, F_OK) != 0) continue;
        if (fkt_file_read(&bytes, &len, name, 1U << 26) != FKT_OK) return 2;
        found |= memmem(bytes, len, what, n) != NULL;
        fkt_free(bytes);
    }
    return found;
}

int aw_file_holds(const char *path, const void *what, size_t n)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(look_into(path, what, n));
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

void aw_seed(const struct aw *w, uint8_t seed[32])
{
    sqlite3 *h = NULL;
    sqlite3_stmt *s = NULL;
    CHECK(sqlite3_open(w->state, &h) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(h, "SELECT seed FROM round", -1, &s, NULL) == SQLITE_OK);
    CHECK(sqlite3_step(s) == SQLITE_ROW && sqlite3_column_bytes(s, 0) == 32);
    memcpy(seed, sqlite3_column_blob(s, 0), 32);
    sqlite3_finalize(s);
    sqlite3_close(h);
}
