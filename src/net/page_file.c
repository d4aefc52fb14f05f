/* SPDX-License-Identifier: Apache-2.0 */
/* page_file.c - the status page as it is served, and its content security policy.
 *
 * page.html is turned into an array of bytes when the program is built (embed.cmake). It holds one <style> and one
 * <script>; the policy allows exactly these two by the SHA-256 of the text between their tags (Content Security
 * Policy Level 3, section 6.6), so that injected text could not run as a script. It is computed from the page
 * itself, so it follows every change of the page.
 */
#include "net/digest64.h"
#include "net/page.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

extern const unsigned char fkt_page_bytes[]; /* generated */

static char policy[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *fkt_page_html(void) { return (const char *)fkt_page_bytes; }

/* The hash of the only element of this kind; the page's test checks that there is one. */
static void hash_element(char out[FKT_DIGEST64], const char *open, const char *close)
{
    const char *start = strstr(fkt_page_html(), open), *end = start ? strstr(start, close) : NULL;
    out[0] = '\0';
    if (!end) return;
    start += strlen(open);
    fkt_digest64(out, start, (size_t)(end - start));
}

static void write_policy(void)
{
    char script[FKT_DIGEST64], style[FKT_DIGEST64];
    hash_element(script, "<script>", "</script>");
    hash_element(style, "<style>", "</style>");
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src 'self' data:; "
             "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             script, style);
}

const char *fkt_page_csp(void)
{
    pthread_once(&once, write_policy);
    return policy;
}
