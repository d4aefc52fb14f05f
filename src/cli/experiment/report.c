/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - which cells a report is made of, and where it goes. */
#include "cli/experiment/report.h"
#include "cli/core/common.h"
#include "cli/experiment/page.h"

#include "base/alloc.h"
#include "base/file.h"
#include "experiment/store.h"

#include <stdio.h>
#include <unistd.h>

void cli_say_report(const char *folder) { printf("see %s/report.html; tables and plots are beside it\n", folder); }

struct made {
    const char *folder, *fill, *keep; /* the last two may be NULL */
    const json_t *skipped;            /* may be NULL */
    size_t filled;                    /* experiments for which `fill` had marks */
};

static fkt_status make(struct made *m, const json_t *cells)
{
    struct fkt_summary s = {0};
    struct fkt_page page = {.summary = &s, .skipped = m->skipped};
    json_t *paper = NULL;
    fkt_status st;
    FKT_TRY(fkt_summary_make(&s, cells));
    FKT_TRY(fkt_paper_figures(&paper));
    page.paper = paper;
    FKT_TRY(fkt_page_write(&page, m->folder));
    if (m->keep) FKT_TRY(fkt_store_keep(m->keep, cells));
    if (m->fill) FKT_TRY(fkt_page_fill(&page, m->fill, &m->filled));
out:
    fkt_summary_clear(&s);
    json_decref(paper);
    return st;
}

fkt_status cli_run_report(const char *folder, const json_t *skipped, const char *fill)
{
    struct made m = {.folder = folder, .fill = fill, .skipped = skipped};
    json_t *cells = NULL;
    fkt_status st = fkt_store_read(folder, &cells);
    if (st == FKT_OK) st = make(&m, cells);
    json_decref(cells);
    return st;
}

static int is_run(const char *folder)
{
    char *plan = NULL;
    const int there = fkt_path_join(&plan, folder, "plan.json") == FKT_OK && access(plan, R_OK) == 0;
    fkt_free(plan);
    return there;
}

static fkt_status read_all(const struct cli_joined *r, json_t *all)
{
    json_t *cells = NULL;
    fkt_status st = all ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory");
    for (size_t i = 0; st == FKT_OK && i < r->places; i++) {
        st = fkt_store_read(r->place[i], &cells);
        if (st == FKT_OK && json_array_extend(all, cells) != 0) st = fkt_fail(FKT_E_NOMEM, "out of memory");
        json_decref(cells);
        cells = NULL;
    }
    return st;
}

fkt_status cli_joined_report(const struct cli_joined *r)
{
    struct made m = {.folder = r->out ? r->out : r->place[0], .fill = r->fill, .keep = r->keep};
    json_t *all = json_array();
    fkt_status st;
    FKT_TRY(read_all(r, all));
    if (!r->out && !is_run(m.folder)) {
        st = fkt_fail(FKT_E_ARG, "'%s' is not the folder of a run: give one for the report with --out", m.folder);
        goto out;
    }
    FKT_TRY(make(&m, all));
    if (m.fill && !m.filled)
        st = fkt_fail_hint(FKT_E_MISMATCH, "put '<!-- experiment:NAME -->' and '<!-- /experiment:NAME -->' there",
                           "'%s' has no marks for these experiments", r->fill);
    else if (r->json)
        st = cli_print_json(
            json_pack("{s:s s:[] s:s}", "schema", "fedkt.experiment-result/1", "skipped", "report", "report.html"));
    else cli_say_report(m.folder);
out:
    json_decref(all);
    return st;
}
