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
