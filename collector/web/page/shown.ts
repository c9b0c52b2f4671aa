// SPDX-License-Identifier: Apache-2.0
// What the page shows below its head line.
import type { View } from "./address";
import type { Mark } from "./api";

export type Shown = {
  element: HTMLElement;
  live: boolean;                             // is there ever more of it
  load(signal: AbortSignal): Promise<void>;  // asks for it and draws it, at first and whenever there may be more
  title(): string;                           // for the browser's tab and for who gets a link
  step(): number;                            // seconds after which there is more of it
  back(): string | null;                     // the address that escape leads to
  moved?(v: View): boolean;                  // back or forward: false: that is another view
  busy?(): boolean;                          // somebody works at it: it stays as it is
  marks?(): Mark[];                          // what happened in the stretch
};
