/* SPDX-License-Identifier: Apache-2.0 */
/* export_names.c - class names as folder names and as JSON strings.
 *
 * A class may be called "a/b", "..", "" or "CON"; its folder may not. Bytes that some file system or shell objects to
 * become '_'; UTF-8 letters stay; names that end up alike, also where case does not count, get "_2", "_3" ... in the
 * order of the list. Where their order by name is not that of the labels, each gets its label in front ("03_road"):
 * torchvision numbers classes by the sorted names of their folders. The true name always stands in metadata.jsonl and
 * classes.json, and our own reader goes by them (class_names.c). Names given are kept in a hash
 * table with the suffix to try next, so that 65,536 classes that are all alike cost no more than others. */
#include "images/export.h"

#include "base/alloc.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 100, SUFFIX_BYTES = 24 };

void fkt_json_quote(struct fkt_text *t, const char *s)
{
    fkt_text_add(t, "\"");
    while (*s) {
        size_t n = fkt_utf8_length(s);
        if (n == 0) fkt_text_add(t, "\\ufffd");
        else if (*s == '"' || *s == '\\') fkt_text_addf(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7f) fkt_text_addf(t, "\\u%04x", (unsigned)(unsigned char)*s);
        else fkt_text_addn(t, s, n);
        s += n ? n : 1;
    }
    fkt_text_add(t, "\"");
}

/* Names that Windows keeps for devices, with or without an extension. */
static int reserved(const char *name)
{
    static const char *const words[] = {"con", "prn", "aux", "nul"};
    size_t n = strcspn(name, ".");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == 3 && !strncasecmp(name, words[i], 3)) return 1;
    return n == 4 && (!strncasecmp(name, "com", 3) || !strncasecmp(name, "lpt", 3)) && name[3] >= '0' && name[3] <= '9';
}

/* out has NAME_MAX_BYTES + 1 bytes. */
static void make_safe(char *out, const char *name)
{
    size_t len = 0;
    for (; *name;) {
        size_t n = fkt_utf8_length(name);
        int plain = n == 1 && (unsigned char)*name >= 0x20 && *name != 0x7f && !strchr("/\\:*?\"<>|", *name);
        if (len + (n ? n : 1) > NAME_MAX_BYTES) break;
        if (plain || n > 1) memcpy(out + len, name, n);
        else out[len] = '_';
        len += n ? n : 1;
        name += n ? n : 1;
    }
    while (len > 0 && (out[len - 1] == ' ' || out[len - 1] == '.')) len--;
    out[len] = '\0';
    if (out[0] == '.' || out[0] == '-' || out[0] == ' ') out[0] = '_';
    if (len == 0 || reserved(out)) {
        char old[NAME_MAX_BYTES + 1];
        memcpy(old, out, len + 1);
        snprintf(out, NAME_MAX_BYTES + 1, "class%s%.80s", len ? "_" : "", old);
    }
}

/* A name that was given; open addressing, at most half of the slots are filled. */
struct slot {
    const char *name; /* NULL: free */
    size_t next;      /* the suffix to try when a class wants this name: all smaller ones are given */
};

static struct slot *find_slot(struct slot *table, size_t size, const char *name)
{
    uint64_t h = 0xcbf29ce484222325U; /* FNV-1a over what strcasecmp compares */
    size_t at;
    for (const char *c = name; *c; c++) h = (h ^ (uint8_t)tolower((unsigned char)*c)) * 0x100000001b3U;
    for (at = (size_t)(h ^ h >> 32) & (size - 1); table[at].name && strcasecmp(table[at].name, name);)
        at = (at + 1) & (size - 1);
    return &table[at];
}

fkt_status fkt_safe_names(char ***out, const char *const *names, size_t n)
{
    char **safe = NULL, base[NAME_MAX_BYTES + 1], trial[NAME_MAX_BYTES + SUFFIX_BYTES];
    struct slot *table = NULL;
    size_t size = 16;
    fkt_status st;

    *out = NULL;
    while (size < 2 * n) size *= 2;
    FKT_TRY(fkt_alloc(&safe, n));
    FKT_TRY(fkt_alloc(&table, size));
    for (size_t i = 0; i < n; i++) {
        struct slot *wanted, *s;
        make_safe(base, names[i]);
        snprintf(trial, sizeof trial, "%s", base);
        for (s = wanted = find_slot(table, size, base); s->name; s = find_slot(table, size, trial))
            snprintf(trial, sizeof trial, "%s_%zu", base, wanted->next++);
        FKT_TRY(fkt_strdup(&safe[i], trial));
        s->name = safe[i];
        s->next = 2;
    }
    *out = safe;
    safe = NULL;
out:
    fkt_free(table);
    fkt_safe_names_free(safe, n);
    return st;
}

fkt_status fkt_folder_names(char ***out, const char *const *names, size_t n)
{
    char **safe = NULL, number[24], prefixed[NAME_MAX_BYTES + 2 * SUFFIX_BYTES];
    int digits = snprintf(number, sizeof number, "%zu", n - 1);
    size_t sorted = 1;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_safe_names(&safe, names, n));
    while (sorted < n && strcmp(safe[sorted - 1], safe[sorted]) < 0) sorted++;
    for (size_t k = 0; k < n && sorted < n; k++) {
        snprintf(prefixed, sizeof prefixed, "%0*zu_%s", digits, k, safe[k]);
        fkt_free(safe[k]);
        safe[k] = NULL;
        FKT_TRY(fkt_strdup(&safe[k], prefixed));
    }
    *out = safe;
    safe = NULL;
out:
    fkt_safe_names_free(safe, n);
    return st;
}

void fkt_safe_names_free(char **names, size_t n)
{
    for (size_t i = 0; names && i < n; i++) fkt_free(names[i]);
    fkt_free(names);
}
