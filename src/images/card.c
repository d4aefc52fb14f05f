/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - a dataset card in the style of the Hugging Face hub: YAML front matter, then Markdown.
 *
 * A dataset is copied; its README stays with it. So the privacy statement is here in
 * plain words beside the numbers, with what it does not cover. Names are untrusted: in YAML they are JSON strings
 * (which YAML reads), in Markdown every character with a meaning is escaped. */
#include "images/card.h"

#include "images/export.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Markdown, also inside a table: characters with a meaning get a backslash or become entities, line breaks and other
 * control characters blanks. GitHub makes links of bare addresses; "://", "www." and '@' are written so that it does
 * not. */
static void escaped(struct fkt_text *t, const char *s)
{
    const char *begin = s;
    for (size_t control; *s; s += control ? control : 1) {
        const char c = *s;
        control = fkt_control_length(s);
        if (control) fkt_text_add(t, " ");
        else if (c == '<') fkt_text_add(t, "&lt;");
        else if (c == '>') fkt_text_add(t, "&gt;");
        else if (c == '&') fkt_text_add(t, "&amp;");
        else if (c == '@') fkt_text_add(t, "&#64;");
        else if (!strncmp(s, "://", 3)) fkt_text_add(t, "&#58;");
        else if (c == '.' && s - begin >= 3 && !strncasecmp(s - 3, "www", 3)) fkt_text_add(t, "&#46;");
        else if (strchr("\\`*_[]|#~$!", c)) fkt_text_addf(t, "\\%c", c);
        else fkt_text_addn(t, s, 1);
    }
}

static void row(struct fkt_text *t, const char *name, const char *value)
{
    if (!value) return;
    fkt_text_addf(t, "| %s | ", name);
    escaped(t, value);
    fkt_text_add(t, " |\n");
}

int fkt_card_private(const struct fkt_card *c)
{
    return c->epsilon > 0 && isfinite(c->epsilon) && !c->insecure_seed && !c->weak;
}

uint64_t fkt_card_total(const struct fkt_card *c)
{
    uint64_t sum = 0;
    for (size_t k = 0; c->counts && k < c->n_classes; k++) sum += c->counts[k];
    return sum;
}

static const char *size_category(uint64_t n)
{
    return n < 1000      ? "n<1K"
           : n < 10000   ? "1K<n<10K"
           : n < 100000  ? "10K<n<100K"
           : n < 1000000 ? "100K<n<1M"
                         : "1M<n<10M";
}

/* A YAML string in double quotes. Beyond what JSON escapes: control characters, characters that change the direction
 * of text, and the letters that a viewer of the raw text might take for a tag. */
static void yaml_quoted(struct fkt_text *t, const char *s)
{
    fkt_text_add(t, "\"");
    while (*s) {
        const unsigned char *u = (const unsigned char *)s;
        size_t n = fkt_utf8_length(s);
        unsigned code = n == 2   ? (u[0] & 31U) << 6 | (u[1] & 63U)
                        : n == 3 ? (u[0] & 15U) << 12 | (u[1] & 63U) << 6 | (u[2] & 63U)
                        : n == 4 ? (u[0] & 7U) << 18 | (u[1] & 63U) << 12 | (u[2] & 63U) << 6 | (u[3] & 63U)
                                 : u[0];
        if (n == 0) fkt_text_add(t, "\\ufffd");
        else if (fkt_control_length(s) || strchr("<>&\"\\", *s)) fkt_text_addf(t, "\\U%08x", code);
        else fkt_text_addn(t, s, n);
        s += n ? n : 1;
    }
    fkt_text_add(t, "\"");
}

/* What `datasets` reads: where the images are, and the columns of metadata.jsonl with their types. Only an ImageFolder
 * is loaded so. Names of splits are ours. */
