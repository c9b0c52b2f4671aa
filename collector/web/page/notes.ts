// SPDX-License-Identifier: Apache-2.0
// Notes of what people did: in a line below the charts, with a form that adds one, and as pins on the time line.
import { hrefOf } from "./address";
import type { Mark } from "./api";
import { fill, h } from "./dom";
import { mayOrder, order, sentence } from "./orders";
import type { Pin } from "./plot";
import { moment } from "./times";

type Noted = Mark & { text: string };

function notesOf(marks: Mark[]): Noted[] {
  return marks.filter((m): m is Noted => m.kind === "note" && typeof m.text === "string");
}

/** What happens since a note, up to now. */
function since(at: number): string {
  return hrefOf({ from: at, until: 0, last: 0, slow: 0, profile: 0 });
}

export function pinsOf(marks: Mark[]): Pin[] {
  return notesOf(marks).map(m => ({ at: m.at_s, what: "Note", title: `${moment(m.at_s, false)} ${m.text}${m.node ? ` (${m.node})` : ""}`, href: since(m.at_s) }));
}

export class Notes {
  readonly element = h("section", { class: "line notes" });
  private readonly list = h("div", {});
  private readonly said = h("p", { class: "quiet", role: "status" });
  private readonly text = h("input", { type: "text", maxlength: "240", "aria-label": "What was done", placeholder: "deployed 1.4" });
  private readonly form: HTMLFormElement;
  private readonly button = h("button", { type: "button", hidden: true, "aria-expanded": "false" }, "Add a note");
  private may = false;
  private shown: Noted[] = [];

  /** node: of which notes are added; "": of all of them. elsewhere: those that there are do not come here. */
  constructor(private readonly node: string, private readonly elsewhere: boolean, gone: AbortSignal) {
    this.form = h("form", { class: "controls", hidden: true }, this.text, h("button", { type: "submit" }, "Add it"),
                  h("button", { type: "button", onclick: () => this.open(false) }, "Cancel"));
    this.form.addEventListener("submit", event => {
      event.preventDefault();
      void this.add();
    });
    this.form.addEventListener("keydown", event => {
      if (event.key === "Escape") {
        event.preventDefault();
        this.open(false);
      }
    });
    this.button.addEventListener("click", () => this.open(true));
    fill(this.element, h("h2", {}, "Notes"), this.list, this.button, this.form, this.said);
    void mayOrder(gone).then(may => {
      this.may = may;
      this.button.hidden = !may;
      this.draw();
    }).catch(() => undefined);
  }

  show(marks: Mark[]): void {
    this.shown = notesOf(marks);
    this.draw();
  }

  private draw(): void {
    fill(this.list, this.elsewhere ? h("p", { class: "quiet" }, "They are in the collectors' own databases, as profiles are.")
      : this.shown.length === 0 ? h("p", { class: "quiet" }, "None in this stretch.", this.may ? null : " ",
          this.may ? null : h("code", {}, "kprof note \"deployed 1.4\""), this.may ? null : " adds one.")
      : h("ul", {}, ...this.shown.map(m => h("li", {}, h("a", { href: since(m.at_s), title: "What happened since then" },
          `${moment(m.at_s, false)} ${m.text}`), m.node ? ` (${m.node})` : null))));
  }

  private open(open: boolean): void {
    this.form.hidden = !open;
    this.button.hidden = open || !this.may;
    this.button.setAttribute("aria-expanded", String(open));
    this.said.textContent = "";
    open ? this.text.focus() : this.button.focus();
  }

  private async add(): Promise<void> {
    const text = this.text.value.trim();
    if (!text) {
      this.said.textContent = "A note wants a text, such as: deployed 1.4";
      this.text.focus();
      return;
    }
    try {
      const kept = await order<{ id: number; at_s: number; text: string; node: string | null }>(
        "notes", this.node ? { text, node: this.node } : { text });
      this.text.value = "";
      this.open(false);
      this.said.textContent = "It is noted.";
      this.show([{ at_s: kept.at_s, kind: "note", amount: kept.id, text: kept.text, node: kept.node }, ...this.shown]);
    } catch (error) {
      this.said.textContent = sentence(error);
    }
  }
}
