// SPDX-License-Identifier: Apache-2.0
// A table whose heads sort it, and what stands in its cells.
import { tierClass } from "./colours";
import { type Child, fill, h } from "./dom";

export type Column<T> = {
  key: string;
  head: string;
  title?: string;
  wide?: boolean;                   // left out where the window is narrow
  text?: boolean;                   // left-aligned, sorted by letters
  value(row: T): number | string;   // to sort by
  cell(row: T): Child;
};

/** Sorts by a column's key, descending for numbers; "-key" is the other way round. */
export function sorted<T>(rows: T[], columns: Column<T>[], sort: string): T[] {
  const column = columns.find(c => c.key === sort.replace(/^-/, ""));
  if (!column) { return rows; }
  const sign = (sort.startsWith("-") ? -1 : 1) * (column.text ? 1 : -1);
  return [...rows].sort((a, b) => {
    const x = column.value(a), y = column.value(b);
    return sign * (typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y));
  });
}

export type Rows<T> = {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  sort: string;                     // by which column; "": as they come
  resort: ((sort: string) => void) | null;
  key(row: T): string;
};

/** Puts a table into an element; what had the focus in it keeps it. */
export function showTable<T>(into: HTMLElement, table: Rows<T>): void {
  const focused = into.contains(document.activeElement) ? document.activeElement?.getAttribute("data-focus") : null;
  const head = table.columns.map(c => {
    const now = table.sort.replace(/^-/, "") === c.key;
    const up = table.sort.startsWith("-") !== Boolean(c.text);
    const order = now ? up ? "ascending" : "descending" : undefined;
    return h("th", { scope: "col", class: classes(c), "aria-sort": order, title: c.title },
      table.resort ? h("button", { class: "sort", "data-focus": `head ${c.key}`,
        onclick: () => table.resort?.(now && !table.sort.startsWith("-") ? `-${c.key}` : c.key) },
        c.head, now ? h("span", { "aria-hidden": "true" }, up ? " ▴" : " ▾") : null) : c.head);
  });
  fill(into, h("table", {}, h("caption", { class: "spoken" }, table.caption), h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...sorted(table.rows, table.columns, table.sort).map(row => h("tr", {}, ...table.columns.map((c, i) => {
      const cell = c.cell(row);
      if (cell instanceof HTMLAnchorElement) { cell.setAttribute("data-focus", `${c.key} ${table.key(row)}`); }
      return i === 0 ? h("th", { scope: "row", class: classes(c) }, cell) : h("td", { class: classes(c) }, cell);
    }))))));
  if (focused) {
    [...into.querySelectorAll<HTMLElement>("[data-focus]")].find(e => e.getAttribute("data-focus") === focused)?.focus();
  }
}

function classes<T>(column: Column<T>): string | undefined {
  return [column.wide ? "wide" : "", column.text ? "text" : ""].filter(Boolean).join(" ") || undefined;
}

/** A number above a bar as long as its share, in a tier's colour. */
export function bar(text: string, share: number, tier: string | null): HTMLElement {
  const line = h("i", { class: `bar ${tier === null ? "hatched" : tierClass(tier)}` });
  line.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "barred" }, text, line);
}

const SVG = "http://www.w3.org/2000/svg";

/** A line of values, as high as a line of text, from the first one that there is. */
export function sparkline(all: (number | null)[]): SVGSVGElement {
  const values = all.slice(Math.max(0, all.findIndex(v => v !== null)));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 72 20");
  svg.setAttribute("class", values.filter(v => v !== null).length > 1 ? "spark" : "spark none");
  svg.setAttribute("aria-hidden", "true");
  const most = Math.max(1e-9, ...values.map(v => v ?? 0));
  let path = "", open = false;
  values.forEach((v, i) => {
    if (v !== null) {
      path += `${open ? "L" : "M"}${(1 + i * 70 / Math.max(1, values.length - 1)).toFixed(1)} ${(18 - v / most * 16).toFixed(1)}`;
    }
    open = v !== null;
  });
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}
