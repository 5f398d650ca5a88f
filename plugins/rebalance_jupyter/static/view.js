// Traces of rebalances on one time axis: ownership, members, coordinator, and the round under the cursor.
// anywidget serves this as one file without imports. All data are in the model.

const NS = "http://www.w3.org/2000/svg";
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];
const MOST_COLOURED = 24; // at most three members share a colour; letters distinguish them
const DARK = new Set(["#0072B2"]); // has white text; all other colours have black text
const BY_CHANGE = { kept: "#56B4E9", fresh: "#E69F00", shared: "#D55E00" };
const MEMBER_COLOURS = {
  outside: null,
  connecting: "#56B4E9",
  starting: "#56B4E9",
  joining: "#E69F00",
  rebalancing: "#E69F00",
  looking: "#E69F00",
  waiting: "#F0E442",
  "backing-off": "#F0E442",
  stable: "#009E73",
  resting: "#009E73",
  "without-share": "#CC79A7",
  paused: "#999999",
  crashed: "#D55E00",
  stopped: null,
};
const OTHER_STATE = "#0072B2"; // of a protocol that is not among them
// The states of a group by what they are to the protocol: see the kinds in the model.
const GROUP_COLOURS = { vacant: null, begun: "#E69F00", between: "#F0E442", resting: "#009E73", ended: "#D55E00" };
const LEFT = 124;
const RIGHT = 190;
const TALLEST = 600;
const MOST_LETTERS = 3000;
const MOST_LINES = 100; // events of a round that are listed
const LEAST_SPLIT = 6; // lanes of this height are divided between several owners, lower ones are striped
const STRIPE = 3;
const NEAR = 6; // pixels between the pointer and the event that it points at
const LONGEST_NAME = 15;
const MOST_NAMES = 12;
const MOST_INITIALS = 40;
const PLAY_MS = 20000;
const NOBODY = -1;
const GREY = "#bbbbbb";
const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// --- small helpers

function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function clockText(ms) {
  const hours = Math.floor(ms / 3600000);
  const minutes = Math.floor(ms / 60000) % 60;
  const seconds = ((ms % 60000) / 1000).toFixed(3).padStart(6, "0");
  return `${hours}:${String(minutes).padStart(2, "0")}:${seconds}`;
}

// Ids must be unique in the document, which may load this module once for each widget.
function freshId() {
  return `rbl-${Math.random().toString(36).slice(2)}`;
}

// Keep the end of a name, where names differ.
function short(name) {
  return name.length > LONGEST_NAME ? `…${name.slice(1 - LONGEST_NAME)}` : name;
}

// An entry of a legend. Without a colour it is hatched.
function entry(colour, label) {
  return html("span", {}, html("i", colour ? { style: `background: ${colour}` } : { class: "rbl-hatched" }), label);
}

function worded(words, attributes) {
  const text = svg("text", attributes);
  text.textContent = words;
  return text;
}

function titled(element, text) {
  const title = svg("title");
  title.textContent = text;
  element.append(title);
  return element;
}

// Join names: "a", "a and b", "a, b and 2 more".
function listed(names, most = 3) {
  if (names.length > most) return `${names.slice(0, most - 1).join(", ")} and ${names.length - most + 1} more`;
  return [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");
}

function memberColour(state) {
  return state in MEMBER_COLOURS ? MEMBER_COLOURS[state] : OTHER_STATE;
}

// The last of [[at, value], ...] at or before a time.
function valueAt(series, at) {
  let low = 0;
  let high = series.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (series[middle][0] <= at) low = middle + 1;
    else high = middle;
  }
  return low ? series[low - 1][1] : undefined;
}

function colourOf(member) {
  return PALETTE[member % PALETTE.length];
}

