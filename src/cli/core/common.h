/* SPDX-License-Identifier: Apache-2.0 */
/* common.h - options that several verbs share, as rows for their tables, and the functions that use them. */
#ifndef FKT_CLI_CORE_COMMON_H
#define FKT_CLI_CORE_COMMON_H

#include "fedkt/fedkt.h"

#include "cli/core/codec_options.h"
#include "cli/core/device.h"
#include "cli/core/log.h"
#include "cli/core/options.h"
#include "cli/core/progress.h"
#include "pipeline/release.h"

#include <jansson.h>

/* Where images come from. */
struct cli_data {
    const char *path, *split;
    uint64_t limit, bits;
    int skip_bad;
    int unlabelled;      /* set by the verb: images need no class folders */
    int limit_by_number; /* set by the verb: for a sum under `replace` without a task */
    int fit, fit_given;  /* from CLI_FIT_ROW, or set by the verb; a task's setting takes precedence */
};
#define CLI_FIT_HELP "how an image is made square: cut out its centre, add black margins, or stretch it"
#define CLI_FIT_ROW(d)                                                                                                 \
    CLI_OPT_CHOICE_GIVEN("fit", &(d).fit, fkt_fit_parse, "crop, pad or stretch", CLI_FIT_HELP, &(d).fit_given)
#define CLI_BITS_ROW(d)                                                                                                \
    CLI_OPT_WHOLE("bits", &(d).bits, "N", 0,                                                                           \
                  "depth of the samples in 16-bit PNG and TIFF files, 9 to 16 (default: 16; images that look like "    \
                  "less are refused)")
#define CLI_DATA_ROWS(d, req)                                                                                          \
    CLI_OPT_HEAD("images in"),                                                                                         \
        CLI_OPT_TEXT("data", &(d).path, "PATH", req,                                                                   \
                     "image set: ImageFolder, tar of one, WebDataset tar, CIFAR binary, MNIST idx, MedMNIST .npz, or " \
                     "demo:train"),                                                                                    \
        CLI_OPT_TEXT("split", &(d).split, "NAME", 0, "train, test or val, where the set has splits (default: train)"), \
        CLI_OPT_WHOLE("limit", &(d).limit, "N", 0, "use N images in all, evenly over the classes, by a hash of each"), \
        CLI_OPT_FLAG("skip-bad", &(d).skip_bad,                                                                        \
                     "leave out images that cannot be read, count and name them (default: stop)"),                     \
        CLI_BITS_ROW(d)

/* Where the encodings of images are kept; a row for the tables of verbs that encode, after CLI_DATA_ROWS. */
#define CLI_ENCODINGS_ROW(path)                                                                                        \
    CLI_OPT_TEXT("encodings", &(path), "DIR", 0,                                                                       \
                 "keep encodings in this folder: no image is encoded twice, even after a stop or for another "         \
                 "task; as PRIVATE as the images (default: nothing is kept)")

struct cli_privacy {
    const char *epsilon, *split; /* epsilon may be a list for verbs that take one */
    double delta;
    int adjacency, mechanism;
    int accept_weak; /* of CLI_WEAK_ROW */
};
#define CLI_BUDGET_SPLIT                                                                                               \
    CLI_NUMBER(FKT_BUDGET_SPLIT_COUNT) "," CLI_NUMBER(FKT_BUDGET_SPLIT_SUM) "," CLI_NUMBER(FKT_BUDGET_SPLIT_MOMENT)
#define CLI_BUDGET_SPLIT_GUIDE                                                                                         \
    CLI_NUMBER(FKT_BUDGET_SPLIT_COUNT)                                                                                 \
    "," CLI_NUMBER(FKT_BUDGET_SPLIT_CODEC_SUM) "," CLI_NUMBER(FKT_BUDGET_SPLIT_CODEC_MOMENT) "," CLI_NUMBER(           \
        FKT_BUDGET_SPLIT_GUIDE_SUM) "," CLI_NUMBER(FKT_BUDGET_SPLIT_GUIDE_MOMENT)
