// The lag of all strategies, and the partitions that are not worked on: a plot of each, one below the other. Lines have
// dashes, as hues are those of members.

import { adjust, html, refill, svg, titled, worded, write } from "./elements.js";
import { mosts } from "./idle.js";
import { COUNT, amount, clockText, counted, roundStep } from "./text.js";
import { countUntil, heightAt, largest, valueAt } from "./trace.js";

const DASHES = ["", "7 3", "2 2", "9 3 2 3", "1 4", "5 2 1 2 1 2"];
const TOP = 8;
const LOWEST = 2; // pixels of what is not nothing
const LEAST = 2; // pixels of a step
const THIN = 1.6; // pixels of the last line
const WIDER = 1.4; // of each line before it, at most
const WIDEST = 3.6; // of the first line, more than of the last one
const PALE = 0.4; // the opacity of the first line
const SAMPLE = { width: 20, height: 8 }; // pixels of a line in the text

/**
 * The looks of one of several lines. Each is thinner and darker than those below it, so that none hides another one.
 * @param {number} number
 * @param {number} count
 */
function looks(number, count) {
  const below = count - 1 - number;
  const step = Math.min(WIDER, WIDEST / Math.max(1, count - 1));
  const opacity = count > 1 ? PALE + ((1 - PALE) * number) / (count - 1) : 1;
  return {
    "stroke-dasharray": DASHES[number % DASHES.length],
    style: `stroke-width: ${(THIN + below * step).toFixed(1)}; stroke-opacity: ${opacity.toFixed(2)}`,
  };
}

/**
 * A sample of a line, in the text.
 * @param {number} number
 * @param {number} count
 */
function sample(number, count) {
  const line = svg("path", { class: "rbl-line", d: `M0 ${SAMPLE.height / 2}h${SAMPLE.width}`, ...looks(number, count) });
  return svg("svg", { ...SAMPLE, "aria-hidden": "true" }, line);
}

/** @import { Series } from "./model" */
/** @import { Lens } from "./lens.js" */
/** @import { Trace } from "./trace.js" */

/**
 * @typedef {object} Quantity What a plot shows.
 * @property {string} heading
 * @property {string} name
 * @property {string} unit
 * @property {number} height of the plot in pixels, at least
 * @property {(traces: Trace[], lens: Lens) => number} most the largest value
 * @property {(most: number) => number} step between two lines of the grid
 * @property {(trace: Trace, at: number) => number | undefined} at the value at a time
 * @property {(value: number) => string} text
 * @property {(trace: Trace, lens: Lens, y: (value: number) => number) => string} path
 */

/** @type {Quantity} */
const LAG = {
  heading: "Lag", name: "lag", unit: "records", height: 60, text: amount,
  most: highest, step: (most) => roundStep(most, 4), at: (trace, at) => heightAt(trace.lag, at), path: slopes,
};
/** @type {Quantity} */
const STANDING = {
  heading: "Partitions that are not worked on", name: "partitions that are not worked on", unit: "partitions", height: 34,
  text: (count) => COUNT.format(count),
  most: (traces) => traces.reduce((most, trace) => largest(trace.idle, most), 1),
  step: (most) => Math.max(1, roundStep(most, 3)), at: (trace, at) => valueAt(trace.idle, at) ?? 0, path: steps,
};

class Plot {
  /**
   * @param {Quantity} quantity
   * @param {import("./view.js").View[]} views
   * @param {Lens} lens
   * @param {object} start
   * @param {number} start.counts the time from which on the figures count
   * @param {boolean} start.isFirst whether the plot names what they leave out, which is the same in all plots
   */
  constructor(quantity, views, lens, { counts, isFirst }) {
    this.quantity = quantity;
    this.views = views;
    this.lens = lens;
    this.counts = counts;
    this.isFirst = isFirst;
    this.height = quantity.height;
    this.base = TOP + this.height; // where the value is 0
    this.most = 1;
    this.cursor = svg("line", { y1: 0, y2: this.base, class: "rbl-cursor" });
    this.shaded = views.length > 1 ? "shaded: rounds of any strategy; " : "shaded: rounds; ";
    this.shades = svg("g", { class: "rbl-shades" });
    this.start = svg("g");
    this.grid = svg("g");
    this.values = svg("g");
    this.lines = views.map(({ name }, i) =>
      titled(svg("path", { class: "rbl-line", ...looks(i, views.length) }), `${name}: ${quantity.name}`));
    this.when = html("span");
    this.figures = views.map(() => html("strong"));
    this.key = html("small", { class: "rbl-key" }, this.when,
      ...views.map(({ name }, i) => html("span", {}, sample(i, views.length), ` ${name} `, this.figures[i])));
    this.drawing = svg("svg", { class: "rbl-lag rbl-plot", role: "img", "aria-label": `${quantity.heading} over time` },
      this.shades, this.start, this.grid, this.values, ...this.lines, this.cursor);
  }

