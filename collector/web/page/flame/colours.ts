// SPDX-License-Identifier: Apache-2.0
// Colours of frames, for a light and for a dark page: a hue for each application (Okabe and Ito's, then shades of them), modules in
// shades of it; grey and hatched what ran nothing; of two profiles red is more and blue is less.
import { hash } from "../hash";
import { type Frame, Kind } from "./data";

type Rgb = [number, number, number];

export interface Paint { fill: string | CanvasPattern; ink: string }

export interface Colours {
  dark: boolean;
  background: string;
  text: string;
  mark: Paint;
  narrow: CanvasPattern;
  /** Of what is too narrow even for hatching. */
  speck: string;
  frames: Paint[];
  applications: Map<string, string>;
  /** By share: -1 is all gone, 1 is all new. */
  change(share: number): Paint;
}

const HUES: Rgb[] = [[86, 180, 233], [230, 159, 0], [0, 158, 115], [204, 121, 167], [240, 228, 66], [213, 94, 0], [0, 114, 178]];
const DARK_INK = "#141414", LIGHT_INK = "#fff";

// Its low bits alone choose: the high ones go into them.
const numberOf = (text: string): number => { const n = hash(text); return (n ^ n >>> 15) >>> 0; };

const mix = (a: Rgb, b: Rgb, part: number): Rgb => a.map((v, i) => Math.round(v + (b[i]! - v) * part)) as Rgb;
const css = (c: Rgb): string => `rgb(${c.join()})`;

// By the contrast of WCAG, so that text on any fill has 4.5 : 1.
function inkOn(c: Rgb): string {
  const [r, g, b] = c.map(v => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? DARK_INK : LIGHT_INK;
}

const paint = (c: Rgb): Paint => ({ fill: css(c), ink: inkOn(c) });

function hatched(ground: Rgb, line: Rgb, step: number): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = step;
  const g = tile.getContext("2d")!;
  g.fillStyle = css(ground);
  g.fillRect(0, 0, step, step);
  g.strokeStyle = css(line);
  g.beginPath();
  for (const at of [-step, 0, step]) {
    g.moveTo(at, step);
    g.lineTo(at + step, 0);
  }
  g.stroke();
  return g.createPattern(tile, "repeat")!;
}

/** What a frame is of: its application or, where that is not known, its module up to the first "_". */
export const familyOf = (f: Frame): string => f.application || f.module.split("_")[0] || "";

export function coloursOf(frames: Frame[], dark: boolean): Colours {
  const ground: Rgb = dark ? [23, 23, 22] : [255, 255, 255];
  // each application its own hue where there are enough, whatever else is in the profile where two do not want the same
  const taken = new Array<number>(HUES.length).fill(0);
  const bases = new Map<string, Rgb>();
  for (const name of [...new Set(frames.filter(f => f.kind === Kind.Function).map(familyOf))].sort()) {
    const least = Math.min(...taken);
    let at = numberOf(name) % HUES.length;
    while (taken[at]! > least) { at = (at + 1) % HUES.length; }
    bases.set(name, mix(HUES[at]!, ground, 0.2 + 0.2 * (taken[at]!++ % 3)));
  }
  const grey = (light: number): Rgb => dark ? [light, light, light] : [255 - light, 255 - light, 255 - light];
  const instead: Partial<Record<number, Paint>> = {
    [Kind.Waiting]: { fill: hatched(grey(62), grey(92), 6), ink: dark ? LIGHT_INK : DARK_INK },
    [Kind.Asleep]: { fill: hatched(grey(34), grey(58), 10), ink: dark ? LIGHT_INK : DARK_INK },
    [Kind.Gc]: { fill: hatched(grey(74), grey(44), 4), ink: dark ? LIGHT_INK : DARK_INK },
    [Kind.Cut]: paint(grey(40)),
    [Kind.Group]: paint(grey(dark ? 52 : 28)),
  };
  const calm: Rgb = dark ? [58, 58, 56] : [236, 236, 232];
  const steps: Paint[] = [];
  for (let s = -20; s <= 20; s++) {
    const full: Rgb = s > 0 ? (dark ? [222, 84, 72] : [226, 92, 78]) : (dark ? [66, 128, 214] : [84, 148, 226]);
    steps.push(paint(mix(calm, full, s === 0 ? 0 : 0.12 + 0.88 * Math.abs(s) / 20)));
  }
  return {
    dark, background: css(ground), text: dark ? "#ececec" : "#1b1b1a",
    mark: dark ? { fill: "#ff7ad9", ink: DARK_INK } : { fill: "#b5008f", ink: LIGHT_INK },
    narrow: hatched(grey(48), grey(112), 4), speck: css(grey(90)),
    frames: frames.map(f => instead[f.kind] ?? paint(mix(bases.get(familyOf(f))!, ground, numberOf(f.module) % 5 * 0.06))),
    applications: new Map([...bases].map(([name, c]) => [name, css(c)])),
    change: share => steps[20 + Math.round(20 * Math.max(-1, Math.min(1, share)))]!,
  };
}
