# SPDX-License-Identifier: Apache-2.0
"""Compares the histograms of a scrape in protobuf with those that the database holds.

usage: native_histograms.py SCRAPE DATABASE MESSAGES PAGE, where MESSAGES is the folder with Prometheus's description of
its messages, and PAGE the page's address. Exit status: 0 the same, 1 not."""
import collections
import math
import re
import sqlite3
import subprocess
import sys
import urllib.request

SCRAPE, DATABASE, MESSAGES, PAGE = sys.argv[1:]
SECOND = round(32 * math.log2(1e9))  # in buckets of a thirty-second of a power of two
wrong = []


def check(what, told, held):
    if told != held:
        wrong.append(f"{what}: {told} instead of {held}")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def families(data):
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        text = subprocess.run(
            ["protoc", "--decode=io.prometheus.client.MetricFamily", f"-I{MESSAGES}", "io/prometheus/client/metrics.proto"],
            input=data[at:at + length], stdout=subprocess.PIPE, check=True).stdout.decode()
        if re.search(r"^\s*\d+[:{ ]", text, re.M):
            wrong.append(f"fields that Prometheus does not know: {text[:300]}")
        yield message(iter(text.splitlines()))
        at += length


def message(lines):
    """protoc's text of a message: a list of values by each field's name."""
    fields = collections.defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith("{"):
            fields[line[:-2]].append(message(lines))
        else:
            name, value = line.split(": ", 1)
            fields[name].append(value[1:-1] if value[0] == '"' else value if value[0].isalpha() else float(value))
    return fields


def one(fields, name, otherwise=0):
    return fields[name][0] if fields[name] else otherwise


def stored(blob):
    counts, bucket, at = collections.Counter(), 0, 1
    while at < len(blob):
        distance, at = varint(blob, at)
        count, at = varint(blob, at)
        bucket += distance
        counts[bucket] += count
    return counts


def native(histogram):
    counts, bucket, count, deltas = collections.Counter(), 0, 0, iter(histogram["positive_delta"])
    for span in histogram["positive_span"]:
        bucket += int(one(span, "offset"))
        for _ in range(int(span["length"][0])):
            count += int(next(deltas))
            if count:
                counts[bucket - 1 + SECOND] = count
            bucket += 1
    check("deltas that are in no span", list(deltas), [])
    if one(histogram, "zero_count"):
        counts[0] = int(one(histogram, "zero_count"))
    return counts


def held():
    rows = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True).execute(
        """SELECT n.name, i.name, t.name, calls, duration_ns, histogram FROM stat_rows AS s
           JOIN node_names AS n ON n.id = node_id JOIN identity_names AS i ON i.id = identity_id
           JOIN tier_names AS t ON t.id = tier_id WHERE resolution_s = 10 AND i.name <> '_total'""")
    all_rows = collections.defaultdict(lambda: [0, 0, collections.Counter()])
    for node, identity, tier, calls, duration_ns, blob in rows:
        row = all_rows[node, identity, tier]
        row[0] += calls
        row[1] += duration_ns
        row[2] += stored(blob)
    return all_rows


def check_exemplar(exemplar, bound):
    labels = {label["name"][0]: label["value"][0] for label in exemplar["label"]}
    check("an exemplar's link", labels["url"], f"{PAGE}/?slow={labels['slow']}")
    if exemplar["value"][0] > bound:
        wrong.append(f"an exemplar of {exemplar['value'][0]} s up to {bound}")
    urllib.request.urlopen(f"{PAGE}/api/v1/slow/{labels['slow']}").close()


def check_histogram(who, histogram, row):
    check(f"{who}: schema", one(histogram, "schema"), 5)
    check(f"{who}: calls", one(histogram, "sample_count"), row[0])
    check(f"{who}: seconds", round(one(histogram, "sample_sum") * 1e9), row[1])
    check(f"{who}: buckets", native(histogram), row[2])
    check(f"{who}: the last classic bucket", one(histogram["bucket"][-1], "cumulative_count"), row[0])
    exemplars = [(one(b, "exemplar"), float(b["upper_bound"][0])) for b in histogram["bucket"] if b["exemplar"]]
    for exemplar, bound in exemplars:
        check_exemplar(exemplar, bound)
    return len(exemplars)


rows, exemplars, seen = held(), 0, set()
with open(SCRAPE, "rb") as file:
    found = {family["name"][0]: family for family in families(file.read())}
for metric in found["kprof_call_duration_seconds"]["metric"]:
    who = tuple(label["value"][0] for label in metric["label"])
    seen.add(who)
    exemplars += check_histogram(who, metric["histogram"][0], rows[who])
check("histograms", seen, set(rows))
complete = sum(row[0] for who, row in rows.items() if who[2] == "_total")
check("requests", sum(one(m["counter"][0], "value") for m in found["kprof_requests_total"]["metric"]
                      if m["label"][2]["value"] == ["_total"]), complete)
check("nodes that are connected", one(found["kprof_nodes_connected"]["metric"][0]["gauge"][0], "value"), 0)
if not exemplars:
    wrong.append("no exemplar")
for line in wrong:
    print(line)
print(f"{len(rows)} histograms of {complete} requests are as in the database, {exemplars} exemplars lead to requests")
sys.exit(1 if wrong else 0)
