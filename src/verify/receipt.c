/* SPDX-License-Identifier: Apache-2.0 */
/* receipt.c - compares what one site kept with the log: the only part of the check that a server which rewrote its log,
 * with a new chain, cannot prepare for.
 *
 * Source: docs/http.md 5.3. Every answer to a site contains the log's last entry and its hash; here each of them
 * must be the hash of that line. Every message that the server acknowledged must be in the log with its kind, as
 * accepted. And up to the last head that the site received, the log must not hold any message under its name, accepted
 * or refused, that it did not send: that would be somebody else with its key, or a server that blames the site. A
 * message whose acknowledgement was lost counts as sent, not as accepted: the site cannot know whether it was refused.
 *
 * Cost: 80 bytes per head, 128 per message; a line is compared with one head and, if it is this site's, all
 * messages. */
#include "verify/verify.h"

#include "base/alloc.h"
#include "base/file.h"
#include "secagg/msg.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA "fedkt.receipt/1"
#define HEADS_MAX (1U << 20)
#define MESSAGES_MAX (1U << 16)

/* Ascending; the same entry with two hashes means that the server contradicted itself. */
static int follows(const struct fkt_log_receipt *r, uint64_t entry, const char *sha)
{
    const struct fkt_log_told *last = r->heads ? &r->head[r->heads - 1] : NULL;
    return !last || entry > last->entry || (entry == last->entry && strcmp(sha, last->sha256) != 0);
}

static fkt_status take_heads(struct fkt_log_receipt *r, const json_t *list)
{
    size_t n = json_array_size(list);
    fkt_status st;
    if (!json_is_array(list) || n > HEADS_MAX) return fkt_fail(FKT_E_FORMAT, "'heads' is not a list of heads");
    FKT_TRY(fkt_alloc(&r->head, n));
    for (; r->heads < n; r->heads++) {
        struct fkt_log_told *h = &r->head[r->heads];
        json_int_t entry;
        const char *sha;
        if (json_unpack(json_array_get(list, r->heads), "{s:I s:s !}", "entry", &entry, "sha256", &sha) != 0 ||
            entry < 1 || !fkt_log_is_hex(sha, 32) || !follows(r, (uint64_t)entry, sha)) {
            st = fkt_fail(FKT_E_FORMAT, "head %zu is not an entry and its hash, in ascending order", r->heads + 1);
            goto out;
        }
        h->entry = (uint64_t)entry;
        memcpy(h->sha256, sha, sizeof h->sha256);
    }
out:
    return st;
}

/* One that a site sends. */
static int is_kind(const char *s)
{
    for (enum fkt_sa_kind k = FKT_SA_M_ADVERTISE; k <= FKT_SA_M_LEAVE; k++)
        if (!strcmp(s, fkt_sa_kind_name(k))) return 1;
    return 0;
}

static fkt_status take_messages(struct fkt_log_receipt *r, const json_t *list)
{
    size_t n = json_array_size(list);
    fkt_status st;
    if (!json_is_array(list) || n > MESSAGES_MAX) return fkt_fail(FKT_E_FORMAT, "'messages' is not a list of messages");
    FKT_TRY(fkt_alloc(&r->sent, n));
    for (; r->messages < n; r->messages++) {
        struct fkt_log_sent *m = &r->sent[r->messages];
        json_int_t bytes;
        const char *round, *kind, *sha;
        if (json_unpack(json_array_get(list, r->messages), "{s:s s:s s:s s:I s:b !}", "round", &round, "kind", &kind,
                        "sha256", &sha, "bytes", &bytes, "taken", &m->taken) != 0 ||
            bytes < 1 || !fkt_log_is_hex(sha, 32) || !fkt_log_is_hex(round, FKT_MAILBOX_ROUND) || !is_kind(kind)) {
            st = fkt_fail(FKT_E_FORMAT, "message %zu is not a round, a kind, a hash, a length and whether it was taken",
                          r->messages + 1);
            goto out;
        }
        m->bytes = (uint64_t)bytes;
        snprintf(m->kind, sizeof m->kind, "%s", kind);
        memcpy(m->sha256, sha, sizeof m->sha256);
        memcpy(m->round, round, sizeof m->round);
    }
out:
    return st;
}

fkt_status fkt_log_receipt_parse(struct fkt_log_receipt *out, const char *json, size_t len)
{
    json_error_t e;
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &e), *heads, *messages;
    const char *schema, *task;
    json_int_t site;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!root || json_unpack_ex(root, &e, JSON_STRICT, "{s:s s:s s:I s:o s:o}", "schema", &schema, "task_sha256", &task,
                                "site", &site, "heads", &heads, "messages", &messages) != 0) {
        st = fkt_fail(FKT_E_FORMAT, "receipt: %s", e.text);
        goto out;
    }
    if (strcmp(schema, SCHEMA) != 0 || !fkt_log_is_hex(task, 32) || site < 0 || site >= FKT_SA_SITES_MAX) {
        st = fkt_fail(FKT_E_FORMAT, "receipt: schema, task_sha256 or site is wrong");
        goto out;
    }
    memcpy(out->task_sha256, task, sizeof out->task_sha256);
    out->site = (uint32_t)site;
    FKT_TRY(fkt_fail_in(take_heads(out, heads), "receipt"));
    FKT_TRY(fkt_fail_in(take_messages(out, messages), "receipt"));
