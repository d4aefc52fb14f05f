/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - a plain main for a fuzz target: each corpus file as it is, then mutated variants, always the same ones.
 *
 *   fuzz_<name> FOLDER [ROUNDS]      every file of the folder, and ROUNDS variants of each
 *   fuzz_<name> FILE                 this one input, once
 *
 * Neither a fuzzer nor clang is needed, so every build runs every target. The work is done in a child
 * process that keeps the input in shared memory: whatever ends the child (signal, sanitizer, leak, 20 s without
 * an answer), the parent writes that input to crash-fuzz_<name>.bin and prints how to run it again. After each input
 * fkt_alloc_live() must be back where it was. A variant depends on the corpus and its round alone. */
#include "base/alloc.h"
#include "base/rng.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INPUT_MAX (1U << 16)
#define FILES_MAX 1024U
#define SECONDS_PER_INPUT 20U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    char *name;
    uint8_t *data;
    size_t len;
};

struct shared { /* the child writes, the parent reads after its death */
    char name[256];
    long round; /* -1: the file as it is */
    unsigned long runs;
    size_t len;
    uint8_t data[INPUT_MAX];
};

static struct input files[FILES_MAX];
static size_t n_files;

static void die(const char *what, const char *subject)
{
    fprintf(stderr, "replay: %s '%s'\n", what, subject);
    exit(2);
}

static void load(const char *path, const char *name)
{
    struct input *in = &files[n_files];
    FILE *f = fopen(path, "rb");
    if (!f) die("cannot read", path);
    if (n_files == FILES_MAX) die("too many files in the corpus of", path);
    in->name = strdup(name);
    in->data = malloc(INPUT_MAX);
    if (!in->name || !in->data) die("no memory for", path);
    in->len = fread(in->data, 1, INPUT_MAX, f);
    fclose(f);
    n_files++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct input *)a)->name, ((const struct input *)b)->name);
}

static void load_folder(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    char full[4096];
    if (!d) die("cannot open folder", path);
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.') continue;
        snprintf(full, sizeof full, "%s/%s", path, e->d_name);
        load(full, e->d_name);
    }
    closedir(d);
    qsort(files, n_files, sizeof files[0], by_name);
}

/* The target gets a block of exactly its size, so that address checks see the first byte beyond it. */
static void run_one(struct shared *sh, const char *name, long round, const uint8_t *data, size_t len)
{
    size_t live = fkt_alloc_live();
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy) die("no memory for", name);
    memcpy(copy, data, len);
    snprintf(sh->name, sizeof sh->name, "%s", name);
    sh->round = round;
    sh->len = len;
    memcpy(sh->data, data, len);
    alarm(SECONDS_PER_INPUT);
    LLVMFuzzerTestOneInput(copy, len);
    alarm(0);
    free(copy);
    sh->runs++;
    if (fkt_alloc_live() != live) {
        fprintf(stderr, "replay: %zu blocks of memory were not given back\n", fkt_alloc_live() - live);
        _exit(3);
    }
}

/* clang-format off */
static const uint64_t landmarks[] = {
    0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff,
    0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffff8, 0xffffffffffffffff};
/* clang-format on */

static void put_landmark(struct fkt_rng *r, uint8_t *data, size_t len)
{
    uint64_t x = landmarks[fkt_rng_below(r, sizeof landmarks / sizeof landmarks[0])];
    size_t width = (size_t)1 << fkt_rng_below(r, 4);
    int big = (int)fkt_rng_below(r, 2);
    size_t at;
    if (len < width) return;
    at = (size_t)fkt_rng_below(r, len - width + 1);
    for (size_t i = 0; i < width; i++) data[at + i] = (uint8_t)(x >> (8 * (big ? width - 1 - i : i)));
}

/* A run of digits becomes another number: headers written as text (JSON, npy, tar) keep their shape and lie. */
static void lie_in_digits(struct fkt_rng *r, uint8_t *data, size_t len)
{
    size_t at = len ? (size_t)fkt_rng_below(r, len) : 0, i;
    for (i = 0; i < len; i++)
        if (data[(at + i) % len] >= '0' && data[(at + i) % len] <= '9') break;
    if (i == len) return;
    for (i = (at + i) % len; i < len && data[i] >= '0' && data[i] <= '9'; i++)
        data[i] = (uint8_t)('0' + (fkt_rng_below(r, 3) ? fkt_rng_below(r, 10) : 9));
}

static size_t cut(struct fkt_rng *r, uint8_t *data, size_t len)
{
    size_t from, n;
    if (len < 2) return len;
    from = (size_t)fkt_rng_below(r, len);
    n = 1 + (size_t)fkt_rng_below(r, len - from);
    memmove(data + from, data + from + n, len - from - n);
    return len - n;
}

