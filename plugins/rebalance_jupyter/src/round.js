// The round at the cursor: what happened in it, and who gave partitions to whom.

import { GREY } from "./colours.js";
import { freshId, html, svg, titled, worded } from "./elements.js";
import { COUNT, short } from "./text.js";
import { valueAt } from "./trace.js";

const MOST_LINES = 100; // events of a round that are listed
const MOST_NAMES = 12;
const MOST_INITIALS = 40;

export class RoundPanel {
  /** @param {import("./view.js").Context} context */
  constructor({ trace, shared }) {
    this.trace = trace;
    this.shared = shared;
    /** @type {number | null} */
    this.number = null;
    /** @type {SVGElement[]} */
    this.nodes = [];
    this.arrow = freshId();
    this.heading = html("span", { class: "rbl-number" });
    this.sentence = html("span", { class: "rbl-sentence" });
    this.counts = html("p", { class: "rbl-counts" });
    this.told = html("ol", { class: "rbl-events", "aria-label": "Events of the protocol in this round", hidden: "" });
    this.flow = svg("svg", {
      class: "rbl-flow", viewBox: "0 0 460 210", role: "img", "aria-label": "Who gave partitions to whom in this round",
    });
    this.heads = [this.heading, this.sentence];
    this.details = [this.counts, this.told];
  }

  /** @param {number} at */
  move(at) {
    const number = this.trace.roundAt(at);
    const round = this.trace.rounds[number];
    const said = round ? valueAt(round.sentences, at) ?? round.sentence : this.beforeRounds();
    if (this.sentence.textContent !== said) this.sentence.textContent = said;
    if (number === this.number) return;
    this.number = number;
    this.describe(number);
    this.drawFlow(number);
  }

  /** @param {number} number */
  describe(number) {
    const { trace } = this;
    const round = trace.rounds[number];
    const start = trace.counts > 0 ? ", with the start" : "";
    this.heading.textContent = round ? `Round ${number + 1} of ${trace.rounds.length}${start}` : "No round yet";
    const counts = round?.counts ?? {};
    const shown = Object.entries(counts).filter(([, count]) => count).map(([what, count]) => `${what} ${count}`);
    const because = round ? `because ${round.causes.join("; ")}` : "";
    this.counts.textContent = [shown.join(", "), because, round?.waited, round?.report].filter(Boolean).join(" · ");
    const told = trace.told(number);
    const more = told.length > MOST_LINES ? [`${COUNT.format(told.length - MOST_LINES)} more`] : [];
    this.told.replaceChildren(...[...told.slice(0, MOST_LINES), ...more].map((line) => html("li", {}, line)));
    this.told.hidden = !told.length;
  }

  /** @param {number} number */
  drawFlow(number) {
    const { trace, flow } = this;
    const round = trace.rounds[number];
    const place = trace.circle.map(([x, y]) => [160 + x * 140, 22 + y * 166]);
    const dense = trace.members.length > MOST_NAMES;
    const radius = !dense ? 12 : trace.members.length > MOST_INITIALS ? 2.5 : 5;
    const { arrow } = this;
    const marker = svg("marker", {
      id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, orient: "auto",
      markerUnits: "userSpaceOnUse",
    }, svg("path", { d: "M0 0L8 4L0 8z", class: "rbl-arrowhead" }));
    const pieces = [svg("defs", {}, marker)];
    const flows = round?.flows ?? [];
    const pairs = new Set(flows.map(([from, to]) => `${from} ${to}`));
    for (const [from, to, count] of flows) {
      const [[x1, y1], [x2, y2]] = [place[from], place[to]];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      const gap = radius + 3;
      const side = pairs.has(`${to} ${from}`) ? radius / 2 : 0; // beside the arrow in the opposite direction
      const aside = side + 12;
      pieces.push(svg("line", {
        x1: x1 + ux * gap - uy * side, y1: y1 + uy * gap + ux * side,
        x2: x2 - ux * gap - uy * side, y2: y2 - uy * gap + ux * side,
        class: "rbl-gave", "stroke-width": Math.min(4, 1 + Math.log2(count) / 2), "marker-end": `url(#${arrow})`,
      }));
      const middle = { x: (x1 + x2) / 2 - uy * aside, y: (y1 + y2) / 2 + ux * aside + 4, "text-anchor": "middle" };
      if (!dense) pieces.push(worded(String(count), middle));
    }
    this.nodes = trace.members.map((member, i) => {
      const own = round?.members[i];
      const [x, y] = place[i];
      const colour = trace.coloursAreMembers ? member.colour : GREY;
      const node = svg("g", { class: own ? "rbl-node" : "rbl-node rbl-absent" });
      node.append(svg("circle", { cx: x, cy: y, r: radius, fill: colour }));
      const ink = dense ? "" : `fill: ${trace.coloursAreMembers ? member.ink : "#000"}`;
      const side = x >= 229 ? 1 : -1; // names are outside the circle of arrows
      const inside = dense ? [x + (x - 230) / 7, y + (y - 105) / 7] : [x, y];
      if (trace.members.length <= MOST_INITIALS)
        node.append(worded(member.letter, { x: inside[0], y: inside[1] + 4, "text-anchor": "middle", style: ink }));
      if (!dense) {
        const given = own ? own.revoked + own.lost : 0;
        const changes = `${given ? ` −${given}` : ""}${own?.assigned ? ` +${own.assigned}` : ""}`;
        const anchor = side > 0 ? "start" : "end";
        node.append(worded(`${short(member.name)}${changes}`, { x: x + 16 * side, y: y + 4, "text-anchor": anchor }));
      }
      titled(node, member.name);
      node.addEventListener("mouseenter", () => this.shared.hover(member.name));
      node.addEventListener("mouseleave", () => this.shared.hover(null));
      return node;
    });
    flow.replaceChildren(...pieces, ...this.nodes);
  }

  beforeRounds() {
    return this.trace.rounds.length ? "before the first round" : "no member tried to join: there was no round";
  }

  /** @param {number} number */
  highlight(number) {
    this.nodes.forEach((node, i) => node.classList.toggle("rbl-hot", i === number));
  }
}
