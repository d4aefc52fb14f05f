/* SPDX-License-Identifier: Apache-2.0 */
/* guided.c - `--guided [STEPS]`, and how images were made, for people and for programs. */
#include "cli/core/guided.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

fkt_status cli_guided(const char *text, struct fkt_guided_options *out)
{
    uint64_t steps;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!text) return FKT_OK;
    if (!*text) {
        out->kind = FKT_GUIDED_ON;
        return FKT_OK;
    }
    if (!strcmp(text, "none") || !strcmp(text, "0")) {
        out->kind = FKT_GUIDED_NONE;
        return FKT_OK;
    }
    st = fkt_parse_u64(&steps, text, 10000);
    if (st != FKT_OK)
        return fkt_fail(FKT_E_ARG, "--guided: '%s' is neither a number of steps up to 10000 nor none", text);
    out->kind = FKT_GUIDED_GRADIENT;
    out->steps = (uint32_t)steps;
    return FKT_OK;
}

void cli_print_guided(const struct fkt_guided_facts *f)
{
    if (f->kind == FKT_GUIDED_TWIN) printf("guided by the decoder that was trained for this codec and guide\n");
    if (f->kind == FKT_GUIDED_GRADIENT) printf("guided by %u steps of gradient descent\n", f->steps);
    if (f->kind == FKT_GUIDED_NONE && f->why[0]) {
        printf("not guided: ");
        cli_show(f->why, strlen(f->why));
        if (f->gradient_possible) printf("; --guided %d guides them by gradient", FKT_GUIDED_STEPS);
        printf("\n");
    }
}

json_t *cli_guided_json(const struct fkt_guided_facts *f)
{
    if (f->kind == FKT_GUIDED_TWIN) return json_pack("{s:s s:s}", "way", "twin", "twin_sha256", f->twin_sha256);
    if (f->kind == FKT_GUIDED_GRADIENT)
        return json_pack("{s:s s:i s:f s:f}", "way", "gradient", "steps", (int)f->steps, "rho", f->rho, "rate",
                         f->rate);
    return json_pack("{s:s}", "way", "none");
}
