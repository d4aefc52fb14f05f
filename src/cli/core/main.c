/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - finds the verb, runs it, exits with 0 (ok), 1 (failed), 2 (misuse) or 128 and a signal's number. */
#include "cli/core/launch.h"
#include "cli/core/common.h"
#include "cli/core/help.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int help(const struct cli_command *self, int argc, char **argv);

static const struct cli_command commands[] = {
    {"demo", "the whole pipeline on a built-in image set, in under two minutes", "[--out DIR]",
     "Twenty sites hold a procedural set of ten classes. They add up under masks, each with its noise share, and the\n"
     "sums are released at epsilon 10 and 1. From the sums alone come images, closed-form classifiers (heads) and, at\n"
     "epsilon 1, a small network trained on the images; report.html shows them beside a bound without privacy. The\n"
     "networks come with the program: nothing is fetched.",
     cli_demo},
    {"privacy", "the noise that a release needs, and the resulting error",
     "--epsilon E --delta D --dim d --clip R [...]",
     "Noise for one release of n, sum and second moment of vectors in a ball of radius R, in units of R and R^2.\n"
     "Example: fedkt privacy --epsilon 10 --delta 1e-5 --dim 128 --clip 1 --records 5000",
     cli_privacy},
    {"codec", "frozen public codecs and guides: list, info, pull, verify, calibrate, roundtrip",
     "list | info [NAME] | pull NAME | verify NAME | calibrate [NAME] | roundtrip [NAME] [...]",
     "list shows all codecs and guides and what is on this machine; info one of them and its calibration; pull "
     "fetches\n"
     "published weights into the cache; verify checks their hashes and an image; calibrate fits a public calibration\n"
     "on a PUBLIC image set; roundtrip encodes and decodes images, prints the PSNR and writes a before/after image.\n"
     "Weights are in $FEDKT_CACHE, else $XDG_CACHE_HOME/fedkt, else ~/.cache/fedkt; without a network, put them "
     "there.\n"
     "fedkt-ae and fedkt-guide come with the program; $FEDKT_MODELS names another folder for them.\n"
     "Example: fedkt codec pull taesd\n"
     "Example: fedkt codec info efficientnet-lite0@128\n"
     "Example: fedkt codec calibrate taesd --public tiny-imagenet.tar --size 32 --out taesd-32.safetensors",
     cli_codec},
    {"keygen", "make the key that identifies a site or an operator", "--out site.key [--name NAME]",
     "Writes the secret key, which only you can read and which stays here, and the public part, which you\n"
     "send to the operator. Read the fingerprint out over the telephone, so that nobody puts another key in its "
     "place.\n"
     "Example: fedkt keygen --out site.key --name 'North clinic'",
     cli_keygen},
    {"enroll", "collect the sites' public keys into a roster", "--roster roster.txt SITE.pub...",
     "Checks that each file is signed with its key, and appends the keys to the roster, which is created when it is\n"
     "not there. Their order numbers the sites. Compare the fingerprints by telephone.\n"
     "Example: fedkt enroll --roster roster.txt north.pub south.pub east.pub",
     cli_enroll},
    {"task", "what all sites must agree on: new, show, sign, verify", "new | show | sign | verify [...]",
     "new writes a task; show explains one in words; sign adds the operator's signature; verify checks\n"
     "that signature.\n"
     "Example: fedkt task new --classes cat,dog --epsilon 10 --delta 1e-5 --out task.json",
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
     "The only file that may leave. The ledger is debited before noise is drawn. The account is the dataset that you\n"
     "name: all its releases add up, and a second one is refused unless its budget allows it, whatever the records\n"
     "are. Images that the ledger knows under another name are refused, and so are moments files that share an\n"
     "image. An image with a changed pixel, or encoded or resized again, is not recognised: only the name accounts\n"
     "for it.\n"
     "Example: fedkt release --task task.json --moments site1.safetensors,site2.safetensors --ledger ledger.db --out "
     "release.safetensors",
     cli_release},
    {"ledger", "what each dataset has spent, and what is left", "[show] [--ledger FILE] [--dataset NAME | --data PATH]",
     "Lists each dataset: its total budget, what was spent and reserved, and every entry. With --dataset it shows\n"
     "that one alone, with --data the one that these images belong to.\n"
     "Example: fedkt ledger --data photos/",
     cli_ledger},
    {"generate", "a release to labelled synthetic images",
     "--release FILE --out DIR [--per-class N] [--guided [STEPS]]",
     "Any number of images, at any time, from the release alone, without further privacy cost. Where the release has\n"
     "a guide they are guided; such a run that is interrupted is continued by the same command.\n"
     "Example: fedkt generate --release release.safetensors --per-class 500 --out synthetic/",
     cli_generate},
    {"heads", "closed-form classifiers directly from a release", "--release FILE [--out DIR] [--export FILE]",
     "Nearest mean, LDA, QDA and RDA, corrected for the noise; names the classes that are below the noise. With "
     "--test\n"
     "they are scored on real images. With --export one of them becomes a whole model, pixels in and classes out,\n"
     "with the encoders that it needs: as ONNX for other programs, or as safetensors for 'fedkt evaluate'.\n"
     "Example: fedkt heads --release release.safetensors --test photos/ --test-split test\n"
     "Example: fedkt heads --release release.safetensors --export model.onnx",
     cli_heads},
    {"train", "a ResNet on synthetic images from a folder, or directly from a release",
     "(--data PATH | --release FILE) --out model.safetensors [...]",
     "Trains a ResNet-18 (or a small ResNet-8). From a release images are drawn and decoded in memory; --teacher head\n"
     "gives them soft labels from the release's own head. A model that has seen nothing but a private release and\n"
     "public images (--public) is as private as that release, and its file says so; with --mix or other real images\n"
     "it is NOT, and its file says that. Ctrl-C writes the checkpoint; --resume continues to the same bits.\n"
     "Example: fedkt train --release release.safetensors --per-class 1000 --epochs 30 --out model.safetensors\n"
     "Example: fedkt train --data synthetic/ --network resnet8 --holdout 0.1 --test photos/ --out model.safetensors",
     cli_train},
    {"evaluate", "a saved model or head on real images", "--model FILE --data PATH [--release FILE] [--through-codec]",
     "Accuracy, per class and in all, the confusion matrix, and the calibration of its confidence. A head of 'fedkt\n"
     "heads' needs the release that it was made from; a whole model that 'fedkt heads' exported (safetensors), a\n"
     "model of 'fedkt train', or a torchvision resnet18 as safetensors or ONNX, needs nothing else. With\n"
     "--through-codec images are also encoded and decoded first, and both results are printed.\n"
     "Example: fedkt evaluate --model model.safetensors --data photos/ --split test\n"
     "Example: fedkt evaluate --release release.safetensors --model heads/lda.safetensors --data photos/ --split test",
     cli_evaluate},
    {"personalize", "a trained network whose last layer is tuned at every site",
     "(--model FILE | --release FILE) --data PATH --sites N --partition RULE [...]",
     "The paper's personalised protocol: each site tunes the last layer of a network that was trained on synthetic\n"
     "images, on its own records, and is evaluated on others of its own. Beside it, on the same records: that\n"
     "network untouched (global), local training from scratch, and one round of federated averaging. Only the\n"
     "network that came from a release is private; what a site tunes or trains is not.\n"
     "Example: fedkt personalize --model model.safetensors --data cifar10.tar.xz --sites 20 --partition "
     "pathological:2\n"
     "Example: fedkt personalize --model model.safetensors --data photos/ --sites 1 --out mine.safetensors\n"
     "Example: fedkt personalize --release release.safetensors --epochs 30 --data photos/ --sites 5 --partition iid",
     cli_personalize},
    {"simulate", "many sites in one process, from images to accuracies and a report",
     "--data PATH --sites N --epsilon E[,E...] --delta D --out DIR [...]",
     "Partitions the records over N sites, lets each compute its moments and add its noise share, adds them up\n"
     "by the protocol of a real federation, samples, evaluates. Sites may be lost in any phase: --dropout.\n"
     "Example: fedkt simulate --data eurosat.tar --holdout 0.2 --sites 20 --partition dirichlet:0.1 --epsilon 10,1 "
     "--delta 1e-5 --out run/",
     cli_simulate},
    {"audit", "try to break a release: a lower bound on epsilon by attack", "--epsilon E --delta D",
     "Releases two worst-case neighbouring datasets many times and distinguishes them with the optimal test.\n"
     "A lower bound above epsilon would prove a bug. It attacks the central mechanism, as 'fedkt release' runs it,\n"
     "and the noise shares of a federation, and compares the noise of every number with what is claimed of it.\n"
     "Example: fedkt audit --epsilon 1 --delta 1e-5",
     cli_audit},
    {"experiment", "tables and figures of the paper, ours and its own mechanism side by side",
     "NAME... --data DIR --out FOLDER [--quick] [--seeds S,S] | --list | report FOLDER...",
     "Each experiment is a list of cells (set, arm, position, seed); each cell is a file, so a run that is stopped\n"
     "or killed loses the one it was working on, and --resume goes on to the same bytes. From the cells come tables\n"
     "(CSV, JSON), plots (SVG) and report.html with the paper's published figures beside ours. A cell whose data or\n"
     "weights are missing is named and skipped, and the others go on. Exit 0: all cells are there; 3: some were\n"
     "skipped. report makes the tables again from folders; --fill puts them into a Markdown file. All randomness\n"
     "comes from --seeds, noise included: nothing of it is private.\n"
     "Example: fedkt experiment epsilon --quick --out try/\n"
     "Example: fedkt experiment osfl-20 --data sets/ --seeds 0,1,2 --out osfl/",
     cli_experiment},
    {"serve", "the server of a federation", "--task task.json --state DIR --listen ADDR:PORT [...]",
     "Gathers the sites of a signed task over HTTPS, runs rounds until one gives a release, writes release,\n"
     "certificate, synthetic images and transparency log, and waits until the sites have fetched them. After any\n"
     "interruption the same command continues. A web page shows the progress. Exit 0: released, or stopped by\n"
     "SIGTERM; 3: the task was given up, now or before; another start cannot change that.\n"
     "With a folder of tasks, one for each cohort ('fedkt task new'), it serves all cohorts and adds their releases\n"
     "up.\n"
     "Example: fedkt serve --task task.json --state state/ --listen 0.0.0.0:8443 --key operator.key",
     cli_serve},
    {"join", "one site's part in a federation", "--task task.json --key site.key --data PATH [...]",
     "Computes this site's moments, connects to the server, takes part in rounds until one gives a release, fetches\n"
     "it and checks it. Sums leave under masks and with noise; the ledger is debited before. After any interruption\n"
     "the same command continues. Exit 0: there is a release, it could be checked, and this site is in it; 3: the\n"
     "task is over without this site (given up, expired, or released without it), and another start cannot change\n"
     "that. A proxy that https_proxy names is used; it sees the server's address and encrypted bytes.\n"
     "Example: fedkt join --task task.json --key site.key --data images/ --operator operator.key.pub --dry-run\n"
     "Example: fedkt join --task task.json --key site.key --data images/ --operator operator.key.pub --out result/",
     cli_join},
    {"verify", "check what a server published, without trusting it",
     "--folder DIR [--task FILE] [--receipt FILE] [...]",
     "Reads the transparency log line by line, checks the operator's and the sites' signatures, and derives the\n"
     "certificate from the release. With the receipt that 'fedkt join' kept, a server that rewrote its log\n"
     "afterwards is detected too.\n"
     "Example: fedkt verify --folder public/ --task task.json --receipt receipt.json",
     cli_verify},
    {"bench", "speed compared with a stated bound",
     "[codec | moments | secagg | privacy | cost | train | federation | guided]",
     "Checks the result first, then measures: best of ten or more runs. secagg runs whole rounds, a process for each\n"
     "core, and takes half a minute for a thousand sites. On request only: cost, images through codec, statistics and\n"
     "back; train, steps of SGD; federation, a real server and its sites over TLS; guided, guided images by the fast\n"
     "twin and by gradient.\n"
     "Example: fedkt bench moments --json\n"
     "Example: fedkt bench cost --codec dct --images 1000 --classes 10\n"
     "Example: fedkt bench train --network resnet18 --sizes 32",
     cli_bench},
    {"help", "explain a verb; man pages and completions", "[VERB [WORD]] [--man DIR] [--completion SHELL]",
     "Without a verb it lists all verbs. 'fedkt help VERB' is 'fedkt VERB --help'. Man pages and completions are made\n"
     "from the same tables; an installed fedkt has them in place.\n"
     "Example: fedkt help task new\n"
     "Example: fedkt help --completion bash > ~/.local/share/bash-completion/completions/fedkt",
     help},
};

static int help(const struct cli_command *self, int argc, char **argv)
{
    return cli_help_verb(commands, CLI_COUNT(commands), self, argc, argv);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        cli_overview(stderr, commands, CLI_COUNT(commands));
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        cli_overview(stdout, commands, CLI_COUNT(commands));
        return 0;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("fedkt %s\n", fkt_version());
        return 0;
    }
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (!strcmp(argv[1], commands[i].name)) {
            const fkt_status st = cli_launch_begin(commands[i].name);
            return st == FKT_OK ? commands[i].run(&commands[i], argc - 2, argv + 2) : cli_fail(st);
        }
    return cli_fail(cli_unknown_verb(commands, CLI_COUNT(commands), argv[1]));
}

int main(int argc, char **argv)
{
    int code;
    cli_startup(argv);
    cli_log_begin(argc, argv);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit (ulimit -f) fails as on a full disk */
    code = run(argc, argv);
    cli_launch_end(code);
    return code ? code : cli_fail(cli_flush()); /* results that could not be written are a failure */
}
