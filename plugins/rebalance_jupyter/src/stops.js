// The times of rounds that are of interest.

/** @typedef {[from: number, to: number]} Stretch */

/**
 * The stretch of time of the round at a time, with a margin. It contains the rounds of all strategies that overlap it.
 * @param {[began: number, ended: number][]} rounds
 * @param {number} at
 * @returns {Stretch | null}
 */
export function aroundRound(rounds, at) {
  if (!rounds.length) return null;
  const begun = rounds.filter(([began]) => began <= at);
  const [latest] = (begun.length ? begun : rounds).toSorted((a, b) => (begun.length ? b[0] - a[0] : a[0] - b[0]));
  let [from, to] = latest;
  for (const [began, ended] of rounds)
    if (began <= latest[1] && ended >= latest[0]) [from, to] = [Math.min(from, began), Math.max(to, ended)];
  const margin = Math.max(20, (to - from) / 4);
  return [from - margin, to + margin];
}

const MOST = 1 / 3; // of the duration that a view opens with, unless it opens with all of it
const LEAD = 0.25; // the part of what is shown before what happens first, and after it
const TOGETHER = 3000; // milliseconds between what is shown together, at least

/**
 * The stretch of time that a view opens with: what happens first, and what is near it. It is the whole time if that is more
 * than a part of it.
 * @param {Stretch[]} happened
 * @param {number} at where the first one begins
 * @param {number} duration
 * @returns {Stretch}
 */
export function opening(happened, at, duration) {
  const first = happened.find(([begins, ends]) => begins <= at && at <= ends && begins < ends);
  if (!first) return [0, duration];
  let [from, to] = first;
  const near = Math.max(TOGETHER, to - from);
  for (let grows = true; grows;) {
    const [left, right] = [from, to];
    for (const [begins, ends] of happened)
      if (begins <= right + near && ends >= left - near) [from, to] = [Math.min(from, begins), Math.max(to, ends)];
    grows = from < left || to > right;
  }
  const margin = Math.max(500, LEAD * (to - from));
  return to - from + 2 * margin > MOST * duration ? [0, duration] : [Math.max(0, from - margin), Math.min(duration, to + margin)];
}

const SAME = 50; // milliseconds between times that are one step

/**
 * The times at which rounds began and ended, in order. Of what several strategies do within a time, only the last has a
 * step; a strategy has one for each begin and each end, unless they are nearly the same.
 * @param {[began: number, ended: number][][]} strategies
 * @param {number} apart
 */
export function stopsOf(strategies, apart) {
  const times = [...together(strategies, 0, apart), ...together(strategies, 1, apart)].sort((a, b) => a - b);
  /** @type {number[]} */
  const stops = [];
  let first = -Infinity;
  for (const at of times) {
    if (at - first < SAME) stops[stops.length - 1] = at;
    else {
      stops.push(at);
      first = at;
    }
  }
  return stops;
}

/**
 * @param {[began: number, ended: number][][]} strategies
 * @param {0 | 1} end the begins or the ends
 * @param {number} apart
 */
function together(strategies, end, apart) {
  const times = strategies.flatMap((rounds, number) => rounds.map((round) => ({ at: round[end], number })));
  /** @type {number[]} */
  const merged = [];
  let first = -Infinity;
  let seen = new Set();
  for (const { at, number } of times.sort((a, b) => a.at - b.at)) {
    if (at - first <= apart && !seen.has(number)) merged[merged.length - 1] = at;
    else {
      merged.push(at);
      first = at;
      seen = new Set();
    }
    seen.add(number);
  }
  return merged;
}
