// SPDX-License-Identifier: Apache-2.0
// The triggers of a node, which begin runs of stack sampling by themselves: what each waits for, what it sees now, the runs that it began;
// added and removed where that is allowed. The node is asked for as long as they are shown.
import { hrefOf } from "./address";
import { get, type Profile, type Trigger } from "./api";
import { type Child, fill, h } from "./dom";
import { figure } from "./format";
import { count, duration, plain, span } from "./numbers";
import type { Ask } from "./orders";
import { moment, secondsOf } from "./times";

/** What it can be about: in words, the unit of its limit, and how many of what is sent that is. */
const ABOUT: [string, string, string, number][] = [
  ["run_queue", "processes ready to run", "", 1], ["message_queue_len", "messages in the longest queue", "", 1],
  ["memory", "memory in use", "MB", 1e6], ["reductions", "reductions a second", "", 1], ["tier_p99", "p99 of the tier", "ms", 1000]];
const MOST_PROFILES = 100; // of the node, among which its runs are looked for
const MOST_LINKS = 6;

function about(t: Trigger): string {
  const words = ABOUT.find(([key]) => key === t.trigger)?.[1] ?? t.trigger;
  return t.trigger === "tier_p99" ? `${words} ${t.tier ?? ""}` : words;
}

function amount(t: Trigger, value: number): string {
  return t.trigger === "memory" ? figure(value, "bytes") : t.trigger === "tier_p99" ? plain(duration(value * 1000)) : count(Math.round(value));
}

/** "above 8 for 5 s", "above 8, at each new high". */
function when(t: Trigger): string {
  return `above ${amount(t, t.above)}${t.high_water ? ", at each new high" : t.for_ms > 0 ? ` for ${span(t.for_ms / 1000)}` : ""}`;
}

type Row = { line: HTMLElement; cells: HTMLElement[] };

export class Triggers {
  private readonly heading = h("summary", {}, "Triggers");
  private readonly body = h("tbody", {});
  private readonly table = h("table", { hidden: true }, h("caption", { class: "spoken" }, "Triggers"), h("thead", {}, h("tr", {},
    ...["trigger", "when", "now", "at most every", "fired", "next run", "runs that it began"].map(head => h("th", { scope: "col", class: "text" }, head)),
    this.may ? h("td", {}) : null)), this.body);
  private readonly told = h("p", { class: "quiet" });
  private readonly rows = new Map<string, Row>();
  readonly element: HTMLDetailsElement;
  private asking = false;
  private profiles: Profile[] = [];
  private began = -1; // runs that there were when the profiles were asked for

  /** shown: at once, not only when somebody opens it. */
  constructor(private readonly name: string, private readonly may: boolean, private readonly ask: Ask, private readonly gone: AbortSignal,
              tiers: string[], shown: boolean) {
    this.element = h("details", { class: "triggers", open: shown }, this.heading, this.told,
                     h("div", { class: "rows", tabindex: "0", role: "group", "aria-label": `Triggers of ${name}` }, this.table),
                     may ? this.form(tiers) : null);
    this.element.addEventListener("toggle", () => this.look());
  }

  /** As often as the node's state is looked at. */
  look(): void {
    if (this.element.open && !this.asking) {
      this.asking = true;
      void this.list().catch(error => {
        if (!this.gone.aborted) { fill(this.told, `They are not known now: ${error instanceof Error ? error.message : String(error)}`); }
      }).finally(() => { this.asking = false; });
    }
  }

  private at(command: string): string { return `nodes/${encodeURIComponent(this.name)}/triggers${command}`; }

  private async list(): Promise<void> {
    const { triggers } = await get<{ triggers: Trigger[] }>(this.at(""), {}, this.gone);
    const began = triggers.reduce((sum, t) => sum + t.began, 0);
    // a run has its profile when it is over
    if (began > 0 && (began !== this.began || this.profiles.filter(p => p.trigger).length < began)) {
      this.profiles = (await get<{ profiles: Profile[] }>("profiles", { node: this.name, most: MOST_PROFILES }, this.gone)).profiles;
    }
    this.began = began;
    this.show(triggers);
  }

  // Rows stay as they are, with the focus that a button may have.
  private show(triggers: Trigger[]): void {
    fill(this.heading, triggers.length > 0 ? `Triggers (${triggers.length})` : "Triggers");
    fill(this.told, triggers.length > 0 ? null : "None: nothing is sampled by itself.",
         triggers.length > 0 || this.may ? null : h("code", {}, ` kprof trigger ${this.name} add run_queue --above 8`));
    this.table.hidden = triggers.length === 0;
    for (const [name, row] of this.rows) {
      if (!triggers.some(t => t.name === name)) {
        row.line.remove();
        this.rows.delete(name);
      }
    }
    for (const t of triggers) {
      const row = this.rows.get(t.name) ?? this.row(t.name);
      this.cells(t).forEach((cell, i) => {
        if (row.cells[i]!.dataset.shown !== JSON.stringify(cell[1])) {
          row.cells[i]!.dataset.shown = JSON.stringify(cell[1]);
          fill(row.cells[i]!, ...cell[0]);
        }
      });
    }
  }

