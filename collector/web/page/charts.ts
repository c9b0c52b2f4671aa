// SPDX-License-Identifier: Apache-2.0
// The three charts of a view: where the time goes, how long requests take, how many there are. One time axis.
import type { Mark, RunNow, Series } from "./api";
import { hrefOf } from "./address";
import { hatching, mix, tierClass, tierColour, variable } from "./colours";
import { type Child, h } from "./dom";
import { pinsOf } from "./notes";
import { count, duration, plain, rate, rounds, span } from "./numbers";
import { profilesOf, Strip, what, whatNow } from "./strip";
import { drawDots, drawLine, drawMarks, drawStack, drawUntrusted, type Pin, Plot, stepName, TimeAxis } from "./plot";
import { moment } from "./times";

const WHY: Record<string, string> = {
  unclear: "not trusted: it is not clear which requests some calls belong to",
  lossy: "not trusted: messages were lost, or requests are incomplete",
  paused: "tracing was paused",
};
const MARKS: Record<string, (amount: number) => string> = {
  trips: n => n === 1 ? "the guard stopped tracing" : `the guard stopped tracing ${n} times`,
  lowered_ms: n => `fewer requests sampled for ${span(n / 1000)}`,
  paused_ms: n => `paused for ${span(n / 1000)}`,
  away_ms: n => `no collector for ${span(n / 1000)}`,
  reloads: n => n === 1 ? "code was loaded anew" : `code was loaded anew ${n} times`,
};

type Layer = { name: string; values: (number | null)[]; key: string; colour: string };

/** What a mark says; "": it is none that is shown. */
export function markText(m: Mark): string {
  return m.kind === "note" ? `“${m.text ?? ""}”`
    : m.kind === "profile" ? `profile ${m.amount}${m.text ? `, ${m.text}` : ""}` : MARKS[m.kind]?.(m.amount) ?? "";
}

/** Where it stands: what a trigger began where that was, and no other samples: they have bars below. */
function placeOf(m: Mark, step_s: number): number | null {
  return m.kind === "note" ? m.at_s
    : m.kind !== "profile" ? m.at_s + step_s / 2
    : m.of !== "samples" ? m.at_s : m.trigger ? m.from_s ?? null : null;
}

/** What triggers began, as links to its profile, or to the node where it goes on. */
function triggered(marks: Mark[], now: RunNow[]): Pin[] {
  return [...profilesOf(marks).filter(m => m.trigger).map(m =>
    ({ at: m.from_s, what: "Trigger", title: `${moment(m.from_s, true)} ${what(m)} (${m.node})`, href: hrefOf({ profile: m.amount, view: "", sort: "" }) })),
    ...now.filter(r => r.trigger).map(r =>
      ({ at: r.since_s, what: "Trigger", title: `${moment(r.since_s, true)} ${whatNow(r)} (${r.node})`, href: hrefOf({ view: "nodes", nodes: [r.node] }) }))];
}

const largest = (values: (number | null)[]): number => values.reduce<number>((most, v) => Math.max(most, v ?? 0), 0);

/** The mean of what each request had: steps with more requests weigh more. */
export function weighed(values: (number | null)[], requests: (number | null)[]): number | null {
  let sum = 0, n = 0;
  values.forEach((v, i) => {
    if (v !== null && requests[i]) {
      sum += v * (requests[i] as number);
      n += requests[i] as number;
    }
  });
  return n > 0 ? sum / n : null;
}

function total(values: (number | null)[]): number {
  return values.reduce<number>((sum, v) => sum + (v ?? 0), 0);
}

function item(name: string, value: string, key: string, title?: string): HTMLElement {
  return h("span", { class: "item", title }, h("i", { class: `key ${key}` }), `${name} `, h("b", {}, value));
}

export class Charts {
  readonly element: HTMLElement;
  private readonly where: Plot;
  private readonly latency: Plot;
  private readonly load: Plot;
  private readonly strip = new Strip();
  private series: Series | null = null;
  private now: RunNow[] = [];

  /** chosen: tiers that are told apart; the others stand as one. None: all are. */
  constructor(private readonly axis: TimeAxis, private readonly chosen: string[], gone: AbortSignal) {
    this.where = new Plot("Where the time goes, per request", axis, "tall");
    this.latency = new Plot("Latency", axis, "middle");
    this.load = new Plot("Requests and errors", axis, "low");
    this.element = h("div", { class: "charts" }, h("div", { class: "where" }, this.where.element, this.strip.element),
                     h("div", { class: "beside" }, this.latency.element, this.load.element));
    addEventListener("kprof:look", () => this.redraw(), { signal: gone });
  }

