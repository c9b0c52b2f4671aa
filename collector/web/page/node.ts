// SPDX-License-Identifier: Apache-2.0
// One node as it is now. What somebody works with stays as it is while the numbers change.
import { hrefOf } from "./address";
import type { FlameState, NodeState, RunState } from "./api";
import { type Child, fill, h } from "./dom";
import { LiveList } from "./lists";
import { count, percent, plain, processor, rate } from "./numbers";
import { type Ask, order, sentence } from "./orders";
import { Runs } from "./runs";
import { clock, moment, secondsOf } from "./times";
import { Top } from "./top";
import { Triggers } from "./triggers";

const WORDS: Record<string, string> = {
  tracing: "tracing", paused: "paused", tripped: "stopped by the guard", idle: "traces nothing", waiting: "waits for its collector",
};

function stateWord(n: NodeState): string {
  return n.connected ? WORDS[n.state] ?? n.state : "gone";
}

function asked(n: NodeState): string {
  return n.level_ppm === 0 ? "–" : n.per_second > 0 ? `at most ${n.per_second}/s` : n.one_in > 1 ? `1 in ${n.one_in}` : "all requests";
}

function inForce(n: NodeState): string {
  return n.level_ppm === 0 || n.level_ppm >= 1e6 ? "" : `, of these ${plain(percent(n.level_ppm / 1e6))} now`;
}

/** What is to be known of its state, and what to do next. */
function advice(n: NodeState, may: boolean): Child[] {
  const resume = may ? "Resume" : `kprof trace ${n.node} resume`;
  if (!n.connected) {
    return ["It traces nothing now; what it sent is kept. To trace it again: ", h("code", {}, `kprof attach ${n.node}`)];
  }
  if (n.state === "paused") {
    return ["Somebody paused it: requests are not counted. ", may ? "" : h("code", {}, resume), may ? `${resume} traces them again.` : " traces them again."];
  }
  if (n.state === "tripped") {
    return ["It made messages faster than it could send them, so the guard took all tracing off. It tries again by itself, with fewer requests. ",
            may ? `${resume} tries at once; ` : "", "sampling fewer requests keeps it from happening again."];
  }
  if (n.state === "idle" || n.state === "waiting") {
    return ["It is connected, and no trace runs. ", h("code", {}, `kprof doctor ${n.node}`), " says what is missing."];
  }
  if (n.unmarked_calls > 0) {
    return [`Its functions were called ${count(n.unmarked_calls)} times, but nothing has begun a request. `,
            h("code", {}, `kprof doctor ${n.node}`), " says which entries fit."];
  }
  if (n.level_ppm > 0 && n.level_ppm < 1e6) {
    return ["The guard lets fewer requests through than asked for, as tracing takes too much of the node. It goes back by itself."];
  }
  return [];
}

function losses(n: NodeState): string {
  const told = [[n.incomplete, "requests incomplete"], [n.expired, "without an end"], [n.dropped_messages, "messages dropped"],
                [n.decode_errors, "not readable"]] as [number, string][];
  return told.filter(([number]) => number > 0).map(([number, text]) => `${count(number)} ${text}`).join(", ") || "nothing";
}

function fact(name: string, value: string, title?: string): HTMLElement {
  return h("div", { class: "fact", title }, h("span", {}, name), h("b", {}, value));
}

export class NodeCard {
  readonly element: HTMLElement;
  private readonly state = h("p", { class: "node-state" });
  private readonly facts = h("div", { class: "facts" });
  private readonly advice = h("p", {});
  private readonly sampled = h("p", {});
  private readonly flames = h("ul", { class: "flames" });
  private readonly traces = new LiveList<FlameState>(this.flames, f => f.over ? this.ended(f) : this.running(f));
  private readonly runs: Runs;
  private readonly top: Top | null;
  private readonly triggers: Triggers;
  private readonly events = h("ul", { class: "events" });
  private readonly said = h("p", { role: "status" });
  private readonly pause = h("button", { type: "button" });
  private readonly controls: HTMLElement | null;
  private command = "pause";
  private askedFor: ((n: NodeState) => void) | null = null; // shows how it samples, before somebody chooses otherwise

