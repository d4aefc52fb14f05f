/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the options of `fedkt task new` that describe a server. */
#ifndef FKT_CLI_TASK_SERVICE_H
#define FKT_CLI_TASK_SERVICE_H

#include "cli/core/common.h"
#include "fedkt/keys.h"

struct cli_service_asked {
    const char *server, *certificate, *expires;
    uint64_t gather, phase, rounds, seed;
    int seeded;
};
/* A round with silent sites, and a site at a wrong address, wait until the task expires: so every task expires
 * unless --expires is 'never'. */
#define CLI_EXPIRES "90d"
#define CLI_SERVICE_ROWS(s)                                                                                            \
    CLI_OPT_HEAD("server (for 'fedkt serve' and 'fedkt join'; needs a roster)"),                                       \
        CLI_OPT_TEXT("server", &(s).server, "URL", 0, "its address as sites reach it: https://NAME:PORT"),             \
        CLI_OPT_TEXT("certificate", &(s).certificate, "PEM", 0,                                                        \
                     "its certificate, whose public key is pinned (default: 'fedkt serve' makes one and pins it)"),    \
        CLI_OPT_POSITIVE("gather-seconds", &(s).gather, "N", 0,                                                        \
                         "seconds to wait for further sites once enough have arrived (default: 300)"),                 \
        CLI_OPT_POSITIVE("phase-seconds", &(s).phase, "N", 0,                                                          \
                         "seconds to wait for the sites in each phase of a round (default: 120)"),                     \
        CLI_OPT_POSITIVE("rounds", &(s).rounds, "N", 0, "largest number of rounds to try, 1 to 64 (default: 8)"),      \
        CLI_OPT_TEXT("expires", &(s).expires, "WHEN", 0,                                                               \
                     "no round begins after the end of this day in UTC (2026-12-31), or days from now (30d), or "      \
                     "'never' (default: " CLI_EXPIRES ")"),                                                            \
    {                                                                                                                  \
        CLI_WHOLE, "insecure-seed", &(s).seed, "S",                                                                    \
            "TESTS ONLY: all keys, masks and noise of the federation from a known seed; nothing made under the task "  \
            "is private, and all output says so",                                                                      \
            0, NULL, NULL, &(s).seeded                                                                                 \
    }

/* The values that fkt_service_choices borrows. */
struct cli_service {
    struct fkt_service_choices choices; /* address NULL: no server */
    char pin[FKT_SERVICE_PIN];
};
/* Borrows everything. now: seconds since 1970. */
FKT_MUST_USE fkt_status cli_service_choices(const struct cli_service_asked *a, const struct fkt_roster *roster,
                                            uint64_t now, struct cli_service *out);
/* "2026-12-31" -> the last second of the day in UTC; "30d" -> days after now; "never" -> 0. Not in the past. */
FKT_MUST_USE fkt_status cli_expires(const char *text, uint64_t now, uint64_t *out);

#endif
