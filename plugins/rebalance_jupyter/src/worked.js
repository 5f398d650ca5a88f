// How many partitions are being worked on.

import { countUntil } from "./trace.js";

/** @import { Series } from "./model" */

/**
 * The least number in each column of a plot that shows the time from one to another. A fall is at least two columns wide.
 * @param {Series<number>} series
 * @param {number} from
 * @param {number} to
 * @param {number} width
 */
export function leasts(series, from, to, width) {
  const least = new Float64Array(width).fill(Infinity);
  const column = (/** @type {number} */ at) => Math.max(0, Math.min(width - 1, Math.floor(((at - from) * width) / (to - from))));
  for (let i = Math.max(0, countUntil(series, from) - 1); i < series.length && series[i][0] < to; i++) {
    const last = i + 1 < series.length ? column(series[i + 1][0]) : width - 1;
    for (let x = column(series[i][0]); x <= last; x++) least[x] = Math.min(least[x], series[i][1]);
  }
  for (let x = width - 1; x > 0; x--)
    if (least[x - 1] < least[x] && !(least[x - 2] <= least[x - 1])) least[x] = least[x - 1];
  return least;
}
