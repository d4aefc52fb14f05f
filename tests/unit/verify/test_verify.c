/* SPDX-License-Identifier: Apache-2.0 */
/* A good log passes with and without a receipt, and every lie is found: one byte anywhere, and, harder, lies that are
 * chained anew, as a server that rewrites its log would do it. */
#include "fedkt/server.h"
#include "fedkt/verify.h"
#include "tests/support/log_maker.h"
#include "tests/support/scratch.h"

#include "base/file.h"
#include "base/text.h"
#include "crypto/hash.h"

#include <sys/stat.h>
#include <unistd.h>

enum { SITES = 7, LOST = 1, CORRUPT = 1 };

static struct scratch scratch;
static struct log_maker maker;

static int set_up(void **state)
{
    (void)state;
    scratch_init(&scratch);
    CHECK_OK(log_maker_init(&maker, SITES, LOST, CORRUPT));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_maker_release(&maker);
    scratch_release(&scratch);
    return 0;
}

static fkt_status verify(int with_receipt)
{
    struct fkt_verification r;
    return fkt_verify_folder(&r, scratch.dir, NULL, with_receipt ? scratch_path(&scratch, "receipt.json") : NULL);
}

/* Writes the maker's lines; the check must fail, and the sentence must hold `words`. */
static void found(int with_receipt, const char *words)
{
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    if (verify(with_receipt) == FKT_OK) fail_msg("'%s' is not noticed", words);
    if (!strstr(fkt_error_text(), words)) fail_msg("'%s' has not '%s' in it", fkt_error_text(), words);
    if (!fkt_error_hint()[0]) fail_msg("'%s' comes without a hint", fkt_error_text());
}

static void whole(json_t *line, const char *key, json_int_t x) { json_object_set_new(line, key, json_integer(x)); }
static void text(json_t *line, const char *key, const char *s) { json_object_set_new(line, key, json_string(s)); }

static void a_good_one_passes(void **state)
{
    const uint64_t before = fkt_alloc_live();
    struct fkt_verification r;
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(fkt_verify_folder(&r, scratch.dir, &maker.f.task, scratch_path(&scratch, "receipt.json")));
    CHECK(r.entries == json_array_size(maker.lines) && r.rounds == 2 && r.sites == SITES);
    CHECK(r.survivors == SITES - LOST && r.confirmed == SITES - LOST);
    CHECK(!strcmp(r.task_sha256, maker.f.task.sha256) && strlen(r.release_sha256) == 64 && strlen(r.head) == 64);
    CHECK(r.heads == r.entries / 3 && r.messages == 6 && r.counted);
    CHECK(fkt_alloc_live() == before);
    unlink(scratch_path(&scratch, "grid.png")); /* images may be left out */
    CHECK_OK(verify(0));
}

static void a_sparse_graph_has_witnesses(void **state)
{
    struct log_maker sparse;
    struct fkt_verification r;
    json_t *line;
    size_t at, cut = 0;
    (void)state;
    CHECK_OK(log_maker_init(&sparse, 75, 2, 2));
    CHECK(sparse.f.task.federation.degree + 1 < 75);
    CHECK_OK(log_maker_write(&sparse, scratch.dir));
    CHECK_OK(fkt_verify_folder(&r, scratch.dir, NULL, scratch_path(&scratch, "receipt.json")));
    CHECK(r.confirmed == 73);
    line = log_maker_line(&sparse, "survivors", 0);
    text(line, "seed", "0808080808080808080808080808080808080808080808080808080808080808");
    CHECK_OK(log_maker_write(&sparse, scratch.dir));
    CHECK_STATUS(verify(0), FKT_E_MISMATCH); /* signed under another seed */
    text(line, "seed", "0707070707070707070707070707070707070707070707070707070707070707");
    for (at = log_maker_find(&sparse, "confirmed", 0); at != SIZE_MAX && cut < 1;
         at = log_maker_find(&sparse, "confirmed", at), cut++)
        json_array_remove(sparse.lines, at);
    CHECK_OK(log_maker_write(&sparse, scratch.dir));
    CHECK_STATUS(verify(0), FKT_E_MISMATCH); /* N - D signed, and no one more may be missing */
    log_maker_release(&sparse);
}

