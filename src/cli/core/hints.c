/* SPDX-License-Identifier: Apache-2.0 */
/* hints.c - the library's hint codes (fedkt/status.h) in terms of this program's options and verbs. The library does
 * not know them: a program that embeds it has others. A new code is one row here; tools/check_messages.py reports one
 * that has no row. */
#include "cli/core/hints.h"

#include <stdio.h>
#include <string.h>

/* Servers, receipts, keys and consent. */
static const char *federation_phrase(enum fkt_hint code)
{
    switch (code) {
    case FKT_HINT_SERVER_CHOICES:
        return "start it with the same --per-class and --format as the first time, or without --per-class";
    case FKT_HINT_SERVER_FOLDER: return "name another folder with --out, or give the --state folder that it belongs to";
    case FKT_HINT_SERVER_NEW_FOLDER: return "name a new folder with --out, or move what is in this one away";
    case FKT_HINT_RECEIPT_FILE:
        return "the receipt is 'receipt.json' in the folder that 'fedkt join' was given with --out; without one, leave "
               "--receipt out";
    case FKT_HINT_OTHER_RECEIPT:
        return "first check that the receipt is the right one: it is in the folder that 'fedkt join' was given with "
               "--out";
    case FKT_HINT_OTHER_TASK:
        return "first check that the task file and the folder are the right ones ('fedkt task show' prints the hash); "
               "if both are of the same study, do not use the release";
    case FKT_HINT_KEY_FILE: return "give a file made by 'fedkt keygen'";
    case FKT_HINT_SITE_KEY_FILE: return "give the file that ends in .pub, made by 'fedkt keygen'";
    case FKT_HINT_ROSTER_FILE: return "the public part of a site's key is put on a roster with 'fedkt enroll'";
    case FKT_HINT_ENROLL_MORE: return "enrol further sites with 'fedkt enroll'";
    case FKT_HINT_ACCEPT_WEAK: return "{hint}: --accept-weak-promise";
    case FKT_HINT_ACCEPT_SEED: return "for a rehearsal with images that are not private, say --accept-insecure-seed";
    case FKT_HINT_LIMIT: return "{hint} (--limit)";
    case FKT_HINT_OPERATOR_KEY:
        return "give the operator's key with --key, so that the task can be signed with the pin";
    case FKT_HINT_SERVER_KEY:
        return "give its certificate with --certificate and --private-key, or the --state folder that holds it";
    case FKT_HINT_STATE_FOLDER: return "name a folder with --state";
    case FKT_HINT_SAME_STATE: return "run the same command again to continue";
    case FKT_HINT_NAME_FILE: return "give --{1}";
    default: return NULL;
    }
}

