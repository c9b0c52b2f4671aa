# SPDX-License-Identifier: Apache-2.0
"""Compares what a receiver of OTLP has taken with what the database holds: each span and each number.

usage: compare.py traces|metrics DATABASE TAKEN. Lines of TAKEN are as receiver.mjs writes them. What was taken more than once must be the
same each time. Exit status: 0 the same, 1 not; the last line tells how much was compared."""
import hashlib
import json
import math
import sqlite3
import sys

WHAT, DATABASE, TAKEN = sys.argv[1:]
wrong = []
db = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)
db.row_factory = sqlite3.Row


def check(what, told, held):
    if told != held:
        wrong.append(f"{what}: {told!r} instead of {held!r}")


def near(what, told, held, share=1e-12):
    if told is None or abs(told - held) > share * max(abs(held), 1e-9):
        wrong.append(f"{what}: {told!r} instead of {held!r}")


def taken(signal, key):
    """The lines of a signal by what they are, once each."""
    all = {}
    for line in open(TAKEN, encoding="utf-8"):
        item = json.loads(line)
        if item["signal"] == "broken":
            wrong.append(item["error"])
        if item["signal"] == signal and all.setdefault(key(item), item) != item:
            wrong.append(f"{key(item)} is another one the second time")
    return all


def resource(item, node):
    check("the service", item["resource"], {"service.name": node.split("@")[0], "service.instance.id": node})


def compare_spans():
    spans = taken("span", lambda s: (s["trace"], s["id"]))
    roots = {s["attributes"]["kprof.request_id"]: s for s in spans.values() if "kprof.request_id" in s["attributes"]}
    below = {}
    for s in spans.values():
        below.setdefault((s["trace"], s["parent"]), []).append(s)
    compared = 0
    for r in db.execute("""SELECT k.*, n.name AS node, i.name AS identity, s.outcome AS outcome, s.reason AS why, s.uncovered_us,
            s.parallel_us FROM kept_requests AS k JOIN node_names AS n ON n.id = k.node_id JOIN identity_names AS i ON i.id = k.identity_id
            JOIN slow_requests AS s ON s.id = k.id"""):
        root = roots.get(r["id"])
        if not root:
            wrong.append(f"request {r['id']} of bucket {r['bucket_start']} is missing")
            continue
        what = f"request {r['id']}"
        resource(root, r["node"])
        asked = r["trace_id"] is not None  # by a span of somebody's trace: 2 is SERVER, 0x300 tells that its parent is elsewhere
        check(what, (root["name"], int(root["start"]), int(root["end"]), root["parent"], root["status"], root["scope"], root["kind"]),
              (r["identity"], r["begin_ns"], r["begin_ns"] + r["duration_ns"], r["parent_span_id"] or "", 2 if r["error"] else 0, "kprof",
               2 if asked else 1))
        check(what, root["flags"], 0x300 | r["trace_flags"] if asked else 0)
        check(what, root["attributes"], {
            "kprof.identity": r["identity"], "kprof.request_id": r["id"], "kprof.reason": r["why"], "kprof.outcome": r["outcome"],
            "kprof.complete": not r["cut"], "kprof.spans": r["spans"], "kprof.kept_spans": r["kept_spans"],
            "kprof.uncovered_us": r["uncovered_us"], "kprof.parallel_us": r["parallel_us"]})
        own = hashlib.sha256(f"kprof request {r['node']} {r['label']}".encode()).hexdigest()
        check(what, (root["trace"], root["id"]), (r["trace_id"] or own[:32], own[32:48]))
        compared += 1 + compare_calls(r, root, below, what)
    return compared