static void given_up_is_a_good_end(void **state)
{
    struct fkt_verification r;
    size_t second;
    (void)state;
    second = log_maker_find(&maker, "begin", log_maker_find(&maker, "begin", 0) + 1);
    while (json_array_size(maker.lines) > second) json_array_remove(maker.lines, second);
    json_array_append_new(maker.lines, json_pack("{s:s s:s}", "event", "given-up", "reason", "nobody came"));
    json_array_append_new(maker.lines, json_pack("{s:s}", "event", "end"));
    found(1, "the log states that there is no release");
    unlink(scratch_path(&scratch, "release.safetensors"));
    CHECK_OK(fkt_verify_folder(&r, scratch.dir, NULL, scratch_path(&scratch, "receipt.json")));
    CHECK(r.rounds == 1 && !r.release_sha256[0] && r.survivors == 0);
}

/* Reads name, changes byte `at`, checks, puts it back. */
static void flip(const char *name, size_t step)
{
    uint8_t *bytes = NULL;
    size_t len, tried = 0;
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(&scratch, name));
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 24));
    for (size_t at = 0; at < len; at += step, tried++) {
        bytes[at] ^= 1;
        CHECK_OK(fkt_file_write(path, bytes, len, FKT_FILE_REPLACE));
        if (verify(0) == FKT_OK) fail_msg("byte %zu of %s may be changed", at, name);
        bytes[at] ^= 1;
    }
    CHECK(tried > 10);
    CHECK_OK(fkt_file_write(path, bytes, len, FKT_FILE_REPLACE));
    CHECK_OK(verify(0));
    fkt_free(bytes);
}

static void one_byte_anywhere(void **state)
{
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    flip("transparency.jsonl", 97);
    flip("certificate.json", 41);
    flip("release.safetensors", 419);
    flip("grid.png", 2);
}

static void the_log_is_cut_or_grown(void **state)
{
    uint8_t *bytes = NULL;
    size_t len, end;
    const char *path = scratch_path(&scratch, "transparency.jsonl");
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 24));
    CHECK_OK(fkt_file_write(path, bytes, len - 1, FKT_FILE_REPLACE));
    CHECK_STATUS(verify(0), FKT_E_FORMAT); /* no newline at the end */
    for (end = len - 1; bytes[end - 1] != '\n';) end--;
    CHECK_OK(fkt_file_write(path, bytes, end, FKT_FILE_REPLACE));
    CHECK_STATUS(verify(0), FKT_E_MISMATCH); /* a whole line less: still a chain */
    CHECK(strstr(fkt_error_text(), "no line 'end'"));
    CHECK_OK(fkt_file_write(path, bytes, 0, FKT_FILE_REPLACE));
    CHECK_STATUS(verify(0), FKT_E_MISMATCH);
    fkt_free(bytes);
    unlink(path);
    CHECK_STATUS(verify(0), FKT_E_IO);
}

static void lines_removed_swapped_repeated(void **state)
{
    json_t *line;
    size_t at;
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    at = log_maker_find(&maker, "confirmed", 0);
    line = json_incref(json_array_get(maker.lines, at));
    json_array_remove(maker.lines, at);
    found(0, "sites signed the list of survivors");
    json_array_insert_new(maker.lines, at, line);
    json_array_insert(maker.lines, at, line);
    found(0, "signed twice");
    json_array_remove(maker.lines, at);
    at = log_maker_find(&maker, "survivors", 0);
    json_array_insert(maker.lines, at, json_array_get(maker.lines, at));
    found(0, "has a list of survivors already");
    json_array_remove(maker.lines, at);
    line = json_incref(json_array_get(maker.lines, 0));
    json_array_remove(maker.lines, 0);
    json_array_insert_new(maker.lines, 1, line);
    found(0, "a log begins with 'open'");
}

