// SPDX-License-Identifier: Apache-2.0
// The script of a file that `kprof flame --out x.html` writes: the data stand in it. What is chosen stands behind the # of its address.
import { addLook, type Look, lookOf } from "./look";
import { mountFlame } from "./view";

const asked = (): Look => lookOf(new URLSearchParams(location.hash.slice(1)));

function looked(look: Look, step: boolean): void {
  const p = new URLSearchParams();
  addLook(p, look);
  const hash = `#${p}`;
  if (hash === (location.hash || "#")) { return; }
  try {
    step ? history.pushState(null, "", hash) : history.replaceState(null, "", hash);
  } catch {
    // as where a mail program shows it: there is no address to change
  }
}

const flame = mountFlame(document.getElementById("flame")!, JSON.parse(document.getElementById("data")!.textContent!),
                         { look: asked(), looked });
addEventListener("popstate", () => flame.look(asked()));
