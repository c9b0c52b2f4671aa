# SPDX-License-Identifier: Apache-2.0
"""Checks the description of the API against a server: each route stands in it and the other way round, and what
each path answers, rightly asked and wrongly, is what it describes, with no field more.

usage: openapi.py URL WEB [TOKEN], where WEB is the folder of the server's sources. With a TOKEN what can be ordered is
         ordered, as the examples say; without it nothing may be. Each "id" is taken from the list of the same name,
         "node" from /api/v1/state.
       openapi.py URL WEB STATUS SLOW PROFILE: each path that describes this status answers with it now, as it describes
         it; a request that is kept, and a profile.
Exit status: 0 all is as described, 1 not."""
import itertools
import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import jsonschema

URL, WEB = sys.argv[1], pathlib.Path(sys.argv[2])
STATUS, *IDS = sys.argv[3:] if len(sys.argv) == 6 else [None]
TOKEN = sys.argv[3] if len(sys.argv) == 4 else None
PREFIX = "/api/v1/"
NOT_KEPT = 10**12
NOWHERE = "none@nowhere"
# What long names do not make too large, as these are cut or do not stand in it: only memory that is out would.
NEVER_TOO_LARGE = {"/api/v1/profiles", "/api/v1/profiles/{id}", "/api/v1/heat", "/api/v1/heat/{id}", "/api/v1/paths",
                   "/api/v1/notes"}
# What asks no database.
NEVER_ASKS = {"/api/v1/state", "/api/v1/sampling", "/api/v1/nodes/{node}/triggers"}
# What may be missing where all is well: what is told of full traces that did not go well, and what is sent, not answered.
MAY_BE_UNSEEN = {"Finding", "FlameOther", "FlameMissed", "NewNote", "Sampling", "NewFlame", "NewRun", "NewLook",
                 "NewTrigger", "TriggerName"}
if not TOKEN:
    MAY_BE_UNSEEN |= {"Steered", "FlameId", "FlameState", "FlameTold", "FlameCost", "RunId", "RunState", "RunTold"}
    MAY_BE_UNSEEN |= {"Look", "View", "ViewProcess", "ViewFunction", "Trigger", "TriggerList"}
ENDS = {"flame": "stopFlame", "sampleStacks": "stopSampling"}
wrong = []
begun = {}  # what was ordered, by what ends it: its id
seen = set()


def ask(path, method="GET", body=b"", **headers):
    """An answer, on a machine that may now and then be too busy for the server's own time limit."""
    for _ in range(5):
        status, kind, answer = ask_once(path, method, body, **headers)
        if status != "503" or b"takes too long" not in answer:
            break
        time.sleep(0.5)
    return status, kind, answer


def ask_once(path, method, body, **headers):
    """Status, type and body of an answer. Of a stream that stays open there is no body."""
    if TOKEN:
        headers.setdefault("Authorization", f"Bearer {TOKEN}")
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    question = urllib.request.Request(URL + path, method=method, headers=headers, data=body if method == "POST" else None)
    try:
        answer = urllib.request.urlopen(question, timeout=180)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        kind = answer.headers.get_content_type()
        return str(answer.status), kind, None if kind == "text/event-stream" else answer.read()


spec = json.loads(ask(PREFIX + "openapi.json")[2])
shared = spec["components"]
resolver = jsonschema.RefResolver.from_schema(spec)


def resolve(node):
    while "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        seen.add(name)
        node = resolver.resolve(node["$ref"])[1]
    return node


def mark(schema, value):
    """Notes which schemas a value has met."""
    schema = resolve(schema)
    for part in schema.get("anyOf", []) if value is not None else []:
        mark(part, value)
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                mark(part, value[name])
    elif isinstance(value, list):
        for part in value:
            mark(schema.get("items", {}), part)


