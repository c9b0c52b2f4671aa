// SPDX-License-Identifier: Apache-2.0
// One event stream for all tabs of a browser: a browser has six connections for a server, and each stream takes one. The tab that
// holds a lock has the stream and tells the others. Where there are no locks (plain HTTP from another host) each tab has its own.

export type Live = "live" | "gone";

/** Calls written when there is something new, and state when the collector goes or is there again. For as long as the tab lives. */
export function listen(written: () => void, state: (now: Live) => void): void {
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("kprof");
  const hear = (what: string): void => {
    if (what === "written") { written(); }
    state(what === "gone" ? "gone" : "live");
  };
  const stream = (): void => {
    const source = new EventSource("/api/v1/events");
    const tell = (what: string): void => {
      hear(what);
      channel?.postMessage(what);
    };
    source.onopen = () => tell("open");
    source.addEventListener("written", () => tell("written"));
    source.onerror = () => {
      tell("gone");
      if (source.readyState === EventSource.CLOSED) { // it tries again by itself unless the server said no
        setTimeout(stream, 5000);
      }
    };
  };
  if (channel && navigator.locks) {
    channel.onmessage = event => hear(String(event.data));
    void navigator.locks.request("kprof-events", () => new Promise<never>(stream));
  } else {
    stream();
  }
}
