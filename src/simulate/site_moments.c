/* SPDX-License-Identifier: Apache-2.0 */
/* site_moments.c - the moments of many sites, kept for further rounds.
 *
 * A simulation encodes every image once and runs a round for each epsilon and each repeat. The sites' vectors are
 * the same each time: K blocks of 64-bit integers, which for a thousand sites exceed the memory of a small machine.
 * Then they are in an unlinked temporary file (base/file.h), which disappears with the process; every slot has its
 * own offset. They are as private as the images. */
#include "simulate/site_moments.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/wipe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct fkt_site_moments {
    uint32_t slots;
    size_t length;
    int64_t *memory; /* (slots, length), or NULL: in the file */
    int fd;
};

static fkt_status no_room(void)
{
    return fkt_fail_hint(FKT_E_IO, "set TMPDIR to a folder with more space",
                         "cannot keep the sites' moments in a temporary file: %s", strerror(errno));
}

fkt_status fkt_site_moments_new(struct fkt_site_moments **out, uint32_t slots, size_t length, uint64_t memory)
{
    struct fkt_site_moments *s = NULL;
    size_t all;
    fkt_status st;
    *out = NULL;
    if (!fkt_mul_size(length, sizeof *s->memory, &all) || !fkt_mul_size(all, slots, &all) || all > INT64_MAX)
        return fkt_fail(FKT_E_ARG, "%u sites with %zu numbers each are too many to keep", slots, length);
    FKT_TRY(fkt_alloc(&s, 1));
    *s = (struct fkt_site_moments){.slots = slots, .length = length, .fd = -1};
    if (all <= memory) FKT_TRY(fkt_alloc(&s->memory, (size_t)slots * length));
    else FKT_TRY(fkt_spool(&s->fd));
    if (s->fd >= 0 && ftruncate(s->fd, (off_t)all) != 0) {
        st = no_room();
        goto out;
    }
    *out = s;
    s = NULL;
out:
    fkt_site_moments_free(s);
    return st;
}

void fkt_site_moments_free(struct fkt_site_moments *s)
{
    if (!s) return;
    fkt_free_secret(s->memory);
    if (s->fd >= 0) close(s->fd);
    fkt_free(s);
}

fkt_status fkt_site_moments_put(struct fkt_site_moments *s, uint32_t slot, const int64_t *x)
{
    const size_t bytes = s->length * sizeof *x;
    const char *from = (const char *)x;
    off_t at = (off_t)(slot * bytes);
    if (s->memory) {
        memcpy(s->memory + slot * s->length, x, bytes);
        return FKT_OK;
    }
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(s->fd, from + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return no_room();
        done += (size_t)n;
    }
    return FKT_OK;
}

fkt_status fkt_site_moments_get(const struct fkt_site_moments *s, uint32_t slot, int64_t *x)
{
    const size_t bytes = s->length * sizeof *x;
    char *to = (char *)x;
    off_t at = (off_t)(slot * bytes);
    if (s->memory) {
        memcpy(x, s->memory + slot * s->length, bytes);
        return FKT_OK;
    }
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(s->fd, to + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fkt_fail(FKT_E_IO, "cannot read the sites' moments back from a temporary file");
        done += (size_t)n;
    }
    return FKT_OK;
}
