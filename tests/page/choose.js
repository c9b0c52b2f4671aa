// SPDX-License-Identifier: Apache-2.0
// Works the choices of a page: nodes, identities, tiers, what is compared with. Usage: node choose.js URL FROM UNTIL; the database has
// two nodes, and a day earlier the same requests, each of half the time and some with an error less.
"use strict";
const { check, until, drive, tab, open, judge } = require("./browser.js");
const [base, from, till] = process.argv.slice(2);
const stretch = `from=${from}&until=${till}`;
const query = page => new URL(page.url()).searchParams;
const rows = page => page.locator(".rows tbody th").allTextContents();
const ask = async path => (await fetch(`${base}api/v1/${path}`)).json();
const near = (a, b) => Math.abs(a - b) <= 0.002 * Math.max(1, Math.abs(a), Math.abs(b));

async function compares(page, identity) {
  await open(page, `${base}?${stretch}`);
  check("without a comparison nothing is compared", await page.locator(".delta").count() === 0);
  await page.selectOption("#compare", "day");
  await page.waitForURL(/compare=day/);
  await page.waitForSelector(".explained");
  const fact = name => page.locator(".fact", { hasText: name }).locator(".delta");
  check("a percentile that is as before says so, without colour", await fact("p50").textContent() === "= as before"
    && !/more|less/.test(await fact("p50").getAttribute("class")), await fact("p50").textContent());
  const told = await page.textContent(".explained h2");
  check("a mean of twice the time is more than chance", /▲ \+.*more than chance/.test(told), told);
  check("in colour", await page.locator(".explained h2 b.more").count() === 1);
  check("the tests are named", /Welch.*order statistics.*two proportions/.test(await page.textContent(".compared-with")));

  const answer = await ask(`compare?${stretch}&before_from=${from - 86400}&before_until=${till - 86400}`);
  const whole = answer.rows.find(r => r.identity === "_total" && r.tier === "_total");
  const shifts = whole.parts.map(p => p.after_us - p.before_us);
  check("its parts add up to it", near(shifts.reduce((a, b) => a + b, 0), whole.mean_us.after - whole.mean_us.before), shifts);
  const list = await page.locator(".explained li").evaluateAll(all => all.map(li => li.querySelector(".bar").style.width));
  check("all that changed are shown, the largest first", list.length === shifts.filter(by => Math.abs(by) >= 0.0005).length
    && list.every((w, i) => i === 0 || parseFloat(w) <= parseFloat(list[i - 1])), list);

  const row = page.locator(".rows tbody tr", { hasText: identity }).first();
  check("a row's mean is compared too", await row.locator("td .delta.more").count() >= 1, await row.textContent());
  const sure = answer.rows.filter(r => r.tier === "_total" && r.identity !== "_total").flatMap(r => [r.p50_us, r.p99_us, r.mean_us, r.errors])
    .filter(c => c.sure && Math.abs(c.after - c.before) > 0.0005 * c.before).length;
  const coloured = await page.locator("td .delta.more, td .delta.less").count();
  check("a change that may be chance has no colour", await page.locator("td .delta[title*='May be chance']").count() > 0
    && await page.locator("td .delta[title*='May be chance']").evaluateAll(all => all.every(e => !/more|less/.test(e.className))));
  check("as many are coloured as are more than chance", sure > 0 && coloured === sure, [sure, coloured]);
  await judge(page, "compare-light");
  await page.goBack();
  await until("back takes the comparison off", 10, async () => await page.locator(".delta").count() === 0);
  await page.goForward();
  await until("forward puts it there again", 10, async () => await page.locator(".explained").count() === 1);
  const since = page.locator("#compare option", { hasText: "deployed <b>1.4</b>" });
  await until("a note is offered to compare with what was before it", 10, async () => await since.count() === 1);
  const value = await since.getAttribute("value");
  await page.selectOption("#compare", value);
  await page.waitForURL(/compare=before/);
  check("that is the stretch since the note", `since ${query(page).get("from")}` === value && query(page).get("until") === till, page.url());
  await page.goBack();
  await until("and back leads back", 10, async () => query(page).get("from") === from);
  await page.selectOption("#compare", "week");
  await until("a stretch of which nothing is known is told of", 10, async () =>
    /Nothing is known/.test(await page.locator(".changes").textContent()) && await page.locator(".delta").count() === 0);
}

