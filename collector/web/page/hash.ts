// SPDX-License-Identifier: Apache-2.0

/** A number of 32 bits from a text, the same in every run (FNV-1a): for colours that stay. */
export function hash(text: string): number {
  let n = 2166136261;
  for (let i = 0; i < text.length; i++) { n = Math.imul(n ^ text.charCodeAt(i), 16777619); }
  return n >>> 0;
}
