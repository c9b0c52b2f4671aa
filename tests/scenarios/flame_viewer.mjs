// SPDX-License-Identifier: Apache-2.0
// Works flame viewers in a real browser as hands and keys do: node flame_viewer.mjs MODULES FILE COMPARED FOLDER. FILE is one that
// `kprof flame --by-identity --out` wrote, COMPARED one of two profiles. Screenshots go into FOLDER. Each line that is printed is something
// that was seen, as name|value; flame_viewer.sh judges.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, file, compared, folder] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const axe = readFileSync(createRequire(`${modules}/`).resolve("axe-core/axe.min.js"), "utf8");
const say = (...words) => console.log(words.join("|"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "chromium", args: ["--no-sandbox"] });
const wide = { viewport: { width: 1280, height: 800 }, colorScheme: "light" };

// a page; what it complains of is said
async function open(path, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("console", message => say("error", message.text()));
  page.on("pageerror", error => say("error", String(error)));
  page.on("request", request => { if (!request.url().startsWith("file://")) { say("foreign", request.url()); } });
  await page.goto(`file://${path}`);
  await page.waitForSelector(".flame-table tbody tr");
  await settled(page);
  return page;
}
// a zoom's movement is over, and drawn
const settled = page => page.evaluate(() => new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 250)));
const crumbs = page => page.locator(".flame-crumbs").innerText().then(text => text.split(" callers and callees")[0].replace(/\s+/g, " ").trim());
const told = page => page.locator(".flame-told").innerText();
const picture = page => page.evaluate(() => document.querySelector("canvas").toDataURL());
// px of the row of a frame that the keys are led to
async function walk(page, keys) {
  await page.locator("canvas").first().focus();
  for (const key of keys) { await page.keyboard.press(key); }
}
async function shoot(page, name) { await page.screenshot({ path: `${folder}/flame-${name}.png` }); }
// Run through the browser's own protocol, which the page's policy does not bind.
async function accessible(page, name) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run().then(r => [r.passes.length > 15 ? 'tried' : 'not tried', ...r.violations.map(v => v.id + ' ' + v.nodes[0].target)].join(', '))", awaitPromise: true, returnByValue: true,
  });
  say("axe", name, result.value);
}

