# SPDX-License-Identifier: Apache-2.0
# A collector that lies: it says that a node is connected, and answers whoever wants to see what that does with nonsense.
#   top_liar.py NODE LIE PORT_FILE
import os
import socket
import struct
import sys
import threading


def pack(value):
    """msgpack of dicts, lists, texts, bools and numbers."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


def frame(message):
    payload = pack(message)
    return struct.pack(">I", len(payload)) + payload


def view(**other):
    process = {"pid": "<0.1.0>", "name": "", "initial_call": "", "application": "", "status": "waiting", "function": "",
               "reductions": 1, "queue": 1, "queue_change": 0, "samples": 1, "unanswered": 0}
    whole = {"type": "stacks_view", "duration_us": 1000000, "samples": 1, "busy": 1, "processes": [process],
             "functions": [{"name": "m:f/0", "self": 1, "total": 1}]}
    return frame({**whole, **other})


def looks(*messages):
    return b"".join(frame({"type": "stacks_looks", "node": "../shop@host", "at": 1795640880000000000, **m}) for m in messages)


LIES = {
    "looks_no_time": looks({"at": -1, "bytes": b""}),
    "looks_no_bytes": looks({}),
    "looks_no_records": looks({"bytes": b"\x7f"}),
    "looks_of_nobody": looks({"bytes": b"\x06\x00\x00"}),
    "looks_of_ages": looks(*[{"bytes": b"\x04\x80\xc0\xdd\xee\xc1\x02" * 1000}] * 50),
    "empty": frame({"type": "stacks_view"}),
    "no_time": view(duration_us=0),
    "numbers": view(processes=["<0.1.0>", 7]),
    "negative": view(functions=[{"name": "m:f/0", "self": -1, "total": 1}]),
    "many": view(functions=[{"name": "m:f/0", "self": 1, "total": 1}] * 1000),
    "bytes": b"\x00\x00\x00\x05\xdd\x7f\xff\xff\xff",
    "long": b"\xff\xff\xff\xff",
    "steers": view(functions=[{"name": "m:\x1b[2J/0", "self": 1, "total": 1}]),
}


def serve(client, node, lie):
    try:
        with client:
            client.sendall(frame({"type": "welcome", "version": "0"}))
            while data := client.recv(65536):
                if b"\xa5nodes" in data or b"nodes" in data:
                    client.sendall(frame({"type": "node", "node": node, "connected": True}))
                    client.sendall(frame({"type": "nodes", "count": 1, "unwritten_s": 0, "database": ""}))
                elif b"stacks_stop" in data:
                    client.sendall(frame({"type": "stacks_kept", "profile": 0, "reason": "stopped", "text": ""}))
                elif b"stacks" in data:
                    client.sendall(LIES[lie])
    except OSError:
        pass  # whoever was lied to has gone


def main():
    node, lie, port_file = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as server:
        with open(port_file + ".new", "w", encoding="ascii") as f:
            f.write(str(server.getsockname()[1]))
        os.rename(port_file + ".new", port_file)
        while True:
            client, _ = server.accept()
            threading.Thread(target=serve, args=(client, node, lie), daemon=True).start()


main()
