// The owner of each partition over time: a lane for each partition.

import { BY_CHANGE, pixel } from "./colours.js";
import { adjust, entry, html, refill, resized, svg, titled, worded } from "./elements.js";
import { brushFor } from "./painting.js";
import { amount, clockText, short } from "./text.js";
import { NOBODY, valueAt } from "./trace.js";

const TALLEST = 600; // pixels of the lanes of one view
const TOGETHER = 336; // of those of several views
const LOWEST = 96; // of each of them
const FRESH = 16; // for which a change of the owner is new
const LEAST_GAP = 2; // pixels
const MOST_LETTERS = 1000;
const HOT_LINE = 12; // pixels between two names of hot partitions
const NEAR = 5; // pixels between the pointer and a change from outside that it points at
const ENDED = ["crashed", "stopped"]; // states of a member
const [NEW, KEPT] = [BY_CHANGE.fresh, BY_CHANGE.kept].map(pixel);

/** @import { Series } from "./model" */

/** @typedef {ReturnType<typeof brushFor>} Brush */
/** @typedef {"lag" | "rate"} Amount What colours can show instead of the owner. */

export class Lanes {
  /** @param {import("./view.js").Context} context */
  constructor({ trace, clock, lens, shared }) {
    this.trace = trace;
    this.clock = clock;
    this.lens = lens;
    this.shared = shared;
    /** @type {"topic" | "member"} */
    this.by = "topic";
    /** @type {"owner" | Amount} */
    this.colouring = "owner";
    this.selected = NOBODY;
    this.order = new Int32Array(trace.partitions); // the partition of each row
    this.row = new Int32Array(trace.partitions); // of each partition
    /** @type {Map<number, Int8Array>} */
    this.classes = new Map(); // by partition or owner
    this.hues = trace.members.map(({ colour }) => pixel(colour));
    this.least = 0; // the width of a border in pixels of the device
    this.hotKey = "";
    /** @type {ImageData | null} */
    this.image = null;
    this.canvas = html("canvas", { class: "rbl-lanes" });
    this.overlay = svg("svg", { class: "rbl-overlay rbl-plot", role: "img", "aria-label": "Owners of the partitions over time" });
    this.past = html("div", { class: "rbl-past", role: "status", hidden: "" });
    this.stack = html("div", { class: "rbl-stack" }, this.canvas, this.overlay);
    this.elements = [this.stack, this.past];
    this.overlay.addEventListener("mousemove", (event) => this.point(event));
    this.overlay.addEventListener("mouseleave", () => shared.hover(null));
    this.overlay.addEventListener("click", (event) => {
      const partition = this.partitionUnder(event);
      this.select(partition === this.selected ? NOBODY : partition); // a second click undoes the first
    });
    this.names = svg("g");
    this.during = svg("g", { class: "rbl-during" });
    this.marks = svg("g");
    this.letters = svg("g");
    this.hot = svg("g", { class: "rbl-hottest" });
    this.highlights = svg("g", { class: "rbl-highlights" });
    this.outline = svg("rect", { class: "rbl-selected", visibility: "hidden" });
    this.cursor = svg("line", { y1: 0, y2: this.height, class: "rbl-cursor" });
    this.overlay.append(this.names, this.during, this.hot, this.marks, this.letters, this.highlights, this.outline, this.cursor);
    shared.pointer.watch(this.overlay, (x, y) => this.tell(x, y));
    if (!trace.partitions) this.stack.replaceChildren(html("p", {}, "No partitions."));
    this.sort();
  }

  // The time of the cursor, but at most the last millisecond of the trace.
  get now() {
    return Math.min(this.clock.at, this.trace.duration - 1);
  }

  get laneHeight() {
    const count = Math.max(1, this.trace.partitions);
    const { views } = this.shared;
    const tallest = views > 1 ? Math.max(LOWEST, Math.floor(TOGETHER / views)) : TALLEST;
    return count > tallest ? tallest / count : Math.max(1, Math.min(18, Math.floor(tallest / count)));
  }

  get height() {
    return Math.max(1, Math.round(this.laneHeight * this.trace.partitions));
  }

  draw() {
    this.drawLanes();
    this.drawLabels();
  }

