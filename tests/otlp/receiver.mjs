// SPDX-License-Identifier: Apache-2.0
// A receiver of OTLP over HTTP that reads what it is sent with the definitions of the OpenTelemetry project, and writes down what it has
// taken: a line of JSON for each span and each data point.
//
// usage: receiver.mjs MODULES TAKEN MODE ADDRESS [KEY CERTIFICATE]
//   MODULES  the folder node_modules with @opentelemetry/otlp-transformer
//   TAKEN    the file that lines are appended to
//   MODE     a file, read at each request: how to answer. take; status N; refuse IDENTITY: 400 to what has that in it; no-metrics: 404 to
//            these; partial N: taken, but for N of the items, it says; loop: a redirect to itself; endless: an answer without end;
//            only AUTHORIZATION: 401 to all others
//   ADDRESS  a file that the port is written to; when it has a port in it already, that one is taken
import { createRequire } from "node:module";
import * as fs from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import * as zlib from "node:zlib";

const [modules, taken, mode, address, key, certificate] = process.argv.slice(2);
const require = createRequire(modules + "/");
const root = require(modules + "/@opentelemetry/otlp-transformer/build/src/generated/root.js");
const collector = root.opentelemetry.proto.collector;
const signals = {
  "/v1/traces": collector.trace.v1.ExportTraceServiceRequest,
  "/v1/metrics": collector.metrics.v1.ExportMetricsServiceRequest,
};
const answers = {
  "/v1/traces": (n) => collector.trace.v1.ExportTraceServiceResponse.encode(
    { partialSuccess: { rejectedSpans: n, errorMessage: "some are not for me" } }).finish(),
  "/v1/metrics": (n) => collector.metrics.v1.ExportMetricsServiceResponse.encode(
    { partialSuccess: { rejectedDataPoints: n, errorMessage: "some are not for me" } }).finish(),
};

const hex = (bytes) => Buffer.from(bytes ?? []).toString("hex");
const number = (value) => value === undefined || value === null ? null : typeof value === "object" ? value.toString() : value;
const value = (v) => v.stringValue ?? v.boolValue ?? (v.intValue !== undefined && v.intValue !== null ? Number(v.intValue) : v.doubleValue);
const attributes = (list) => Object.fromEntries((list ?? []).map((a) => [a.key, value(a.value)]));

function* spans(message) {
  for (const of of message.resourceSpans) {
    for (const scope of of.scopeSpans) {
      for (const s of scope.spans) {
        yield {
          signal: "span", scope: scope.scope.name, resource: attributes(of.resource.attributes), trace: hex(s.traceId), id: hex(s.spanId),
          parent: hex(s.parentSpanId), name: s.name, kind: s.kind, flags: s.flags ?? 0, start: number(s.startTimeUnixNano),
          end: number(s.endTimeUnixNano),
          attributes: attributes(s.attributes), status: s.status?.code ?? 0,
          events: (s.events ?? []).map((e) => ({ name: e.name, at: number(e.timeUnixNano), attributes: attributes(e.attributes) })),
        };
      }
    }
  }
}

function* points(message) {
  for (const of of message.resourceMetrics) {
    for (const scope of of.scopeMetrics) {
      for (const m of scope.metrics) {
        const data = m.exponentialHistogram ?? m.sum;
        for (const p of data.dataPoints) {
          yield {
            signal: "point", metric: m.name, unit: m.unit, temporality: data.aggregationTemporality, monotonic: data.isMonotonic ?? null,
            resource: attributes(of.resource.attributes), attributes: attributes(p.attributes), start: number(p.startTimeUnixNano),
            end: number(p.timeUnixNano), count: number(p.count), sum: number(p.sum), min: number(p.min), max: number(p.max),
            scale: number(p.scale), zeroCount: number(p.zeroCount), offset: number(p.positive?.offset),
            buckets: (p.positive?.bucketCounts ?? []).map(number), value: number(p.asInt),
          };
        }
      }
    }
  }
}

function answer(request, response, body) {
  const [order, operand] = fs.readFileSync(mode, "utf8").trim().split(/ (.*)/);
  const path = request.url.replace(/^\/prefix/, "");
  const type = signals[path];
  const say = (status, text, heads) => response.writeHead(status, heads ?? { "Content-Type": "application/x-protobuf" }).end(text);
  if (!type || request.method !== "POST" || request.headers["content-type"] !== "application/x-protobuf") {
    return say(404, "no such thing\n");
  }
  const bytes = request.headers["content-encoding"] === "gzip" ? zlib.gunzipSync(body) : body;
  const items = [...(path === "/v1/traces" ? spans : points)(type.decode(bytes))];
  if (order === "status") return say(Number(operand), "not now\n");
  if (order === "refuse" && items.some((i) => i.attributes["kprof.identity"] === operand)) return say(400, `no ${operand} here\n`);
  if (order === "no-metrics" && path === "/v1/metrics") return say(404, "404 page not found\n");
  const authorization = request.headers.authorization ?? null;
  if (order === "only" && authorization !== operand) return say(401, "who are you?\n");
  if (order === "loop") return say(307, "", { Location: request.url });
  if (order === "endless") {
    response.writeHead(500);
    const more = () => { while (!response.destroyed && response.write("x".repeat(65536))); };
    response.on("drain", more);
    return more();
  }
  fs.appendFileSync(taken, items.map((i) => JSON.stringify({ ...i, authorization }) + "\n").join(""));
  return say(200, order === "partial" && items.length > 0 ? answers[path](Number(operand)) : "");
}

function take(request, response) {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    try {
      answer(request, response, Buffer.concat(chunks));
    } catch (error) {
      fs.appendFileSync(taken, JSON.stringify({ signal: "broken", error: String(error) }) + "\n");
      response.writeHead(500).end("cannot be read\n");
    }
  });
}

const server = key ? https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(certificate) }, take) : http.createServer(take);
const port = fs.existsSync(address) ? Number(fs.readFileSync(address, "utf8")) : 0;
server.listen(port, "127.0.0.1", () => {
  fs.writeFileSync(address + ".new", String(server.address().port));
  fs.renameSync(address + ".new", address);
  console.log("listening");
});
