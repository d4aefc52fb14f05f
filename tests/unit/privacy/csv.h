/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - golden vectors line by line; fields are cut in place, none is quoted. */
#ifndef FKT_TEST_PRIVACY_CSV_H
#define FKT_TEST_PRIVACY_CSV_H

#include "tests/support/check.h"

struct csv {
    FILE *f;
    char line[16384];
    char *field[16];
};

static inline void csv_open(struct csv *c, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FKT_TEST_VECTORS, name);
    c->f = fopen(path, "r");
    if (!c->f) fail_msg("cannot open '%s'", path);
    CHECK(fgets(c->line, sizeof c->line, c->f)); /* the header */
}

/* 1 and the fields, of which there must be n; 0 at the end. */
static inline int csv_next(struct csv *c, int n)
{
    int k = 0;
    if (!fgets(c->line, sizeof c->line, c->f)) {
        fclose(c->f);
        return 0;
    }
    CHECK(strchr(c->line, '\n'));
    *strchr(c->line, '\n') = '\0';
    for (char *s = c->line; s && k < 16; k++) {
        c->field[k] = s;
        s = strchr(s, ',');
        if (s) *s++ = '\0';
    }
    CHECK(k == n);
    return 1;
}

#endif