static void survivors_are_altered(void **state)
{
    json_t *line = log_maker_line(&maker, "survivors", 0), *release = log_maker_line(&maker, "release", 0);
    (void)state;
    text(line, "survivors", "7f");
    whole(line, "count", 7);
    whole(release, "survivors", 7);
    found(0, "not the sites whose vectors were accepted");
    text(line, "survivors", "7d"); /* one in, one out: as many as before */
    whole(line, "count", 6);
    found(0, "is not a survivor");
    text(line, "survivors", "7c");
    whole(line, "count", 5);
    found(0, "is not allowed");
    text(line, "survivors", "fe"); /* a bit beyond the roster */
    found(0, "not a bitmap over 7 sites");
    text(line, "survivors", "7e00");
    found(0, "not a bitmap over 7 sites");
    text(line, "survivors", "7e");
    whole(line, "count", 7);
    found(0, "the bitmap shows 6");
}

static void a_signature_is_of_another(void **state)
{
    json_t *a = log_maker_line(&maker, "confirmed", 0);
    json_t *b = log_maker_line(&maker, "confirmed", log_maker_find(&maker, "confirmed", 0) + 1);
    (void)state;
    json_object_set(a, "signature", json_object_get(b, "signature"));
    found(0, "the signature of site 1 under the survivors is invalid");
}

static void another_round_seed_or_name(void **state)
{
    json_t *begin = log_maker_line(&maker, "begin", log_maker_find(&maker, "begin", 0) + 1);
    (void)state;
    text(begin, "name", "12121212121212121212121212121213");
    found(0, "the seed of its round");
    text(begin, "name", "11111111111111111111111111111111");
    found(0, "round 1 had the same name");
    whole(begin, "round", 3);
    found(0, "round 2 must come next");
}

static void a_second_release(void **state)
{
    size_t at = log_maker_find(&maker, "release", 0);
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir)); /* fills the hashes in */
    json_array_insert(maker.lines, at + 1, json_array_get(maker.lines, at));
    found(0, "a task has one release");
    json_array_remove(maker.lines, at);
    json_array_insert_new(
        maker.lines, at + 1,
        json_pack("{s:s s:i s:s}", "event", "begin", "round", 3, "name", "13131313131313131313131313131313"));
    found(0, "a task has one release");
    json_array_remove(maker.lines, at + 1);
    json_array_remove(maker.lines, at);
    found(0, "neither a release nor 'given-up'");
}

static void more_rounds_than_agreed(void **state)
{
    size_t at = log_maker_find(&maker, "begin", 0);
    char name[33];
    (void)state;
    json_array_remove(maker.lines, at + 1); /* the advert of site 1 */
    for (unsigned n = 1; n <= maker.f.task.service.rounds; n++, at += 2) {
        snprintf(name, sizeof name, "%032x", n);
        json_array_insert_new(maker.lines, at,
                              json_pack("{s:s s:i s:s}", "event", "begin", "round", (int)n, "name", name));
        json_array_insert_new(maker.lines, at + 1,
                              json_pack("{s:s s:i s:s}", "event", "failed", "round", (int)n, "reason", "x"));
    }
    found(0, "the task allows 8 rounds");
}

/* Hash and certificate of the log are those of the file: only what is inside gives it away. */
static void releases_of_other_rounds(void **state)
{
    (void)state;
    maker.claimed = SITES;
    found(0, "states 7 survivors, and the log 6");
    maker.claimed = SITES - LOST;
    maker.seeded = 1;
    json_object_del(log_maker_line(&maker, "release", 0), "sha256");
    json_object_del(log_maker_line(&maker, "release", 0), "certificate_sha256");
    found(0, "differ in how the noise was made");
    whole(log_maker_line(&maker, "release", 0), "survivors", 7);
    found(0, "the list of survivors has 6");
}

/* Whatever the sites sent, so many vectors within the bound add up to no more; an honest server checks that itself. */
static void numbers_beyond_what_sites_can_send(void **state)
{
    json_t *line = log_maker_line(&maker, "release", 0);
    const int64_t most = (int64_t)(maker.f.task.federation.bound * (SITES - LOST));
    (void)state;
    for (int side = -1; side <= 1; side += 2) {
        maker.made_up = side * (most + 1);
        found(0, "a number of the release is larger than any sum of 6 sites");
        json_object_del(line, "sha256");
        json_object_del(line, "certificate_sha256");
        maker.made_up = side * most; /* made up, and nobody can tell */
        CHECK_OK(log_maker_write(&maker, scratch.dir));
        CHECK_OK(verify(0));
        json_object_del(line, "sha256");
        json_object_del(line, "certificate_sha256");
    }
}

