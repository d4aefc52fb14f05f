/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the porch: find the verb, run it, leave with 0 (ok), 1 (failed) or 2 (misuse). */
#include "cli/common.h"
#include "cli/startup.h"
#include "cli/verbs.h"

#include "tensor/linalg.h"

#include <stdio.h>
#include <string.h>

static const struct cli_command commands[] = {
    {"demo", "the whole walk on a built-in image set, in under two minutes", "[--out DIR]",
     "Twenty sites hold a procedural set of ten classes. They add up under masks, each with its share of the\n"
     "noise, and the sums are released at epsilon 10 and 1;\n"
     "images are sampled, heads are fitted, and everything is shown beside a bound without privacy in report.html.",
     cli_demo},
    {"privacy", "what a release costs in noise, and what that gives", "--epsilon E --delta D --dim d --clip R [...]",
     "Noise for one release of n, sum and second moment of vectors in a ball of radius R, in units of R and R^2.\n"
     "Example: fedkt privacy --epsilon 10 --delta 1e-5 --dim 128 --clip 1 --records 5000",
     cli_privacy},
    {"codec", "frozen public autoencoders: list, info, pull, verify, calibrate, roundtrip",
     "list | info [NAME] | pull NAME | verify NAME | calibrate [NAME] | roundtrip [NAME] [...]",
     "list shows what there is and what is on this machine; info one codec and its calibration; pull fetches "
     "published\n"
     "weights into the cache; verify checks their hashes and a picture; calibrate fits a public calibration on a "
     "PUBLIC\n"
     "image set; roundtrip encodes and decodes images and gives PSNR and a before/after picture.\n"
     "Weights lie in $FEDKT_CACHE, else $XDG_CACHE_HOME/fedkt, else ~/.cache/fedkt; without a network, put them "
     "there.\n"
     "Example: fedkt codec pull taesd\n"
     "Example: fedkt codec calibrate taesd --public tiny-imagenet.tar --size 32 --out taesd-32.safetensors",
     cli_codec},
    {"task", "write down what all sites must agree on", "--data PATH --epsilon E --delta D --out task.json [...]",
     "Takes the class list from a dataset (or --classes), and codec, calibration, coordinates and privacy from "
     "options.\n"
     "The task's hash binds them: moments made for one task cannot be released under another. With --roster it is\n"
     "for a federation, whose sites add up under masks.\n"
     "Example: fedkt task --classes cat,dog --epsilon 10 --delta 1e-5 --out task.json",
     cli_task},
    {"encode", "images to latents (private)", "--task task.json --data PATH --out latents.safetensors",
     "One pass through the frozen codec. The file holds one latent per record and must not leave the site.\n"
     "Example: fedkt encode --task task.json --data photos/ --out latents.safetensors",
     cli_encode},
    {"moments", "images or latents to exact class moments (private)",
     "--task task.json (--data PATH | --latents FILE) --out moments.safetensors",
     "Integers only: the same file, byte for byte, for any order of records and number of threads.\n"
     "Example: fedkt moments --task task.json --data photos/ --out site1.safetensors",
     cli_moments},
    {"release", "add moments up, debit the ledger, add noise",
     "--task task.json --moments FILE[,FILE...] --ledger FILE --out release.safetensors",
     "The only file that may leave. The ledger is debited before noise is drawn; a second release of the same records "
     "is refused\n"
     "unless the ledger's budget allows it.\n"
     "Example: fedkt release --task task.json --moments site1.safetensors,site2.safetensors --ledger ledger.json --out "
     "release.safetensors",
     cli_release},
    {"generate", "a release to labelled synthetic images", "--release FILE --per-class N --out DIR",
     "Any number of images, at any time, from the release alone, free of privacy cost.\n"
     "Example: fedkt generate --release release.safetensors --per-class 500 --out synthetic/",
     cli_generate},
    {"heads", "closed-form classifiers straight from a release", "--release FILE [--out DIR]",
     "Nearest mean, LDA and QDA, noise-aware; says which classes drown in the noise. With --test they are scored on "
     "real images.\n"
     "Example: fedkt heads --release release.safetensors --test photos/ --test-split test",
     cli_heads},
    {"evaluate", "a saved head on real images", "--release FILE --model head.safetensors --data PATH",
     "Accuracy, per class and in all. The release gives codec and coordinates.\n"
     "Example: fedkt evaluate --release release.safetensors --model heads/lda.safetensors --data photos/ --split test",
     cli_evaluate},
    {"simulate", "many sites in one process, from images to accuracies and a report",
     "--data PATH --clients N --epsilon E[,E...] --delta D --out DIR [...]",
     "Partitions the records over N sites, lets each compute its moments and add its share of the noise, adds them up\n"
     "by the protocol of a real federation, samples, judges. Sites may be lost in any of its phases: --dropout.\n"
     "Example: fedkt simulate --data eurosat.tar --holdout 0.2 --clients 20 --partition dirichlet:0.1 --epsilon 10,1 "
     "--delta 1e-5 --out run/",
     cli_simulate},
    {"audit", "try to break a release: a lower bound on epsilon by attack", "--epsilon E --delta D",
     "Releases two worst-case neighbouring datasets many times and tells them apart as well as theory allows.\n"
     "A lower bound above epsilon would prove a bug. What is attacked is the central mechanism, as 'fedkt release' "
     "runs it;\n"
     "noise in shares, as a federation adds it, is not attacked here.\n"
     "Example: fedkt audit --epsilon 1 --delta 1e-5",
     cli_audit},
    {"bench", "speed beside a stated bound", "[codec | moments | secagg | privacy]",
     "Checks the answer first, then times it: best of ten or more. secagg runs whole rounds, a process for each core, "
     "and\n"
     "takes half a minute for a thousand sites.\n"
     "Example: fedkt bench moments --json",
     cli_bench},
};

static void overview(FILE *to)
{
    fprintf(to,
            "fedkt %s - one synthetic, differentially private image dataset from many sites\n\nusage: fedkt VERB "
            "[options]\n\n",
            fkt_version());
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n'fedkt VERB --help' teaches a verb. Results go to stdout, talk to stderr; --json for machines.\n"
                "Exit codes: 0 ok, 1 failed, 2 misuse. Start with 'fedkt demo'.\n");
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        overview(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        overview(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
        printf("fedkt %s\n", fkt_version());
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(&commands[i], argc - 2, argv + 2);
    return cli_fail(fkt_fail_hint(FKT_E_ARG, "see 'fedkt --help'", "unknown verb '%s'", argv[1]));
}

int main(int argc, char **argv)
{
    int code;
    cli_startup(argv);
    fkt_linalg_init();
    code = run(argc, argv);
    return code ? code : cli_fail(cli_flush()); /* results that did not arrive are a failure */
}
