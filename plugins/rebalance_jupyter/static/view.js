// Traces of rebalances on one time axis: ownership, members, coordinator, and the round under the cursor.
// One file without imports, as anywidget serves it; all data come with the model, nothing is fetched.

const NS = "http://www.w3.org/2000/svg";
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];
const DARK = new Set(["#0072B2", "#009E73", "#D55E00"]);
const BY_CHANGE = { kept: "#56B4E9", fresh: "#E69F00" };
const MEMBER_COLOURS = {
  outside: null,
  joining: "#E69F00",
  waiting: "#F0E442",
  stable: "#009E73",
  paused: "#999999",
  crashed: "#D55E00",
  stopped: null,
};
const GROUP_COLOURS = {
  Empty: null,
  PreparingRebalance: "#E69F00",
  CompletingRebalance: "#F0E442",
  Stable: "#009E73",
  Dead: "#D55E00",
};
const LEFT = 116;
const RIGHT = 132;
const TALLEST = 600;
const MOST_LETTERS = 3000;
const PLAY_MS = 20000;
const NOBODY = -1;

let serial = 0;

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

function pixel(colour) {
  const n = parseInt(colour.slice(1), 16);
  return (255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16);
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
  }

  ownerAt(partition, at) {
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (this.spans[4 * i + 2] <= at && at < this.spans[4 * i + 3]) return this.spans[4 * i + 1];
    return NOBODY;
  }

  roundAt(at) {
    let found = NOBODY;
    this.rounds.forEach((round, i) => {
      if (round.began <= at) found = i;
    });
    return found;
  }

  name(partition) {
    let rest = partition;
    for (const topic of this.topics) {
      if (rest < topic.partitions) return `${topic.name}-${rest}`;
      rest -= topic.partitions;
    }
    return String(partition);
  }

  // With more members than colours, colours say what happened instead.
  get coloursAreMembers() {
    return this.members.length <= PALETTE.length;
  }

  history(partition) {
    const lines = [];
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++) {
      const [, owner, from, to] = this.spans.subarray(4 * i, 4 * i + 4);
      lines.push(`${clockText(from)} to ${clockText(to)}: ${this.members[owner].name}`);
    }
    return lines;
  }
}

// --- time: shared by everything that is drawn

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
    if (this.at >= this.duration) this.at = 0;
    this.playing = true;
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

  // Where the system asks for reduced motion: from round to round.
  jump() {
    this.timer = setTimeout(() => {
      if (!this.playing) return;
      this.set(this.stops.find((s) => s > this.at) ?? this.duration, false);
      if (this.at >= this.duration) this.pause();
      else this.jump();
    }, 1000 / this.speed);
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.request);
    clearTimeout(this.timer);
    this.set(this.at, true);
  }

  stop() {
    this.playing = false;
    cancelAnimationFrame(this.request);
    clearTimeout(this.timer);
    this.listeners = [];
  }
}

// --- one trace, drawn

class View {
  constructor(trace, clock, shared) {
    this.trace = trace;
    this.clock = clock;
    this.shared = shared;
    this.id = `rbl${++serial}`;
    this.by = "topic";
    this.order = Int32Array.from({ length: trace.partitions }, (_, i) => i);
    this.width = 900;
    this.selected = NOBODY;
    this.hovered = NOBODY;
    this.round = null;
    this.element = html("section", { class: "rbl-view", "aria-label": `${trace.scenario} under ${trace.strategy}` });
    this.build();
    clock.listen((at, resting) => this.move(at, resting));
  }

  get scale() {
    return (this.width - LEFT - RIGHT) / Math.max(1, this.clock.duration);
  }

  x(at) {
    return LEFT + at * this.scale;
  }

  get laneHeight() {
    const count = Math.max(1, this.trace.partitions);
    return count > TALLEST ? TALLEST / count : Math.max(1, Math.min(18, Math.floor(TALLEST / count)));
  }

