// The number of partitions that are being worked on, over time. A stop of the group is a fall to nothing.

import { adjust, html, svg, worded, write } from "./elements.js";
import { COUNT } from "./text.js";
import { valueAt } from "./trace.js";
import { leasts } from "./worked.js";

const HEIGHT = 40;
const TOP = 2;

/** @import { Context } from "./view.js" */

export class Working {
  /** @param {Context} context */
  constructor({ trace, lens, shared }) {
    this.trace = trace;
    this.lens = lens;
    this.area = svg("path", { class: "rbl-worked" });
    this.base = svg("path", { class: "rbl-base" });
    this.figure = svg("text", { y: 26 });
    this.cursor = svg("line", { y1: 0, y2: TOP + HEIGHT, class: "rbl-cursor" });
    const names = ["partitions", "worked on"].map((text, i) =>
      worded(text, { x: lens.left - 6, y: 19 + 13 * i, "text-anchor": "end" }));
    this.drawing = svg("svg", {
      class: "rbl-working rbl-plot", height: TOP + HEIGHT + 2, role: "img",
      "aria-label": "Number of partitions that are being worked on, over time",
    }, this.area, this.base, ...names, this.figure, this.cursor);
    this.element = html("div", {}, this.drawing);
    shared.pointer.watch(this.drawing, (/** @type {number} */ x) => (lens.covers(x) ? [`${this.figureAt(lens.at(x))} partitions worked on`] : []));
  }

  draw() {
    const { lens, trace } = this;
    const least = leasts(trace.worked, lens.from, lens.to, lens.plot);
    const end = Math.min(lens.plot, lens.column(trace.duration)); // others may last longer
    const bottom = TOP + HEIGHT;
    const y = (/** @type {number} */ count) => (bottom - (HEIGHT * count) / Math.max(1, trace.partitions)).toFixed(1);
    const parts = [`M${lens.left} ${bottom}`];
    for (let x = 0; x < end; x++)
      if (x === 0 || least[x] !== least[x - 1]) parts.push(`H${lens.left + x}V${y(least[x])}`);
    adjust(this.area, { d: `${parts.join("")}H${lens.left + Math.max(0, end)}V${bottom}z` });
    adjust(this.base, { d: `M${lens.left} ${TOP}V${bottom + 0.5}H${lens.left + lens.plot}` });
    adjust(this.drawing, { width: lens.width });
    adjust(this.figure, { x: lens.beside });
  }

  /** @param {number} at */
  move(at) {
    this.lens.place(this.cursor, at);
    write(this.figure, this.figureAt(at));
  }

  /** @param {number} at */
  figureAt(at) {
    const { trace } = this;
    const count = valueAt(trace.worked, Math.min(at, trace.duration)) ?? 0;
    return `${COUNT.format(count)} of ${COUNT.format(trace.partitions)}`;
  }
}