  sort() {
    const { trace } = this;
    this.order = Int32Array.from({ length: trace.partitions }, (_, i) => i);
    if (this.by === "member") {
      const owners = this.order.map((p) => trace.ownerAt(p, this.now));
      this.order.sort((a, b) => owners[a] - owners[b] || a - b);
    }
    this.row = new Int32Array(trace.partitions);
    this.order.forEach((partition, row) => {
      this.row[partition] = row;
    });
    this.drawNames();
  }

  drawLanes() {
    const { canvas, lens, height } = this;
    const { ratio } = lens;
    if (resized(canvas, lens.plot, height, ratio) || !this.image) this.image = new ImageData(canvas.width, canvas.height);
    canvas.style.marginLeft = `${lens.left}px`;
    const { image } = this;
    const brush = brushFor(image, this.laneHeight * ratio, ratio);
    this.least = Math.round(LEAST_GAP * ratio);
    this.classes.clear();
    for (let row = 0; row < this.trace.partitions; row++) this.paint(brush, row, image.width);
    brush.finish();
    /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
    adjust(this.overlay, { width: lens.width, height });
  }

  /**
   * Paint the stretches of a lane, from left to right. A new owner has a border. A gap is not narrower than that, also
   * where its time is less than a pixel.
   * @param {Brush} brush
   * @param {number} row
   * @param {number} width
   */
  paint(brush, row, width) {
    const { trace, lens, least } = this;
    const fresh = FRESH * lens.ratio;
    const { from: since, to: until } = lens;
    let last = NOBODY;
    let free = 0; // after the last gap
    trace.stretches(this.order[row], (begin, end, owners) => {
      const before = last;
      last = owners.length ? owners[owners.length - 1] : last;
      if (end < since) return;
      const start = lens.column(begin, width);
      if (!owners.length) {
        const from = Math.max(0, Math.min(width - least, start));
        free = Math.min(width, Math.max(from + least, lens.column(end, width)));
        brush.hatch(row, from, free);
        return;
      }
      const from = Math.max(free, Math.min(width - 1, start));
      const to = Math.min(width, Math.max(from + 1, lens.column(end, width)));
      const isNew = last !== before && before !== NOBODY;
      const settled = isNew ? Math.max(from, Math.min(to, start + fresh)) : from;
      if (this.colouring === "owner") this.paintOwners(brush, row, from, settled, to, owners);
      else this.paintAmounts(brush, row, from, to, owners, this.colouring);
      if (isNew && start >= 0) brush.border(row, from, Math.min(to, from + least));
    }, since, until);
  }

  /**
   * Owners that are too many for hues are not shown, but where they change: a change is dark for some pixels.
   * @param {Brush} brush
   * @param {number} row
   * @param {number} from
   * @param {number} settled
   * @param {number} to
   * @param {number[]} owners
   */
  paintOwners(brush, row, from, settled, to, owners) {
    const { trace, lens, hues } = this;
    if (owners.length > 1) brush.share(row, from, to, trace.coloursAreMembers ? owners.map((owner) => hues[owner]) : [NEW, KEPT]);
    else if (trace.coloursAreMembers) brush.fill(row, from, to, hues[owners[0]]);
    else {
      brush.fill(row, from, settled, NEW);
      brush.fill(row, settled, to, KEPT);
    }
    const column = (/** @type {number} */ at) => lens.column(at, this.canvas.width);
    owners.forEach((owner, n) => {
      for (const [halted, resumed] of trace.paused[owner])
        brush.stripe(row, Math.max(from, column(halted)), Math.min(to, column(resumed)), n, owners.length);
    });
  }

  /**
   * Of several owners, the lag of the last one is shown.
   * @param {Brush} brush
   * @param {number} row
   * @param {number} from
   * @param {number} to
   * @param {number[]} owners
   * @param {Amount} what
   */
  paintAmounts(brush, row, from, to, owners, what) {
    const scale = this.shared.scales[what];
    const classes = this.classesOf(this.order[row], owners[owners.length - 1], what);
    for (let x = from; x < to;) {
      let end = x + 1;
      while (end < to && classes[end] === classes[x]) end++;
      brush.fill(row, x, end, pixel(scale.colour(classes[x])));
      x = end;
    }
  }

