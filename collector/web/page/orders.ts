// SPDX-License-Identifier: Apache-2.0
// What the page orders of the collector, where that is allowed.
import { Failed, get, type State } from "./api";

/** Orders something by POST to /api/v1/PATH; the server's answer. */
export async function order<T>(path: string, body: Record<string, string | number | boolean>): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, { method: "POST", headers: { "Content-Type": "application/json" },
                                                body: JSON.stringify(body) });
  } catch {
    throw new Failed(0, "the collector does not answer");
  }
  const told = await response.json().catch(() => null) as (T & { error?: string }) | null;
  if (!response.ok || !told) { throw new Failed(response.status, told?.error ?? `the collector answers ${response.status}`); }
  return told;
}

/** Orders something for people who look: done says what it did, next what to do where it is refused. */
export type Ask = (path: string, body: Record<string, string | number | boolean>, done: (text: string) => string, next?: (why: string) => string) => Promise<void>;

/** Whether something can be ordered here. */
export async function mayOrder(signal: AbortSignal): Promise<boolean> {
  return (await get<State>("state", {}, signal)).control;
}

/** What went wrong, as a sentence. */
export function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