try {
  // -- one profile ----------------------------------------------------------------------------------------------------------------
  let page = await open(file, wide);
  say("title", await page.title());
  say("metrics", (await page.locator("select option").allInnerTexts()).join());
  say("hacked", await page.evaluate(() => window.hacked === undefined ? "no" : "yes"), await page.locator("#flame script, #flame img, #flame b b").count());
  await shoot(page, "light");
  await accessible(page, "light");
  const whole = await picture(page);
  const box = await page.locator("canvas").boundingBox();
  await page.mouse.move(box.x + 200, box.y + 30);
  say("hover", await told(page));
  await page.mouse.click(box.x + 200, box.y + 70);
  await settled(page);
  say("zoomed", await crumbs(page));
  say("zoom draws", await picture(page) !== whole);
  await page.keyboard.press("Escape");
  await settled(page);
  await page.mouse.move(5, 5);
  say("back", await crumbs(page), await picture(page) === whole);

  await walk(page, ["ArrowDown", "ArrowDown", "ArrowDown"]);
  say("walked", (await told(page)).split(" · ")[0]);
  await page.keyboard.press("Enter");
  await settled(page);
  say("entered", await crumbs(page));
  await page.keyboard.press("s");
  say("sandwich", await crumbs(page), (await page.locator("canvas").count()));
  await settled(page);
  await shoot(page, "sandwich");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  say("home", await crumbs(page));

  // what is chosen stands behind the # of the address
  await page.selectOption("select", "calls");
  await page.locator(".flame-way button").nth(1).click();
  await walk(page, ["ArrowUp", "ArrowUp", "ArrowUp", "Enter"]);
  const link = page.url(), there = await crumbs(page);
  const again = await page.context().newPage();
  await again.goto(link);
  await again.waitForSelector(".flame-table tbody tr");
  say("link", await crumbs(again) === there, await again.locator("select").inputValue(), await again.locator(".flame-way [aria-pressed=true]").innerText());
  await again.close();
  await page.goBack();
  say("unzoomed", await crumbs(page), await page.locator("select").inputValue());
  await page.goBack();
  await page.goBack();
  say("at first", await page.locator("select").inputValue(), new URL(page.url()).hash);

  await page.keyboard.press("/");
  await page.keyboard.type("SERVE/0$|work/0$");
  say("search", await page.locator(".flame-found").innerText());
  say("table", (await page.locator(".flame-table tbody th").allInnerTexts()).sort().join());
  await page.keyboard.press("Escape");
  say("cleared", await page.locator(".flame-found").innerText());
  await page.keyboard.type("((");
  say("no expression", await page.locator(".flame-found").innerText());
  await page.keyboard.press("Escape");

  const plain = await picture(page);
  await page.locator(".flame-table tbody tr").nth(2).hover();
  await settled(page);
  say("outline draws", await picture(page) !== plain);
  for (const metric of ["calls", "self (running)", "waiting"]) {
    await page.selectOption("select", metric);
    await page.locator(".flame-table thead button").nth(1).click(); // falling and rising
    await page.locator(".flame-table thead button").nth(1).click();
    const row = page.locator(".flame-table tbody tr").first();
    say("metric", metric, await row.locator("th").innerText(), (await row.locator("td").first().innerText()));
  }
  await walk(page, ["ArrowDown"]);
  const counted = await told(page);
  await page.selectOption("select", "wall");
  say("of another metric", counted !== "" ? await told(page) : "nothing was told");
  await page.check("input[type=checkbox]");
  await page.locator(".flame-way button").nth(1).click();
  await settled(page);
  await shoot(page, "folded");
  await page.context().close();

  page = await open(file, { ...wide, colorScheme: "dark" });
  await page.keyboard.press("/");
  await page.keyboard.type("serve");
  await settled(page);
  await shoot(page, "dark");
  await accessible(page, "dark");
  await page.context().close();

  page = await open(file, { viewport: { width: 320, height: 700 } });
  say("sideways", await page.evaluate(() => document.documentElement.scrollWidth));
  await shoot(page, "320");
  await page.context().close();

  // -- two ------------------------------------------------------------------------------------------------------------------------
  page = await open(compared, wide);
  say("totals", (await page.locator(".flame-legend").innerText()).replace(/\s+/g, " "));
  say("columns", (await page.locator(".flame-table thead th").allInnerTexts()).join());
  say("gone", (await page.locator(".flame-gone li").allInnerTexts()).join(";").slice(0, 400));
  await shoot(page, "compared");
  await accessible(page, "compared");
  await page.context().close();

  // -- a chain, with something beside it that has vanished ------------------------------------------------------------------------
  generate("chain", { title: "chain", notes: [], metric: "wall", before: "profile 1", names: ["all", "", "a:b/1", "c:d/2", "e:f/3", "g:h/4"],
    frames: { name: [0, 2, 3, 4, 5], module: [1, 1, 1, 1, 1], application: [1, 1, 1, 1, 1], kind: [5, 0, 0, 0, 0] },
    stacks: { depth: [0, 1, 2, 3, 3], frame: [0, 1, 2, 3, 4] },
    series: [{ name: "wall", unit: "ns", self: [0, 1, 0, 999, 0], before: [0, 0, 0, 400, 100] }] });
  page = await open(`${folder}/chain.html`, wide);
  say("vanished", (await page.locator(".flame-gone li").allInnerTexts()).join(";"));
  say("changes", (await page.locator(".flame-table tbody tr").allInnerTexts()).join(";").replace(/\s+/g, " "));
  const rows = () => page.evaluate(() => { // of the canvas that have anything on them
    const canvas = document.querySelector("canvas"), copy = new OffscreenCanvas(1, canvas.height).getContext("2d");
    copy.drawImage(canvas, -1, 0);
    const column = copy.getImageData(0, 0, 1, canvas.height).data;
    const at = y => column.slice(4 * y, 4 * y + 4).join();
    let n = 0;
    for (let y = 10; y < canvas.height - 10; y += 20) { n += at(y) === at(canvas.height - 2) ? 0 : 1; }
    return n;
  });
  say("rows", await rows());
  await page.check("input[type=checkbox]");
  await settled(page);
  say("rows folded", await rows());
  await page.context().close();

  // -- 100,000 frames -------------------------------------------------------------------------------------------------------------
  generate("many", many(100000));
  const start = Date.now();
  page = await open(`${folder}/many.html`, wide);
  say("many opens", Date.now() - start);
  await browser.startTracing(page, { categories: ["devtools.timeline"] });
  await walk(page, ["ArrowDown"]);
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await settled(page);
  }
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press("Escape");
    await settled(page);
  }
  const trace = JSON.parse((await browser.stopTracing()).toString());
  const frames = scriptOfFrames(trace.traceEvents).sort((a, b) => a - b);
  say("many zooms", frames.length, frames[Math.floor(frames.length / 2)], frames[frames.length - 1]);
  await shoot(page, "many");
  say("done");
} catch (error) {
  say("error", String(error));
}
await browser.close();

