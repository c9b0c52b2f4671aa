// SPDX-License-Identifier: Apache-2.0
// Numbers as people say them: three digits and a unit.

const DURATIONS: [number, string][] = [[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZES: [number, string][] = [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]];

function digits(value: number): string {
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

function inUnits(value: number, units: [number, string][]): string {
  const [by, unit] = units.find(([least]) => Math.abs(value) >= least * 0.9995) ?? units[units.length - 1]!;
  return value === 0 ? "0" : `${digits(value / by)} ${unit}`;
}

/** Nanoseconds: "3.1 ms". */
export function duration(ns: number): string {
  return inUnits(ns, DURATIONS);
}

/** An amount in a unit as data name it, "ns", "bytes" or any noun: "12 calls". */
export function amount(value: number, unit: string): string {
  return unit === "ns" || unit === "bytes" ? figure(value, unit) : `${figure(value, unit)} ${value === 1 ? unit.replace(/s$/, "") : unit}`;
}

/** The same where the unit is known: of what is counted the number alone. */
export function figure(value: number, unit: string): string {
  return unit === "ns" ? duration(value) : unit === "bytes" ? inUnits(value, SIZES) : Math.round(value).toLocaleString("en");
}

/** A share of a whole: "12.3 %". */
export function percent(part: number, whole: number): string {
  const share = whole > 0 ? 100 * part / whole : 0;
  return share > 0 && share < 0.01 ? "< 0.01 %" : `${share.toFixed(share >= 99.95 || share === 0 ? 0 : share >= 1 ? 1 : 2)} %`;
}

/** How much more or less: "+12 %", "-3.4 %", "new", "gone", "as before". */
export function change(after: number, before: number): string {
  if (before <= 0) { return after > 0 ? "new" : "as before"; }
  if (after <= 0) { return "gone"; }
  const by = 100 * (after - before) / before;
  if (Math.abs(by) < 0.05) { return "as before"; }
  return by >= 900 ? `× ${digits(after / before)}` : `${by > 0 ? "+" : "−"}${Math.abs(by).toFixed(Math.abs(by) < 10 ? 1 : 0)} %`;
}
