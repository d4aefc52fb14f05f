/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_transparency.c - reading a transparency log, and comparing a site's receipt with it.
 *
 * One byte of choice, then lines. 'r': the lines as they are. 'm': number, time and chain of each line that is a JSON
 * object are put in, so that a change gets past the chain and meets the checks behind it. 'k': the first line is a
 * receipt, the others as for 'm'. Whatever is taken must be a whole log: it has an end, and the receipt is used up. */
#include "fuzz_support.h"

#include "base/alloc.h"
#include "verify/verify.h"
#include "task/task.h"

/* The line as it would stand in a log after the ones before it; gives *out, or NULL when it is no object. */
static fkt_status mend(char **out, const char *line, size_t len, const struct fkt_log_reading *log)
{
    json_t *root = json_loadb(line, len, 0, NULL);
    *out = NULL;
    if (!json_is_object(root)) {
        json_decref(root);
        return FKT_OK;
    }
    json_object_set_new(root, "entry", json_integer((json_int_t)log->entries + 1));
    json_object_set_new(root, "at", json_integer(0));
    json_object_set_new(root, "prev", json_string(log->head));
    return fkt_json_text(out, root, 0);
}

static fkt_status feed(struct fkt_log_reading *log, const char *line, size_t len, int mended)
{
    char *text = NULL;
    fkt_status st = FKT_OK;
    if (mended) FKT_TRY(mend(&text, line, len, log));
    FKT_TRY(fkt_log_reading_line(log, text ? text : line, text ? strlen(text) : len));
out:
    fkt_free(text);
    return st;
}

static fkt_status read_all(struct fkt_log_reading *log, struct fkt_log_receipt *kept, const char *at, size_t left,
                           char how)
{
    fkt_status st = FKT_OK;
    int receipt = how == 'k';
    while (left) {
        const char *end = memchr(at, '\n', left);
        size_t len = end ? (size_t)(end - at) : left;
        if (receipt) {
            FKT_TRY(fkt_log_receipt_parse(kept, at, len));
            log->receipt = kept;
        } else {
            FKT_TRY(feed(log, at, len, how != 'r'));
        }
        receipt = 0;
        left -= end ? len + 1 : len;
        at += end ? len + 1 : len;
    }
    FKT_TRY(fkt_log_reading_end(log));
out:
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fkt_log_receipt kept = {0};
    struct fkt_log_reading log;
    fkt_status st;
    if (!size) return 0;
    fkt_log_reading_init(&log, NULL, NULL);
    st = read_all(&log, &kept, (const char *)data + 1, size - 1, (char)data[0]);
    if (st != FKT_OK) FUZZ_CHECK(fkt_error_text()[0] != '\0');
    else {
        FUZZ_CHECK(log.ended && !log.in_round && (log.released || log.given_up) && kept.met == kept.heads);
        FUZZ_CHECK(!log.released || (log.signatures >= log.params.sites - log.params.dropped &&
                                     log.round.count >= log.params.sites - log.params.dropped));
    }
    fkt_log_reading_clear(&log);
    fkt_log_receipt_clear(&kept);
    return 0;
}
