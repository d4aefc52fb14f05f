/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - `fedkt codec WORD [NAME]`: parses the options and calls the word's function. */
#include "cli/codec/codec.h"
#include "cli/core/help.h"
#include "cli/core/verbs.h"

#include <string.h>

static const struct word {
    const char *name;
    fkt_status (*run)(const struct codec_asked *);
    int takes_name; /* a codec may follow: `codec pull taesd` */
} words[] = {
    {"list", cli_codec_list, 0},     {"info", cli_codec_info, 1},           {"pull", cli_codec_pull, 1},
    {"verify", cli_codec_verify, 1}, {"calibrate", cli_codec_calibrate, 1}, {"roundtrip", cli_codec_roundtrip, 1},
};

static const struct word *find(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(words); i++)
        if (!strcmp(words[i].name, name)) return &words[i];
    return NULL;
}

int cli_codec(const struct cli_command *self, int argc, char **argv)
{
    struct codec_asked a = {.codec = {.name = FKT_PLAIN_CODEC, .size = 32}};
    struct cli_option table[] = {
        CLI_OPT_HEAD("pull"),
        CLI_OPT_TEXT("hub", &a.hub, "URL", 0, "address of the model hub (default: $HF_ENDPOINT, else the public hub)"),
        CLI_OPT_TEXT("revision", &a.revision, "R", 0, "branch, tag or commit (default: the manifest's)"),
        CLI_OPT_TEXT("cacert", &a.authority, "FILE", 0,
                     "certificate authority of your own hub, PEM (default: $FEDKT_CACERT, else the system's)"),
        CLI_OPT_WHOLE("stall", &a.stall, "SECONDS", 0, "give up after so many seconds without data (default: 30)"),
        CLI_OPT_HEAD("calibrate"),
        CLI_OPT_TEXT("public", &a.public_set, "PATH", 0,
                     "a PUBLIC image set, never private data: the calibration is published"),
        CLI_OPT_TEXT("source", &a.source, "TEXT", 0, "the set's name in the calibration (default: its file name)"),
        CLI_OPT_WHOLE("top", &a.top, "K", 0, "keep the K strongest directions (default: all)"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 0, "file for the calibration"),
        CLI_OPT_HEAD("roundtrip"),
        CLI_OPT_TEXT("image", &a.image, "FILE", 0, "before/after sheet as PNG"),
        CLI_DATA_ROWS(a.data, 0),
        CLI_CODEC_ROWS(a.codec, " or a file (default: " FKT_PLAIN_CODEC ")"),
        CLI_DEVICE_ROW(a.codec.settings.device),
        CLI_RUN_ROWS(a.run),
    };
    const struct word *word = argc > 0 ? find(argv[0]) : NULL;
    int skip = word != NULL, code;
    if (argc > 0 && !word && argv[0][0] != '-') return cli_misuse(self, cli_unknown_word(self, argv[0]));
    for (size_t i = 0; i < CLI_COUNT(table); i++) {
        if (table[i].value == &a.codec.name) table[i].given = &a.codec_given;
        if (table[i].value == &a.codec.size) table[i].given = &a.size_given;
    }
    if (word && word->takes_name && argc > 1 && argv[1][0] != '-') {
        a.codec.name = argv[1];
        skip = 2;
    }
    code = cli_begin(self, table, CLI_COUNT(table), argc - skip, argv + skip);
    if (code >= 0) return code;
    if (!word)
        return cli_misuse(self,
                          fkt_fail(FKT_E_ARG, "codec needs a word: list, info, pull, verify, calibrate or roundtrip"));
    if (skip == 2 && a.codec_given)
        return cli_misuse(self, fkt_fail(FKT_E_ARG, "the codec is named twice, after %s and by --codec", word->name));
    a.codec_given |= skip == 2;
    return cli_misuse(self, word->run(&a));
}