static void a_release_of_another_task(void **state)
{
    static const char *const key[] = {"sha256", "certificate_sha256"};
    static const char *const name[] = {"release.safetensors", "certificate.json"};
    struct log_maker other;
    char sha[FKT_SHA256_HEX];
    (void)state;
    mkdir(scratch_path(&scratch, "other"), 0700);
    CHECK_OK(log_maker_init(&other, SITES, LOST, 2));
    CHECK_OK(log_maker_write(&other, scratch_path(&scratch, "other")));
    for (int i = 0; i < 2; i++) {
        char from[64];
        snprintf(from, sizeof from, "other/%s", name[i]);
        CHECK_OK(fkt_hash_file_hex(sha, scratch_path(&scratch, from)));
        text(log_maker_line(&maker, "release", 0), key[i], sha);
    }
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK(rename(scratch_path(&scratch, "other/release.safetensors"), scratch_path(&scratch, name[0])) == 0);
    CHECK(rename(scratch_path(&scratch, "other/certificate.json"), scratch_path(&scratch, name[1])) == 0);
    CHECK_STATUS(verify(0), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "release.safetensors is of task"));
    log_maker_release(&other);
}

static void a_round_out_of_place(void **state)
{
    json_t *line = log_maker_line(&maker, "failed", 0);
    (void)state;
    whole(line, "round", 2);
    found(0, "round 2 is not running");
    whole(line, "round", 1);
    line = log_maker_line(&maker, "message", 0);
    whole(line, "site", 7);
    found(0, "the roster has no site 7");
    whole(line, "site", 1);
    json_array_remove(maker.lines, log_maker_find(&maker, "failed", 0));
    found(0, "before the last one has ended");
}

static void keys_are_strict(void **state)
{
    json_t *line = log_maker_line(&maker, "phase", 0);
    (void)state;
    text(line, "note", "hello");
    found(0, "a key that event 'phase' does not have");
    json_object_del(line, "note");
    text(line, "heard", "1");
    found(0, "'heard' is missing");
    whole(line, "heard", -1);
    found(0, "'heard' is missing");
    whole(line, "heard", 1);
    json_object_del(line, "why");
    found(0, "'why' is missing");
    text(line, "why", "all");
    text(line, "event", "party");
    found(0, "there is no such event");
}

static void the_bytes_are_canonical(void **state)
{
    uint8_t *bytes = NULL;
    char *all, *changed = NULL;
    size_t len;
    const char *path = scratch_path(&scratch, "transparency.jsonl");
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 24));
    CHECK_OK(fkt_alloc(&changed, len + 2));
    all = (char *)bytes;
    snprintf(changed, len + 2, "{ %s", all + 1);
    CHECK_OK(fkt_file_write(path, changed, len + 1, FKT_FILE_REPLACE));
    CHECK_STATUS(verify(0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "line 1: it is not in canonical form"));
    fkt_free(changed);
    fkt_free(bytes);
}

static void another_task(void **state)
{
    struct log_maker other;
    struct fkt_verification r;
    json_t *open = log_maker_line(&maker, "open", 0);
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(log_maker_init(&other, SITES, LOST, 2));
    CHECK_STATUS(fkt_verify_folder(&r, scratch.dir, &other.f.task, NULL), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "it is the log of task"));
    maker.f.task.signature.bytes[7] ^= 1; /* of the given one alone: the log's is written already */
    CHECK_STATUS(fkt_verify_folder(&r, scratch.dir, &maker.f.task, NULL), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "the task that was given: the signature of task 'audited' is invalid"));
    maker.f.task.signature.there = 0; /* then its hash alone is compared */
    CHECK_OK(fkt_verify_folder(&r, scratch.dir, &maker.f.task, NULL));
    CHECK_OK(fkt_task_sign(&other.f.task, other.f.secrets)); /* by another operator */
    CHECK_OK(fkt_task_sign(&maker.f.task, maker.f.secrets));
    CHECK_STATUS(fkt_verify_folder(&r, scratch.dir, &maker.f.task, NULL), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "not by the operator's key"));
    json_object_del(json_object_get(open, "task"), "signature");
    found(0, "is not signed");
    json_object_del(open, "task");
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    text(json_object_get(open, "task"), "name", "another");
    found(0, "signature of task 'another' is invalid");
    log_maker_release(&other);
}

