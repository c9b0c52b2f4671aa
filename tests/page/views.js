// SPDX-License-Identifier: Apache-2.0
// Opens every view of a page, light, dark and narrow. Usage: node views.js URL PREFIX [TEXT]; TEXT has to be seen as it is somewhere in
// the table: a name that would be markup.
"use strict";
const { check, drive, tab, open, judge } = require("./browser.js");
const [base, prefix, text] = process.argv.slice(2);

drive(async browser => {
  const ask = async path => (await fetch(`${base}api/v1/${path}`)).json();
  const slowest = (await ask("slow?last=86400&most=1")).requests[0];
  const profile = (await ask("profiles")).profiles[0];
  const identity = encodeURIComponent(slowest.identity);
  const views = [["overview", "?last=1800"], ["identity", `?last=1800&identity=${identity}`], ["slow", `?slow=${slowest.id}`],
                 ["empty", "?from=1000&until=4600"], ["nodes", "?view=nodes"]];
  if (profile) { views.push(["profile", `?profile=${profile.id}`]); }
  const looks = [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]];
  for (const [look, colorScheme, width, height] of looks) {
    const wrong = [];
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await tab(context, wrong);
    for (const [view, query] of views) {
      await open(page, base + query);
      await page.waitForTimeout(1500); // trends come one after the other
      await judge(page, `${prefix}-${view}-${look}`);
      check(`${view} has a title`, (await page.title()).endsWith(" · kprof") && (await page.title()).length > 8, await page.title());
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0]);
      check(`${view} is ${look}`, look === "dark" ? ground < 60 : ground > 200, ground);
    }
    check(`${look}: nothing went wrong in the browser`, wrong.length === 0, wrong);
    if (text) {
      await open(page, `${base}?last=1800`);
      const names = await page.locator(".rows tbody th").allTextContents();
      check("a name that looks like markup is text", names.includes(text), names);
      check("and no script", await page.evaluate(() => document.scripts.length) === 1);
    }
    await context.close();
  }
  const page = await tab(await browser.newContext(), []);
  await open(page, `${base}?slow=999999999`);
  check("a request that is not kept is told of", /not kept/.test(await page.textContent("main")), await page.textContent("main"));
});
