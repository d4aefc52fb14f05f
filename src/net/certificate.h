/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - a self-signed certificate for a key: for tls.c alone. */
#ifndef FKT_NET_CERTIFICATE_H
#define FKT_NET_CERTIFICATE_H

#include "base/status.h"

#include <openssl/x509.h>

#define FKT_CERTIFICATE_HOST 253 /* the longest name of a host */

/* Gives *out, to be freed with X509_free. `host`: a name or an address, "[::1]" too; FKT_E_ARG when it is neither. */
FKT_MUST_USE fkt_status fkt_certificate_make(X509 **out, EVP_PKEY *key, const char *host);
/* The sentence "cannot <what>" with OpenSSL's own reason; empties its queue. */
fkt_status fkt_openssl_fail(const char *what);

#endif
