// SPDX-License-Identifier: Apache-2.0
// Elements in one call. Texts go in as text nodes, never as HTML: names come from nodes that nobody vouches for.

export type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | ((event: never) => void);

/**
 * An element with attributes and children. `on…` are listeners (`onclick`), `true` sets an attribute without a value, and what is
 * false, null or undefined is left out; of children too. Style goes by classes: the page's policy refuses `style` attributes.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, Value> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value as (event: Event) => void);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  fill(element, ...children);
  return element;
}

/** Puts children into an element, in the place of those that it has. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(
    ...children.filter((c): c is Node | string | number => c !== null && c !== undefined && c !== false)
      .map(c => c instanceof Node ? c : String(c)));
}
