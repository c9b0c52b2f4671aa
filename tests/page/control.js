// SPDX-License-Identifier: Apache-2.0
// Orders what a page may order of a live node: pause, resume, sampling, a full trace, samples of stacks, a look at what it does, a note.
// Usage: node control.js URL TOKEN.
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
  // the first rates are known a second after it has come
  await until("what tracing it costs is told", 30, async () => /(about|under) .* % of a processor/.test(await page.textContent(".node .facts")));
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

async function sample(page) {
  const { seconds, hz, top } = (await (await page.request.get(`${base}api/v1/openapi.json`)).json()).components.schemas.NewRun.properties;
  const most = await page.locator(".order.stacks input[type=number]").evaluateAll(all => all.map(input => Number(input.max)));
  check("as much can be asked of a run as the API says", String(most) === String([top.maximum, seconds.maximum, hz.maximum]), most);
  const row = page.locator(".runs li").first();
  await page.locator(".order.stacks input").nth(2).fill("3600");
  await page.locator(".order.stacks button").click();
  await until("a run of sampling tells how far it is", 60, async () => await page.locator(".runs li").count() === 1
    && /36\d\d|35\d\d/.test(await row.textContent()) && /looks at .* costs (about|under) .* % of a processor/.test(await row.textContent()));
  const other = await tab(page.context(), []);
  await open(other, `${base}?view=nodes`);
  await until("another tab sees it, too", 30, async () => /looks at/.test(await other.locator(".runs li").first().textContent()));
  await other.locator(".order.stacks button").click();
  await until("a second one is refused, with what to do", 30, async () =>
    /already.*Stop that one, or try again when it is over/.test(await said(other)));
  await judge(other, "control-refused");
  await open(other, base);
  await until("the time line has it, as one that goes on", 30, () => other.locator(".strip .ran.sampled.now[aria-label$='goes on now']").count());
  await other.close();
  await judge(page, "control-samples");
  await reach(page, ".runs button");
  await new Promise(resolve => setTimeout(resolve, 2500));
  check("its button keeps the focus while it goes on", await page.evaluate(() => document.activeElement.textContent) === "Stop");
  await page.keyboard.press("Enter");
  await until("a key stops it, and its profile is there", 60, () => page.locator(".runs a").count());
  check("as it is told", /profile \d+ of .* looks in .* it ended early: somebody stopped it/.test(await row.textContent()), await row.textContent());
  await page.locator(".runs a").first().click();
  await page.waitForURL(/profile=/);
  await page.waitForSelector(".heat-map");
  console.log("ok: a link leads to it");
  await page.goBack();
  await page.waitForSelector(".node");
}

const cells = (page, part, column) => page.locator(`.top-part >> nth=${part}`).locator(`tbody tr > :nth-child(${column})`).allTextContents();

async function look(page) {
  await page.locator(".top summary").focus();
  await page.keyboard.press("Enter");
  await until("a look tells what the node does", 60, async () => (await cells(page, 0, 1)).length > 0);
  check("its processes by reductions", /processes by reductions, .* looks in .* costs/.test(await page.textContent(".top > p")), await page.textContent(".top > p"));
  check("the functions with their shares", (await cells(page, 1, 2)).every(text => / %$|^0$/.test(text)), await cells(page, 1, 2));
  const first = await page.textContent(".top > p");
  await until("it goes on by itself", 60, async () => await page.textContent(".top > p") !== first);
  await judge(page, "control-top");
  await reach(page, ".top-part .sort[data-focus='head memory']");
  await page.keyboard.press("Enter");
  await until("by memory", 60, async () => /processes by memory/.test(await page.textContent(".top > p")));
  check("the head keeps the focus", await page.evaluate(() => document.activeElement.dataset.focus) === "head memory");
  await page.locator(".top-part tbody tr").first().hover();
  await until("it stands still under the pointer", 30, async () => /Stands still/.test(await page.textContent(".top > p")));
  const still = (await cells(page, 0, 4)).join();
  await new Promise(resolve => setTimeout(resolve, 3000));
  check("as it says", (await cells(page, 0, 4)).join() === still);
  await page.locator(".top summary").click();
  let asked = 0;
  page.on("request", r => { asked += r.url().endsWith("/top") ? 1 : 0; });
  await new Promise(resolve => setTimeout(resolve, 3000));
  check("closed it asks no more", asked <= 1, asked);
}

