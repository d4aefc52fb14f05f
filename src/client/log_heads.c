/* SPDX-License-Identifier: Apache-2.0 */
/* log_heads.c - the heads of the transparency log that the server reported, within bounds (docs/http.md 5.3).
 *
 *   new     the log has grown: the head is pending in memory, and is stored with the next change of the file
 *   kept    heads that came with the receipt of a message, and of the others the newest ENOUGH
 * two     different heads of one entry: the server contradicts itself. Both are kept as evidence. The round continues,
 *           because its release can be checked all the same, and a server can end rounds by silence anyway
 *
 * A log never gets shorter, so an entry below the newest can only repeat or contradict what is kept; anything else
 * is ignored. So a server that sends a new head with every answer neither makes the file grow nor causes disk syncs.
 * Pending heads are lost in a crash: at most FKT_CLIENT_TOLD heads of answers without a message. */
#include "client/client.h"

#include <string.h>

enum { ENOUGH = 256, CONTRADICTIONS = 16 };
enum { IDLE = 0, WITH_RECEIPT = 1, CONTRADICTION = 2 }; /* head.kept */

static void newest(struct fkt_client *a, uint64_t entry, const char *sha256)
{
    a->head.entry = entry;
    snprintf(a->head.sha256, sizeof a->head.sha256, "%s", sha256);
}

fkt_status fkt_client_heads_load(struct fkt_client *a)
{
    struct fkt_rows *r = NULL;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT entry, sha256 FROM head ORDER BY entry DESC, kept LIMIT 1", ""));
    FKT_TRY(fkt_rows_next(r, &there));
    if (there) newest(a, (uint64_t)fkt_rows_int(r, 0), fkt_rows_text(r, 1) ? fkt_rows_text(r, 1) : "");
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_client_heads_put(struct fkt_client *a)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < a->tolds; i++)
        FKT_TRY(fkt_db_do(a->db, "INSERT OR IGNORE INTO head(entry, sha256) VALUES(?, ?)", "it",
                          (int64_t)a->told[i].entry, a->told[i].sha256));
    if (a->tolds)
        FKT_TRY(fkt_db_do(a->db,
                          "DELETE FROM head WHERE kept = 0 AND entry <="
                          " (SELECT entry FROM head WHERE kept = 0 ORDER BY entry DESC LIMIT 1 OFFSET ?)",
                          "i", (int64_t)ENOUGH));
out:
    return st;
}

fkt_status fkt_client_heads_receipt(struct fkt_client *a)
{
    return fkt_db_do(a->db, "UPDATE head SET kept = ? WHERE entry = ? AND kept = 0", "ii", (int64_t)WITH_RECEIPT,
                     (int64_t)a->head.entry);
}

fkt_status fkt_client_heads_settle(struct fkt_client *a)
{
    fkt_status st;
    if (!a->tolds) return FKT_OK;
    st = fkt_client_file_start(a);
    return st == FKT_OK ? fkt_client_file_finish(a, st) : st;
}

/* `entry` is not above the newest: a different head for it is stored, and the earlier one stays too. */
static fkt_status compare(struct fkt_client *a, uint64_t entry, const char *sha256)
{
    fkt_status st = fkt_client_file_start(a);
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_db_do(a->db,
                      "INSERT INTO head(entry, sha256, kept) SELECT ?1, ?2, ?3"
                      " WHERE EXISTS(SELECT 1 FROM head WHERE entry = ?1)"
                      " AND NOT EXISTS(SELECT 1 FROM head WHERE entry = ?1 AND sha256 = ?2)"
                      " AND (SELECT count(*) FROM head WHERE kept = ?3) < ?4",
                      "itii", (int64_t)entry, sha256, (int64_t)CONTRADICTION, (int64_t)CONTRADICTIONS));
    FKT_TRY(fkt_db_do(a->db,
                      "UPDATE head SET kept = ?2 WHERE entry = ?1 AND kept = 0"
                      " AND EXISTS(SELECT 1 FROM head WHERE entry = ?1 AND kept = ?3)",
                      "iii", (int64_t)entry, (int64_t)WITH_RECEIPT, (int64_t)CONTRADICTION));
out:
    return fkt_client_file_finish(a, st);
}

fkt_status fkt_client_heads_hear(struct fkt_client *a, uint64_t entry, const char *sha256)
{
    fkt_status st = FKT_OK;
    if (strlen(sha256) != FKT_SHA256_HEX - 1) return fkt_fail(FKT_E_ARG, "a head has 64 hexadecimal digits");
    if (entry == a->head.entry && !strcmp(sha256, a->head.sha256)) return FKT_OK;
    if (entry <= a->head.entry) return compare(a, entry, sha256);
    if (a->tolds == FKT_CLIENT_TOLD) FKT_TRY(fkt_client_heads_settle(a));
    newest(a, entry, sha256);
    a->told[a->tolds++] = a->head;
out:
    return st;
}