static size_t insert(struct fkt_rng *r, uint8_t *data, size_t len, const uint8_t *from, size_t from_len)
{
    size_t at = (size_t)fkt_rng_below(r, len + 1), start, n;
    if (!from_len) return len;
    start = (size_t)fkt_rng_below(r, from_len);
    n = 1 + (size_t)fkt_rng_below(r, from_len - start < 512 ? from_len - start : 512);
    if (len + n > INPUT_MAX) return len;
    memmove(data + at + n, data + at, len - at);
    memcpy(data + at, from + start, n);
    return len + n;
}

static size_t mutate(struct fkt_rng *r, uint8_t *data, size_t len)
{
    uint64_t steps = 1 + fkt_rng_below(r, 4);
    uint8_t noise[16];
    const struct input *other;
    while (steps--) {
        switch (fkt_rng_below(r, 10)) {
        case 0:
        case 1:
            if (len) data[fkt_rng_below(r, len)] ^= (uint8_t)(1U << fkt_rng_below(r, 8));
            break;
        case 2:
            if (len) data[fkt_rng_below(r, len)] = (uint8_t)fkt_rng_below(r, 256);
            break;
        case 3:
        case 4: put_landmark(r, data, len); break;
        case 5:
        case 6: lie_in_digits(r, data, len); break;
        case 7: len = fkt_rng_below(r, 2) ? cut(r, data, len) : (size_t)fkt_rng_below(r, len + 1); break;
        case 8:
            for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)fkt_rng_below(r, 256);
            len = insert(r, data, len, noise, sizeof noise);
            break;
        default:
            other = &files[fkt_rng_below(r, n_files)];
            len = insert(r, data, len, other->data, other->len);
            break;
        }
    }
    return len;
}

static uint64_t name_seed(const char *name)
{
    uint64_t h = 0xcbf29ce484222325U; /* FNV-1a */
    while (*name) h = (h ^ (uint8_t)*name++) * 0x100000001b3U;
    return h;
}

static void run_all(struct shared *sh, long rounds)
{
    uint8_t *data = malloc(INPUT_MAX);
    if (!data) die("no memory for", "mutations");
    for (size_t i = 0; i < n_files; i++) run_one(sh, files[i].name, -1, files[i].data, files[i].len);
    for (size_t i = 0; i < n_files; i++) {
        for (long round = 0; round < rounds; round++) {
            struct fkt_rng r;
            size_t len = files[i].len;
            memcpy(data, files[i].data, len);
            fkt_rng_init(&r, name_seed(files[i].name), (uint64_t)round);
            len = mutate(&r, data, len);
            run_one(sh, files[i].name, round, data, len);
        }
    }
    free(data);
    for (size_t i = 0; i < n_files; i++) {
        free(files[i].data);
        free(files[i].name);
    }
}

static int report(const char *program, const struct shared *sh, int how)
{
    const char *target = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
    char path[512];
    FILE *f;
    snprintf(path, sizeof path, "crash-%s.bin", target);
    f = fopen(path, "wb");
    if (f) {
        fwrite(sh->data, 1, sh->len, f);
        fclose(f);
    }
    if (WIFSIGNALED(how))
        fprintf(stderr, "replay: ended by signal %d%s", WTERMSIG(how),
                WTERMSIG(how) == SIGALRM ? " (no answer in time)" : "");
    else fprintf(stderr, "replay: ended with status %d", WEXITSTATUS(how));
    fprintf(stderr, " on '%s', variant %ld (-1: as it is), after %lu inputs\nrun it again: %s %s\n", sh->name,
            sh->round, sh->runs, program, path);
    return 1;
}

int main(int argc, char **argv)
{
    struct shared *sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct stat sb;
    long rounds = 0;
    int how = 0;
    pid_t child;

    if (argc < 2 || argc > 3) die("usage: FOLDER [ROUNDS] or FILE, not", argc > 1 ? argv[1] : "");
    if (sh == MAP_FAILED || stat(argv[1], &sb) != 0) die("cannot open", argv[1]);
    if (S_ISDIR(sb.st_mode)) load_folder(argv[1]);
    else load(argv[1], argv[1]);
    if (!n_files) die("no corpus in", argv[1]);
    if (argc == 3) rounds = strtol(argv[2], NULL, 10);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        run_all(sh, rounds);
        return 0; /* by way of exit, so that leak checks speak */
    }
    if (child < 0 || waitpid(child, &how, 0) != child) die("cannot run", argv[0]);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) return report(argv[0], sh, how);
    printf("%s: %lu inputs from %zu files\n", argv[0], sh->runs, n_files);
    return 0;
}
