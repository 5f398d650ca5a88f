// How many partitions are not worked on, in columns of pixels.

/** @import { Series } from "./model" */

const LEAST = 2; // columns of a stop, at least

/**
 * The greatest number in each column. A stop has at least LEAST columns, also one without length there.
 * @param {Series<number>} idle
 * @param {number} duration
 * @param {number} width
 * @param {(at: number) => number} column the place of a time, with a fraction
 */
export function mosts(idle, duration, width, column) {
  const most = new Float64Array(width);
  idle.forEach(([at, count], n) => {
    const from = column(at);
    const to = column(idle[n + 1]?.[0] ?? duration);
    if (!count || to < 0 || from > width) return;
    const first = Math.max(0, Math.min(width - LEAST, Math.floor(from)));
    const end = Math.min(width, Math.max(first + LEAST, Math.ceil(to)));
    for (let x = first; x < end; x++) most[x] = Math.max(most[x], count);
  });
  return most;
}
