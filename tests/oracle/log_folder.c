/* SPDX-License-Identifier: Apache-2.0 */
/* log_folder.c - good public folders for check_transparency.py.
 *   log_folder DIR SITES DROPPED CORRUPT    made by hand, with a receipt (tests/support/log_maker.h)
 *   log_folder DIR                          what a real host wrote after a round that failed and one with a loss */
#include "tests/support/log_maker.h"
#include "tests/support/server_world.h"

#include "base/text.h"

static int by_hand(char **argv)
{
    struct log_maker m;
    uint64_t n[3];
    fkt_status st;
    for (int i = 0; i < 3; i++)
        if (fkt_parse_u64(&n[i], argv[2 + i], FED_SITES_MAX) != FKT_OK) return 2;
    st = log_maker_init(&m, (uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2]);
    if (st == FKT_OK) {
        st = log_maker_write(&m, argv[1]);
        log_maker_release(&m);
    }
    if (st != FKT_OK) fprintf(stderr, "%s\n", fkt_error_text());
    return st != FKT_OK;
}

static int by_a_host(const char *folder)
{
    struct server_world w;
    char from[600], task[600];
    fkt_status st;
    server_world_init(&w, &(struct server_plan){.sites = 6, .dropped = 1, .corrupt = 1, .unseeded = 1});
    for (int i = 0; i < 2; i++) {
        w.site[i].silent_from = FKT_SA_STATE_CONFIRM;
        w.site[i].silent_in = 1;
    }
    w.site[4].silent_from = FKT_SA_STATE_MASK;
    w.site[4].silent_in = 2;
    if (server_world_run(&w) != FKT_STAGE_RELEASED) return 1;
    snprintf(from, sizeof from, "%s/public", w.folder);
    server_world_copy(from, folder);
    snprintf(task, sizeof task, "%s/task.json", folder);
    st = fkt_task_save(&w.task, task, 1);
    server_world_release(&w);
    return st != FKT_OK;
}

int main(int argc, char **argv) { return argc == 5 ? by_hand(argv) : argc == 2 ? by_a_host(argv[1]) : 2; }
