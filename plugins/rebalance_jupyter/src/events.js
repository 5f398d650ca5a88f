// The events of the scenario, in a row above the plots of all strategies: a mark for each, with its name where it has room.

import { adjust, html, refill, svg, worded } from "./elements.js";
import { clockText, counted } from "./text.js";

const HEIGHT = 14;
const WIDTH = 2; // pixels of a mark
const ASIDE = 4; // pixels between a mark and its name, and at least between a name and the next mark
const LETTER = 6; // the width of a letter, about
const NEAR = 5; // pixels between the pointer and an event that it points at
const MOST = 8; // lines of the tooltip
const LEAST = 6; // letters of a name that is cut
const MORE = 36; // pixels of a number of labels

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

/** @typedef {{ x: number, words: string, line: string }} Label A label of a place, and its line in the tooltip. */

/**
 * Labels from left to right in rows, each in the first row that is free at its place. Those for which no row is are gathered in
 * a label with their number, behind one that is in their way.
 * @param {Label[]} labels in order of their places
 * @param {number} rows
 * @param {number} end of the room
 */
export function inRows(labels, rows, end) {
  /** @type {{ x: number, row: number, words: string, lines: string[] }[]} */
  const placed = [];
  const free = Array.from({ length: rows }, () => -Infinity);
  /** @type {(x: number, row: number, words: string) => string[]} */
  const put = (x, row, words) => {
    free[row] = x + 7 * words.length + 8;
    placed.push({ x, row, words, lines: [] });
    return placed[placed.length - 1].lines;
  };
  /** @type {string[] | null} */
  let gathered = null;
  for (const { x, words, line } of labels) {
    const row = free.findIndex((from) => from <= x);
    if (row >= 0) gathered = null;
    const least = free.indexOf(Math.min(...free));
    const lines = row >= 0 ? put(x, row, words) : gathered ??= put(Math.min(free[least], end - MORE), least, "+000");
    lines.push(line);
    if (gathered) placed[placed.length - 1].words = `+${gathered.length}`;
  }
  return placed;
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
   */
  constructor({ views, lens }) {
    this.lens = lens;
    this.events = eventsOf(views.map(({ trace }) => trace.marks));
    /** @type {ReturnType<typeof eventMarks>} */
    this.marks = [];
    this.bars = svg("g");
    this.names = svg("g");
    const title = worded("events", { x: lens.left - 6, y: HEIGHT - 3, "text-anchor": "end" });
    this.drawing = svg("svg", { class: "rbl-scenario rbl-plot", height: HEIGHT, role: "img", "aria-label": "Events of the scenario over time" },
      title, this.bars, this.names);
    this.element = html("div", { hidden: this.events.length ? null : "" }, this.drawing);
  }

  draw() {
    const { lens, drawing } = this;
    adjust(drawing, { width: lens.width });
    const marks = this.marks = eventMarks(this.events, lens, lens.width);
    refill(this.bars, "rect", marks.map(({ x, width }) => ({ attributes: { x, y: 0, width, height: HEIGHT } })));
    refill(this.names, "text", marks.filter(({ name }) => name).map(({ x, width, name }) => (
      { attributes: { x: x + width + ASIDE, y: HEIGHT - 3 }, words: name }
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