static void columns(struct fkt_text *t, const struct fkt_card *c)
{
    const char *split = c->split ? c->split : "train", *data = c->data ? c->data : "";
    if (c->format && strcmp(c->format, "ImageFolder") != 0) return;
    fkt_text_addf(
        t,
        "configs:\n- config_name: default\n  data_files:\n  - split: %s\n    path: %s%s/**\n  features:\n"
        "  - name: image\n    dtype: image\n  - name: label\n    dtype:\n      class_label:\n        names:\n",
        split, data, split);
    for (size_t k = 0; k < c->n_classes; k++) {
        fkt_text_addf(t, "          '%zu': ", k);
        yaml_quoted(t, c->classes[k]);
        fkt_text_add(t, "\n");
    }
    fkt_text_add(t, "  - name: class\n    dtype: string\n");
}

/* A hub knows these by their SPDX identifiers in lower case, and takes others as `other` with a name. */
static void license_lines(struct fkt_text *t, const char *license)
{
    static const char *const known[] = {"apache-2.0",          "cc-by-4.0",    "cc-by-nc-4.0", "cc-by-nc-nd-4.0",
                                        "cc-by-nc-sa-4.0",     "cc-by-nd-4.0", "cc-by-sa-4.0", "cc0-1.0",
                                        "cdla-permissive-2.0", "mit"};
    size_t i = 0;
    while (license && i < sizeof known / sizeof *known && strcasecmp(license, known[i]) != 0) i++;
    if (license && i < sizeof known / sizeof *known) fkt_text_addf(t, "license: %s\n", known[i]);
    else fkt_text_addf(t, "license: other\nlicense_name: %s\n", license ? license : "unknown");
}

static void front_matter(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_add(t, "---\npretty_name: ");
    fkt_json_quote(t, c->name);
    fkt_text_add(t, "\n");
    license_lines(t, c->publisher.license);
    fkt_text_add(t, "task_categories:\n- image-classification\ntags:\n- synthetic\n");
    if (fkt_card_private(c)) fkt_text_add(t, "- differential-privacy\n");
    fkt_text_add(t, "- federated-learning\n");
    if (c->counts) fkt_text_addf(t, "size_categories:\n- %s\n", size_category(fkt_card_total(c)));
    columns(t, c);
    fkt_text_add(t, "---\n\n# ");
    escaped(t, c->name);
    fkt_text_add(t, "\n\n");
}

static void summary(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_add(t, "**Synthetic images.** ");
    if (c->counts) fkt_text_addf(t, "%llu images", (unsigned long long)fkt_card_total(c));
    else fkt_text_add(t, "Images");
    fkt_text_addf(t, " of %u x %u pixels in %zu classes, sampled from class statistics", c->size, c->size,
                  c->n_classes);
    if (c->sites > 1) fkt_text_addf(t, " that %u sites contributed to", c->sites);
    fkt_text_add(t, ". No image here was taken by a camera.\n\n");
}

