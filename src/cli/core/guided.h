/* SPDX-License-Identifier: Apache-2.0 */
/* guided.h - `--guided [STEPS]`, the same in every verb that makes images of a release. */
#ifndef FKT_CLI_CORE_GUIDED_H
#define FKT_CLI_CORE_GUIDED_H

#include "cli/core/options.h"

#include "fedkt/generate.h"

#include <jansson.h>

#define CLI_GUIDED_ROW(text)                                                                                           \
    CLI_OPT_MAYBE("guided", &(text), "[STEPS]",                                                                        \
                  "where the release has a guide: make each image show what the guide's part says of its class, by "   \
                  "the decoder trained for that, or by so many STEPS of gradient descent (slow); 'none': leave the "   \
                  "guide aside (default: the trained decoder where there is one, else none)")

/* NULL: not given; "": without a value. */
FKT_MUST_USE fkt_status cli_guided(const char *text, struct fkt_guided_options *out);
void cli_print_guided(
    const struct fkt_guided_facts *f); /* on stdout: a line how images were made; none without guide */
json_t *cli_guided_json(const struct fkt_guided_facts *f);

#endif
