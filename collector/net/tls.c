// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char tls_cut[] = "closed in the middle of the handshake";

struct tls {
    SSL_CTX *context;
};

// -- contexts -------------------------------------------------------------------------------------

static bool failed(char *why, const char *file, const char *what) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = access(file, R_OK) != 0 ? strerror(errno)
                         : code                  ? ERR_reason_error_string(code)
                                                 : NULL;
    snprintf(why, TLS_ERROR_BYTES, "%s: %s%s%s", file, what, reason ? ": " : "",
             reason ? reason : "");
    ERR_clear_error();
    return false;
}

// A key with a passphrase must not make us ask on a terminal.
static int no_passphrase(char *to, int size, int writing, void *user) {
    (void)to;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static bool private_file(const char *path, char *why) {
    struct stat st;
    if (stat(path, &st) == 0 && (st.st_mode & S_IRWXO)) {
        snprintf(why, TLS_ERROR_BYTES,
                 "%s: mode %03o opens the key to everybody on this machine; chmod 600 it", path,
                 (unsigned)st.st_mode & 0777);
        return false;
    }
    return true;
}

static bool own_certificate(SSL_CTX *context, const struct tls_files *files, char *why) {
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1) {
        return failed(why, files->cert, "not a certificate in PEM form");
    }
    if (X509_cmp_current_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context))) <= 0) {
        return failed(why, files->cert, "the certificate has expired; nobody would accept it");
    }
    if (!private_file(files->key, why)) {
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1) {
        return failed(why, files->key,
                      "not the certificate's key, in PEM form and without a passphrase");
    }
    return true;
}

static bool authorities(SSL_CTX *context, const char *ca, bool server, char *why) {
    if (!ca) {
        snprintf(why, TLS_ERROR_BYTES, "TLS: the system's authorities cannot be read");
        return server || SSL_CTX_set_default_verify_paths(context) == 1;
    }
    if (SSL_CTX_load_verify_locations(context, ca, NULL) != 1) {
        return failed(why, ca, "not certificates of authorities in PEM form");
    }
    if (server) {
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(ca));
    }
    return true;
}

// A context that has neither certificates nor authorities yet.
static struct tls *bare(bool server, bool verify, char *why) {
    ERR_clear_error();
    struct tls *t = calloc(1, sizeof *t);
    SSL_CTX *c = t ? SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()) : NULL;
    if (!c) {
        free(t);
        snprintf(why, TLS_ERROR_BYTES, "TLS: out of memory");
        return NULL;
    }
    t->context = c;
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    // connections are few and long: nothing is kept to resume them; and no buffers for those that
    // are silent
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(c, no_passphrase);
    if (verify) {
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return t;
}

static struct tls *make(const struct tls_files *files, bool server, char *why) {
    struct tls *t = bare(server, !server || files->ca, why);
    if (t && ((files->cert && !own_certificate(t->context, files, why)) ||
              !authorities(t->context, files->ca, server, why))) {
        tls_free(t);
        return NULL;
    }
    return t;
}

// Gives each certificate of a text to `take`, which does not keep it. False when there is none, or
// one is not taken.
static bool each_certificate(struct slice pem, SSL_CTX *context,
                             bool (*take)(SSL_CTX *context, X509 *one, int i)) {
    BIO *text = BIO_new_mem_buf(pem.data, (int)pem.len);
    bool good = text;
    int i = 0;
    for (X509 *one; good && (one = PEM_read_bio_X509(text, NULL, no_passphrase, NULL)); i++) {
        good = take(context, one, i);
        X509_free(one);
    }
    BIO_free(text);
    ERR_clear_error(); // that there are no more
    return good && i > 0;
}

static bool take_own(SSL_CTX *context, X509 *one, int i) {
    return (i == 0 ? SSL_CTX_use_certificate(context, one)
                   : SSL_CTX_add1_chain_cert(context, one)) == 1;
}

static bool take_authority(SSL_CTX *context, X509 *one, int i) {
    (void)i;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one) == 1;
}