  /** now: the runs of sampling that go on at its end. */
  show(series: Series, now: RunNow[], from: number, until: number): void {
    this.series = series;
    this.now = now;
    Object.assign(this.axis, { from, until, start: series.start_s, step: series.step_s, steps: series.count });
    this.redraw();
    this.where.showPins([...pinsOf(series.marks), ...triggered(series.marks, now)]);
    this.strip.show(series.marks, now, from, until);
  }

  private redraw(): void {
    if (this.series) {
      this.showWhere(this.series);
      this.showLatency(this.series);
      this.showLoad(this.series);
    }
  }

  /** The step's name, and what is to be known of it: in front of each legend. */
  private notes(s: Series, step: number | null): Child[] {
    return step === null ? [] : [h("span", { class: "item" }, h("b", {}, stepName(this.axis, step))),
      ...this.told(s, step).map(text => h("span", { class: "item note" }, text))];
  }

  private told(s: Series, step: number): string[] {
    const verdict = s.verdicts[step];
    const from = this.axis.at(step), until = from + this.axis.step;
    return [...(verdict && verdict !== "ok" ? [WHY[verdict] ?? verdict] : []),
            ...s.marks.filter(m => {
              const at = placeOf(m, 0);
              return at !== null && at >= from && at < until;
            }).map(markText).filter(text => text !== "")];
  }

  /** Where marks stand: what lasts has one at its begin. */
  private markTimes(s: Series): number[] {
    const seen = new Set(s.marks.map(m => `${m.kind} ${m.at_s}`));
    return [...s.marks.filter(m => markText(m) !== "" && !(m.kind.endsWith("_ms") && seen.has(`${m.kind} ${m.at_s - s.step_s}`)))
      .map(m => placeOf(m, s.step_s)).filter((at): at is number => at !== null), ...this.now.filter(r => r.trigger).map(r => r.since_s)];
  }

  private layers(s: Series): Layer[] {
    const shown = (tier: string): boolean => this.chosen.length === 0 || this.chosen.includes(tier);
    const own = s.tiers.filter(t => shown(t.name)).map((t): Layer =>
      ({ name: t.name, values: t.self_us, key: tierClass(t.name), colour: tierColour(t.name) }));
    const others = s.tiers.filter(t => !shown(t.name));
    return others.length === 0 ? own : [...own, { name: "other tiers", key: "others", colour: variable("--others"),
      values: s.requests.map((n, i) => n === null ? null : others.reduce((sum, t) => sum + (t.self_us[i] ?? 0), 0)) }];
  }

  private showWhere(s: Series): void {
    const layers = this.layers(s);
    // rows of an older version have it in their callers' time too
    const waiting = s.requests.map((_, i) => s.waiting_us[i] ?? s.tiers.reduce<number>((sum, t) => sum + (t.wait_us[i] ?? 0), 0));
    const apart = s.waiting_us.some(v => v !== null);
    const columns = [...layers.map(l => l.values), s.uncovered_us, waiting];
    const most = largest(s.requests.map((_, i) => columns.reduce<number>((sum, c) => sum + (c[i] ?? 0), 0))) || 1000;
    this.where.show({
      lines: rounds(most * 1.05, 6).map(value => ({ value, text: plain(duration(value)) })),
      share: value => value / (most * 1.05),
      draw: pen => {
        const fills = [...layers.map(l => l.colour), variable("--uncovered"),
                       hatching(pen.c, variable("--quiet"), variable("--background"))];
        drawStack(pen, this.axis, columns, fills);
        drawLine(pen, this.axis, s.mean_us, variable("--text"), 1.5, []);
        drawUntrusted(pen, this.axis, s.verdicts);
        drawMarks(pen, this.markTimes(s));
      },
      legend: step => {
        const at = (values: (number | null)[]): string => duration(step === null ? weighed(values, s.requests) : values[step]);
        return [...this.notes(s, step), item("request", at(s.mean_us), "line", "The mean request, from its begin to its end"),
          ...layers.map(l => item(l.name, at(l.values), l.key, "Time in its own code. What runs in parallel adds up")),
          item("no tier", at(s.uncovered_us), "uncovered", "What no tier covers"),
          item(apart ? "waiting" : "waiting, in its callers' time too", at(waiting), "hatched", "Until a call begins in another process"),
          apart ? item("in parallel", at(s.parallel_us), "blank", "What counts more than once above: as high as the stack stands over the line") : null];
      },
      say: step => [stepName(this.axis, step), ...this.told(s, step), `request ${duration(s.mean_us[step])}`,
                    ...layers.map(l => `${l.name} ${duration(l.values[step])}`), `waiting ${duration(waiting[step])}`].join(", "),
    });
  }

