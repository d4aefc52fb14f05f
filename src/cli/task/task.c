/* SPDX-License-Identifier: Apache-2.0 */
/* task.c - `fedkt task WORD`: calls the word's function; sign and verify are in this file. */
#include "cli/task/task.h"

#include "cli/core/help.h"
#include "cli/task/public_key.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

struct asked {
    const char *task, *key, *operator_key;
    struct cli_run run;
};

fkt_status cli_task_sign_with(struct fkt_task *t, const char *key_path)
{
    struct fkt_key key;
    fkt_status st = fkt_key_load(&key, key_path);
    if (st == FKT_OK) st = fkt_task_sign(t, key.secret);
    fkt_key_clear(&key);
    return st;
}

/* ---- sign ---- */

static int no_pin_yet(const struct fkt_task *t) { return t->service.address[0] && !t->service.pin[0]; }

static fkt_status print_signature(const struct asked *a, const struct fkt_task *t)
{
    char key[2 * FKT_SA_KEY + 1], print[FKT_FINGERPRINT];
    fkt_hex(key, t->signature.key, sizeof t->signature.key);
    fkt_fingerprint(print, t->signature.key);
    if (a->run.json)
        return cli_print_json(json_pack("{s:s s:s s:s s:s s:b s:s?}", "task", a->task, "sha256", t->sha256, "operator",
                                        key, "fingerprint", print, "signature_right", 1, "pin",
                                        t->service.pin[0] ? t->service.pin : NULL));
    printf("task %s\nhash %s\nsigned by %s\nfingerprint %s\n", a->task, t->sha256, key, print);
    if (t->service.address[0])
        printf("pin %s\n", t->service.pin[0] ? t->service.pin : "no pin yet: it cannot be joined");
    return FKT_OK;
}

static fkt_status run_sign(const struct asked *a)
{
    struct fkt_task t = {0};
    uint8_t before[FKT_SA_KEY];
    char print[FKT_FINGERPRINT];
    int other;
    fkt_status st;
    FKT_TRY(fkt_task_load_into(&t, a->task));
    memcpy(before, t.signature.key, sizeof before);
    other = t.signature.there;
    FKT_TRY(cli_task_sign_with(&t, a->key));
    other = other && memcmp(before, t.signature.key, sizeof before) != 0;
    if (other && !a->run.force) {
        fkt_fingerprint(print, before);
        st = fkt_fail_hint(FKT_E_EXISTS, "to replace that signature, give --force; sites will see another operator",
                           "'%s' is already signed with another key: %s", a->task, print);
    }
    FKT_TRY(st);
    FKT_TRY(fkt_task_save(&t, a->task, 1));
    if (no_pin_yet(&t) && !a->run.quiet)
        fprintf(stderr, "fedkt: the task has no pin yet: sites cannot join until 'fedkt serve --key' has put it in and "
                        "signed again\n");
    if (other && !a->run.quiet) fprintf(stderr, "fedkt: the signature of another key was replaced\n");
    FKT_TRY(print_signature(a, &t));
out:
    fkt_task_clear(&t);
    return st;
}

static int sign(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task; the signature is written into it"),
        CLI_OPT_TEXT("key", &a.key, "FILE", 1, "the operator's key, made by 'fedkt keygen'"),
        CLI_TALK_ROWS(a.run),
        CLI_OPT_FLAG("force", &a.run.force, "replace the signature of another key"),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    cli_keep_secrets();
    return code >= 0 ? code : cli_misuse(self, run_sign(&a));
}

/* ---- verify ---- */

static fkt_status run_verify(const struct asked *a)
{
    struct fkt_task t = {0};
    uint8_t key[FKT_SA_KEY];
    fkt_status st;
    if (a->operator_key) FKT_TRY(cli_public_key("operator", a->operator_key, key));
    FKT_TRY(fkt_task_load_into(&t, a->task));
    FKT_TRY(fkt_task_verify(&t, a->operator_key ? key : NULL));
    if (!a->operator_key && !a->run.quiet)
        fprintf(stderr, "fedkt: the signer's key was not compared with the operator's: give that with --operator\n");
    FKT_TRY(print_signature(a, &t));
out:
    fkt_task_clear(&t);
    return st;
}

static int verify(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_OPT_TEXT("operator", &a.operator_key, "KEY", 0,
                     "the operator's public key, obtained from another source than the task: 64 hexadecimal "
                     "digits, or the file that ends in .pub"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_verify(&a));
}

/* ---- the word ---- */

static const struct cli_command words[] = {
    {"task new", "write the task that all sites must agree on",
     "(--classes A,B,... | --data PATH) --epsilon E --delta D --out task.json [...]",
     "Takes the class list from --classes (or a dataset), and codec, calibration, coordinates and privacy from\n"
     "options. The task's hash binds them: moments made for one task cannot be released under another. With --roster\n"
     "it is for a federation, whose sites add up under masks; with --server they do so through a server.\n"
     "Example: fedkt task new --classes cat,dog --epsilon 10 --delta 1e-5 --out task.json\n"
     "Example: fedkt task new --classes cat,dog --epsilon 10 --delta 1e-5 --roster roster.txt --records 1000 \\\n"
     "             --server https://fedkt.example.org:8443 --key operator.key --out task.json",
     cli_task_new},
    {"task show", "explain a task in words", "--task task.json",
     "Prints what is computed, its privacy budget, the sites, the server, the expiry and the signer.\n"
     "Read it before you join.\n"
     "Example: fedkt task show --task task.json",
     cli_task_show},
    {"task sign", "sign a task with the operator's key", "--task task.json --key operator.key",
     "The signature does not change the task's hash. A task that is changed afterwards needs\n"
     "another one.\n"
     "Example: fedkt task sign --task task.json --key operator.key",
     sign},
    {"task verify", "check a task's signature", "--task task.json [--operator KEY]",
     "Exit 0 when the signature is valid, 1 when it is not or is missing. Without --operator anybody may have made\n"
     "it: get the operator's key, or its fingerprint, by telephone.\n"
     "Example: fedkt task verify --task task.json --operator operator.key.pub",
     verify},
};

int cli_task(const struct cli_command *self, int argc, char **argv)
{
    const size_t head = sizeof "task " - 1;
    if (argc > 0 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))) {
        cli_help_words(self, words, CLI_COUNT(words));
        return 0;
    }
    for (size_t i = 0; argc > 0 && i < CLI_COUNT(words); i++)
        if (!strcmp(argv[0], words[i].name + head)) return words[i].run(&words[i], argc - 1, argv + 1);
    if (argc > 0 && argv[0][0] != '-') return cli_misuse(self, cli_unknown_word(self, argv[0]));
    return cli_misuse(self, fkt_fail_hint(FKT_E_ARG, "a task is made with 'fedkt task new'",
                                          "task needs a word: new, show, sign or verify"));
}
