// SPDX-License-Identifier: Apache-2.0
// Numbers as people say them: three significant digits, with their unit.

/** A number with three significant digits. */
function three(value: number): string {
  const abs = Math.abs(value);
  return abs >= 99.95 ? value.toFixed(0) : abs >= 0.01 ? value.toPrecision(3) : abs === 0 ? "0" : value.toExponential(1);
}

/** Without zeros behind the point: for axes, and where people chose the number. */
export function plain(text: string): string {
  return text.replace(/\.0+(?= |\/|$)/, "");
}

/** A duration in microseconds: "3.1 ms", "412 µs". null: "–". */
export function duration(us: number | null | undefined): string {
  if (us === null || us === undefined) { return "–"; }
  const abs = Math.abs(us);
  return abs === 0 ? "0" : abs < 0.9995 ? `${three(us * 1000)} ns` : abs < 999.5 ? `${three(us)} µs`
    : abs < 999500 ? `${three(us / 1e3)} ms` : abs < 6e7 ? `${three(us / 1e6)} s` : span(us / 1e6);
}

/** Whole minutes, hours and days: "90 min", "3 h", "7 d". Seconds where it is less. */
export function span(seconds: number): string {
  return plain(seconds < 60 ? `${three(seconds)} s` : seconds < 7200 ? `${three(seconds / 60)} min`
    : seconds < 172800 ? `${three(seconds / 3600)} h` : `${three(seconds / 86400)} d`);
}

/** How many: "412", "12.3 k", "1.2 M". */
export function count(n: number | null | undefined): string {
  if (n === null || n === undefined) { return "–"; }
  return n < 9999.5 ? (Number.isInteger(n) ? String(n) : three(n)) : n < 999500 ? `${three(n / 1e3)} k` : `${three(n / 1e6)} M`;
}

/** How many a second. */
export function rate(n: number | null | undefined): string {
  return n === null || n === undefined ? "–" : `${three(n)}/s`;
}

/** A share as per cent: "0.4 %". */
export function percent(share: number): string {
  return share > 0 && share < 0.0001 ? "< 0.01 %" : `${three(share * 100)} %`;
}

/** Processor time in µs a second, as finely as an estimate can be told. */
export function processor(us: number): string {
  const share = us / 1e4;
  return share === 0 ? "nothing" : share < 0.1 ? "under 0.1 % of a processor" : `about ${Number(share.toPrecision(2))} % of a processor`;
}

/** Where an axis of values has its lines: 0, and so many round numbers up to the most, or fewer. */
export function rounds(most: number, lines: number): number[] {
  const rough = most / lines;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5].map(m => m * power).find(s => s >= rough) ?? 10 * power;
  const out = [];
  for (let v = 0; v <= most * 1.0001; v += step) { out.push(v); }
  return out;
}
