// The axis above the plots of all strategies, and below it the events of the scenario and the notes: a mark for each, with
// its name where it has room.

import { adjust, html, refill, svg, worded } from "./elements.js";
import { clockText, counted } from "./text.js";
import { ticks } from "./ticks.js";

const AXIS = 15; // the height of the times
const HEIGHT = 14; // of the events
const WIDTH = 2; // pixels of a mark
const ASIDE = 4; // pixels between a mark and its name, and at least between a name and the next mark
const LETTER = 6; // the width of a letter, about
const NEAR = 5; // pixels between the pointer and an event that it points at
const MOST = 8; // lines of the tooltip
const LEAST = 6; // letters of a name that is cut
const LONGEST_NOTE = 24; // letters

/** @import { Series } from "./model" */
/** @import { Lens } from "./lens.js" */
/** @import { View } from "./view.js" */

/**
 * The events of all strategies in order of time, each once.
 * @param {Series<string>[]} strategies
 * @returns {Series<string>}
 */
export function eventsOf(strategies) {
  const events = new Map(strategies.flat().map((event) => [event.join(" "), event]));
  return [...events.values()].sort(([a], [b]) => a - b);
}

/**
 * The marks of events from left to right. Marks less than a pixel apart are one, whose name is that of all its events, or their
 * number. Where there is no room before the next mark, the name is the kind of the event, or a part of that, or empty. The next
 * name begins with the number of the events before it that have none: each event is in `named` of one mark.
 * @param {Series<string>} events in order of time
 * @param {Lens} lens
 * @param {number} end of the room for names
 */
export function eventMarks(events, lens, end) {
  /** @type {{ x: number, width: number, events: Series<string> }[]} */
  const marks = [];
  for (const [at, label] of events) {
    if (!lens.shows(at)) continue;
    const x = lens.x(at) - WIDTH / 2;
    const last = marks.at(-1);
    if (last && x < last.x + last.width + 1) {
      last.width = x + WIDTH - last.x;
      last.events.push([at, label]);
    } else marks.push({ x, width: WIDTH, events: [[at, label]] });
  }
  /** @type {Series<string>} */
  let waiting = [];
  return marks.map(({ x, width, events: own }, i) => {
    const room = (marks[i + 1]?.x ?? end) - x - width - 2 * ASIDE;
    const most = Math.floor(room / LETTER);
    const before = waiting.length ? `+${waiting.length}, ` : "";
    const all = [...waiting, ...own];
    const words = nameOf(own.map(([, label]) => label), most - before.length);
    const count = `+${all.length}`;
    const name = words ? before + words : count.length <= most ? count : "";
    waiting = name ? [] : all;
    return { x, width, name, named: name ? all : [] };
  });
}

/**
 * @param {string[]} labels
 * @param {number} most letters
 */
function nameOf(labels, most) {
  const all = labels.join(", ");
  if (all.length <= most) return all;
  const less = labels.length > 1 ? counted(labels.length, "event") : labels[0].split(" ")[0];
  if (less.length <= most) return less;
  return labels.length > 1 || most < LEAST ? "" : `${less.slice(0, most - 2)}…`;
}

export class Events {
  /**
   * @param {object} parts
   * @param {View[]} parts.views
   * @param {Lens} parts.lens
   * @param {import("./pointer.js").Pointer} parts.pointer
   * @param {() => Series<string>} parts.pinned
   */
  constructor({ views, lens, pointer, pinned }) {
    this.lens = lens;
    this.pinned = pinned;
    this.happened = eventsOf(views.map(({ trace }) => trace.marks));
    this.events = this.happened; // with the notes
    /** @type {ReturnType<typeof eventMarks>} */
    this.marks = [];
    this.bars = svg("g");
    this.names = svg("g");
    this.times = svg("g", { class: "rbl-times" });
    this.title = worded("events", { x: lens.left - 6, y: AXIS + HEIGHT - 3, "text-anchor": "end" });
    this.drawing = svg("svg", { class: "rbl-scenario rbl-plot", role: "img", "aria-label": "Time, and the events of the scenario" },
      this.times, this.title, this.bars, this.names);
    this.element = html("div", { class: "rbl-wide" }, this.drawing);
    pointer.watch(this.drawing, (x) => this.near(x));
  }

  draw() {
    const { lens, drawing } = this;
    const notes = this.pinned().map(([at, text]) => /** @type {[number, string]} */ ([at, `⚑ ${text.slice(0, LONGEST_NOTE)}`]));
    this.events = eventsOf([this.happened, notes]);
    adjust(this.title, { visibility: this.events.length ? "visible" : "hidden" });
    adjust(drawing, { width: lens.width, height: AXIS + (this.events.length ? HEIGHT : 0) });
    refill(this.times, "text", ticks(lens.from, lens.to, lens.scale).map(([at, words]) =>
      ({ attributes: { x: lens.x(at), y: AXIS - 4, "text-anchor": "middle" }, words })));
    const marks = this.marks = eventMarks(this.events, lens, lens.width);
    refill(this.bars, "rect", marks.map(({ x, width }) => ({ attributes: { x, y: AXIS, width, height: HEIGHT } })));
    refill(this.names, "text", marks.filter(({ name }) => name).map(({ x, width, name }) => (
      { attributes: { x: x + width + ASIDE, y: AXIS + HEIGHT - 3 }, words: name }
    )));
  }

  /**
   * The events whose name is at a place, or else those near it, in lines.
   * @param {number} x
   */
  near(x) {
    const { lens, marks, events } = this;
    const under = marks.find((mark) => mark.name && mark.x <= x && x <= mark.x + mark.width + ASIDE + LETTER * mark.name.length);
    const near = under?.named ?? events.filter(([at]) => lens.covers(x) && Math.abs(lens.x(at) - x) <= NEAR);
    return fewLines(near.map(([at, label]) => `${clockText(at)} ${label}`));
  }
}

/**
 * The lines of events for a tooltip: of many, the first ones and the number of the others.
 * @param {string[]} lines
 */
export function fewLines(lines) {
  if (lines.length <= MOST) return lines;
  return [...lines.slice(0, MOST - 1), `and ${counted(lines.length - MOST + 1, "more event")}`];
}
