// What each member does over time: its states, its callbacks and the events of its protocol.

import { GREY } from "./colours.js";
import { adjust, entry, html, resized, svg, titled, worded } from "./elements.js";
import { fillOf, orderOfStates, patternOf, swatch } from "./states.js";
import { COUNT, amount, clockText, counted, short } from "./text.js";
import { valueAt } from "./trace.js";

const STATES = 16; // the height of the states of a member
const LOAD = 14; // the height of its load, below them
const BOX = 340; // the most height that is shown; the lanes scroll
const LOWEST = 3; // the height of a member of a group that is too large for hues
const NAME = 12; // pixels between two names, at least
const NEAR = 6; // pixels between the pointer and the event that it points at
/** @type {Record<string, number>} */
const DIRECTIONS = { ArrowDown: 1, ArrowUp: -1 }; // in which keys move between members

/** @import { Member, Series } from "./model" */
/** @import { Pattern } from "./states.js" */

export class Members {
  /** @param {import("./view.js").Context} context */
  constructor({ trace, clock, lens, shared }) {
    this.trace = trace;
    this.clock = clock;
    this.lens = lens;
    this.shared = shared;
    this.focused = 0;
    this.at = -1; // the time of the texts
    this.mostLoad = Math.max(0, ...trace.members.flatMap(({ load, process_rate }) => [...load, ...(load.length ? process_rate : [])].map(([, rate]) => rate ?? 0)));
    this.isMap = !trace.coloursAreMembers; // of many members: a low lane for each, whose shade is what it owns
    this.most = Math.max(1, ...trace.members.flatMap(({ owned }) => owned.map(([, count]) => count)));
    this.lane = this.isMap ? Math.max(LOWEST, Math.floor(BOX / trace.members.length)) : this.mostLoad ? STATES + LOAD : STATES;
    /** @type {Map<string, string | CanvasPattern>} */
    this.fills = new Map();
    this.scrolled = 0; // read where it changes, as reading lays out the page
    this.canvas = html("canvas", { class: "rbl-lanes" });
    this.events = svg("svg", { class: "rbl-overlay", "aria-hidden": "true" }); // apart, so that a zoom does not paint the texts again
    this.overlay = svg("svg", { class: "rbl-overlay rbl-plot", role: "group", "aria-label": "Members" });
    this.legend = html("div", { class: "rbl-legend" });
    this.stack = html("div", { class: "rbl-stack rbl-scroll" }, this.canvas, this.events, this.overlay);
    this.rows = trace.members.map((member, i) => this.row(member, i));
    this.cursor = svg("line", { y1: 0, y2: this.lane * trace.members.length, class: "rbl-cursor" });
    this.unowned = html("div");
    this.elements = [html("h4", {}, "Members"), this.stack, this.legend];
    shared.pointer.watch(this.overlay, (x, y) => this.tell(x, y));
    this.overlay.addEventListener("keydown", (event) => this.walk(event));
    this.stack.addEventListener("scroll", () => {
      this.scrolled = this.stack.scrollTop;
      this.draw();
    });
    this.build();
    if (!trace.members.length) this.stack.replaceChildren(html("p", {}, "No member ever started."));
  }

  // Put the elements of all members into the overlays, and write the legend.
  build() {
    const { trace } = this;
    this.events.append(...this.rows.flatMap(({ calls, told, waits }) => [waits, calls, told]));
    this.overlay.append(...this.rows.map(({ hit }) => hit), this.cursor);
    if (this.isMap) {
      const shades = [0, this.most].map((count) => entry(shade(count / this.most), counted(count, "partition")));
      this.legend.replaceChildren(...shades, entry(null, "ended"), "pale: not at rest; line below: a round waits last for this member", this.unowned);
      return;
    }
    const hasLimits = this.mostLoad && trace.members.some(({ process_rate }) => process_rate.some(([, rate]) => rate));
    const dots = trace.sentences.length ? "; dots: events of the protocol" : "";
    const waits = trace.rounds.some((round) => round.waited_for.length) ? "; line below: a round waits last for this member" : "";
    const ticks = `ticks above: assigned, below: revoked or lost${waits}${dots}; beside: generation, partitions, lag${this.mostLoad ? "; areas: load" : ""}${hasLimits ? ", with a line at what a member can handle, and hatched above it" : ""}`;
    this.legend.replaceChildren(...this.stateLegend(), ...(trace.members.length ? [ticks] : []), this.unowned);
  }

