// SPDX-License-Identifier: Apache-2.0
// Opens a request that three nodes worked for. Usage: node remote.js URL HOME SECOND THIRD: HOME is the node where it began and that asked
// SECOND, which asked THIRD.
"use strict";
const { check, drive, tab, open, judge } = require("./browser.js");
const [base, home, second, third] = process.argv.slice(2);
const query = page => new URL(page.url()).searchParams;
const facts = page => page.textContent("aside .call-facts");

drive(async browser => {
  const ask = async path => (await fetch(`${base}api/v1/${path}`)).json();
  const { requests } = await ask(`slow?last=86400&most=100&node=${encodeURIComponent(home)}`);
  const answers = await Promise.all(requests.map(r => ask(`slow/${r.id}`)));
  const slow = answers.find(a => a.parts.length === 2 && [second, third].every(n => a.parts.some(p => p.node === n)));
  check("a request with a part on each of two nodes is kept", slow, answers.map(a => a.parts.map(p => p.node)));
  const { id } = slow.request;
  for (const [look, colorScheme, width, height] of [["light", "light", 1280, 800], ["dark", "dark", 1280, 800], ["narrow", "light", 320, 640]]) {
    const wrong = [];
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await tab(context, wrong);
    await open(page, `${base}?slow=${id}`);
    await page.waitForSelector(".calls");
    check("it tells how much of it is elsewhere", /1 call, and 3 on 2 other nodes/.test(await page.textContent(".request-facts")),
      await page.textContent(".request-facts"));
    check("it tells of which trace it is", (await page.textContent(".request-facts"))
      .includes("in trace 0af7651916cd43dd8448eb211c80319c, asked for by span b7ad6b7169203331"), await page.textContent(".request-facts"));
    await page.locator(".calls").evaluate(calls => calls.scrollIntoView({ block: "end" }));
    await judge(page, `remote-tree-${look}`);
    await page.locator(".controls button", { hasText: "by process" }).click();
    await judge(page, `remote-lanes-${look}`);
    check(`${look}: nothing went wrong in the browser`, wrong.length === 0, wrong);
    if (look === "light") { await walks(page, slow); }
    await context.close();
  }
});

async function walks(page, slow) {
  const lines = await page.evaluate(() => (parseFloat(document.querySelector(".calls .room").style.height) - 24) / 24);
  check("each process has a lane, and a line below it for calls within calls", lines === 4, lines);
  const whole = slow.request.duration_us, selves = slow.spans.reduce((sum, s) => sum + s.self_us, 0);
  check("what a call waits for on another node is not its self time", selves <= whole && selves > 0.95 * whole, [selves, whole]);
  await page.locator(".controls button", { hasText: "by process" }).click();
  await page.locator(".calls").focus();
  await page.keyboard.press("Home");
  const told = [];
  for (let i = 0; i < slow.spans.length; i++) {
    told.push(await facts(page));
    await page.keyboard.press("ArrowDown");
  }
  for (const node of [home, second, third]) {
    check(`the keys lead to the call on ${node}`, told.some(t => t.includes(node)), told);
  }
  check("which a reader hears of, too", new RegExp(`on ${third}`).test(await page.textContent(".waterfall p.spoken")),
    await page.textContent(".waterfall p.spoken"));
  check("a place on another node's clock is said to be about", /about/.test(await page.textContent(".waterfall")),
    await page.textContent(".waterfall"));
  await page.keyboard.press("f");
  await page.keyboard.type(third.split("@")[0]);
  const there = slow.spans.filter(s => s.node === third).length;
  check("f finds calls by their node", (await page.textContent(".controls [role=status]")) === `${there} found`);
  await page.locator(".request-facts a", { hasText: `its part on ${third}` }).click();
  await page.waitForURL(url => Number(url.searchParams.get("slow")) === slow.parts.find(p => p.node === third).id);
  await page.waitForSelector(".request-facts a:has-text('the request itself')");
  check("a part says whose it is", (await page.textContent(".request-facts")).includes(`part of a request of ${home}`),
    await page.textContent(".request-facts"));
  await judge(page, "remote-part-light");
  await page.locator(".request-facts a", { hasText: "the request itself" }).click();
  await page.waitForURL(url => Number(url.searchParams.get("slow")) === slow.request.id);
  console.log("ok: and leads to it");
}
