/* SPDX-License-Identifier: Apache-2.0 */
/* verb_bench.c - `fedkt bench [ROOM]`: speed beside a bound measured in the same run. */
#include "cli/bench.h"
#include "cli/common.h"
#include "cli/verbs.h"

#include "tensor/linalg.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 32 };

static const struct {
    const char *room;
    fkt_status (*run)(struct fkt_bench_row *rows, size_t cap, size_t *n);
} benches[] = {{"moments", fkt_bench_moments}, {"privacy", fkt_bench_privacy}};

static fkt_status print_rows(const struct fkt_bench_row *rows, size_t n, int json)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct fkt_bench_row *r = &rows[i];
        if (!json)
            printf("%-34s %12.4g %-10s  bound %.4g (%s), ratio %.2f   %s\n", r->name, r->value, r->unit, r->bound,
                   r->bound_name, r->ratio_to_bound, r->note);
        json_array_append_new(list, json_pack("{s:s s:f s:s s:f s:f s:s s:s}", "name", r->name, "value", r->value,
                                              "unit", r->unit, "bound", r->bound, "ratio_to_bound", r->ratio_to_bound,
                                              "bound_name", r->bound_name, "note", r->note));
    }
    if (json)
        return cli_print_json(
            json_pack("{s:s s:s s:o}", "version", fkt_version(), "blas_core", fkt_linalg_core(), "rows", list));
    json_decref(list);
    return FKT_OK;
}

int cli_bench(const struct cli_command *self, int argc, char **argv)
{
    struct cli_run run = {0};
    const struct cli_option table[] = {CLI_TALK_ROWS(run)};
    struct fkt_bench_row rows[MAX_ROWS];
    const char *room = argc > 0 && argv[0][0] != '-' ? argv[0] : NULL;
    size_t n = 0, known = 0;
    fkt_status st = FKT_OK;
    int code = cli_begin(self, table, CLI_COUNT(table), room ? argc - 1 : argc, room ? argv + 1 : argv);
    if (code >= 0) return code;
    for (size_t i = 0; i < CLI_COUNT(benches) && st == FKT_OK; i++) {
        size_t got = 0;
        if (room && strcmp(room, benches[i].room) != 0) continue;
        known++;
        st = benches[i].run(rows + n, MAX_ROWS - n, &got);
        n += got;
    }
    if (!known) return cli_misuse(self, fkt_fail(FKT_E_ARG, "no bench for '%s'; there are moments and privacy", room));
    if (st == FKT_OK) st = print_rows(rows, n, run.json);
    return cli_fail(st);
}