static void files_of_another_log(void **state)
{
    json_t *release = log_maker_line(&maker, "release", 0);
    const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    (void)state;
    text(release, "sha256", zeros);
    found(0, "release.safetensors does not have the hash in the log");
    json_object_del(release, "sha256");
    text(release, "certificate_sha256", zeros);
    found(0, "certificate.json does not have the hash in the log");
    json_object_del(release, "certificate_sha256");
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    text(log_maker_line(&maker, "file", 0), "sha256", zeros);
    found(0, "grid.png does not have the hash in the log");
    text(log_maker_line(&maker, "file", 0), "name", "../grid.png");
    found(0, "a log cannot list such a file");
}

/* A certificate with another promise, whose hash the log names properly. */
static void a_certificate_that_promises_more(void **state)
{
    const char *path = scratch_path(&scratch, "certificate.json");
    char sha[FKT_SHA256_HEX], *more = NULL, *at;
    uint8_t *bytes = NULL;
    size_t len;
    struct fkt_verification r;
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 20));
    CHECK_OK(fkt_strdup(&more, (const char *)bytes));
    CHECK((at = strstr(more, "\"epsilon\": 10.0")) != NULL);
    memcpy(at, "\"epsilon\":  1.0", 15);
    fkt_hash_bytes_hex(sha, more, len);
    text(log_maker_line(&maker, "release", 0), "certificate_sha256", sha);
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(fkt_file_write(path, more, len, FKT_FILE_REPLACE));
    CHECK_STATUS(fkt_verify_folder(&r, scratch.dir, NULL, NULL), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "does not follow from release.safetensors"));
    fkt_free(more);
    fkt_free(bytes);
}

/* The log is changed and chained anew; only the receipt, kept from the first one, can tell. */
static void a_rewritten_log_and_a_receipt(void **state)
{
    uint8_t *kept = NULL;
    size_t len;
    const char *path = scratch_path(&scratch, "receipt.json");
    (void)state;
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(fkt_file_read(&kept, &len, path, 1 << 20));
    json_array_remove(maker.lines, log_maker_find(&maker, "refused", 0));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(verify(0));
    CHECK_OK(fkt_file_write(path, kept, len, FKT_FILE_REPLACE));
    CHECK_STATUS(verify(1), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "line 3: it is not the line whose hash site 1 received"));
    fkt_free(kept);
}

static json_t *read_receipt(void) { return json_load_file(scratch_path(&scratch, "receipt.json"), 0, NULL); }

static void write_receipt(json_t *receipt)
{
    CHECK(receipt && json_dump_file(receipt, scratch_path(&scratch, "receipt.json"), 0) == 0);
    json_decref(receipt);
}

static void heads_beyond_the_log(void **state)
{
    json_t *receipt;
    (void)state;
    json_array_append_new(json_object_get(maker.receipt, "heads"),
                          json_pack("{s:i s:s}", "entry", 1, "sha256", maker.f.task.sha256));
    found(1, "line 1: it is not the line whose hash site 1 received");
    json_array_clear(json_object_get(maker.receipt, "heads"));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    receipt = read_receipt();
    json_array_append_new(json_object_get(receipt, "heads"),
                          json_pack("{s:i s:s}", "entry", 9999, "sha256", maker.f.task.sha256));
    write_receipt(receipt);
    CHECK_STATUS(verify(1), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "site 1 received the hash of line 9999"));
    receipt = read_receipt();
    json_array_insert(json_object_get(receipt, "heads"), 0, json_array_get(json_object_get(receipt, "heads"), 1));
    write_receipt(receipt);
    CHECK_STATUS(verify(1), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "ascending"));
}

