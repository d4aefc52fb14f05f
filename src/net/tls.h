/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - the server's certificate, made on first start or read from a file, and the pin of its key. */
#ifndef FKT_NET_TLS_H
#define FKT_NET_TLS_H

#include "base/status.h"

#define FKT_TLS_PIN 53 /* "sha256//", 44 characters of base64, NUL */

struct fkt_tls {
    char *certificate, *key; /* PEM text, owned; key is wiped by clear */
    char pin[FKT_TLS_PIN];
    int made; /* 1: by this call */
};
/* Certificate (chain) and key from PEM files; FKT_E_MISMATCH when they do not belong together. */
FKT_MUST_USE fkt_status fkt_tls_read(struct fkt_tls *out, const char *certificate_path, const char *key_path);
/* folder/tls.pem and folder/tls.key (0600): read, or made: ECDSA P-256, self-signed, for `host` (name or address), ten
 * years. */
FKT_MUST_USE fkt_status fkt_tls_own(struct fkt_tls *out, const char *folder, const char *host);
/* The pin of a PEM certificate alone: for a task that is made before the server runs. */
FKT_MUST_USE fkt_status fkt_tls_pin_of(char pin[FKT_TLS_PIN], const char *certificate_path);
void fkt_tls_clear(struct fkt_tls *t);

#endif
