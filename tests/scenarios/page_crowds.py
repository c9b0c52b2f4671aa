# SPDX-License-Identifier: Apache-2.0
"""Crowds in front of the page, as 58_page_crowds wants them.

usage: page_crowds.py PORT streams N: N event streams stay open. Says "open N" once all are, "told N" once each was told
of something written, "ended" for each that ends.
       page_crowds.py PORT slow N: N connections send a head without an end, N a body, N a second question behind one
that was answered, a byte a second each. Says "begun", and once all are closed, "closed", with how many were answered.
Exit status of slow: 0 all are closed by the server."""
import resource
import selectors
import socket
import sys
import time

PORT, WHAT, N = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
HEAD = b"GET /api/v1/%b HTTP/1.1\r\nHost: localhost\r\n"
HIGH = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (HIGH, HIGH))


def say(*words):
    print(*words, flush=True)


def connect(first):
    one = socket.create_connection(("127.0.0.1", PORT), 60)
    one.sendall(first)
    one.setblocking(False)
    return one


def hear(selector, seconds):
    """What came: each connection with its bytes, none where it ended."""
    for key, _ in selector.select(seconds):
        try:
            data = key.fileobj.recv(65536)
        except BlockingIOError:
            continue
        except ConnectionError:
            data = b""
        yield key.fileobj, data


def streams():
    selector, heard = selectors.DefaultSelector(), {}
    for _ in range(N):
        one = connect(HEAD % b"events" + b"\r\n")
        heard[one] = b""
        selector.register(one, selectors.EVENT_READ)
    told = {"open": 0, "told": 0}
    while True:
        for one, data in hear(selector, 1):
            if not data:
                say("ended")
                selector.unregister(one)
            heard[one] = (heard[one] + data)[-4096:]
        for word, sign in ("open", b"retry:"), ("told", b"event: written"):
            count = sum(sign in text for text in heard.values())
            if count != told[word]:
                told[word] = count
                say(word, count)


def slow():
    selector, drips, answered = selectors.DefaultSelector(), {}, set()
    for _ in range(N):
        drips[connect(HEAD % b"nodes" + b"X-Slow: ")] = b"x"
        drips[connect(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n")] = b"x"
        drips[connect(HEAD % b"nodes" + b"\r\n")] = b"G"
    for one in drips:
        selector.register(one, selectors.EVENT_READ)
    say("begun", len(drips))
    began, closed, next_drip = time.monotonic(), 0, 0
    while closed < 3 * N and time.monotonic() - began < 300:
        for one, data in hear(selector, 0.2):
            if data.startswith(b"HTTP/1.1"):
                answered.add(one)
            if not data:
                closed += 1
                selector.unregister(one)
                del drips[one]
                one.close()
        if time.monotonic() >= next_drip:
            next_drip = time.monotonic() + 1
            for one, byte in drips.items():
                try:
                    one.send(byte)
                except OSError:
                    pass  # it is closed, and read next
                drips[one] = b"x"
    say("closed", closed, "answered", len(answered))
    sys.exit(0 if closed == 3 * N else 1)


streams() if WHAT == "streams" else slow()
