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
 * number. Where there is no room before the next mark, the name is the kind of the event, or a part of that, or empty.
 * @param {Series<string>} events in order of time
 * @param {Lens} lens
 * @param {number} end of the room for names
 */
export function eventMarks(events, lens, end) {
  /** @type {{ x: number, width: number, labels: string[] }[]} */
  const marks = [];
  for (const [at, label] of events) {
    if (!lens.shows(at)) continue;
    const x = lens.x(at) - WIDTH / 2;
    const last = marks.at(-1);
    if (last && x < last.x + last.width + 1) {
      last.width = x + WIDTH - last.x;
      last.labels.push(label);
    } else marks.push({ x, width: WIDTH, labels: [label] });
  }
  return marks.map(({ x, width, labels }, i) => {
    const room = (marks[i + 1]?.x ?? end) - x - width - 2 * ASIDE;
    return { x, width, name: nameOf(labels, Math.floor(room / LETTER)) };
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
   */
  constructor({ views, lens }) {
    this.lens = lens;
    this.events = eventsOf(views.map(({ trace }) => trace.marks));
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
    const marks = eventMarks(this.events, lens, lens.width);
    refill(this.bars, "rect", marks.map(({ x, width }) => ({ attributes: { x, y: 0, width, height: HEIGHT } })));
    refill(this.names, "text", marks.filter(({ name }) => name).map(({ x, width, name }) => (
      { attributes: { x: x + width + ASIDE, y: HEIGHT - 3 }, words: name }
    )));
  }

  /**
   * The events near a place, in lines.
   * @param {number} x
   */
  near(x) {
    const near = this.events.filter(([at]) => this.lens.covers(x) && Math.abs(this.lens.x(at) - x) <= NEAR);
    const lines = near.slice(0, near.length > MOST ? MOST - 1 : MOST).map(([at, label]) => `${clockText(at)} ${label}`);
    return near.length > lines.length ? [...lines, `and ${counted(near.length - lines.length, "more event")}`] : lines;
  }
}