  /**
   * The class of the rate of a partition, or of the lag of its owner, in each column of pixels: the largest one.
   * @param {number} partition
   * @param {number} owner
   * @param {Amount} what
   */
  classesOf(partition, owner, what) {
    const { trace, lens, classes } = this;
    const isRate = what === "rate";
    const key = isRate ? partition : owner;
    const known = classes.get(key);
    if (known) return known;
    const { width } = this.canvas;
    const scale = this.shared.scales[what];
    /** @type {Series<number | null>} */
    const series = isRate ? trace.ratesOf(partition) : trace.members[owner].lag;
    const made = new Int8Array(width).fill(-1);
    series.forEach(([at, value], n) => {
      const until = series[n + 1]?.[0] ?? trace.duration;
      if (until < lens.from || at > lens.to) return;
      const number = scale.classOf(value);
      const end = Math.min(width, Math.max(1, lens.column(until, width)));
      for (let x = Math.max(0, lens.column(at, width)); x < end; x++) made[x] = number;
    });
    classes.set(key, made);
    return made;
  }

  drawNames() {
    const { trace, lens } = this;
    const lane = this.laneHeight;
    /** @type {SVGTextElement[]} */
    const names = [];
    const every = Math.max(1, Math.ceil(12 / lane));
    for (let row = 0; row < trace.partitions && row * lane + 9 <= this.height; row += every) {
      const name = trace.name(this.order[row]);
      const place = { x: lens.left - 6, y: row * lane + Math.min(Math.max(lane, 10), 12) - 1, "text-anchor": "end" };
      names.push(titled(worded(short(name), place), name));
    }
    this.names.replaceChildren(...names);
  }

  // Name the partitions that are hot at the cursor, beside their lanes as far as there is room.
  nameHot() {
    const { trace, lens } = this;
    const hot = trace.hotAt(this.now);
    const key = `${hot.key} ${this.by} ${lens.beside}`;
    if (this.by === "topic" && this.hotKey === key) return;
    this.hotKey = key;
    /** @type {SVGTextElement[]} */
    const texts = [];
    /** @type {Set<number>} */
    const taken = new Set();
    for (const [partition, rate] of hot.found) {
      const y = this.row[partition] * this.laneHeight + Math.min(Math.max(this.laneHeight, 10), 12) - 1;
      const line = Math.round(y / HOT_LINE);
      if ([line - 1, line, line + 1].some((near) => taken.has(near)) && this.laneHeight < HOT_LINE) continue;
      taken.add(line);
      texts.push(worded(`hot: ${amount(rate)} records/s`, { x: lens.beside, y }));
    }
    this.hot.replaceChildren(...texts);
  }

  // The changes from outside, and the letters of the owners where there is room.
  drawLabels() {
    const { lens } = this;
    refill(this.marks, "line", this.trace.marks.filter(([at]) => lens.shows(at)).map(([at, label]) => ({
      attributes: { x1: lens.x(at), x2: lens.x(at), y1: 0, y2: this.height, class: "rbl-mark" },
      title: `${clockText(at)} ${label}`,
    })));
    refill(this.during, "rect", this.trace.times.filter(([began, ended]) => began <= lens.to && ended >= lens.from).map(([began, ended]) => ({
      attributes: { x: lens.clipped(began), y: -4, width: Math.max(2, lens.clipped(ended) - lens.clipped(began)), height: 3 },
      title: `a round: ${clockText(began)} to ${clockText(ended)}`,
    })));
    const places = this.laneHeight < 12 ? [] : this.places();
    refill(this.letters, "text", places.length > MOST_LETTERS ? [] : places.map((place) => this.letter(place)));
    this.outlineSelected();
  }

  // Where a stretch is wide enough for the letters of its owners; for one without, those of its next owners.
  places() {
    const { trace, lens } = this;
    /** @type {{ partition: number, x: number, owners: number[], isNext: boolean, ended: string }[]} */
    const found = [];
    for (let p = 0; p < trace.partitions; p++)
      trace.stretches(p, (from, to, owners) => {
        const [left, right] = [lens.clipped(from), lens.clipped(to)];
        const isNext = !owners.length;
        const named = isNext ? trace.ownersAt(p, to) : owners;
        const last = isNext ? trace.ownerAt(p, from - 1) : NOBODY;
        const hasEnded = last !== NOBODY && ENDED.includes(valueAt(trace.members[last].states, from) ?? "");
        const ended = hasEnded && right - left >= 14 * (named.length + 3) ? `✕ ${trace.members[last].letter} ` : "";
        if ((named.length || ended) && right - left >= 14 * (named.length + Number(isNext)))
          found.push({ partition: p, x: (left + right) / 2, owners: [...named], isNext, ended });
      }, lens.from, lens.to);
    return found;
  }

