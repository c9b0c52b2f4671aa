// SPDX-License-Identifier: Apache-2.0
#include "export/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/limits.h"

enum {
    STATUS_OK = 200,
    URL_BYTES = 8192,
    HEADER_BYTES = LIMIT_EXPORT_PASSWORD_BYTES + 64,
    CONNECT_SECONDS = 10
};

struct http {
    CURL *easy;
    CURLM *multi;
    struct curl_slist *heads, *packed; // of a request; packed: with the body's encoding
    char base[TARGET_HOST_BYTES + TARGET_PATH_BYTES + 40]; // http://host:port/path
    char error[CURL_ERROR_SIZE];
    struct buffer url;
    uint8_t body[LIMIT_EXPORT_ANSWER_BYTES]; // of the answer
    size_t body_len, head_len;
    const struct http_question *asked;
    size_t taken; // by the question's own function
    uint32_t exception, retry_s;
    long answer_ms; // of the options
    bool cut, head_cut;
    atomic_bool stopped;
};

// -- what comes -----------------------------------------------------------------------------------

// What a question takes by itself: 0 ends the transfer.
static size_t hand_over(struct http *h, const char *data, size_t len) {
    h->cut = len > h->asked->most - h->taken;
    if (h->cut || !h->asked->take(h->asked->to, slice_of(data, len))) {
        return 0;
    }
    h->taken += len;
    return len;
}

static size_t take_body(char *data, size_t one, size_t n, void *context) {
    struct http *h = context;
    long status = 0;
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
    if (h->asked->take && status == STATUS_OK && h->exception == 0) {
        return hand_over(h, data, one * n);
    }
    size_t room = sizeof h->body - h->body_len;
    size_t taken = one * n < room ? one * n : room;
    memcpy(h->body + h->body_len, data, taken);
    h->body_len += taken;
    h->cut = taken < one * n;
    return taken; // less than it was given ends the transfer
}

// The number of a head, name with its colon, where that is the one.
static void take_number(const char *data, size_t len, const char *name, uint32_t *out) {
    size_t from = strlen(name);
    if (len > from + 1 && strncasecmp(data, name, from) == 0) {
        char digits[16] = "";
        from += data[from] == ' ';
        memcpy(digits, data + from, len - from < sizeof digits ? len - from : sizeof digits - 1);
        *out = (uint32_t)strtoul(digits, NULL, 10);
    }
}

static size_t take_head(char *data, size_t one, size_t n, void *context) {
    struct http *h = context;
    size_t len = one * n;
    h->head_len += len;
    h->head_cut = h->head_len > LIMIT_EXPORT_HEAD_BYTES;
    take_number(data, len, "X-ClickHouse-Exception-Code:", &h->exception);
    take_number(data, len, "Retry-After:", &h->retry_s);
    return h->head_cut ? 0 : len;
}

// -- setting up -----------------------------------------------------------------------------------

static void start_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

// Adds a header; false without memory, and the list is as it was.
static bool add_head(struct curl_slist **list, const char *head) {
    struct curl_slist *longer = curl_slist_append(*list, head);
    *list = longer ? longer : *list;
    return longer;
}

static bool add_word(struct curl_slist **list, const char *name, const char *value) {
    char head[HEADER_BYTES];
    snprintf(head, sizeof head, "%s: %s", name, value);
    bool ok = add_head(list, head);
    OPENSSL_cleanse(head, sizeof head);
    return ok;
}

// The user and the password go as headers: addresses stand in logs on the way.
static bool make_heads(struct curl_slist **list, const struct http_options *o) {
    bool ok = add_head(list, "Expect:") &&
              add_word(list, "Content-Type", o->type ? o->type : "application/octet-stream") &&
              (!o->target->user[0] || add_word(list, "X-ClickHouse-User", o->target->user)) &&
              (!o->password || add_word(list, "X-ClickHouse-Key", o->password));
    for (const char *const *head = o->heads; ok && head && *head; head++) {
        ok = add_head(list, *head);
    }
    return ok;
}

static void set_options(struct http *h, const struct http_options *o) {
    CURL *easy = h->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // whatever the environment says
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "kprof-collector/" KPROF_VERSION);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, h->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, h);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, h);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (o->ca) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

