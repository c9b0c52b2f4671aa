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
  await judge(page, "heat-file-chosen");
  await page.locator(".heat").focus();
  await page.keyboard.press("ArrowRight");
  await until("so do keys", 10, async () => /--from/.test(await command(page)) && await command(page) !== of);
  await page.keyboard.press("Escape");
  await until("escape lets go", 10, async () => await page.locator(".file-head code").count() === 0);
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
