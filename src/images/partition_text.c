/* SPDX-License-Identifier: Apache-2.0 */
/* partition_text.c - a partition rule as text, "iid" or "dirichlet:0.3", as options and JSON have it: one table for
 * reading and writing. */
#include "fedkt/image.h"

#include "base/status.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum parameter { NONE, ALPHA, CLASSES };
static const struct {
    const char *name;
    enum fkt_partition_rule rule;
    enum parameter parameter;
} rules[] = {{"iid", FKT_PARTITION_IID, NONE},
             {"dirichlet", FKT_PARTITION_DIRICHLET, ALPHA},
             {"pfllib", FKT_PARTITION_PFLLIB, ALPHA},
             {"pathological", FKT_PARTITION_PATHOLOGICAL, CLASSES}};

enum { RULES = sizeof rules / sizeof *rules };

fkt_status fkt_partition_parse(struct fkt_partition_spec *p, const char *text)
{
    const char *colon = strchr(text, ':');
    const size_t len = colon ? (size_t)(colon - text) : strlen(text);
    size_t i = 0;
    uint64_t k;
    fkt_status st = FKT_OK;
    while (i < RULES && (strlen(rules[i].name) != len || memcmp(rules[i].name, text, len) != 0)) i++;
    if (i == RULES || (rules[i].parameter == NONE) != !colon)
        return fkt_fail(FKT_E_ARG, "'%s' is not iid, dirichlet:A, pfllib:A or pathological:K", text);
    p->rule = rules[i].rule;
    if (rules[i].parameter == ALPHA) st = fkt_parse_double(&p->alpha, colon + 1);
    if (rules[i].parameter == CLASSES) {
        st = fkt_parse_u64(&k, colon + 1, 65535);
        if (st == FKT_OK) p->k = (uint32_t)k;
    }
    return st;
}

void fkt_partition_text(const struct fkt_partition_spec *p, char out[FKT_PARTITION_TEXT])
{
    char alpha[FKT_DOUBLE_TEXT];
    size_t i = 0;
    while (i < RULES && rules[i].rule != p->rule) i++;
    if (i == RULES) {
        out[0] = '\0';
        return;
    }
    fkt_double_text(alpha, p->alpha);
    if (rules[i].parameter == ALPHA) snprintf(out, FKT_PARTITION_TEXT, "%s:%s", rules[i].name, alpha);
    else if (rules[i].parameter == CLASSES) snprintf(out, FKT_PARTITION_TEXT, "%s:%u", rules[i].name, p->k);
    else snprintf(out, FKT_PARTITION_TEXT, "%s", rules[i].name);
}