async function triggers(page) {
  const { NewTrigger } = (await (await page.request.get(`${base}api/v1/openapi.json`)).json()).components.schemas;
  const part = page.locator(".node details.triggers"), row = part.locator("tbody tr");
  check("a node alone shows its triggers", await part.getAttribute("open") !== null);
  await until("it has none", 20, async () => /None: nothing is sampled by itself/.test(await part.textContent()));
  await reach(page, ".order.trigger select");
  check("all that they can be about can be chosen", String(await part.locator("form select").first().locator("option").evaluateAll(
    all => all.map(o => o.value))) === String(NewTrigger.properties.trigger.enum));
  await part.locator("form select").first().selectOption("memory");
  await part.locator("form select").nth(2).selectOption("high");
  check("a new high is at no time", await part.locator("form input:visible").count() === 3);
  await part.locator("form input").first().fill("1.5");
  await part.locator("form input").first().press("Enter");
  await until("a key adds one", 20, async () => await row.count() === 1 && /the trigger memory is added|The trigger memory is added/.test(await said(page)));
  check("as it is told", /^memory in use ?above 1\.5 MB, at each new high/.test(await row.first().textContent()), await row.first().textContent());
  await until("it sees something, and begins a run", 30, async () => /MB.*once.*in /.test(await row.first().textContent()));
  const other = await tab(page.context(), []);
  await open(other, `${base}?view=nodes`);
  await until("another tab sees it, too", 30, () => other.locator(".node .triggers tbody tr").count());
  await other.locator(".order.trigger select").first().selectOption("memory");
  await other.locator(".order.trigger button").click();
  await until("a second one of the name is refused", 20, async () => /two triggers are named memory/i.test(await said(other)));
  await other.close();
  await part.locator("form select").first().selectOption("tier_p99");
  await part.locator("form select").nth(2).selectOption("for");
  await part.locator("form input").first().fill("0.001");
  await part.locator("form input").nth(1).fill("0");
  await part.locator("form button").click();
  await until("another one, of a tier", 20, async () => await row.count() === 2);
  await until("whose limit is a time", 20, async () => /p99 of the tier .*above 1 µs/.test(await row.nth(1).textContent()));
  await until("the run that the first one began has a profile", 90, () => row.first().locator("a").count());
  await judge(page, "control-triggers");
  await row.nth(1).locator("button").focus();
  await new Promise(resolve => setTimeout(resolve, 4500));
  check("a button keeps the focus while the list goes on", await page.evaluate(() => /Remove the trigger tier_p99/.test(document.activeElement.getAttribute("aria-label"))));
  await page.keyboard.press("Enter");
  await until("a key removes one", 20, async () => await row.count() === 1 && /is removed/.test(await said(page)));
  await row.first().locator("a").click();
  await page.waitForURL(/profile=/);
  await page.waitForSelector(".heat-map");
  check("a link leads to the profile", /the trigger memory: /.test(await page.textContent(".flame-heading")), await page.textContent(".flame-heading"));
  await page.goBack();
  await page.waitForSelector(".node");
}

// What was sampled and traced fully stands on the time line.
async function marks(page) {
  await page.click("#home");
  await page.waitForSelector(".strip .ran");
  const of = kind => page.locator(`.strip .ran.${kind}`);
  check("runs of sampling, full traces and what triggers began have bars", await of("sampled").count() > 0 && await of("full").count() > 0
    && await of("triggered").count() > 0, await page.locator(".strip").innerHTML());
  const told = await of("triggered").first().getAttribute("aria-label");
  check("a bar says what it was", /^the trigger memory: .* bytes in use, above 1500000, and a new high-water mark, .* to .*, .*: profile \d+$/.test(told), told);
  const pin = page.locator(".pin[aria-label^='Trigger, ']").first();
  await reach(page, ".pin[aria-label^='Trigger, ']");
  check("so does a mark where it fired", await pin.locator(".tip").isVisible() && /the trigger memory: /.test(await pin.textContent()));
  await of("triggered").first().hover();
  check("also under the pointer", await of("triggered").first().locator(".tip").isVisible());
  await judge(page, "control-marks");
  await reach(page, ".ran.triggered");
  await page.keyboard.press("Enter");
  await page.waitForURL(/profile=/);
  await page.waitForSelector(".heat-map");
  check("and it opens the profile", page.url().includes(`profile=${/profile (\d+)$/.exec(told)[1]}`), page.url());
  await page.goBack();
  await page.waitForSelector(".strip .ran");
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
  for (const [mode, colorScheme, width, height] of [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const wrong = [];
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await tab(context, wrong);
    await login(page);
    if (mode === "light") {
      await steer(page);
      await trace(page);
      await look(page);
      await sample(page);
      await triggers(page);
      await marks(page);
      await note(page);
      await open(page, `${base}?view=nodes`);
      await page.waitForSelector(".flames a");
    }
    await page.locator(".node details:not(.top):not(.triggers) summary").click();
    await page.locator(".top summary").click();
    await until(`${mode}: a look`, 60, async () => (await cells(page, 0, 1)).length > 0);
    await page.locator(".top").scrollIntoViewIfNeeded();
    await judge(page, `control-nodes-${mode}`);
    check(`${mode}: nothing went wrong in the browser`, wrong.length === 0, wrong);
    await context.close();
  }
});
