// What the pointer is at: a line through all plots at its time, and a tooltip. Both change once per frame.

import { html } from "./elements.js";
import { clockText } from "./text.js";

const ASIDE = 14; // pixels between the pointer and the tooltip

/** @typedef {(x: number, y: number) => string[] | null | undefined} Tell The lines of the tooltip at a place, if any. */

export class Pointer {
  /** @param {import("./lens.js").Lens} lens */
  constructor(lens) {
    this.lens = lens;
    /** @type {HTMLElement[]} */
    this.lines = []; // one for each group of plots
    this.tip = html("div", { class: "rbl-tip", role: "tooltip", hidden: "" });
    /** @type {{ element: Element, tell: Tell, x: number, y: number } | null} */
    this.place = null;
    /** @type {number | undefined} */
    this.request = undefined;
  }

  /**
   * Panels one below another, with one line through all of them.
   * @param {Element[]} panels
   */
  across(...panels) {
    const line = html("div", { class: "rbl-cross", "aria-hidden": "true", hidden: "" });
    this.lines.push(line);
    return html("div", { class: "rbl-plots" }, ...panels, line);
  }

  /**
   * Pass to `tell` the place of the pointer within an element.
   * @param {GlobalEventHandlers & Element} element
   * @param {Tell} tell
   */
  watch(element, tell) {
    element.addEventListener("pointermove", (event) => this.soon({ element, tell, x: event.clientX, y: event.clientY }));
    element.addEventListener("pointerleave", () => this.soon(null));
  }

  /** @param {Pointer["place"]} place */
  soon(place) {
    this.place = place;
    this.request ??= requestAnimationFrame(() => {
      this.request = undefined;
      this.update();
    });
  }

  update() {
    const { place, tip, lens } = this;
    if (!place?.element.isConnected || !tip.parentElement) {
      tip.hidden = true;
      for (const line of this.lines) line.hidden = true;
      return;
    }
    const box = place.element.getBoundingClientRect();
    const frame = tip.parentElement.getBoundingClientRect();
    const x = place.x - box.left;
    const inside = lens.covers(x);
    for (const line of this.lines) {
      line.hidden = !inside;
      line.style.transform = `translateX(${x}px)`;
    }
    const said = place.tell(x, place.y - box.top) ?? [];
    const lines = inside ? [clockText(lens.at(x)), ...said] : said;
    tip.hidden = !lines.length;
    if (!lines.length) return;
    if (tip.textContent !== lines.join("")) tip.replaceChildren(...lines.map((line) => html("div", {}, line)));
    const aside = place.x + ASIDE + tip.offsetWidth > frame.right ? -ASIDE - tip.offsetWidth : ASIDE;
    tip.style.transform = `translate(${Math.max(0, place.x - frame.left + aside)}px, ${place.y - frame.top + ASIDE}px)`;
  }
}