def check(asked, operation, answer, wanted=None):
    status, kind, body = answer
    if wanted and status != wanted:
        wrong.append(f"{asked}: {status} instead of {wanted}: {body[:200] if body else ''}")
    if status not in operation["responses"]:
        wrong.append(f"{asked}: nothing describes the status {status}")
        return None
    content = resolve(operation["responses"][status]).get("content", {})
    if kind not in content:
        wrong.append(f"{asked}: nothing describes the type {kind}")
        return None
    if kind != "application/json":
        return None
    schema, value = content[kind]["schema"], json.loads(body)
    errors = jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(value)
    for error in itertools.islice(errors, 3):
        wrong.append(f"{asked}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    mark(schema, value)
    return value


def closed(node, where):
    """Objects name all that they hold."""
    if isinstance(node, dict):
        if "properties" in node:
            names = set(node["properties"])
            if node.get("additionalProperties") is not False or not set(node["required"]) <= names:
                wrong.append(f"{where}: it has to name all fields, and no others may come")
        for name, part in node.items():
            closed(part, f"{where}/{name}")
    elif isinstance(node, list):
        for number, part in enumerate(node):
            closed(part, f"{where}/{number}")


def sources():
    """The server's routes and parameters, as its sources name them."""
    routes = set()
    for file in WEB.glob("*.c"):
        routes |= set(re.findall(r'"(' + PREFIX + r'[a-z./_{}]*)"', file.read_text()))
    parameters = set(re.findall(r'strcmp\(key, "(\w+)"\)', (WEB / "params.c").read_text()))
    return {r + "{id}" if r.endswith("/") else r for r in routes}, parameters


def same(what, there, described):
    for name in sorted(there - described):
        wrong.append(f"{what} {name} does not stand in openapi.json")
    for name in sorted(described - there):
        wrong.append(f"{what} {name} stands in openapi.json, but the server has none")


def ids(path):
    """Numbers that the list above a path names, a few. Heat maps are of profiles of samples."""
    heat = path == "/api/v1/heat/{id}"
    value = json.loads(ask((PREFIX + "profiles" if heat else path.removesuffix("/{id}")) + "?most=5")[2])
    return [line["id"] for rows in value.values() for line in rows if not heat or line["kind"] == "samples"]


def check_parameters(path, operation, errors):
    for parameter in map(resolve, operation.get("parameters", [])):
        name = parameter["name"]
        if parameter["in"] != "query":
            continue
        more = path + ("&" if "?" in path else "?")
        if "example" in parameter and name not in urllib.parse.parse_qs(path.partition("?")[2]):
            asked = more + urllib.parse.urlencode({name: parameter["example"]}, doseq=True)
            check(asked, operation, ask(asked), "200")
        if parameter["schema"]["type"] == "integer" and errors:
            asked = f"{more}{name}=no"
            check(asked, operation, ask(asked), "400")


def check_get(path, operation):
    errors = "400" in operation["responses"]
    if path.endswith("/{id}"):
        found = ids(path)
        if not found:
            wrong.append(f"{path}: there is none to ask for")
        for number in found:
            asked = path.replace("{id}", str(number))
            check(asked, operation, ask(asked), "200")
            check_parameters(asked, operation, errors)
        path = path.replace("{id}", str(NOT_KEPT))
        check(path, operation, ask(path), "404")
    elif path == "/api/v1/heat":
        node = next(p["node"] for p in json.loads(ask(PREFIX + "profiles")[2])["profiles"] if p["kind"] == "samples")
        asked = f"{path}?last=86400&label=&" + urllib.parse.urlencode({"node": node})
        check(asked, operation, ask(asked), "200")
        check(path, operation, ask(path), "400")
        asked = asked.replace("label=", "label=nothing")
        check(asked, operation, ask(asked), "404")
        asked = asked.replace("last=86400", "points=5").replace("label=nothing", "label=")
        check_parameters(asked, operation, errors)
    elif "{node}" in path:
        asked = path.replace("{node}", urllib.parse.quote(NODE))
        check(asked, operation, ask(asked), "404" if NODE == NOWHERE else "200")
        path = path.replace("{node}", urllib.parse.quote(NOWHERE))
        check(path, operation, ask(path), "404")
    else:
        check(path, operation, ask(path), "200")
        check_parameters(path, operation, errors)
    if errors:
        for bad in ("nothing=1", "last=1&last=1", "last=1&from=1"):
            asked = f"{path}?{bad}"
            check(asked, operation, ask(asked), "400")
    check(f"{path} of another host", operation, ask(path, Host="evil.example"), "421")


def order(path, operation, body, wanted, what, **headers):
    headers.setdefault("Content_Type", "application/json")
    return check(f"{path}, {what}", operation, ask(path, "POST", body, **headers), wanted)


def check_post(path, operation):
    """What is ordered: as the example says, and wrongly."""
    example = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example", {})
    if operation["operationId"] in ENDS.values():
        example = {"id": begun.get(operation["operationId"], 1)}
    text = json.dumps(example).replace("{node}", NODE)
    path = path.replace("{node}", urllib.parse.quote(NODE))
    body = text.encode()
    if not TOKEN:
        order(path, operation, body, "403", "where nothing can be ordered")
        return
    done = next(status for status in operation["responses"] if status.startswith("2"))
    order(path, operation, b"[]", "400", "no object")
    order(path, operation, b'{"nothing": 1}', "400", "an unknown field")
    order(path, operation, body, "401", "without the token", Authorization="Bearer x")
    order(path, operation, body, "403", "from another page", Origin="https://evil.example")
    order(path, operation, body, "403", "from another site", Sec_Fetch_Site="cross-site")
    order(path, operation, body, "415", "as text", Content_Type="text/plain")
    order(path, operation, body, "421", "of another host", Host="evil.example")
    if NODE in path:
        order(path.replace(urllib.parse.quote(NODE), "none%40nowhere"), operation, body, "404", "of an unknown node")
    value = order(path, operation, body, done, "as it should be", Origin=URL, Sec_Fetch_Site="same-origin")
    if operation["operationId"] in ENDS:
        begun[ENDS[operation["operationId"]]] = (value or {}).get("id", 1)
    if operation["operationId"] == "top":
        see(path, operation, body, value)


def see(path, operation, body, value):
    """Looks until something was seen."""
    for _ in range(120):
        if not value or (value["view"] and value["view"]["functions"]):
            return
        time.sleep(0.5)
        value = order(path, operation, body, "200", "again")
    wrong.append(f"{path}: nothing was seen")


def check_all():
    closed(spec, "#")
    routes, parameters = sources()
    same("the route", routes, set(spec["paths"]))
    same("the parameter", parameters, {name for name, p in shared["parameters"].items() if p["in"] == "query"})
    for route, operations in spec["paths"].items():
        if "get" in operations:
            check_get(route, operations["get"])
        elif ask(route.replace("{node}", "a"))[0] != "405":
            wrong.append(f"{route} is answered to a GET, which does not stand in openapi.json")
        if "post" in operations:
            check_post(route, operations["post"])
        if "post" not in operations and ask(route.replace("{id}", "1"), "POST")[0] not in ("200", "405"):
            wrong.append(f"{route} takes a POST, which does not stand in openapi.json")
    for name in sorted(set(shared["schemas"]) - seen - MAY_BE_UNSEEN):
        wrong.append(f"no answer had anything of the schema {name}")
    return f"{len(spec['paths'])} paths"


def check_status():
    """Each path that describes the status."""
    answered = 0
    for route, operations in spec["paths"].items():
        operation = operations.get("get", {"responses": {}})
        spared = {"401": set(), "500": NEVER_ASKS | NEVER_TOO_LARGE, "503": NEVER_ASKS}[STATUS]
        if STATUS in operation["responses"] and route not in spared:
            path = route.replace("{id}", IDS["/slow/" not in route]) + "?most=2" + ("&node=a" if route == "/api/v1/heat" else "")
            answer = ask(path)
            busy = STATUS == "500" and answer[0] == "503" and b"takes too long" in answer[2]
            check(path, operation, answer, None if busy else STATUS)  # too busy to see that it is too large
            answered += 1
    if not answered:
        wrong.append(f"nothing describes the status {STATUS}")
    return f"{answered} paths that say {STATUS}"


def a_node():
    states = json.loads(ask(PREFIX + "state")[2])["nodes"]
    return next((state["node"] for state in states if state["connected"]), NOWHERE)


NODE = None if STATUS else a_node()
checked = check_status() if STATUS else check_all()
for line in wrong:
    print(line)
print(f"{checked}, {len(wrong)} wrong")
sys.exit(1 if wrong else 0)