  draw() {
    const { quantity, views, lens, drawing, base } = this;
    const traces = views.map(({ trace }) => trace);
    adjust(drawing, { width: lens.width, height: base + 6 });
    this.most = quantity.most(traces, lens);
    refill(this.shades, "rect", traces.flatMap(({ times }) => times.filter(([began, ended]) => began <= lens.to && ended >= lens.from).map((time) => {
      const [from, to] = time.map((at) => lens.clipped(at));
      return { attributes: { x: from, y: 0, width: Math.max(LEAST, to - from), height: base, class: "rbl-shade" } };
    })));
    this.start.replaceChildren(...this.uncounted());
    this.drawGrid();
    traces.forEach((trace, i) => adjust(this.lines[i], { d: quantity.path(trace, lens, (value) => this.y(value)) }));
  }

  /** @param {number} value */
  y(value) {
    return this.base - (value / this.most) * this.height;
  }

  // The start of the group, which the figures leave out.
  uncounted() {
    const { lens, counts, base } = this;
    if (counts <= lens.from) return [];
    const x = lens.clipped(counts);
    const name = "not counted";
    const inside = x - lens.left > 8 * name.length;
    const area = svg("rect", { x: lens.left, y: 0, width: x - lens.left, height: base, class: "rbl-uncounted" });
    return !this.isFirst ? [area] : [
      area,
      titled(worded(inside ? name : `← ${name}`, inside ? { x: x - 4, y: 11, "text-anchor": "end" } : { x: x + 4, y: 11 }),
        `The figures count from ${clockText(counts)} on`),
    ];
  }

  drawGrid() {
    const { lens, most, quantity: { unit, step } } = this;
    /** @type {[y: number, words: string][]} */
    const ticks = [];
    for (let value = 0; value <= most * 1.0001; value += step(most)) {
      const last = value + step(most) > most * 1.0001;
      ticks.push([this.y(value), last ? `${amount(value)} ${unit}` : amount(value)]);
    }
    refill(this.grid, "line", ticks.map(([y]) => ({ attributes: { x1: lens.left, x2: lens.left + lens.plot, y1: y, y2: y, class: "rbl-grid" } })));
    refill(this.values, "text", ticks.map(([y, words]) => ({ attributes: { x: lens.left - 6, y: y + 4, "text-anchor": "end" }, words })));
  }

  /** @param {number} at */
  move(at) {
    const { quantity } = this;
    this.lens.place(this.cursor, at);
    write(this.when, `${this.isFirst ? this.shaded : ""}at ${clockText(at)}:`);
    this.views.forEach(({ trace }, i) => {
      const value = quantity.at(trace, at);
      write(this.figures[i], value === undefined ? "–" : quantity.text(value));
    });
  }
}

export class Lag {
  /**
   * @param {object} parts
   * @param {import("./view.js").View[]} parts.views
   * @param {import("./clock.js").Clock} parts.clock
   * @param {Lens} parts.lens
   * @param {import("./pointer.js").Pointer} parts.pointer
   * @param {import("./events.js").Events} parts.events
   * @param {boolean} parts.counted whether there are figures, which leave out the start of the group
   */
  constructor({ views, clock, lens, pointer, events, counted: hasFigures }) {
    const counts = hasFigures ? Math.min(...views.map(({ trace }) => trace.counts)) : 0; // the figures, from then on
    const measured = views.some(({ trace }) => trace.lag.length);
    const shown = views.some(({ trace }) => trace.partitions) ? [...(measured ? [LAG] : []), STANDING] : [];
    this.views = views;
    this.clock = clock;
    this.lens = lens;
    this.plots = shown.map((quantity, i) => new Plot(quantity, views, lens, { counts, isFirst: !i }));
    this.element = html("div", { class: "rbl-wide" }, pointer.across(...this.plots.flatMap(({ quantity, key, drawing }) =>
      [html("h3", { class: "rbl-minor" }, quantity.heading, " ", key), drawing])));
    for (const { drawing } of this.plots) pointer.watch(drawing, (x) => [...events.near(x), ...this.tell(x)]);
    clock.listen((at) => { this.move(at); });
  }

