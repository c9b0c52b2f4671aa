// SPDX-License-Identifier: Apache-2.0
// Orders what a page may order of a live node: pause, resume, sampling, a full trace, a note. Usage: node control.js URL TOKEN.
"use strict";
const { check, until, drive, tab, open, judge } = require("./browser.js");
const [base, token] = process.argv.slice(2);
const NOTE = "<b>deployed</b> 1.4";

// Tab until an element is reached.
async function reach(page, selector) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(s => document.activeElement.matches(s), selector)) { return; }
  }
  throw new Error(`no key leads to ${selector}`);
}

const state = page => page.textContent(".node .node-state");
const said = page => page.textContent(".node > [role=status]");

async function login(page) {
  await page.goto(`${base}?view=nodes`);
  await page.locator("input[name=token]").fill(token);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".node .facts .fact");
  check("the login leads to the nodes", new URL(page.url()).searchParams.get("view") === "nodes", page.url());
}

async function steer(page) {
  await until("the node traces", 30, async () => /tracing/.test(await state(page)));
  check("what tracing it costs is told", /(about|under) .* % of a processor/.test(await page.textContent(".node .facts")), await page.textContent(".node .facts"));
  await reach(page, ".orders > button");
  await page.keyboard.press("Enter");
  await until("a key pauses it", 30, async () => /paused/.test(await state(page)));
  check("as it is told", /It is paused/.test(await said(page)), await said(page));
  check("with what to do next", /Resume traces them again/.test(await page.textContent(".node")), await page.textContent(".node"));
  check("the button has the focus still", await page.evaluate(() => document.activeElement.textContent) === "Resume");
  await judge(page, "control-paused");
  await page.keyboard.press("Enter");
  await until("and resumes it", 30, async () => /tracing/.test(await state(page)));
  await page.locator(".sample select").selectOption("per_second");
  await page.locator(".sample input").fill("70");
  await page.locator(".sample button").click();
  await until("sampling is set", 30, async () => /at most 70\/s/.test(await page.textContent(".node .facts")));
  await page.locator(".sample input").fill("2000000");
  await page.locator(".sample button").click();
  check("what cannot be is not sent", await page.locator(".sample input:invalid").count() === 1);
  await page.locator(".sample select").selectOption("all");
  await page.locator(".sample button").click();
  await until("all requests again", 30, async () => /all requests/.test(await page.textContent(".node .facts")));
}

async function trace(page) {
  const { requests, seconds } = (await (await page.request.get(`${base}api/v1/openapi.json`)).json()).components.schemas.NewFlame.properties;
  const most = await page.locator(".order.fully input[type=number]").evaluateAll(all => all.map(input => Number(input.max)));
  check("as much can be asked of a full trace as the API says", String(most) === String([requests.maximum, seconds.maximum]) && most[1] === 3600, most);
  await page.locator(".order.fully input[type=number]").first().fill("5");
  await page.locator(".order.fully input[type=number]").last().fill("45");
  await page.locator(".order.fully button").click();
  await until("a full trace tells how far it is", 30, () => page.locator(".flames li").count());
  await until("and has a profile in the end", 90, () => page.locator(".flames a").count());
  await page.locator(".flames a").first().click();
  await page.waitForURL(/profile=/);
  await page.waitForSelector(".flame-page");
  console.log("ok: a link leads to it");
  await page.goBack();
  await page.waitForSelector(".node");
}

async function note(page) {
  await page.click("#home");
  await page.waitForSelector(".notes button:visible");
  await page.locator(".notes button", { hasText: "Add a note" }).click();
  await judge(page, "control-note");
  await page.keyboard.press("Enter");
  check("a note without a text is none", /wants a text/.test(await page.textContent(".notes")), await page.textContent(".notes"));
  await page.keyboard.type(NOTE);
  await page.keyboard.press("Enter");
  await until("a note is added, as text", 20, async () => (await page.textContent(".notes ul").catch(() => "")).includes(NOTE));
  const pin = `.pin[aria-label*="${NOTE}"]`;
  await until("and stands on the time line", 40, () => page.locator(pin).count());
  await reach(page, pin);
  const tip = page.locator(".pin:focus .tip");
  check("with its text where it has the focus", await tip.isVisible() && (await tip.textContent()).includes(NOTE));
  await judge(page, "control-pin");
  await page.keyboard.press("Enter");
  await page.waitForURL(/from=/);
  const from = Number(new URL(page.url()).searchParams.get("from"));
  check("and leads to what comes since then", !/until=/.test(page.url()), page.url());
  let once = 0;
  await until("which grows as time goes on", 120, async () => {
    const asked = new URL((await page.waitForRequest(r => r.url().includes("/api/v1/table?"), { timeout: 60000 })).url()).searchParams;
    const till = Number(asked.get("until"));
    once = once || till;
    return Number(asked.get("from")) === from && till > once;
  });
  await page.locator("#compare").selectOption("before");
  await page.waitForURL(/compare=before/);
  check("also compared with what was before", !/until=/.test(page.url()) && page.url().includes(`from=${from}`), page.url());
}

drive(async browser => {
  for (const [look, colorScheme, width, height] of [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const wrong = [];
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await tab(context, wrong);
    await login(page);
    if (look === "light") {
      await steer(page);
      await trace(page);
      await note(page);
      await open(page, `${base}?view=nodes`);
      await page.waitForSelector(".flames a");
    }
    await page.locator(".node details summary").click();
    await judge(page, `control-nodes-${look}`);
    check(`${look}: nothing went wrong in the browser`, wrong.length === 0, wrong);
    await context.close();
  }
});
