/* SPDX-License-Identifier: Apache-2.0 */
/* webdataset.c - WebDataset: members that share a key (the path up to the first dot of its last part) make one sample.
 *
 *   00017.jpg  00017.cls ("3")        or        00017.png  00017.json ({"label": 3})
 *
 * A label is a number or a word. When all are numbers, the classes are 0..max in this order and an agreed class list
 * names them; as soon as one is a word, all are names. A shard called train-000000.tar, test-... or val-... puts its
 * samples into that split. Keys need only be unique within a shard; members of a sample may stand in any order. Other
 * members (seg.png, txt ...) are passed over. Cost: one small read per label, n log n comparisons of keys. */
#include "images/tar.h"

#include "base/alloc.h"
#include "base/text.h"
#include "images/layout.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_CLS = 256, MAX_JSON = 1 << 20 };
enum role { IMAGE, CLS, JSON, NONE };

struct part {
    size_t member;
    enum role role;
};

static size_t key_length(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strchr(base, '.');
    return dot ? (size_t)(dot - path) : strlen(path);
}

static enum role role_of(const char *path)
{
    const char *end = path + key_length(path);
    if (*end != '.') return NONE;
    if (!strcasecmp(end, ".cls")) return CLS;
    if (!strcasecmp(end, ".json")) return JSON;
    return !strchr(end + 1, '.') && fkt_is_image_name(path) ? IMAGE : NONE;
}

int fkt_webdataset_looks(const struct fkt_tar *t)
{
    size_t images = 0, json = 0;
    for (size_t i = 0; i < t->n; i++) {
        enum role r = role_of(t->names.text + t->members[i].path);
        if (r == CLS) return 1;
        images += r == IMAGE;
        json += r == JSON;
    }
    return images > 0 && json >= images;
}

static int same_key(const struct fkt_tar *t, size_t a, size_t b)
{
    const char *p = t->names.text + t->members[a].path, *q = t->names.text + t->members[b].path;
    size_t n = key_length(p);
    return t->members[a].shard == t->members[b].shard && n == key_length(q) && !memcmp(p, q, n);
}

/* By shard, key, then the member's place, so that the sample of a key is a run. */
static int by_key(const void *a, const void *b, void *tar)
{
    const struct part *x = a, *y = b;
    const struct fkt_tar *t = tar;
    const struct fkt_member *m = &t->members[x->member], *n = &t->members[y->member];
    const char *p = t->names.text + m->path, *q = t->names.text + n->path;
    size_t lp = key_length(p), lq = key_length(q);
    int c;
    if (m->shard != n->shard) return m->shard < n->shard ? -1 : 1;
    c = memcmp(p, q, lp < lq ? lp : lq);
    if (c) return c;
    if (lp != lq) return lp < lq ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

static fkt_status bad_label(const struct fkt_tar *t, const struct fkt_member *m, const char *why)
{
    return fkt_fail(FKT_E_FORMAT, "'%s:%s' %s", t->shard_paths[m->shard], t->names.text + m->path, why);
}

static fkt_status label_from_json(struct fkt_text *label, const struct fkt_tar *t, const struct fkt_member *m,
                                  const char *text)
{
    json_error_t err;
    json_t *root = json_loadb(text, (size_t)m->size, JSON_REJECT_DUPLICATES, &err);
    json_t *v = json_object_get(root, "label");
    fkt_status st = FKT_OK;
    if (!root) st = bad_label(t, m, "is no JSON");
    else if (json_is_integer(v) && json_integer_value(v) >= 0)
        fkt_text_addf(label, "%lld", (long long)json_integer_value(v));
    else if (json_is_string(v) && json_string_length(v) > 0 && json_string_length(v) < MAX_CLS)
        fkt_text_add(label, json_string_value(v));
    else st = bad_label(t, m, "has no \"label\" that is a whole number or a name");
    json_decref(root);
    return st == FKT_OK ? fkt_text_status(label) : st;
}

/* Appends the label's text to `labels` and gives its offset. */
static fkt_status read_label(struct fkt_names *labels, size_t *at, const struct fkt_tar *t, const struct part *p)
{
    const struct fkt_member *m = &t->members[p->member];
    struct fkt_text label;
    char *text = NULL;
    size_t n = (size_t)m->size;
    fkt_status st = FKT_OK;
    fkt_text_init(&label);
    if (m->size >= (p->role == CLS ? MAX_CLS : MAX_JSON)) {
        st = bad_label(t, m, "is too long for a label");
        goto out;
    }
    FKT_TRY(fkt_alloc(&text, n + 1));
    FKT_TRY(fkt_source_read(&t->shards[m->shard], m->at, text, n));
    if (p->role == JSON) {
        FKT_TRY(label_from_json(&label, t, m, text));
    } else {
        while (n && strchr(" \t\r\n", text[n - 1])) n--;
        if (!n || memchr(text, '\0', n) || memchr(text, '\n', n)) {
            st = bad_label(t, m, "is no label: one number or name is wanted");
            goto out;
        }
        fkt_text_addn(&label, text, n);
        FKT_TRY(fkt_text_status(&label));
    }
    FKT_TRY(fkt_names_add(labels, label.s, label.len, at));
out:
    fkt_text_clear(&label);
    fkt_free(text);
    return st;
}

/* parts[from..to) share a key: the image's member and the label's text, or SIZE_MAX in *image when there is no image.
 */
static fkt_status join(const struct fkt_tar *t, const struct part *parts, size_t from, size_t to, size_t *image,
                       struct fkt_names *labels, size_t *label)
{
    const struct part *cls = NULL;
    *image = SIZE_MAX;
    for (size_t i = from; i < to; i++) {
        if (parts[i].role == IMAGE && *image != SIZE_MAX)
            return bad_label(t, &t->members[parts[i].member], "is the second image of its key");
        if (parts[i].role == IMAGE) *image = parts[i].member;
        if (parts[i].role == CLS || (parts[i].role == JSON && !cls)) cls = &parts[i];
    }
    if (*image == SIZE_MAX) return FKT_OK; /* a JSON of the set itself */
    if (!cls) return bad_label(t, &t->members[*image], "has no label: neither .cls nor .json of its key");
    return read_label(labels, label, t, cls);
}

static const char *shard_split(const char *path, char buf[16])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strcspn(base, "-_.");
    if (n >= 16) return NULL;
    memcpy(buf, base, n);
    buf[n] = '\0';
    return fkt_split_name(buf);
}