out:
    json_decref(root);
    if (st != FKT_OK) fkt_log_receipt_clear(out);
    return st;
}

fkt_status fkt_log_receipt_load(struct fkt_log_receipt *out, const char *path)
{
    uint8_t *text = NULL;
    size_t len;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(
        fkt_hint_code(fkt_file_read(&text, &len, path, FKT_LOG_RECEIPT_MAX), FKT_HINT_RECEIPT_FILE,
                      "the receipt is 'receipt.json' in the site's output folder; the log can be verified without"));
    FKT_TRY(fkt_fail_in(fkt_log_receipt_parse(out, (const char *)text, len), "cannot use '%s'", path));
out:
    fkt_free(text);
    return st;
}

void fkt_log_receipt_clear(struct fkt_log_receipt *r)
{
    fkt_free(r->head);
    fkt_free(r->sent);
    memset(r, 0, sizeof *r);
}

static fkt_status own_message(struct fkt_log_receipt *r, const struct fkt_log_line *l, uint64_t entry,
                              const char *round)
{
    const char *sha = fkt_log_text(l, "sha256");
    for (size_t i = 0; i < r->messages; i++) {
        struct fkt_log_sent *m = &r->sent[i];
        if (strcmp(m->sha256, sha) != 0 || strcmp(m->round, round) != 0) continue;
        if (m->bytes != fkt_log_number(l, "bytes"))
            return fkt_fail(FKT_E_MISMATCH, "its length of a message of site %u differs from the receipt", r->site);
        if (strcmp(m->kind, fkt_log_text(l, "kind")) != 0)
            return fkt_fail(FKT_E_MISMATCH, "it records message %zu of site %u as '%.20s', the receipt as '%s'", i + 1,
                            r->site, fkt_log_text(l, "kind"), m->kind);
        if (m->taken && fkt_log_number(l, "verdict") != 0)
            return fkt_fail(FKT_E_MISMATCH, "it records a message of site %u as refused that the server acknowledged",
                            r->site);
        m->found = 1;
        return FKT_OK;
    }
    /* After the last head that the site received, the log may hold more than an early receipt. */
    if (!r->heads || entry > r->head[r->heads - 1].entry) return FKT_OK;
    return fkt_fail_hint(
        FKT_E_MISMATCH,
        "somebody else may have this site's key, or the server records false messages: inform the other sites",
        "it holds a message that site %u did not send, according to its receipt", r->site);
}

/* A head that the site received for this line must be its hash. */
static fkt_status told_of(struct fkt_log_receipt *r, const struct fkt_log_line *l, uint64_t entry)
{
    const size_t first = r->met;
    for (; r->met < r->heads && r->head[r->met].entry == entry; r->met++) {
        if (r->met > first)
            return fkt_fail_hint(FKT_E_MISMATCH, "inform the other sites: this server cannot be trusted",
                                 "the server sent site %u two different ones", r->site);
        if (strcmp(r->head[r->met].sha256, l->sha256) != 0)
            return fkt_fail_hint(FKT_E_MISMATCH, "the server sent this site another log than it published",
                                 "it is not the line whose hash site %u received", r->site);
    }
    return FKT_OK;
}

fkt_status fkt_log_receipt_line(struct fkt_log_receipt *r, const struct fkt_log_line *l, uint64_t entry,
                                const char *round)
{
    fkt_status st = told_of(r, l, entry);
    if (st == FKT_OK && l->event == FKT_LOG_MESSAGE && fkt_log_number(l, "site") == r->site)
        st = own_message(r, l, entry, round);
    return st == FKT_OK ? st : fkt_fail_in(st, "transparency.jsonl line %llu", (unsigned long long)entry);
}

fkt_status fkt_log_receipt_end(const struct fkt_log_receipt *r, uint64_t entries)
{
    if (r->met < r->heads)
        return fkt_fail_hint(FKT_E_MISMATCH, "the server sent this site another log than it published",
                             "transparency.jsonl ends at line %llu, and site %u received the hash of line %llu",
                             (unsigned long long)entries, r->site, (unsigned long long)r->head[r->met].entry);
    for (size_t i = 0; i < r->messages; i++)
        if (r->sent[i].taken && !r->sent[i].found)
            return fkt_fail(FKT_E_MISMATCH,
                            "transparency.jsonl lacks message %zu of site %u, which the server acknowledged", i + 1,
                            r->site);
    return FKT_OK;
}