function channels(colour) {
  const n = parseInt(colour.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

function pixel(colour) {
  const [red, green, blue] = channels(colour);
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}

function letter(number) {
  return number < 26 ? String.fromCharCode(65 + number) : String(number);
}

// --- the data of one trace

class Trace {
  constructor({ document: facts, spans }) {
    Object.assign(this, facts);
    const bytes = spans instanceof DataView ? spans : new DataView(spans.buffer ?? spans);
    const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    this.spans = new Int32Array(copy); // partition, owner, from, to
    this.count = this.spans.length / 4;
    this.partitions = this.topics.reduce((sum, topic) => sum + topic.partitions, 0);
    this.first = new Int32Array(this.partitions + 1); // spans of partition p: first[p] .. first[p + 1] - 1
    for (let i = 0; i < this.count; i++) this.first[this.spans[4 * i] + 1] = i + 1;
    for (let p = 1; p <= this.partitions; p++) this.first[p] = Math.max(this.first[p], this.first[p - 1]);
    this.stops = this.rounds.map((round) => round.stable ?? round.began);
    this.owned = this.duration; // the time at which a member first owns a partition
    for (let i = 0; i < this.count; i++) this.owned = Math.min(this.owned, this.spans[4 * i + 2]);
    if (!this.count) this.owned = 0;
    this.overlaps = false; // whether a partition has several owners at one time
    for (let i = 1, until = 0; i < this.count; i++) {
      const [before, , , end, partition, , from] = this.spans.subarray(4 * i - 4, 4 * i + 4);
      until = partition === before ? Math.max(until, end) : 0;
      this.overlaps ||= from < until;
    }
    this.paused = this.members.map(({ states }) => states.flatMap(([at, state], n) =>
      state === "paused" ? [[at, states[n + 1]?.[0] ?? this.duration]] : []));
    this.since = this.topics.flatMap(({ name, partitions }) => Array.from({ length: partitions }, (_, number) =>
      this.added[name]?.findLast(([, first]) => number >= first)?.[0] ?? 0));
  }

  // If several members own the partition, the one that took it over last.
  ownerAt(partition, at) {
    for (let i = this.first[partition + 1] - 1; i >= this.first[partition]; i--)
      if (this.spans[4 * i + 2] <= at && at < this.spans[4 * i + 3]) return this.spans[4 * i + 1];
    return NOBODY;
  }

  // In the order in which they took the partition over.
  ownersAt(partition, at) {
    const owners = [];
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (this.spans[4 * i + 2] <= at && at < this.spans[4 * i + 3]) owners.push(this.spans[4 * i + 1]);
    return owners;
  }

  // Visit the stretches of time in which a partition has the same owners: from, to, owners. A stretch without
  // owners begins when the partition exists and the group has begun to work.
  stretches(partition, visit) {
    const { spans } = this;
    const end = this.first[partition + 1];
    let next = this.first[partition];
    let held = []; // spans
    let at = Math.min(next < end ? spans[4 * next + 2] : this.duration, Math.max(this.owned, this.since[partition]));
    while (at < this.duration) {
      if (held.length) held = held.filter((i) => spans[4 * i + 3] > at);
      const isAlone = next < end && spans[4 * next + 2] <= at && (next + 1 === end || spans[4 * next + 3] <= spans[4 * next + 6]);
      if (!held.length && isAlone) { // as most are
        visit(at, spans[4 * next + 3], [spans[4 * next + 1]]);
        at = spans[4 * next + 3];
        next += 1;
        continue;
      }
      while (next < end && spans[4 * next + 2] <= at) held.push(next++);
      let until = next < end ? spans[4 * next + 2] : this.duration;
      for (const i of held) until = Math.min(until, spans[4 * i + 3]);
      visit(at, until, held.map((i) => spans[4 * i + 1]));
      at = until;
    }
  }

  kind(state) {
    return this.machine.kinds[state];
  }

  // What the protocol tells of a round, in lines: equal sentences of several members share one.
  told(number) {
    const round = this.rounds[number];
    if (!round) return [];
    const end = this.rounds[number + 1]?.began ?? this.duration + 1;
    const lines = new Map();
    for (const member of this.members)
      for (const [at, said] of member.told) {
        if (at < round.began || at >= end) continue;
        const line = lines.get(said) ?? { at, said: this.sentences[said], names: new Set(), times: 0 };
        line.at = Math.min(line.at, at);
        line.names.add(member.name);
        line.times += 1;
        lines.set(said, line);
      }
    return [...lines.values()].sort((a, b) => a.at - b.at).map(({ at, said, names, times }) =>
      `${clockText(at)} ${listed([...names])}: ${said}${times > names.size ? ` (${COUNT.format(times)} times)` : ""}`);
  }

  roundAt(at) {
    return this.rounds.findLastIndex((round) => round.began <= at);
  }

  name(partition) {
    let rest = partition;
    for (const topic of this.topics) {
      if (rest < topic.partitions) return `${topic.name}-${rest}`;
      rest -= topic.partitions;
    }
    return String(partition);
  }

  // With too many members, colours show changes of owners instead.
  get coloursAreMembers() {
    return this.members.length <= MOST_COLOURED;
  }

  history(partition) {
    const lines = [];
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++) {
      const [, owner, from, to] = this.spans.subarray(4 * i, 4 * i + 4);
      lines.push(`${clockText(from)} to ${clockText(to)}: ${this.members[owner].name}${this.beside(partition, i)}`);
    }
    return lines;
  }

  // Name the members that own a partition during a span of another one.
  beside(partition, span) {
    const [, , from, to] = this.spans.subarray(4 * span, 4 * span + 4);
    const names = new Set();
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (i !== span && this.spans[4 * i + 2] < to && from < this.spans[4 * i + 3])
        names.add(this.members[this.spans[4 * i + 1]].name);
    return names.size ? `, a part of it together with ${listed([...names])}` : "";
  }
}

// --- lanes into pixels

// Paints lanes that are at least one pixel high.
class Painter {
  constructor(image, lane) {
    this.pixels = new Uint32Array(image.data.buffer);
    this.width = image.width;
    this.lane = lane;
    this.bands = lane > 3 ? lane - 1 : lane; // a line between lanes where there is room
    [this.light, this.dark, this.ink] = ["#dddddd", "#888888", "#333333"].map(pixel);
  }

  fill(row, from, to, colour) {
    const value = typeof colour === "string" ? pixel(colour) : colour;
    for (let y = row * this.lane; y < row * this.lane + this.bands; y++)
      this.pixels.fill(value, y * this.width + from, y * this.width + to);
  }

  // Several owners: from top to bottom, or in turns where the lane is low.
  share(row, from, to, colours) {
    const values = colours.map(pixel);
    const top = row * this.lane;
    for (let y = 0; y < this.bands; y++) {
      const band = this.lane < LEAST_SPLIT ? -1 : Math.floor((y * values.length) / this.bands);
      for (let x = from; x < to; x++)
        this.pixels[(top + y) * this.width + x] = values[band < 0 ? Math.floor(x / STRIPE) % values.length : band];
    }
  }

  hatch(row, from, to) {
    for (let y = row * this.lane; y < row * this.lane + this.bands; y++)
      for (let x = from; x < to; x++) this.pixels[y * this.width + x] = (x + y) % 5 ? this.light : this.dark;
  }

  stripe(row, from, to) {
    for (let y = row * this.lane; y < row * this.lane + this.bands; y++)
      for (let x = from; x < to; x++) if ((x + y) % 5 === 0) this.pixels[y * this.width + x] = this.ink;
  }

  border(row, from, to) {
    if (this.lane > 2) this.fill(row, from, to, this.ink);
  }

  finish() {}
}

// Paints several lanes per pixel by mixing their colours. Sums are stored as differences between neighbouring
// pixels, so that the cost of a span does not depend on its length.
class Mixer {
  constructor(image, lanes) {
    this.image = image;
    this.lines = image.height / lanes;
    this.sums = new Float64Array(4 * (image.width + 1) * image.height);
  }

  fill(row, from, to, colour) {
    const start = Math.floor(row * this.lines) * (this.image.width + 1);
    const [red, green, blue] = channels(colour);
    const [a, b] = [4 * (start + from), 4 * (start + to)];
    this.sums[a] += red;
    this.sums[a + 1] += green;
    this.sums[a + 2] += blue;
    this.sums[a + 3] += 1;
    this.sums[b] -= red;
    this.sums[b + 1] -= green;
    this.sums[b + 2] -= blue;
    this.sums[b + 3] -= 1;
  }

  share(row, from, to, colours) {
    for (const colour of colours) this.fill(row, from, to, colour);
  }

  hatch(row, from, to) {
    if (from < to) this.fill(row, from, to, GREY);
  }

  stripe() {}

  border() {}

  finish() {
    const { data, width, height } = this.image;
    for (let y = 0; y < height; y++) {
      let [red, green, blue, count] = [0, 0, 0, 0];
      for (let x = 0; x < width; x++) {
        const from = 4 * (y * (width + 1) + x);
        red += this.sums[from];
        green += this.sums[from + 1];
        blue += this.sums[from + 2];
        count += this.sums[from + 3];
        if (!count) continue;
        const to = 4 * (y * width + x);
        data[to] = red / count;
        data[to + 1] = green / count;
        data[to + 2] = blue / count;
        data[to + 3] = 255;
      }
    }
  }
}

// --- time, shared by all views

class Clock {
  constructor(duration, stops) {
    this.duration = duration;
    this.stops = [...new Set([0, ...stops, duration])].sort((a, b) => a - b);
    this.at = 0;
    this.playing = false;
    this.speed = 1;
    this.listeners = [];
    this.calm = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  // Pass to the listeners whether the cursor rests. It does not rest while it plays or is dragged.
  set(at, resting = !this.playing) {
    this.at = Math.max(0, Math.min(this.duration, Math.round(at)));
    for (const listener of this.listeners) listener(this.at, resting);
  }

  step(direction) {
    this.pause();
    const next = direction > 0 ? this.stops.find((s) => s > this.at) : this.stops.findLast((s) => s < this.at);
    this.set(next ?? (direction > 0 ? this.duration : 0));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    this.playing = true;
    this.set(this.at >= this.duration ? 0 : this.at);
    if (this.calm) this.jump();
    else this.frame(performance.now());
  }

  frame(before) {
    this.request = requestAnimationFrame((now) => {
      if (!this.playing) return;
      this.set(this.at + Math.max(1, ((now - before) * this.duration * this.speed) / PLAY_MS), false);
      if (this.at >= this.duration) this.pause();
      else this.frame(now);
    });
  }

  // Step from round to round if the system requests reduced motion.
  jump() {
    this.timer = setTimeout(() => {
      if (!this.playing) return;
      this.set(this.stops.find((s) => s > this.at) ?? this.duration, false);
      if (this.at >= this.duration) this.pause();
      else this.jump();
    }, 1000 / this.speed);
  }

  pause() {
    if (!this.playing) return;
    this.halt();
    this.set(this.at);
  }

  halt() {
    this.playing = false;
    cancelAnimationFrame(this.request);
    clearTimeout(this.timer);
  }

  stop() {
    this.halt();
    this.listeners = [];
  }
}

// --- one trace, drawn

class View {
  constructor(trace, clock, shared, name) {
    this.trace = trace;
    this.name = name;
    this.clock = clock;
    this.shared = shared;
    this.id = freshId();
    this.by = "topic";
    this.order = Int32Array.from({ length: trace.partitions }, (_, i) => i);
    this.width = 900;
    this.selected = NOBODY;
    this.hovered = null;
    this.round = null;
    this.focused = 0;
    this.element = html("section", { class: "rbl-view", "aria-label": `${trace.scenario} under ${name}` });
    this.build();
    clock.listen((at, resting) => this.move(at, resting));
  }

  get scale() {
    return (this.width - LEFT - RIGHT) / Math.max(1, this.clock.duration);
  }

  x(at) {
    return LEFT + at * this.scale;
  }

  // The time of the cursor, but at most the last millisecond of the trace.
  get now() {
    return Math.min(this.clock.at, this.trace.duration - 1);
  }

  get laneHeight() {
    const count = Math.max(1, this.trace.partitions);
    return count > TALLEST ? TALLEST / count : Math.max(1, Math.min(18, Math.floor(TALLEST / count)));
  }

  build() {
    const { trace } = this;
    this.ownership = html("canvas", { class: "rbl-lanes" });
    this.overlay = svg("svg", { class: "rbl-overlay", role: "img", "aria-label": "Owners of the partitions over time" });
    this.ownerLegend = html("div", { class: "rbl-legend" });
    this.lanes = html("canvas", { class: "rbl-lanes" });
    this.memberOverlay = svg("svg", { class: "rbl-overlay", role: "group", "aria-label": "Members" });
    this.memberLegend = html("div", { class: "rbl-legend" });
    this.band = svg("svg", { class: "rbl-band", height: 52, role: "img", "aria-label": "States of the group" });
    this.machine = svg("svg", {
      class: "rbl-machine", viewBox: "0 0 370 210", role: "img", "aria-label": "State machine of the group",
    });
    this.flow = svg("svg", {
      class: "rbl-flow", viewBox: "0 0 460 210", role: "img", "aria-label": "Who gave partitions to whom in this round",
    });
    this.sentence = html("p", { class: "rbl-sentence" });
    this.counts = html("p", { class: "rbl-counts" });
    this.told = html("ol", { class: "rbl-events", "aria-label": "Events of the protocol in this round", hidden: "" });
    this.past = html("div", { class: "rbl-past", role: "status", hidden: "" });
    this.heading = html("h4");
    const failed = trace.kind(trace.end.state) === "resting" ? "" : `; ended ${trace.end.state}`;
    this.element.append(
      html("h3", {}, `${this.name}${failed}`),
      ...trace.findings.map((finding) => html("p", { class: "rbl-error", role: "alert" }, finding)),
      html("h4", {}, "Ownership"),
      html("div", { class: "rbl-stack" }, this.ownership, this.overlay),
      this.ownerLegend,
      this.past,
      html("h4", {}, "Members"),
      html("div", { class: "rbl-stack rbl-scroll" }, this.lanes, this.memberOverlay),
      this.memberLegend,
      html("h4", {}, trace.machine.coordinated ? "Coordinator" : "Group"),
      this.band,
      this.heading,
      this.sentence,
      this.counts,
      this.told,
      html("div", { class: "rbl-pair" }, this.flow, this.machine),
    );
    this.overlay.addEventListener("mousemove", (event) => this.point(event));
    this.overlay.addEventListener("mouseleave", () => this.shared.hover(null));
    this.overlay.addEventListener("click", (event) => this.select(this.partitionUnder(event)));
    for (const panel of [this.overlay, this.memberOverlay, this.band])
      panel.addEventListener("click", (event) => this.goTo(this.timeUnder(event)));
    this.memberOverlay.addEventListener("keydown", (event) => this.walkMembers(event));
    if (!trace.partitions) this.ownership.parentElement.replaceChildren(html("p", {}, "No partitions."));
    if (!trace.members.length) {
      this.lanes.parentElement.replaceChildren(html("p", {}, "No member ever started."));
      this.flow.remove();
    }
    this.drawMachine();
  }

  resize(width) {
    const fits = Math.max(480, Math.round(width));
    if (fits === this.width && this.drawn) return;
    this.width = fits;
    this.drawn = true;
    this.draw();
  }

  draw() {
    this.sort();
    this.drawOwnership();
    this.drawLegend();
    this.drawMembers();
    this.drawBand();
    this.round = null;
    this.move(this.clock.at, true);
  }

  // --- ownership

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
  }

  drawOwnership() {
    const { trace, ownership } = this;
    const width = Math.max(1, Math.round(this.width - LEFT - RIGHT));
    const height = Math.max(1, Math.round(this.laneHeight * trace.partitions));
    ownership.width = width;
    ownership.height = height;
    ownership.style.marginLeft = `${LEFT}px`;
    const image = new ImageData(width, height);
    const brush = trace.partitions > TALLEST ? new Mixer(image, trace.partitions) : new Painter(image, this.laneHeight);
    this.paint(brush, width);
    brush.finish();
    ownership.getContext("2d").putImageData(image, 0, 0);
    this.overlay.setAttribute("width", this.width);
    this.overlay.setAttribute("height", height);
    this.drawLabels(height);
  }

  // Paint the stretches of each lane, from left to right. A new owner has a border.
  paint(brush, width) {
    const { trace } = this;
    const duration = Math.max(1, this.clock.duration);
    const column = (ms) => Math.floor((ms * width) / duration); // multiplied first, so that the end is exactly the width
    const news = trace.coloursAreMembers ? [] : trace.rounds.map((round) => column(round.began));
    for (let p = 0; p < trace.partitions; p++) {
      const row = this.row[p];
      let last = NOBODY;
      trace.stretches(p, (begin, end, owners) => {
        const from = Math.min(width - 1, column(begin));
        if (!owners.length) {
          brush.hatch(row, from, column(end));
          return;
        }
        const to = Math.min(width, Math.max(from + 1, column(end)));
        const owner = owners[owners.length - 1];
        if (owners.length > 1)
          brush.share(row, from, to, trace.coloursAreMembers ? owners.map(colourOf) : [BY_CHANGE.shared]);
        else if (trace.coloursAreMembers) brush.fill(row, from, to, colourOf(owner));
        else {
          const next = news.find((began) => began > from) ?? width; // a change is new until the next round
          const settled = owner === last ? from : Math.min(to, next);
          brush.fill(row, from, settled, BY_CHANGE.fresh);
          brush.fill(row, settled, to, BY_CHANGE.kept);
        }
        if (owners.length === 1)
          for (const [since, until] of trace.paused[owner])
            brush.stripe(row, Math.max(from, column(since)), Math.min(to, column(until)));
        if (owner !== last && last !== NOBODY) brush.border(row, from, Math.min(to, from + 2));
        last = owner;
      });
    }
  }

  drawLabels(height) {
    const { trace, overlay } = this;
    const lane = this.laneHeight;
    const pieces = [];
    const every = Math.max(1, Math.ceil(12 / lane));
    for (let row = 0; row < trace.partitions && row * lane + 9 <= height; row += every) {
      const name = trace.name(this.order[row]);
      const place = { x: LEFT - 6, y: row * lane + Math.min(Math.max(lane, 10), 12) - 1, "text-anchor": "end" };
      pieces.push(titled(worded(short(name), place), name));
    }
    for (const [at, label] of trace.marks) {
      const line = svg("line", { x1: this.x(at), x2: this.x(at), y1: 0, y2: height, class: "rbl-mark" });
      pieces.push(titled(line, `${clockText(at)} ${label}`));
    }
    if (lane >= 12 && trace.count <= MOST_LETTERS)
      for (let p = 0; p < trace.partitions; p++)
        trace.stretches(p, (from, to, owners) => {
          const [left, right] = [this.x(from), this.x(to)];
          if (!owners.length || right - left < 14 * owners.length) return;
          const ground = trace.coloursAreMembers && owners.length === 1 ? colourOf(owners[0]) : "";
          pieces.push(worded(owners.map(letter).join(" "), {
            x: (left + right) / 2, y: this.row[p] * lane + Math.min(lane - 2, 12), "text-anchor": "middle",
            style: `fill: ${DARK.has(ground) ? "#fff" : "#000"}; ${ground && `stroke: ${ground}`}`, class: owners.length > 1 ? "rbl-several" : "rbl-owner",
          }));
        });
    this.outline = svg("rect", { class: "rbl-selected", visibility: "hidden" });
    this.highlights = svg("g", { class: "rbl-highlights" });
    this.cursor = svg("line", { y1: 0, y2: height, class: "rbl-cursor" });
    overlay.replaceChildren(...pieces, this.highlights, this.outline, this.cursor);
    this.outlineSelected();
  }

  drawLegend() {
    const owners = this.trace.coloursAreMembers
      ? this.trace.members.map((member, i) => [colourOf(i), `${letter(i)} ${short(member.name)}`])
      : [[BY_CHANGE.fresh, "new owner"], [BY_CHANGE.kept, "kept"]];
    const entries = [...owners, [null, "nobody"]].map(([colour, label]) => entry(colour, label));
    if (this.trace.paused.some((times) => times.length)) {
      entries.push(entry(null, "owner paused"));
      entries.at(-1).firstChild.className = "rbl-striped";
    }
    if (this.trace.overlaps) entries.push(this.severalEntry());
    this.ownerLegend.replaceChildren(...entries);
  }

  severalEntry() {
    const { coloursAreMembers } = this.trace;
    const made = entry(coloursAreMembers ? null : BY_CHANGE.shared, "several owners");
    if (coloursAreMembers) made.firstChild.className = "rbl-divided";
    return made;
  }

  partitionUnder(event) {
    const y = event.clientY - this.overlay.getBoundingClientRect().top;
    const row = Math.floor(y / this.laneHeight);
    return row >= 0 && row < this.trace.partitions ? this.order[row] : NOBODY;
  }

  timeUnder(event) {
    const x = event.clientX - this.overlay.getBoundingClientRect().left;
    return (x - LEFT) / this.scale;
  }

  goTo(at) {
    if (at < 0 || at > this.clock.duration) return; // a label, or a figure
    this.clock.pause();
    this.clock.set(at);
  }

  // Of several owners, the one whose part of the lane is under the pointer.
  point(event) {
    const partition = this.partitionUnder(event);
    const owners = partition === NOBODY ? [] : this.trace.ownersAt(partition, this.timeUnder(event));
    const y = event.clientY - this.overlay.getBoundingClientRect().top - this.row[partition] * this.laneHeight;
    const owner = owners[Math.min(owners.length - 1, Math.floor((y * owners.length) / this.laneHeight))];
    this.shared.hover(this.trace.members[owner]?.name ?? null);
  }

  ownerName(partition, at) {
    return this.trace.members[this.trace.ownerAt(partition, at)]?.name ?? null;
  }

  select(partition) {
    this.selected = partition;
    this.outlineSelected();
    if (partition === NOBODY) {
      this.past.hidden = true;
      return;
    }
    const lines = this.trace.history(partition);
    const listed = lines.map((line) => html("li", {}, line));
    const name = this.trace.name(partition);
    const heading = lines.length ? `${name}, owner by owner` : `${name}: nobody ever owned it`;
    this.past.replaceChildren(html("strong", {}, heading), html("ol", {}, ...listed));
    this.past.hidden = false;
    this.shared.selected(name);
    this.shared.hover(this.ownerName(partition, this.now));
  }

  outlineSelected() {
    if (!this.outline) return;
    this.outline.setAttribute("visibility", this.selected === NOBODY ? "hidden" : "visible");
    if (this.selected === NOBODY) return;
    this.outline.setAttribute("x", LEFT - 1);
    this.outline.setAttribute("y", this.row[this.selected] * this.laneHeight - 1);
    this.outline.setAttribute("width", this.width - LEFT - RIGHT + 2);
    this.outline.setAttribute("height", Math.max(3, this.laneHeight + 1));
  }

  // --- members and coordinator

  drawMembers() {
    const { trace, lanes } = this;
    const [width, lane] = [Math.max(1, Math.round(this.width - LEFT - RIGHT)), 16];
    lanes.width = width;
    lanes.height = Math.max(1, lane * trace.members.length);
    lanes.style.marginLeft = `${LEFT}px`;
    const context = lanes.getContext("2d");
    const perMs = width / Math.max(1, this.clock.duration);
    const pieces = [];
    this.rows = [];
    trace.members.forEach((member, i) => {
      member.states.forEach(([at, state], n) => {
        const until = member.states[n + 1]?.[0] ?? trace.duration;
        const colour = memberColour(state);
        if (!colour) return;
        context.fillStyle = colour;
        context.fillRect(at * perMs, i * lane + 2, Math.max(1, (until - at) * perMs), lane - 5);
      });
      const ticks = member.calls.map(([at, kind]) =>
        `M${(this.x(at) - 1.5).toFixed(1)} ${kind === "assigned" ? i * lane : i * lane + lane - 4}h3v3h-3z`);
      pieces.push(svg("path", { class: "rbl-calls", d: ticks.join("") }));
      const dots = member.told.map(([at]) => `M${(this.x(at) - 2).toFixed(1)} ${i * lane + 7.5}a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z`);
      pieces.push(svg("path", { class: "rbl-told", d: dots.join("") }));
      const name = worded(`${short(member.name)} ${letter(i)}`, { x: LEFT - 6, y: i * lane + 12, "text-anchor": "end" });
      const figures = svg("text", { x: this.width - RIGHT + 6, y: i * lane + 12 });
      const box = svg("rect", { x: 1, y: i * lane, width: this.width - 2, height: lane - 1 });
      const hint = svg("title");
      const hit = svg("g", { class: "rbl-row", role: "img", tabindex: i === this.focused ? 0 : -1 }, box, titled(name, member.name), figures);
      hit.addEventListener("mousemove", (event) => {
        hint.textContent = this.toldAt(member, this.timeUnder(event));
        if (hint.textContent) box.append(hint);
        else hint.remove();
      });
      for (const [on, off] of [["mouseenter", "mouseleave"], ["focus", "blur"]]) {
        hit.addEventListener(on, () => this.shared.hover(member.name));
        hit.addEventListener(off, () => this.shared.hover(null));
      }
      hit.addEventListener("focus", () => { this.focused = i; });
      pieces.push(hit);
      this.rows.push({ hit, figures });
    });
    this.memberCursor = svg("line", { y1: 0, y2: lanes.height, class: "rbl-cursor" });
    this.memberOverlay.setAttribute("width", this.width);
    this.memberOverlay.setAttribute("height", lanes.height);
    this.memberOverlay.replaceChildren(...pieces, this.memberCursor);
    const dots = trace.sentences.length ? "; dots: events of the protocol" : "";
    const ticks = `ticks above: assigned, below: revoked or lost${dots}; beside: generation, partitions, lag`;
    this.unowned = html("div");
    this.memberLegend.replaceChildren(...this.stateLegend(), ...(trace.members.length ? [ticks] : []), this.unowned);
  }

  // The events of a member near a time, one a line.
  toldAt(member, at) {
    const near = member.told.filter(([time]) => Math.abs(time - at) * this.scale <= NEAR);
    return near.map(([time, said]) => `${clockText(time)} ${this.trace.sentences[said]}`).join("\n");
  }

  // The up and down keys move between members. Only one member can be reached with the tab key.
  walkMembers(event) {
    const direction = { ArrowDown: 1, ArrowUp: -1 }[event.key];
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
    const known = Object.keys(MEMBER_COLOURS).filter((state) => seen.has(state));
    return [...new Set([...known, ...seen])].filter(memberColour).map((state) => entry(memberColour(state), state));
  }

  drawBand() {
    const { trace, band } = this;
    band.setAttribute("width", this.width);
    const pieces = [];
    trace.states.forEach(([at, state], n) => {
      const until = trace.states[n + 1]?.[0] ?? trace.duration;
      if (until <= at) return;
      const colour = GROUP_COLOURS[trace.kind(state)];
      const box = svg("rect", {
        x: this.x(at), y: 2, width: Math.max(1, this.x(until) - this.x(at)), height: 14,
        fill: colour ?? "transparent", stroke: colour ? "#444" : "none", "stroke-width": 0.5,
      });
      pieces.push(titled(box, `${clockText(at)} ${state}`));
    });
    this.took = svg("g", { class: "rbl-took" });
    this.bandCursor = svg("line", { y1: 0, y2: 18, class: "rbl-cursor" });
    this.stateText = svg("text", { x: LEFT - 6, y: 13, "text-anchor": "end" });
    this.axis(pieces);
    this.nameMarks(pieces);
    band.replaceChildren(...pieces, this.took, this.stateText, this.bandCursor);
  }

  axis(pieces) {
    const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200].map((s) => 1000 * s);
    const step = steps.find((s) => s * this.scale >= 70) ?? 86400000;
    for (let at = 0; at <= this.clock.duration; at += step) {
      pieces.push(worded(clockText(at).slice(0, -4), { x: this.x(at), y: 32, "text-anchor": "middle" }));
    }
  }

  // Label changes from outside below the axis, if there is room.
  nameMarks(pieces) {
    const free = [0, 0]; // in two rows
    for (const [at, label] of this.trace.marks) {
      const row = free.findIndex((from) => from <= this.x(at));
      if (row < 0) continue;
      const [kind, ...target] = label.split(" ");
      const said = `↑ ${kind} ${short(target.join(" "))}`;
      pieces.push(worded(said, { x: this.x(at) - 4, y: 48 + 14 * row, class: "rbl-happened" }));
      free[row] = this.x(at) + 7 * said.length + 8;
    }
    this.band.setAttribute("height", free[1] ? 66 : 52);
  }

  drawMachine() {
    const { states, moves } = this.trace.machine;
    const place = Object.fromEntries(states.map(([name, x, y]) => [name, [72 + x * 226, 20 + y * 170]]));
    const arrow = `${this.id}-arrow`;
    const marker = svg("marker", {
      id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto",
    }, svg("path", { d: "M0 0L8 4L0 8z", class: "rbl-arrowhead" }));
    this.machine.append(svg("defs", {}, marker));
    for (const [from, to] of moves) {
      const [[x1, y1], [x2, y2]] = [place[from], place[to]];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      const gap = Math.min(67 / Math.abs(ux), 12 / Math.abs(uy)); // to the border of a state's box
      const side = moves.some(([a, b]) => a === to && b === from) ? 7 : 0;
      this.machine.append(svg("line", {
        x1: x1 + ux * gap - uy * side, y1: y1 + uy * gap + ux * side,
        x2: x2 - ux * gap - uy * side, y2: y2 - uy * gap + ux * side,
        class: "rbl-edge", "marker-end": `url(#${arrow})`,
      }));
    }
    this.nodes = {};
    for (const [name] of states) {
      const [x, y] = place[name];
      const group = svg("g", { class: "rbl-state" });
      group.append(svg("rect", { x: x - 66, y: y - 11, width: 132, height: 22, rx: 9 }));
      group.append(worded(name, { x, y: y + 4, "text-anchor": "middle" }));
      this.nodes[name] = group;
      this.machine.append(group);
    }
  }

  drawRound(number) {
    const { trace, flow } = this;
    const round = trace.rounds[number];
    this.heading.textContent = round ? `Round ${number + 1} of ${trace.rounds.length}` : "No round yet";
    this.sentence.textContent = round ? round.sentence : this.beforeRounds();
    const counts = round?.counts ?? {};
    const shown = Object.entries(counts).filter(([, count]) => count).map(([what, count]) => `${what} ${count}`);
    const because = round ? `because ${round.causes.join("; ")}` : "";
    this.counts.textContent = [shown.join(", "), because, round?.report].filter(Boolean).join(" · ");
    const told = trace.told(number);
    const more = told.length > MOST_LINES ? [`${COUNT.format(told.length - MOST_LINES)} more`] : [];
    this.told.replaceChildren(...[...told.slice(0, MOST_LINES), ...more].map((line) => html("li", {}, line)));
    this.told.hidden = !told.length;
    const place = trace.circle.map(([x, y]) => [160 + x * 140, 22 + y * 166]);
    const dense = trace.members.length > MOST_NAMES;
    const radius = !dense ? 12 : trace.members.length > MOST_INITIALS ? 2.5 : 5;
    const arrow = `${this.id}-flow`;
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
      if (!dense) pieces.push(worded(count, middle));
    }
    this.flowNodes = trace.members.map((member, i) => {
      const own = round?.members[i];
      const [x, y] = place[i];
      const colour = trace.coloursAreMembers ? colourOf(i) : GREY;
      const node = svg("g", { class: own ? "rbl-node" : "rbl-node rbl-absent" });
      node.append(svg("circle", { cx: x, cy: y, r: radius, fill: colour }));
      const ink = dense ? "" : `fill: ${DARK.has(colour) ? "#fff" : "#000"}`;
      const side = x >= 229 ? 1 : -1; // names are outside the circle of arrows
      const inside = dense ? [x + (x - 230) / 7, y + (y - 105) / 7] : [x, y];
      if (trace.members.length <= MOST_INITIALS)
        node.append(worded(letter(i), { x: inside[0], y: inside[1] + 4, "text-anchor": "middle", style: ink }));
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
    flow.replaceChildren(...pieces, ...this.flowNodes);
  }

  beforeRounds() {
    return this.trace.rounds.length ? "before the first round" : "no member tried to join: there was no round";
  }

  // --- what moves with time

  move(at, resting) {
    const { trace } = this;
    const x = this.x(at);
    for (const cursor of [this.cursor, this.memberCursor, this.bandCursor]) {
      cursor?.setAttribute("x1", x);
      cursor?.setAttribute("x2", x);
    }
    trace.members.forEach((member, i) => {
      const text = this.memberText(member, at);
      if (this.rows[i].text !== text) {
        this.rows[i].text = text;
        this.rows[i].figures.textContent = text;
        this.rows[i].hit.setAttribute("aria-label", `${member.name}: ${text}`);
      }
    });
    const unowned = valueAt(trace.unowned_lag ?? [], at);
    if (this.unowned) this.unowned.textContent = unowned ? `partitions without an owner: lag ${COUNT.format(unowned)}` : "";
    const state = valueAt(trace.states, at) ?? "Empty";
    if (this.stateText) this.stateText.textContent = state;
    for (const [name, node] of Object.entries(this.nodes)) node.classList.toggle("rbl-lit", name === state);
    const round = trace.roundAt(at);
    if (round !== this.round) {
      this.round = round;
      this.drawRound(round);
    }
    if (resting && this.by === "member") this.regroup();
    if (resting || this.hovered !== null) this.highlight(this.hovered);
  }

  memberText(member, at) {
    const state = valueAt(member.states, at) ?? "not started";
    const generation = valueAt(member.generations, at);
    if (!generation || state === "stopped" || state === "crashed") return state;
    const lag = valueAt(member.lag, at);
    const late = lag == null ? "" : ` · lag ${COUNT.format(lag)}`;
    return `${state} g${generation} · ${valueAt(member.owned, at) ?? 0}${late}`;
  }

  regroup() {
    this.sort();
    this.drawOwnership();
    const x = this.x(this.clock.at);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }

  groupBy(what) {
    this.by = what;
    this.regroup();
  }

  highlight(name) {
    this.hovered = name;
    const number = name === null ? NOBODY : this.trace.members.findIndex((member) => member.name === name);
    this.rows?.forEach(({ hit }, i) => hit.classList.toggle("rbl-hot", i === number));
    this.flowNodes?.forEach((node, i) => node.classList.toggle("rbl-hot", i === number));
    if (!this.highlights) return;
    this.highlights.replaceChildren(...this.rowsOf(number).map((y) => svg("rect", {
      x: LEFT - 4, y, width: 4, height: Math.max(1, this.laneHeight - 1), class: "rbl-hot",
    })));
    this.took.replaceChildren(...this.roundsOf(number).map((round) => svg("rect", {
      x: this.x(round.began), y: 18, width: Math.max(2, this.x(round.stable ?? round.began) - this.x(round.began)),
      height: 3, class: "rbl-hot",
    })));
  }

  // The positions of the lanes that a member owns now. Lanes on the same line of pixels are listed once.
  rowsOf(number) {
    const { trace } = this;
    const rows = new Set();
    for (let p = 0; number >= 0 && p < trace.partitions; p++)
      if (trace.ownersAt(p, this.now).includes(number))
        rows.add(this.laneHeight < 1 ? Math.floor(this.row[p] * this.laneHeight) : this.row[p] * this.laneHeight);
    return [...rows];
  }

  // The rounds in which a member took part.
  roundsOf(number) {
    return number < 0 ? [] : this.trace.rounds.filter((round) => round.members[number]);
  }
}

// --- the whole widget

function controls(clock, views) {
  const button = (label, hint, act) => html("button", { type: "button", title: hint, "aria-label": hint, onclick: act }, label);
  const play = button("▶", "Play or pause (space)", () => clock.toggle());
  const slider = html("input", {
    type: "range", min: 0, max: clock.duration, step: 1, value: 0, class: "rbl-slider", "aria-label": "Time",
    oninput: () => clock.set(Number(slider.value), false),
    onchange: () => clock.set(Number(slider.value)),
  });
  const time = html("span", { class: "rbl-time" });
  const speed = html("select", { "aria-label": "Speed", onchange: () => { clock.speed = Number(speed.value); } });
  for (const factor of [0.25, 0.5, 1, 2, 4]) {
    const option = html("option", { value: factor }, `${factor}×`);
    option.selected = factor === 1;
    speed.append(option);
  }
  const grouped = html("select", {
    "aria-label": "Lanes grouped by", onchange: () => views.forEach((view) => view.groupBy(grouped.value)),
  });
  grouped.append(html("option", { value: "topic" }, "by topic"), html("option", { value: "member" }, "by member"));
  clock.listen((at) => {
    slider.value = at;
    time.textContent = clockText(at);
    slider.setAttribute("aria-valuetext", [time.textContent, ...views.map((view) => view.heading.textContent)].join(", "));
    play.textContent = clock.playing ? "❚❚" : "▶";
    play.setAttribute("aria-pressed", clock.playing);
  });
  return html("div", { class: "rbl-controls", role: "group", "aria-label": "Time" },
    button("|◀", "To the beginning (Home)", () => { clock.pause(); clock.set(0); }),
    button("◁", "One round back (left arrow)", () => clock.step(-1)),
    play,
    button("▷", "One round on (right arrow)", () => clock.step(1)),
    button("▶|", "To the end (End)", () => { clock.pause(); clock.set(clock.duration); }),
    slider, time, speed, grouped);
}

function figures(table) {
  if (!table?.metrics?.length) return "";
  const head = html("tr", {}, html("th", { scope: "col" }, "metric"), ...table.strategies.map((s) => html("th", { scope: "col" }, s)));
  const rows = table.metrics.map(({ name, cells }) =>
    html("tr", {}, html("th", { scope: "row" }, name), ...cells.map(({ text, best, difference }) =>
      html("td", best ? { class: "rbl-best" } : {}, text, difference ? html("small", {}, ` ${difference}`) : ""))));
  const made = html("table", { class: "rbl-figures" }, html("thead", {}, head), html("tbody", {}, ...rows));
  return html("div", { class: "rbl-wide" }, made);
}

// Draws a model into an element and returns a function that removes it.
function draw(model, element) {
  const traces = model.get("views").map((view) => new Trace(view));
  const duration = Math.max(1, ...traces.map((trace) => trace.duration));
  const clock = new Clock(duration, traces.flatMap((trace) => trace.stops));
  const live = html("div", { class: "rbl-live", "aria-live": "polite" });
  const views = [];
  const shared = {
    hover: (name) => views.forEach((view) => view.highlight(name)),
    selected: (name) => { model.set("selected", name); model.save_changes(); },
  };
  const scenarios = [...new Set(traces.map((trace) => trace.scenario))];
  traces.forEach((trace, i) => {
    const strategy = model.get("figures")?.strategies?.[i] ?? trace.strategy; // a repeated name has a number
    views.push(new View(trace, clock, shared, scenarios.length > 1 ? `${strategy} on ${trace.scenario}` : strategy));
  });
  const name = scenarios.join(", ") || "nothing to show";
  const root = html("div", { class: "rbl", tabindex: "0", role: "region", "aria-label": `Rebalances of ${name}` });
  root.append(html("h2", {}, name), controls(clock, views), ...views.map((v) => v.element), figures(model.get("figures")), live);
  for (const error of model.get("errors") ?? []) root.append(html("p", { class: "rbl-error", role: "alert" }, error));
  // JupyterLab and Notebook handle keys first, except in elements with this attribute. The focused element needs
  // the attribute too. Their chords, such as the one that saves, still work.
  const claim = (event) => {
    if (!root.contains(event.target)) return;
    for (const each of [root, event.target]) each.toggleAttribute("data-lm-suppress-shortcuts", !isChord(event));
  };
  window.addEventListener("keydown", claim, true);
  root.addEventListener("keydown", (event) => {
    const acts = {
      " ": () => clock.toggle(),
      ArrowRight: () => clock.step(1),
      ArrowLeft: () => clock.step(-1),
      Home: () => { clock.pause(); clock.set(0); },
      End: () => { clock.pause(); clock.set(clock.duration); },
      ArrowDown: () => views[0]?.select(neighbour(views[0], 1)),
      ArrowUp: () => views[0]?.select(neighbour(views[0], -1)),
    };
    if (isChord(event)) return;
    event.stopPropagation(); // the surrounding application has keys of its own
    const choosing = event.target.tagName === "SELECT";
    const pressing = event.target.tagName === "BUTTON" && event.key === " ";
    if (choosing || pressing || !acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
  clock.listen((at, resting) => {
    if (!resting) return;
    model.set("at", at);
    model.set("round", traces[0]?.roundAt(at) ?? NOBODY);
    model.save_changes();
    live.textContent = views.map((view) => `${view.name}: ${view.sentence.textContent}`).join(". ");
  });
  element.replaceChildren(root);
  const fit = () => {
    const width = root.clientWidth || 904; // not in the page yet; it is resized when it is added
    views.forEach((view) => view.resize(width - 4));
  };
  const watch = new ResizeObserver(fit);
  watch.observe(root);
  fit();
  const moved = () => { if (model.get("at") !== clock.at) clock.set(model.get("at")); };
  model.on("change:at", moved);
  clock.set(model.get("at") ?? 0);
  root.rbl = { clock, views };
  return () => {
    clock.stop();
    watch.disconnect();
    model.off("change:at", moved);
    window.removeEventListener("keydown", claim, true);
  };
}

function isChord(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

function neighbour(view, direction) {
  if (!view.trace.partitions) return NOBODY;
  const row = view.selected === NOBODY ? (direction > 0 ? -1 : view.trace.partitions) : view.row[view.selected];
  return view.order[Math.max(0, Math.min(view.trace.partitions - 1, row + direction))];
}

function render({ model, el }) {
  let undo = () => {};
  const again = () => {
    undo();
    try {
      undo = draw(model, el);
    } catch (problem) {
      undo = () => {};
      el.replaceChildren(html("pre", { class: "rbl rbl-error", role: "alert" }, `This view failed: ${problem}`));
    }
  };
  // One message may change several values. Draw once, after all of them have changed.
  let due = false;
  const soon = () => {
    if (!due) queueMicrotask(() => { due = false; again(); });
    due = true;
  };
  const watched = ["change:views", "change:figures", "change:errors"];
  again();
  for (const change of watched) model.on(change, soon);
  return () => {
    for (const change of watched) model.off(change, soon);
    undo();
  };
}

export default { render };
