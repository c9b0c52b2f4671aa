// SPDX-License-Identifier: Apache-2.0
// What is shown, as the address has it: a link shows the same, and back and forward work.

export type View = {
  node: string;      // "": all of them
  last: number;      // seconds up to now; 0: from and until are told
  from: number;
  until: number;
  identity: string;  // "": all of them
  slow: number;      // a request; 0: none
  profile: number;
  sort: string;      // the table's column; with "-" before it the other way round
};

export const RANGES: [number, string][] = [
  [1800, "last 30 min"], [3600, "last hour"], [10800, "last 3 h"], [21600, "last 6 h"], [86400, "last 24 h"], [604800, "last 7 days"],
  [2592000, "last 30 days"]];

const USUAL: View = { node: "", last: 3600, from: 0, until: 0, identity: "", slow: 0, profile: 0, sort: "" };

/** What the address asks for. */
export function view(): View {
  const p = new URLSearchParams(location.search);
  const number = (name: string): number => {
    const value = Number(p.get(name) ?? 0);
    return Number.isSafeInteger(value) && value > 0 ? value : 0;
  };
  const from = number("from"), until = number("until");
  const bounded = from > 0 && until > from;
  return {
    node: p.get("node") ?? "", last: bounded ? 0 : number("last") || USUAL.last, from: bounded ? from : 0, until: bounded ? until : 0,
    identity: p.get("identity") ?? "", slow: number("slow"), profile: number("profile"), sort: p.get("sort") ?? "" };
}

/** The address of the present view with some of it changed. */
export function hrefOf(change: Partial<View>): string {
  const v = { ...view(), ...change };
  if (change.last) { v.from = v.until = 0; }
  if (change.from) { v.last = 0; }
  const p = new URLSearchParams();
  for (const key of Object.keys(USUAL) as (keyof View)[]) {
    if (v[key] !== USUAL[key] && v[key] !== 0) { p.set(key, String(v[key])); }
  }
  const query = p.toString();
  return query ? `/?${query}` : "/";
}

/** Another view, which back leaves again. */
export function go(change: Partial<View>): void {
  visit(hrefOf(change));
}

export function visit(href: string): void {
  history.pushState(null, "", href);
  dispatchEvent(new Event("kprof:view"));
}

/** Calls show for each change of the view, and takes over the clicks on links of the page. */
export function onView(show: () => void): void {
  addEventListener("popstate", show);
  addEventListener("kprof:view", show);
  document.addEventListener("click", event => {
    const link = (event.target as Element).closest?.("a[href^='/']");
    if (link && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
        && !link.hasAttribute("download")) {
      event.preventDefault();
      visit(link.getAttribute("href") as string);
    }
  });
}

/** The stretch in seconds; of "last …" up to now. */
export function stretchOf(v: View): [number, number] {
  const now = Math.floor(Date.now() / 1000);
  return v.last ? [now - v.last, now] : [v.from, v.until];
}
