// SPDX-License-Identifier: Apache-2.0
// Works the view of a profile of samples: metrics, groups, the heat map by mouse and by keys, parts compared. Usage: node samples.js URL
// FROM UNTIL: the database has such a profile of some seconds, which ended in that stretch, and one of a full trace. FROM may be
// "alone": it knows of no request.
"use strict";
const { check, until, drive, tab, open, judge } = require("./browser.js");
const [base, from, till] = process.argv.slice(2);
const query = page => new URL(page.url()).searchParams;
const answer = async path => fetch(`${base}api/v1/${path}`);
const ask = async path => (await answer(path)).json();
const looks = data => data.series.find(s => s.name === "samples").self.reduce((a, b) => a + b, 0);
const drawn = page => page.textContent(".heat-told");

async function listed(page, sampled) {
  await open(page, `${base}?from=${from}&until=${till}`);
  const line = page.locator(".kept li", { hasText: "samples" });
  const told = await line.first().textContent();
  check("the list tells of looks, not of requests", /samples, [\d.]+( k)? looks,/.test(told), told);
  await line.first().locator("a").click();
  await page.waitForSelector(".heat-map");
  check("and leads to the profile", query(page).get("profile") === String(sampled.id), page.url());
}

// A drag over shares of the heat map: from the middle of one cell to that of another.
async function drag(page, a, b, keys = []) {
  const box = await page.locator(".heat").boundingBox();
  for (const key of keys) { await page.keyboard.down(key); }
  await page.mouse.move(box.x + a[0], box.y + a[1]);
  await page.mouse.down();
  await page.mouse.move(box.x + (a[0] + b[0]) / 2, box.y + 40, { steps: 3 });
  await page.mouse.move(box.x + b[0], box.y + b[1], { steps: 3 });
  await page.mouse.up();
  for (const key of keys) { await page.keyboard.up(key); }
  await page.mouse.move(4, 4);
}

async function switches(page, { id }) {
  await open(page, `${base}?profile=${id}`);
  const data = await ask(`profiles/${id}`), labels = await page.locator(".flame-controls option").allTextContents();
  check("all metrics are there that weigh anything", String(labels) === String(data.series.map(s => s.name.replace(/_/g, " ")))
    && labels.includes("samples") && labels.includes("active") && labels.includes("reductions"), labels);
  check("what the sampler cannot see stands there", /native code shows at what comes next/.test(await page.textContent(".flame-heading")));
  check("the heat map is of what ran", await page.textContent(".heat-map h2") === "When: active");
  await page.selectOption(".flame-controls select", { label: "reductions" });
  await until("it follows the metric", 10, async () => await page.textContent(".heat-map h2") === "When: reductions");
  check("which the address has", query(page).get("metric") === "reductions", page.url());
  await page.selectOption("#group", "status");
  await page.waitForURL(/group=status/);
  const lowest = async () => {
    await page.locator(".flame canvas").first().focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    return page.textContent(".flame-told");
  };
  await until("groups are the lowest frames", 10, async () =>
    /^(running|runnable|waiting|garbage collecting|did not answer)/.test(await lowest()));
  check("and the metric stays", await page.locator(".flame-controls select").evaluate(s => s.selectedOptions[0].textContent) === "reductions");
  await page.goBack();
  await until("back takes the group off", 10, async () => await page.inputValue("#group") === "none" && !query(page).has("group"));
  await page.goBack();
  await until("and then the metric", 10, async () => await page.textContent(".heat-map h2") === "When: active");
}

