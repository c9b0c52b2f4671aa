// SPDX-License-Identifier: Apache-2.0
// A file's profile of samples, of a part of its time: what each of its stacks weighs then. What does not add up is not known of a part.
import type { Part } from "../heat";
import { partName } from "../heat";
import type { ProfileData } from "./data";

/** As the file has it: by each metric, for each cell of the heat map or for each of its columns, stack and value, stack and value, … */
export type PartsFile = { from_ms: number; cell_ms: number; metrics: Record<string, number[][]> };

/** The part in whole cells. */
export function wholeCells(file: PartsFile, [from, until]: Part): Part {
  const at = (ms: number): number => (ms - file.from_ms) / file.cell_ms;
  const first = Math.max(0, Math.floor(at(from) + 1e-6)), end = Math.max(first + 1, Math.ceil(at(until) - 1e-6));
  return [file.from_ms + first * file.cell_ms, file.from_ms + end * file.cell_ms];
}

function weights(file: PartsFile, metric: string, [from, until]: Part, count: number): number[] {
  const out = new Array<number>(count).fill(0), cells = file.metrics[metric] ?? [];
  const first = Math.round((from - file.from_ms) / file.cell_ms), end = Math.round((until - file.from_ms) / file.cell_ms);
  for (const cell of cells.slice(first, end)) {
    for (let i = 0; i + 1 < cell.length; i += 2) { out[cell[i]!] = (out[cell[i]!] ?? 0) + cell[i + 1]!; }
  }
  return out;
}

/** The same data of a part; other: what it is compared with, null: nothing. */
export function dataOf(data: ProfileData, file: PartsFile, part: Part, other: Part | null): ProfileData {
  const count = data.stacks.frame.length, known = data.series.filter(s => s.name in file.metrics);
  const left = data.series.filter(s => !(s.name in file.metrics)).map(s => s.name.replace(/_/g, " "));
  return { ...data, title: `${partName(part)} of ${data.title}`,
           notes: [...data.notes, ...left.length > 0 ? [`Of a part a file does not know ${left.join(", ")}; the command below the heat map does`] : []],
           metric: known.some(s => s.name === data.metric) ? data.metric : "samples",
           ...(other ? { before: partName(other) } : {}),
           series: known.map(s => ({ name: s.name, unit: s.unit, self: weights(file, s.name, part, count),
                                     ...(other ? { before: weights(file, s.name, other, count) } : {}) })) };
}
