/* SPDX-License-Identifier: Apache-2.0 */
/* paper.c - what the paper has published: tables and the numbers that its text states of Figure 3, from paper.json,
 * which the build puts into the library. Facts with their table numbers; nothing here was measured by us. */
#include "experiment/experiment.h"

extern const unsigned char fkt_paper_bytes[]; /* NUL-terminated */

fkt_status fkt_paper_figures(json_t **out)
{
    json_error_t e;
    *out = json_loads((const char *)fkt_paper_bytes, JSON_REJECT_DUPLICATES, &e);
    return *out ? FKT_OK : fkt_fail(FKT_E_FORMAT, "the paper's figures, line %d: %s", e.line, e.text);
}
