/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - `fedkt serve`: options for fkt_serve (fedkt/serve.h); serve_print.c prints its events.
 *
 * Stopping it (Ctrl-C, SIGTERM, power) loses nothing: the next start continues. */
#include "cli/federation/serve.h"

#include "fedkt/advanced/mailbox.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"

#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LINGER = 300 };

static fkt_status fill_spec(struct fkt_serve_spec *out, const struct cli_serve_asked *a, struct cli_serve *s)
{
    *out = (struct fkt_serve_spec){.task = a->task,
                                   .state = a->state,
                                   .listen = a->listen,
                                   .key = a->key,
                                   .certificate = a->certificate,
                                   .private_key = a->private_key,
                                   .out = a->out,
                                   .calibration = a->calibration,
                                   .guide_calibration = a->guide_calibration,
                                   .per_class = (size_t)a->per_class,
                                   .format = (enum fkt_export_format)a->format,
                                   .accept_weak = a->accept_weak,
                                   .stay = a->stay,
                                   .linger_seconds = a->linger >= UINT32_MAX ? UINT32_MAX
                                                     : a->linger             ? (uint32_t)a->linger
                                                                             : 1,
                                   .progress = &s->progress.hook,
                                   .stop = cli_stop_flag(),
                                   .event = cli_serve_event,
                                   .self = s};
    cli_codec_settings(&a->settings, &out->settings);
    return cli_threads(a->run.threads, &out->threads);
}

static int run(const struct cli_serve_asked *a)
{
    struct cli_serve s = {.a = a};
    struct fkt_serve_spec spec;
    struct fkt_serve_view last = {0};
    fkt_status st;
    int code;
    cli_progress_init(&s.progress, a->run.quiet);
    signal(SIGPIPE, SIG_IGN);
    FKT_TRY(fill_spec(&spec, a, &s));
    st = a->cohorts ? fkt_serve_cohorts(&spec, &last) : fkt_serve(&spec, &last);
    cli_progress_end(&s.progress);
    if (s.failed.status != FKT_OK) st = fkt_failure_restore(&s.failed);
    if (st == FKT_E_STOPPED && cli_stopped_by() == SIGTERM) { /* a service manager's way to stop: not a failure */
        if (!a->run.quiet) cli_say("fedkt: stopped; start it again with the same --state to continue");
        st = FKT_OK;
    }
out:
    code = cli_fail(st);
    fkt_free(s.said);
    return last.stage == FKT_STAGE_GIVEN_UP ? CLI_OVER : code;
}

int cli_serve(const struct cli_command *self, int argc, char **argv)
{
    struct cli_serve_asked a = {.linger = LINGER};
    const struct cli_option table[] = {
        CLI_OPT_TEXT(
            "task", &a.task, "FILE", 1,
            "the signed task, or the folder with the tasks of all cohorts; the first start adds the server's pin"),
        CLI_OPT_TEXT("state", &a.state, "DIR", 1,
                     "folder for journal, certificate and token, which must survive a restart; made 0700"),
        CLI_OPT_TEXT(
            "listen", &a.listen, "ADDR:PORT", 1,
            "0.0.0.0:8443 for all IPv4 addresses, [::]:8443 for all addresses; cohort i listens on the port plus i"),
        CLI_OPT_TEXT("key", &a.key, "FILE", 0, "the operator's key, needed once to sign the task with its pin"),
        CLI_OPT_TEXT("certificate", &a.certificate, "PEM", 0,
                     "certificate of the server with its chain (default: made)"),
        CLI_OPT_TEXT("private-key", &a.private_key, "PEM", 0, "of the certificate"),
        CLI_WEAK_ROW(a.accept_weak),
        CLI_OPT_FLAG("stay", &a.stay, "keep serving files after the task is over, until it is stopped"),
        CLI_OPT_WHOLE("linger", &a.linger, "S", 0,
                      "seconds to wait for sites to fetch the transparency log after the end (default: 300)"),
        CLI_OPT_HEAD("output"),
        CLI_OPT_TEXT("out", &a.out, "DIR", 0, "public folder (default: 'public' in the state)"),
        CLI_OPT_WHOLE("per-class", &a.per_class, "N", 0, "synthetic images per class (default: 100)"),
        CLI_OPT_CHOICE("format", &a.format, fkt_export_parse, "folder, npz, webdataset or dpimagebench",
                       "format of the images"),
        CLI_OPT_TEXT("calibration", &a.calibration, "FILE", 0, "the task's calibration (default: the codec's own)"),
        CLI_OPT_TEXT("guide-calibration", &a.guide_calibration, "FILE", 0,
                     "the calibration of the task's guide (default: its own)"),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_TALK_ROWS(a.run),
        CLI_OPT_WHOLE("threads", &a.run.threads, "N", 0, "worker threads for computations (default: all cores)"),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    struct stat sb;
    cli_keep_secrets();
    if (code >= 0) return code;
    a.cohorts = stat(a.task, &sb) == 0 && S_ISDIR(sb.st_mode);
    if (!a.certificate != !a.private_key)
        return cli_misuse(self,
                          fkt_fail_hint(FKT_E_ARG, "give both for your own certificate, or neither to have one made",
                                        "--certificate and --private-key must be given together"));
    return run(&a);
}