// Earlier and later: the stretch before, the one behind; a stretch that goes on until now has none behind it.
async function steps(page) {
  const start = Number(from) + 600, now = () => query(page);
  const ends = () => page.evaluate(() => document.querySelector("#later").getAttribute("aria-disabled") === "true"
    && !document.querySelector("#later").hasAttribute("href"));
  await open(page, `${base}?last=1800`);
  check("nothing is later than the last half hour", await ends());
  await open(page, `${base}?from=${start}`);
  check("nor than since a note", await ends());
  await page.click("#earlier");
  await page.waitForURL(/until=/);
  const [begin, end] = [Number(now().get("from")), Number(now().get("until"))];
  check("earlier is the stretch before it, as long", end === start && begin < start, page.url());
  await page.waitForFunction(() => document.querySelector("#later").hasAttribute("href"));
  await page.click("#later");
  await until("later is the one behind that", 10, () => Number(now().get("from")) === start && Number(now().get("until")) === 2 * start - begin);
  await open(page, `${base}?from=${start}&until=${Math.floor(Date.now() / 1000) - 5}`);
  check("what would be later than now leads to now", await page.getAttribute("#later", "title") === "Up to now");
  await page.click("#later");
  await until("which is live, and keeps the focus", 10, async () => !now().has("from") && await ends()
    && await page.evaluate(() => document.activeElement.id) === "later");
}

// What the table tells is what the API has, and of which time.
async function percentiles(page) {
  await open(page, `${base}?from=${Number(from) + 603}&until=${till}`);
  const { rows: all, from: begin } = await ask(`table?from=${Number(from) + 603}&until=${till}`);
  const order = all.find(r => r.identity === "order" && r.tier === "_total");
  const heads = (await page.locator(".rows thead th").allTextContents()).map(t => t.replace(/ [▾▴]$/, ""));
  const cells = await page.locator(".rows tbody tr", { hasText: "order" }).first().locator("td, th").allTextContents();
  for (const [head, us] of [["p50", order.p50_us], ["p90", order.p90_us], ["p99", order.p99_us], ["p99.9", order.p999_us]]) {
    const text = cells[heads.indexOf(head)] ?? "";
    const told = parseFloat(text) * { ns: 1e-3, µs: 1, ms: 1e3, s: 1e6 }[text.replace(/[^a-zµ]/g, "")];
    check(`${head} stands in the table`, Math.abs(told - us) <= 0.006 * us, [text, us]);
  }
  const covers = await page.textContent(".covers");
  check("and how its time is rounded", /^Rounded to whole buckets of 10 s: .*\d\d:\d\d:\d0 to .*within 1\.1 %/.test(covers)
    && Date.parse(begin) / 1000 % 10 === 0, covers);
}

// What cannot be trusted says why, where the pointer is: here a full trace, in which the tiers rest.
async function saysWhy(page) {
  await open(page, `${base}?${stretch}`);
  const s = await ask(`series?${stretch}&points=240`), step = s.verdicts.findIndex(v => v && v !== "ok");
  check("there is a stretch that cannot be trusted", s.verdicts[step] === "paused", s.verdicts.filter(Boolean));
  const box = await page.locator(".plot").first().boundingBox(), at = s.start_s + (step + 0.5) * s.step_s;
  await page.mouse.move(box.x + 56 + (at - from) / (till - from) * (box.width - 64), box.y + box.height / 2);
  const notes = await page.locator(".legend").first().locator(".note").allTextContents();
  check("which says why", notes.some(n => /^tracing was paused$/.test(n)), notes);
}

async function choosesByKeys(page) {
  await open(page, `${base}?${stretch}`);
  const all = await rows(page);
  await page.focus("#identity");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#identity ~ .panel input[type=search]:focus");
  await judge(page, "choice-open");
  await page.keyboard.type("zzz");
  check("a search that finds nothing says so", /none has that/.test(await page.textContent("#identity ~ .panel [role=status]")));
  await page.keyboard.press("Escape");
  check("escape closes the choice and goes no further", await page.locator("details.pick[open]").count() === 0
    && await page.evaluate(() => document.activeElement.id) === "identity", page.url());
  await page.keyboard.press("Enter");
  await page.waitForSelector("#identity ~ .panel input[type=search]:focus");
  await page.keyboard.type("ord");
  await page.keyboard.press("Enter");
  await page.waitForURL(/identity=order/);
  await page.waitForSelector(".paths tbody tr");
  check("one identity is its own view", (await page.textContent(".facts h1")) === "order");
  check("which its title tells", /^order p99 .*kprof$/.test(await page.title()), await page.title());
  return all;
}

