// The whole time in a strip: rounds, stops, the window of the lens, and the cursor, which a slider moves.

import { adjust, html, svg, titled, worded, write } from "./elements.js";
import { lasting } from "./text.js";
import { mosts } from "./idle.js";

const BAR = 10; // the height of the bar that moves the window
const HEIGHT = 34;
const EDGE = 6; // pixels from an end of the window in which a drag moves that end
const LEAST = 2;
const LEAST_WINDOW = 10; // so that it can be dragged
const ROUNDS = "grey, above: a round of any strategy";
const STOPS = "below: partitions that are not worked on with any strategy, the higher the more";

export class Overview {
  /**
   * @param {object} parts
   * @param {import("./view.js").View[]} parts.views
   * @param {import("./clock.js").Clock} parts.clock
   * @param {import("./lens.js").Lens} parts.lens
   */
  constructor({ views, clock, lens }) {
    this.views = views;
    this.clock = clock;
    this.lens = lens;
    const whose = views.length > 1 ? ", any strategy" : "";
    this.happened = svg("g", { class: "rbl-rounds" });
    this.lacking = svg("path", { class: "rbl-stopped" });
    this.track = svg("rect", { y: 0.5, height: BAR - 1, class: "rbl-track" });
    this.frame = svg("rect", { y: BAR, height: HEIGHT - BAR - 1, class: "rbl-window" });
    this.bar = svg("rect", { y: 0.5, height: BAR - 1, class: "rbl-bar" });
    this.cursor = svg("line", { y1: BAR, y2: HEIGHT, class: "rbl-at" });
    this.figure = svg("text", { y: 26 });
    this.drawing = svg("svg", { height: HEIGHT, role: "img", "aria-label": `Whole time: ${ROUNDS}, ${STOPS}` },
      titled(worded(`rounds${whose}`, { x: lens.left - 6, y: 20, "text-anchor": "end" }), ROUNDS),
      titled(worded(`stops${whose}`, { x: lens.left - 6, y: 31, "text-anchor": "end" }), STOPS),
      this.happened, this.lacking, this.frame, this.track, this.bar, this.cursor, this.figure);
    this.slider = html("input", {
      type: "range", min: 0, max: clock.duration, step: 1, value: 0, class: "rbl-slider", "aria-label": "Time",
      oninput: () => clock.set(Number(this.slider.value), false),
      onchange: () => clock.set(Number(this.slider.value)),
    });
    this.element = html("div", { class: "rbl-strip" }, this.drawing, this.slider);
    this.drag();
    clock.listen((at) => this.move(at));
    lens.listen(() => this.place());
  }

  /**
   * The place of a time in the strip.
   * @param {number} at
   */
  x(at) {
    return this.lens.left + (at * this.lens.plot) / this.lens.duration;
  }

  draw() {
    const { lens, slider, drawing } = this;
    adjust(drawing, { width: lens.width });
    adjust(this.track, { x: lens.left, width: lens.plot });
    adjust(this.figure, { x: lens.beside });
    slider.style.left = `${lens.left}px`;
    slider.style.width = `${lens.plot}px`;
    this.happened.replaceChildren(...this.rounds());
    adjust(this.lacking, { d: this.stops() });
    this.place();
    this.move(this.clock.at);
  }

  rounds() {
    return this.views.flatMap(({ trace }) => trace.times.map(([began, ended]) => svg("rect", {
      x: this.x(began), y: BAR + 2, width: Math.max(LEAST, this.x(ended) - this.x(began)), height: HEIGHT - BAR - 12, class: "rbl-round",
    })));
  }

  // Where partitions are not worked on once the group has begun, the higher the more.
  stops() {
    const { lens } = this;
    const high = 8;
    const parts = this.views.flatMap(({ trace }) => {
      const column = (/** @type {number} */ at) => (at * lens.plot) / lens.duration;
      return Array.from(mosts(trace.idle, trace.duration, lens.plot, column), (count, x) => {
        const height = x < Math.floor(column(trace.owned)) || !count ? 0 : Math.max(2, (high * count) / Math.max(1, trace.partitions));
        return height ? `M${lens.left + x} ${HEIGHT - 1}v${-height.toFixed(1)}h1v${height.toFixed(1)}z` : "";
      });
    });
    return parts.join("");
  }

  // The window of the lens.
  place() {
    const { lens } = this;
    const [left, right] = [this.x(lens.from), this.x(lens.to)];
    const width = Math.max(LEAST_WINDOW, right - left);
    const start = Math.min(left, lens.left + lens.plot - width);
    for (const [element, x, wide] of /** @type {const} */ ([[this.bar, start, width], [this.frame, left, Math.max(1, right - left)]])) {
      adjust(element, { x, width: wide });
    }
    adjust(this.frame, { visibility: lens.isWhole ? "hidden" : "visible" });
    write(this.figure, lens.isWhole ? `whole time: ${lasting(lens.duration)}` : `${lasting(lens.span)} of ${lasting(lens.duration)} (all: key 0)`);
  }

  /** @param {number} at */
  move(at) {
    this.slider.value = String(at);
    adjust(this.cursor, { x1: this.x(at), x2: this.x(at) });
  }

  // Drag the bar to move the window, or one of its ends to change its length.
  drag() {
    const { drawing, lens } = this;
    /** @type {{ at: number, from: number, to: number, ends: [boolean, boolean] } | null} */
    let began = null;
    /** @param {PointerEvent} event */
    const timeOf = (event) => ((event.clientX - drawing.getBoundingClientRect().left - lens.left) * lens.duration) / lens.plot;
    for (const element of [this.track, this.bar])
      element.addEventListener("pointerdown", (event) => {
        const at = timeOf(event);
        if (at < lens.from || at > lens.to) lens.zoom(at - lens.span / 2, at + lens.span / 2);
        const x = this.x(at);
        const wide = this.x(lens.to) - this.x(lens.from) > 3 * EDGE;
        const ends = /** @type {[boolean, boolean]} */ ([wide && x < this.x(lens.from) + EDGE, wide && x > this.x(lens.to) - EDGE]);
        began = { at, from: lens.from, to: lens.to, ends };
        drawing.setPointerCapture(event.pointerId);
      });
    drawing.addEventListener("pointermove", (event) => {
      if (!began) return;
      const moved = timeOf(event) - began.at;
      const [first, last] = began.ends;
      lens.zoom(began.from + (last ? 0 : moved), began.to + (first ? 0 : moved));
    });
    for (const end of ["pointerup", "pointercancel"]) drawing.addEventListener(end, () => { began = null; });
    drawing.addEventListener("dblclick", () => { lens.all(); });
  }
}
