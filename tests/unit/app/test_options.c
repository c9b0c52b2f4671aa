// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include "unit.h"

enum { ARGS = 24 };

// Runs the parser on a command line in one string, cut at spaces ('_' stands for an empty
// argument), with its output kept.
static char said[8192];

static int parse(const char *line, struct collector_options *out) {
    static char copy[1024];
    char *argv[ARGS + 2] = {(char *)"kprof-collector"}, *rest = copy, *word;
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    while ((word = strsep(&rest, " "))) {
        assert_true(argc < ARGS);
        if (*word) {
            argv[argc++] = strcmp(word, "_") == 0 ? (char *)"" : word;
        }
    }
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    fflush(stderr);
    int kept[2] = {dup(1), dup(2)};
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    optind = 0;
    int status = collector_options_parse(argc, argv, out);
    fflush(stdout);
    fflush(stderr);
    dup2(kept[0], 1);
    dup2(kept[1], 2);
    close(kept[0]);
    close(kept[1]);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
    return status;
}

static void good(void **state) {
    (void)state;
    struct collector_options o;
    assert_int_equal(parse("--listen 4711 --db k.db", &o), -1);
    assert_string_equal(said, "");
    assert_string_equal(o.address, "127.0.0.1");
    assert_int_equal(o.port, 4711);
    assert_string_equal(o.db, "k.db");
    assert_int_equal(o.bucket_s, 10);
    assert_int_equal(o.flush_ns, 1000000000);
    assert_int_equal(o.timeout_ns, 30000000000);
    assert_int_equal(o.slow_threshold_ns, 1000000000);
    assert_int_equal(o.threads, 1);
    assert_null(o.stats_log);
    assert_null(o.record);
    assert_int_equal(
        parse(
            "--db=k.db --listen=[::1]:0 --bucket 1m --flush 100ms --request-timeout 1h --slow-threshold 0 "
            "--threads 8 --stats-log s.log",
            &o),
        -1);
    assert_string_equal(o.address, "::1");
    assert_int_equal(o.port, 0);
    assert_int_equal(o.bucket_s, 60);
    assert_int_equal(o.flush_ns, 100000000);
    assert_int_equal(o.timeout_ns, 3600000000000);
    assert_int_equal(o.slow_threshold_ns, 0);
    assert_int_equal(o.threads, 8);
    assert_string_equal(o.stats_log, "s.log");
    assert_null(o.secret_file);
    assert_int_equal(parse("--listen 0.0.0.0:4711 --db k.db --secret-file s", &o), -1);
    assert_string_equal(o.address, "0.0.0.0");
    assert_string_equal(o.secret_file, "s");
    assert_null(o.tls_cert);
    assert_int_equal(parse("--listen 1 --db k.db --tls-cert c --tls-key k", &o), -1);
    assert_null(o.tls_ca);
    assert_int_equal(parse("--listen 1 --db k.db --tls-cert c --tls-key k --tls-ca a", &o), -1);
    assert_string_equal(o.tls_cert, "c");
    assert_string_equal(o.tls_key, "k");
    assert_string_equal(o.tls_ca, "a");
    assert_null(o.export_to);
    assert_int_equal(parse("--listen 1 --db k.db --export clickhouses://me@h/k "
                           "--export-password-file p --export-ca a --export-as eu-1",
                           &o),
                     -1);
    assert_string_equal(o.export_to, "clickhouses://me@h/k");
    assert_string_equal(o.export_password_file, "p");
    assert_string_equal(o.export_ca, "a");
    assert_string_equal(o.export_as, "eu-1");
    assert_int_equal(parse("--listen 1 --db k.db --export none", &o), -1);
    assert_null(o.otlp_to);
    assert_int_equal(parse("--listen 1 --db k.db --otlp https://h:4318/otlp "
                           "--otlp-headers-file f --otlp-ca a --otlp-only traces",
                           &o),
                     -1);
    assert_string_equal(o.otlp_to, "https://h:4318/otlp");
    assert_string_equal(o.otlp_headers_file, "f");
    assert_string_equal(o.otlp_ca, "a");
    assert_string_equal(o.otlp_only, "traces");
    assert_int_equal(parse("--listen 1 --db k.db --otlp http://localhost --otlp-only metrics "
                           "--otlp-headers-file f",
                           &o),
                     -1);
    assert_int_equal(parse("--listen 1 --db k.db --otlp none", &o), -1);
    static const struct {
        const char *listen, *address;
        int port;
    } listens[] = {{"localhost:1", "127.0.0.1", 1},
                   {"127.0.0.9:65535", "127.0.0.9", 65535},
                   {":80", "127.0.0.1", 80},
                   {"[127.0.0.1]:80", "127.0.0.1", 80},
                   {"0", "127.0.0.1", 0}};
    for (size_t i = 0; i < sizeof listens / sizeof *listens; i++) {
        char line[100];
        snprintf(line, sizeof line, "--listen %s --db k.db --record d", listens[i].listen);
        assert_int_equal(parse(line, &o), -1);
        assert_string_equal(o.address, listens[i].address);
        assert_int_equal(o.port, listens[i].port);
        assert_string_equal(o.record, "d");
        assert_false(o.record_values);
    }
    assert_int_equal(parse("--listen 1 --db k.db --record-values --record d", &o), -1);
    assert_true(o.record_values);
}