static bool take_key(struct slice pem, SSL_CTX *context) {
    BIO *text = BIO_new_mem_buf(pem.data, (int)pem.len);
    EVP_PKEY *key = text ? PEM_read_bio_PrivateKey(text, NULL, no_passphrase, NULL) : NULL;
    bool good = key && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(text);
    return good;
}

struct tls *tls_client_pem(const struct tls_pem *pem, char why[TLS_ERROR_BYTES]) {
    struct tls *t = bare(false, true, why);
    bool own = t && (pem->cert.len == 0 || (each_certificate(pem->cert, t->context, take_own) &&
                                            take_key(pem->key, t->context)));
    bool good = own && (pem->ca.len == 0 ? SSL_CTX_set_default_verify_paths(t->context) == 1
                                         : each_certificate(pem->ca, t->context, take_authority));
    if (t && !good) {
        snprintf(why, TLS_ERROR_BYTES, "TLS: %s cannot be used",
                 own ? "the authorities" : "the certificate or its key");
        tls_free(t);
        return NULL;
    }
    return t;
}

struct tls *tls_server(const struct tls_files *files, char why[TLS_ERROR_BYTES]) {
    return make(files, true, why);
}

struct tls *tls_client(const struct tls_files *files, char why[TLS_ERROR_BYTES]) {
    return make(files, false, why);
}

void tls_free(struct tls *t) {
    if (t) {
        SSL_CTX_free(t->context);
        free(t);
    }
}

// -- connections ----------------------------------------------------------------------------------

static struct bufferevent *wrap(struct event_base *base, evutil_socket_t fd, SSL *ssl,
                                enum bufferevent_ssl_state state) {
    struct bufferevent *bev =
        ssl ? bufferevent_openssl_socket_new(base, fd, ssl, state, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (bev) {
        // a connection that is cut looks like one that is closed: what is lost with it the control
        // messages tell
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    }
    return bev;
}

struct bufferevent *tls_accept(const struct tls *t, struct event_base *base, evutil_socket_t fd) {
    SSL *ssl = SSL_new(t->context);
    struct bufferevent *bev = wrap(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING);
    if (!bev) {
        SSL_free(ssl);
    }
    return bev;
}

static bool wants_name(SSL *ssl, const char *name) {
    struct in6_addr ip;
    if (inet_pton(AF_INET, name, &ip) == 1 || inet_pton(AF_INET6, name, &ip) == 1) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    }
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct bufferevent *tls_connect(const struct tls *t, struct event_base *base, const char *name) {
    SSL *ssl = SSL_new(t->context);
    struct bufferevent *bev =
        ssl && wants_name(ssl, name) ? wrap(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING) : NULL;
    if (!bev) {
        SSL_free(ssl);
    }
    return bev;
}

bool tls_certificate(struct bufferevent *bev, uint8_t out[TLS_CERTIFICATE_BYTES]) {
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    X509 *theirs = SSL_is_server(ssl) ? NULL : SSL_get1_peer_certificate(ssl);
    const X509 *of = SSL_is_server(ssl) ? SSL_get_certificate(ssl) : theirs;
    unsigned len = 0;
    bool good = of && X509_digest(of, EVP_sha256(), out, &len) == 1 && len == TLS_CERTIFICATE_BYTES;
    X509_free(theirs);
    return good;
}

void tls_write_now(struct bufferevent *bev, const void *data, size_t len) {
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    if (SSL_is_init_finished(ssl)) {
        SSL_write(ssl, data, (int)len);
        ERR_clear_error();
    }
}

// What is wrong with the other side's certificate; in the shim's words where it has some.
static const char *verify_error(long verified) {
    switch (verified) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return "the certificate is of an unknown authority";
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "the certificate has expired";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "the certificate is for another name";
    default:
        return X509_verify_cert_error_string(verified);
    }
}

const char *tls_error(struct bufferevent *bev) {
    unsigned long code = bufferevent_get_openssl_error(bev);
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    long verified = SSL_get_verify_result(bufferevent_openssl_get_ssl(bev));
    if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
        return verify_error(verified);
    }
    if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        return tls_cut;
    }
    return code && !reason ? "it failed" : reason;
}
