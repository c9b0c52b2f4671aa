// SPDX-License-Identifier: Apache-2.0
#include "app/service.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"

enum { HANDED = 3 };

static void set_number(const char *name, long n) {
    char text[32];
    snprintf(text, sizeof text, "%ld", n);
    setenv(name, text, 1);
}

// A socket as descriptor 3, and an environment that tells of it.
static void hand_over(int family, int type, bool listening) {
    int fd = socket(family, type, 0);
    assert_true(fd >= 0);
    if (family == AF_INET) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    } else {
        struct sockaddr_un un = {.sun_family = AF_UNIX}; // a name that the kernel finds
        assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)), 0);
    }
    if (listening) {
        assert_int_equal(listen(fd, 1), 0);
    }
    if (fd != HANDED) {
        assert_int_equal(dup2(fd, HANDED), HANDED);
        close(fd);
    }
    set_number("LISTEN_PID", getpid());
    set_number("LISTEN_FDS", 1);
}

static int taken(char address[LISTEN_ADDRESS_BYTES], uint16_t *port, const char **why) {
    *why = "";
    return service_socket(address, port, why);
}

static void takes_a_listening_socket(void **state) {
    (void)state;
    char address[LISTEN_ADDRESS_BYTES];
    uint16_t port = 0;
    const char *why;
    hand_over(AF_INET, SOCK_STREAM, true);
    assert_true(service_activated());
    assert_int_equal(taken(address, &port, &why), HANDED);
    assert_string_equal(address, "127.0.0.1");
    assert_int_not_equal(port, 0);
    assert_int_equal(fcntl(HANDED, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(HANDED, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_null(getenv("LISTEN_FDS"));
    assert_false(service_activated());
    close(HANDED);
}

static void refuses_what_is_none(void **state) {
    (void)state;
    char address[LISTEN_ADDRESS_BYTES];
    uint16_t port;
    const char *why;
    hand_over(AF_INET, SOCK_DGRAM, false);
    assert_int_equal(taken(address, &port, &why), -1);
    assert_non_null(strstr(why, "no listening stream socket"));
    hand_over(AF_INET, SOCK_STREAM, false);
    assert_int_equal(taken(address, &port, &why), -1);
    assert_non_null(strstr(why, "no listening stream socket"));
    hand_over(AF_UNIX, SOCK_STREAM, true);
    assert_int_equal(taken(address, &port, &why), -1);
    assert_non_null(strstr(why, "not of TCP"));
    set_number("LISTEN_PID", getpid());
    set_number("LISTEN_FDS", 2);
    assert_int_equal(taken(address, &port, &why), -1);
    assert_non_null(strstr(why, "more than one"));
    close(HANDED);
    set_number("LISTEN_PID", getpid());
    set_number("LISTEN_FDS", 1);
    assert_int_equal(taken(address, &port, &why), -1); // nothing there
}

static void meant_for_others(void **state) {
    (void)state;
    set_number("LISTEN_PID", getpid() + 1);
    set_number("LISTEN_FDS", 1);
    assert_false(service_activated());
    const char *const bad[] = {"", "x", "0", "-1", "+1", "1x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_number("LISTEN_PID", getpid());
        setenv("LISTEN_FDS", bad[i], 1);
        assert_false(service_activated());
    }
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    assert_false(service_activated());
}

// What arrives on a notify socket of this address when READY=1 is told to `variable`.
static void notified(const struct sockaddr_un *at, socklen_t len, const char *variable) {
    char got[64] = {0};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)at, len), 0);
    setenv("NOTIFY_SOCKET", variable, 1);
    service_notify("READY=1");
    assert_int_equal(recv(fd, got, sizeof got - 1, MSG_DONTWAIT), 7);
    assert_string_equal(got, "READY=1");
    close(fd);
}

static void notifies(void **state) {
    (void)state;
    char dir[] = "/tmp/kprof-unit-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct sockaddr_un file = {.sun_family = AF_UNIX}, abstract = {.sun_family = AF_UNIX};
    snprintf(file.sun_path, sizeof file.sun_path, "%s/notify", dir);
    notified(&file, sizeof file, file.sun_path);
    unlink(file.sun_path);
    rmdir(dir);
    char name[64];
    int n = snprintf(name, sizeof name, "@kprof-unit-%d", getpid());
    memcpy(abstract.sun_path + 1, name + 1, (size_t)n - 1);
    notified(&abstract, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n), name);
}

static void nobody_to_notify(void **state) {
    (void)state;
    char huge[300];
    memset(huge, '/', sizeof huge);
    huge[sizeof huge - 1] = 0;
    const char *const addresses[] = {
        "", "/", "@", "vsock:1:2", "relative/path", "/tmp/kprof-unit-nobody-is-here", huge};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        setenv("NOTIFY_SOCKET", addresses[i], 1);
        service_notify("READY=1");
    }
    unsetenv("NOTIFY_SOCKET");
    service_notify("READY=1");
}

static void watchdog(void **state) {
    (void)state;
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(service_watchdog_us(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    assert_int_equal(service_watchdog_us(), 15000000);
    set_number("WATCHDOG_PID", getpid());
    assert_int_equal(service_watchdog_us(), 15000000);
    set_number("WATCHDOG_PID", getpid() + 1);
    assert_int_equal(service_watchdog_us(), 0);
    set_number("WATCHDOG_PID", getpid());
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(service_watchdog_us(), 0);
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_listening_socket), cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(meant_for_others),         cmocka_unit_test(notifies),
        cmocka_unit_test(nobody_to_notify),         cmocka_unit_test(watchdog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
