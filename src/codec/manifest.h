/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - what is known of published codecs: where their weights are, and hashes where somebody has looked. */
#ifndef FKT_CODEC_MANIFEST_H
#define FKT_CODEC_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

enum { FKT_PUBLISHED_FILES = 4 };

struct fkt_published_file {
    const char *name;   /* in the repository and in the folder; NULL ends the list */
    const char *sha256; /* NULL: not known */
    uint64_t size;      /* 0: not known */
};

/* One codec whose weights somebody publishes. */
struct fkt_published {
    const char *name;     /* "taesd"; fkt_codec_spec.name */
    const char *family;   /* "taesd", "dc-ae", "resnet" */
    const char *summary;  /* one line */
    const char *repo;     /* "owner/name" on the model hub */
    const char *revision; /* branch, tag or commit */
    const char *licence;  /* of the weights; NULL: not known, see the repository */
    uint32_t down;        /* pixels of a side that become one: sizes are multiples of it; 1 for a guide */
    struct fkt_published_file file[FKT_PUBLISHED_FILES]; /* the first two are always there */
};

extern const struct fkt_published fkt_published[];
extern const size_t fkt_published_count;
const struct fkt_published *fkt_published_find(const char *name); /* NULL: no such name */

/* Files that we have checked: other copies of published weights (another precision or layout), known by
 * hash and seen to work. `verify` recognises them; `pull` does not fetch them. */
struct fkt_known_file {
    const char *codec, *name, *sha256;
    uint64_t size;
};
const struct fkt_known_file *fkt_known_file_find(const char *sha256);                   /* NULL: not among them */
const struct fkt_known_file *fkt_known_file_named(const char *codec, const char *name); /* likewise */

#endif