const char *cli_adjacencies(void); /* "add-remove, replace or ..." */
#define CLI_PRIVACY_ROWS(p, req)                                                                                       \
    CLI_OPT_HEAD("privacy"),                                                                                           \
        CLI_OPT_TEXT("epsilon", &(p).epsilon, "E", req, "privacy loss of the whole release; smaller is more private"), \
        CLI_OPT_REAL(                                                                                                  \
            "delta", &(p).delta, "D", req,                                                                             \
            "additive slack: probabilities differ by a factor e^epsilon plus delta; choose it well below 1/records"),  \
        CLI_OPT_CHOICE("adjacency", &(p).adjacency, fkt_adjacency_parse, cli_adjacencies(),                            \
                       "what counts as a change of one record"),                                                       \
        CLI_OPT_CHOICE("mechanism", &(p).mechanism, fkt_mechanism_parse, "joint or paper", "how noise is calibrated"), \
        CLI_OPT_TEXT("budget-split", &(p).split, "N,S,M[,S,M]", 0,                                                     \
                     "budget of count, sum, second moment (default: " CLI_BUDGET_SPLIT                                 \
                     "); with codec and guide sum and second moment of each (default: " CLI_BUDGET_SPLIT_GUIDE ")")

/* For every verb that makes a privacy promise or contributes to one (privacy/promise.c defines weak promises). */
#define CLI_WEAK_ROW(to)                                                                                               \
    CLI_OPT_FLAG("accept-weak-promise", &(to),                                                                         \
                 "go on with epsilon above 20 (of one release, or of all of its dataset together), or delta above "    \
                 "0.001 or 1/(bound on records): all output is marked 'weak' and is not called private")

struct cli_run {
    int json, quiet, force, log;
    uint64_t threads;
};
#define CLI_TALK_ROWS(r)                                                                                               \
    CLI_OPT_HEAD("output"), CLI_OPT_FLAG("json", &(r).json, "results as JSON on stdout"),                              \
        CLI_OPT_FLAG("quiet", &(r).quiet, "print results only, no progress and no remarks"),                           \
        CLI_OPT_CHOICE("log", &(r).log, cli_log_parse, "text or jsonl",                                                \
                       "lines on stderr: text, or one JSON object per line")
#define CLI_RUN_ROWS(r)                                                                                                \
    CLI_TALK_ROWS(r), CLI_OPT_FLAG("force", &(r).force, "replace an output that exists"),                              \
        CLI_OPT_WHOLE("threads", &(r).threads, "N", 0, "worker threads (default: all cores)")

#define CLI_COUNT(table) (sizeof(table) / sizeof *(table))

/* Every verb calls it first: parses, prints help, rejects stray words. Returns -1 to continue, else the exit code. */
int cli_begin(const struct cli_command *c, const struct cli_option *table, size_t n, int argc, char **argv);

/* Options of fkt_dataset_open; the caller adds the class list. */
struct fkt_dataset_options cli_data_options(const struct cli_data *d);
FKT_MUST_USE fkt_status cli_open_data(struct fkt_dataset **out, const struct cli_data *d,
                                      const struct fkt_task *task /* may be NULL */, const struct cli_run *r);
/* On stderr, unless --quiet: classes with their counts, the files that were skipped, and images that are one folder
 * too deep. cli_open_data calls it; a caller of fkt_dataset_open calls it afterwards. */
FKT_MUST_USE fkt_status cli_print_dataset(const struct fkt_dataset *ds, const char *path, const struct cli_run *r);
FKT_MUST_USE fkt_status cli_codec_spec(const struct cli_codec *c, struct fkt_codec_spec *out); /* borrows c->name */
/* folder NULL: *out is NULL. */
FKT_MUST_USE fkt_status cli_open_encodings(struct fkt_encodings **out, const char *folder);
/* Prints how many were found, or, when st is a stop, what is kept; returns st. */
fkt_status cli_close_encodings(struct fkt_encodings *e, const char *folder, const struct cli_run *r, fkt_status st);
/* "cat, dog" -> a list without the blanks around commas; sets *names (pointers into *text) and *text. */
FKT_MUST_USE fkt_status cli_split(const char *list, char **text, const char ***names, size_t *n);
void cli_codec_settings(const struct cli_weights *m, struct fkt_codec_settings *out); /* borrows m->weights */
/* The command line that makes a calibration for this codec. */
void cli_calibrate_command(char *out, size_t cap, const struct cli_codec *c, const struct fkt_codec *codec);
/* "f32", "bf16", "bf16 (chosen by --dtype auto)" */
const char *cli_dtype_words(const struct cli_weights *m, const struct fkt_codec *c);
/* On stderr: with --dtype auto the faster type when it was measured in this run; the card, where it runs on one. NULL:
 * nothing. */
