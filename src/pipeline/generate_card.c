/* SPDX-License-Identifier: Apache-2.0 */
/* generate_card.c - what is written beside the images of a release: for people README.md, for programs croissant.json,
 * the certificate, and images.json, which identifies the images that the certificate was written for.
 *
 * For a hub also .gitattributes: image files and the list of them go to its store for large files (Git LFS), since hubs
 * refuse binary files, and files of more than 10 MB, in git itself. */
#include "pipeline/generate_card.h"

#include "pipeline/gaussians.h"
#include "pipeline/provenance.h"
#include "pipeline/release.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "images/card.h"

#include <jansson.h>
#include <string.h>

static fkt_status write_text(const char *folder, const char *name, const char *text)
{
    char *path = NULL;
    fkt_status st = fkt_path_join(&path, folder, name);
    if (st == FKT_OK) st = fkt_file_write(path, text, strlen(text), 0);
    fkt_free(path);
    return st;
}

static fkt_status write_croissant(const struct fkt_making *m, const struct fkt_card *card, const char *certificate,
                                  const char *fingerprint)
{
    char rows_sha256[FKT_HASH_HEX], certificate_sha256[FKT_HASH_HEX], *rows = NULL;
    struct fkt_text text;
    fkt_status st;
    fkt_text_init(&text);
    FKT_TRY(fkt_path_join(&rows, m->images, "train/metadata.jsonl"));
    FKT_TRY(fkt_hash_file_hex(rows_sha256, rows));
    fkt_hash_bytes_hex(certificate_sha256, certificate, strlen(certificate));
    FKT_TRY(
        fkt_croissant_text(&text, card, &(struct fkt_croissant_files){rows_sha256, certificate_sha256, fingerprint}));
    FKT_TRY(write_text(m->folder, "croissant.json", text.s));
out:
    fkt_text_clear(&text);
    fkt_free(rows);
    return st;
}

/* All but what is on the heap. */
static struct fkt_card card_of(const struct fkt_making *m)
{
    static const char *const formats[] = {"ImageFolder", "npz", "WebDataset", "DPImageBench"};
    const struct fkt_release *r = m->release;
    const struct fkt_task *t = &r->task;
    const struct fkt_task_part *guide = fkt_task_part_of(t, FKT_PART_GUIDE);
    return (struct fkt_card){.name = t->name,
                             .classes = (const char *const *)t->classes,
                             .n_classes = t->n_classes,
                             .size = t->size,
                             .format = formats[m->options->format],
                             .split = "train",
                             .data = m->options->push_layout ? FKT_PUSH_FOLDER "/" : "",
                             .publisher = m->options->publisher,
                             .epsilon = t->privacy.epsilon,
                             .delta = t->privacy.delta,
                             .mu = r->plan.mu,
                             .adjacency = fkt_adjacency_name(t->privacy.adjacency),
                             .hides = fkt_adjacency_info((int)t->privacy.adjacency)->hides,
                             .mechanism = fkt_mechanism_name(t->privacy.mechanism),
                             .codec = t->part[0].identity,
                             .calibration = t->part[0].calibration_source,
                             .guide = guide ? guide->identity : NULL,
                             .sites = r->facts.sites,
                             .counted = r->sum.n ? r->sum.noise.counted : r->shares.counted,
                             .in_total = r->facts.survivors,
                             .simulated = r->facts.simulated,
                             .composed_epsilon = r->facts.composed_epsilon,
                             .insecure_seed = r->insecure_seed,
                             .version = fkt_version()};
}

static fkt_status write_files(const struct fkt_making *m, const struct fkt_card *card, const char *certificate,
                              const char *fingerprint)
{
    static const char large[] = "*.png filter=lfs diff=lfs merge=lfs -text\n"
                                "metadata.jsonl filter=lfs diff=lfs merge=lfs -text\n";
    const struct fkt_generate_options *o = m->options;
    struct fkt_text text;
    fkt_status st;
    fkt_text_init(&text);
    FKT_TRY(fkt_card_text(&text, card));
    FKT_TRY(write_text(m->folder, "README.md", text.s));
    FKT_TRY(write_text(m->folder, "certificate.json", certificate));
    if (o->format == FKT_EXPORT_FOLDER) FKT_TRY(write_croissant(m, card, certificate, fingerprint));
    if (o->push_layout) FKT_TRY(write_text(m->folder, ".gitattributes", large));
    FKT_TRY(fkt_origin_note(m->folder, m->release, certificate, o->per_class * card->n_classes, fingerprint,
                            &m->guided->facts));
out:
    fkt_text_clear(&text);
    return st;
}

fkt_status fkt_making_card(const struct fkt_making *m, const char fingerprint[FKT_SHA256_HEX])
{
    const struct fkt_release *r = m->release;
    const struct fkt_task *t = &r->task;
    const struct fkt_task_part *guide = fkt_task_part_of(t, FKT_PART_GUIDE);
    struct fkt_card_hash hashes[6] = {{"release", r->sha256},
                                      {"task", t->sha256},
                                      {"codec", t->part[0].sha256},
                                      {"calibration", t->part[0].calibration_sha256}};
    struct fkt_card card = card_of(m);
    char guided[FKT_GUIDED_WORDS], why[FKT_PROMISE_WORDS], *certificate = NULL;
    uint64_t *counts = NULL;
    uint8_t *below = NULL;
    json_t *said = NULL;
    fkt_status st;
    card.hashes = hashes;
    card.n_hashes = 4;
    if (guide) {
        hashes[card.n_hashes++] = (struct fkt_card_hash){"guide", guide->sha256};
        hashes[card.n_hashes++] = (struct fkt_card_hash){"calibration of the guide", guide->calibration_sha256};
    }
    FKT_TRY(fkt_alloc(&counts, t->n_classes));
    FKT_TRY(fkt_alloc(&below, t->n_classes));
    for (uint32_t k = 0; k < t->n_classes; k++) {
        counts[k] = m->options->per_class;
        below[k] = (uint8_t)fkt_gaussians_below_noise(m->g, k);
    }
    FKT_TRY(fkt_release_certificate(r, &certificate));
    said = json_loads(certificate, 0, NULL);
    if (!said) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory while writing a dataset card");
        goto out;
    }
    card.counts = counts;
    card.below = below;
    card.holds_against = json_string_value(json_object_get(said, "holds_against"));
    card.guided = fkt_guided_words(&m->guided->facts, guided);
    card.weak = fkt_release_promise(r, why) == FKT_PROMISE_WEAK ? why : NULL;
    FKT_TRY(write_files(m, &card, certificate, fingerprint));
out:
    fkt_free(counts);
    fkt_free(below);
    fkt_string_free(certificate);
    json_decref(said);
    return st;
}
