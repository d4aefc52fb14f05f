/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - a transparency log read line by line for a benchmark: the survivors and the accepted messages. It does not
 * verify the log; `fedkt verify` does. */
#include "bench/log.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#include <jansson.h>
#include <string.h>

enum { LOG_MAX = 1 << 28 };

static uint32_t number(const json_t *line, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(line, key));
}

static fkt_status take_survivors(struct cli_bench_log *l, const json_t *line)
{
    const char *hex = json_string_value(json_object_get(line, "survivors"));
    const size_t bytes = (l->sites + 7) / 8;
    uint8_t *map = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&map, bytes));
    if (!hex || !fkt_unhex(map, hex, bytes)) {
        st = fkt_fail(FKT_E_FORMAT, "the benched server's log has no list of survivors");
        goto out;
    }
    l->survivors = 0;
    for (uint32_t i = 0; i < l->sites; i++) {
        l->survived[i] = map[i / 8] >> (i % 8) & 1;
        l->survivors += l->survived[i];
    }
out:
    fkt_free(map);
    return st;
}

static fkt_status take_line(struct cli_bench_log *l, const json_t *line)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    if (!event) return fkt_fail(FKT_E_FORMAT, "the benched server's log has a line without an event");
    if (!strcmp(event, "begin")) l->rounds++;
    else if (!strcmp(event, "message")) {
        const uint32_t site = number(line, "site");
        if (site < l->sites && number(line, "verdict") == 0) l->taken[site]++;
        l->messages++;
        l->bytes += number(line, "bytes");
    } else if (!strcmp(event, "survivors")) return take_survivors(l, line);
    else if (!strcmp(event, "refused")) l->refused += number(line, "times");
    return FKT_OK;
}

fkt_status cli_bench_log_read(struct cli_bench_log *out, const char *path, uint32_t sites)
{
    uint8_t *text = NULL;
    size_t len = 0;
    fkt_status st;
    memset(out, 0, sizeof *out);
    out->sites = sites;
    FKT_TRY(fkt_alloc(&out->survived, sites));
    FKT_TRY(fkt_alloc(&out->taken, sites));
    FKT_TRY(fkt_file_read(&text, &len, path, LOG_MAX));
    for (size_t at = 0; at < len;) {
        const uint8_t *end = memchr(text + at, '\n', len - at);
        const size_t n = end ? (size_t)(end - text) - at : len - at;
        json_t *line = json_loadb((const char *)text + at, n, 0, NULL);
        st = line ? take_line(out, line)
                  : fkt_fail(FKT_E_FORMAT, "the benched server's log has a line that is not JSON");
        json_decref(line);
        if (st != FKT_OK) goto out;
        at += n + 1;
    }
out:
    fkt_free(text);
    return st;
}

void cli_bench_log_clear(struct cli_bench_log *l)
{
    fkt_free(l->survived);
    fkt_free(l->taken);
    memset(l, 0, sizeof *l);
}