  /** changed: when something was ordered. alone: nothing else is shown. */
  constructor(private readonly name: string, private readonly may: boolean, private readonly changed: () => void, gone: AbortSignal, tiers: string[],
              alone: boolean) {
    this.runs = new Runs(name, may, this.ask);
    this.top = may ? new Top(name) : null;
    this.triggers = new Triggers(name, may, this.ask, gone, tiers, alone);
    this.controls = may ? h("div", { class: "orders" }, this.pauses(), this.sampling(), this.tracing(), this.runs.form()) : null;
    this.element = h("section", { class: "node", "aria-label": name },
      h("div", { class: "node-head" }, h("h2", {}, name), this.state), this.facts, this.advice, this.sampled, this.controls, this.said, this.runs.list,
      this.flames, this.triggers.element, this.top?.element,
      h("details", {}, h("summary", {}, "What happened lately"), this.events));
  }

  show(n: NodeState, flames: FlameState[], runs: RunState[]): void {
    const word = stateWord(n);
    this.state.className = `node-state ${n.connected ? n.state : "gone"}`;
    fill(this.state, h("b", {}, word), n.connected ? ` · connected since ${moment(secondsOf(n.since), false)}`
      : ` since ${moment(secondsOf(n.since), true)}`);
    fill(this.facts,
      fact("OTP", n.otp || "–"), fact("samples", `${asked(n)}${inForce(n)}`), fact("requests", rate(n.requests_per_s)),
      fact("messages", rate(n.messages_per_s)),
      fact("tracing costs", n.connected ? processor(n.cost_us_per_s) : "–",
           "Estimated from its messages and their bytes"),
      fact("guard stopped it", n.trips === 0 ? "never" : n.trips === 1 ? "once" : `${n.trips} times`),
      fact("lost", losses(n), "Since the collector was started"));
    fill(this.advice, ...advice(n, this.may));
    this.command = n.state === "paused" || n.state === "tripped" ? "resume" : "pause";
    this.pause.textContent = this.command === "pause" ? "Pause" : "Resume";
    if (this.controls) { this.controls.hidden = !n.connected; }
    if (this.top) { this.top.element.hidden = !n.connected; }
    this.triggers.element.hidden = !n.connected;
    if (n.connected) { this.triggers.look(); }
    // where one that this page began goes on, that stands below
    fill(this.sampled, n.stacks && !runs.some(r => !r.over) ? `Stacks are sampled ${n.stacks}. ` : null,
      n.stacks && /^for ever|; for ever/.test(n.stacks)
        && h("a", { href: hrefOf({ view: "samples", nodes: [n.node], label: "always", last: 86400 }) }, "A day of it"));
    if (n.level_ppm > 0) {
      this.askedFor?.(n);
      this.askedFor = null;
    }
    this.traces.show(flames);
    this.runs.show(runs);
    fill(this.events, ...[...n.history].reverse().map(e => h("li", {}, `${moment(secondsOf(e.at), true)} ${e.text}`)));
  }

  // -- orders -------------------------------------------------------------------------------------

  private readonly ask: Ask = async (path, body, done, next) => {
    this.said.textContent = "…";
    try {
      const told = await order<{ text?: string }>(path, body);
      this.said.textContent = done(told.text ?? "");
    } catch (error) {
      const why = sentence(error);
      this.said.textContent = `${why}${next?.(why) ?? ""}`;
    }
    this.changed();
  };

  private at(command: string): string { return `nodes/${encodeURIComponent(this.name)}/${command}`; }

  private pauses(): HTMLElement {
    this.pause.addEventListener("click", () => void this.ask(this.at(this.command), {},
      () => this.command === "pause" ? "It is paused." : "It traces again."));
    return this.pause;
  }

