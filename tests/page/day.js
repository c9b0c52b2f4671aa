// SPDX-License-Identifier: Apache-2.0
// Works the heat map of several profiles of a sampler that always runs. Usage: node day.js URL [far]: the database has two profiles of the
// label "always", of one node, with some time between them; far: with hours.
"use strict";
const { check, until, drive, tab, open, judge } = require("./browser.js");
const [base, far] = process.argv.slice(2);
const ask = async path => (await fetch(`${base}api/v1/${path}`)).json();
const told = page => page.textContent(".sampled > p");
const links = page => page.locator(".sampled > ul a");

/** Where times of a map lie on the page, and how one is dragged over. */
async function hands(page, heat) {
  const box = await page.locator(".heat").boundingBox(), wide = Math.min(24, (box.width - 48) / heat.columns);
  const x = ms => box.x + 48 + (Math.floor((ms - heat.from_ms) / heat.column_ms) + 0.5) * wide;
  const y = ms => box.y + (heat.rows - Math.floor((ms - heat.from_ms) % heat.column_ms / heat.cell_ms) - 0.5) * 3;
  const drag = async (from, to) => {
    await page.mouse.move(x(from), y(from));
    await page.mouse.down();
    await page.mouse.move(x(to), y(to), { steps: 4 });
    await page.mouse.up();
    await page.mouse.move(4, 4);
  };
  return { x, y, drag };
}

/** The map of hours is coarse: a part of it has a map of its own. */
async function lookCloser(page, heat) {
  const [, last] = heat.profiles, { drag } = await hands(page, heat);
  check("cells are coarse", heat.cell_ms > 20, heat.cell_ms);
  await drag(last.from_ms, last.until_ms - 1);
  const link = page.locator(".sampled > p a", { hasText: /^Look closer at / });
  await link.waitFor();
  await judge(page, "day-closer");
  const day = page.url(), finer = page.waitForResponse(r => r.url().includes("/api/v1/heat?"));
  await link.click();
  const near = await (await finer).json();
  check("the part's own map has the finest", near.cell_ms === 20, near.cell_ms);
  check("and is of that profile alone", near.profiles.length === 1 && near.profiles[0].id === last.id, near.profiles);
  const asked = new URL(page.url()).searchParams;
  check("the address tells it", asked.get("view") === "samples" && Number(asked.get("until")) > Number(asked.get("from")), page.url());
  await until("nothing is finer", 20, async () => await told(page) === "A range that is chosen on the map is drawn here.");
  await (await hands(page, near)).drag(near.profiles[0].from_ms + 200, near.profiles[0].from_ms + 900);
  await until("a range of it is drawn", 20, async () => new RegExp(`^Drawn is .*, of profile ${last.id}\\.$`).test(await told(page)));
  await page.goBack();
  await until("back leads to the day", 20, async () => page.url() === day && await link.count() === 0 && await page.locator(".heat").count() === 1);
}

