/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - `fedkt bench [MODULE]`: speed compared with a bound measured in the same run. */
#include "bench/bench.h"
#include "cli/core/help.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include "fedkt/learn.h"

#include "codec/codec.h"
#include "nn/cpu.h"
#include "fedkt/machine.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 64 };

static const struct {
    const char *suite;
    int on_request; /* only on request */
    fkt_status (*run)(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n);
} benches[] = {{"codec", 0, fkt_bench_codec}, /* first: it measures the peak memory of the process */
               {"moments", 0, fkt_bench_moments}, {"secagg", 0, fkt_bench_secagg},
               {"privacy", 0, fkt_bench_privacy}, {"cost", 1, fkt_bench_cost},
               {"train", 1, fkt_bench_train},     {"federation", 1, fkt_bench_federation},
               {"guided", 1, fkt_bench_guided}};

/* 0: what is measured runs on the processor alone, and no card is opened for it. */
static int has_network(const char *suite, const char *codec)
{
    if (suite && (!strcmp(suite, "train") || !strcmp(suite, "guided"))) return 1;
    return (!suite || !strcmp(suite, "codec") || !strcmp(suite, "cost")) && fkt_codec_is_network(codec);
}

/* 1: a rate, of which more is better; 0: a time, or memory. */
static int rate(const char *unit)
{
    size_t n = strlen(unit);
    return n > 2 && !strcmp(unit + n - 2, "/s");
}

static void print_row(const struct fkt_bench_row *r)
{
    printf("%-34s %12.4g %-10s (%s)  %s %.4g (%s), ", r->name, r->value, r->unit,
           rate(r->unit) ? "higher is better" : "lower is better", r->peer ? "beside" : "bound", r->bound,
           r->bound_name);
    if (r->peer)
        printf("%.0f %% of the matmul peak   %s\n", 100 * (rate(r->unit) ? r->ratio_to_bound : 1 / r->ratio_to_bound),
               r->note);
    else printf("ratio %.2f   %s\n", r->ratio_to_bound, r->note);
}

/* "oneDNN 3.1 with avx512", "NVIDIA H200 (cuda:0, compute capability 9.0, CUDA 13.0, cuDNN 9.14.0, ...)" */
static void print_place(struct fkt_device d, const struct fkt_device_facts *f, const char *was)
{
    char name[FKT_DEVICE_NAME];
    fkt_device_name(d, name);
    if (d.kind == FKT_DEVICE_CPU) printf("networks run on %s with %s", f->libraries, f->capability);
    else
        printf("networks run on %s (%s, compute capability %s, %s, %s)", f->name, name, f->capability, f->driver,
               f->libraries);
    printf(", BLAS on %s%s%s%s\n", fkt_blas_core(),
           was ? " (set at start-up; it had identified this processor as " : "", was ? was : "", was ? ")" : "");
}

static fkt_status print_rows(const struct fkt_bench_row *rows, size_t n, struct fkt_device d, int json)
{
    const char *was = cli_startup_corrected_from(), *isa = NULL;
    struct fkt_device_facts facts;
    json_t *list = json_array();
    size_t peers = 0;
    fkt_status st = fkt_cpu_isa(&isa);
    if (st == FKT_OK) st = fkt_device_describe(d, &facts);
    if (st != FKT_OK) {
        json_decref(list);
        return st;
    }
    if (!json) print_place(d, &facts, was);
    for (size_t i = 0; i < n; i++) {
        const struct fkt_bench_row *r = &rows[i];
        if (!json) print_row(r);
        peers += (size_t)r->peer;
        json_array_append_new(list, json_pack("{s:s s:f s:s s:f s:f s:s s:s}", "name", r->name, "value", r->value,
                                              "unit", r->unit, "bound", r->bound, "ratio_to_bound", r->ratio_to_bound,
                                              "bound_name", r->bound_name, "note", r->note));
    }
    if (json)
        return cli_print_json(json_pack("{s:s s:s s:s s:o s:s s:s? s:o}", "version", fkt_version(), "network_library",
                                        facts.libraries, "isa", isa, "device", cli_device_json(d), "blas_core",
                                        fkt_blas_core(), "blas_core_was", was, "rows", list));
    if (peers)
        printf("the bound is the same work as direct convolutions at the speed of this %s's best matrix product;\n"
               "Winograd's convolutions need fewer multiplications, so that more than 100 %% is possible\n",
               d.kind == FKT_DEVICE_CUDA ? "card" : "processor");
    json_decref(list);
    return cli_flush();
}