  private row(name: string): Row {
    const cells = [h("th", { scope: "row", class: "text" }), ...Array.from({ length: 6 }, () => h("td", { class: "text" }))];
    const row = { cells, line: h("tr", {}, ...cells, this.may ? h("td", {}, h("button", { type: "button", "aria-label": `Remove the trigger ${name}`,
      onclick: () => void this.change("/remove", { name }) }, "Remove")) : null) };
    this.rows.set(name, row);
    this.body.append(row.line);
    return row;
  }

  // What stands in each cell, and what of it may change.
  private cells(t: Trigger): [Child[], unknown][] {
    const runs = this.runsOf(t), left = t.began - runs.length;
    const text = (value: string): [Child[], unknown] => [[value], value];
    const now = t.value === undefined ? "–" : `${amount(t, t.value)}${t.process ? `, ${t.process}` : ""}`;
    return [text(t.name === t.trigger || t.name === `tier_p99 ${t.tier}` ? about(t) : `${t.name}: ${about(t)}`), text(when(t)), text(now),
            text(span(t.every_ms / 1000)), text(t.began === 0 ? "never" : t.began === 1 ? "once" : `${t.began} times`),
            text(t.again_ms > 0 ? `in ${span(t.again_ms > 90000 ? 60 * Math.ceil(t.again_ms / 60000) : Math.ceil(t.again_ms / 1000))}` : "any time"),
            [[...runs.slice(0, MOST_LINKS).flatMap((p, i) => [i > 0 ? ", " : "", h("a", { href: hrefOf({ profile: p.id, view: "", sort: "" }), title: p.name },
                `profile ${p.id}`), ` ${moment(secondsOf(p.started_at), false)}`]),
              runs.length > MOST_LINKS ? `, and ${runs.length - MOST_LINKS} more` : "",
              runs.length === 0 ? t.began > 0 ? "no profile yet" : "–" : ""], [runs.map(p => p.id), left > 0]]];
  }

  // One of the same name before it may have begun older ones.
  private runsOf(t: Trigger): Profile[] {
    return this.profiles.filter(p => p.trigger === t.name).slice(0, t.began);
  }

  private async change(command: string, body: Record<string, string | number | boolean>): Promise<void> {
    await this.ask(this.at(command), body, text => `${text.charAt(0).toUpperCase()}${text.slice(1) || "Done"}.`);
    this.look();
  }

  private form(tiers: string[]): HTMLElement {
    const number = (what: string, min: string, max: string, value: string, step = "1"): HTMLInputElement =>
      h("input", { type: "number", required: true, min, max, step, value, "aria-label": `${what}, of ${this.name}` });
    const what = h("select", { "aria-label": `What the trigger of ${this.name} is about` },
      ...ABOUT.filter(([key]) => key !== "tier_p99" || tiers.length > 0).map(([value, text]) => h("option", { value }, text)));
    const tier = h("select", { "aria-label": `The tier, of ${this.name}`, hidden: true }, ...tiers.map(t => h("option", { value: t }, t)));
    const above = number("Its limit", "0", "9007199254740992", "8", "any"), unit = h("span", {});
    const how = h("select", { "aria-label": `For how long, of ${this.name}` }, h("option", { value: "for" }, "for"), h("option", { value: "high" }, "at each new high"));
    const long = number("Seconds for which it is above", "0", "3600", "5", "any"), seconds = h("span", {}, "s,");
    const every = number("Minutes between two runs at least", "1", "10080", "10"), sample = number("Seconds that sampling lasts", "1", "3600", "30");
    const fits = (): void => {
      const [key, , text] = ABOUT.find(([k]) => k === what.value)!;
      unit.textContent = text;
      unit.hidden = text === "";
      tier.hidden = key !== "tier_p99";
      long.hidden = long.disabled = seconds.hidden = how.value === "high"; // a hidden number must not stop the form
    };
    what.addEventListener("change", () => {
      above.value = { run_queue: "8", message_queue_len: "10000", memory: "2000", reductions: "100000000", tier_p99: "200" }[what.value] ?? "";
      fits();
    });
    how.addEventListener("change", fits);
    fits();
    const form = h("form", { class: "order trigger" }, h("span", {}, "Sample stacks when"), what, tier, h("span", {}, "is above"), above, unit, how, long, seconds,
      h("span", {}, "at most every"), every, h("span", {}, "min, for"), sample, h("span", {}, "s"), h("button", { type: "submit" }, "Add"));
    form.addEventListener("submit", event => {
      event.preventDefault();
      const times = ABOUT.find(([key]) => key === what.value)![3], limit = Math.round(Number(above.value) * times);
      void this.change("/add", { trigger: what.value, every_ms: Number(every.value) * 60000, seconds: Number(sample.value),
        ...(what.value === "tier_p99" ? { tier: tier.value, above_us: limit } : { above: limit }),
        ...(how.value === "high" ? { high_water: true } : { for_ms: Math.round(Number(long.value) * 1000) }) });
    });
    return form;
  }
}
