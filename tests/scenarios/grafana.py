# SPDX-License-Identifier: Apache-2.0
"""Runs each query of Grafana's dashboards, with its macros and variables replaced as Grafana does it: SQL on a
database, PromQL at a Prometheus. Each has to give rows.

usage: grafana.py FOLDER DATABASE URL. Exit status: 0 all queries give something, 1 not."""
import json
import pathlib
import re
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

FOLDER, DATABASE, URL = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
NOW = int(time.time())
wrong = []
count = 0
database = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)


def replaced(text, values):
    """Longer names first: $node is not the begin of $node_name."""
    for name in sorted(values, key=len, reverse=True):
        text = re.sub(r"\$\{%s(:\w+)?\}|\$%s\b" % (re.escape(name), re.escape(name)), lambda _: str(values[name]), text)
    return text


def quoted(rows):
    return ",".join("'" + str(row[0]).replace("'", "''") + "'" for row in rows)


def run_sql(where, text, values, series=False):
    global count
    count += 1
    sql = replaced(text, values)
    if "$" in sql:
        wrong.append(f"{where}: a macro is left in {sql}")
        return []
    try:
        cursor = database.execute(sql)
        rows = cursor.fetchall()
    except sqlite3.Error as error:
        wrong.append(f"{where}: {error}: {sql}")
        return []
    if not rows:
        wrong.append(f"{where}: no rows: {sql}")
    elif series:
        names = [column[0] for column in cursor.description]
        at = names.index("time") if "time" in names else -1
        if at < 0 or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(rows[0][at])):
            wrong.append(f"{where}: it has no times: {names} {rows[0]}")
    return rows


def run_promql(where, expression, values):
    global count
    count += 1
    query = urllib.parse.urlencode({"query": replaced(expression, values)})
    try:
        with urllib.request.urlopen(f"{URL}/api/v1/query?{query}", timeout=60) as answer:
            if not json.load(answer)["data"]["result"]:
                wrong.append(f"{where}: no series: {expression}")
    except urllib.error.HTTPError as error:
        wrong.append(f"{where}: {error.read().decode()}: {expression}")


def of_sqlite(name, board):
    values = {"__from": (NOW - 3600) * 1000, "__to": (NOW + 60) * 1000}
    for variable in board["templating"]["list"]:
        if variable["type"] == "custom":
            values[variable["name"]] = variable["query"].split(",")[0]
            continue
        where = f"{name}: {variable['name']}"
        if variable["query"]["rawQueryText"] != variable["query"]["queryText"]:
            wrong.append(f"{where}: its two texts differ")
        rows = run_sql(where, variable["query"]["rawQueryText"], values)
        values[variable["name"]] = quoted(rows if variable["multi"] else rows[:1])
    for panel in board["panels"]:
        for target in panel["targets"]:
            where = f"{name}: {panel['title']}"
            if target["rawQueryText"] != target["queryText"]:
                wrong.append(f"{where}: its two texts differ")
            run_sql(where, target["rawQueryText"], values, target["queryType"] == "time series")


def of_prometheus(name, board):
    values = {"__rate_interval": "1m"}
    for variable in board["templating"]["list"]:
        values[variable["name"]] = variable["allValue"]
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
        run_promql(f"{name}: {variable['name']}", f'count by ({label}) ({metric}{{{label}!=""}})', {})
    for panel in board["panels"]:
        for target in panel["targets"]:
            run_promql(f"{name}: {panel['title']}", target["expr"], values)


for file in sorted(FOLDER.glob("*.json")):
    dashboard = json.loads(file.read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        wrong.append(f"{file.name}: two panels have the same id")
    kind = dashboard["__inputs"][0]["pluginId"]
    {"prometheus": of_prometheus, "frser-sqlite-datasource": of_sqlite}[kind](file.name, dashboard)
for line in wrong:
    print(line)
print(f"{count} queries, {len(wrong)} wrong")
sys.exit(1 if wrong or count == 0 else 0)
