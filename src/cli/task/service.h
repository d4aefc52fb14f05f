/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the options of `fedkt task new` that name a server. */
#ifndef FKT_CLI_TASK_SERVICE_H
#define FKT_CLI_TASK_SERVICE_H

#include "cli/core/common.h"
#include "fedkt/keys.h"

struct cli_service_asked {
    const char *server, *certificate, *expires;
    uint64_t gather, phase, rounds, seed;
    int seeded;
};
/* A round with silent sites, and a site that finds the wrong server, wait until the task expires: so every task does,
 * unless somebody asks for another end. */
#define CLI_EXPIRES "90d"
#define CLI_SERVICE_ROWS(s)                                                                                            \
    CLI_OPT_HEAD("server (for 'fedkt serve' and 'fedkt join'; needs a roster)"),                                       \
        CLI_OPT_TEXT("server", &(s).server, "URL", 0, "where sites find it: https://NAME:PORT, as they see it"),       \
        CLI_OPT_TEXT("certificate", &(s).certificate, "PEM", 0,                                                        \
                     "its certificate, whose public key is pinned (default: 'fedkt serve' makes one and pins it)"),    \
        CLI_OPT_POSITIVE("gather-seconds", &(s).gather, "N", 0,                                                        \
                         "once enough sites are there, wait so long for the others (default: 300)"),                   \
        CLI_OPT_POSITIVE("phase-seconds", &(s).phase, "N", 0,                                                          \
                         "wait so long for every site in each phase of a round (default: 120)"),                       \
        CLI_OPT_POSITIVE("rounds", &(s).rounds, "N", 0, "try at most so many rounds, 1 to 64 (default: 8)"),           \
        CLI_OPT_TEXT("expires", &(s).expires, "WHEN", 0,                                                               \
                     "no round begins later: the end of a day in UTC (2026-12-31), or days from now (30d), or "        \
                     "'never' (default: " CLI_EXPIRES ")"),                                                            \
    {                                                                                                                  \
        CLI_WHOLE, "insecure-seed", &(s).seed, "S",                                                                    \
            "TESTS ONLY: all keys, masks and noise of the federation from a known seed; nothing made under the task "  \
            "is private, and all of it says so",                                                                       \
            0, NULL, NULL, &(s).seeded                                                                                 \
    }

/* What fkt_service_choices borrows from. */
struct cli_service {
    struct fkt_service_choices choices; /* address NULL: no server was asked for */
    char pin[FKT_SERVICE_PIN];
};
/* Borrows everything. now: seconds since 1970. */
FKT_MUST_USE fkt_status cli_service_choices(const struct cli_service_asked *a, const struct fkt_roster *roster,
                                            uint64_t now, struct cli_service *out);
/* "2026-12-31" -> the last second of the day in UTC; "30d" -> days after now; "never" -> 0. Not in the past. */
FKT_MUST_USE fkt_status cli_expires(const char *text, uint64_t now, uint64_t *out);

#endif
