// SPDX-License-Identifier: Apache-2.0
// Runs of stack sampling of a node: begun and stopped where that is allowed, and how far each is. A run goes on without the page.
import { hrefOf } from "./address";
import type { RunState, RunTold } from "./api";
import { type Child, h } from "./dom";
import { LiveList } from "./lists";
import { count, processor } from "./numbers";
import type { Ask } from "./orders";
import { clock } from "./times";

const BY: [string, string][] = [["reductions", "reductions"], ["memory", "memory"], ["message_queue_len", "queue"], ["binary", "binaries"]];
const ENDS: Record<string, string> = {
  stopped: "somebody stopped it", full: "there was no room for more", no_process: "there was no process to look at", error: "it failed",
};

/** What to do about an order that is refused. */
export function nextStep(node: string): (why: string) => string {
  return why => /already/.test(why) ? " Stop that one, or try again when it is over."
    : /not connected|gone/.test(why) ? ` kprof doctor ${node} says what is missing.` : "";
}

const looks = (n: number): string => `${count(n)} ${n === 1 ? "look" : "looks"}`;

/** What went less well than it should. */
export function lacks(t: RunTold): string {
  return [t.unanswered > 0 ? `${count(t.unanswered)} not answered` : "", t.held_ms > 0 ? `held itself back ${Math.ceil(t.held_ms / 1000)} s` : "",
          t.late_ms > 0 ? `node too busy for it ${Math.ceil(t.late_ms / 1000)} s` : ""].filter(Boolean).map(text => `, ${text}`).join("");
}

export class Runs {
  readonly list = h("ul", { class: "flames runs" });
  private readonly rows = new LiveList<RunState>(this.list, r => r.over ? this.ended(r) : this.running(r));

  constructor(private readonly name: string, private readonly may: boolean, private readonly ask: Ask) {}

  show(runs: RunState[]): void { this.rows.show(runs); }

  form(): HTMLElement {
    const number = (what: string, max: number, value: number): HTMLInputElement =>
      h("input", { type: "number", required: true, min: "1", max: String(max), value: String(value), "aria-label": `${what}, of ${this.name}` });
    const top = number("Processes whose stacks are sampled", 1000, 100), hz = number("Looks a second at each process", 1000, 99);
    const long = number("Seconds that sampling lasts", 86400, 60);
    const by = h("select", { "aria-label": `By what the processes are chosen, of ${this.name}` }, ...BY.map(([value, text]) => h("option", { value }, text)));
    const application = h("input", { type: "text", maxlength: "120", placeholder: "any application",
                                     "aria-label": `Processes of this application, of ${this.name}` });
    const form = h("form", { class: "order stacks" }, h("span", {}, "Sample stacks of the first"), top, h("span", {}, "processes by"), by, h("span", {}, "of"),
      application, h("span", {}, "for"), long, h("span", {}, "s,"), hz, h("span", {}, "times a second"), h("button", { type: "submit" }, "Begin"));
    form.addEventListener("submit", event => {
      event.preventDefault();
      const body: Record<string, string | number> = { node: this.name, seconds: Number(long.value), hz: Number(hz.value), top: Number(top.value), by: by.value };
      if (application.value.trim()) { body.application = application.value.trim(); }
      void this.ask("sample", body, () => "It is begun, and goes on without this page. Nothing is traced for it.", nextStep(this.name));
    });
    return form;
  }

  private of(r: RunState): string {
    return r.pid || r.registered || (r.application && `the application ${r.application}`);
  }

  private running(r: RunState): Child[] {
    const t = r.told, left = Math.max(0, r.seconds - r.ran_s), of = this.of(r);
    const doing = t && t.samples + t.unchanged > 0 ? ` ${looks(t.samples + t.unchanged)} at ${count(t.processes)} ${t.processes === 1 ? "process" : "processes"}` +
      `, costs ${processor(t.cost_us / Math.max(1, r.ran_s))}${lacks(t)} ` : " begins ";
    return [h("label", {}, `Samples of stacks${of ? ` of ${of}` : ""}: ${left} of ${r.seconds} s left `, h("progress", { max: String(r.seconds),
              value: String(Math.min(r.ran_s, r.seconds)) })), doing,
            this.may ? h("button", { type: "button", "aria-label": `Stop sampling stacks of ${this.name}`,
              onclick: () => void this.ask("sample/stop", { id: r.id }, () => "It ends; what there is of it is kept.") }, "Stop") : null];
  }

  private ended(r: RunState): Child[] {
    const t = r.told, at = clock(r.begun_s, false), why = t ? t.text || (ENDS[t.reason ?? ""] ?? "") : "";
    if (t && (t.profile ?? 0) > 0) {
      return [`Samples of ${at}: `, h("a", { href: hrefOf({ profile: t.profile, view: "", sort: "" }) }, `profile ${t.profile}`),
              ` of ${looks(t.samples + t.unchanged)} in ${r.ran_s} s${lacks(t)}${why ? `, it ended early: ${why}` : ""}`];
    }
    return [`Samples of ${at}: no profile, as ${why || "no process was seen"}`];
  }
}
