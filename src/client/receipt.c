/* SPDX-License-Identifier: Apache-2.0 */
/* receipt.c - what a site keeps of a task: its messages, and the heads of the transparency log that it received
 * (docs/http.md 5.3). Nothing in it is private: messages are hashes, which are in the public log. */
#include "client/client.h"

#include "task/task.h"

#include "base/file.h"
#include "base/text.h"

#include <jansson.h>

#define SCHEMA "fedkt.receipt/1"

/* Rows of a query as a list; `row` gives a new reference, NULL when memory is out. */
static fkt_status list(json_t *into, struct fkt_db *db, const char *sql, json_t *(*row)(struct fkt_rows *r))
{
    struct fkt_rows *r = NULL;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, db, sql, ""));
    for (;;) {
        FKT_TRY(fkt_rows_next(r, &there));
        if (!there) break;
        if (json_array_append_new(into, row(r)) != 0) {
            st = fkt_fail(FKT_E_NOMEM, "out of memory while writing the receipt");
            goto out;
        }
    }
out:
    fkt_rows_done(r);
    return st;
}

static json_t *head_row(struct fkt_rows *r)
{
    return json_pack("{s:I s:s}", "entry", (json_int_t)fkt_rows_int(r, 0), "sha256", fkt_rows_text(r, 1));
}

static json_t *message_row(struct fkt_rows *r)
{
    char round[2 * FKT_MAILBOX_ROUND + 1], sha256[FKT_SHA256_HEX];
    size_t n = 0, m = 0;
    const uint8_t *name = fkt_rows_bytes(r, 0, &n), *hash = fkt_rows_bytes(r, 1, &m);
    if (n != FKT_MAILBOX_ROUND || m != 32) return NULL;
    fkt_hex(round, name, n);
    fkt_hex(sha256, hash, m);
    return json_pack("{s:s s:s s:s s:I s:b}", "round", round, "kind", fkt_rows_text(r, 4), "sha256", sha256, "bytes",
                     (json_int_t)fkt_rows_int(r, 2), "taken", fkt_rows_int(r, 3) != 0);
}

fkt_status fkt_client_receipt(struct fkt_client *a, const char *path, int force)
{
    json_t *heads = json_array(), *messages = json_array();
    json_t *j = json_pack("{s:s s:s s:I s:O? s:O?}", "schema", SCHEMA, "task_sha256", a->task.sha256, "site",
                          (json_int_t)a->site, "heads", heads, "messages", messages);
    fkt_status st = j && heads && messages ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory while writing the receipt");
    FKT_TRY(st);
    FKT_TRY(fkt_client_heads_settle(a));
    FKT_TRY(list(heads, a->db, "SELECT entry, sha256 FROM head ORDER BY entry, kept", head_row));
    FKT_TRY(list(messages, a->db, "SELECT round, sha256, bytes, taken, kind FROM message ORDER BY n", message_row));
    FKT_TRY(fkt_json_save(json_incref(j), path, force ? FKT_FILE_REPLACE : 0));
out:
    json_decref(heads);
    json_decref(messages);
    json_decref(j);
    return st;
}
