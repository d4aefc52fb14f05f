/* SPDX-License-Identifier: Apache-2.0 */
/* croissant.c - croissant.json of an ImageFolder: the dataset's metadata in schema.org's vocabulary, and its records.
 *
 * Source: the Croissant format 1.0 of MLCommons, JSON-LD over schema.org/Dataset. Search engines for datasets read it,
 * and the package `mlcroissant` gives the records:
 *
 *   distribution  metadata.jsonl and certificate.json, each with its SHA-256; the PNG files by a pattern
 *   recordSet     `classes`: label and name of each class; `train`: the rows of metadata.jsonl, each joined with its
 *                 PNG file by the file's name, which is unique in a split (export_folder.c)
 *
 * Croissant demands a licence, a creator, an address and a date. Only the publisher knows them: what the caller does
 * not give is left out, and the file is then valid schema.org that Croissant's checker accepts with warnings. The
 * version ends in the beginning of the images' fingerprint: two files with one version describe the same images. */
#include "images/card.h"
#include "images/export.h"

#include <math.h>
#include <string.h>

/* The terms of the format's own vocabulary, those of version 1.0; the rest is schema.org's. */
static const char *const terms[] = {"citeAs",       "column",        "equivalentProperty",
                                    "extract",      "field",         "fileObject",
                                    "fileProperty", "fileSet",       "format",
                                    "includes",     "isLiveDataset", "jsonPath",
                                    "key",          "md5",           "parentField",
                                    "path",         "recordSet",     "references",
                                    "regex",        "repeated",      "replace",
                                    "samplingRate", "separator",     "source",
                                    "subField",     "transform"};

static void context(struct fkt_text *t)
{
    fkt_text_add(t, "  \"@context\": {\n    \"@language\": \"en\",\n    \"@vocab\": \"https://schema.org/\",\n"
                    "    \"sc\": \"https://schema.org/\",\n    \"cr\": \"http://mlcommons.org/croissant/\",\n"
                    "    \"rai\": \"http://mlcommons.org/croissant/RAI/\",\n"
                    "    \"dct\": \"http://purl.org/dc/terms/\",\n    \"conformsTo\": \"dct:conformsTo\",\n"
                    "    \"data\": {\"@id\": \"cr:data\", \"@type\": \"@json\"},\n"
                    "    \"dataType\": {\"@id\": \"cr:dataType\", \"@type\": \"@vocab\"},\n"
                    "    \"examples\": {\"@id\": \"cr:examples\", \"@type\": \"@json\"}");
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        fkt_text_addf(t, ",\n    \"%s\": \"cr:%s\"", terms[i], terms[i]);
    fkt_text_add(t, "\n  },\n  \"@type\": \"sc:Dataset\",\n"
                    "  \"conformsTo\": \"http://mlcommons.org/croissant/1.0\",\n");
}

static void member(struct fkt_text *t, const char *key, const char *value)
{
    if (!value) return;
    fkt_text_addf(t, "  \"%s\": ", key);
    fkt_json_quote(t, value);
    fkt_text_add(t, ",\n");
}

/* What it is and what is promised, in one paragraph without markup. */
static void description(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_addf(t, "%llu synthetic images of %u x %u pixels in %zu classes, sampled from class statistics",
                  (unsigned long long)fkt_card_total(c), c->size, c->size, c->n_classes);
    if (c->sites > 1) fkt_text_addf(t, " that %u sites contributed to", c->sites);
    if (c->insecure_seed) fkt_text_add(t, ". NOT PRIVATE: made with a fixed seed for the noise.");
    else if (!(c->epsilon > 0 && isfinite(c->epsilon))) fkt_text_add(t, ". NOT PRIVATE: no noise was added.");
    else
        fkt_text_addf(
            t,
            ". The statistics were released with (epsilon = %g, delta = %g)-differential privacy; the unit is "
            "%s.%s%s%s README.md states what is protected and what is not.",
            c->epsilon, c->delta, c->unit ? c->unit : "one image", c->weak ? " WEAK PROMISE: " : "",
            c->weak ? c->weak : "", c->weak ? "." : "");
}

static void about(struct fkt_text *t, const struct fkt_card *c, const char *images_sha256)
{
    struct fkt_text words;
    fkt_text_init(&words);
    description(&words, c);
    member(t, "name", c->name);
    member(t, "description", words.s);
    member(t, "url", c->publisher.url);
    if (c->publisher.license) {
        fkt_text_add(t, "  \"license\": \"https://spdx.org/licenses/");
        fkt_text_addf(t, "%s\",\n", c->publisher.license); /* letters, digits, dots, hyphens */
    }
    if (c->publisher.creator) {
        fkt_text_add(t, "  \"creator\": {\"@type\": \"Organization\", \"name\": ");
        fkt_json_quote(t, c->publisher.creator);
        fkt_text_add(t, "},\n");
    }
    member(t, "datePublished", c->publisher.published);
    fkt_text_addf(t, "  \"version\": \"1.0.0+%.12s\",\n", images_sha256);
    if (c->publisher.creator) {
        fkt_text_clear(&words);
        fkt_text_addf(&words, "%s: %s%s%.4s. Synthetic images, fingerprint %s.%s%s", c->publisher.creator, c->name,
                      c->publisher.published ? ", " : "", c->publisher.published ? c->publisher.published : "",
                      images_sha256, c->publisher.url ? " " : "", c->publisher.url ? c->publisher.url : "");
        member(t, "citeAs", words.s);
    }
    fkt_text_addf(t, "  \"keywords\": [\"synthetic\", %s\"federated learning\", \"image classification\"],\n",
                  fkt_card_private(c) ? "\"differential privacy\", " : "");
    if (fkt_text_status(&words) != FKT_OK) t->st = fkt_text_status(&words);
    fkt_text_clear(&words);
}

