/* SPDX-License-Identifier: Apache-2.0 */
/* federation.h - the options of `fedkt task new` that describe a federation. */
#ifndef FKT_CLI_TASK_FEDERATION_H
#define FKT_CLI_TASK_FEDERATION_H

#include "cli/core/common.h"
#include "fedkt/keys.h"

struct cli_federation_asked {
    const char *roster, *dropped, *corrupt, *cohort_seed;
    uint64_t sites, records, cohort_size;
    int keystream, noise;
    int keystream_given, noise_given;
};
#define CLI_FEDERATION_ROWS(f)                                                                                         \
    CLI_OPT_HEAD("federation (for sites that aggregate; without it the task is for 'fedkt release')"),                 \
        CLI_OPT_TEXT(                                                                                                  \
            "roster", &(f).roster, "FILE", 0,                                                                          \
            "the sites' keys, made by 'fedkt enroll' or by hand: per line a key of 64 hexadecimal digits, blanks, "    \
            "a name; the order numbers the sites; blank lines and lines that begin with '#' are ignored"),             \
        CLI_OPT_POSITIVE("sites", &(f).sites, "N", 0, "how many keys the roster must hold (default: not checked)"),    \
        CLI_OPT_POSITIVE("records", &(f).records, "N", 0,                                                              \
                         "upper bound on records of one class at one site, from public knowledge"),                    \
        CLI_OPT_TEXT("dropped", &(f).dropped, "F|N", 0,                                                                \
                     "fraction (0.1; rounded up) or number (1) of sites that may be lost in a round (default: 0.1 "    \
                     "and at least 2, but 1 of five or six sites and 0 of fewer)"),                                    \
        CLI_OPT_TEXT(                                                                                                  \
            "corrupt", &(f).corrupt, "F|N", 0,                                                                         \
            "fraction (0.1; rounded up) or number (1) of sites that may collude with the server (default: 0.1, "       \
            "so one at least)"),                                                                                       \
        CLI_OPT_POSITIVE("cohort-size", &(f).cohort_size, "N", 0,                                                      \
                         "divide the sites into cohorts of about N, each with its own masked sum and its own noise; "  \
                         "--out is then a folder with a task for each cohort"),                                        \
        CLI_OPT_TEXT("cohort-seed", &(f).cohort_seed, "HEX", 0,                                                        \
                     "64 hexadecimal digits that assign sites to cohorts: public randomness of a time after the "      \
                     "roster was fixed"),                                                                              \
        CLI_OPT_CHOICE_GIVEN("noise", &(f).noise, fkt_noise_parse, "distributed or central",                           \
                             "who adds noise: every site its noise share before masking, or the server after the sum", \
                             &(f).noise_given),                                                                        \
        CLI_OPT_CHOICE_GIVEN("keystream", &(f).keystream, fkt_keystream_parse, "aes-256-ctr or chacha20",              \
                             "what masks are made of", &(f).keystream_given)

/* The federation's settings; out->sites 0: no federation. Fills *roster, which *out borrows and the caller clears. */
FKT_MUST_USE fkt_status cli_federation_choices(const struct cli_federation_asked *a, struct fkt_federation_choices *out,
                                               struct fkt_roster *roster);

#endif
