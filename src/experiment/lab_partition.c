/* SPDX-License-Identifier: Apache-2.0 */
/* lab_partition.c - who held what: partitions/NAME.json of a run, one file for each set, number of sites, rule, choice
 * and seed that a cell has used. What is written is what the cell's federation worked with, not a second computation.
 *
 * The owners of all records stand in one string, as many digits for each record: "07" is site 7 of 20, "--" a record
 * that is held out. With the labels of the set (sets/NAME.json says which set) a reader has everything that a partition
 * is. A rule chooses a site by a record's label and a number of the record:
 *   content   hash of its stored bytes: federations under add-remove
 *   number    its place in the whole set: federations under replacement
 *   place     its place among the records that are shared out: `personalised` (learning/personal_split.c)
 * The bytes depend on the partition alone, so it does not matter which cell wrote them. */
#include "experiment/lab.h"
#include "experiment/store.h"

#include "base/alloc.h"
#include "base/file.h"
#include "fedkt/advanced/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned digits_of(uint32_t sites)
{
    unsigned n = 1;
    for (uint32_t most = sites - 1; most > 9; most /= 10) n++;
    return n;
}

/* Gives a string; NULL: no memory. */
static json_t *owners_json(const struct fkt_lab_owners *o, size_t records, unsigned digits)
{
    char *text = NULL, one[16];
    json_t *j;
    if (fkt_alloc(&text, records * digits + 1) != FKT_OK) return NULL;
    memset(text, '-', records * digits);
    for (size_t i = 0; i < o->n; i++) {
        snprintf(one, sizeof one, "%0*u", (int)digits, o->owner[i]);
        memcpy(text + (o->record ? o->record[i] : i) * digits, one, digits);
    }
    j = json_stringn(text, records * digits);
    fkt_free(text);
    return j;
}

/* Records of each class at each site. */
static json_t *counts_json(const struct fkt_lab_owners *o, const struct fkt_dataset *ds, uint32_t sites)
{
    const size_t K = fkt_dataset_classes(ds);
    json_t *all = json_array(), *row;
    uint32_t *count = NULL;
    if (fkt_alloc(&count, sites * K) != FKT_OK) {
        json_decref(all);
        return NULL;
    }
    for (size_t i = 0; i < o->n; i++) count[o->owner[i] * K + fkt_dataset_label(ds, o->record ? o->record[i] : i)]++;
    for (uint32_t s = 0; s < sites; s++) {
        row = json_array();
        for (size_t k = 0; k < K; k++) json_array_append_new(row, json_integer(count[s * K + k]));
        json_array_append_new(all, row);
    }
    fkt_free(count);
    return all;
}

static json_t *partition_json(const struct fkt_lab *lab, const struct fkt_lab_partition *p, const char *rule)
{
    const unsigned digits = digits_of(p->spec.sites);
    json_t *classes = json_array(), *j;
    for (size_t k = 0; k < fkt_dataset_classes(lab->train); k++)
        json_array_append_new(classes, json_string(fkt_dataset_class(lab->train, k)));
    j = json_pack("{s:s s:s s:s s:s s:i s:I s:s s:I s:I s:i s:o s:o s:o}", "schema", "fedkt.experiment-partition/1",
                  "set", lab->set, "set_sha256", lab->set_sha256, "rule", rule, "sites", (int)p->spec.sites, "seed",
                  (json_int_t)p->spec.seed, "by", p->by, "records", (json_int_t)fkt_dataset_size(lab->train),
                  "held_out", (json_int_t)(fkt_dataset_size(lab->train) - p->train.n), "digits", (int)digits, "classes",
                  classes, "counts", counts_json(&p->train, lab->train, p->spec.sites), "owner",
                  owners_json(&p->train, fkt_dataset_size(lab->train), digits));
    if (j && p->test.owner)
        json_object_set_new(j, "test_owner",
                            owners_json(&p->test, fkt_dataset_size(lab->test ? lab->test : lab->train), digits));
    return j;
}

fkt_status fkt_lab_partition(struct fkt_lab *lab, const struct fkt_lab_partition *p)
{
    char rule[FKT_PARTITION_TEXT], word[96], file[FKT_PARTITION_NAME + 8];
    fkt_partition_text(&p->spec, rule);
    (void)fkt_experiment_plain(rule, word);
    snprintf(lab->partition, sizeof lab->partition, "%s.%u.%.48s.%s.%llu", lab->set, p->spec.sites, word, p->by,
             (unsigned long long)p->spec.seed);
    snprintf(file, sizeof file, "%s.json", lab->partition);
    return fkt_lab_write(lab, "partitions", file, partition_json(lab, p, rule), JSON_COMPACT);
}

fkt_status fkt_lab_sweep_partition(struct fkt_lab *lab, const struct fkt_sweep *sweep,
                                   const struct fkt_partition_spec *spec, enum fkt_adjacency adjacency)
{
    struct fkt_lab_partition p = {.spec = *spec, .by = fkt_adjacency_counts_public(adjacency) ? "number" : "content"};
    p.train.record = fkt_sweep_train_records(sweep, &p.train.n);
    p.train.owner = fkt_sweep_simulation(sweep)->owner;
    return fkt_lab_partition(lab, &p);
}
