/* SPDX-License-Identifier: Apache-2.0 */
/* help_man.c - man pages from the option tables: fedkt(1), fedkt-VERB(1), and one for each word that has its own
 * table, such as fedkt-task-new(1). It uses the macros of man(7), which groff and mandoc both support. Every text is
 * escaped: a hyphen is written \-, so that an option can be copied from the page, and no line begins with a control
 * character. */
#include "cli/core/help.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/core/common.h"

#include <ctype.h>
#include <string.h>

struct pages {
    const struct cli_command *commands;
    size_t n;
    const char *folder;
    fkt_status st; /* the first failure */
};

static void add_part(struct fkt_text *t, const char *s, size_t n)
{
    for (const char *end = s + n; s < end; s++) {
        if (*s == '\\') fkt_text_add(t, "\\e");
        else if (*s == '-') fkt_text_add(t, "\\-");
        else if ((*s == '.' || *s == '\'') && t->len && t->s[t->len - 1] == '\n') fkt_text_addf(t, "\\&%c", *s);
        else fkt_text_addn(t, s, 1);
    }
}

static void add(struct fkt_text *t, const char *s) { add_part(t, s, strlen(s)); }

/* "task new" -> "fedkt-task-new" */
static void page_name(char *out, size_t cap, const char *verb)
{
    snprintf(out, cap, "fedkt%s%s", *verb ? "-" : "", verb);
    for (char *s = out; *s; s++)
        if (*s == ' ') *s = '-';
}

static void head(struct fkt_text *t, const char *verb, const char *summary)
{
    char name[64];
    page_name(name, sizeof name, verb);
    fkt_text_add(t, ".TH ");
    for (const char *s = name; *s; s++) {
        const char big = (char)toupper((unsigned char)*s);
        add_part(t, &big, 1);
    }
    fkt_text_addf(t, " 1 \"\" \"fedkt %s\" \"User Commands\"\n.SH NAME\n", fkt_version());
    add(t, name);
    fkt_text_add(t, " \\- ");
    add(t, summary);
    fkt_text_add(t, "\n.SH SYNOPSIS\n.B ");
    add(t, "fedkt");
    if (*verb) {
        fkt_text_add(t, " ");
        add(t, verb);
    }
    fkt_text_add(t, "\n");
}

/* Lines of `teaches`: those after "Example: " are commands, and a backslash continues them. */
static void describe(struct fkt_text *t, const char *teaches, int examples)
{
    int carried = 0;
    for (const char *line = teaches; *line;) {
        const size_t n = strcspn(line, "\n"), mark = sizeof "Example: " - 1;
        const int begins = !strncmp(line, "Example: ", mark);
        if ((begins || carried) == examples) {
            add_part(t, line + (begins ? mark : 0), n - (begins ? mark : 0));
            fkt_text_add(t, "\n");
        }
        carried = (begins || carried) && n && line[n - 1] == '\\';
        line += n + (line[n] == '\n');
    }
}

static void body(struct fkt_text *t, const struct cli_command *c)
{
    add(t, c->usage);
    fkt_text_add(t, "\n.SH DESCRIPTION\n");
    describe(t, c->teaches, 0);
}

static void tail(struct fkt_text *t, const struct cli_command *c)
{
    if (strstr(c->teaches, "Example: ")) {
        fkt_text_add(t, ".SH EXAMPLES\n.nf\n");
        describe(t, c->teaches, 1);
        fkt_text_add(t, ".fi\n");
    }
    fkt_text_add(t, ".SH SEE ALSO\n.BR fedkt (1)\n");
}

static void save(struct pages *p, const char *verb, struct fkt_text *t)
{
    char name[64], file[80];
    char *path = NULL;
    fkt_status st = p->st != FKT_OK ? p->st : fkt_text_status(t);
    page_name(name, sizeof name, verb);
    snprintf(file, sizeof file, "%s.1", name);
    if (st == FKT_OK) st = fkt_path_join(&path, p->folder, file);
    if (st == FKT_OK) st = fkt_file_write(path, t->s, t->len, FKT_FILE_REPLACE);
    p->st = st;
    fkt_free(path);
    fkt_text_clear(t);
}

