// SPDX-License-Identifier: Apache-2.0
// What the page's drivers share: a browser in which nothing may go wrong unseen, and checks. PAGE_MODULES is where npm's packages are,
// PAGE_OUT where pictures go.
"use strict";
const path = require("path");
const modules = process.env.PAGE_MODULES;
const { chromium } = require(path.join(modules, "playwright-core"));
const axe = require.resolve(path.join(modules, "axe-core/axe.min.js"));

function check(what, holds, seen) {
  if (!holds) { throw new Error(`${what}: ${JSON.stringify(seen)}`); }
  console.log(`ok: ${what}`);
}

async function until(what, seconds, holds) {
  for (let i = 0; i < seconds * 5; i++) {
    if (await holds()) { return console.log(`ok: ${what}`); }
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  throw new Error(`not within ${seconds} s: ${what}`);
}

/** Runs work with a browser, and ends with 1 and what was wrong when it fails. */
async function drive(work) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    await work(browser);
  } catch (error) {
    console.error(`FAIL: ${error.stack}`);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

/** A tab; what its scripts complain of is in wrong. */
async function tab(context, wrong) {
  const page = await context.newPage();
  page.on("console", m => { if (["error", "warning"].includes(m.type())) { wrong.push(`console: ${m.text()} ${m.location().url}`); } });
  page.on("pageerror", error => wrong.push(`error: ${error.message}`));
  page.on("dialog", dialog => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript(() => addEventListener("securitypolicyviolation",
    event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  return page;
}

async function open(page, url) {
  await page.goto(url);
  await page.waitForSelector("main > * > *", { timeout: 30000 });
  await page.waitForFunction(() => document.title !== "kprof", null, { timeout: 30000 }).catch(() => undefined);
}

/** What every view has to be: within the window's width, without a finding of axe. And a picture of it. */
async function judge(page, name) {
  await page.screenshot({ path: path.join(process.env.PAGE_OUT, `${name}.png`) });
  const size = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(`${name} does not scroll sideways`, size[0] <= size[1], size);
  await page.evaluate(require("fs").readFileSync(axe, "utf8") + ";0");
  const found = await page.evaluate(async () => (await window.axe.run(document)).violations.map(
    v => `${v.id}: ${v.nodes.slice(0, 3).map(n => `${n.html.slice(0, 160)} ${n.failureSummary ?? ""}`).join(" | ")}`));
  check(`${name}: axe finds nothing`, found.length === 0, found);
}

module.exports = { check, until, drive, tab, open, judge };
