/* SPDX-License-Identifier: Apache-2.0 */
/* export_webdataset.c - a labelled set as WebDataset shards: train-000000.tar ... of 000017.png beside 000017.cls.
 *
 * Source: the WebDataset convention (files of one sample share a key and stand next to each other). Keys count through
 * all shards of a split, so that shards may be joined. 10,000 samples a shard. */
#include "images/export.h"

#include "base/alloc.h"

enum { SHARD = 10000 };

static fkt_status put_file(struct fkt_export *e, const char *suffix, const void *data, size_t len)
{
    char name[48];
    fkt_status st;
    snprintf(name, sizeof name, "%06zu.%s", e->added, suffix);
    FKT_TRY(fkt_export_archive_entry(e, name, len));
    FKT_TRY(fkt_export_archive_data(e, data, len));
out:
    return st;
}

static fkt_status tar_open(struct fkt_export *e)
{
    (void)e; /* a shard is opened by its first image */
    return FKT_OK;
}

static fkt_status tar_add(struct fkt_export *e, uint32_t label, const uint8_t *png, size_t len)
{
    char text[48];
    fkt_status st;
    if (e->added % SHARD == 0) {
        snprintf(text, sizeof text, "%s-%06zu.tar", e->split, e->added / SHARD);
        FKT_TRY(fkt_export_archive_begin(e, text, 0));
    }
    FKT_TRY(put_file(e, "png", png, len));
    FKT_TRY(put_file(e, "cls", text, (size_t)snprintf(text, sizeof text, "%u", label)));
    if (e->added % SHARD == SHARD - 1) FKT_TRY(fkt_export_archive_end(e));
out:
    return st;
}

static fkt_status tar_finish(struct fkt_export *e) { return e->archive ? fkt_export_archive_end(e) : FKT_OK; }

const struct fkt_export_ops fkt_export_webdataset = {.open = tar_open, .add = tar_add, .finish = tar_finish, .png = 1};