  /**
   * The elements of a member, which `draw` places.
   * @param {Member} member
   * @param {number} i
   */
  row(member, i) {
    const { lens } = this;
    const isNamed = !this.isMap || i % Math.ceil(NAME / this.lane) === 0;
    const name = worded(isNamed ? `${short(member.name)} ${member.letter}` : "", {
      x: lens.left - 6, y: i * this.lane + Math.min(12, Math.max(9, this.lane)), "text-anchor": "end",
    });
    const figures = svg("text", { y: i * this.lane + 12 });
    const load = svg("text", { y: i * this.lane + STATES + 10 });
    const box = svg("rect", { x: 1, y: i * this.lane, height: this.lane - 1 });
    const texts = this.isMap ? [] : [figures, load];
    const hit = svg("g", { class: "rbl-row", role: "img", tabindex: i === this.focused ? 0 : -1 }, box, titled(name, member.name), ...texts);
    for (const [on, off] of [["mouseenter", "mouseleave"], ["focus", "blur"]]) {
      hit.addEventListener(on, () => this.shared.hover(member.name));
      hit.addEventListener(off, () => this.shared.hover(null));
    }
    hit.addEventListener("focus", () => { this.focused = i; });
    const [calls, told, waits] = ["rbl-calls", "rbl-told", "rbl-waits"].map((kind) => svg("path", { class: kind }));
    return { hit, box, figures, load, calls, told, waits, key: "" }; // the key is another one when the texts change
  }

  // Draw the lanes that are in the box.
  draw() {
    const { trace, canvas, lens } = this;
    const { ratio } = lens;
    const shown = Math.min(trace.members.length, Math.ceil(BOX / this.lane) + 1);
    const first = Math.max(0, Math.min(trace.members.length - shown, Math.floor(this.scrolled / this.lane)));
    const last = first + shown;
    resized(canvas, lens.plot, Math.max(1, shown * this.lane), ratio);
    canvas.style.marginLeft = `${lens.left}px`;
    canvas.style.transform = `translateY(${first * this.lane}px)`;
    for (const overlay of [this.events, this.overlay]) adjust(overlay, { width: lens.width, height: Math.max(1, this.lane * trace.members.length) });
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(ratio, 0, 0, ratio, 0, -first * this.lane * ratio);
    context.clearRect(0, first * this.lane, lens.plot, shown * this.lane);
    for (let i = first; i < last; i++) this.drawRow(context, i);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} i
   */
  drawRow(context, i) {
    const { trace, lens } = this;
    const [member, row] = [trace.members[i], this.rows[i]];
    const below = this.isMap ? this.lane : STATES;
    adjust(row.waits, { d: this.waitsOf(i).filter(([began, formed]) => began <= lens.to && formed >= lens.from).map(([began, formed]) => {
      const [left, right] = [lens.clipped(began), lens.clipped(formed)];
      const end = lens.shows(formed) ? `M${right.toFixed(1)} ${i * this.lane + 1}v${below}h-1v-${below}z` : "";
      return `M${left.toFixed(1)} ${i * this.lane + below - 2}H${Math.max(left + 1, right).toFixed(1)}v2H${left.toFixed(1)}z${end}`;
    }).join("") });
    adjust(row.box, { width: lens.width - 2 });
    if (this.isMap) {
      this.drawOwned(context, i);
      return;
    }
    member.states.forEach(([at, state], n) => {
      const until = member.states[n + 1]?.[0] ?? trace.duration;
      const pattern = patternOf(state);
      if (!pattern || until < lens.from || at > lens.to) return;
      context.fillStyle = this.fill(context, pattern, i);
      context.fillRect((at - lens.from) * lens.scale, i * this.lane + 2, Math.max(1, (until - at) * lens.scale), STATES - 5);
    });
    this.drawLoad(context, i);
    const ticks = member.calls.filter(([at]) => lens.shows(at)).map(([at, kind]) =>
      `M${(lens.x(at) - 1.5).toFixed(1)} ${kind === "assigned" ? i * this.lane : i * this.lane + STATES - 4}h3v3h-3z`);
    adjust(row.calls, { d: ticks.join("") });
    const dots = member.told.filter(([at]) => lens.shows(at)).map(([at]) =>
      `M${(lens.x(at) - 2).toFixed(1)} ${i * this.lane + 7.5}a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z`);
    adjust(row.told, { d: dots.join("") });
    for (const text of [row.figures, row.load]) adjust(text, { x: lens.beside });
  }

