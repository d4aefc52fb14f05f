/* SPDX-License-Identifier: Apache-2.0 */
/* publish.h - the end of a task: unmasking, release, files. Runs in its own thread. */
#ifndef FKT_PIPELINE_PUBLISH_H
#define FKT_PIPELINE_PUBLISH_H

#include "fedkt/advanced/secagg.h"
#include "fedkt/generate.h"

#include "base/status.h"

/* Unmasks on so many threads (0: all). The state machine is in FKT_SA_STATE_UNMASK and is used by this call alone.
 * */
FKT_MUST_USE fkt_status fkt_unmask(struct fkt_sa_server *s, unsigned threads, const struct fkt_progress *progress);

enum { FKT_PUBLISH_DATASET = 0, FKT_PUBLISH_GRID, FKT_PUBLISH_FILES };
struct fkt_publication {
    const struct fkt_pipeline *pipeline; /* borrowed, as all of these */
    const char *out;
    size_t per_class;
    enum fkt_export_format format;
    unsigned threads;
    const struct fkt_progress *progress;

    uint8_t *bytes; /* of the release; owned, as what follows */
    size_t len;
    char sha256[FKT_SHA256_HEX];
    char *certificate; /* the text of certificate.json */
    uint32_t survivors;
    struct fkt_publication_file {
        uint64_t bytes;
        char sha256[FKT_SHA256_HEX];
    } file[FKT_PUBLISH_FILES];
    int known; /* file[] is from the log: existing and new files must match it */
    int bare;  /* the log states that there are none */
};
extern const char *const fkt_publication_names[FKT_PUBLISH_FILES];
/* From a machine in FKT_SA_STATE_UNMASK to the release in memory. Central noise is drawn here; nothing of it is kept
 * on a failure. */
FKT_MUST_USE fkt_status fkt_publish_release(struct fkt_publication *f, struct fkt_sa_server *s);
/* From the release to the files in `out`; the same ones however often it is called. FKT_E_NUMERIC: release and
 * certificate are there, but no images can be made of it. FKT_E_MISMATCH: they differ from the log
 * and were not kept. */
FKT_MUST_USE fkt_status fkt_publish_files(struct fkt_publication *f);
void fkt_publish_no_files(struct fkt_publication *f); /* release and certificate alone: other files are removed */
void fkt_publication_clear(struct fkt_publication *f);

/* SHA-256 over the sorted lines "sha256  path\n" of all regular files under `folder`, and their bytes together. */
FKT_MUST_USE fkt_status fkt_folder_hash(const char *folder, char sha256[FKT_SHA256_HEX], uint64_t *bytes);

#endif
