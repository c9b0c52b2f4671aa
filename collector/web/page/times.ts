// SPDX-License-Identifier: Apache-2.0
// Times in the zone that was chosen: seconds since 1970.

let utc = localStorage.getItem("kprof.zone") === "utc";

export function inUtc(): boolean { return utc; }

export function setUtc(on: boolean): void {
  utc = on;
  localStorage.setItem("kprof.zone", on ? "utc" : "local");
}

type Parts = { year: number; month: number; day: number; hour: number; minute: number; second: number };

function parts(seconds: number): Parts {
  const d = new Date(seconds * 1000);
  return utc
    ? { year: d.getUTCFullYear(), month: d.getUTCMonth() + 1, day: d.getUTCDate(), hour: d.getUTCHours(), minute: d.getUTCMinutes(),
        second: d.getUTCSeconds() }
    : { year: d.getFullYear(), month: d.getMonth() + 1, day: d.getDate(), hour: d.getHours(), minute: d.getMinutes(),
        second: d.getSeconds() };
}

const two = (n: number): string => String(n).padStart(2, "0");

/** "14:05", or "14:05:10" */
export function clock(seconds: number, withSeconds: boolean): string {
  const p = parts(seconds);
  return `${two(p.hour)}:${two(p.minute)}${withSeconds ? `:${two(p.second)}` : ""}`;
}

/** "2026-11-23" */
export function day(seconds: number): string {
  const p = parts(seconds);
  return `${p.year}-${two(p.month)}-${two(p.day)}`;
}

/** With the day unless it is today. */
export function moment(seconds: number, withSeconds: boolean): string {
  const today = day(Date.now() / 1000) === day(seconds);
  return `${today ? "" : `${day(seconds)} `}${clock(seconds, withSeconds)}`;
}

const DAYS_ALONE_S = 14 * 86400;

/** "11:05 to 12:05", with days where that is not today, with seconds where it is short, and of days alone where it is long. */
export function stretch(from: number, until: number, withSeconds = until - from < 600): string {
  if (!withSeconds && until - from >= DAYS_ALONE_S) { return `${day(from)} to ${day(until)}`; }
  return day(from) === day(until) ? `${moment(from, withSeconds)} to ${clock(until, withSeconds)}`
    : `${day(from)} ${clock(from, withSeconds)} to ${day(until)} ${clock(until, withSeconds)}`;
}

/** What the zone is called: "UTC", "GMT+1". */
export function zone(): string {
  if (utc) { return "UTC"; }
  const all = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(new Date());
  return all.find(p => p.type === "timeZoneName")?.value ?? "local";
}

/** Seconds since 1970 of "2026-11-23T21:18:38.533564Z". */
export function secondsOf(text: string): number {
  return Date.parse(text) / 1000;
}

/** Where a time axis has its lines: at whole minutes, hours, days of the zone. */
export function ticks(from: number, until: number, most: number): { at: number; text: string }[] {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const step = steps.find(s => (until - from) / s <= most) ?? Math.ceil((until - from) / most / 604800) * 604800;
  const shift = utc ? 0 : new Date(from * 1000).getTimezoneOffset() * 60;
  const out = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= until; at += step) {
    out.push({ at, text: step >= 86400 || (step >= 3600 && clock(at, false) === "00:00") ? day(at).slice(5) : clock(at, step < 60) });
  }
  return out;
}
