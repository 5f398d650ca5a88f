// Two metrics of the strategies against each other.

import { html, svg, titled, worded } from "./elements.js";
import { short } from "./text.js";

const [WIDTH, HEIGHT] = [330, 210];
const [LEFT, TOP, RIGHT, BOTTOM] = [60, 36, 16, 24];
const RADIUS = 5; // of a point
const ASIDE = 9; // pixels between the middle of a point and a label beside it
const [AROUND, ABOVE] = [12, 9]; // pixels between the middle of a point and the label of another one, at least
const LINE = 13; // between two labels
const HALF = 5; // of the height of a label
const LETTER = 6.2; // the width of a letter, about
const FAR = [-2, 2, -3, 3, -4, 4, -5, 5]; // lines of a label, from that of its point
const LONGEST = 34; // letters of a name above the plot

/** @import { Figures, Metric } from "./model" */

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */
/** @typedef {[x: number, y: number]} Place */

/**
 * The middles of the labels of points: above their point, or else below it, beside it, or further above or below, where
 * they need a line to it. None touches another one or is nearer to another point. A label that fits nowhere is above.
 * @param {(Place | null)[]} points
 * @param {string[]} names
 * @param {Box} frame
 * @returns {({ x: number, y: number, far: boolean } | null)[]}
 */
export function labelPlaces(points, names, frame) {
  /** @type {Box[]} */
  const taken = [];
  return points.map((point, i) => {
    if (!point) return null;
    const [x, y] = point;
    const half = (LETTER * names[i].length) / 2;
    const middle = Math.max(frame.left + half, Math.min(frame.right - half, x));
    const others = points.filter((other) => other !== null)
      .filter(([along, above]) => Math.hypot(along - x, above - y) > RADIUS)
      .map(([along, above]) => around(along, above, AROUND, ABOVE));
    const places = [
      ...[-1, 1].map((line) => ({ x: middle, y: y + line * LINE, far: false })),
      ...[1, -1].map((side) => ({ x: x + side * (ASIDE + half), y, far: false })),
      ...FAR.map((line) => ({ x: middle, y: y + line * LINE, far: true })),
    ];
    const boxOf = (/** @type {{ x: number, y: number }} */ place) => around(place.x, place.y, half, HALF);
    const isFree = (/** @type {Box} */ box) => isWithin(box, frame) && ![...others, ...taken].some((other) => overlap(box, other));
    const place = places.find((each) => isFree(boxOf(each))) ?? places[0];
    taken.push(boxOf(place));
    return place;
  });
}

/**
 * @param {number} x
 * @param {number} y
 * @param {number} across
 * @param {number} down
 * @returns {Box}
 */
function around(x, y, across, down) {
  return { left: x - across, right: x + across, top: y - down, bottom: y + down };
}

/**
 * @param {Box} box
 * @param {Box} frame
 */
function isWithin(box, frame) {
  return box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
}

/**
 * @param {Box} one
 * @param {Box} other
 */
function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/**
 * What the front is.
 * @param {Figures} figures
 */
export function frontTitle({ front_line }) {
  return `No other strategy is better in one figure of the front and not worse in any. ${front_line}.`;
}

export class Scatter {
  /**
   * @param {Figures} figures
   * @param {Metric[]} metrics
   * @param {(number: number) => void} choose is called with the number of a strategy that somebody chooses
   */
  constructor(figures, metrics, choose) {
    this.figures = figures;
    this.metrics = metrics;
    this.choose = choose;
    /** @type {number | undefined} */
    this.selected = undefined;
    /** @type {(SVGElement | null)[]} */
    this.points = [];
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "rbl-scatter" });
    const [across, up = across] = figures.axes;
    this.across = this.axis(across, "Across");
    this.up = this.axis(up, "Upward");
    const isDivided = figures.front.length > 0 && figures.front.length < figures.strategies.length;
    this.key = isDivided ? [titled(worded("filled: Pareto front", { x: WIDTH, y: 10, "text-anchor": "end" }), frontTitle(figures))] : [];
    this.element = html("details", { class: "rbl-scatter-box" },
      html("summary", {}, "Two figures against each other"),
      html("div", {}, this.up, " against ", this.across), this.drawing);
    this.draw();
  }

  /**
   * @param {string} chosen
   * @param {string} label
   */
  axis(chosen, label) {
    const made = html("select", { "aria-label": `${label} axis`, onchange: () => this.draw() });
    for (const { name, differs } of this.metrics)
      if (differs || name === chosen) made.append(html("option", { value: name }, name));
    made.value = chosen;
    return made;
  }

  draw() {
    const [across, up] = [this.across, this.up].map(({ value }) => this.metrics.find(({ name }) => name === value) ?? this.metrics[0]);
    const most = [across, up].map(({ cells }) => Math.max(0, ...cells.map(({ number }) => number ?? 0)) || 1);
    const ends = [across, up].map(({ cells }, n) => cells.find(({ number }) => number === most[n])?.text ?? "");
    const axes = [
      svg("path", { d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`, class: "rbl-axis" }),
      worded("0", { x: LEFT - 6, y: HEIGHT - BOTTOM + 12, "text-anchor": "end" }),
      worded(ends[1], { x: LEFT - 6, y: TOP + 5, "text-anchor": "end" }),
      worded(ends[0], { x: WIDTH - RIGHT, y: HEIGHT - BOTTOM + 14, "text-anchor": "end" }),
      worded(across.name, { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - BOTTOM + 14, "text-anchor": "middle", class: "rbl-name" }),
      worded(short(up.name, LONGEST), { x: 0, y: 10, class: "rbl-name" }),
      ...this.key,
    ];
    /** @type {(Place | null)[]} */
    const places = this.figures.strategies.map((_, i) => {
      const [along, above] = [across.cells[i].number, up.cells[i].number];
      if (along === null || above === null) return null;
      return [LEFT + (along / most[0]) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - (above / most[1]) * (HEIGHT - TOP - BOTTOM)];
    });
    const frame = { left: LEFT + 2, right: WIDTH, top: TOP - 1.5 * LINE, bottom: HEIGHT - BOTTOM };
    const labels = labelPlaces(places, this.figures.strategies, frame);
    this.points = this.figures.strategies.map((name, i) => {
      const [place, label] = [places[i], labels[i]];
      if (!place || !label) return null;
      const [x, y] = place;
      const front = this.figures.front.includes(i);
      const said = `${name}: ${across.name} ${across.cells[i].text}, ${up.name} ${up.cells[i].text}`;
      if (label.far) axes.push(svg("path", { d: `M${x} ${y}V${label.y}`, class: "rbl-axis" }));
      const point = svg("g", { class: front ? "rbl-point rbl-front" : "rbl-point", tabindex: 0, role: "button", "aria-label": said },
        svg("circle", { cx: x, cy: y, r: RADIUS }),
        worded(name, { x: label.x, y: label.y + 4, "text-anchor": "middle" }));
      point.addEventListener("click", () => this.choose(i));
      point.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        this.choose(i);
      });
      return titled(point, said);
    });
    this.drawing.setAttribute("aria-label", `${up.name} against ${across.name}`);
    this.drawing.replaceChildren(...axes, ...this.points.filter((point) => point !== null));
    this.mark(this.selected);
  }

  /** @param {number | undefined} selected */
  mark(selected) {
    this.selected = selected;
    this.points.forEach((point, i) => point?.classList.toggle("rbl-chosen", i === selected));
  }
}
