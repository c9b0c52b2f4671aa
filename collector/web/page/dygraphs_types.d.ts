// SPDX-License-Identifier: Apache-2.0
// What the page uses of dygraphs.
declare module "dygraphs/dygraph.min.js" {
  export default class Dygraph {
    constructor(element: HTMLElement, data: unknown, options?: Record<string, unknown>);
    updateOptions(options: Record<string, unknown>, blockRedraw?: boolean): void;
    resize(width?: number, height?: number): void;
    destroy(): void;
    xAxisRange(): [number, number];
  }
}
