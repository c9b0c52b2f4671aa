// SPDX-License-Identifier: Apache-2.0
// One colour a tier, from its name, the same wherever it is shown. A name has a place among the hues; where an older tier has it
// already the next free one is taken, so that a new tier never changes the colour of another.
import { hash } from "./hash";

const HUES = 7;
const places = new Map<string, number>();

/** All tiers that the database knows, the oldest first. */
export function knowTiers(names: string[]): void {
  for (const name of names) {
    if (!places.has(name)) {
      const round = Math.floor(places.size / HUES);
      const taken = new Set([...places.values()].filter(p => Math.floor(p / HUES) === round).map(p => p % HUES));
      let place = hash(name) % HUES;
      while (taken.has(place)) { place = (place + 1) % HUES; }
      places.set(name, round * HUES + place);
    }
  }
}

/** The class that gives an element its tier's colour, as `--tier`. */
export function tierClass(name: string): string {
  knowTiers([name]);
  const place = places.get(name) as number;
  return `tier-${place % HUES + 1} shade-${Math.floor(place / HUES) % 3}`;
}

/** A variable of the style sheet. */
export function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The same for a canvas. */
export function tierColour(name: string): string {
  knowTiers([name]);
  const place = places.get(name) as number;
  const hue = variable(`--hue-${place % HUES + 1}`);
  const shade = Math.floor(place / HUES) % 3;
  return shade === 0 ? hue : mix(hue, shade === 1 ? "#ffffff" : "#000000", 0.4);
}

/** Two colours "#rrggbb", the second one's share 0 to 1. */
export function mix(a: string, b: string, share: number): string {
  const channels = (c: string): number[] => {
    const full = c.length === 4 ? c.replace(/[0-9a-f]/gi, "$&$&") : c;
    return [1, 3, 5].map(i => parseInt(full.slice(i, i + 2), 16));
  };
  const to = channels(b);
  return `#${channels(a).map((x, i) => Math.round(x + (to[i] - x) * share).toString(16).padStart(2, "0")).join("")}`;
}

/** Grey lines from lower left to upper right, for what waits and for what cannot be trusted. */
export function hatching(context: CanvasRenderingContext2D, line: string, ground: string | null): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const c = tile.getContext("2d") as CanvasRenderingContext2D;
  if (ground) {
    c.fillStyle = ground;
    c.fillRect(0, 0, 8, 8);
  }
  c.strokeStyle = line;
  c.lineWidth = 1.5;
  c.beginPath();
  for (const x of [-8, 0, 8]) {
    c.moveTo(x - 2, 10);
    c.lineTo(x + 10, -2);
  }
  c.stroke();
  return context.createPattern(tile, "repeat") as CanvasPattern;
}