  private sampling(): HTMLElement {
    const how = h("select", { "aria-label": `Sampling of ${this.name}` }, h("option", { value: "all" }, "all requests"),
                  h("option", { value: "one_in" }, "one in"), h("option", { value: "per_second" }, "at most a second"));
    const many = h("input", { type: "number", min: "1", max: "1000000", value: "10", "aria-label": `How many, of ${this.name}`, hidden: true,
                              disabled: true });
    const fits = (): void => { many.hidden = many.disabled = how.value === "all"; }; // a hidden number must not stop the form
    how.addEventListener("change", fits);
    this.askedFor = n => {
      how.value = n.per_second > 0 ? "per_second" : n.one_in > 1 ? "one_in" : "all";
      if (how.value !== "all") { many.value = String(n.per_second || n.one_in); }
      fits();
    };
    return this.form("sample", [h("span", {}, "Sample"), how, many], "Set", () => this.ask(this.at("sample"),
      how.value === "all" ? { one_in: 1 } : { [how.value]: Number(many.value) }, text => `It ${text || "samples so"}.`));
  }

  private tracing(): HTMLElement {
    const many = h("input", { type: "number", min: "1", max: "100000", value: "20", "aria-label": `Requests to trace fully, of ${this.name}` });
    const only = h("input", { type: "text", maxlength: "120", placeholder: "any identity", "aria-label": `Of this identity, of ${this.name}` });
    const long = h("input", { type: "number", min: "1", max: "3600", value: "60", "aria-label": `Seconds that it lasts at most, of ${this.name}` });
    const fields = [h("span", {}, "Trace fully"), many, h("span", {}, "requests of"), only, h("span", {}, "for at most"), long, h("span", {}, "s")];
    return this.form("fully", fields, "Begin", () => {
      const body: Record<string, string | number> = { node: this.name, requests: Number(many.value), seconds: Number(long.value) };
      if (only.value.trim()) { body.identity = only.value.trim(); }
      return this.ask("flame", body, () => "It is begun. These requests take longer meanwhile.");
    });
  }

  private form(name: string, fields: Child[], button: string, submit: () => Promise<void>): HTMLElement {
    const form = h("form", { class: `order ${name}` }, ...fields, h("button", { type: "submit" }, button));
    form.addEventListener("submit", event => {
      event.preventDefault();
      void submit();
    });
    return form;
  }

  // -- full traces --------------------------------------------------------------------------------

  private running(f: FlameState): Child[] {
    const has = f.told?.requests ?? 0, waits = f.told?.text ?? "";
    const doing = waits ? `waits: ${waits}` : (f.told?.functions ?? 0) > 0
      ? `${count(f.told?.functions)} functions, ${count(f.told?.messages)} messages` : "looks for the processes that requests go through";
    return [h("label", {}, `Full trace: ${has} of ${f.requests} requests in at most ${f.seconds} s `,
              h("progress", { max: String(f.requests), value: String(has) })), ` ${doing} `,
            this.may ? h("button", { type: "button", "aria-label": `Stop the full trace of ${this.name}`,
              onclick: () => void this.ask("flame/stop", { id: f.id }, () => "It ends; what there is of it is kept.") }, "Stop") : null];
  }

  private ended(f: FlameState): Child[] {
    const t = f.told, at = clock(f.begun_s, false);
    if (t && (t.profile ?? 0) > 0) {
      const early = t.requests < f.requests ? `, it ended early${t.text ? `: ${t.text}` : ", as the time was over"}` : "";
      return [`Full trace of ${at}: `, h("a", { href: hrefOf({ profile: t.profile, view: "", sort: "" }) }, `profile ${t.profile}`),
              ` of ${t.requests < f.requests ? `${count(t.requests)} of ` : ""}${count(f.requests)} ${f.requests === 1 ? "request" : "requests"}${early}`];
    }
    const why = !t ? "it was not begun" : t.text ? t.text
      : t.incomplete > 0 ? `${count(t.incomplete)} requests came, and of each messages were lost`
      : t.unseen > 0 ? `${count(t.unseen)} requests came, but ran through none of its functions`
      : t.others > 0 ? `${count(t.others)} requests came, but none of this identity`
      : t.partly > 0 ? `${count(t.partly)} requests came, but none began and ended while functions were traced`
      : "no request came in that time";
    return [`Full trace of ${at}: no profile, as ${why}`];
  }
}
