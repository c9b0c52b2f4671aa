// SPDX-License-Identifier: Apache-2.0
// A choice of names: one, several or all of them, found by a search. It opens below its button; Escape closes it.
import { MOST_NAMES } from "./address";
import { fill, h } from "./dom";

export type Pick = {
  id: string;
  all: string;                          // "all nodes"
  many: string;                         // "nodes"
  chosen: string[];                     // none: all
  names(): Promise<string[]>;           // asked for when it opens
  called?(name: string): string;
  take(names: string[]): void;
};

export function pick(what: Pick): HTMLElement {
  const called = what.called ?? (name => name);
  const text = what.chosen.length === 0 ? what.all
    : what.chosen.length === 1 ? called(what.chosen[0]) : `${what.chosen.length} ${what.many}`;
  const panel = h("div", { class: "panel" });
  const summary = h("summary", { id: what.id, title: what.chosen.map(called).join(", ") || undefined }, text);
  const element = h("details", { class: "pick" }, summary, panel);
  const close = (): void => {
    element.open = false;
    summary.focus();
  };
  element.addEventListener("toggle", () => {
    if (element.open) { void what.names().then(names => open(names)).catch(() => open(what.chosen)); }
  });
  element.addEventListener("keydown", event => {
    if (event.key === "Escape" && element.open) {
      close();
      event.preventDefault();
      event.stopPropagation();
    }
  });
  element.addEventListener("focusout", event => {
    const to = event.relatedTarget as Node | null;
    if (to && !element.contains(to)) { element.open = false; }
  });

  function open(names: string[]): void {
    const all = [...new Set([...what.chosen, ...names])];
    const lines = all.map(name => {
      const box = h("input", { type: "checkbox", checked: what.chosen.includes(name), onchange: () => tell() });
      const only = h("button", { onclick: () => take([name]) }, "only", h("span", { class: "spoken" }, ` ${called(name)}`));
      return { name, box, element: h("li", {}, h("label", {}, box, ` ${called(name)}`), only) };
    });
    const found = h("span", { class: "quiet", role: "status" });
    const show = h("button", { class: "primary", onclick: () => take(lines.filter(l => l.box.checked).map(l => l.name)) }, "Show these");
    const look = h("input", { type: "search", placeholder: `search ${what.many}`, "aria-label": `Search ${what.many}`, oninput: () => {
      const wanted = look.value.toLowerCase();
      for (const line of lines) { line.element.hidden = !called(line.name).toLowerCase().includes(wanted); }
      tell();
    } });
    // Enter: what is ticked, or else what is found
    look.addEventListener("keydown", event => {
      if (event.key === "Enter") {
        const ticked = lines.filter(l => l.box.checked), seen = lines.filter(l => !l.element.hidden);
        take((ticked.length > 0 && !look.value ? ticked : seen).map(l => l.name));
      }
    });
    function tell(): void {
      const n = lines.filter(l => l.box.checked).length;
      found.textContent = n > MOST_NAMES ? `at most ${MOST_NAMES} at once`
        : lines.some(l => !l.element.hidden) ? n > 0 ? `${n} chosen` : "" : "none has that in its name";
      show.disabled = n === 0 || n > MOST_NAMES;
    }
    function take(names: string[]): void {
      element.open = false;
      what.take(names.length === lines.length ? [] : names.slice(0, MOST_NAMES));
    }
    fill(panel, look, h("ul", {}, ...lines.map(l => l.element)),
      h("div", { class: "panel-foot" }, show, h("button", { onclick: () => take([]) }, what.all), found));
    tell();
    look.focus();
  }
  return element;
}

/** Choices close when something else is clicked. */
addEventListener("pointerdown", event => {
  for (const open of document.querySelectorAll<HTMLDetailsElement>("details.pick[open]")) {
    if (!open.contains(event.target as Node)) { open.open = false; }
  }
});
