/* SPDX-License-Identifier: Apache-2.0 */
/* public_key.c - an option whose value is a public key: its digits, or the file that 'fedkt keygen' made. */
#include "cli/task/public_key.h"

#include "base/text.h"

#include <string.h>

fkt_status cli_public_key(const char *option, const char *text, uint8_t key[FKT_SA_KEY])
{
    struct fkt_site_key site;
    fkt_status st;
    if (fkt_unhex(key, text, FKT_SA_KEY)) return FKT_OK;
    st = fkt_hint(fkt_fail_in(fkt_site_key_load(&site, text), "--%s", option),
                  "give 64 lower-case hexadecimal digits, or the file that ends in .pub");
    if (st == FKT_OK) memcpy(key, site.key, FKT_SA_KEY);
    return st;
}