async function work(page, node, heat) {
  const { x, y, drag } = await hands(page, heat);
  const [first, last] = heat.profiles, gap = (first.until_ms + last.from_ms) / 2;
  check("there is nothing between them", last.from_ms - first.until_ms > 200 && heat.states.join("").includes("n"), heat.profiles);
  await page.mouse.move(x(gap), y(gap));
  check("which is told as that", /no profile: nothing is kept of that time/.test(await page.textContent(".heat-told")), await page.textContent(".heat-told"));
  check("with its time of day", /^\d\d:\d\d:[\d.]+ to \d\d:\d\d:/.test(await page.textContent(".heat-told")), await page.textContent(".heat-told"));
  await drag(last.from_ms + 1000, last.from_ms + 1900);
  await until("a range is drawn, of its profile", 20, async () => new RegExp(`^Drawn is \\d\\d:.*, of profile ${last.id}\\.$`).test(await told(page)));
  await page.waitForSelector(".flame-page .flame canvas");
  check("and stands as a link", await links(page).count() === 1, await links(page).allTextContents());
  await judge(page, "day-chosen");
  const asked = new URL(await links(page).first().evaluate(a => a.href)).searchParams;
  const part = await ask(`profiles/${last.id}?part_from=${asked.get("part_from")}&part_until=${asked.get("part_until")}`);
  const looks = part.series.find(s => s.name === "samples").self.reduce((a, b) => a + b, 0);
  const at = i => heat.from_ms + i * heat.cell_ms - last.from_ms;
  const seen = heat.looks.filter((_, i) => at(i) > Number(asked.get("part_from")) - 1 && at(i) + heat.cell_ms < Number(asked.get("part_until")) + 1)
    .reduce((a, b) => a + b, 0);
  check("of as many looks as its cells have, but for those on its edges", looks > 0 && Math.abs(looks - seen) <= 0.1 * looks + 20, [looks, seen]);
  const both = page.waitForResponse(r => r.url().includes("/api/v1/profiles/"));
  await drag(first.from_ms + 500, last.until_ms - 500);
  const joined = await (await both).json(), total = of => of.series.find(s => s.name === "samples").self.reduce((a, b) => a + b, 0);
  await until("a range over both is drawn as one", 20, async () =>
    new RegExp(`^Drawn is .*, of profiles ${first.id} to ${last.id}\\.$`).test(await told(page)) && await links(page).count() === 2);
  const asked2 = await links(page).evaluateAll(all => all.map(a => new URL(a.href).searchParams).map(p => [p.get("part_from") ?? "0", p.get("part_until")]));
  const alone = await Promise.all([first, last].map(({ id }, i) =>
    ask(`profiles/${id}?part_from=${asked2[i][0]}${asked2[i][1] ? `&part_until=${asked2[i][1]}` : ""}`)));
  check("with the looks of both parts", total(joined) > 0 && total(joined) === total(alone[0]) + total(alone[1]), [total(joined), ...alone.map(total)]);
  check("and their names", joined.notes.some(n => n.startsWith(`Profiles ${first.id} to ${last.id}: `)), joined.notes);
  const against = page.waitForResponse(r => /\/api\/v1\/profiles\/.*[?&]before=/.test(r.url()));
  await page.keyboard.down("Shift");
  await drag(first.from_ms + 500, first.from_ms + 1400);
  await page.keyboard.up("Shift");
  const compared = await (await against).json();
  check("a second range is compared with", compared.before === `profile ${first.id}, ${compared.before.split(", ")[1]}`
    && compared.series.some(s => s.before.some(n => n > 0)), compared.before);
  await until("which is told", 20, async () => /, compared with \d\d:.*\.$/.test(await told(page)));
  await judge(page, "day-compared");
  await page.selectOption("#metric", "reductions");
  await until("by another metric", 20, async () => await page.textContent(".heat-map h2") === "When: reductions");
  await links(page).last().click();
  await page.waitForURL(new RegExp(`profile=${last.id}`));
  await page.waitForSelector(".heat-map");
  check("a link leads to the part of the profile", /part_from=/.test(page.url()) && /metric=reductions/.test(page.url()), page.url());
  await page.locator(".flame-bar a", { hasText: "a day of" }).click();
  await page.waitForURL(/view=samples/);
  await page.waitForSelector(".heat-map");
  check("from where another one leads back", new URL(page.url()).searchParams.get("label") === "always"
    && new URL(page.url()).searchParams.get("node") === node, page.url());
}

drive(async browser => {
  const { profiles } = await ask("profiles"), node = profiles.find(p => p.label === "always").node;
  const heat = await ask(`heat?last=86400&node=${encodeURIComponent(node)}`);
  check("two profiles are one map", heat.profile === null && heat.profiles.length === 2, heat.profiles);
  for (const [mode, colorScheme, width, height] of [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const wrong = [];
    const page = await tab(await browser.newContext({ viewport: { width, height }, colorScheme }), wrong);
    await open(page, `${base}?view=samples&node=${encodeURIComponent(node)}&last=86400`);
    await page.waitForSelector(".heat-map canvas");
    await judge(page, `day-${mode}`);
    if (mode === "light") { await (far ? lookCloser(page, heat) : work(page, node, heat)); }
    check(`${mode}: nothing went wrong in the browser`, wrong.length === 0, wrong);
    await page.context().close();
  }
});