async function parts(page, { id }, context, wrong) {
  await open(page, `${base}?profile=${id}`);
  const heat = await ask(`heat/${id}?metric=active`), whole = looks(await ask(`profiles/${id}`));
  check("a column is a second", heat.column_ms === 1000 && heat.columns >= 3, [heat.column_ms, heat.columns]);
  const box = await page.locator(".heat").boundingBox(), wide = Math.min(24, (box.width - 48) / heat.columns);
  const x = column => 48 + (column + 0.5) * wide, y = row => (heat.rows - row - 0.5) * 3;
  await page.mouse.move(box.x + x(1), box.y + y(10));
  check("the pointer names the range and what is in it", /^1\.2 s to 1\.22 s · ./.test(await drawn(page)), await drawn(page));
  await drag(page, [x(1), y(10)], [x(2), y(24)]);
  await page.waitForURL(/part_from=1200&part_until=2500/);
  await until("what is drawn is told", 10, async () => (await drawn(page)).startsWith("Drawn below: 1.2 s to 2.5 s"));
  const note = "Drawn is a part of it: 1.2s to 2.5s";
  await until("and in the notes", 10, async () => (await page.locator(".flame-heading p").allTextContents()).includes(note));
  const part = await ask(`profiles/${id}?part_from=1200&part_until=2500`);
  check("a part has fewer looks than the whole", looks(part) > 0 && looks(part) < whole, [looks(part), whole]);
  const rest = [await ask(`profiles/${id}?part_until=1200`), await ask(`profiles/${id}?part_from=2500`)].map(looks);
  check("and all parts together as many", rest[0] + looks(part) + rest[1] === whole, [rest, looks(part), whole]);
  await judge(page, "samples-part");
  await drag(page, [x(0), y(0)], [x(0), y(heat.rows - 1)], ["Shift"]);
  await page.waitForURL(/before_part_until=1000/);
  check("shift chooses what it is compared with", query(page).get("before") === String(id), page.url());
  await page.waitForSelector(".flame.compared");
  check("which is told", /in profile \d+, 0s to 1s/.test(await page.textContent(".flame-legend")), await page.textContent(".flame-legend"));
  await judge(page, "samples-compared");
  const other = await tab(context, wrong);
  await open(other, page.url());
  await other.waitForSelector(".flame.compared");
  check("a link shows the same", await drawn(other) === await drawn(page) && await other.title() === await page.title(), await drawn(other));
  await other.close();
  await page.goBack();
  await until("back takes the comparison off", 10, async () => await page.locator(".flame.compared").count() === 0);
  await page.goBack();
  await until("and then the part", 10, async () => (await drawn(page)).startsWith("Drawn below: all of it"));
  await page.goForward();
  await until("forward puts it there again", 10, async () => (await drawn(page)).startsWith("Drawn below: 1.2 s to 2.5 s"));
}

async function byKeys(page, { id }) {
  await open(page, `${base}?profile=${id}`);
  for (let i = 0; i < 60 && !await page.evaluate(() => document.activeElement.matches(".heat")); i++) { await page.keyboard.press("Tab"); }
  const at = async (what, first, end) => until(what, 10, () => query(page).get("part_from") === first && query(page).get("part_until") === end);
  await page.keyboard.press("ArrowRight");
  await at("keys reach the heat map, and choose a second", "0", "1000");
  await page.keyboard.press("ArrowRight"); // while the first one is being asked for
  await at("right is the next one", "1000", "2000");
  await page.keyboard.press("ArrowDown");
  await at("down is a cell earlier", "980", "1980");
  await page.keyboard.press("Shift+ArrowUp");
  await at("with shift it gets longer", "980", "2000");
  check("the focus stays there", await page.evaluate(() => document.activeElement.matches(".heat")));
  await page.keyboard.press("Escape");
  await until("escape lets go", 10, () => !query(page).has("part_from") && query(page).has("profile"));
  await page.keyboard.press("Escape");
  await until("and then leads back to the numbers", 10, () => !query(page).has("profile"));
}

async function refuses(page, sampled, full) {
  for (const [path, why] of [[`profiles/${full.id}?metric=memory`, /of samples, and the profile is a full trace/],
                             [`profiles/${full.id}?group=status`, /of samples, and the profile is a full trace/],
                             [`profiles/${full.id}?part_from=5`, /of samples, and the profile is a full trace/],
                             [`profiles/${sampled.id}?metric=wall`, /of full traces, and the profile is of samples/],
                             [`profiles/${sampled.id}?metric=no`, /metric: want one of wall/],
                             [`heat/${full.id}`, /only profiles of samples have a heat map/],
                             [`heat/${sampled.id}?part_from=80000000`, /none of the profile's time/]]) {
    const told = await answer(path), text = await told.text();
    check(`${path} is refused`, told.status === 400 && why.test(text), [told.status, text]);
  }
  await open(page, `${base}?profile=${sampled.id}&group=nobody`);
  check("and the page says why", /group: want one of none/.test(await page.textContent("main")), await page.textContent("main"));
}

// Of a database without any request.
async function alone(page, sampled) {
  await open(page, `${base}?last=86400`);
  check("no request is known", /nothing begins a request/.test(await page.textContent("main")), await page.textContent("main"));
  await page.locator(".kept a").first().click();
  await page.waitForSelector(".heat-map");
  check("and yet its profiles are listed", query(page).get("profile") === String(sampled.id), page.url());
}

drive(async browser => {
  const wrong = [];
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await tab(context, wrong), { profiles } = await ask("profiles");
  const sampled = profiles.find(p => p.kind === "samples"), full = profiles.find(p => p.kind === "full");
  if (from === "alone") { return alone(page, sampled); }
  await listed(page, sampled);
  await switches(page, sampled);
  await parts(page, sampled, context, wrong);
  await byKeys(page, sampled);
  for (const [look, colorScheme, width, height] of [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const other = await tab(await browser.newContext({ viewport: { width, height }, colorScheme }), wrong);
    await open(other, `${base}?profile=${sampled.id}&group=status`);
    await judge(other, `samples-${look}`);
    await other.close();
  }
  check("nothing went wrong in the browser", wrong.length === 0, wrong);
  await refuses(await tab(context, []), sampled, full);
});
