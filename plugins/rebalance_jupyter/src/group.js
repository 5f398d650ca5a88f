// The states of the group over time.

import { adjust, freshId, html, refill, svg, write } from "./elements.js";
import { OF_KINDS, definition, swatch } from "./states.js";
import { valueAt } from "./trace.js";

const NEAR = 8; // pixels between the pointer and a change from outside that it points at

export class Group {
  /** @param {import("./view.js").Context} context */
  constructor({ trace, clock, lens, shared }) {
    this.trace = trace;
    this.clock = clock;
    this.lens = lens;
    this.shared = shared;
    this.id = freshId();
    const seen = new Set(trace.states.map(([, state]) => OF_KINDS[trace.kind(state)]).filter((pattern) => pattern !== null));
    const patterns = svg("defs", {}, ...[...seen].map((pattern) => definition(`${this.id}-${pattern}`, pattern)));
    this.boxes = svg("g", { class: "rbl-states" });
    this.took = svg("g", { class: "rbl-took" });
    this.cursor = svg("line", { y1: 0, y2: 18, class: "rbl-cursor" });
    this.stateText = svg("text", { y: 13, "text-anchor": "end" });
    this.band = svg("svg", { class: "rbl-band rbl-plot", height: 22, role: "img", "aria-label": "States of the group" },
      patterns, this.boxes, this.took, this.stateText, this.cursor);
    this.elements = [html("h4", {}, trace.machine.coordinated ? "Coordinator" : "Group"), this.band, this.legend()];
    shared.pointer.watch(this.band, (x) => this.tell(x));
  }

  // The states that are not empty, by what they are to the protocol.
  legend() {
    const { trace } = this;
    const seen = [...new Set(trace.states.map(([, state]) => state))];
    return html("div", { class: "rbl-legend" }, ...seen.flatMap((state) => {
      const pattern = OF_KINDS[trace.kind(state)];
      return pattern ? [html("span", {}, swatch(pattern), state)] : [];
    }));
  }

  /**
   * What the tooltip says of a time: the state, the round, and changes from outside.
   * @param {number} x
   */
  tell(x) {
    const { trace, lens } = this;
    const at = lens.at(x);
    if (!lens.covers(x) || at > trace.duration) return [];
    const number = trace.roundDuring(at);
    const round = number < 0 ? [] : trace.roundLines(number);
    return [...trace.stateLine(trace.states, at), ...round, ...trace.marksNear(at, NEAR / lens.scale)];
  }

  draw() {
    const { trace, band, lens } = this;
    adjust(band, { width: lens.width });
    refill(this.boxes, "rect", this.stretches().map(([from, until, state]) => {
      const pattern = OF_KINDS[trace.kind(state)];
      return { attributes: {
        x: lens.clipped(from), y: 2, width: Math.max(1, lens.clipped(until) - lens.clipped(from)), height: 14,
        fill: pattern ? `url(#${this.id}-${pattern})` : "transparent", stroke: pattern ? "#444" : "none", "stroke-width": 0.5,
      } };
    }));
    adjust(this.stateText, { x: lens.left - 6 });
    this.took.replaceChildren();
  }

  /**
   * The states that are in sight, with the times of their begin and their end.
   * @returns {[from: number, until: number, state: string][]}
   */
  stretches() {
    const { trace: { states, duration }, lens } = this;
    return states
      .map(([at, state], n) => /** @type {[number, number, string]} */ ([at, states[n + 1]?.[0] ?? duration, state]))
      .filter(([from, until]) => until > from && until >= lens.from && from <= lens.to);
  }

  /** @param {number} at */
  move(at) {
    this.lens.place(this.cursor, at);
    write(this.stateText, valueAt(this.trace.states, at) ?? "Empty");
  }

  /**
   * Mark the rounds in which a member took part.
   * @param {number} number
   */
  highlight(number) {
    const { lens } = this;
    this.took.replaceChildren(...this.roundsOf(number).map((times) => {
      const [left, right] = times.map((at) => lens.clipped(at));
      return svg("rect", { x: left, y: 18, width: Math.max(2, right - left), height: 3, class: "rbl-hot" });
    }));
  }

  /**
   * When the rounds of a member that are in sight began and ended.
   * @param {number} number
   */
  roundsOf(number) {
    const { from, to } = this.lens;
    const { rounds, times } = this.trace;
    return times.filter(([began, ended], i) => rounds[i].members[number] && began <= to && ended >= from);
  }
}
