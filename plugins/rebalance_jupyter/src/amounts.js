// Scales of amounts: lag and rate by brightness. They are purple, which is the hue of no member.

import { entry } from "./elements.js";
import { amount, roundStep } from "./text.js";

/** @import { Trace } from "./trace.js" */

const CLASSES = ["#dadaeb", "#bcbddc", "#9e9ac8", "#756bb1", "#4a1486"];
const UNKNOWN = "#ffffff";

export class Scale {
  /**
   * @param {number} most the largest amount
   * @param {string} unit
   */
  constructor(most, unit) {
    this.unit = unit;
    this.step = roundStep(Math.max(most, 1e-9), CLASSES.length);
    this.used = Math.max(1, Math.min(CLASSES.length, Math.ceil(most / this.step)));
  }

  /**
   * The number of the class of an amount, -1 if it is not known.
   * @param {number | null | undefined} value
   */
  classOf(value) {
    return value === null || value === undefined ? -1 : Math.max(0, Math.min(this.used, Math.ceil(value / this.step)) - 1);
  }

  /** @param {number} number */
  colour(number) {
    return number < 0 ? UNKNOWN : CLASSES[number];
  }

  // The entries of a legend: each class with its limits.
  legend() {
    const classes = CLASSES.slice(0, this.used).map((colour, i) =>
      entry(colour, `${i ? "to" : "0 to"} ${amount((i + 1) * this.step)}${i === this.used - 1 ? ` ${this.unit}` : ""}`));
    return [...classes, entry(UNKNOWN, "not known")];
  }
}

/**
 * The scales that all strategies share.
 * @param {Trace[]} traces
 */
export function scales(traces) {
  const most = (/** @type {number} */ a, /** @type {number} */ b) => Math.max(a, b);
  const lags = traces.flatMap((trace) => trace.members.flatMap(({ lag }) => lag.map(([, value]) => value ?? 0)));
  const rates = traces.flatMap((trace) => Object.values(trace.rates).flatMap((steps) => steps.flatMap(([, rate]) => rate)));
  return { lag: new Scale(lags.reduce(most, 0), "records of its owner"), rate: new Scale(rates.reduce(most, 0), "records/s") };
}