  /**
   * What a member of a large group owns, as a shade; paler where the member is not at rest, hatched where it has ended.
   * @param {CanvasRenderingContext2D} context
   * @param {number} i
   */
  drawOwned(context, i) {
    const { trace, lens } = this;
    const { owned, states } = trace.members[i];
    /** @type {(from: number, to: number, fill: string | CanvasPattern) => void} */
    const paint = (from, to, fill) => {
      if (to < lens.from || from > lens.to) return;
      context.fillStyle = fill;
      context.fillRect((from - lens.from) * lens.scale, i * this.lane, Math.max(1, (to - from) * lens.scale), this.lane - Number(this.lane > LOWEST));
    };
    const [begun] = states[0] ?? [trace.duration];
    paint(begun, owned[0]?.[0] ?? trace.duration, shade(0));
    each(owned, trace.duration, (from, to, count) => paint(from, to, shade(count / this.most)));
    each(states, trace.duration, (from, to, state) => {
      const pattern = patternOf(state);
      if (pattern === "ended" || pattern === null) paint(from, to, state === "crashed" ? this.fill(context, "ended", i) : "#ffffff");
      else if (pattern !== "rest") paint(from, to, "rgb(255 255 255 / 50%)");
    });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Pattern} pattern
   * @param {number} i
   */
  fill(context, pattern, i) {
    const { fills, lens } = this;
    const hue = this.trace.coloursAreMembers ? this.trace.members[i].colour : GREY;
    const key = `${pattern} ${hue} ${lens.ratio}`;
    const known = fills.get(key);
    if (known) return known;
    const made = fillOf(context, pattern, hue, lens.ratio);
    fills.set(key, made);
    return made;
  }

  /**
   * The load over time: an area, and a line at what the member can handle. What is above the line is hatched.
   * @param {CanvasRenderingContext2D} context
   * @param {number} i
   */
  drawLoad(context, i) {
    const { trace, lens } = this;
    const { load, process_rate: limits } = trace.members[i];
    const base = (i + 1) * this.lane - 2;
    /** @type {(rate: number) => number} */
    const high = (rate) => ((LOAD - 3) * rate) / this.mostLoad;
    /** @type {(at: number) => number} */
    const column = (at) => (at - lens.from) * lens.scale;
    /** @type {(from: number, to: number, low: number, top: number) => void} */
    const bar = (from, to, low, top) => context.fillRect(column(from), base - high(top), Math.max(1, column(to) - column(from)), high(top - low));
    each(load, trace.duration, (at, until, rate) => {
      if (!rate || until < lens.from || at > lens.to) return;
      const limit = valueAt(limits, at) ?? Infinity;
      context.fillStyle = this.fill(context, "rest", i);
      bar(at, until, 0, Math.min(rate, limit));
      if (rate <= limit) return;
      context.fillStyle = this.fill(context, "over", i);
      bar(at, until, limit, rate);
    });
    context.fillStyle = "#777";
    each(limits, trace.duration, (at, until, limit) => {
      if (limit && load.length) context.fillRect(column(at), base - high(limit) - 0.5, column(until) - column(at), 1);
    });
  }

  /**
   * The times in which rounds waited for a member, with their texts.
   * @param {number} i
   * @returns {[began: number, formed: number, waited: string][]}
   */
  waitsOf(i) {
    return this.trace.rounds.filter((round) => round.waited_for.includes(i)).map(({ began, formed, waited }) => [began, formed ?? began, waited]);
  }

  /**
   * What the tooltip says of a place: the member, its state, its load, and what happened to it near that time.
   * @param {number} x
   * @param {number} y
   */
  tell(x, y) {
    const { trace, lens } = this;
    const number = Math.floor(y / this.lane);
    const member = trace.members[number];
    if (!member) return [];
    if (!lens.covers(x)) return [member.name];
    const at = lens.at(x);
    /** @type {(time: number) => boolean} */
    const near = (time) => Math.abs(time - at) * lens.scale <= NEAR;
    return [
      member.name,
      ...(this.isMap ? [`owns ${counted(valueAt(member.owned, at) ?? 0, "partition")}`] : []),
      ...trace.stateLine(member.states, at),
      ...this.waitsOf(number).filter(([began, formed]) => began <= at && at < formed).map(([, , waited]) => `the round ${waited}`),
      ...this.loadLine(member, at),
      ...member.calls.filter(([time]) => near(time)).map(([time, kind, count]) => `${clockText(time)} ${kind} ${counted(count, "partition")}`),
      ...member.told.filter(([time]) => near(time)).map(([time, said]) => `${clockText(time)} ${trace.sentences[said]}`),
    ];
  }

