// SPDX-License-Identifier: Apache-2.0
// Lookups that take longer than their caller can wait: the resolver is played here.
#include "unit.h"

#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/lookup.h"
#include "fail_alloc.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answers;    // whether slow hosts have an answer
static int asked, told; // how many lookups of them were begun and ended

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found) {
    if (strcmp(host, "none") == 0) {
        return EAI_NONAME;
    }
    if (strcmp(host, "slow") == 0) {
        pthread_mutex_lock(&mutex);
        asked++;
        pthread_cond_broadcast(&changed);
        while (!answers) {
            pthread_cond_wait(&changed, &mutex);
        }
        told++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        host = "127.0.0.1";
    }
    return __real_getaddrinfo(host, service, hints, found);
}

static void let_answer(bool let) {
    pthread_mutex_lock(&mutex);
    answers = let;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_told(int count) {
    pthread_mutex_lock(&mutex);
    while (told < count) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static const int64_t PATIENT = INT64_MAX;

static void finds(const char *host) {
    struct addrinfo *found;
    assert_int_equal(lookup(host, AF_INET, PATIENT, &found), 0);
    assert_non_null(found);
    assert_int_equal(found->ai_family, AF_INET);
    freeaddrinfo(found);
}

static void quick(void **state) {
    (void)state;
    struct addrinfo *found;
    finds("127.0.0.1");
    assert_int_equal(lookup("none", AF_UNSPEC, PATIENT, &found), EAI_NONAME);
    assert_null(found);
}

static void late(void **state) {
    (void)state;
    struct addrinfo *found;
    let_answer(false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lookup("slow", AF_INET, 0, &found), EAI_AGAIN);
        assert_null(found);
    }
    let_answer(true);
    finds("slow");
    assert_int_equal(asked, 1); // the last call took up what the first one had begun
    // what nobody waits for any more holds nobody up, and is freed by itself
    let_answer(false);
    assert_int_equal(lookup("slow", AF_INET, 0, &found), EAI_AGAIN);
    finds("127.0.0.1");
    let_answer(true);
    wait_told(2);
    // another family is another lookup
    let_answer(false);
    assert_int_equal(lookup("slow", AF_INET6, 0, &found), EAI_AGAIN);
    let_answer(true);
    finds("slow");
    wait_told(4);
    assert_int_equal(asked, 4);
}

static void no_memory(void **state) {
    (void)state;
    struct addrinfo *found;
    fail_alloc_at(0);
    int error = lookup("127.0.0.1", AF_INET, PATIENT, &found);
    fail_alloc_at(-1);
    assert_int_equal(error, EAI_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(quick), cmocka_unit_test(late),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
