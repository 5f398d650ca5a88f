// Two metrics of the strategies against each other.

import { html, svg, titled, worded } from "./elements.js";
import { spread } from "./lag.js";

const [WIDTH, HEIGHT] = [330, 210];
const [LEFT, TOP, RIGHT, BOTTOM] = [52, 26, 16, 24];
const BESIDE = 1300; // pixels of a window in which there is room beside the table

/** @import { Figures, Metric } from "./model" */

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
    const isWide = (document.documentElement.clientWidth || 0) >= BESIDE;
    this.element = html("details", { class: "rbl-scatter-box", open: isWide ? "" : null },
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
    const frame = [
      svg("path", { d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`, class: "rbl-axis" }),
      worded("0", { x: LEFT - 6, y: HEIGHT - BOTTOM + 12, "text-anchor": "end" }),
      worded(ends[1], { x: LEFT - 6, y: TOP + 5, "text-anchor": "end" }),
      worded(ends[0], { x: WIDTH - RIGHT, y: HEIGHT - BOTTOM + 14, "text-anchor": "end" }),
      worded(across.name, { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - BOTTOM + 14, "text-anchor": "middle", class: "rbl-name" }),
      worded(up.name, { x: LEFT - 6, y: TOP - 14, class: "rbl-name" }),
    ];
    /** @type {([x: number, y: number] | null)[]} */
    const places = this.figures.strategies.map((_, i) => {
      const [along, above] = [across.cells[i].number, up.cells[i].number];
      if (along === null || above === null) return null;
      return [LEFT + (along / most[0]) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - (above / most[1]) * (HEIGHT - TOP - BOTTOM)];
    });
    const lines = spread(places.map((place) => (place ? place[1] + 4 : 0)), HEIGHT - BOTTOM - 6);
    this.points = this.figures.strategies.map((name, i) => {
      const place = places[i];
      if (!place) return null;
      const [x, y] = place;
      const label = x > WIDTH / 2 ? { x: x - 9, "text-anchor": "end" } : { x: x + 9 };
      const front = this.figures.front.includes(i);
      const said = `${name}: ${across.name} ${across.cells[i].text}, ${up.name} ${up.cells[i].text}`;
      const point = svg("g", { class: front ? "rbl-point rbl-front" : "rbl-point", tabindex: 0, role: "button", "aria-label": said },
        svg("circle", { cx: x, cy: y, r: 5 }),
        worded(name, { ...label, y: lines[i] }));
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
    this.drawing.replaceChildren(...frame, ...this.points.filter((point) => point !== null));
    this.mark(this.selected);
  }

  /** @param {number | undefined} selected */
  mark(selected) {
    this.selected = selected;
    this.points.forEach((point, i) => point?.classList.toggle("rbl-chosen", i === selected));
  }
}
