// SPDX-License-Identifier: Apache-2.0
// Works a page of a live collector as hands do: by mouse, by keys alone, in two tabs, and while the collector goes.
// Usage: node hands.js URL; prints "stop it" when the collector should be stopped.
"use strict";
const { check, until, drive, tab, open, judge } = require("./browser.js");
const base = process.argv[2];
const query = page => new URL(page.url()).searchParams;
const rows = page => page.locator(".rows tbody th").allTextContents();

async function byMouse(context, wrong) {
  const page = await tab(context, wrong);
  await open(page, `${base}?last=1800`);
  const box = await page.locator(".plot").first().boundingBox();
  const x = share => box.x + 56 + share * (box.width - 64), y = box.y + box.height / 2;
  await page.mouse.move(x(0.5), y);
  check("the cursor's values stand in the legend of each chart",
    (await page.locator(".legend .item b").allTextContents()).filter(t => /^\d\d:\d\d/.test(t)).length === 3);
  await page.mouse.down();
  await page.mouse.move(x(0.75), y, { steps: 5 });
  await page.mouse.move(x(0.98), y, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/from=/);
  const length = query(page).get("until") - query(page).get("from");
  check("a drag zooms to what it covers", Math.abs(length - 0.48 * 1800) <= 40, length);
  await page.waitForFunction(() => !document.querySelector(".live.on"));
  await page.waitForSelector(".rows tbody th");
  const there = await rows(page), link = page.url(), title = await page.title();
  await page.goBack();
  await until("back leads back", 10, async () => query(page).get("last") === "1800" && await page.locator(".live.on").count() === 1);
  const other = await tab(context, wrong);
  await open(other, link);
  check("a link shows the same", await other.title() === title && String(await rows(other)) === String(there), await other.title());
  await other.close();
  await page.locator(".sort", { hasText: "Identity" }).click();
  await until("a head sorts", 10, async () => {
    const names = await rows(page);
    return names.length > 1 && String(names) === String([...names].sort((a, b) => a.localeCompare(b)));
  });
  check("as the address says", query(page).get("sort") === "identity", page.url());
  await page.close();
}

// Tab until an element is reached.
async function reach(page, selector) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(s => document.activeElement.matches(s), selector)) { return; }
  }
  throw new Error(`no key leads to ${selector}`);
}

async function byKeys(context, wrong) {
  const page = await tab(context, wrong);
  await open(page, `${base}?last=1800`);
  await reach(page, ".plot");
  await page.keyboard.press("End");
  for (let i = 0; i < 20; i++) { await page.keyboard.press("Shift+ArrowLeft"); }
  check("what the cursor is at is spoken", /p?\d/.test(await page.locator(".chart .spoken").first().textContent()));
  await page.keyboard.press("Enter");
  await page.waitForURL(/from=/);
  console.log("ok: keys zoom");
  await page.goBack();
  await page.waitForSelector(".live.on");
  await reach(page, ".rows tbody a");
  await page.keyboard.press("Enter");
  await page.waitForURL(/identity=/);
  await page.waitForSelector(".facts h1:not(.spoken)");
  await reach(page, ".kept a");
  await page.keyboard.press("Enter");
  await page.waitForURL(/slow=/);
  await reach(page, ".calls");
  const first = await page.textContent("aside h2");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  check("arrows walk through calls", /,/.test(await page.locator(".waterfall p.spoken").textContent()), first);
  const picture = () => page.evaluate(() => document.querySelector(".calls canvas").toDataURL());
  const lines = () => page.evaluate(() => (parseFloat(document.querySelector(".calls .room").style.height) - 24) / 24);
  const whole = await picture();
  await page.keyboard.press("+");
  check("plus zooms", await picture() !== whole);
  await page.keyboard.press("0");
  check("0 shows all of it", await picture() === whole);
  const { spans } = await (await fetch(`${base}api/v1/slow/${query(page).get("slow")}`)).json();
  check("a call is a line", await lines() === spans.length, [await lines(), spans.length]);
  await page.locator(".controls button", { hasText: "by process" }).focus();
  await page.keyboard.press("Enter");
  const processes = new Set(spans.map(s => `${s.node} ${s.pid}`)).size;
  check("by process there is a lane for each", await lines() >= processes && await lines() <= spans.length, [await lines(), processes]);
  await reach(page, ".calls");
  await page.keyboard.press("Home");
  const seen = new Set();
  for (let k = 0; k < spans.length; k++) {
    seen.add(await page.textContent("aside .call-facts"));
    await page.keyboard.press("ArrowDown");
  }
  check("arrows walk through lanes", seen.size >= processes, [seen.size, processes]);
  await page.keyboard.press("f");
  await page.keyboard.type("zzz");
  check("f finds", (await page.textContent(".controls [role=status]")) === "0 found");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".facts h1:not(.spoken)");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector(".facts h1:not(.spoken)") && document.querySelector(".facts"));
  console.log("ok: escape leads back, from the request to its identity to all of them");
  await page.close();
}

async function live(context, wrong) {
  const streams = [], tables = [];
  const watch = page => page.on("request", r => {
    if (r.url().includes("/events")) { streams.push(r.url()); }
    if (r.url().includes("/table")) { tables.push(r.url()); }
  });
  const one = await tab(context, wrong), two = await tab(context, wrong);
  watch(one);
  watch(two);
  await open(two, `${base}?last=1800`);
  await open(one, `${base}?last=1800`);
  const before = tables.length;
  await until("what is new arrives by itself", 40, () => tables.length >= before + 2);
  check("two tabs have one stream", streams.length === 1, streams);
  await one.bringToFront();
  await one.locator(".rows").hover();
  await until("under the pointer nothing moves, but it is told of", 40, () => one.locator(".news:visible").count());
  await one.click(".news");
  await until("and comes when asked for", 20, async () => await one.locator(".news:visible").count() === 0);
  await two.close();
  await until("the other tab has the stream when the first one goes", 20, () => streams.length === 2);
  return one;
}

drive(async browser => {
  const wrong = [];
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await byMouse(context, wrong);
  await byKeys(context, wrong);
  const page = await live(context, wrong);
  check("nothing went wrong in the browser", wrong.length === 0, wrong);
  console.log("stop it");
  await until("a collector that is gone is told of", 60, () => page.locator(".live.gone").count());
  check("with what is shown, and since when", /from \d\d:\d\d:\d\d, trying again/.test(await page.textContent(".live")));
  check("which stays", (await rows(page)).length > 0);
  await judge(page, "live-gone");
});