/* The first may be right, and it is a lie all the same. */
static void two_heads_of_one_line(void **state)
{
    json_t *receipt, *heads, *first;
    (void)state;
    json_array_clear(json_object_get(maker.receipt, "heads"));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    receipt = read_receipt();
    heads = json_object_get(receipt, "heads");
    first = json_array_get(heads, 0);
    json_array_insert_new(
        heads, 1, json_pack("{s:O s:s}", "entry", json_object_get(first, "entry"), "sha256", maker.f.task.sha256));
    write_receipt(receipt);
    CHECK_STATUS(verify(1), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "the server sent site 1 two different ones"));
}

static void messages_of_the_receipt(void **state)
{
    const char other[] = "4444444444444444444444444444444444444444444444444444444444444444";
    const char round[] = "11111111111111111111111111111111";
    json_t *sent = json_object_get(maker.receipt, "messages"), *line, *receipt;
    size_t at;
    (void)state;
    json_array_append_new(sent, json_pack("{s:s s:s s:s s:i s:b}", "round", round, "kind", "shares", "sha256", other,
                                          "bytes", 5, "taken", 0));
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(verify(1)); /* one that was not wanted */
    json_object_set_new(json_array_get(sent, 0), "taken", json_true());
    found(1, "lacks message 1 of site 1, which the server acknowledged");
    json_array_clear(sent);
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    at = log_maker_find(&maker, "message", 0);
    line = json_deep_copy(json_array_get(maker.lines, at));
    text(line, "sha256", other);
    text(line, "kind", "leave");
    json_array_insert_new(maker.lines, at, line); /* write puts it into the receipt too: take it out again */
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    receipt = read_receipt();
    json_array_remove(json_object_get(receipt, "messages"), 0);
    write_receipt(receipt);
    CHECK_STATUS(verify(1), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "a message that site 1 did not send"));
}

static void a_receipt_of_another(void **state)
{
    (void)state;
    text(maker.receipt, "task_sha256", "4444444444444444444444444444444444444444444444444444444444444444");
    found(1, "and the receipt is of 444444444444");
    text(maker.receipt, "task_sha256", maker.f.task.sha256);
    whole(maker.receipt, "site", 7);
    found(1, "the receipt is of site 7, and the task has 7");
    text(maker.receipt, "schema", "fedkt.receipt/2");
    found(1, "receipt: schema");
}

/* A release without images says so, once, and names no file. */
static void no_images(void **state)
{
    const size_t file = log_maker_find(&maker, "file", 0);
    (void)state;
    json_array_insert_new(maker.lines, file, json_pack("{s:s s:s}", "event", "no-dataset", "reason", "NaN"));
    found(0, "there are no images");
    json_array_remove(maker.lines, file + 1);
    CHECK_OK(log_maker_write(&maker, scratch.dir));
    CHECK_OK(verify(1));
    json_array_insert_new(maker.lines, file, json_pack("{s:s s:s}", "event", "no-dataset", "reason", "NaN"));
    found(0, "once, after a release");
    json_array_remove(maker.lines, file);
    json_array_remove(maker.lines, file);
    json_array_insert_new(maker.lines, log_maker_find(&maker, "release", 0),
                          json_pack("{s:s s:s}", "event", "no-dataset", "reason", "NaN"));
    found(0, "once, after a release");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_good_one_passes),
        CASE(a_sparse_graph_has_witnesses),
        CASE(given_up_is_a_good_end),
        CASE(no_images),
        CASE(one_byte_anywhere),
        CASE(the_log_is_cut_or_grown),
        CASE(lines_removed_swapped_repeated),
        CASE(survivors_are_altered),
        CASE(a_signature_is_of_another),
        CASE(another_round_seed_or_name),
        CASE(a_second_release),
        CASE(more_rounds_than_agreed),
        CASE(releases_of_other_rounds),
        CASE(numbers_beyond_what_sites_can_send),
        CASE(a_release_of_another_task),
        CASE(a_round_out_of_place),
        CASE(keys_are_strict),
        CASE(the_bytes_are_canonical),
        CASE(another_task),
        CASE(files_of_another_log),
        CASE(a_certificate_that_promises_more),
        CASE(a_rewritten_log_and_a_receipt),
        CASE(heads_beyond_the_log),
        CASE(two_heads_of_one_line),
        CASE(messages_of_the_receipt),
        CASE(a_receipt_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