  private showLatency(s: Series): void {
    const bottoms = s.heat.counts.filter(c => c.length > 0).map(c => c[0]);
    const tops = s.heat.counts.filter(c => c.length > 0).map(c => c[0] + c.length - 1);
    const first = Math.min(...bottoms, 1e9) === 1e9 ? 40 : Math.min(...bottoms);
    const last = Math.max(first + 8, ...tops, 0) + 2;
    const height = (us: number): number => (Math.log2(Math.max(us, 1e-3) * 1000) * s.heat.scale - first) / (last - first);
    const deepest = Math.max(1, ...s.heat.counts.map(c => Math.max(0, ...c.slice(1))));
    const lines = [];
    for (let us = 1e-3; us < 1e10; us *= 10) {
      if (height(us) >= 0 && height(us) <= 1) { lines.push({ value: us, text: plain(duration(us)) }); }
    }
    this.latency.show({
      lines, share: height,
      draw: pen => {
        const shades = Array.from({ length: 17 }, (_, k) => mix(variable("--heat-none"), variable("--heat-most"), k / 16));
        s.heat.counts.forEach((counts, i) => {
          const x = Math.round(pen.x(this.axis.at(i))), width = Math.max(1, Math.round(pen.x(this.axis.at(i + 1))) - x);
          for (let k = 1; k < counts.length; k++) {
            if (counts[k] > 0) {
              const low = Math.pow(2, (counts[0] + k - 1) / s.heat.scale) / 1000, high = low * Math.pow(2, 1 / s.heat.scale);
              pen.c.fillStyle = shades[1 + Math.round(15 * Math.sqrt(counts[k] / deepest))];
              const y = Math.round(pen.y(high));
              pen.c.fillRect(x, y, width, Math.max(1, Math.round(pen.y(low)) - y));
            }
          }
        });
        const colour = variable("--text"), ground = variable("--background");
        for (const [values, dashes] of [[s.p50_us, []], [s.p90_us, [2, 2]], [s.p99_us, [5, 2]]] as [typeof s.p50_us, number[]][]) {
          drawLine(pen, this.axis, values, ground, 3, []);
          drawLine(pen, this.axis, values, colour, 1.25, dashes);
        }
        drawDots(pen, this.axis, s.max_us, colour);
        drawUntrusted(pen, this.axis, s.verdicts);
        drawMarks(pen, this.markTimes(s));
      },
      legend: step => [...this.notes(s, step), ...([["p50", s.p50_us, "line"], ["p90", s.p90_us, "dotted"], ["p99", s.p99_us, "dashed"]] as
        [string, (number | null)[], string][]).map(([name, values, key]) =>
          item(name, step === null ? "" : duration(values[step]), key)),
        item("longest", step === null ? "" : duration(s.max_us[step]), "dots"),
        item("requests", step === null ? "few to many" : count(s.requests[step]), "heat")],
      say: step => `${stepName(this.axis, step)}, p50 ${duration(s.p50_us[step])}, p90 ${duration(s.p90_us[step])}, `
        + `p99 ${duration(s.p99_us[step])}, longest ${duration(s.max_us[step])}`,
    });
  }

  private showLoad(s: Series): void {
    const most = largest(s.requests) / s.step_s || 1;
    const fine = s.requests.map((n, i) => n === null ? null : (n - (s.errors[i] ?? 0)) / s.step_s);
    const failed = s.errors.map(n => n === null ? null : n / s.step_s);
    this.load.show({
      lines: rounds(most * 1.1, 2).map(value => ({ value, text: plain(rate(value)) })),
      share: value => value / (most * 1.1),
      draw: pen => {
        drawStack(pen, this.axis, [failed, fine], [variable("--error"), variable("--load")]);
        drawUntrusted(pen, this.axis, s.verdicts);
        drawMarks(pen, this.markTimes(s));
      },
      legend: step => {
        const seconds = s.requests.filter(n => n !== null).length * s.step_s || 1;
        return [...this.notes(s, step),
          item("requests", rate(step === null ? total(s.requests) / seconds : (s.requests[step] ?? 0) / s.step_s), "load"),
          item("errors", count(step === null ? total(s.errors) : s.errors[step]), "error")];
      },
      say: step => `${stepName(this.axis, step)}, ${rate((s.requests[step] ?? 0) / s.step_s)}, ${count(s.errors[step])} errors`,
    });
  }
}
