/* SPDX-License-Identifier: Apache-2.0 */
/* lab_notes.c - what a cell says of itself beside its points: what it was made of, and what it had in place of the
 * usual. A report compares it (summary_source.c, summary_inputs.c).
 *
 * A note is written where the thing is done: a set is opened, a network is made. So an option that a cell does not use
 * is not among its notes. Not noted: the format of numbers that a network learnt in, which goes by the machine (f32 on
 * a processor, bf16 on a card). */
#include "experiment/lab.h"
#include "experiment/store.h"

#include "base/alloc.h"
#include "base/file.h"

#include <unistd.h>

void fkt_lab_begin_cell(struct fkt_lab *lab) { json_object_clear(lab->notes); }

const json_t *fkt_lab_notes(const struct fkt_lab *lab) { return lab->notes; }

static fkt_status put(json_t *notes, const char *key, json_t *value)
{
    return json_object_set_new(notes, key, value) == 0
               ? FKT_OK
               : fkt_fail(FKT_E_NOMEM, "out of memory for what a cell says of itself");
}

fkt_status fkt_lab_use(struct fkt_lab *lab, const char *name, const char *sha256)
{
    json_t *inputs = json_object_get(lab->notes, "inputs");
    fkt_status st = FKT_OK;
    if (!lab->notes) return FKT_OK;
    if (!inputs) FKT_TRY(put(lab->notes, "inputs", inputs = json_object()));
    st = put(inputs, name, json_string(sha256));
out:
    return st;
}

fkt_status fkt_lab_note_limit(struct fkt_lab *lab)
{
    const size_t n = lab->options.limit;
    return n && lab->notes ? put(lab->notes, "limit", json_integer((json_int_t)n)) : FKT_OK;
}

fkt_status fkt_lab_note_network(struct fkt_lab *lab)
{
    const char *name = fkt_architecture_name((enum fkt_architecture)(lab->options.network - 1));
    return put(lab->notes, "network", json_string(name));
}

fkt_status fkt_lab_note_per_class(struct fkt_lab *lab)
{
    const size_t n = lab->options.per_class;
    return n ? put(lab->notes, "per_class", json_integer((json_int_t)n)) : FKT_OK;
}

fkt_status fkt_lab_write(struct fkt_lab *lab, const char *folder, const char *file, json_t *j, size_t format)
{
    char *place = NULL, *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&place, lab->run, folder));
    FKT_TRY(fkt_path_join(&path, place, file));
    if (access(path, F_OK) == 0) goto out;
    st = fkt_mkdirs(place);
    if (st == FKT_OK) st = fkt_store_write(path, json_incref(j), format, FKT_FILE_REPLACE);
    if (st != FKT_OK) lab->unwritable = 1;
out:
    json_decref(j);
    fkt_free(place);
    fkt_free(path);
    return st;
}
