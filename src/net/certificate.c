/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - a self-signed certificate for a key and a host.
 *
 *   subject = issuer "fedkt server", serial of 128 random bits, from yesterday (clocks differ) for ten years
 *   critical: not a CA, signatures only; for servers; names: the host, and all loopback names when it is one of them
 *
 * Source: RFC 5280 section 4, RFC 6125 (the name in subjectAltName counts, the common name does not).
 * Sites ignore the certificate: they know the key by its pin (tls.c). It is for the operator's browser.
 */
#include "net/certificate.h"

#include "crypto/entropy.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

enum { DAY = 24 * 60 * 60, YEARS_TEN = 3652 };

fkt_status fkt_openssl_fail(const char *what)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    fkt_status st = fkt_fail(ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE ? FKT_E_NOMEM : FKT_E_FORMAT, "cannot %s: %s",
                             what, reason ? reason : "OpenSSL gives no reason");
    ERR_clear_error();
    return st;
}

static int is_name(const char *host)
{
    size_t n = strlen(host);
    if (n == 0 || n > FKT_CERTIFICATE_HOST || host[0] == '-' || host[0] == '.') return 0;
    return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == n;
}

/* 1: added; 0: memory. An address becomes one, everything else is a name. */
static int add_name(GENERAL_NAMES *names, const char *host)
{
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
    ASN1_IA5STRING *name = NULL;
    GENERAL_NAME *g = GENERAL_NAME_new();
    int ok = 0;
    if (!address) ERR_clear_error();
    if (!address) name = ASN1_IA5STRING_new();
    if (!g || (!address && !name)) goto out;
    if (name && !ASN1_STRING_set(name, host, -1)) goto out;
    if (address) GENERAL_NAME_set0_value(g, GEN_IPADD, address);
    else GENERAL_NAME_set0_value(g, GEN_DNS, name);
    address = NULL;
    name = NULL;
    ok = sk_GENERAL_NAME_push(names, g) > 0;
    if (ok) g = NULL;
out:
    ASN1_OCTET_STRING_free(address);
    ASN1_IA5STRING_free(name);
    GENERAL_NAME_free(g);
    return ok;
}

static int is_loopback(const char *host)
{
    ASN1_OCTET_STRING *a = a2i_IPADDRESS(host);
    int yes = strcmp(host, "localhost") == 0;
    if (!a) {
        ERR_clear_error();
        return yes;
    }
    const unsigned char *b = ASN1_STRING_get0_data(a);
    if (ASN1_STRING_length(a) == 4) yes = b[0] == 127;
    else yes = b[15] == 1 && memcmp(b, (const unsigned char[15]){0}, 15) == 0;
    ASN1_OCTET_STRING_free(a);
    return yes;
}

static int add_names(X509 *x, const char *host)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "::1"};
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    int ok = names && add_name(names, host);
    if (is_loopback(host))
        for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
            if (strcmp(host, loopback[i]) != 0) ok = ok && add_name(names, loopback[i]);
    ok = ok && X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(names);
    return ok;
}

static int add_extension(X509 *x, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *e;
    int ok;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, x, x, NULL, NULL, 0);
    e = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ok = e && X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
    return ok;
}

static fkt_status set_serial(X509 *x)
{
    struct fkt_entropy os;
    uint8_t bytes[16];
    BIGNUM *number = NULL;
    ASN1_INTEGER *serial = NULL;
    fkt_status st;
    fkt_entropy_os(&os);
    FKT_TRY(os.fill(os.self, bytes, sizeof bytes));
    number = BN_bin2bn(bytes, sizeof bytes, NULL);
    serial = number ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
    if (!serial || !X509_set_serialNumber(x, serial)) st = fkt_openssl_fail("number a certificate");
out:
    ASN1_INTEGER_free(serial);
    BN_free(number);
    return st;
}

static int describe(X509 *x, EVP_PKEY *key, const char *host)
{
    X509_NAME *who = X509_get_subject_name(x);
    return X509_set_version(x, X509_VERSION_3) && X509_set_pubkey(x, key) &&
           X509_NAME_add_entry_by_txt(who, "CN", MBSTRING_ASC, (const unsigned char *)"fedkt server", -1, -1, 0) &&
           X509_set_issuer_name(x, who) && X509_gmtime_adj(X509_getm_notBefore(x), -DAY) &&
           X509_time_adj_ex(X509_getm_notAfter(x), YEARS_TEN, 0, NULL) &&
           add_extension(x, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x, NID_ext_key_usage, "serverAuth") && add_extension(x, NID_subject_key_identifier, "hash") &&
           add_names(x, host);
}

fkt_status fkt_certificate_make(X509 **out, EVP_PKEY *key, const char *host)
{
    char bare[FKT_CERTIFICATE_HOST + 1] = "";
    size_t n = strlen(host);
    X509 *x = NULL;
    fkt_status st = FKT_OK;

    *out = NULL;
    if (n > 2 && n - 2 < sizeof bare && host[0] == '[' && host[n - 1] == ']') {
        memcpy(bare, host + 1, n - 2);
        host = bare;
    }
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
    if (!address && !is_name(host))
        return fkt_fail(FKT_E_ARG, "'%.80s' is neither the name nor the address of a host", host);
    ASN1_OCTET_STRING_free(address);
    ERR_clear_error();
    x = X509_new();
    if (!x) {
        st = fkt_openssl_fail("make a certificate");
        goto out;
    }
    FKT_TRY(set_serial(x));
    if (!describe(x, key, host) || !X509_sign(x, key, EVP_sha256())) {
        st = fkt_openssl_fail("make a certificate");
        goto out;
    }
    *out = x;
    x = NULL;
out:
    X509_free(x);
    return st;
}