static void option(struct fkt_text *t, const struct cli_option *o)
{
    char right[CLI_HELP_LONGEST];
    if (o->kind == CLI_HEADING) {
        fkt_text_add(t, ".SS ");
        add(t, o->name);
        fkt_text_add(t, "\n");
        return;
    }
    fkt_text_add(t, ".TP\n");
    if (o->kind == CLI_WORDS) {
        fkt_text_add(t, ".I ");
        add(t, o->name);
        fkt_text_add(t, " ...");
    } else {
        fkt_text_add(t, o->kind == CLI_FLAG ? ".B " : ".BI ");
        add(t, "--");
        add(t, o->name);
        if (o->kind != CLI_FLAG) {
            fkt_text_add(t, " \" \" ");
            add(t, cli_metavar(o));
        }
    }
    fkt_text_add(t, "\n");
    cli_option_help(right, sizeof right, o);
    add(t, right);
    fkt_text_add(t, "\n");
}

static void verb_page(void *self, const struct cli_command *c, const struct cli_option *table, size_t n)
{
    struct fkt_text t;
    fkt_text_init(&t);
    head(&t, c->name, c->summary);
    body(&t, c);
    fkt_text_add(&t, ".SH OPTIONS\n");
    for (size_t i = 0; i < n; i++) option(&t, &table[i]);
    fkt_text_add(&t, ".TP\n.BR \\-h \", \" \\-\\-help\nprint this list\n");
    tail(&t, c);
    save(self, c->name, &t);
}

static void entries(struct fkt_text *t, const struct cli_command *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[64];
        page_name(name, sizeof name, commands[i].name);
        fkt_text_add(t, ".TP\n.BR ");
        add(t, name);
        fkt_text_add(t, " (1)\n");
        add(t, commands[i].summary);
        fkt_text_add(t, "\n");
    }
}

static void words_page(void *self, const struct cli_command *c, const struct cli_command *words, size_t n)
{
    struct fkt_text t;
    fkt_text_init(&t);
    head(&t, c->name, c->summary);
    body(&t, c);
    fkt_text_add(&t, ".SH WORDS\n");
    entries(&t, words, n);
    tail(&t, c);
    save(self, c->name, &t);
}

static void main_page(struct pages *p)
{
    struct fkt_text t;
    fkt_text_init(&t);
    head(&t, "", "one synthetic, differentially private image dataset from many sites");
    fkt_text_add(&t,
                 ".I VERB\n[options]\n.br\n.B fedkt help\n.RI [ VERB ]\n.br\n.BR \"fedkt \\-V\" \" | \" \\-\\-version\n"
                 ".SH DESCRIPTION\nResults go to standard output, all else to standard error. With\n.B \\-\\-json\n"
                 "results are JSON; with\n.B \"\\-\\-log jsonl\"\nevery line on standard error is a JSON object.\n"
                 ".SH VERBS\n");
    entries(&t, p->commands, p->n);
    fkt_text_add(&t,
                 ".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n.TP\n.B 1\nthe work failed; nothing is half written\n.TP\n.B 2\n"
                 "misuse: an unknown verb or option, or an invalid value\n.TP\n.B 3\nserve and join: the task is over; "
                 "another start cannot change that\n.TP\n.B 129, 130, 143\nstopped by SIGHUP, by Ctrl\\-C "
                 "(SIGINT), by SIGTERM; serve ends with 0 on SIGTERM\n"
                 ".SH ENVIRONMENT\n.TP\n.B FEDKT_CACHE\nfolder of the codecs' weights (default: $XDG_CACHE_HOME/fedkt, "
                 "else ~/.cache/fedkt)\n.TP\n.B FEDKT_MODELS\nfolder of networks in place of those that come with the "
                 "program\n.TP\n.B HF_ENDPOINT\naddress of the model hub\n.TP\n.B FEDKT_CACERT\n"
                 "certificate authority of a hub of your own\n.TP\n.B https_proxy\nproxy of join\n");
    save(p, "", &t);
}

fkt_status cli_man_pages(const struct cli_command *commands, size_t n, const char *folder)
{
    struct pages p = {.commands = commands, .n = n, .folder = folder, .st = fkt_mkdirs(folder)};
    const struct cli_help_sink sink = {verb_page, words_page, &p};
    if (p.st != FKT_OK) return p.st;
    main_page(&p);
    cli_help_visit(commands, n, &sink);
    return p.st;
}
