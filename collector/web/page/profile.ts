// SPDX-License-Identifier: Apache-2.0
// A profile: its flame graph, in the viewer that also draws files.
import { hrefOf, type View } from "./address";
import { get } from "./api";
import { h } from "./dom";
import type { ProfileData } from "./flame/data";
import { mountFlame } from "./flame/view";
import type { Shown } from "./shown";

export function profile(v: View, gone: AbortSignal): Shown {
  const element = h("div", { class: "flame-page" });
  let title = "";
  return {
    element, live: false,
    async load(signal) {
      const data = await get<ProfileData>(`profiles/${v.profile}`, {}, signal);
      title = data.title;
      const flame = mountFlame(element, data);
      gone.addEventListener("abort", () => flame.destroy());
    },
    title: () => title,
    step: () => 3600,
    back: () => hrefOf({ profile: 0 }),
  };
}