static void privacy(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_add(t, "## Privacy\n\n");
    if (c->insecure_seed) {
        fkt_text_add(t, "> **NOT PRIVATE: made with a fixed seed for the noise.** Whoever knows "
                        "the seed can take\n"
                        "> the noise off again. For tests only: never publish this dataset.\n\n");
        return;
    }
    if (!(c->epsilon > 0 && isfinite(c->epsilon))) {
        fkt_text_add(t, "> **NOT PRIVATE: no noise was added.** The statistics behind these images are exact. Never "
                        "publish this dataset.\n\n");
        return;
    }
    if (c->weak) {
        fkt_text_add(t, "> **WEAK PROMISE: ");
        escaped(t, c->weak);
        fkt_text_add(t, ".** There is noise in the statistics behind these images, but too little to call them "
                        "private.\n\n");
    }
    fkt_text_addf(t, "The statistics were released with (epsilon = %g, delta = %g)-differential privacy", c->epsilon,
                  c->delta);
    fkt_text_addf(
        t,
        "; the unit is %s.\nEverything below was computed from that release alone, so it costs no further privacy.\n\n",
        c->unit ? c->unit : "one image");
    if (c->composed_epsilon > c->epsilon * (1 + 1e-9))
        fkt_text_addf(
            t,
            "Other releases of the same dataset exist; together with them it is epsilon = %.4g at the same delta.\n\n",
            c->composed_epsilon);
    if (c->simulated) fkt_text_add(t, "It was made by a simulation, which keeps no ledger of further releases.\n\n");
    if (c->hides && !c->weak)
        fkt_text_addf(
            t,
            "- **Protected:** %s. Whatever anybody may conclude from this dataset, or from anything trained on it, "
            "would\n"
            "  have come out with nearly the same probability without that image: at most e^%g times it, plus %g.\n",
            c->hides, c->epsilon, c->delta);
    if (c->holds_against) {
        fkt_text_add(t, "- **Holds against:** ");
        escaped(t, c->holds_against);
        fkt_text_add(t, ".\n");
    }
    fkt_text_add(t, "- **Not protected:** what is true of a whole class; several images of one person taken together "
                    "(the promise weakens\n"
                    "  with their number); further releases of the same records, which add up;\n"
                    "  the public images that ");
    fkt_text_add(t, c->guide ? "codec and guide were built from.\n\n" : "the codec was built from.\n\n");
}

static void number(struct fkt_text *t, const char *name, double x)
{
    if (x > 0) fkt_text_addf(t, "| %s | %.6g |\n", name, x);
}

