// SPDX-License-Identifier: Apache-2.0
// Works the file of a profile of samples, `kprof flame --out x.html`: its heat map, by mouse and by keys. Usage: node heat_file.js FILE ID.
"use strict";
const { check, until, drive, tab, judge } = require("./browser.js");
const [file, id] = process.argv.slice(2);
const command = page => page.textContent(".file-head code").catch(() => "");

async function heading(page) {
  return page.textContent(".heat-map h2");
}

async function work(page) {
  check("its heat map is of what ran", await heading(page) === "When: active", await heading(page));
  check("title and notes stand above it, once", await page.locator(".flame-heading").count() === 1);
  await page.selectOption(".flame-controls select", { label: "reductions" });
  await until("it follows the metric", 10, async () => await heading(page) === "When: reductions");
  await page.goBack();
  await until("and back", 10, async () => await heading(page) === "When: active");
  const box = await page.locator(".heat").boundingBox();
  await page.mouse.move(box.x + 54, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 90, box.y + 40, { steps: 4 });
  await page.mouse.up();
  const of = await command(page);
  check("a drag names the part", new RegExp(`^kprof flame --profile ${id} --from [\\d.]+s --to [\\d.]+s --out part.html$`).test(of), of);
  const drawn = () => page.textContent(".heat-told"), title = () => page.textContent(".flame-heading h1");
  await page.mouse.move(4, 4);
  await until("and draws it", 10, async () => /^[\d.]+ s to [\d.]+ s of /.test(await title()) && /^Drawn below: [\d.]+ s to/.test(await drawn()));
  const total = async () => {
    const root = await page.locator(".flame canvas").first().boundingBox();
    await page.mouse.move(root.x + 40, root.y + 8);
    const text = await page.textContent(".flame-told");
    await page.mouse.move(4, 4);
    return Number((/([\d,]+) samples?/.exec(text)?.[1] ?? "NaN").replace(/,/g, ""));
  };
  await judge(page, "heat-file-chosen");
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 54, box.y + 140);
  await page.mouse.down();
  await page.mouse.move(box.x + 54, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.mouse.move(4, 4);
  await until("with shift it is compared with another one", 10, async () => await page.locator(".flame.compared").count() === 1);
  await judge(page, "heat-file-compared");
  await page.locator(".heat").focus();
  await page.keyboard.press("Escape");
  await until("escape takes that off", 10, async () => await page.locator(".flame.compared").count() === 0);
  const some = await total();
  await page.locator(".heat").focus();
  await page.keyboard.press("ArrowRight");
  await until("so do keys", 10, async () => /--from/.test(await command(page)) && await command(page) !== of);
  await page.keyboard.press("Escape");
  await until("escape lets go", 10, async () => await page.locator(".file-head code").count() === 0);
  await until("all of it is drawn again", 10, async () => (await drawn()).startsWith("Drawn below: all of it"));
  const all = await total();
  check("of which the part had some", some > 0 && some < all, [some, all]);
}

drive(async browser => {
  for (const [mode, colorScheme, width, height] of [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const wrong = [];
    const page = await tab(await browser.newContext({ viewport: { width, height }, colorScheme }), wrong);
    await page.goto(`file://${file}`);
    await page.waitForSelector(".heat-map canvas");
    if (mode === "light") { await work(page); }
    await judge(page, `heat-file-${mode}`);
    check(`${mode}: nothing went wrong in the browser`, wrong.length === 0, wrong);
    await page.context().close();
  }
});