  build() {
    const { trace } = this;
    this.ownership = html("canvas", { class: "rbl-lanes" });
    this.overlay = svg("svg", { class: "rbl-overlay", role: "listbox", "aria-label": "Partitions", tabindex: "-1" });
    this.lanes = html("canvas", { class: "rbl-lanes" });
    this.memberOverlay = svg("svg", { class: "rbl-overlay" });
    this.memberLegend = html("div", { class: "rbl-states" });
    this.band = svg("svg", { class: "rbl-band", height: 30, role: "img", "aria-label": "States of the group" });
    this.machine = svg("svg", {
      class: "rbl-machine", viewBox: "0 0 370 210", role: "img", "aria-label": "State machine of the group",
    });
    this.flow = svg("svg", {
      class: "rbl-flow", viewBox: "0 0 360 210", role: "img", "aria-label": "Who gave partitions to whom in this round",
    });
    this.sentence = html("p", { class: "rbl-sentence" });
    this.counts = html("p", { class: "rbl-counts" });
    this.past = html("div", { class: "rbl-past", hidden: "" });
    const failed = trace.end.state === "Stable" ? "" : `; ended ${trace.end.state}`;
    this.element.append(
      html("h3", {}, `${trace.strategy}${failed}`),
      html("h4", {}, "Ownership"),
      html("div", { class: "rbl-stack" }, this.ownership, this.overlay),
      this.past,
      html("h4", {}, "Members"),
      html("div", { class: "rbl-stack rbl-scroll" }, this.lanes, this.memberOverlay),
      this.memberLegend,
      html("h4", {}, "Coordinator"),
      this.band,
      html("h4", {}, "This round"),
      this.sentence,
      this.counts,
      html("div", { class: "rbl-pair" }, this.flow, this.machine),
    );
    this.overlay.addEventListener("mousemove", (event) => this.point(event));
    this.overlay.addEventListener("mouseleave", () => this.shared.hover(null));
    this.overlay.addEventListener("click", (event) => {
      this.select(this.partitionUnder(event));
      this.clock.set(this.timeUnder(event));
    });
    if (!trace.partitions) this.ownership.parentElement.replaceChildren(html("p", {}, "No partitions."));
    this.drawMachine();
  }

  resize(width) {
    this.width = Math.max(480, Math.round(width));
    this.draw();
  }

