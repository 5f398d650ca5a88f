// The buttons above the views.

import { html } from "./elements.js";
import { clockText } from "./text.js";

const KEYS = [
  ["space", "play or pause"],
  ["left, right", "to where a round began or ended"],
  ["Home, End", "to the beginning or the end"],
  ["drag, wheel, W, S", "zoom; the wheel after a click or with Ctrl"],
  ["A, D, Shift and wheel", "move the window"],
  ["Z", "zoom to the round at the cursor"],
  ["0, double click", "show all"],
  ["N", "add a note at the cursor"],
  ["up, down, click", "select a partition"],
  ["Esc", "undo the selection, then the zoom"],
];

/** @import { Lanes } from "./lanes.js" */

/**
 * @param {import("./clock.js").Clock} clock
 * @param {import("./view.js").View[]} views
 * @param {import("./overview.js").Overview} overview
 * @param {{ note: () => void, save: (kind: string) => void, colour: (what: Lanes["colouring"]) => void }} acts
 */
export function controls(clock, views, overview, acts) {
  /** @type {(label: string, hint: string, act: () => void) => HTMLButtonElement} */
  const button = (label, hint, act) => html("button", { type: "button", title: hint, "aria-label": hint, onclick: act }, label);
  const play = button("▶", "Play or pause (space)", () => clock.toggle());
  const { slider } = overview;
  const keys = html("dl", { class: "rbl-keys", hidden: "" }, ...KEYS.flatMap(([key, act]) => [html("dt", {}, key), html("dd", {}, act)]));
  const help = button("?", "Keys", () => {
    keys.hidden = !keys.hidden;
    help.setAttribute("aria-expanded", String(!keys.hidden));
  });
  help.setAttribute("aria-expanded", "false");
  const time = html("span", { class: "rbl-time" });
  const grouped = html("select", {
    "aria-label": "Lanes grouped by", onchange: () => views.forEach((view) => view.lanes.groupBy(/** @type {Lanes["by"]} */ (grouped.value))),
  });
  grouped.append(html("option", { value: "topic" }, "by topic"), html("option", { value: "member" }, "by member"));
  const coloured = html("select", {
    "aria-label": "Lanes coloured by", onchange: () => acts.colour(/** @type {Lanes["colouring"]} */ (coloured.value)),
  });
  for (const what of ["owner", "lag", "rate"]) coloured.append(html("option", { value: what }, `colours: ${what === "owner" && !views.some(({ trace }) => trace.coloursAreMembers) ? "changes" : what}`));
  clock.listen((at) => {
    time.textContent = clockText(at);
    slider.setAttribute("aria-valuetext", [time.textContent, ...views.map((view) => view.round.heading.textContent)].join(", "));
    play.textContent = clock.playing ? "❚❚" : "▶";
    play.setAttribute("aria-pressed", clock.playing);
  });
  return html("div", { class: "rbl-controls", role: "group", "aria-label": "Time" },
    button("|◀", "To the beginning (Home)", () => { clock.pause(); clock.set(0); }),
    button("◁", "One step back (left arrow)", () => clock.step(-1)),
    play,
    button("▷", "One step on (right arrow)", () => clock.step(1)),
    button("▶|", "To the end (End)", () => { clock.pause(); clock.set(clock.duration); }),
    time, grouped, coloured,
    button("⚑", "Add a note at the cursor (N)", acts.note),
    button("SVG", "Save what one sees as SVG", () => acts.save("svg")),
    button("PNG", "Save what one sees as PNG", () => acts.save("png")),
    help, overview.element, keys);
}
