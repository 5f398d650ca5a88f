// How states are drawn. Members own the hues, so that a state is a brightness and a hatching: of the hue of a member in
// its lane, of grey elsewhere.

import { channels } from "./colours.js";
import { svg } from "./elements.js";

const TILE = 12; // pixels after which a pattern repeats
const INK = "#333333";
const PLAIN = "#a8a8a8"; // of states that are not those of a member

/** @typedef {"rest" | "round" | "wait" | "begin" | "idle" | "paused" | "ended" | "over" | "other"} Pattern */

/** @type {Record<Pattern, { pale: number, lines: string }>} how much white is mixed in, and the lines on it */
const PATTERNS = {
  rest: { pale: 0, lines: "" },
  round: { pale: 0.6, lines: "M1.5 0V12M5.5 0V12M9.5 0V12" },
  wait: { pale: 0.6, lines: "M0 1.5H12M0 5.5H12M0 9.5H12" },
  begin: { pale: 0.6, lines: "M1 1.5h2M7 1.5h2M4 4.5h2M10 4.5h2M1 7.5h2M7 7.5h2M4 10.5h2M10 10.5h2" },
  idle: { pale: 0.75, lines: "" },
  paused: { pale: 0, lines: "M-1 7L7 -1M-1 13L13 -1M5 13L13 5" },
  ended: { pale: 0.9, lines: "M-1 7L7 -1M-1 13L13 -1M5 13L13 5M-1 5L7 13M-1 -1L13 13M5 -1L13 7" },
  over: { pale: 0, lines: "M0 1.5H12M0 4.5H12M0 7.5H12M0 10.5H12M1.5 0V12M4.5 0V12M7.5 0V12M10.5 0V12" },
  other: { pale: 0.6, lines: "M0 5.5H12M5.5 0V12" },
};

/** @type {Record<string, Pattern | null>} */
const OF_MEMBERS = {
  outside: null,
  connecting: "begin",
  starting: "begin",
  joining: "round",
  rebalancing: "round",
  looking: "round",
  reconciling: "round",
  acknowledging: "wait",
  waiting: "wait",
  "backing-off": "wait",
  stable: "rest",
  resting: "rest",
  "without-share": "idle",
  paused: "paused",
  crashed: "ended",
  stopped: null,
};

/** @type {Record<import("./model").Kind, Pattern | null>} by what a state of the group is to the protocol */
export const OF_KINDS = { vacant: null, begun: "round", between: "wait", resting: "rest", ended: "ended" };

/** @param {string} state */
export function patternOf(state) {
  return state in OF_MEMBERS ? OF_MEMBERS[state] : "other";
}

/**
 * States in the order of the legend: those that all protocols have, then others.
 * @param {Set<string>} seen
 */
export function orderOfStates(seen) {
  const known = Object.keys(OF_MEMBERS).filter((state) => seen.has(state));
  return [...new Set([...known, ...seen])];
}

/**
 * The colour behind the lines of a pattern.
 * @param {Pattern} pattern
 * @param {string} hue
 */
export function ground(pattern, hue = PLAIN) {
  const { pale } = PATTERNS[pattern];
  return `rgb(${channels(hue).map((part) => Math.round(part + (255 - part) * pale)).join(" ")})`;
}

/**
 * What to fill with on a canvas.
 * @param {CanvasRenderingContext2D} context
 * @param {Pattern} pattern
 * @param {string} hue
 * @param {number} ratio the number of pixels of the device for one of the page
 */
export function fillOf(context, pattern, hue, ratio) {
  const { lines } = PATTERNS[pattern];
  if (!lines) return ground(pattern, hue);
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(TILE * ratio);
  const brush = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  brush.scale(tile.width / TILE, tile.width / TILE);
  brush.fillStyle = ground(pattern, hue);
  brush.fillRect(0, 0, TILE, TILE);
  brush.strokeStyle = INK;
  brush.stroke(new Path2D(lines));
  const made = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
  made.setTransform(new DOMMatrix().scale(TILE / tile.width));
  return made;
}

/**
 * The drawing of a pattern in a square of SVG.
 * @param {Pattern} pattern
 */
function square(pattern) {
  return [
    svg("rect", { width: TILE, height: TILE, fill: ground(pattern) }),
    svg("path", { d: PATTERNS[pattern].lines, stroke: INK, fill: "none" }),
  ];
}

/**
 * A pattern that shapes in SVG can be filled with, by its id.
 * @param {string} id
 * @param {Pattern} pattern
 */
export function definition(id, pattern) {
  return svg("pattern", { id, width: TILE, height: TILE, patternUnits: "userSpaceOnUse" }, ...square(pattern));
}

/**
 * A pattern for a legend.
 * @param {Pattern} pattern
 */
export function swatch(pattern) {
  return svg("svg", { class: "rbl-swatch", "aria-hidden": "true", width: TILE, height: TILE, viewBox: `0 0 ${TILE} ${TILE}`, "data-pattern": pattern }, ...square(pattern));
}
