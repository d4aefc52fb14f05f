/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - the server's certificate and key: read, checked against each other, or made; and the pin of the key.
 *
 *   pin = "sha256//" base64(SHA-256(SubjectPublicKeyInfo in DER)), as libcurl's CURLOPT_PINNEDPUBLICKEY wants it
 *         (RFC 7469 section 2.4 pins the same bytes)
 *
 * A pin is of the key alone and is part of signed tasks: so the key must never be lost or replaced without being asked
 * for, while a certificate is cheap. The key is written first and the certificate after it. A crash between the two
 * leaves a key without a certificate, and the next start makes a certificate for that key, with the same pin. A
 * certificate without its key is an error that the operator must resolve.
 *
 * P-256 and not Ed25519: browsers do not accept Ed25519 certificates. Cost: a millisecond, once.
 */
#include "net/tls.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/private.h"
#include "crypto/entropy.h"
#include "net/certificate.h"
#include "net/digest64.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>

enum { PEM_MAX = 1 << 20, CHAIN_MAX = 16 };

/* The first certificate of a PEM text is the server's own, those after it are its issuers. All are encoded again
 * into *text, so that nothing else in the file (a key, for example) is sent with them. text may be NULL. */
static fkt_status parse_chain(X509 **out, char **text, const uint8_t *pem, size_t len, const char *path)
{
    BIO *in = BIO_new_mem_buf(pem, (int)len), *clean = BIO_new(BIO_s_mem());
    X509 *x = NULL;
    fkt_status st = FKT_OK;
    char *start;
    int n = 0;

    *out = NULL;
    if (!in || !clean) {
        st = fkt_openssl_fail("read a certificate");
        goto out;
    }
    while (n < CHAIN_MAX && (x = PEM_read_bio_X509(in, NULL, NULL, (void *)"")) != NULL) {
        if (!PEM_write_bio_X509(clean, x)) {
            st = fkt_openssl_fail("copy a certificate");
            goto out;
        }
        if (n++ == 0) *out = x;
        else X509_free(x);
        x = NULL;
    }
    /* After the last one the reader finds no further start; anything else means a damaged certificate. */
    if (n == 0 || (n < CHAIN_MAX && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)) {
        st = fkt_fail_hint(FKT_E_FORMAT, "it must be PEM text: lines of base64 after '-----BEGIN CERTIFICATE-----'",
                           "there is no readable certificate in '%s'%s", path, n ? " after the first" : "");
        goto out;
    }
    if (text) {
        long size = BIO_get_mem_data(clean, &start);
        FKT_TRY(fkt_alloc(text, (size_t)size + 1));
        memcpy(*text, start, (size_t)size);
    }
out:
    ERR_clear_error();
    X509_free(x);
    if (st != FKT_OK) {
        X509_free(*out);
        *out = NULL;
    }
    BIO_free(in);
    BIO_free(clean);
    return st;
}

static fkt_status read_chain(X509 **out, char **text, const char *path)
{
    uint8_t *pem = NULL;
    size_t len = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_file_read(&pem, &len, path, PEM_MAX));
    FKT_TRY(parse_chain(out, text, pem, len, path));
out:
    if (pem) fkt_wipe(pem, len); /* people keep certificate and key in one file */
    fkt_free(pem);
    return st;
}

/* A passphrase is never asked for; this only records that one is needed. */
static int no_passphrase(char *buf, int size, int writing, void *asked)
{
    (void)buf, (void)size, (void)writing;
    *(int *)asked = 1;
    return -1;
}

/* Gives *text as well, for the HTTPS server. A group for keys may read the file (Debian's ssl-cert, systemd's
 * credentials), and the name may be a link (ACME clients). */