static void file_object(struct fkt_text *t, const char *id, const char *folder, const char *name, const char *format,
                        const char *sha256)
{
    fkt_text_addf(t,
                  "    {\"@type\": \"cr:FileObject\", \"@id\": \"%s\", \"name\": \"%s\",\n"
                  "     \"contentUrl\": \"%s%s\", \"encodingFormat\": \"%s\",\n     \"sha256\": \"%s\"},\n",
                  id, id, folder, name, format, sha256);
}

static void distribution(struct fkt_text *t, const struct fkt_card *c, const struct fkt_croissant_files *files)
{
    char rows[64];
    snprintf(rows, sizeof rows, "%s/metadata.jsonl", c->split);
    fkt_text_add(t, "  \"distribution\": [\n");
    file_object(t, "metadata.jsonl", c->data, rows, "application/jsonlines", files->metadata_sha256);
    file_object(t, "certificate.json", "", "certificate.json", "application/json", files->certificate_sha256);
    fkt_text_addf(t,
                  "    {\"@type\": \"cr:FileSet\", \"@id\": \"images\", \"name\": \"images\",\n"
                  "     \"encodingFormat\": \"image/png\", \"includes\": \"%s%s/*/*.png\"}\n  ],\n",
                  c->data, c->split);
}

static void field(struct fkt_text *t, const char *set, const char *name, const char *type, const char *rest, int more)
{
    fkt_text_addf(t,
                  "       {\"@type\": \"cr:Field\", \"@id\": \"%s/%s\", \"name\": \"%s\", \"dataType\": \"%s\"%s}%s\n",
                  set, name, name, type, rest, more ? "," : "");
}

static void records(struct fkt_text *t, const struct fkt_card *c)
{
#define COLUMN(name)                                                                                                   \
    ",\n        \"source\": {\"fileObject\": {\"@id\": \"metadata.jsonl\"}, \"extract\": {\"column\": \"" name "\"}"
    fkt_text_add(t,
                 "  \"recordSet\": [\n    {\"@type\": \"cr:RecordSet\", \"@id\": \"classes\", \"name\": \"classes\", "
                 "\"dataType\": \"sc:Enumeration\",\n     \"key\": {\"@id\": \"classes/label\"}, \"field\": [\n");
    field(t, "classes", "label", "sc:Integer", "", 1);
    field(t, "classes", "name", "sc:Text", "", 0);
    fkt_text_add(t, "     ],\n     \"data\": [\n");
    for (size_t k = 0; k < c->n_classes; k++) {
        fkt_text_addf(t, "       {\"classes/label\": %zu, \"classes/name\": ", k);
        fkt_json_quote(t, c->classes[k]);
        fkt_text_add(t, k + 1 < c->n_classes ? "},\n" : "}\n");
    }
    fkt_text_addf(t, "     ]},\n    {\"@type\": \"cr:RecordSet\", \"@id\": \"%s\", \"name\": \"%s\", \"field\": [\n",
                  c->split, c->split);
    field(t, c->split, "file", "sc:Text",
          COLUMN("file_name") ", \"transform\": {\"regex\": \"(?:.*/)?([0-9]+[.]png)$\"}},\n"
                              "        \"references\": {\"fileSet\": {\"@id\": \"images\"}, \"extract\": "
                              "{\"fileProperty\": \"filename\"}}",
          1);
    field(t, c->split, "image", "sc:ImageObject",
          ",\n        \"source\": {\"fileSet\": {\"@id\": \"images\"}, \"extract\": {\"fileProperty\": \"content\"}}",
          1);
    field(t, c->split, "label", "sc:Integer",
          COLUMN("label") "},\n        \"references\": {\"field\": {\"@id\": \"classes/label\"}}", 1);
    field(t, c->split, "class", "sc:Text", COLUMN("class") "}", 0);
    fkt_text_add(t, "     ]}\n  ]\n}\n");
#undef COLUMN
}

fkt_status fkt_croissant_text(struct fkt_text *t, const struct fkt_card *card, const struct fkt_croissant_files *files)
{
    struct fkt_card c = *card;
    if (!c.name || !c.classes || c.n_classes < 1)
        return fkt_fail(FKT_E_ARG, "the description of a dataset needs a name and classes");
    if (!c.split) c.split = "train";
    if (!c.data) c.data = "";
    fkt_text_add(t, "{\n");
    context(t);
    about(t, &c, files->images_sha256);
    distribution(t, &c, files);
    records(t, &c);
    return fkt_text_status(t);
}
