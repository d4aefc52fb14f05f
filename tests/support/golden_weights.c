/* SPDX-License-Identifier: Apache-2.0 */
/* golden_weights.c - weights that look random and are the same everywhere; see golden_weights.h.
 *
 * r = splitmix64(fnv1a64(name) + i); u = (r >> 40) / 2^23 - 1; what u becomes depends on the end of the name and on the
 * rank (oracle/random_weights.py). Everything is computed in double and rounded once; products and sums are separate
 * roundings in both languages (-ffp-contract=off here). Speed is a few nanoseconds a number. */
#include "tests/support/golden_weights.h"

#include "base/text.h"
#include "crypto/hash.h"
#include "tests/support/check.h"

enum { TENSORS = 512, NAME = 160, RANK = 4, PIECE = 1 << 16 };

struct listed {
    char name[NAME];
    unsigned rank;
    uint64_t shape[RANK], count;
    size_t width; /* bytes of one element */
};

static uint64_t fnv1a64(const char *s)
{
    uint64_t h = 0xCBF29CE484222325U;
    for (; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001B3U;
    return h;
}

static double uniform(uint64_t x)
{
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
    x = (x ^ x >> 27) * 0x94D049BB133111EBU;
    return (double)((x ^ x >> 31) >> 40) / 8388608.0 - 1.0;
}

static int ends(const char *name, const char *tail)
{
    size_t a = strlen(name), b = strlen(tail);
    return a >= b && !strcmp(name + a - b, tail);
}

void golden_weights_fill(float *out, const char *name, unsigned rank, const uint64_t *shape, uint64_t first,
                         size_t count)
{
    uint64_t base = fnv1a64(name) + first, fan_in = 1;
    double centre = 0.0, scale = 0.1;
    int size = ends(name, "running_var");
    for (unsigned i = 1; i < rank; i++) fan_in *= shape[i];
    if (size) centre = 1.0, scale = 0.5;
    else if (ends(name, "weight") && rank == 1) centre = 1.0;
    else if (ends(name, "weight")) scale = sqrt(3.0 / (double)fan_in);
    else if (!ends(name, "bias") && !ends(name, "running_mean")) fail_msg("no rule for tensor '%s'", name);
    for (size_t i = 0; i < count; i++) {
        double u = uniform(base + i), part = scale * (size ? fabs(u) : u);
        out[i] = (float)(centre + part);
    }
}

static FILE *open_list(const char *list, char hash[GOLDEN_HASH])
{
    FILE *f = fopen(list, "r");
    if (!f) fail_msg("cannot open '%s'", list);
    if (fscanf(f, "# %64[0-9a-f] ", hash) != 1) fail_msg("'%s' does not begin with a hash", list);
    return f;
}

void golden_weights_stated(const char *list, char hash[GOLDEN_HASH]) { fclose(open_list(list, hash)); }

static size_t read_list(struct listed *t, const char *list)
{
    char line[NAME + 64], hash[GOLDEN_HASH];
    FILE *f = open_list(list, hash);
    size_t n = 0;
    for (; fgets(line, sizeof line, f); n++) {
        char *at = strchr(line, ' '), *end = strchr(line, '\n');
        CHECK(n < TENSORS && end);
        if (!at) at = end; /* a scalar */
        CHECK((size_t)(at - line) < NAME);
        memset(&t[n], 0, sizeof t[n]);
        memcpy(t[n].name, line, (size_t)(at - line));
        t[n].count = 1;
        while (*at == ' ') {
            CHECK(t[n].rank < RANK);
            t[n].shape[t[n].rank] = strtoull(at, &at, 10);
            t[n].count *= t[n].shape[t[n].rank++];
        }
        t[n].width = ends(t[n].name, "num_batches_tracked") ? 8 : 4;
    }
    fclose(f);
    return n;
}

static void write_header(FILE *f, const struct listed *t, size_t n)
{
    struct fkt_text head;
    uint64_t at = 0;
    uint8_t length[8];
    fkt_text_init(&head);
    for (size_t i = 0; i < n; i++) {
        uint64_t end = at + t[i].count * t[i].width;
        fkt_text_addf(&head, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "{", t[i].name,
                      t[i].width == 8 ? "I64" : "F32");
        for (unsigned k = 0; k < t[i].rank; k++)
            fkt_text_addf(&head, "%s%llu", k ? "," : "", (unsigned long long)t[i].shape[k]);
        fkt_text_addf(&head, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
        at = end;
    }
    fkt_text_add(&head, "}");
    while (head.len % 8 && fkt_text_status(&head) == FKT_OK) fkt_text_add(&head, " ");
    CHECK_OK(fkt_text_status(&head));
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)head.len >> 8 * i);
    CHECK(fwrite(length, 1, 8, f) == 8 && fwrite(head.s, 1, head.len, f) == head.len);
    fkt_text_clear(&head);
}

void golden_weights_write(const char *list, const char *path, char hash[GOLDEN_HASH])
{
    static struct listed t[TENSORS];
    static float piece[PIECE];
    size_t n = read_list(t, list);
    struct fkt_hash h;
    FILE *f = fopen(path, "wb");
    if (!f) fail_msg("cannot write '%s'", path);
    write_header(f, t, n);
    fkt_hash_init(&h);
    for (size_t i = 0; i < n; i++)
        for (uint64_t at = 0; at < t[i].count; at += PIECE) {
            size_t count = t[i].count - at < PIECE ? (size_t)(t[i].count - at) : PIECE;
            if (t[i].width == 8) memset(piece, 0, 8);
            else golden_weights_fill(piece, t[i].name, t[i].rank, t[i].shape, at, count);
            if (hash) fkt_hash_add(&h, piece, count * t[i].width);
            CHECK(fwrite(piece, t[i].width, count, f) == count);
        }
    CHECK(fclose(f) == 0);
    if (hash) fkt_hash_hex(&h, hash);
}