static fkt_status read_key(EVP_PKEY **out, char **text, const char *path)
{
    uint8_t *pem = NULL;
    size_t len = 0;
    BIO *in = NULL;
    struct stat sb;
    int encrypted = 0;
    fkt_status st;

    *out = NULL;
    FKT_TRY(fkt_private_read(&pem, &len, path, PEM_MAX, FKT_PRIVATE_LINK, &sb));
    in = BIO_new_mem_buf(pem, (int)len);
    *out = in ? PEM_read_bio_PrivateKey(in, NULL, no_passphrase, &encrypted) : NULL;
    if (encrypted) {
        st = fkt_fail_hint(FKT_E_FORMAT,
                           "a server that starts by itself cannot ask: write it out with 'openssl pkey -in KEY -out "
                           "PLAIN', readable by the server's account alone",
                           "the key in '%s' is encrypted", path);
    } else if (!*out || memchr(pem, 0, len)) {
        st = fkt_fail_hint(FKT_E_FORMAT, "it must be PEM text that begins with '-----BEGIN PRIVATE KEY-----'",
                           "there is no readable private key in '%s'", path);
    } else {
        FKT_TRY(fkt_private_check(&sb, path, FKT_PRIVATE_GROUP));
        *text = (char *)pem;
        pem = NULL;
    }
out:
    ERR_clear_error();
    if (st != FKT_OK) {
        EVP_PKEY_free(*out);
        *out = NULL;
    }
    BIO_free(in);
    if (pem) fkt_wipe(pem, len);
    fkt_free(pem);
    return st;
}

static fkt_status pin(char out[FKT_TLS_PIN], X509 *x)
{
    unsigned char *der = NULL;
    char digest[FKT_DIGEST64];
    int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    if (len <= 0) return fkt_openssl_fail("write a public key");
    fkt_digest64(digest, der, (size_t)len);
    OPENSSL_free(der);
    snprintf(out, FKT_TLS_PIN, "sha256//%s", digest);
    return FKT_OK;
}

static void day_of(char out[16], const ASN1_TIME *t)
{
    struct tm when;
    if (!ASN1_TIME_to_tm(t, &when) || strftime(out, 16, "%Y-%m-%d", &when) == 0) snprintf(out, 16, "%s", "a past day");
}

static fkt_status check_pair(X509 *x, EVP_PKEY *key, const char *certificate_path, const char *key_path)
{
    char day[16];
    if (X509_check_private_key(x, key) != 1) {
        ERR_clear_error();
        return fkt_fail_hint(FKT_E_MISMATCH, "give the key that the certificate was made for",
                             "the certificate '%s' and the key '%s' do not belong together", certificate_path,
                             key_path);
    }
    if (X509_cmp_time(X509_get0_notAfter(x), NULL) < 0) {
        day_of(day, X509_get0_notAfter(x));
        return fkt_fail_hint(FKT_E_MISMATCH,
                             "make a new one for the same key: the pin in the task stays valid; a 'tls.pem' that "
                             "fedkt made itself need only be removed",
                             "the certificate '%s' expired on %s", certificate_path, day);
    }
    if (X509_cmp_time(X509_get0_notBefore(x), NULL) > 0) {
        day_of(day, X509_get0_notBefore(x));
        return fkt_fail_hint(FKT_E_MISMATCH, "check this machine's clock",
                             "the certificate '%s' is not valid before %s", certificate_path, day);
    }
    return FKT_OK;
}

fkt_status fkt_tls_read(struct fkt_tls *out, const char *certificate_path, const char *key_path)
{
    X509 *x = NULL;
    EVP_PKEY *key = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    FKT_TRY(read_chain(&x, &out->certificate, certificate_path));
    FKT_TRY(read_key(&key, &out->key, key_path));
    FKT_TRY(check_pair(x, key, certificate_path, key_path));
    FKT_TRY(pin(out->pin, x));
out:
    X509_free(x);
    EVP_PKEY_free(key);
    if (st != FKT_OK) fkt_tls_clear(out);
    return st;
}

