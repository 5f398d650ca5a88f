// Notes that are pinned to moments: flags below the axis, and a list to go to them, add and remove.

import { html } from "./elements.js";
import { clockText } from "./text.js";

/** @import { Model, Series } from "./model" */

/**
 * The notes in the order of their times. Those that Python or a page gave may be in any order.
 * @param {Model} model
 * @returns {Series<string>}
 */
export function pinned(model) {
  return [...(model.get("notes") ?? [])].sort(([a], [b]) => a - b);
}

export class Pinned {
  /**
   * @param {Model} model
   * @param {import("./clock.js").Clock} clock
   */
  constructor(model, clock) {
    this.model = model;
    this.clock = clock;
    this.list = html("ul", { class: "rbl-pinned", "aria-label": "Notes" });
    this.input = html("input", { "aria-label": "A note at the cursor", placeholder: "a note at the cursor", maxlength: 200 });
    this.form = html("form", { hidden: "", onsubmit: (/** @type {Event} */ event) => this.add(event) }, this.input);
    this.form.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
    });
    this.element = html("div", {}, this.form, this.list);
    this.show();
  }

  open() {
    this.clock.pause();
    this.form.hidden = false;
    this.input.focus();
  }

  close() {
    this.form.hidden = true;
    /** @type {HTMLElement | null} */ (this.element.closest(".rbl"))?.focus();
  }

  /** @param {Event} event */
  add(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (text) this.set([...pinned(this.model), [this.clock.at, text]]);
    this.input.value = "";
    this.close();
  }

  /** @param {Series<string>} notes */
  set(notes) {
    this.model.set("notes", notes);
    this.model.save_changes();
  }

  show() {
    const notes = pinned(this.model);
    this.list.replaceChildren(...notes.map((note) => html("li", {},
      html("button", { type: "button", onclick: () => this.clock.set(note[0]) }, `⚑ ${clockText(note[0])} ${note[1]}`),
      html("button", {
        type: "button", title: "Remove this note", "aria-label": `Remove ${note[1]}`, onclick: () => this.set(notes.filter((each) => each !== note)),
      }, "×"),
    )));
    this.list.hidden = !notes.length;
  }
}