struct http *http_new(const struct http_options *o) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http *h = calloc(1, sizeof *h);
    pthread_once(&once, start_curl);
    if (!h) {
        return NULL;
    }
    const char *host = o->target->host;
    bool brackets = strchr(host, ':');
    snprintf(h->base, sizeof h->base, "%s://%s%s%s:%u/%s", o->target->tls ? "https" : "http",
             brackets ? "[" : "", host, brackets ? "]" : "", o->target->port, o->target->path);
    h->url = buffer_make(URL_BYTES);
    h->answer_ms = o->answer_ms;
    h->easy = curl_easy_init();
    h->multi = curl_multi_init();
    if (!h->easy || !h->multi || !make_heads(&h->heads, o) || !make_heads(&h->packed, o) ||
        !add_head(&h->packed, "Content-Encoding: gzip")) {
        http_free(h);
        return NULL;
    }
    set_options(h, o);
    return h;
}

static void free_heads(struct curl_slist *list) {
    for (struct curl_slist *one = list; one; one = one->next) {
        OPENSSL_cleanse(one->data, strlen(one->data));
    }
    curl_slist_free_all(list);
}

void http_free(struct http *h) {
    if (h) {
        curl_easy_cleanup(h->easy);
        curl_multi_cleanup(h->multi);
        free_heads(h->heads);
        free_heads(h->packed);
        buffer_free(&h->url);
        free(h);
    }
}

void http_stop(struct http *h) {
    atomic_store(&h->stopped, true);
    curl_multi_wakeup(h->multi);
}

bool http_stopped(const struct http *h) {
    return atomic_load(&h->stopped);
}

// -- asking ---------------------------------------------------------------------------------------

static void put_escaped(struct buffer *out, const char *text) {
    for (const char *c = text; *c; c++) {
        if (isalnum((unsigned char)*c) || strchr("-_.", *c)) {
            buffer_append(out, c, 1);
        } else {
            buffer_printf(out, "%%%02X", (unsigned char)*c);
        }
    }
}

static bool make_url(struct http *h, const struct http_question *q) {
    buffer_reset(&h->url);
    buffer_text(&h->url, h->base);
    buffer_text(&h->url, q->path ? q->path : "");
    if (q->sql) {
        buffer_text(&h->url, "?query=");
        put_escaped(&h->url, q->sql);
    }
    if (q->setting) {
        buffer_printf(&h->url, "%s%s", q->sql ? "&" : "?", q->setting);
    }
    buffer_append(&h->url, "", 1);
    return !h->url.failed;
}

// Goes on until it is over, one way or the other.
static CURLcode perform(struct http *h) {
    enum { LOOK_MS = 1000 };
    int running = 1, left;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK) {
        return CURLE_OUT_OF_MEMORY;
    }
    while (running && !atomic_load(&h->stopped)) {
        if (curl_multi_perform(h->multi, &running) != CURLM_OK ||
            (running && curl_multi_poll(h->multi, NULL, 0, LOOK_MS, NULL) != CURLM_OK)) {
            break;
        }
    }
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        result = m->msg == CURLMSG_DONE ? m->data.result : result;
    }
    curl_multi_remove_handle(h->multi, h->easy);
    return result;
}

// Milliseconds that it may take.
static long patience(const struct http *h, const struct http_question *q) {
    enum { MS = 1000, NS = 1000000 };
    int64_t most = h->answer_ms ? h->answer_ms : (int64_t)LIMIT_EXPORT_ANSWER_SECONDS * MS;
    int64_t left = q->deadline_ns ? (q->deadline_ns - clock_monotonic()) / NS : most;
    return left < 1 ? 1 : (long)(left < most ? left : most);
}

bool http_ask(struct http *h, const struct http_question *q, struct answer *out, char *why) {
    h->asked = q;
    h->body_len = h->head_len = h->taken = h->exception = h->retry_s = 0;
    h->cut = h->head_cut = false;
    h->error[0] = 0;
    if (!make_url(h, q)) {
        snprintf(why, CHANGE_REASON_BYTES, "no memory for its address");
        return false;
    }
    curl_easy_setopt(h->easy, CURLOPT_URL, (const char *)h->url.data);
    curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, q->packed ? h->packed : h->heads);
    curl_easy_setopt(h->easy, CURLOPT_TIMEOUT_MS, patience(h, q));
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE, (long)q->body.len);
    curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS,
                     q->body.len > 0 ? (const char *)q->body.data : "");
    CURLcode result = perform(h);
    *out = (struct answer){.exception = h->exception,
                           .body = slice_of(h->body, h->body_len),
                           .cut = h->cut,
                           .retry_s = h->retry_s};
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &out->status);
    if (result == CURLE_OK || (h->cut && !h->head_cut)) {
        return true;
    }
    snprintf(why, CHANGE_REASON_BYTES, "%s",
             h->head_cut                ? "the head of its answer has no end"
             : atomic_load(&h->stopped) ? "stopped"
             : h->error[0]              ? h->error
                                        : curl_easy_strerror(result));
    return false;
}
