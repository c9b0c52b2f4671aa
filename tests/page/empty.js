// SPDX-License-Identifier: Apache-2.0
// Looks at a page that has nothing to show: it says which command changes that. Usage: node empty.js URL NAME COMMAND.
"use strict";
const { check, drive, tab, open, judge } = require("./browser.js");
const [base, name, command] = process.argv.slice(2);

drive(async browser => {
  const wrong = [];
  const page = await tab(await browser.newContext(), wrong);
  await open(page, base);
  await page.waitForSelector(".state pre");
  check("what to do is told", (await page.textContent(".state pre")).startsWith(command), await page.textContent(".state"));
  await judge(page, `empty-${name}`);
  check("nothing is wrong in the browser's log", wrong.length === 0, wrong);
});