static void facts(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_add(t, "| | |\n|---|---|\n");
    if (c->epsilon > 0 && isfinite(c->epsilon)) {
        number(t, "epsilon", c->epsilon);
        number(t, "delta", c->delta);
        number(t, "mu (Gaussian DP)", c->mu);
        row(t, "adjacency", c->adjacency);
        row(t, "mechanism", c->mechanism);
        if (c->counted)
            fkt_text_addf(t, "| noise shares | the promise counts %u; %u are in the sum |\n", c->counted, c->in_total);
        row(t, "unit of privacy", c->unit ? c->unit : "one image");
    }
    row(t, "codec", c->codec);
    row(t, "calibration (public images)", c->calibration);
    row(t, "guide", c->guide);
    row(t, "images were guided", c->guided);
    for (size_t i = 0; i < c->n_hashes; i++) {
        fkt_text_add(t, "| SHA-256 of ");
        escaped(t, c->hashes[i].name);
        fkt_text_add(t, " | `");
        for (const char *s = c->hashes[i].hex; *s; s++)
            if ((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f')) fkt_text_addn(t, s, 1);
        fkt_text_add(t, "` |\n");
    }
    row(t, "license (SPDX)", c->publisher.license);
    row(t, "creator", c->publisher.creator);
    row(t, "published", c->publisher.published);
    row(t, "address", c->publisher.url);
    row(t, "made with fedkt", c->version);
    fkt_text_add(t, "\n");
}

static void classes(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_addf(t, "## Classes\n\n| label | class |%s\n|---:|---|%s\n", c->counts ? " images |" : "",
                  c->counts ? "---:|" : "");
    for (size_t k = 0; k < c->n_classes; k++) {
        fkt_text_addf(t, "| %zu | ", k);
        escaped(t, c->classes[k]);
        if (c->below && c->below[k]) fkt_text_add(t, " (below the noise: its images show mostly noise)");
        if (c->counts) fkt_text_addf(t, " | %llu", (unsigned long long)c->counts[k]);
        fkt_text_add(t, " |\n");
    }
    fkt_text_add(t, "\n");
}

static void loading(struct fkt_text *t, const struct fkt_card *c)
{
    const char *split = c->split ? c->split : "train", *format = c->format ? c->format : "ImageFolder";
    const char *data = c->data ? c->data : "";
    fkt_text_addf(
        t, "## Loading it\n\n`%sclasses.json` lists the class names in the order of their labels.\n\n```python\n",
        data);
    if (!strcmp(format, "npz"))
        fkt_text_addf(t,
                      "import numpy as np\n\nz = np.load(\"dataset.npz\")\nimages, labels = z[\"%s_images\"], "
                      "z[\"%s_labels\"][:, 0]"
                      "   # (n, %u, %u, 3) uint8, (n,)\n",
                      split, split, c->size, c->size);
    else if (!strcmp(format, "DPImageBench"))
        fkt_text_addf(
            t,
            "import numpy as np\n\nz = np.load(\"gen.npz\")   # gen/gen.npz of an experiment of DPImageBench\n"
            "images, labels = z[\"x\"], z[\"y\"]   # (n, 3, %u, %u) float32 between 0 and 1, (n,)\n",
            c->size, c->size);
    else if (!strcmp(format, "WebDataset"))
        fkt_text_addf(t,
                      "import glob\nimport webdataset as wds\n\nshards = sorted(glob.glob(\"%s-*.tar\"))\n"
                      "data = wds.WebDataset(shards, shardshuffle=False).decode(\"rgb8\").to_tuple(\"png\", \"cls\")\n",
                      split);
    else
        fkt_text_addf(t,
                      "from datasets import load_dataset             # version 3.6 or later\n\n"
                      "data = load_dataset(\".\", split=\"%s\")        # columns: image, label, class\n\n"
                      "from torchvision.datasets import ImageFolder   # folders are in the order of the labels\n\n"
                      "data = ImageFolder(\"%s%s\")\n\n"
                      "import mlcroissant                             # croissant.json describes the records\n\n"
                      "data = mlcroissant.Dataset(\"croissant.json\").records(\"%s\")\n",
                      split, data, split, split);
    fkt_text_add(t, "```\n");
}

static int is_date(const char *s)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int month, day;
    if (strlen(s) != 10 || s[4] != '-' || s[7] != '-') return 0;
    for (int i = 0; i < 10; i++)
        if (i != 4 && i != 7 && (s[i] < '0' || s[i] > '9')) return 0;
    month = (s[5] - '0') * 10 + s[6] - '0';
    day = (s[8] - '0') * 10 + s[9] - '0';
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

static int is_address(const char *s)
{
    const char *rest = !strncmp(s, "https://", 8) ? s + 8 : !strncmp(s, "http://", 7) ? s + 7 : "";
    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr("<>\"\\^`{|}", *p)) return 0;
    return *rest != '\0' && *rest != '/';
}

fkt_status fkt_publisher_check(const struct fkt_publisher *p)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+";
    if (p->license && (!*p->license || strlen(p->license) > 64 || p->license[strspn(p->license, letters)] ||
                       strchr(".-+", p->license[0])))
        return fkt_fail_hint(FKT_E_ARG, "for example 'CC-BY-4.0'", "license '%.80s' is not an SPDX identifier",
                             p->license);
    if (p->creator && (!fkt_plain_text(p->creator) || strlen(p->creator) > 255))
        return fkt_fail(FKT_E_ARG, "the creator's name is empty, too long, or has control characters");
    if (p->url && (strlen(p->url) > 1024 || !is_address(p->url)))
        return fkt_fail_hint(FKT_E_ARG, "it begins with 'https://'", "'%.80s' is not the address of a page", p->url);
    if (p->published && !is_date(p->published))
        return fkt_fail_hint(FKT_E_ARG, "write it as 2026-12-31", "'%.20s' is not a date", p->published);
    return FKT_OK;
}

fkt_status fkt_card_text(struct fkt_text *t, const struct fkt_card *c)
{
    if (!c->name || !c->classes || c->n_classes < 1)
        return fkt_fail(FKT_E_ARG, "a dataset card needs a name and classes");
    front_matter(t, c);
    summary(t, c);
    privacy(t, c);
    facts(t, c);
    classes(t, c);
    loading(t, c);
    return fkt_text_status(t);
}
