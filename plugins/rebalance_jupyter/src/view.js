// One trace, drawn: its panels, one below another.

import { Group } from "./group.js";
import { html } from "./elements.js";
import { Lanes } from "./lanes.js";
import { Machine } from "./machine.js";
import { Members } from "./members.js";
import { RoundPanel } from "./round.js";

const SHOWN_MS = 1500;

/** @import { Clock } from "./clock.js" */
/** @import { Lens } from "./lens.js" */
/** @import { Trace } from "./trace.js" */

/**
 * @typedef {object} Shared What a panel tells the others.
 * @property {(name: string | null) => void} hover The member under the pointer.
 * @property {(name: string) => void} selected The selected partition.
 * @property {number} views How many there are.
 * @property {import("./pointer.js").Pointer} pointer
 * @property {ReturnType<typeof import("./amounts.js").scales>} scales
 */

/** @typedef {{ trace: Trace, clock: Clock, lens: Lens, shared: Shared }} Context What a panel is given. */

export class View {
  /**
   * @param {Trace} trace
   * @param {Clock} clock
   * @param {Lens} lens
   * @param {Shared} shared
   * @param {string} name
   */
  constructor(trace, clock, lens, shared, name) {
    this.trace = trace;
    this.clock = clock;
    this.lens = lens;
    this.name = name;
    this.drawn = false;
    /** @type {string | null} */
    this.hovered = null;
    this.lanes = new Lanes(this.context(shared));
    this.members = new Members(this.context(shared));
    this.group = new Group(this.context(shared));
    this.round = new RoundPanel(this.context(shared));
    this.machine = new Machine(trace);
    const failed = trace.kind(trace.end.state) === "resting" ? "" : `; ended ${trace.end.state}`;
    const drawings = trace.members.length ? [this.round.flow, this.machine.drawing] : [this.machine.drawing];
    this.brushed = html("div", { class: "rbl-brush", hidden: "" });
    this.more = html("details", { class: "rbl-more", open: shared.views > 1 ? null : "" },
      html("summary", {}, "Members and states"),
      shared.pointer.across(...this.members.elements, ...this.group.elements),
      ...this.round.details, html("div", { class: "rbl-pair" }, ...drawings));
    this.element = html("section", { class: "rbl-view", "aria-label": `${trace.scenario} under ${name}` },
      html("div", { class: "rbl-head" }, html("h3", {}, `${name}${failed}`), ...this.round.heads),
      ...trace.findings.map((finding) => html("p", { class: "rbl-error", role: "alert" }, finding)),
      shared.pointer.across(...this.lanes.elements, this.brushed),
      this.more,
    );
    clock.listen((at, resting) => { if (this.drawn) this.move(at, resting); });
  }

  /** @param {Shared} shared */
  context(shared) {
    return { trace: this.trace, clock: this.clock, lens: this.lens, shared };
  }

  /**
   * Mark a stretch of time across the plots, or none.
   * @param {[from: number, to: number] | null} stretch
   */
  brush(stretch) {
    const { brushed, lens } = this;
    brushed.hidden = !stretch;
    if (!stretch) return;
    const [left, right] = stretch.map((at) => lens.x(at));
    brushed.style.left = `${left}px`;
    brushed.style.width = `${right - left}px`;
  }

  // Bring the view to the top of the window, and mark it for a moment.
  show() {
    this.element.scrollIntoView({ block: "start", behavior: this.clock.calm ? "auto" : "smooth" });
    this.element.classList.add("rbl-shown");
    setTimeout(() => this.element.classList.remove("rbl-shown"), SHOWN_MS);
  }

  // Draw what the lens shows.
  draw() {
    this.drawn = true;
    for (const panel of [this.lanes, this.members, this.group]) panel.draw();
    this.move(this.clock.at, false);
  }

  /**
   * @param {number} at
   * @param {boolean} resting
   */
  move(at, resting) {
    this.lanes.move(at, resting);
    const others = [this.members, this.group, this.round, this.machine];
    for (const panel of others) panel.move(at);
    if (resting || this.hovered !== null) this.highlight(this.hovered);
  }

  /**
   * Mark a member in all panels; null marks none.
   * @param {string | null} name
   */
  highlight(name) {
    this.hovered = name;
    const number = this.trace.members.findIndex((member) => member.name === name);
    for (const panel of [this.lanes, this.members, this.group, this.round]) panel.highlight(number);
  }
}