async function walksPaths(page) {
  const answer = await ask(`paths?${stretch}&identity=order`);
  const lines = () => page.locator(".paths tbody tr").count();
  check("its paths are a tree", answer.paths.length > 3 && await lines() === answer.paths.length, answer.paths.length);
  const fold = page.locator(".paths .fold").first();
  await fold.focus();
  await page.keyboard.press("Enter");
  await until("a key folds what is below", 5, async () => await lines() === 1);
  check("and the focus stays", await page.evaluate(() => document.activeElement.classList.contains("fold")));
  await page.keyboard.press("Enter");
  await until("and brings it back", 5, async () => await lines() === answer.paths.length);
}

async function choosesSeveral(page, all) {
  await open(page, `${base}?${stretch}`);
  await page.click("#identity");
  for (const name of ["order", "search"]) { await page.locator(".panel label", { hasText: name }).click(); }
  await page.click(".panel .primary");
  await page.waitForURL(/identity=.*identity=/);
  await until("two identities are two rows", 10, async () => String((await rows(page)).sort()) === "order,search");
  const table = await ask(`table?${stretch}&identity=order&identity=search`);
  const of = name => table.rows.find(r => r.identity === name && r.tier === "_total");
  check("and their sum", of("_total").requests === of("order").requests + of("search").requests);
  const link = page.url();
  await page.goBack();
  await until("back shows all of them", 10, async () => String(await rows(page)) === String(all));
  await open(page, link);
  check("a link shows the two", (await rows(page)).length === 2);
  await open(page, `${base}?${stretch}`);
  await page.keyboard.press("f");
  await page.keyboard.type("ord");
  await until("f searches among the rows", 5, async () => String(await rows(page)) === "order");
  check("which the address has", query(page).get("find") === "ord");
}

async function choosesNodes(page) {
  const { nodes } = await ask("nodes");
  check("there are two nodes", nodes.length === 2, nodes);
  const requests = async some => (await ask(`table?${stretch}${some.map(n => `&node=${encodeURIComponent(n)}`).join("")}`))
    .rows.find(r => r.identity === "_total" && r.tier === "_total").requests;
  const [one, two, both, every] = [await requests([nodes[0]]), await requests([nodes[1]]), await requests(nodes), await requests([])];
  check("each has requests, both have the sum", one > 0 && two > 0 && one + two === both && both === every, [one, two, both, every]);
  const injected = await ask(`table?${stretch}&node=${encodeURIComponent("' OR 1=1 --")}&identity=${encodeURIComponent("x') OR ('1'='1")}`);
  check("a name that is SQL is a name", injected.rows.length === 0, injected.rows.length);
  await open(page, `${base}?${stretch}`);
  await page.click("#node");
  await page.locator(".panel li", { hasText: nodes[0] }).locator("button").click();
  await page.waitForURL(/node=/);
  check("one node is chosen", String(query(page).getAll("node")) === nodes[0], page.url());
  await page.click("#tier");
  await page.locator(".panel label", { hasText: "storage" }).click();
  await page.click(".panel .primary");
  await page.waitForURL(/tier=storage/);
  await until("one tier is a column, the others are one", 10, async () =>
    (await page.locator(".rows thead th").allTextContents()).includes("storage")
    && !(await page.locator(".rows thead th").allTextContents()).includes("render")
    && /other tiers/.test(await page.locator(".legend").first().textContent()));
}