  /** @param {ReturnType<Lanes["places"]>[0]} place */
  letter({ partition, x, owners, isNext, ended }) {
    const { coloursAreMembers, members } = this.trace;
    const named = owners.map((owner) => members[owner].letter).join(" ");
    const ground = coloursAreMembers && this.colouring === "owner" && owners.length === 1 && !isNext ? members[owners[0]] : { ink: "#000", colour: "#fff" };
    return {
      attributes: {
        x, y: this.row[partition] * this.laneHeight + Math.min(this.laneHeight - 2, 12), "text-anchor": "middle",
        style: `fill: ${ground.ink}; stroke: ${ground.colour}`,
        class: isNext ? "rbl-next" : owners.length > 1 ? "rbl-several" : "rbl-owner",
      },
      words: isNext ? `${ended}${named ? `→ ${named}` : ""}` : named,
    };
  }

  // The entries of the legend, which all views share.
  entries() {
    const owners = this.trace.coloursAreMembers
      ? this.trace.members.map(({ colour, letter, name }) => [colour, `${letter} ${short(name)}`])
      : [[BY_CHANGE.fresh, "another owner from here on"], [BY_CHANGE.kept, "an owner"]];
    const named = this.colouring === "owner" ? owners.map(([colour, label]) => entry(colour, label)) : this.shared.scales[this.colouring].legend();
    const entries = [...named, entry(null, "nobody")];
    if (this.colouring !== "owner") return entries;
    if (this.trace.coloursAreMembers && this.trace.members.some(({ states }) => states.some(([, state]) => ENDED.includes(state))))
      entries.push(html("span", {}, "✕ its owner had ended"));
    if (this.trace.paused.some((times) => times.length)) entries.push(entry(null, "owner paused", "rbl-striped"));
    if (this.trace.overlaps) entries.push(entry(null, "several owners", "rbl-divided"));
    return entries;
  }

  /** @param {MouseEvent} event */
  partitionUnder(event) {
    const y = event.clientY - this.overlay.getBoundingClientRect().top;
    const row = Math.floor(y / this.laneHeight);
    return row >= 0 && row < this.trace.partitions ? this.order[row] : NOBODY;
  }

  /**
   * Of several owners, the one whose part of the lane is under the pointer.
   * @param {MouseEvent} event
   */
  point(event) {
    const partition = this.partitionUnder(event);
    const box = this.overlay.getBoundingClientRect();
    const owners = partition === NOBODY ? [] : this.trace.ownersAt(partition, this.lens.at(event.clientX - box.left));
    const y = event.clientY - box.top - this.row[partition] * this.laneHeight;
    const owner = owners[Math.min(owners.length - 1, Math.floor((y * owners.length) / this.laneHeight))];
    this.shared.hover(this.trace.members[owner]?.name ?? null);
  }

  /**
   * What the tooltip says of a place: the partition, its owners, its rate, and changes from outside.
   * @param {number} x
   * @param {number} y
   */
  tell(x, y) {
    const { trace, lens } = this;
    const row = Math.floor(y / this.laneHeight);
    if (row < 0 || row >= trace.partitions) return [];
    const partition = this.order[row];
    const inside = lens.covers(x);
    const at = inside ? lens.at(x) : this.now;
    const rate = trace.rateAt(partition, at);
    return [
      trace.name(partition),
      ...(inside ? this.owners(partition, at) : []),
      ...(rate === undefined ? [] : [`${amount(rate)} records/s`]),
      ...(inside ? trace.marksNear(at, NEAR / lens.scale) : []),
    ];
  }

