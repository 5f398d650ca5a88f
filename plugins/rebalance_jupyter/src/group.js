// The states of the group over time, the axis, and what happened from outside.

import { adjust, freshId, html, refill, svg, titled, worded, write } from "./elements.js";
import { fewLines, inRows } from "./events.js";
import { OF_KINDS, definition, swatch } from "./states.js";
import { clockText, short } from "./text.js";
import { ticks } from "./ticks.js";
import { valueAt } from "./trace.js";

const LONGEST_NOTE = 24; // letters below the axis
const [ROWS, FIRST_ROW, ROW] = [2, 48, 14]; // of labels below the axis: their number, the first baseline, the height
const NEAR = 8; // pixels between the pointer and a change from outside that it points at

export class Group {
  /** @param {import("./view.js").Context} context */
  constructor({ trace, clock, lens, shared }) {
    this.trace = trace;
    this.clock = clock;
    this.lens = lens;
    this.shared = shared;
    /** @type {ReturnType<typeof inRows>} */
    this.labels = [];
    this.id = freshId();
    const seen = new Set(trace.states.map(([, state]) => OF_KINDS[trace.kind(state)]).filter((pattern) => pattern !== null));
    const patterns = svg("defs", {}, ...[...seen].map((pattern) => definition(`${this.id}-${pattern}`, pattern)));
    this.boxes = svg("g", { class: "rbl-states" });
    this.times = svg("g", { class: "rbl-times" });
    this.flags = svg("g");
    this.happened = svg("g");
    this.took = svg("g", { class: "rbl-took" });
    this.cursor = svg("line", { y1: 0, y2: 18, class: "rbl-cursor" });
    this.stateText = svg("text", { y: 13, "text-anchor": "end" });
    this.band = svg("svg", { class: "rbl-band rbl-plot", height: 52, role: "img", "aria-label": "States of the group" },
      patterns, this.boxes, this.times, this.flags, this.happened, this.took, this.stateText, this.cursor);
    this.elements = [html("h4", {}, trace.machine.coordinated ? "Coordinator" : "Group"), this.band, this.legend()];
    shared.pointer.watch(this.band, (x, y) => this.tell(x, y));
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
   * What the tooltip says of a label: all that it stands for; and of a time: the state, the round, and changes from outside.
   * @param {number} x
   * @param {number} y
   */
  tell(x, y) {
    const { trace, lens } = this;
    const label = this.labels.find(({ x: left, row, words }) =>
      left <= x && x <= left + 7 * words.length && Math.abs(y - FIRST_ROW - ROW * row + 4) <= ROW / 2);
    if (label) return fewLines(label.lines);
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
    refill(this.times, "text", ticks(lens.from, lens.to, lens.scale).map(([at, words]) =>
      ({ attributes: { x: lens.x(at), y: 32, "text-anchor": "middle" }, words })));
    this.nameMarks();
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

  // Label changes from outside and notes below the axis. Where there is no room, a label has their number.
  nameMarks() {
    const { lens } = this;
    const happened = this.trace.marks.map(([at, label]) => {
      const [kind, ...target] = label.split(" ");
      return { at, words: `↑ ${kind} ${short(target.join(" "))}`, line: `${clockText(at)} ${label}` };
    });
    const pinned = this.shared.pinned();
    const notes = pinned.map(([at, text]) => ({ at, words: `⚑ ${text.slice(0, LONGEST_NOTE)}`, line: `${clockText(at)} ${text}` }));
    const shown = [...happened, ...notes].filter(({ at }) => lens.shows(at)).sort((a, b) => a.at - b.at);
    this.labels = inRows(shown.map(({ at, ...label }) => ({ x: lens.x(at) - 4, ...label })), ROWS, lens.width);
    refill(this.happened, "text", this.labels.map(({ x, row, words }) =>
      ({ attributes: { x, y: FIRST_ROW + ROW * row, class: "rbl-happened" }, words })));
    this.flags.replaceChildren(...pinned.filter(([at]) => lens.shows(at)).map(([at, text]) =>
      titled(worded("⚑", { x: lens.x(at), y: 14, class: "rbl-flag" }), `${clockText(at)} ${text}`)));
    if (this.labels.some(({ row }) => row)) adjust(this.band, { height: 66 }); // and stays so, so that nothing below moves
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
