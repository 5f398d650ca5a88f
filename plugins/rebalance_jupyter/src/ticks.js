// The times that an axis names.

import { clockText } from "./text.js";

const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200].map((seconds) => 1000 * seconds),
];
const DAY = 86400000;
const LEAST_STEP = 70; // pixels between two times
const LEAST_FINE = 90; // between two times with milliseconds

/**
 * Round times from one to another with their texts.
 * @param {number} from
 * @param {number} to
 * @param {number} scale pixels per millisecond
 */
export function ticks(from, to, scale) {
  const step = STEPS.find((each) => each * scale >= (each < 1000 ? LEAST_FINE : LEAST_STEP)) ?? DAY;
  /** @type {import("./model").Series<string>} */
  const named = [];
  for (let at = step * Math.ceil(from / step); at <= to; at += step)
    named.push([at, step < 1000 ? clockText(at) : clockText(at).slice(0, -4)]);
  return named;
}
