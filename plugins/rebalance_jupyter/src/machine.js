// The states of the group and the moves between them.

import { freshId, svg, worded } from "./elements.js";
import { valueAt } from "./trace.js";

export class Machine {
  /** @param {import("./trace.js").Trace} trace */
  constructor(trace) {
    this.trace = trace;
    /** @type {Record<string, SVGElement>} */
    this.nodes = {};
    this.drawing = svg("svg", {
      class: "rbl-machine", viewBox: "0 0 370 210", role: "img", "aria-label": "State machine of the group",
    });
    this.draw();
  }

  draw() {
    const { states, moves } = this.trace.machine;
    const place = Object.fromEntries(states.map(([name, x, y]) => [name, [72 + x * 226, 20 + y * 170]]));
    const arrow = freshId();
    const marker = svg("marker", {
      id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto",
    }, svg("path", { d: "M0 0L8 4L0 8z", class: "rbl-arrowhead" }));
    this.drawing.append(svg("defs", {}, marker));
    for (const [from, to] of moves) {
      const [[x1, y1], [x2, y2]] = [place[from], place[to]];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      const gap = Math.min(67 / Math.abs(ux), 12 / Math.abs(uy)); // to the border of a state's box
      const side = moves.some(([a, b]) => a === to && b === from) ? 7 : 0;
      this.drawing.append(svg("line", {
        x1: x1 + ux * gap - uy * side, y1: y1 + uy * gap + ux * side,
        x2: x2 - ux * gap - uy * side, y2: y2 - uy * gap + ux * side,
        class: "rbl-edge", "marker-end": `url(#${arrow})`,
      }));
    }
    for (const [name] of states) {
      const [x, y] = place[name];
      const group = svg("g", { class: "rbl-state" });
      group.append(svg("rect", { x: x - 66, y: y - 11, width: 132, height: 22, rx: 9 }));
      group.append(worded(name, { x, y: y + 4, "text-anchor": "middle" }));
      this.nodes[name] = group;
      this.drawing.append(group);
    }
  }

  /** @param {number} at */
  move(at) {
    const state = valueAt(this.trace.states, at) ?? "Empty";
    for (const [name, node] of Object.entries(this.nodes)) node.classList.toggle("rbl-lit", name === state);
  }
}