  draw() {
    this.sort();
    this.drawOwnership();
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
      const owners = this.order.map((p) => trace.ownerAt(p, this.clock.at));
      this.order.sort((a, b) => owners[a] - owners[b] || a - b);
    }
    this.row = new Int32Array(trace.partitions);
    this.order.forEach((partition, row) => {
      this.row[partition] = row;
    });
  }

  drawOwnership() {
    const { trace, ownership } = this;
    const height = Math.max(1, Math.round(this.laneHeight * trace.partitions));
    const rows = trace.partitions > TALLEST ? 1 : this.laneHeight;
    const width = Math.max(1, Math.round(this.width - LEFT - RIGHT));
    const image = new ImageData(width, Math.max(1, trace.partitions * rows));
    this.paint(new Uint32Array(image.data.buffer), width, rows);
    ownership.width = width;
    ownership.height = height;
    ownership.style.marginLeft = `${LEFT}px`;
    const context = ownership.getContext("2d");
    if (trace.partitions > TALLEST) {
      const full = new OffscreenCanvas(width, trace.partitions);
      full.getContext("2d").putImageData(image, 0, 0);
      context.drawImage(full, 0, 0, width, height); // several partitions a line: their colours mixed
    } else context.putImageData(image, 0, 0);
    this.overlay.setAttribute("width", this.width);
    this.overlay.setAttribute("height", height + 22);
    this.drawLabels(height);
  }

  // Each span in its colour, from left to right: a border where the owner is new, hatched while nobody has it.
  paint(pixels, width, rows) {
    const { trace } = this;
    const colours = (trace.coloursAreMembers ? PALETTE : [BY_CHANGE.kept]).map(pixel);
    const fresh = pixel(BY_CHANGE.fresh);
    const border = pixel("#333333");
    const [light, grey] = [pixel("#dddddd"), pixel("#888888")];
    const perMs = width / Math.max(1, this.clock.duration);
    const bands = rows > 3 ? rows - 1 : rows; // a line between lanes where there is room
    const fill = (row, from, to, colour) => {
      for (let y = row * rows; y < row * rows + bands; y++) pixels.fill(colour, y * width + from, y * width + to);
    };
    const hatch = (row, from, to) => {
      for (let y = row * rows; y < row * rows + bands; y++)
        for (let x = from; x < to; x++) pixels[y * width + x] = (x + y) % 5 ? light : grey;
    };
    for (let p = 0; p < trace.partitions; p++) {
      let [last, until] = [NOBODY, -1];
      for (let i = trace.first[p]; i < trace.first[p + 1]; i++) {
        const owner = trace.spans[4 * i + 1];
        const from = Math.floor(trace.spans[4 * i + 2] * perMs);
        const to = Math.min(width, Math.max(from + 1, Math.floor(trace.spans[4 * i + 3] * perMs)));
        if (until >= 0) hatch(this.row[p], until, from);
        if (trace.coloursAreMembers) fill(this.row[p], from, to, colours[owner]);
        else {
          const settled = Math.floor(this.settledAfter(trace.spans[4 * i + 2]) * perMs);
          fill(this.row[p], from, to, colours[0]);
          if (owner !== last) fill(this.row[p], from, Math.min(to, Math.max(settled, from + 1)), fresh);
        }
        if (owner !== last && last !== NOBODY && rows > 2) fill(this.row[p], from, Math.min(to, from + 2), border);
        [last, until] = [owner, to];
      }
      if (until >= 0) hatch(this.row[p], until, width);
    }
  }

  // When the round after a time begins: until then what was assigned is new.
  settledAfter(at) {
    return this.trace.rounds.find((round) => round.began > at)?.began ?? this.clock.duration;
  }

  drawLabels(height) {
    const { trace, overlay } = this;
    const lane = this.laneHeight;
    const pieces = [];
    const every = Math.max(1, Math.ceil(12 / lane));
    for (let row = 0; row < trace.partitions; row += every) {
      const label = svg("text", { x: LEFT - 6, y: row * lane + Math.min(lane, 12) - 1, "text-anchor": "end" });
      label.textContent = trace.name(this.order[row]);
      pieces.push(label);
    }
    if (trace.coloursAreMembers && lane >= 12 && trace.count <= MOST_LETTERS)
      for (let i = 0; i < trace.count; i++) {
        const [partition, owner, from, to] = trace.spans.subarray(4 * i, 4 * i + 4);
        const [left, right] = [this.x(from), this.x(to)];
        if (right - left < 14) continue;
        const text = svg("text", {
          x: (left + right) / 2, y: this.row[partition] * lane + 12, "text-anchor": "middle",
          style: `fill: ${DARK.has(PALETTE[owner]) ? "#fff" : "#000"}`,
        });
        text.textContent = letter(owner);
        pieces.push(text);
      }
    for (const [at, label] of trace.marks) {
      const line = svg("line", { x1: this.x(at), x2: this.x(at), y1: 0, y2: height, class: "rbl-mark" });
      const title = svg("title");
      title.textContent = `${clockText(at)} ${label}`;
      line.append(title);
      pieces.push(line);
    }
    this.outline = svg("rect", { class: "rbl-selected", visibility: "hidden" });
    this.highlights = svg("g", { class: "rbl-highlights" });
    this.cursor = svg("line", { y1: 0, y2: height, class: "rbl-cursor" });
    overlay.replaceChildren(...pieces, this.highlights, this.outline, this.cursor, this.legend(height + 14));
    this.outlineSelected();
  }

  legend(y) {
    const group = svg("g", { class: "rbl-legend" });
    const entries = this.trace.coloursAreMembers
      ? this.trace.members.map((member, i) => [PALETTE[i], `${letter(i)} ${member.name}`])
      : [[BY_CHANGE.fresh, "new owner"], [BY_CHANGE.kept, "kept"]];
    let x = LEFT;
    for (const [colour, label] of [...entries, ["#bbbbbb", "nobody"]]) {
      group.append(svg("rect", { x, y: y - 9, width: 10, height: 10, fill: colour, stroke: "#444" }));
      const text = svg("text", { x: x + 14, y });
      text.textContent = label;
      group.append(text);
      x += 26 + 6.5 * label.length;
    }
    return group;
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

  point(event) {
    const partition = this.partitionUnder(event);
    if (partition === NOBODY) return this.shared.hover(null);
    const owner = this.trace.ownerAt(partition, this.timeUnder(event));
    this.shared.hover(owner === NOBODY ? null : this.trace.members[owner].name);
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
    this.shared.selected(this.trace.name(partition));
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
    const ink = getComputedStyle(this.element).color;
    const perMs = width / Math.max(1, this.clock.duration);
    const pieces = [];
    this.rows = [];
    trace.members.forEach((member, i) => {
      member.states.forEach(([at, state], n) => {
        const until = member.states[n + 1]?.[0] ?? this.clock.duration;
        if (!MEMBER_COLOURS[state]) return;
        context.fillStyle = MEMBER_COLOURS[state];
        context.fillRect(at * perMs, i * lane + 2, Math.max(1, (until - at) * perMs), lane - 5);
      });
      context.fillStyle = ink;
      for (const [at, kind] of member.calls) {
        const y = kind === "assigned" ? i * lane : i * lane + lane - 4; // above: assigned; below: revoked, lost
        context.fillRect(at * perMs - 1, y, 3, 3);
      }
      const name = svg("text", { x: LEFT - 6, y: i * lane + 12, "text-anchor": "end" });
      name.textContent = trace.coloursAreMembers ? `${member.name} ${letter(i)}` : member.name;
      const figures = svg("text", { x: this.width - RIGHT + 6, y: i * lane + 12 });
      const hit = svg("rect", { x: 0, y: i * lane, width: this.width, height: lane, class: "rbl-row" });
      hit.addEventListener("mouseenter", () => this.shared.hover(member.name));
      hit.addEventListener("mouseleave", () => this.shared.hover(null));
      pieces.push(hit, name, figures);
      this.rows.push({ hit, figures });
    });
    this.memberCursor = svg("line", { y1: 0, y2: lanes.height, class: "rbl-cursor" });
    this.memberOverlay.setAttribute("width", this.width);
    this.memberOverlay.setAttribute("height", lanes.height);
    this.memberOverlay.replaceChildren(...pieces, this.memberCursor);
    this.memberLegend.replaceChildren(...this.stateLegend());
    if (!trace.members.length) this.lanes.parentElement.replaceChildren(html("p", {}, "No member ever started."));
  }

  stateLegend() {
    const seen = new Set(this.trace.members.flatMap((member) => member.states.map(([, state]) => state)));
    return Object.entries(MEMBER_COLOURS).filter(([state, colour]) => colour && seen.has(state)).map(([state, colour]) =>
      html("span", {}, html("i", { style: `background: ${colour}` }), state));
  }

  drawBand() {
    const { trace, band } = this;
    band.setAttribute("width", this.width);
    const pieces = [];
    trace.states.forEach(([at, state], n) => {
      const until = trace.states[n + 1]?.[0] ?? this.clock.duration;
      if (until <= at) return;
      const box = svg("rect", {
        x: this.x(at), y: 2, width: Math.max(1, this.x(until) - this.x(at)), height: 14,
        fill: GROUP_COLOURS[state] ?? "transparent", stroke: GROUP_COLOURS[state] ? "#444" : "none", "stroke-width": 0.5,
      });
      const title = svg("title");
      title.textContent = `${clockText(at)} ${state}`;
      box.append(title);
      pieces.push(box);
    });
    this.bandCursor = svg("line", { y1: 0, y2: 18, class: "rbl-cursor" });
    this.stateText = svg("text", { x: LEFT - 6, y: 13, "text-anchor": "end" });
    this.axis(pieces);
    band.replaceChildren(...pieces, this.stateText, this.bandCursor);
  }

  axis(pieces) {
    const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200].map((s) => 1000 * s);
    const step = steps.find((s) => s * this.scale >= 70) ?? 86400000;
    for (let at = 0; at <= this.clock.duration; at += step) {
      const text = svg("text", { x: this.x(at), y: 28, "text-anchor": "middle", class: "rbl-tick" });
      text.textContent = clockText(at).slice(0, -4);
      pieces.push(text);
    }
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
      const [dx, dy] = [x2 - x1, y2 - y1];
      const length = Math.hypot(dx, dy) || 1;
      const [ux, uy] = [dx / length, dy / length];
      const bend = moves.some(([a, b]) => a === to && b === from) ? 7 : 0;
      this.machine.append(svg("line", {
        x1: x1 + ux * 24 - uy * bend, y1: y1 + uy * 14 + ux * bend,
        x2: x2 - ux * 30 - uy * bend, y2: y2 - uy * 16 + ux * bend,
        class: "rbl-edge", "marker-end": `url(#${arrow})`,
      }));
    }
    this.nodes = {};
    for (const [name] of states) {
      const [x, y] = place[name];
      const group = svg("g", { class: "rbl-state" });
      group.append(svg("rect", { x: x - 66, y: y - 11, width: 132, height: 22, rx: 9 }));
      const text = svg("text", { x, y: y + 4, "text-anchor": "middle" });
      text.textContent = name;
      group.append(text);
      this.nodes[name] = group;
      this.machine.append(group);
    }
  }

  drawRound(number) {
    const { trace, flow } = this;
    const round = trace.rounds[number];
    this.sentence.textContent = round ? round.sentence : "before the first round";
    const counts = round?.counts ?? {};
    const shown = Object.entries(counts).filter(([, count]) => count).map(([what, count]) => `${what} ${count}`);
    const because = round ? `because ${round.causes.join("; ")}` : "";
    this.counts.textContent = [shown.join(", "), because].filter(Boolean).join(" · ");
    const place = trace.circle.map(([x, y]) => [110 + x * 140, 22 + y * 166]);
    const dense = trace.members.length > 24;
    const arrow = `${this.id}-flow`;
    const marker = svg("marker", {
      id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto",
      markerUnits: "userSpaceOnUse",
    }, svg("path", { d: "M0 0L8 4L0 8z", class: "rbl-arrowhead" }));
    marker.setAttribute("markerWidth", 9);
    marker.setAttribute("markerHeight", 9);
    const pieces = [svg("defs", {}, marker)];
    for (const [from, to, count] of round?.flows ?? []) {
      const [[x1, y1], [x2, y2]] = [place[from], place[to]];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      const gap = dense ? 4 : 15;
      pieces.push(svg("line", {
        x1: x1 + ux * gap, y1: y1 + uy * gap, x2: x2 - ux * gap, y2: y2 - uy * gap,
        class: "rbl-gave", "stroke-width": 1 + Math.log2(count + 1), "marker-end": `url(#${arrow})`,
      }));
      if (!dense) {
        const text = svg("text", { x: (x1 + x2) / 2 + 6, y: (y1 + y2) / 2 - 4, class: "rbl-count" });
        text.textContent = count;
        pieces.push(text);
      }
    }
    this.flowNodes = trace.members.map((member, i) => {
      const own = round?.members[i];
      const [x, y] = place[i];
      const colour = trace.coloursAreMembers ? PALETTE[i] : "#bbbbbb";
      const node = svg("g", { class: own ? "rbl-node" : "rbl-node rbl-absent" });
      node.append(svg("circle", { cx: x, cy: y, r: dense ? 3 : 12, fill: colour }));
      if (!dense) {
        const ink = DARK.has(colour) ? "#fff" : "#000";
        const text = svg("text", { x, y: y + 4, "text-anchor": "middle", style: `fill: ${ink}` });
        text.textContent = letter(i);
        const side = x >= 179 ? 1 : -1; // outside of the circle, where no arrow goes
        const label = svg("text", { x: x + 16 * side, y: y + 4, "text-anchor": side > 0 ? "start" : "end" });
        const given = own ? own.revoked + own.lost : 0;
        label.textContent = `${member.name}${given ? ` −${given}` : ""}${own?.assigned ? ` +${own.assigned}` : ""}`;
        node.append(text, label);
      }
      const title = svg("title");
      title.textContent = member.name;
      node.append(title);
      node.addEventListener("mouseenter", () => this.shared.hover(member.name));
      node.addEventListener("mouseleave", () => this.shared.hover(null));
      return node;
    });
    flow.replaceChildren(...pieces, ...this.flowNodes);
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
      const generation = valueAt(member.generations, at);
      const state = valueAt(member.states, at) ?? "not started";
      const lag = valueAt(member.lag, at);
      const known = generation === undefined ? state : `g${generation} · ${valueAt(member.owned, at) ?? 0}`;
      const late = lag === undefined ? "" : ` · lag ${Math.round(lag).toLocaleString("en")}`;
      const text = state === "stopped" || state === "crashed" ? state : `${known}${late}`;
      if (this.rows[i] && this.rows[i].text !== text) {
        this.rows[i].text = text;
        this.rows[i].figures.textContent = text;
      }
    });
    const state = valueAt(trace.states, at) ?? "Empty";
    if (this.stateText) this.stateText.textContent = state;
    for (const [name, node] of Object.entries(this.nodes)) node.classList.toggle("rbl-lit", name === state);
    const round = trace.roundAt(at);
    if (round !== this.round) {
      this.round = round;
      this.drawRound(round);
    }
    if (resting && this.by === "member") this.regroup();
    if (resting) this.highlight(this.hovered);
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
    const boxes = [];
    if (number >= 0 && this.trace.partitions <= TALLEST)
      for (let p = 0; p < this.trace.partitions; p++)
        if (this.trace.ownerAt(p, this.clock.at) === number)
          boxes.push(svg("rect", {
            x: LEFT - 4, y: this.row[p] * this.laneHeight, width: 4, height: Math.max(1, this.laneHeight - 1),
          }));
    this.highlights.replaceChildren(...boxes);
  }
}

