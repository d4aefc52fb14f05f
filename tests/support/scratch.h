/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - a folder of its own for a test, gone afterwards. */
#ifndef FKT_TEST_SCRATCH_H
#define FKT_TEST_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scratch {
    char dir[64];
    char path[8][512];
    int used;
};

static inline int scratch_remove(const char *p, const struct stat *s, int kind, struct FTW *f)
{
    (void)s;
    (void)kind;
    (void)f;
    return remove(p);
}

static inline void scratch_init(struct scratch *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->dir, sizeof s->dir, "/tmp/fedkt-test-XXXXXX");
    if (!mkdtemp(s->dir)) abort();
}

/* A path inside; eight at a time live until they are overwritten. */
static inline const char *scratch_path(struct scratch *s, const char *name)
{
    char *p = s->path[s->used++ % 8];
    size_t n = strlen(s->dir);
    memcpy(p, s->dir, n);
    p[n] = '/';
    snprintf(p + n + 1, sizeof s->path[0] - n - 1, "%s", name);
    return p;
}

static inline void scratch_release(struct scratch *s) { nftw(s->dir, scratch_remove, 16, FTW_DEPTH | FTW_PHYS); }

#endif
