/* SPDX-License-Identifier: Apache-2.0 */
/* public_key.h - an option whose value is a public key. */
#ifndef FKT_CLI_TASK_PUBLIC_KEY_H
#define FKT_CLI_TASK_PUBLIC_KEY_H

#include "fedkt/keys.h"

#include "base/status.h"

/* 64 hexadecimal digits, or the path of a public part. `option` is its name in errors. */
FKT_MUST_USE fkt_status cli_public_key(const char *option, const char *text, uint8_t key[FKT_SA_KEY]);

#endif
