/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - writing JSON (jansson): one canonical form for hashes, one indented form for readers. Canonical: keys
 * sorted bytewise, no blanks, reals with 17 significant digits, so that a value read back is the same double. */
#include "task/task.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

fkt_status fkt_json_text(char **text, json_t *j, int indent)
{
    size_t flags = JSON_SORT_KEYS | JSON_REAL_PRECISION(17);
    char *raw = NULL;
    fkt_status st = FKT_OK;
    *text = NULL;
    if (j) raw = json_dumps(j, indent ? flags | JSON_INDENT((size_t)indent) : flags | JSON_COMPACT);
    if (!raw) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON");
        goto out;
    }
    st = fkt_alloc(text, strlen(raw) + 2);
    if (st == FKT_OK) snprintf(*text, strlen(raw) + 2, "%s%s", raw, indent ? "\n" : "");
out:
    free(raw);
    json_decref(j);
    return st;
}

fkt_status fkt_json_save(json_t *j, const char *path, int flags)
{
    struct fkt_file f = {0};
    char *text = NULL;
    fkt_status st = fkt_json_text(&text, j, 2);
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_file_begin(&f, path, flags));
    fputs(text, f.stream);
    st = fkt_file_commit(&f);
out:
    fkt_free(text);
    return st;
}

void fkt_string_free(char *s) { fkt_free(s); }
