// Two metrics of the strategies against each other.

import { html, svg, titled, worded } from "./elements.js";

const [WIDTH, HEIGHT] = [330, 210];
const [LEFT, TOP, RIGHT, BOTTOM] = [52, 26, 16, 24];
const RADIUS = 5; // of a point
const ASIDE = 9; // pixels between a point and its label
const LINE = 13; // the height of a label
const LETTER = 6.2; // the width of a letter, about
const LINES = [0, -1, 1, -2, 2, -3, 3]; // of a label, from that of its point

/** @import { Figures, Metric } from "./model" */

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */
/** @typedef {[x: number, y: number]} Place */

/**
 * Where the labels of points are: beside their point, or above or below it, without touching another point or label. A
 * label that fits nowhere is to the left of its point.
 * @param {(Place | null)[]} points
 * @param {string[]} names
 * @param {Box} frame
 * @returns {({ x: number, y: number, "text-anchor": string } | null)[]}
 */
export function labelPlaces(points, names, frame) {
  const taken = points.filter((point) => point !== null).map(([x, y]) => around(x - RADIUS, x + RADIUS, y, 2 * RADIUS));
  return points.map((point, i) => {
    if (!point) return null;
    const [x, y] = point;
    const width = LETTER * names[i].length;
    const right = { at: x + ASIDE, left: x + ASIDE, anchor: "start" };
    const left = { at: x - ASIDE, left: x - ASIDE - width, anchor: "end" };
    const centred = { at: x, left: x - width / 2, anchor: "middle" };
    for (const line of LINES)
      for (const side of line ? [right, left, centred] : [right, left]) {
        const box = around(side.left, side.left + width, y + line * LINE, LINE - 1);
        if (!isWithin(box, frame) || taken.some((other) => overlap(box, other))) continue;
        taken.push(box);
        return { x: side.at, y: y + line * LINE, "text-anchor": side.anchor };
      }
    return { x: left.at, y, "text-anchor": left.anchor };
  });
}

/**
 * @param {number} left
 * @param {number} right
 * @param {number} middle
 * @param {number} height
 * @returns {Box}
 */
function around(left, right, middle, height) {
  return { left, right, top: middle - height / 2, bottom: middle + height / 2 };
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
      worded(up.name, { x: LEFT - 6, y: TOP - 14, class: "rbl-name" }),
    ];
    /** @type {(Place | null)[]} */
    const places = this.figures.strategies.map((_, i) => {
      const [along, above] = [across.cells[i].number, up.cells[i].number];
      if (along === null || above === null) return null;
      return [LEFT + (along / most[0]) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - (above / most[1]) * (HEIGHT - TOP - BOTTOM)];
    });
    const frame = { left: LEFT, right: WIDTH, top: TOP - LINE / 2, bottom: HEIGHT - BOTTOM };
    const labels = labelPlaces(places, this.figures.strategies, frame);
    this.points = this.figures.strategies.map((name, i) => {
      const [place, label] = [places[i], labels[i]];
      if (!place || !label) return null;
      const [x, y] = place;
      const front = this.figures.front.includes(i);
      const said = `${name}: ${across.name} ${across.cells[i].text}, ${up.name} ${up.cells[i].text}`;
      const point = svg("g", { class: front ? "rbl-point rbl-front" : "rbl-point", tabindex: 0, role: "button", "aria-label": said },
        svg("circle", { cx: x, cy: y, r: RADIUS }),
        worded(name, { ...label, y: label.y + 4 }));
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
