// The lag of all strategies, and the partitions that nobody owns, on one axis of time. Lines have dashes, as hues
// are those of members.

import { adjust, html, refill, svg, titled, worded, write } from "./elements.js";
import { COUNT, amount, clockText, counted, roundStep, short } from "./text.js";
import { heightAt, largest, valueAt } from "./trace.js";

const DASHES = ["", "7 3", "2 2", "9 3 2 3", "1 4", "5 2 1 2 1 2"];
const HIGH = 96; // of the plot of the lag, at least
const LOW = 34; // of the plot of partitions that nobody owns, at least
const GAP = 20;
const LINE = 13; // pixels between two labels
const LONGEST = 20; // letters of a strategy's name
const LEAST = 2; // pixels of a step
const THIN = 1.6; // pixels of the last line
const WIDER = 1.4; // of each line before it, at most
const WIDEST = 3.6; // of the first line, more than of the last one
const PALE = 0.4; // the opacity of the first line

/**
 * Places that are at least LINE apart, in the order of the wanted ones and near them, at most `bottom`.
 * @param {number[]} wanted
 * @param {number} bottom
 */
export function spread(wanted, bottom) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  /** @type {number[]} */
  const places = [];
  order.forEach((i, n) => { places[i] = Math.max(wanted[i], n ? places[order[n - 1]] + LINE : 0); });
  for (let n = order.length - 1, most = bottom; n >= 0; n--, most -= LINE) places[order[n]] = Math.min(places[order[n]], most);
  return places;
}

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

/** @import { Series } from "./model" */
/** @import { Trace } from "./trace.js" */

export class Lag {
  /**
   * @param {object} parts
   * @param {import("./view.js").View[]} parts.views
   * @param {import("./clock.js").Clock} parts.clock
   * @param {import("./lens.js").Lens} parts.lens
   * @param {import("./pointer.js").Pointer} parts.pointer
   * @param {boolean} parts.counted whether there are figures, which leave out the start of the group
   */
  constructor({ views, clock, lens, pointer, counted: hasFigures }) {
    this.counts = hasFigures ? Math.min(...views.map(({ trace }) => trace.counts)) : 0; // the figures, from then on
    this.views = views;
    this.clock = clock;
    this.lens = lens;
    this.most = 1; // records
    this.mostNobodys = views.reduce((most, { trace }) => largest(trace.nobodys, most), 1); // partitions
    this.measured = views.some(({ trace }) => trace.lag.length);
    this.height = Math.max(HIGH, LINE * views.length);
    this.depth = Math.max(LOW, LINE * views.length);
    this.floor = this.measured ? 8 + this.height : 0; // where the lag is 0
    this.base = this.floor + GAP + this.depth; // where nobody owns no partition
    this.cursor = svg("line", { y1: 0, y2: this.base, class: "rbl-cursor" });
    this.shades = svg("g");
    this.start = svg("g");
    this.grid = svg("g");
    this.values = svg("g");
    this.lines = views.map(({ name }, i) => ["lag", "partitions that nobody owns"].map((what) =>
      titled(svg("path", { class: "rbl-line", ...looks(i, views.length) }), `${name}: ${what}`)));
    this.labels = views.map((_, i) => [1, 2].map(() => /** @type {const} */ ([
      svg("path", { class: "rbl-line", ...looks(i, views.length) }), svg("text"),
    ])));
    this.drawing = svg("svg", { class: "rbl-lag rbl-plot", role: "img", "aria-label": "Lag, and partitions that nobody owns, over time" },
      this.shades, this.start, this.grid, this.values, ...this.lines.flat(), ...this.labels.flat(2), this.cursor);
    const heading = this.measured ? "Lag, and partitions that nobody owns" : "Partitions that nobody owns";
    this.when = html("small", { class: "rbl-quiet" });
    const partitions = views.some(({ trace }) => trace.partitions);
    this.element = html("div", { class: "rbl-wide" }, ...(partitions ? [pointer.across(html("h4", {}, heading, " ", this.when), this.drawing)] : []));
    pointer.watch(this.drawing, (x) => this.tell(x));
    clock.listen((at) => { this.move(at); });
  }

  draw() {
    const { views, lens, drawing, base } = this;
    adjust(drawing, { width: lens.width, height: base + 6 });
    this.most = this.highest();
    refill(this.shades, "rect", views.flatMap(({ trace }) => trace.times.filter(([began, ended]) => began <= lens.to && ended >= lens.from).map((times) => {
      const [from, to] = times.map((at) => lens.clipped(at));
      return { attributes: { x: from, y: 0, width: Math.max(LEAST, to - from), height: base, class: "rbl-shade" } };
    })));
    this.start.replaceChildren(...this.uncounted());
    this.drawGrid();
    views.forEach(({ trace }, i) => {
      const [high, low] = this.lines[i];
      adjust(high, { d: this.path(trace) });
      adjust(low, { d: this.steps(trace) });
    });
    this.place();
    this.move(this.clock.at);
  }

  // The start of the group, which the figures leave out.
  uncounted() {
    const { lens, counts, base } = this;
    if (counts <= lens.from) return [];
    const x = lens.clipped(counts);
    const name = "not counted";
    const inside = x - lens.left > 8 * name.length;
    return [
      svg("rect", { x: lens.left, y: 0, width: x - lens.left, height: base, class: "rbl-uncounted" }),
      titled(worded(inside ? name : `← ${name}`, inside ? { x: x - 4, y: 11, "text-anchor": "end" } : { x: x + 4, y: 11 }),
        `The figures count from ${clockText(counts)} on`),
    ];
  }

