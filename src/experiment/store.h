/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the folder of a run, and cells that are kept: store.c. */
#ifndef FKT_EXPERIMENT_STORE_H
#define FKT_EXPERIMENT_STORE_H

#include "experiment/experiment.h"

#include <dirent.h>

/* plan.json, and cells/KEY.json, each whole or absent. resume: FKT_E_MISMATCH for other options, and for a set
 * that is now another one; nothing is written then. */
FKT_MUST_USE fkt_status fkt_store_begin(const char *folder, const struct fkt_experiment_options *o, int resume);
int fkt_store_has(const char *folder, const struct fkt_cell *c);
FKT_MUST_USE fkt_status fkt_store_put(const char *folder, const struct fkt_cell *c, json_t *points /* taken */,
                                      const struct fkt_experiment_options *o,
                                      const json_t *notes /* fkt_lab_notes; NULL: none */);
int fkt_store_is_json(const struct dirent *d); /* for scandir: a JSON file that is not hidden */
/* A JSON file of a run, with flags of jansson and of base/file.h. Takes j; NULL is a lack of memory. */
FKT_MUST_USE fkt_status fkt_store_write(const char *path, json_t *j, size_t format, int flags);
/* All cells of a run's folder, by name, or of kept files: NAME.jsonl, or a folder of such. Gives *out, an array of what
 * was put. Hostile input: a file that is not a cell is FKT_E_FORMAT. */
FKT_MUST_USE fkt_status fkt_store_read(const char *place, json_t **out);
/* Keeps cells: a file NAME.jsonl for each experiment, a cell a line; files of other experiments stay. FKT_E_EXISTS when
 * a file there has cells that would be lost. */
FKT_MUST_USE fkt_status fkt_store_keep(const char *folder, const json_t *cells);

#endif