void cli_print_dtype(const struct cli_weights *m, const struct fkt_codec *c, const struct cli_run *r);
/* settings NULL: the verb starts from latents or moments, and opens the codec only for its built-in calibration. */
FKT_MUST_USE fkt_status cli_open_pipeline(struct fkt_pipeline **pipeline, const char *task_path,
                                          const struct fkt_part_files *files, const struct cli_weights *settings);
FKT_MUST_USE fkt_status cli_privacy_spec(const struct cli_privacy *p, double epsilon, struct fkt_privacy_spec *out);
/* FKT_E_ARG with a hint when the promise is weak for every number of records and was not accepted; `what` names its
 * source: "promise", "total budget". */
FKT_MUST_USE fkt_status cli_accept_promise(const char *what, double epsilon, double delta, int accepted);
/* The same for a task that was made elsewhere: FKT_E_MISMATCH. */
FKT_MUST_USE fkt_status cli_accept_task(const struct fkt_task *t, int accepted);
/* It has no seed and its promise is not weak. */
int cli_task_is_private(const struct fkt_task *t);
void cli_print_weak(const struct fkt_task *t);           /* a line on stdout when its promise is weak */
void cli_mark_weak(json_t *j, const struct fkt_task *t); /* "promise": "weak" then; j may be NULL */
/* The same for a release, which other releases of the same dataset can also make weak. */
void cli_print_weak_release(const struct fkt_release *r);
void cli_mark_weak_release(json_t *j, const struct fkt_release *r);
/* "10,1" -> out (at most cap); errors name the option. */
FKT_MUST_USE fkt_status cli_reals(const char *option, const char *list, double *out, size_t cap, size_t *n);
FKT_MUST_USE fkt_status cli_check_promise(const struct fkt_task *t, int accept_weak); /* FKT_E_ARG with a hint */
/* "0.1" or "3" -> how many of `sites`: a fraction below 1 (rounded up), or a number. Errors name the option. */
FKT_MUST_USE fkt_status cli_share_of(const char *option, const char *text, uint32_t sites, uint32_t *out);
/* --dropped; NULL: fkt_federation_usual_dropped. */
FKT_MUST_USE fkt_status cli_dropped_of(const char *text, uint32_t sites, uint32_t corrupt, uint32_t *out);
void cli_print_no_loss(uint32_t dropped, const struct cli_run *r);                          /* a remark when it is 0 */
FKT_MUST_USE fkt_status cli_class_names(const struct fkt_dataset *ds, const char ***names); /* gives the array */

/* FKT_E_ARG when writing `out` would overwrite `in` (NULL is fine): the same file, a folder that holds it, or an
 * existing file inside an input folder. */
FKT_MUST_USE fkt_status cli_not_an_input(const char *out, const char *in); /* of --out */
FKT_MUST_USE fkt_status cli_output_not_an_input(const char *option, const char *out, const char *in);

/* A path as a JSON string, bytes that are not UTF-8 as '?'; null for NULL. The caller owns it; NULL: no memory. */
json_t *cli_path_json(const char *path);
/* Prints (and releases) a result: JSON text with --json. */
FKT_MUST_USE fkt_status cli_print_json(json_t *j);
FKT_MUST_USE fkt_status cli_flush(void); /* FKT_E_IO when the printed text could not be written */
void cli_print_skipped(const struct fkt_skipped *s);
/* The remark that --limit weakens the promise for the whole set; NULL when it was not given or does not. */
const char *cli_limit_remark(const struct cli_data *d, enum fkt_adjacency adjacency);
void cli_print_limit(const struct cli_data *d, enum fkt_adjacency adjacency); /* the same on stderr */
/* Prints how many records are exact copies of others, if any, and how they were counted. */
void cli_print_copies(const struct fkt_records *r, enum fkt_adjacency adjacency);
/* After a ledger's refusal: adds the hint how to name the records' dataset, or how to accept a weak promise. spent:
 * zeros, or what the ledger set. Returns st. */
fkt_status cli_hint_charge(fkt_status st, const struct fkt_ledger_charge *charge, const struct fkt_ledger_spent *spent,
                           const char *ledger);
FKT_MUST_USE fkt_status cli_threads(uint64_t asked, unsigned *out);

#endif