  /**
   * @param {number} partition
   * @param {number} at
   */
  owners(partition, at) {
    const { trace } = this;
    const spans = trace.spansAt(partition, at);
    if (!spans.length) return at < trace.duration ? [this.nextOwner(partition, at)] : [];
    return spans.map(([owner, from, to]) => {
      const { letter, name, lag } = trace.members[owner];
      const late = valueAt(lag, at);
      const until = to < trace.duration ? ` to ${clockText(to)}` : "";
      return `${letter} ${name} since ${clockText(from)}${until}${late == null ? "" : `, lag of all its partitions ${amount(late)}`}`;
    });
  }

  /**
   * What is said of a partition that nobody owns at a time.
   * @param {number} partition
   * @param {number} at
   */
  nextOwner(partition, at) {
    const { trace } = this;
    const from = trace.nextTime(partition, at);
    const [next] = from === null ? [] : trace.ownersAt(partition, from);
    return from === null ? "nobody owns it, until the end" : `nobody owns it until ${clockText(from)}, then ${trace.members[next].name}`;
  }

  /**
   * @param {number} partition
   * @param {number} at
   */
  ownerName(partition, at) {
    return this.trace.members[this.trace.ownerAt(partition, at)]?.name ?? null;
  }

  /**
   * Select a partition in all views, or none.
   * @param {number} partition
   */
  select(partition) {
    this.shared.selected(partition === NOBODY ? "" : this.trace.name(partition));
    if (partition !== NOBODY) this.shared.hover(this.ownerName(partition, this.now));
  }

  /**
   * Show the partition of a name as selected, if the trace has it.
   * @param {string} name
   */
  show(name) {
    const partition = this.trace.numberOf(name);
    this.selected = partition;
    this.outlineSelected();
    this.past.hidden = partition === NOBODY;
    if (partition === NOBODY) return;
    const lines = this.trace.history(partition);
    const listed = lines.map((line) => html("li", {}, line));
    const heading = lines.length ? `${name}, owner by owner` : `${name}: nobody ever owned it`;
    this.past.replaceChildren(html("strong", {}, heading), html("ol", {}, ...listed));
  }

  /**
   * The partition whose lane is above (-1) or below (1) the selected one.
   * @param {number} direction
   */
  neighbour(direction) {
    const { partitions } = this.trace;
    if (!partitions) return NOBODY;
    const row = this.selected === NOBODY ? (direction > 0 ? -1 : partitions) : this.row[this.selected];
    return this.order[Math.max(0, Math.min(partitions - 1, row + direction))];
  }

  outlineSelected() {
    adjust(this.outline, { visibility: this.selected === NOBODY ? "hidden" : "visible" });
    if (this.selected === NOBODY) return;
    adjust(this.outline, {
      x: this.lens.left - 1, y: this.row[this.selected] * this.laneHeight - 1,
      width: this.lens.plot + 2, height: Math.max(3, this.laneHeight + 1),
    });
  }

  /**
   * @param {number} at
   * @param {boolean} resting
   */
  move(at, resting) {
    if (resting && this.by === "member") this.regroup();
    this.nameHot();
    this.lens.place(this.cursor, at);
  }

  regroup() {
    this.sort();
    this.draw();
  }

  /** @param {Lanes["colouring"]} what */
  colourBy(what) {
    this.colouring = what;
    this.draw();
  }

  /** @param {Lanes["by"]} what */
  groupBy(what) {
    this.by = what;
    this.regroup();
  }

  /**
   * Mark the lanes of a member.
   * @param {number} number
   */
  highlight(number) {
    this.highlights.replaceChildren(...this.rowsOf(number).map((y) => svg("rect", {
      x: this.lens.left - 4, y, width: 4, height: Math.max(1, this.laneHeight - 1), class: "rbl-hot",
    })));
  }

  /**
   * The positions of the lanes that a member owns now. Lanes on the same line of pixels are listed once.
   * @param {number} number
   */
  rowsOf(number) {
    const { trace } = this;
    /** @type {Set<number>} */
    const rows = new Set();
    for (let p = 0; number >= 0 && p < trace.partitions; p++)
      if (trace.ownersAt(p, this.now).includes(number))
        rows.add(this.laneHeight < 1 ? Math.floor(this.row[p] * this.laneHeight) : this.row[p] * this.laneHeight);
    return [...rows];
  }
}
