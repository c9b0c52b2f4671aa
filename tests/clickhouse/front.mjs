// SPDX-License-Identifier: Apache-2.0
// Today's ClickHouse, as npm has it: a library that has no server. This is one, for HTTP and HTTPS, as far as kprof asks: a statement, or
// rows for an INSERT behind it, gzip, a user and a password, and how errors are told.
//   node front.mjs FOLDER PORT TLS-PORT MODULES
// FOLDER has users.xml, server.pem and server.key; data lies in its today/. MODULES is a node_modules with the library.
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import path from "node:path";
import zlib from "node:zlib";

const [folder, port, tlsPort, modules] = process.argv.slice(2);
const library = createRequire(path.join(modules, "x.js"))("@chdb/lib-linux-x64-gnu");
const engine = library.CreateConnection(path.join(folder, "today"));
const run = async sql => (await library.QueryAsyncConnection(engine, sql, "TabSeparated")).bytes;

class Refusal extends Error {
  constructor(code, status, text) { super(`Code: ${code}. DB::Exception: ${text}`); Object.assign(this, { code, status }); }
}

function enter(headers) {
  const password = /<password>(.*)<\/password>/.exec(fs.readFileSync(path.join(folder, "users.xml"), "utf8"))[1];
  if (headers["x-clickhouse-user"] !== "kprof" || headers["x-clickhouse-key"] !== password) {
    throw new Refusal(516, 403, "Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)");
  }
}

async function known(name) {
  if (name !== "wait_end_of_query" && (await run(`SELECT 1 FROM system.settings WHERE name = '${name}'`)).length === 0) {
    throw new Refusal(115, 404, `Unknown setting '${name}'. (UNKNOWN_SETTING)`);
  }
}

// The rows of an INSERT come from a file: the library takes text alone.
let files = 0;
async function insert(sql, rows) {
  const file = path.join(folder, `rows${files++}`);
  fs.writeFileSync(file, rows);
  try {
    return await run(sql.replace(/ FORMAT (\w+)$/, ` FROM INFILE '${file}' FORMAT $1`));
  } finally {
    fs.unlinkSync(file);
  }
}

async function answer(request, body) {
  enter(request.headers);
  const question = new URL(request.url, "http://x").searchParams;
  for (const name of question.keys()) {
    if (name !== "query") { await known(name); }
  }
  const sql = question.get("query");
  const data = request.headers["content-encoding"] === "gzip" ? zlib.gunzipSync(body) : body;
  return sql ? insert(sql, data) : run(data.toString());
}

// One after the other, as they come.
let turn = Promise.resolve();
function serve(request, response) {
  const chunks = [];
  request.on("data", chunk => chunks.push(chunk));
  request.on("end", () => {
    turn = turn.then(async () => {
      try {
        const bytes = await answer(request, Buffer.concat(chunks));
        response.writeHead(200, { "Content-Length": bytes.length });
        response.end(bytes);
      } catch (error) {
        const code = error.code ?? /^Code: (\d+)\./.exec(error.message)?.[1] ?? 1;
        response.writeHead(error.status ?? 500, { "X-ClickHouse-Exception-Code": code });
        response.end(`${error.message}\n`);
      }
    });
  });
}

http.createServer(serve).listen(Number(port), "127.0.0.1");
https.createServer({ cert: fs.readFileSync(path.join(folder, "server.pem")), key: fs.readFileSync(path.join(folder, "server.key")) }, serve)
  .listen(Number(tlsPort), "127.0.0.1");
