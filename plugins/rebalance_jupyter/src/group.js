// The states of the group over time, the axis, and what happened from outside.

import { adjust, freshId, html, svg, titled, worded } from "./elements.js";
import { OF_KINDS, definition, swatch } from "./states.js";
import { clockText, short } from "./text.js";
import { ticks } from "./ticks.js";
import { valueAt } from "./trace.js";

const LONGEST_NOTE = 24; // letters below the axis
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
    this.patterns = svg("defs", {}, ...[...seen].map((pattern) => definition(`${this.id}-${pattern}`, pattern)));
    this.took = svg("g", { class: "rbl-took" });
    this.cursor = svg("line", { y1: 0, y2: 18, class: "rbl-cursor" });
    this.stateText = svg("text", { y: 13, "text-anchor": "end" });
    /** @type {SVGElement[]} */
    this.pieces = [];
    this.band = svg("svg", { class: "rbl-band rbl-plot", height: 52, role: "img", "aria-label": "States of the group" },
      this.patterns, this.took, this.stateText, this.cursor);
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
    /** @type {SVGElement[]} */
    const pieces = [];
    trace.states.forEach(([at, state], n) => {
      const until = trace.states[n + 1]?.[0] ?? trace.duration;
      if (until <= at || until < lens.from || at > lens.to) return;
      const pattern = OF_KINDS[trace.kind(state)];
      const box = svg("rect", {
        x: lens.clipped(at), y: 2, width: Math.max(1, lens.clipped(until) - lens.clipped(at)), height: 14,
        fill: pattern ? `url(#${this.id}-${pattern})` : "transparent", stroke: pattern ? "#444" : "none", "stroke-width": 0.5,
      });
      pieces.push(titled(box, `${clockText(at)} ${state}`));
    });
    adjust(this.stateText, { x: lens.left - 6 });
    this.took.replaceChildren();
    this.axis(pieces);
    this.nameMarks(pieces);
    for (const piece of this.pieces) piece.remove(); // the patterns stay: to add them again takes long
    this.took.before(...pieces);
    this.pieces = pieces;
  }

  /** @param {SVGElement[]} pieces */
  axis(pieces) {
    const { lens } = this;
    for (const [at, text] of ticks(lens.from, lens.to, lens.scale))
      pieces.push(worded(text, { x: lens.x(at), y: 32, "text-anchor": "middle" }));
  }

  /**
   * Label changes from outside and notes below the axis, if there is room.
   * @param {SVGElement[]} pieces
   */
  nameMarks(pieces) {
    const free = [0, 0]; // in two rows
    const happened = this.trace.marks.map(([at, label]) => {
      const [kind, ...target] = label.split(" ");
      return /** @type {[number, string]} */ ([at, `↑ ${kind} ${short(target.join(" "))}`]);
    });
    const pinned = this.shared.pinned();
    for (const [at, text] of pinned.filter(([time]) => this.lens.shows(time)))
      pieces.push(titled(worded("⚑", { x: this.lens.x(at), y: 14, class: "rbl-flag" }), `${clockText(at)} ${text}`));
    const notes = pinned.map(([at, text]) => /** @type {[number, string]} */ ([at, `⚑ ${text.slice(0, LONGEST_NOTE)}`]));
    for (const [at, said] of [...happened, ...notes].sort(([a], [b]) => a - b)) {
      if (!this.lens.shows(at)) continue;
      const row = free.findIndex((from) => from <= this.lens.x(at));
      if (row < 0) continue;
      pieces.push(worded(said, { x: this.lens.x(at) - 4, y: 48 + 14 * row, class: "rbl-happened" }));
      free[row] = this.lens.x(at) + 7 * said.length + 8;
    }
    if (free[1]) adjust(this.band, { height: 66 }); // and stays so, so that nothing below moves
  }

  /** @param {number} at */
  move(at) {
    this.lens.place(this.cursor, at);
    this.stateText.textContent = valueAt(this.trace.states, at) ?? "Empty";
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