// Every mistake is told in one line that says what is wanted, with the status of wrong usage.
static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *line, *said;
    } wrong[] = {
        {"", "--listen [ADDR:]PORT is missing"},
        {"--db k.db", "--listen [ADDR:]PORT is missing"},
        {"--listen 1", "--db FILE is missing"},
        {"--listen", "--listen needs a value"},
        {"--listen 1 --db", "--db needs a value"},
        {"--listen 1 --db k.db extra", "unexpected argument extra"},
        {"--nonsense", "unknown option --nonsense"},
        {"--listen 1 --db k.db --nonsense=3", "unknown option --nonsense=3"},
        {"-x", "unknown option -x"},
        {"--listen x --db k.db", "--listen x: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen _ --db k.db", "--listen : want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen 65536 --db k.db",
         "--listen 65536: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen -1 --db k.db", "--listen -1: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen +1 --db k.db", "--listen +1: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen 1x --db k.db", "--listen 1x: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen 127.0.0.1: --db k.db",
         "--listen 127.0.0.1:: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen 99999999999999999999 --db k.db",
         "--listen 99999999999999999999: want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711"},
        {"--listen host.example:1 --db k.db",
         "--listen host.example:1: host.example is not an IP address"},
        {"--listen 0.0.0.0:1 --db k.db",
         "--listen 0.0.0.0: other machines can connect there, so --secret-file FILE is required; make one with: (umask 077; openssl rand -hex 32 >FILE)"},
        {"--db k.db --listen [::]:1",
         "--listen ::: other machines can connect there, so --secret-file FILE is required; make one with: (umask 077; openssl rand -hex 32 >FILE)"},
        {"--listen 1 --db k.db --secret-file", "--secret-file needs a value"},
        {"--listen 1 --db k.db --record-values", "--record-values: --record DIR is missing"},
        {"--listen 1 --db k.db --tls-cert c", "--tls-key FILE is missing"},
        {"--listen 1 --db k.db --tls-key k", "--tls-cert FILE is missing"},
        {"--listen 1 --db k.db --tls-ca a", "--tls-cert FILE is missing"},
        {"--listen [::]:1 --db k.db --tls-cert c --tls-key k --tls-ca a",
         "--listen ::: other machines can connect there, so --secret-file FILE is required; make one with: (umask 077; "
         "openssl rand -hex "
         "32 >FILE)"},
        {"--listen aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1 --db k.db",
         "--listen aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1: the address is too long"},
        {"--listen 1 --db k.db --bucket 0", "--bucket 0: want a time between 1 and 3600 seconds"},
        {"--listen 1 --db k.db --bucket 2h", "--bucket 2h: want a time between 1 and 3600 seconds"},
        {"--listen 1 --db k.db --bucket x", "--bucket x: want a time between 1 and 3600 seconds"},
        {"--listen 1 --db k.db --bucket 1500ms",
         "--bucket 1500ms: want whole seconds that divide an hour, such as 1, 10 or 60"},
        {"--listen 1 --db k.db --bucket 7",
         "--bucket 7: want whole seconds that divide an hour, such as 1, 10 or 60"},
        {"--listen 1 --db k.db --flush 99ms",
         "--flush 99ms: want a time between 0.1 and 60 seconds"},
        {"--listen 1 --db k.db --flush 61", "--flush 61: want a time between 0.1 and 60 seconds"},
        {"--listen 1 --db k.db --request-timeout 999ms",
         "--request-timeout 999ms: want a time between 1 and 3600 seconds"},
        {"--listen 1 --db k.db --request-timeout 1d",
         "--request-timeout 1d: want a time between 1 and 3600 seconds"},
        {"--listen 1 --db k.db --threads 0", "--threads 0: want a number from 1 to 8"},
        {"--listen 1 --db k.db --threads 9", "--threads 9: want a number from 1 to 8"},
        {"--listen 1 --db k.db --threads 2x", "--threads 2x: want a number from 1 to 8"},
        {"--listen 1 --db k.db --threads _", "--threads : want a number from 1 to 8"},
        {"--listen 1 --db k.db --threads 99999999999999999999",
         "--threads 99999999999999999999: want a number from 1 to 8"},
        {"--listen 1 --db k.db --slow-threshold -1",
         "--slow-threshold -1: want a time between 0 and 3600 seconds"},
        {"--listen 1 --db k.db --export-as x",
         "--export clickhouse[s]://[USER@]HOST[:PORT]/DATABASE is missing"},
        {"--listen 1 --db k.db --export none --export-ca x",
         "--export clickhouse[s]://[USER@]HOST[:PORT]/DATABASE is missing"},
        {"--listen 1 --db k.db --export clickhouse://h",
         "--export: the database behind the host is 1 to 64 letters, digits or _, a letter or _ first"},
        {"--listen 1 --db k.db --export clickhouse://u:oh@h/k",
         "--export: a password in the address is open to everybody on this machine; put it into a file, for "
         "--export-password-file or --from-password-file"},
        {"--listen 1 --db k.db --export clickhouse://h/k --export-password-file p",
         "--export: without TLS the password could be read on the way; take clickhouses://, or an engine on this "
         "machine"},
        {"--listen 1 --db k.db --export clickhouse://h/k --export-ca a",
         "--export-ca: only with --export clickhouses://, which speaks TLS"},
        {"--listen 1 --db k.db --export clickhouse://h/k --export-as _",
         "--export-as: want 1 to 200 bytes of printable text"},
        {"--listen 1 --db k.db --otlp-only traces",
         "--otlp http[s]://HOST[:PORT][/PATH] is missing"},
        {"--listen 1 --db k.db --otlp none --otlp-headers-file f",
         "--otlp http[s]://HOST[:PORT][/PATH] is missing"},
        {"--listen 1 --db k.db --otlp localhost:4318",
         "--otlp: want http://HOST[:PORT][/PATH], or https:// for TLS"},
        {"--listen 1 --db k.db --otlp http://u:oh@h",
         "--otlp: a user or a password in the address is open to everybody on this machine; put an Authorization "
         "header into a file, for --otlp-headers-file"},
        {"--listen 1 --db k.db --otlp http://h --otlp-headers-file f",
         "--otlp: without TLS the headers could be read on the way; take https://, or a receiver on this machine"},
        {"--listen 1 --db k.db --otlp http://h --otlp-ca a",
         "--otlp-ca: only with --otlp https://, which speaks TLS"},
        {"--listen 1 --db k.db --otlp http://h --otlp-only logs",
         "--otlp-only logs: want traces or metrics"},
        {"--listen 1 --db k.db --flush 99999999999999999999d",
         "--flush 99999999999999999999d: want a time between 0.1 and 60 seconds"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct collector_options o;
        char expected[512];
        snprintf(expected, sizeof expected, "kprof-collector: %s (see --help)\n", wrong[i].said);
        assert_int_equal(parse(wrong[i].line, &o), EXIT_USAGE);
        assert_string_equal(said, expected);
    }
}

static void help(void **state) {
    (void)state;
    struct collector_options o;
    assert_int_equal(parse("--help", &o), EXIT_SUCCESS);
    static const char *const options[] = {"--listen",
                                          "--db",
                                          "--bucket",
                                          "--flush",
                                          "--request-timeout",
                                          "--slow-threshold",
                                          "--stats-log",
                                          "--record",
                                          "--secret-file",
                                          "--tls-cert",
                                          "--tls-key",
                                          "--tls-ca",
                                          "--version",
                                          "Exit status",
                                          "--export-password-file",
                                          "--export-ca",
                                          "--export-as",
                                          "--otlp",
                                          "--otlp-headers-file",
                                          "--otlp-ca",
                                          "--otlp-only"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        assert_non_null(strstr(said, options[i]));
    }
    assert_int_equal(parse("--version --nonsense", &o), EXIT_SUCCESS);
    assert_string_equal(said, "kprof-collector " KPROF_VERSION "\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(mistakes),
                                       cmocka_unit_test(help)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