// What is chosen in a flame graph stands in the address: a link shows the same, back and forward lead through it.
async function choosesInFlame(page, context, wrong) {
  const { id } = (await ask("profiles")).profiles.find(p => p.kind === "full");
  const seen = of => of.evaluate(() => ({
    metric: document.querySelector(".flame-controls select").selectedOptions[0].textContent,
    way: document.querySelector(".flame-way [aria-pressed=true]").textContent,
    fold: document.querySelector(".flame-controls [type=checkbox]").checked,
    search: document.querySelector(".flame-search input").value, found: document.querySelector(".flame-found").textContent,
    crumbs: document.querySelector(".flame-crumbs").textContent, side: document.querySelector(".flame-side")?.textContent ?? "",
  }));
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  await open(page, `${base}?profile=${id}`);
  const first = await seen(page), steps = [first], asked = [];
  page.on("request", r => { if (r.url().includes("/api/v1/profiles/")) { asked.push(r.url()); } });
  const step = async (what, key, act) => {
    const before = page.url();
    await act();
    await until(`${what} is in the address`, 5, () => page.url() !== before && query(page).has(key));
    steps.push(await seen(page));
  };
  await step("the metric", "metric", () => page.selectOption(".flame-controls select", { label: "calls" }));
  await step("the direction", "way", () => page.locator(".flame-way button", { hasText: "flame" }).click());
  await step("the zoom", "zoom", async () => {
    await page.locator(".flame canvas").first().focus();
    for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "Enter"]) { await page.keyboard.press(key); }
  });
  check("it is zoomed", steps[3].crumbs.split("›").length > 3, steps[3]);
  await step("folding", "fold", () => page.check(".flame-controls [type=checkbox]"));
  await step("the function whose callers and callees are seen", "around", () =>
    page.locator(".flame-crumbs button", { hasText: "callers and callees" }).click());
  check("they are seen", /^Callers of /.test(steps[5].side), steps[5]);
  await page.locator(".flame-search input").fill("shop");
  await until("what is searched is in the address", 5, () => query(page).get("search") === "shop");
  const last = await seen(page);
  const other = await tab(context, wrong);
  await open(other, page.url());
  check("a link shows the same of a flame graph", same(await seen(other), last), [await seen(other), last]);
  await other.close();
  await page.locator(".flame-search input").fill("");
  await until("and no longer when it is not searched", 5, () => !query(page).has("search"));
  for (let i = 4; i >= 0; i--) {
    await page.goBack();
    check(`back leads to step ${i} of a flame graph`, same(await seen(page), steps[i]), [await seen(page), steps[i]]);
  }
  check("where the address is as at first", page.url() === `${base}?profile=${id}`, page.url());
  for (let i = 1; i <= 3; i++) {
    await page.goForward();
    check(`forward leads to step ${i} of it`, same(await seen(page), steps[i]), [await seen(page), steps[i]]);
  }
  check("and nothing is asked for again", asked.length === 0, asked);
  await open(page, `${base}?profile=${id}&zoom=nowhere&metric=none&around=no:thing/0&way=x&fold=x`);
  check("what a link asks for and is not there is left out", same(await seen(page), first), await seen(page));
  await page.click("#earlier");
  await page.waitForSelector(".facts, .state");
  check("from a profile the time leads to the numbers", !query(page).has("profile") && !query(page).has("zoom"), page.url());
}

async function comparesProfiles(page) {
  const [second, first] = (await ask("profiles")).profiles.filter(p => p.kind === "full");
  await open(page, `${base}?profile=${second.id}`);
  check("a profile stands alone", await page.locator(".flame.compared").count() === 0);
  await page.selectOption("#before", String(first.id));
  await page.waitForURL(/before=/);
  await page.waitForSelector(".flame.compared");
  check("what a profile is compared with is told", /before .* in /.test(await page.textContent(".flame-legend")),
    await page.textContent(".flame-legend"));
  await judge(page, "profiles-compared");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".facts");
  console.log("ok: escape leads back to the numbers");
}

drive(async browser => {
  const wrong = [];
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await tab(context, wrong);
  await compares(page, "order");
  await steps(page);
  await percentiles(page);
  await saysWhy(page);
  const all = await choosesByKeys(page);
  await walksPaths(page);
  await choosesSeveral(page, all);
  await choosesNodes(page);
  await choosesInFlame(page, context, wrong);
  await comparesProfiles(page);
  for (const [look, colorScheme, width, height] of [["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const other = await tab(await browser.newContext({ viewport: { width, height }, colorScheme }), wrong);
    await open(other, `${base}?${stretch}&compare=day`);
    await judge(other, `compare-${look}`);
    await open(other, `${base}?${stretch}&compare=day&identity=order`);
    await judge(other, `compare-identity-${look}`);
    await other.click("#identity");
    await other.waitForSelector("#identity ~ .panel input[type=search]:focus");
    await judge(other, `choice-${look}`);
  }
  check("nothing went wrong in the browser", wrong.length === 0, wrong);
});
