// The answer of a comparison, above the views: sentences, and beside them the figures by groups.

import { html } from "./elements.js";
import { listed } from "./text.js";

/** @import { Figures, Metric } from "./model" */

/** @type {[value: string, label: string, wants: (metric: Metric) => boolean][]} */
const SHOWN = [
  ["main", "main figures that differ", (metric) => metric.headline && metric.differs],
  ["differ", "all figures that differ", (metric) => metric.differs],
  ["all", "all figures", () => true],
];

const MARKS = "bold: best of the row; +n: difference from it";
const UNMARKED = "+n: difference from the least; which is best is not known";
const SIGNS = "Bold: better by more than 1 % than all that is not bold; bars: compared with the largest of the row";
const START = "The group's own start does not count";

/**
 * What the front is.
 * @param {Figures} figures
 */
function frontTitle({ front_line }) {
  return `No other strategy is better in one figure of the front and not worse in any. ${front_line}.`;
}

export class Verdict {
  /**
   * @param {Figures} figures
   * @param {(number: number) => void} choose is called with the number of a strategy that somebody chooses
   */
  constructor(figures, choose) {
    this.figures = figures;
    this.choose = choose;
    this.metrics = figures.groups.flatMap((group) => group.metrics);
    /** @type {number | undefined} */
    this.selected = undefined;
    this.shown = html("select", { "aria-label": "Figures shown", onchange: () => this.draw() });
    for (const [value, label] of SHOWN) this.shown.append(html("option", { value }, label));
    if (!this.metrics.some(SHOWN[0][2])) this.shown.value = this.metrics.some(SHOWN[1][2]) ? "differ" : "all";
    this.table = html("table", { class: "rbl-figures" });
    this.same = html("p", { class: "rbl-counts rbl-same" });
    this.definitions = html("dl");
    const reasons = figures.reasons.map((reason) => html("p", { class: "rbl-reason rbl-because" }, reason));
    const notes = [figures.title, figures.front_line, ...(figures.strategies.length > 1 ? [SIGNS] : []), START].filter(Boolean).map((note) => `${note}.`).join(" ");
    this.element = html("section", { class: "rbl-verdict", "aria-label": "Comparison" },
      html("div", { class: "rbl-told-first" },
        ...(figures.answer ? [html("p", { class: "rbl-answer" }, figures.answer)] : []),
        ...reasons,
        this.same,
        html("details", {}, html("summary", {}, "Definitions"), html("p", { class: "rbl-counts" }, notes), this.definitions)),
      html("div", { class: "rbl-wide" }, this.table));
    this.draw();
  }

  draw() {
    const { figures } = this;
    const [, , wanted] = SHOWN.find(([value]) => value === this.shown.value) ?? SHOWN[0];
    const heads = figures.strategies.map((name, i) => {
      const button = html("button", { type: "button", title: `Go to ${name}`, onclick: () => this.select(i) }, name);
      const front = figures.front.includes(i) && figures.strategies.length > 1;
      return html("th", { scope: "col" }, button, ...(front ? [html("small", { class: "rbl-on-front", title: frontTitle(figures) }, "front")] : []));
    });
    const bodies = figures.groups.map(({ name, metrics }) => {
      const rows = metrics.filter(wanted).map((metric) => this.row(metric));
      rows[0]?.prepend(html("th", { scope: "rowgroup", rowspan: rows.length, class: "rbl-group" }, name));
      return html("tbody", {}, ...rows);
    });
    const isKnown = this.metrics.some(({ cells }) => cells.some(({ best }) => best));
    const marks = figures.strategies.length > 1 ? [html("small", {}, isKnown ? MARKS : UNMARKED)] : [];
    this.table.replaceChildren(html("thead", {}, html("tr", {}, html("th", { scope: "col", colspan: 2 }, this.shown, ...marks), ...heads)), ...bodies);
    const same = this.metrics.filter((metric) => metric.headline && !metric.differs && metric.cells[0].number !== null && !wanted(metric));
    const texts = same.map(({ name, unit, cells }) => `${name} ${cells[0].text}${unit ? ` ${unit}` : ""}`);
    this.same.textContent = texts.length && figures.strategies.length > 1 ? `The same for all: ${listed(texts, texts.length)}.` : "";
    this.definitions.replaceChildren(...this.metrics.filter((metric) => wanted(metric) || metric.headline)
      .flatMap(({ name, definition }) => [html("dt", {}, name), html("dd", {}, definition)]));
    this.mark();
  }

  /** @param {Metric} metric */
  row({ name, unit, definition, cells }) {
    const head = html("th", { scope: "row", title: definition }, name, ...(unit ? [html("small", {}, ` ${unit}`)] : []));
    return html("tr", {}, head, ...cells.map(({ text, spread, best, difference, share }) => html("td",
      { class: best ? "rbl-best" : null, style: `--rbl-share: ${share.toFixed(3)}` },
      text, ...[spread && `(${spread})`, difference].filter(Boolean).map((each) => html("small", {}, ` ${each}`)))));
  }

  /** @param {number} number */
  select(number) {
    this.selected = number;
    this.mark();
    this.choose(number);
  }

  mark() {
    for (const row of this.table.rows) {
      const first = row.cells.length - this.figures.strategies.length;
      [...row.cells].forEach((cell, i) => cell.classList.toggle("rbl-chosen", i >= first && i - first === this.selected));
    }
  }
}