int cli_bench(const struct cli_command *self, int argc, char **argv)
{
    struct cli_bench o = {.codec = {.size = 32}, .dropout = 0.1};
    const struct cli_option table[] = {
        CLI_OPT_HEAD("codec; cost: encode, statistics and sampling, decode; guided: images by twin and gradient"),
        CLI_OPT_TEXT("codec", &o.codec.name, "NAME", 0, "the codec to time (default: taesd; guided: fedkt-ae)"),
        CLI_OPT_WHOLE("size", &o.codec.size, "PX", 0, "side of the images, in pixels (default: 32)"),
        CLI_OPT_WHOLE("images", &o.images, "N", 0,
                      "number of images (default: as many as take a few seconds; cost: 1000)"),
        CLI_WEIGHTS_LINES(o.codec.settings),
        CLI_DEVICE_ROW(o.codec.settings.device),
        CLI_OPT_HEAD("train: steps of SGD; --images in all, --dtype f32, bf16 or auto (both)"),
        CLI_OPT_CHOICE("network", &o.model, fkt_architecture_parse, "resnet18 or resnet8", "the network to train"),
        CLI_OPT_TEXT("sizes", &o.sizes, "PX,PX", 0, "sides of the images (default: 32,64)"),
        CLI_OPT_POSITIVE("batch", &o.batch, "N", 0, "images per step (default: 64)"),
        CLI_OPT_REAL("seconds", &o.seconds, "S", 0, "run at least ten steps and S seconds (default: 10)"),
        CLI_OPT_HEAD(
            "secagg: a round in memory, a tenth of its sites lost; federation: a real server, N sites over TLS"),
        CLI_OPT_POSITIVE(
            "sites", &o.sites, "N", 0,
            "sites of one round, 10 to 65536 (default: 20, then 100, then 1000; federation: 20, then 100)"),
        CLI_OPT_POSITIVE("classes", &o.classes, "K", 0,
                         "classes, at most 1000, of 128 numbers a record (default: 10); of cost too"),
        CLI_OPT_POSITIVE("dim", &o.dim, "D", 0,
                         "length of the latent: of federation (default: 127), of cost with dct (default: 64)"),
        CLI_OPT_REAL("dropout", &o.dropout, "P", 0,
                     "federation: fraction of the sites that is lost, over its phases (default: 0.1)"),
        CLI_OPT_POSITIVE(
            "phase-seconds", &o.phase_seconds, "S", 0,
            "federation: seconds that a phase waits for a site (default: 10 plus a tenth of the number of sites)"),
        CLI_OPT_HEAD("run"),
        CLI_OPT_WHOLE("threads", &o.run.threads, "N", 0, "worker threads (default: all cores)"),
        CLI_TALK_ROWS(o.run),
    };
    struct fkt_bench_row rows[MAX_ROWS];
    const char *suite = argc > 0 && argv[0][0] != '-' ? argv[0] : NULL;
    struct fkt_device device = {FKT_DEVICE_CPU, 0};
    size_t n = 0, known = 0;
    fkt_status st = FKT_OK;
    int code = cli_begin(self, table, CLI_COUNT(table), suite ? argc - 1 : argc, suite ? argv + 1 : argv);
    if (code >= 0) return code;
    if (!o.codec.name) o.codec.name = suite && !strcmp(suite, "guided") ? "fedkt-ae" : "taesd";
    if (has_network(suite, o.codec.name)) st = cli_device_settle(o.codec.settings.device, &device);
    for (size_t i = 0; i < CLI_COUNT(benches) && st == FKT_OK; i++) {
        size_t got = 0;
        if (suite ? strcmp(suite, benches[i].suite) != 0 : benches[i].on_request) continue;
        known++;
        st = benches[i].run(&o, rows + n, MAX_ROWS - n, &got);
        if (st == FKT_E_IO && !suite) { /* missing weights must not stop the other benchmarks */
            fprintf(stderr, "fedkt: bench %s is left out: ", benches[i].suite);
            cli_say(fkt_error_text());
            st = FKT_OK;
        }
        n += got;
    }
    if (st == FKT_OK && !known) return cli_misuse(self, cli_unknown_word(self, suite));
    if (st == FKT_OK) st = print_rows(rows, n, device, o.run.json);
    return cli_misuse(self, st);
}