  draw() {
    for (const part of this.plots) part.draw();
    this.move(this.clock.at);
  }

  /** @param {number} at */
  move(at) {
    for (const plot of this.plots) plot.move(at);
  }

  /** @param {number} x */
  tell(x) {
    if (!this.lens.covers(x)) return [];
    const at = this.lens.at(x);
    return this.views.flatMap(({ trace, name }) => {
      if (at > trace.duration) return [];
      const lag = heightAt(trace.lag, at);
      const idle = valueAt(trace.idle, at);
      const number = trace.roundDuring(at);
      return [
        name + (lag === undefined ? "" : `: lag ${COUNT.format(lag)}`),
        ...(idle ? [`${counted(idle, "partition")} not worked on`] : []),
        ...(number < 0 ? [] : trace.roundLines(number)),
      ];
    });
  }
}

/**
 * The largest lag that is shown.
 * @param {Trace[]} traces
 * @param {Lens} lens
 */
function highest(traces, { from, to }) {
  const shown = traces.flatMap(({ lag }) => [
    heightAt(lag, from) ?? 0, heightAt(lag, to) ?? 0,
    ...lag.filter(([at]) => from <= at && at <= to).map(([, value]) => value),
  ]);
  return shown.reduce((most, value) => Math.max(most, value), 1);
}

/**
 * The points of a line that a plot shows: the first, the last, the least and the largest of each column of pixels, in
 * order of time. In each column the line through them has the range of the whole line, and at its ends the same values.
 * (Jugel et al., M4: a visualization-oriented time series data aggregation, VLDB 2014.)
 * @param {Series<number>} points
 * @param {(at: number) => number} column
 * @returns {Series<number>}
 */
export function corners(points, column) {
  /** @type {Series<number>} */
  const kept = [];
  let after = 0;
  while (after < points.length) {
    const first = after;
    const x = column(points[first][0]);
    let [least, most] = [first, first];
    for (after += 1; after < points.length && column(points[after][0]) === x; after++) {
      if (points[after][1] < points[least][1]) least = after;
      if (points[after][1] > points[most][1]) most = after;
    }
    const numbers = new Set([first, Math.min(least, most), Math.max(least, most), after - 1]);
    kept.push(...[...numbers].map((number) => points[number]));
  }
  return kept;
}

/**
 * The line of the lag, within the time that is shown.
 * @type {Quantity["path"]}
 */
function slopes({ lag, duration }, lens, y) {
  if (!lag.length) return "";
  const [from, to] = [Math.max(lens.from, lag[0][0]), Math.min(lens.to, duration)];
  if (from >= to) return "";
  const inside = lag.slice(countUntil(lag, from), countUntil(lag, to));
  /** @type {Series<number>} */
  const points = [[from, heightAt(lag, from) ?? 0], ...corners(inside, (at) => Math.floor(lens.x(at))), [to, heightAt(lag, to) ?? 0]];
  return `M${points.map(([at, value]) => `${lens.x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
}

/**
 * The steps of the partitions that are not worked on: in each column of pixels the most, at least LOWEST high.
 * @type {Quantity["path"]}
 */
function steps({ idle, duration }, lens, y) {
  const columns = mosts(idle, duration, Math.ceil(lens.plot), (at) => lens.column(at));
  const high = (/** @type {number} */ count) => (count ? Math.min(y(count), y(0) - LOWEST) : y(0)).toFixed(1);
  const parts = [`M${lens.left} ${high(columns[0])}`];
  for (let x = 1; x < columns.length; x++)
    if (columns[x] !== columns[x - 1]) parts.push(`H${lens.left + x}V${high(columns[x])}`);
  return `${parts.join("")}H${lens.clipped(duration).toFixed(1)}`;
}
