// How many partitions are being worked on: owned by a member that is not paused or cut off.

/** @import { Trace } from "./trace.js" */

/** @typedef {{ times: number[], counts: number[] }} Steps Times in order, and the number from each of them on. */

/**
 * The number over time.
 * @param {Trace} trace
 * @returns {Steps}
 */
export function workedOn(trace) {
  /** @type {number[]} */
  const begins = [];
  /** @type {number[]} */
  const ends = [];
  for (let p = 0; p < trace.partitions; p++) {
    let reached = -1;
    for (const [from, to] of pieces(trace, p)) {
      if (from > reached) {
        begins.push(from);
        ends.push(to);
      } else if (to > reached) ends[ends.length - 1] = to;
      reached = Math.max(reached, to);
    }
  }
  return stepsOf(Int32Array.from(begins).sort(), Int32Array.from(ends).sort());
}

/**
 * @param {Int32Array} begins
 * @param {Int32Array} ends
 */
function stepsOf(begins, ends) {
  const [times, counts] = [[0], [0]];
  for (let i = 0, j = 0; j < ends.length;) {
    const at = i < begins.length ? Math.min(begins[i], ends[j]) : ends[j];
    while (i < begins.length && begins[i] === at) i += 1;
    while (j < ends.length && ends[j] === at) j += 1;
    if (at === times.at(-1)) counts[counts.length - 1] = i - j;
    else if (i - j !== counts.at(-1)) {
      times.push(at);
      counts.push(i - j);
    }
  }
  return { times, counts };
}

/**
 * The parts of a partition's spans in which their owner works, in order of time.
 * @param {Trace} trace
 * @param {number} partition
 */
function pieces(trace, partition) {
  const found = [];
  for (let i = trace.first[partition]; i < trace.first[partition + 1]; i++) {
    const [, owner, from, to] = trace.spans.subarray(4 * i, 4 * i + 4);
    let at = from;
    for (const [halted, resumed] of trace.paused[owner]) {
      if (resumed <= at || halted >= to) continue;
      if (halted > at) found.push([at, halted]);
      at = resumed;
    }
    if (at < to) found.push([at, to]);
  }
  return trace.overlaps ? found.sort((a, b) => a[0] - b[0]) : found;
}

/**
 * The index of the last step at or before a time.
 * @param {number[]} times
 * @param {number} at
 */
export function stepAt(times, at) {
  let low = 0;
  let high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= at) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * The least number in each column of a plot that shows the time from one to another. A fall is at least two columns wide.
 * @param {Steps} steps
 * @param {number} from
 * @param {number} to
 * @param {number} width
 */
export function leasts({ times, counts }, from, to, width) {
  const least = new Float64Array(width).fill(Infinity);
  const column = (/** @type {number} */ at) => Math.max(0, Math.min(width - 1, Math.floor(((at - from) * width) / (to - from))));
  for (let i = stepAt(times, from); i < times.length && times[i] < to; i++) {
    const last = i + 1 < times.length ? column(times[i + 1]) : width - 1;
    for (let x = column(times[i]); x <= last; x++) least[x] = Math.min(least[x], counts[i]);
  }
  for (let x = width - 1; x > 0; x--)
    if (least[x - 1] < least[x] && !(least[x - 2] <= least[x - 1])) least[x] = least[x - 1];
  return least;
}