struct sample {
    size_t member, label; /* label: offset into the labels' text */
};

static int by_member(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->member > y->member) - (x->member < y->member);
}

static int is_number(const char *s) { return *s && strlen(s) < 20 && strspn(s, "0123456789") == strlen(s); }

static fkt_status add_samples(struct fkt_dataset_builder *b, struct fkt_tar *t, const struct sample *samples, size_t n,
                              const struct fkt_names *labels)
{
    struct fkt_member *kept = NULL;
    int numbers = 1;
    char buf[16];
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < n; i++) numbers &= is_number(labels->text + samples[i].label);
    FKT_TRY(fkt_alloc(&kept, n));
    fkt_builder_keep_order(b);
    for (size_t i = 0; i < n; i++) {
        const char *label = labels->text + samples[i].label;
        const struct fkt_member *m = &t->members[samples[i].member];
        uint64_t number = 0;
        uint32_t k;
        if (numbers) {
            FKT_TRY(fkt_parse_u64(&number, label, UINT64_MAX - 1));
            FKT_TRY(fkt_builder_numbers(b, number + 1));
            k = (uint32_t)number;
        } else {
            FKT_TRY(fkt_builder_class(b, label, &k));
        }
        FKT_TRY(fkt_builder_add(b, k, shard_split(t->shard_paths[m->shard], buf), "%s:%s", t->shard_paths[m->shard],
                                t->names.text + m->path));
        kept[i] = *m;
    }
    fkt_free(t->members);
    t->members = kept;
    t->n = t->cap = n;
    kept = NULL;
out:
    fkt_free(kept);
    return st;
}

fkt_status fkt_webdataset_add(struct fkt_dataset_builder *b, struct fkt_tar *t)
{
    struct part *parts = NULL;
    struct sample *samples = NULL;
    struct fkt_names labels = {0};
    size_t n = 0, n_samples = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&parts, t->n));
    FKT_TRY(fkt_alloc(&samples, t->n));
    for (size_t i = 0; i < t->n; i++) {
        enum role r = role_of(t->names.text + t->members[i].path);
        if (r == NONE) {
            FKT_TRY(
                fkt_builder_skip(b, "%s:%s", t->shard_paths[t->members[i].shard], t->names.text + t->members[i].path));
            continue;
        }
        parts[n].member = i;
        parts[n++].role = r;
    }
    qsort_r(parts, n, sizeof *parts, by_key, t);
    for (size_t i = 0, end; i < n; i = end) {
        struct sample *s = &samples[n_samples];
        for (end = i + 1; end < n && same_key(t, parts[i].member, parts[end].member); end++) continue;
        FKT_TRY(join(t, parts, i, end, &s->member, &labels, &s->label));
        if (s->member != SIZE_MAX) n_samples++;
    }
    qsort(samples, n_samples, sizeof *samples, by_member); /* back into the order of the shards */
    FKT_TRY(add_samples(b, t, samples, n_samples, &labels));
out:
    fkt_free(parts);
    fkt_free(samples);
    fkt_free(labels.text);
    return st;
}