// --- the whole widget

function controls(clock, views, traces) {
  const button = (label, hint, act) => html("button", { type: "button", title: hint, "aria-label": hint, onclick: act }, label);
  const play = button("▶", "Play or pause (space)", () => clock.toggle());
  const slider = html("input", {
    type: "range", min: 0, max: clock.duration, step: 1, value: 0, class: "rbl-slider", "aria-label": "Time",
    oninput: () => clock.set(Number(slider.value)),
  });
  const time = html("output", { class: "rbl-time" });
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
    const round = traces[0]?.roundAt(at) ?? NOBODY;
    const number = round === NOBODY ? "" : ` · round ${round + 1} of ${traces[0].rounds.length}`;
    time.textContent = `${clockText(at)}${number}`;
    slider.setAttribute("aria-valuetext", time.textContent);
    play.textContent = clock.playing ? "❚❚" : "▶";
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
  return html("table", { class: "rbl-figures" }, html("thead", {}, head), html("tbody", {}, ...rows));
}

// Draws what a model says into an element; returns what undoes it.
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
  for (const trace of traces) views.push(new View(trace, clock, shared));
  const name = traces[0]?.scenario ?? "nothing to show";
  const root = html("div", { class: "rbl", tabindex: "0", role: "region", "aria-label": `Rebalances of ${name}` });
  root.append(html("h2", {}, name), controls(clock, views, traces), ...views.map((v) => v.element), figures(model.get("figures")), live);
  for (const error of model.get("errors") ?? []) root.append(html("p", { class: "rbl-error", role: "alert" }, error));
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
    const typing = ["SELECT", "INPUT"].includes(event.target.tagName) && event.key.startsWith("Arrow");
    const pressing = event.target.tagName === "BUTTON" && event.key === " ";
    event.stopPropagation(); // the notebook has keys of its own
    if (typing || pressing || !acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  });
  clock.listen((at, resting) => {
    if (!resting) return;
    model.set("at", at);
    model.set("round", traces[0]?.roundAt(at) ?? NOBODY);
    model.save_changes();
    live.textContent = views.map((view) => `${view.trace.strategy}: ${view.sentence.textContent}`).join(". ");
  });
  element.replaceChildren(root);
  const watch = new ResizeObserver(() => {
    const width = root.clientWidth;
    if (width && width !== views[0]?.seen) views.forEach((view) => { view.seen = width; view.resize(width - 4); });
  });
  watch.observe(root);
  views.forEach((view) => view.resize((root.clientWidth || 904) - 4));
  const moved = () => { if (model.get("at") !== clock.at) clock.set(model.get("at")); };
  model.on("change:at", moved);
  clock.set(model.get("at") ?? 0);
  root.rbl = { clock, views };
  return () => { clock.stop(); watch.disconnect(); model.off("change:at", moved); };
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
      el.replaceChildren(html("pre", { class: "rbl rbl-error", role: "alert" }, `This view failed: ${problem?.stack ?? problem}`));
    }
  };
  again();
  model.on("change:views", again);
  return () => { model.off("change:views", again); undo(); };
}

export default { render };
