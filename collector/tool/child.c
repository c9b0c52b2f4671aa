// SPDX-License-Identifier: Apache-2.0
#include "tool/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 20, PATH_BYTES = 4096, CHUNK = 4096, SAID_BYTES = 1 << 20 };

// False: a signal was caught.
static bool sleep_ms(int ms) {
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return nanosleep(&wait, NULL) == 0;
}

// The path of a program in our own folder.
static bool beside(const char *name, char path[PATH_BYTES]) {
    ssize_t len = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    if (len <= 0) {
        return false;
    }
    path[len] = 0;
    char *slash = strrchr(path, '/');
    size_t room = PATH_BYTES - (size_t)(slash + 1 - path);
    return slash && (size_t)snprintf(slash + 1, room, "%s", name) < room;
}

static _Noreturn void become(const char *path, const char *const *argv, int said, int keep,
                             pid_t parent) {
    setpgid(0, 0); // Ctrl-C is for its parent
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    if (keep >= 0) {
        fcntl(keep, F_SETFD, 0);
    }
    if (getppid() == parent) {
        execv(path, (char *const *)argv);
    }
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", path, strerror(errno));
    _exit(127);
}

bool child_start(struct child *c, const char *const *argv, int keep) {
    char path[PATH_BYTES];
    pid_t parent = getpid();
    *c = (struct child){.said = memfd_create("said", MFD_CLOEXEC)};
    if (c->said < 0 || !beside(argv[0], path)) {
        return false;
    }
    fcntl(c->said, F_SETFL, O_APPEND);
    c->pid = fork();
    if (c->pid == 0) {
        become(path, argv, c->said, keep, parent);
    }
    if (c->pid < 0) {
        c->pid = 0;
        return false;
    }
    return true;
}

// The next whole line of what it has said. False: there is none yet.
static bool next_line(struct child *c, char line[CHILD_LINE_BYTES]) {
    char chunk[CHUNK];
    ssize_t len = pread(c->said, chunk, sizeof chunk, (off_t)c->taken);
    const char *end = len > 0 ? memchr(chunk, '\n', (size_t)len) : NULL;
    if (!end && len < (ssize_t)sizeof chunk) {
        return false;
    }
    size_t n = end ? (size_t)(end - chunk) : (size_t)len;
    c->taken += n + (end ? 1 : 0);
    snprintf(line, CHILD_LINE_BYTES, "%.*s", (int)n, chunk);
    return true;
}

bool child_gone(struct child *c) {
    int status = 0;
    if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid) {
        c->pid = 0;
        c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return c->pid == 0;
}

void child_last_line(struct child *c, char line[CHILD_LINE_BYTES]) {
    char chunk[CHUNK];
    off_t size = c->said >= 0 ? lseek(c->said, 0, SEEK_END) : 0;
    off_t from = size > CHUNK ? size - CHUNK : 0;
    ssize_t len = size > 0 ? pread(c->said, chunk, sizeof chunk, from) : 0;
    while (len > 0 && chunk[len - 1] == '\n') {
        len--;
    }
    const char *before = len > 0 ? memrchr(chunk, '\n', (size_t)len) : NULL;
    const char *start = before ? before + 1 : chunk;
    int n = len > 0 ? (int)(chunk + len - start) : 0;
    snprintf(line, CHILD_LINE_BYTES, "%.*s", n, start);
}

bool child_line(struct child *c, const char *text, int ms, char line[CHILD_LINE_BYTES]) {
    bool over = false;
    for (;;) {
        while (next_line(c, line)) {
            if (strstr(line, text)) {
                return true;
            }
        }
        if (over) {
            child_last_line(c, line);
            return false;
        }
        over = child_gone(c) || ms <= 0; // what it said last is read once more
        over = !sleep_ms(STEP_MS) || over;
        ms -= STEP_MS;
    }
}

void child_forget(struct child *c) {
    // it appends, so that what it says next stands at the new end
    if (lseek(c->said, 0, SEEK_END) > SAID_BYTES && ftruncate(c->said, 0) == 0) {
        c->taken = 0;
    }
}

int child_stop(struct child *c, int ms) {
    if (c->pid > 0) {
        kill(c->pid, SIGTERM);
    }
    for (; !child_gone(c) && ms > 0; ms -= STEP_MS) {
        sleep_ms(STEP_MS);
    }
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        c->pid = 0;
        c->status = 128 + SIGKILL;
    }
    return c->status;
}

int child_end(struct child *c, int ms) {
    int status = child_stop(c, ms);
    if (c->said >= 0) {
        close(c->said);
    }
    c->said = -1;
    return status;
}