const char *cli_hint_phrase(enum fkt_hint code)
{
    switch (code) {
    case FKT_HINT_NONE: return NULL;
    case FKT_HINT_EXISTS: return "give --force to replace it";
    case FKT_HINT_EXISTS_FOLDER: return "give --force to replace it, or name another folder";
    case FKT_HINT_FOREIGN_FOLDER: return "name a new folder; --force replaces only folders that fedkt made";
    case FKT_HINT_SKIP_BAD: return "repair or remove it, or give --skip-bad to leave out files that cannot be read";
    case FKT_HINT_SMALLER_SIZE: return "{hint}: give a smaller --size";
    case FKT_HINT_FEWER_THREADS: return "use fewer --threads, or a smaller --size";
    case FKT_HINT_CACHE: return "set FEDKT_CACHE to a folder, or give --weights PATH";
    case FKT_HINT_WEIGHTS_PATH: return "give --weights PATH: the name stands for any weights of its family";
    case FKT_HINT_WEIGHTS_KIND: return "--weights takes a safetensors file, or a folder with the published files";
    case FKT_HINT_WEIGHTS_VERIFY: return "fetch them again, or check them with 'fedkt codec verify {1}'";
    case FKT_HINT_PULL: return "fetch them with 'fedkt codec pull {1}', or give --weights PATH, or {hint}";
    case FKT_HINT_PULL_AGAIN: return "fetch the weights again: fedkt codec pull {1} --force";
    case FKT_HINT_OTHER_CODEC: return "{hint}: see 'fedkt codec list'";
    case FKT_HINT_CALIBRATE: return "{hint}: fedkt codec calibrate {1} --size {2} --public SET --out FILE";
    case FKT_HINT_CALIBRATE_AGAIN: return "{hint}: fedkt codec calibrate";
    case FKT_HINT_CALIBRATION_FILE: return "give a file made by 'fedkt codec calibrate'";
    case FKT_HINT_HUB_AUTHORITY: return "{hint} with --cacert FILE";
    case FKT_HINT_DEVICE_CPU: return "{hint} (--device cpu)";
    case FKT_HINT_DEVICE_BUILD:
        return "build fedkt with CUDA (docs/gpu.md), or run the networks on the processor with --device cpu";
    case FKT_HINT_TASK_FILE:
        return "give the file made by 'fedkt task new', unchanged: all sites must hold the same one";
    case FKT_HINT_TASK_CALIBRATION: return "{hint} and give it with --calibration";
    case FKT_HINT_GUIDE_CALIBRATION:
        return "ask for the guide's calibration file, and give it with --guide-calibration";
    case FKT_HINT_GUIDE_WEIGHTS: return "give --guide-weights PATH: the name stands for any weights of its family";
    case FKT_HINT_GUIDE_WEIGHTS_KIND:
        return "--guide-weights takes a safetensors file, or a folder with the published files";
    case FKT_HINT_GUIDE_PULL: return "fetch them with 'fedkt codec pull {1}', or give --guide-weights PATH, or {hint}";
    case FKT_HINT_CALIBRATION_ALONE:
        return "give the task's calibration file with --calibration: then nothing else is needed";
    case FKT_HINT_CALIBRATION_BUILT_IN: return "leave --calibration out: the task was made with the codec's own";
    case FKT_HINT_TASK_RECORDS: return "make the task with a larger --records";
    case FKT_HINT_TASK_CENTRAL: return "use a task that was made without --roster, or with --noise central";
    case FKT_HINT_TASK_ROSTER: return "make a task with --roster";
    case FKT_HINT_TASK_SERVER: return "the operator makes one with 'fedkt task new --server URL'";
    case FKT_HINT_TASK_FEDERATION: return "make a task with --roster and --server";
    case FKT_HINT_TASK_SIGN: return "the operator signs it with 'fedkt task sign'";
    case FKT_HINT_TASK_EARLY:
        return "the operator must start 'fedkt serve' with --key, which adds the server's pin to the task and signs "
               "it, and send you that task";
    case FKT_HINT_LATENTS_FILE: return "give a file made by 'fedkt encode', or make it again";
    case FKT_HINT_MOMENTS_FILE: return "give a file made by 'fedkt moments', or make it again";
    case FKT_HINT_RELEASE_FILE: return "give a file made by 'fedkt release' or 'fedkt simulate'";
    case FKT_HINT_BUDGET: return "{hint}: --budget-epsilon {1} or above, with --budget-delta {2}";
    case FKT_HINT_GUIDED_STEPS: return "{hint}: --guided 25, or leave the guide aside with --guided none";
    case FKT_HINT_GUIDED_PLAIN: return "leave the guide aside with --guided none";
    case FKT_HINT_HEADS: return "this release has heads alone: fedkt heads --release FILE";
    case FKT_HINT_PARTIAL: return "repeat that run with its options, or give --force to begin again";
    default: return federation_phrase(code);
    }
}

/* The replacement of a placeholder such as "{1}" at the start of `s`, and the placeholder's length; NULL: none. */
static const char *value_of(const char *s, size_t *mark)
{
    const unsigned i = (unsigned)(s[1] - '1');
    if (!strncmp(s, "{hint}", 6)) {
        *mark = 6;
        return fkt_error_hint();
    }
    if (s[0] != '{' || i > 1 || s[2] != '}') return NULL;
    *mark = 3;
    return fkt_error_hint_value(i)[0] ? fkt_error_hint_value(i) : "NAME";
}

void cli_hint(char *out, size_t cap)
{
    const char *phrase = cli_hint_phrase(fkt_error_hint_code()), *value;
    size_t at = 0, mark = 0;
    if (!phrase) phrase = "{hint}";
    while (*phrase && at + 1 < cap) {
        value = value_of(phrase, &mark);
        if (!value) {
            out[at++] = *phrase++;
            continue;
        }
        at += (size_t)snprintf(out + at, cap - at, "%s", value);
        phrase += mark;
    }
    out[at < cap ? at : cap - 1] = '\0';
}
