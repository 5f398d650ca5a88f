// Traces of rebalances on one time axis: ownership, members, coordinator, and the round under the cursor.
// All data are in the model.

import { follow } from "./address.js";
import { scales } from "./amounts.js";
import { Clock } from "./clock.js";
import { controls } from "./controls.js";
import { html } from "./elements.js";
import { Events } from "./events.js";
import { gestures, notes } from "./gestures.js";
import { save } from "./image.js";
import { Lag } from "./lag.js";
import { Lens } from "./lens.js";
import { Overview } from "./overview.js";
import { Pinned, pinned } from "./pinned.js";
import { Pointer } from "./pointer.js";
import { quietStretches } from "./quiet.js";
import { receive } from "./receiving.js";
import { aroundRound, opening, stopsOf } from "./stops.js";
import { Verdict } from "./table.js";
import { lasting } from "./text.js";
import { NOBODY, Trace } from "./trace.js";
import { View } from "./view.js";

const SETTLED = 300; // milliseconds after the last zoom
const NEAR = 3; // pixels between rounds of several strategies that have one step

/** @import { Model } from "./model" */

/**
 * Draws a model into an element and returns a function that removes it.
 * @param {Model} model
 * @param {HTMLElement} element
 */
function draw(model, element) {
  const traces = model.get("views").map((view) => new Trace(view));
  const duration = Math.max(1, ...traces.map((trace) => trace.duration));
  const strategies = traces.map((trace) => trace.times);
  const rounds = strategies.flat();
  const marks = traces.flatMap((trace) => trace.marks.map(([at]) => /** @type {[number, number]} */ ([at, at])));
  const clock = new Clock(duration, [], quietStretches([...rounds, ...marks], duration));
  const lens = new Lens(duration);
  const restep = () => clock.stopAt(stopsOf(strategies, NEAR / lens.scale));
  restep();
  lens.listen(restep);
  clock.listen((at) => lens.follow(at));
  const live = html("div", { class: "rbl-live", "aria-live": "polite" });
  /** @type {View[]} */
  const views = [];
  const pointer = new Pointer(lens);
  let address = () => {}; // writes it, if the page has one of its own
  /** @type {import("./view.js").Shared} */
  const shared = {
    pointer,
    scales: scales(traces),
    hover: (name) => views.forEach((view) => view.highlight(name)),
    selected: (name) => {
      views.forEach((view) => view.lanes.show(name));
      model.set("selected", name);
      model.save_changes();
      address();
    },
    views: traces.length,
  };
  const scenarios = [...new Set(traces.map((trace) => trace.scenario))];
  traces.forEach((trace, i) => {
    const strategy = model.get("figures")?.strategies?.[i] ?? trace.strategy; // a repeated name has a number
    views.push(new View(trace, clock, lens, shared, scenarios.length > 1 ? `${strategy} on ${trace.scenario}` : strategy));
  });
  const name = scenarios.join(", ") || "nothing to show";
  const root = html("div", { class: "rbl", tabindex: "0", role: "region", "aria-label": `Rebalances of ${name}` });
  const failures = (model.get("errors") ?? []).map((error) => html("p", { class: "rbl-error", role: "alert" }, error));
  const figures = model.get("figures") ?? {};
  for (const { more } of views) // the members of all strategies are shown together
    more.addEventListener("toggle", () => views.forEach((view) => { view.more.open = more.open; }));
  const verdict = figures.groups?.length ? [new Verdict(figures, (i) => views[i]?.show())] : [];
  const legend = html("div", { class: "rbl-legend" });
  const explain = () => {
    const entries = new Map(views.flatMap(({ lanes }) => lanes.entries()).map((each) => [each.textContent, each]));
    legend.replaceChildren(...entries.values());
  };
  explain();
  const overview = new Overview({ views, clock, lens });
  const remarks = new Pinned(model, clock);
  const noted = html("div", { class: "rbl-note", role: "status", hidden: "" });
  const note = notes(noted);
  const events = new Events({ views, lens, pointer, pinned: () => pinned(model) });
  const lag = new Lag({ views, clock, lens, pointer, events, counted: verdict.length > 0 });
  const bar = controls(clock, views, overview, {
    note: () => remarks.open(),
    colour: (what) => {
      views.forEach((view) => view.lanes.colourBy(what));
      explain();
    },
    save: (kind) => void save(root, name, kind).catch((problem) => note(`not saved: ${problem}`)),
  });
  const head = html("div", { class: "rbl-head" }, html("h2", {}, name), html("span", { class: "rbl-workload" }, figures.workload ?? ""));
  root.append(head, ...failures, ...verdict.map((each) => each.element),
    html("div", { class: "rbl-top" }, bar, events.element), remarks.element, lag.element,
    legend, ...views.map((view) => view.element), pointer.tip, live);
  // JupyterLab and Notebook handle keys first, except in elements with this attribute. The focused element needs
  // the attribute too. Their chords, such as the one that saves, still work.
  /** @param {KeyboardEvent} event */
  const claim = (event) => {
    const target = /** @type {Element} */ (event.target);
    if (!root.contains(target)) return;
    for (const each of [root, target]) each.toggleAttribute("data-lm-suppress-shortcuts", !isChord(event));
  };
  window.addEventListener("keydown", claim, true);
  const middle = () => (lens.shows(clock.at) ? clock.at : undefined); // of a zoom by key
  root.addEventListener("keydown", (event) => {
    /** @type {Record<string, () => void>} */
    const acts = {
      " ": () => clock.toggle(),
      ArrowRight: () => clock.step(1),
      ArrowLeft: () => clock.step(-1),
      Home: () => { clock.pause(); clock.set(0); },
      End: () => { clock.pause(); clock.set(clock.duration); },
      w: () => lens.zoomBy(0.5, middle()),
      s: () => lens.zoomBy(2, middle()),
      a: () => lens.pan(-0.25),
      d: () => lens.pan(0.25),
      z: () => {
        const around = aroundRound(rounds, clock.at);
        if (around) lens.zoom(...around);
      },
      n: () => remarks.open(),
      0: () => lens.all(),
      Escape: () => { if (model.get("selected")) shared.selected(""); else lens.all(); },
      ArrowDown: () => views[0]?.lanes.select(views[0].lanes.neighbour(1)),
      ArrowUp: () => views[0]?.lanes.select(views[0].lanes.neighbour(-1)),
    };
    if (isChord(event)) return;
    event.stopPropagation(); // the surrounding application has keys of its own
    const { tagName } = /** @type {Element} */ (event.target);
    const choosing = tagName === "SELECT";
    const pressing = tagName === "BUTTON" && event.key === " ";
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (choosing || pressing || !act) return;
    event.preventDefault();
    act();
  });
  bar.append(noted);
  gestures(root, { lens, clock, views, note });
  /** @type {typeof clock.skipped} */
  let skipped = null;
  clock.listen(() => {
    if (clock.skipped && clock.skipped !== skipped) note(`skipping ${lasting(clock.skipped[1] - clock.skipped[0])}`);
    skipped = clock.skipped;
  });
  lens.listen(() => [events, lag, ...views].forEach((each) => each.draw()));
  clock.listen((at, resting) => {
    if (!resting) return;
    model.set("at", at);
    model.set("round", traces[0]?.roundAt(at) ?? NOBODY);
    model.save_changes();
    live.textContent = views.map((view) => `${view.name}: ${view.round.sentence.textContent}`).join(". ");
  });
  element.replaceChildren(root);
  const fit = () => {
    const width = root.clientWidth || 904; // not in the page yet; it is resized when it is added
    if (lens.resize(width - 4) || !views[0]?.drawn) [overview, events, lag, ...views].forEach((each) => each.draw());
    for (const each of root.querySelectorAll(".rbl-wide")) { // keys scroll to what is out of sight
      if (each.scrollWidth > each.clientWidth) each.setAttribute("tabindex", "0");
      else each.removeAttribute("tabindex");
    }
  };
  const watch = new ResizeObserver(fit);
  watch.observe(root);
  fit();
  const moved = () => { if (model.get("at") !== clock.at) clock.set(model.get("at")); };
  model.on("change:at", moved);
  const repinned = () => { remarks.show(); events.draw(); };
  model.on("change:notes", repinned);
  clock.set(model.get("at") ?? 0);
  const causes = traces.flatMap(({ marks: listed, times }) => times.map(([began]) =>
    /** @type {[number, number]} */ ([listed.findLast(([at]) => at <= began)?.[0] ?? began, began])));
  const given = model.get("zoom");
  const first = opening([...rounds, ...marks, ...causes], clock.at, duration);
  lens.zoom(...(given.length ? /** @type {[number, number]} */ (given) : first));
  const zoomed = () => {
    const [from, to] = model.get("zoom");
    if (to !== undefined && Math.abs(from - lens.from) + Math.abs(to - lens.to) >= 2) lens.zoom(from, to); // not its own
  };
  model.on("change:zoom", zoomed);
  const chosen = () => views.forEach((view) => view.lanes.show(model.get("selected")));
  model.on("change:selected", chosen);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon = undefined;
  lens.listen(() => {
    clearTimeout(soon);
    soon = setTimeout(() => {
      model.set("zoom", [Math.round(lens.from), Math.round(lens.to)]);
      model.save_changes();
    }, SETTLED);
  });
  if (model.get("address")) {
    const select = (/** @type {string} */ partition) => {
      if (traces.some((trace) => trace.numberOf(partition) !== NOBODY)) shared.selected(partition);
    };
    address = follow({ clock, lens, selected: () => model.get("selected"), select });
  }
  Object.assign(root, { rbl: { clock, lens, views, model } });
  return () => {
    clock.stop();
    lens.stop();
    watch.disconnect();
    model.off("change:at", moved);
    model.off("change:notes", repinned);
    model.off("change:zoom", zoomed);
    model.off("change:selected", chosen);
    clearTimeout(soon);
    window.removeEventListener("keydown", claim, true);
  };
}

/** @param {KeyboardEvent} event */
function isChord(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

/** @param {{ model: Model, el: HTMLElement }} given */
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
  /** @type {`change:${"views" | "figures" | "errors"}`[]} */
  const watched = ["change:views", "change:figures", "change:errors"];
  again();
  for (const change of watched) model.on(change, soon);
  receive(model).catch(() => {}); // of a host that is not Jupyter
  return () => {
    for (const change of watched) model.off(change, soon);
    undo();
  };
}

export default { render };
