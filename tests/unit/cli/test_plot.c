/* SPDX-License-Identifier: Apache-2.0 */
/* test_plot.c - plots of cells whose numbers nobody expects. */
#include "cli/experiment/plot.h"

#include "tests/support/check.h"

#include <string.h>

/* Steps between marks that are lost in rounding must not be waited for. */
static void numbers_of_any_size_end(void **state)
{
    static const char *const x[] = {"1e17", "-1e300", "0.5", "1e-300"}, *const y[] = {"-1e16", "1e300", "0.5", "0"};
    const struct fkt_experiment *e = fkt_experiment_find("participation");
    (void)state;
    assert_non_null(e);
    for (int i = 0; i < 16; i++) {
        struct fkt_summary s;
        struct fkt_text t;
        char text[512];
        json_t *cells;
        snprintf(text, sizeof text,
                 "[{\"experiment\":\"participation\",\"panel\":\"eurosat\",\"arm\":\"joint\",\"title\":\"joint\","
                 "\"seed\":0,\"points\":[{\"x\":%s,\"at\":\"here\",\"values\":{\"best_head\":%s}}]}]",
                 x[i / 4], y[i % 4]);
        cells = json_loads(text, 0, NULL);
        assert_non_null(cells);
        CHECK_OK(fkt_summary_make(&s, cells));
        fkt_text_init(&t);
        fkt_plot_panel(&t, &s, e, "eurosat", NULL, 1);
        CHECK_OK(fkt_text_status(&t));
        CHECK(strlen(t.s) < 100000);
        fkt_text_clear(&t);
        fkt_summary_clear(&s);
        json_decref(cells);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_of_any_size_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