  /**
   * The load of a member, what it can handle, and its lag.
   * @param {Member} member
   * @param {number} at
   */
  loadLine(member, at) {
    const load = valueAt(member.load, at);
    const rate = valueAt(member.process_rate, at);
    const lag = valueAt(member.lag, at);
    const parts = [
      load ? loadText(load, rate) : "",
      lag == null || !valueAt(member.owned, at) ? "" : `lag ${COUNT.format(lag)}`,
    ].filter(Boolean);
    return parts.length ? [parts.join(", ")] : [];
  }

  /**
   * The up and down keys move between members. Only one member can be reached with the tab key.
   * @param {KeyboardEvent} event
   */
  walk(event) {
    const direction = DIRECTIONS[event.key];
    const next = this.rows[this.focused + direction];
    if (!direction) return;
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    this.rows[this.focused].hit.setAttribute("tabindex", -1);
    next.hit.setAttribute("tabindex", 0);
    next.hit.focus();
  }

  stateLegend() {
    const seen = new Set(this.trace.members.flatMap((member) => member.states.map(([, state]) => state)));
    return orderOfStates(seen).flatMap((state) => {
      const pattern = patternOf(state);
      return pattern ? [html("span", {}, swatch(pattern), state)] : [];
    });
  }

  /** @param {number} at */
  move(at) {
    const { trace } = this;
    this.lens.place(this.cursor, at);
    if (at === this.at) return; // the window has moved, not the cursor
    this.at = at;
    trace.members.forEach((member, i) => {
      const row = this.rows[i];
      const text = this.textOf(member, at);
      const [load, rate] = [valueAt(member.load, at), valueAt(member.process_rate, at)];
      const key = `${text} ${load} ${rate}`;
      if (row.key === key) return;
      row.key = key;
      row.figures.textContent = text;
      row.load.textContent = load ? loadText(load, rate) : "";
      row.load.classList.toggle("rbl-over", Boolean(load && rate && load > rate));
      row.hit.setAttribute("aria-label", [`${member.name}: ${text}`, row.load.textContent].filter(Boolean).join(", "));
    });
    const unowned = valueAt(trace.unowned_lag ?? [], at);
    this.unowned.textContent = unowned && unowned >= 0.5 ? `partitions without an owner: lag ${COUNT.format(unowned)}` : "";
  }

  /**
   * @param {Member} member
   * @param {number} at
   */
  textOf(member, at) {
    const state = valueAt(member.states, at) ?? "not started";
    const generation = valueAt(member.generations, at);
    if (state === "outside") return "not in the group";
    if (!generation || state === "stopped" || state === "crashed") return state;
    const lag = valueAt(member.lag, at);
    const owned = valueAt(member.owned, at) ?? 0;
    const late = lag == null || !owned ? "" : ` · lag ${COUNT.format(lag)}`;
    return `${state} g${generation} · ${owned}${late}`;
  }

  /** @param {number} number */
  highlight(number) {
    this.rows.forEach(({ hit }, i) => hit.classList.toggle("rbl-hot", i === number));
  }
}

/**
 * Visit the stretches of time in which a series has a value.
 * @template Value
 * @param {Series<Value>} series
 * @param {number} end
 * @param {(from: number, to: number, value: Value) => void} visit
 */
function each(series, end, visit) {
  series.forEach(([at, value], n) => visit(at, series[n + 1]?.[0] ?? end, value));
}

/**
 * A grey that is the darker the more it stands for.
 * @param {number} part from 0 to 1
 */
function shade(part) {
  const grey = Math.round(232 - 150 * part);
  return `rgb(${grey} ${grey} ${grey})`;
}

/**
 * @param {number} load
 * @param {number | null | undefined} rate
 */
function loadText(load, rate) {
  const over = rate && load > rate ? `, ${COUNT.format((100 * load) / rate)} %` : "";
  return `load ${amount(load)}${rate ? ` of ${amount(rate)}` : ""}/s${over}`;
}