  // The largest lag that is shown.
  highest() {
    const { from, to } = this.lens;
    const shown = this.views.flatMap(({ trace }) => [
      heightAt(trace.lag, from) ?? 0, heightAt(trace.lag, to) ?? 0,
      ...trace.lag.filter(([at]) => from <= at && at <= to).map(([, value]) => value),
    ]);
    return shown.reduce((most, value) => Math.max(most, value), 1);
  }

  drawGrid() {
    const { lens } = this;
    const ticks = [
      ...this.ticks(this.floor, this.height, this.measured ? this.most : 0, "records"),
      ...this.ticks(this.base, this.depth, this.mostNobodys, "partitions"),
    ];
    refill(this.grid, "line", ticks.map(([y]) => ({ attributes: { x1: lens.left, x2: lens.left + lens.plot, y1: y, y2: y, class: "rbl-grid" } })));
    refill(this.values, "text", ticks.map(([y, words]) => ({ attributes: { x: lens.left - 6, y: y + 4, "text-anchor": "end" }, words })));
  }

  /**
   * The heights of the lines of a grid, with their texts.
   * @param {number} base
   * @param {number} height
   * @param {number} most
   * @param {"records" | "partitions"} unit
   */
  ticks(base, height, most, unit) {
    const step = unit === "partitions" ? Math.max(1, roundStep(most, 2)) : roundStep(most, 4);
    /** @type {[y: number, words: string][]} */
    const found = [];
    for (let value = 0; most && value <= most * 1.0001; value += step) {
      const last = value + step > most * 1.0001;
      found.push([base - (value / most) * height, last ? `${amount(value)} ${unit}` : amount(value)]);
    }
    return found;
  }

  /** @param {number} value */
  high(value) {
    return this.floor - (value / this.most) * this.height;
  }

  /** @param {number} count */
  low(count) {
    return this.base - (count / this.mostNobodys) * this.depth;
  }

  /**
   * The line of the lag, within the time that is shown.
   * @param {Trace} trace
   */
  path(trace) {
    const { lens } = this;
    const { lag } = trace;
    if (!lag.length) return "";
    const [from, to] = [Math.max(lens.from, lag[0][0]), Math.min(lens.to, trace.duration)];
    if (from >= to) return "";
    /** @type {Series<number>} */
    const points = [[from, heightAt(lag, from) ?? 0], ...lag.filter(([at]) => from < at && at < to), [to, heightAt(lag, to) ?? 0]];
    return `M${points.map(([at, value]) => `${lens.x(at).toFixed(1)} ${this.high(value).toFixed(1)}`).join("L")}`;
  }

  /**
   * The steps of the partitions that nobody owns: in each column of pixels the most, for at least LEAST pixels.
   * @param {Trace} trace
   */
  steps(trace) {
    const { lens } = this;
    const columns = new Float64Array(Math.ceil(lens.plot));
    const { nobodys } = trace;
    nobodys.forEach(([at, count], n) => {
      const until = nobodys[n + 1]?.[0] ?? trace.duration;
      if (!count || until < lens.from || at > lens.to) return;
      const first = Math.max(0, Math.min(columns.length - LEAST, Math.floor(lens.column(at))));
      const end = Math.min(columns.length, Math.max(first + LEAST, Math.ceil(lens.column(until))));
      for (let x = first; x < end; x++) columns[x] = Math.max(columns[x], count);
    });
    const parts = [`M${lens.left} ${this.low(columns[0])}`];
    for (let x = 1; x < columns.length; x++)
      if (columns[x] !== columns[x - 1]) parts.push(`H${lens.left + x}V${this.low(columns[x]).toFixed(1)}`);
    return `${parts.join("")}H${lens.clipped(trace.duration).toFixed(1)}`;
  }

  // Put the labels beside the ends of their lines, where they do not overlap.
  place() {
    const { lens, views } = this;
    const right = lens.left + lens.plot;
    /** @type {(trace: Trace) => number} */
    const end = (trace) => Math.min(lens.to, trace.duration); // the count ends there
    const high = spread(views.map(({ trace }) => this.high(heightAt(trace.lag, end(trace)) ?? 0)), this.floor);
    const low = spread(views.map(({ trace }) => this.low(valueAt(trace.nobodys, end(trace) - 1) ?? 0)), this.base);
    this.labels.forEach((label, i) => label.forEach(([sample, text], n) => {
      const y = [high, low][n][i];
      adjust(sample, { d: n || this.measured ? `M${right + 6} ${y}H${right + 30}` : "" });
      adjust(text, { x: right + 34, y: y + 4 });
    }));
  }

  /** @param {number} at */
  move(at) {
    this.lens.place(this.cursor, at);
    write(this.when, `grey: rounds; beside: the figures at ${clockText(at)}`);
    this.views.forEach(({ trace, name }, i) => {
      const [[, high], [, low]] = this.labels[i];
      const lag = heightAt(trace.lag, at);
      write(high, this.measured ? `${short(name, LONGEST)}${lag === undefined ? "" : ` ${amount(lag)}`}` : "");
      write(low, `${short(name, LONGEST)} ${COUNT.format(valueAt(trace.nobodys, at) ?? 0)}`);
    });
  }

  /** @param {number} x */
  tell(x) {
    if (!this.lens.covers(x)) return [];
    const at = this.lens.at(x);
    return this.views.flatMap(({ trace, name }) => {
      if (at > trace.duration) return [];
      const lag = heightAt(trace.lag, at);
      const nobodys = valueAt(trace.nobodys, at);
      const number = trace.roundDuring(at);
      return [
        name + (lag === undefined ? "" : `: lag ${COUNT.format(lag)}`),
        ...(nobodys ? [`nobody owns ${counted(nobodys, "partition")}`] : []),
        ...(number < 0 ? [] : trace.roundLines(number)),
      ];
    });
  }
}