def compare_calls(request, root, below, what):
    """Goes down from the request: which call of the database a span is, its place below its parent tells, and its name and times."""
    rows = db.execute("""SELECT s.*, v.name, v.outcome AS how, v.self_us, v.wait_us, v.waiting_us, v.mailbox_us, v.run_queue_us
        FROM kept_spans AS s JOIN slow_spans AS v ON v.request_id = s.request_id AND v.span = s.span WHERE s.request_id = ?
        ORDER BY s.span""", (request["id"],)).fetchall()
    ids = {None: root["id"]}
    for c in rows:
        start = request["begin_ns"] + c["start_ns"]
        fits = [s for s in below.get((root["trace"], ids[c["parent"]]), [])
                if s["name"] == c["name"] and int(s["start"]) == start and int(s["end"]) == start + c["duration_ns"]
                and s["attributes"]["kprof.pid"] == c["pid"] and s["id"] not in ids.values()]
        if not fits:
            wrong.append(f"{what}: call {c['span']} ({c['name']}) is missing below its parent")
            return len(ids) - 1
        s = fits[0]
        ids[c["span"]] = s["id"]
        resource(s, request["node"])
        check(f"{what}, call {c['span']}", (s["status"], s["attributes"]), (2 if c["how"] == "error" else 0, {
            "kprof.tier": c["name"], "kprof.pid": c["pid"], "kprof.self_us": c["self_us"], "kprof.outcome": c["how"],
            "kprof.async": bool(c["async"])}))
        waited = {"kprof.wait_us": c["wait_us"], "kprof.waiting_us": c["waiting_us"], "kprof.measured": bool(c["measured"]),
                  "kprof.mailbox_us": c["mailbox_us"], "kprof.run_queue_us": c["run_queue_us"]}
        check(f"{what}, call {c['span']}", s["events"], [] if c["wait_ns"] == 0 else [{
            "name": "waiting", "at": str(start - c["wait_ns"]), "attributes": {k: v for k, v in waited.items() if v is not None}}])
    mine = [s for s in below.get((root["trace"], root["id"]), [])]
    check(f"{what}: calls of the request itself", len(mine), sum(c["parent"] is None for c in rows))
    return len(rows)


def stored(blob):
    """The counts of a histogram as schema/007_whole.sql has it: bucket i ends at 2^((i + 1) / 32) ns."""
    assert blob[0] == 1
    numbers, value, shift = [], 0, 0
    for byte in blob[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    counts, bucket = {}, 0
    for distance, count in zip(numbers[::2], numbers[1::2]):
        bucket += distance
        counts[bucket] = count
    return counts


def compare_points():
    points = taken("point", lambda p: (p["metric"], p["resource"]["service.instance.id"], p["attributes"]["kprof.identity"], p["start"]))
    compared = 0
    for r in db.execute("""SELECT s.*, n.name AS node, i.name AS identity FROM stat_rows AS s JOIN node_names AS n ON n.id = s.node_id
            JOIN identity_names AS i ON i.id = s.identity_id JOIN tier_names AS t ON t.id = s.tier_id
            WHERE t.name = '_total' AND i.name <> '_total' AND s.resolution_s = 60"""):
        key = (r["node"], r["identity"], str(r["bucket_start"] * 10**9))
        p, e = points.pop(("kprof.request.duration", *key), None), points.pop(("kprof.request.errors", *key), None)
        if not p or not e:
            wrong.append(f"{key} is missing")
            continue
        for item in (p, e):
            resource(item, r["node"])
            check(f"{key}", (item["end"], item["temporality"], item["attributes"]),
                  (str((r["bucket_start"] + 60) * 10**9), 1, {"kprof.identity": r["identity"]}))
        check(f"errors of {key}", (e["value"], e["monotonic"], e["unit"]), (str(r["errors"]), True, "{request}"))
        check(f"calls of {key}", (p["count"], p["unit"], p["scale"]), (str(r["calls"]), "s", 5))
        near(f"sum of {key}", p["sum"], r["duration_ns"] / 1e9)
        near(f"shortest of {key}", p["min"], r["min_ns"] / 1e9)
        near(f"longest of {key}", p["max"], r["max_ns"] / 1e9)
        compare_buckets(f"buckets of {key}", p, stored(r["histogram"]))
        compared += 1
    for key in points:
        wrong.append(f"{key} is in no row")
    return compared


def compare_buckets(what, point, held):
    """Each count stands in a bucket whose end is at most 0.63 % before the one that it has here, and not behind it."""
    told = {point["offset"] + i: int(n) for i, n in enumerate(point["buckets"]) if int(n) > 0}
    check(what, sum(told.values()) + int(point["zeroCount"] or 0), sum(held.values()))
    check(what, [n for _, n in sorted(told.items())], [n for b, n in sorted(held.items()) if b > 0])
    for (i, _), (b, _) in zip(sorted(told.items()), sorted(x for x in held.items() if x[0] > 0)):
        share = math.exp2((i + 1) / 32) / (math.exp2((b + 1) / 32) / 1e9)
        if not 1 / 1.0063 <= share <= 1:
            wrong.append(f"{what}: {i} for {b}, which is {share}")


compared = compare_spans() if WHAT == "traces" else compare_points()
for line in wrong[:20]:
    print(line)
print(f"{compared} {'spans' if WHAT == 'traces' else 'data points of durations, and as many of errors,'} are the same"
      if not wrong else f"{len(wrong)} are not the same")
sys.exit(1 if wrong or compared == 0 else 0)