// Microseconds of script of each frame that was drawn: what ran for keys, timers and promises since the frame before, and for itself.
function scriptOfFrames(events) {
  const drawn = events.filter(e => e.name === "FireAnimationFrame" && e.ph === "X");
  const script = new Set(["EventDispatch", "FireAnimationFrame", "FunctionCall", "RunMicrotasks", "TimerFire"]);
  const runs = events.filter(e => script.has(e.name) && e.ph === "X" && e.tid === drawn[0]?.tid && e.pid === drawn[0]?.pid)
    .sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const frames = [];
  let end = 0, sum = 0;
  for (const run of runs) {
    if (run.ts < end) { continue; } // within the one before
    end = run.ts + run.dur;
    sum += run.tdur ?? run.dur;
    if (run.name === "FireAnimationFrame") { frames.push(sum); sum = 0; }
  }
  return frames;
}

// The file with other data in it.
function generate(name, data) {
  writeFileSync(`${folder}/${name}.html`,
    readFileSync(file, "utf8").replace(/(id="data">)[^]*?(<\/script>)/, (_, a, b) => a + JSON.stringify(data) + b));
}

// A profile of so many stacks, by chance, but always the same: 2000 functions in 8 applications, some 60 deep.
function many(count) {
  let seed = 1;
  const random = () => (seed = Math.imul(seed, 1103515245) + 12345 & 0x7fffffff) / 0x7fffffff;
  const names = [""], frames = { name: [], module: [], application: [], kind: [] };
  const frame = (name, module, application, kind) => {
    frames.name.push(names.push(name) - 1);
    frames.module.push(module ? names.push(module) - 1 : 0);
    frames.application.push(application ? names.push(application) - 1 : 0);
    frames.kind.push(kind);
  };
  frame("all", "", "", 5);
  for (let i = 0; i < 2000; i++) { frame(`module_${i % 97}:function_${i}/2`, `module_${i % 97}`, `app_${i % 8}`, 0); }
  const depth = [0], which = [0], self = [0], calls = [0];
  for (let at = 0; depth.length < count;) {
    at = Math.max(1, Math.min(60, at + (random() < 0.62 ? 1 : -Math.floor(random() * 6))));
    depth.push(at);
    which.push(1 + Math.floor(random() * 2000));
    self.push(Math.floor(1000 * random() ** 3) + 1);
    calls.push(1);
  }
  return { title: "many", notes: [], metric: "wall", names, frames, stacks: { depth, frame: which },
    series: [{ name: "wall", unit: "ns", self }, { name: "calls", unit: "calls", self: calls }] };
}