/* A new key, on disk before it is used. */
static fkt_status make_key(EVP_PKEY **out, const char *path)
{
    BIO *pem = BIO_new(BIO_s_secmem()); /* wipes what it held */
    fkt_status st = FKT_OK;
    char *start;
    *out = EVP_EC_gen("P-256");
    if (!*out || !pem || !PEM_write_bio_PrivateKey(pem, *out, NULL, NULL, 0, NULL, NULL)) {
        st = fkt_openssl_fail("make a key");
        goto out;
    }
    long len = BIO_get_mem_data(pem, &start);
    FKT_TRY(fkt_file_write(path, start, (size_t)len, FKT_FILE_PRIVATE));
out:
    BIO_free(pem);
    if (st != FKT_OK) {
        EVP_PKEY_free(*out);
        *out = NULL;
    }
    return st;
}

static fkt_status make_certificate(EVP_PKEY *key, const char *host, const char *path)
{
    BIO *pem = BIO_new(BIO_s_mem());
    X509 *x = NULL;
    fkt_status st;
    char *start;
    FKT_TRY(fkt_certificate_make(&x, key, host));
    if (!pem || !PEM_write_bio_X509(pem, x)) {
        st = fkt_openssl_fail("write a certificate");
        goto out;
    }
    long len = BIO_get_mem_data(pem, &start);
    FKT_TRY(fkt_file_write(path, start, (size_t)len, 0));
out:
    X509_free(x);
    BIO_free(pem);
    return st;
}

/* 1: it exists; 0: it does not; -1: unknown, see errno. */
static int stands(const char *path)
{
    struct stat sb;
    if (lstat(path, &sb) == 0) return 1;
    return errno == ENOENT ? 0 : -1;
}

/* Makes what is missing until both files exist. */
static fkt_status complete(const char *certificate_path, const char *key_path, const char *host, int *made)
{
    int has_key = stands(key_path), has_certificate = stands(certificate_path);
    EVP_PKEY *key = NULL;
    char *text = NULL;
    fkt_status st = FKT_OK;
    *made = 0;
    if (has_key < 0 || has_certificate < 0) return fkt_io_fail("read", has_key < 0 ? key_path : certificate_path);
    if (has_certificate && !has_key)
        return fkt_fail_hint(FKT_E_MISMATCH,
                             "restore the key from a copy; or remove the certificate too, and sign the task again with "
                             "the pin of the pair that will be made",
                             "there is a certificate '%s' but no key '%s'", certificate_path, key_path);
    if (has_certificate) return FKT_OK;
    if (has_key) FKT_TRY(read_key(&key, &text, key_path));
    else FKT_TRY(make_key(&key, key_path));
    FKT_TRY(make_certificate(key, host, certificate_path));
    *made = 1;
out:
    if (text) fkt_wipe(text, strlen(text));
    fkt_free(text);
    EVP_PKEY_free(key);
    /* Both names were free just before: another process is making the same pair. */
    if (st == FKT_E_EXISTS) st = fkt_fail_hint(st, "start again", "another process is writing '%s'", certificate_path);
    return st;
}

fkt_status fkt_tls_own(struct fkt_tls *out, const char *folder, const char *host)
{
    char *certificate = NULL, *key = NULL;
    fkt_status st;
    int made = 0;
    memset(out, 0, sizeof *out);
    FKT_TRY(fkt_path_join(&certificate, folder, "tls.pem"));
    FKT_TRY(fkt_path_join(&key, folder, "tls.key"));
    FKT_TRY(complete(certificate, key, host, &made));
    FKT_TRY(fkt_tls_read(out, certificate, key));
    out->made = made;
out:
    fkt_free(certificate);
    fkt_free(key);
    return st;
}

fkt_status fkt_tls_pin_of(char out[FKT_TLS_PIN], const char *certificate_path)
{
    X509 *x = NULL;
    fkt_status st;
    out[0] = '\0';
    FKT_TRY(read_chain(&x, NULL, certificate_path));
    FKT_TRY(pin(out, x));
out:
    X509_free(x);
    return st;
}

void fkt_tls_clear(struct fkt_tls *t)
{
    if (t->key) fkt_wipe(t->key, strlen(t->key));
    fkt_free(t->key);
    fkt_free(t->certificate);
    memset(t, 0, sizeof *t);
}
