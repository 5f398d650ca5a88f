// The stretches of time in which nothing happens, which playing skips.

/** @typedef {[from: number, to: number]} Stretch */

const AROUND = 5000; // milliseconds before and after what happens
const LEAST = 300000; // a shorter stretch is not skipped
const PLAY_MS = 20000; // in which what is not skipped is played
const SKIP_MS = 600; // in which a quiet stretch is skipped

/**
 * The quiet stretches between what happens.
 * @param {Stretch[]} happened
 * @param {number} duration
 * @returns {Stretch[]}
 */
export function quietStretches(happened, duration) {
  /** @type {Stretch[]} */
  const quiet = [];
  if (!happened.length) return quiet;
  let at = 0;
  for (const [from, to] of happened.toSorted((a, b) => a[0] - b[0])) {
    if (from - AROUND - at >= LEAST) quiet.push([at, from - AROUND]);
    at = Math.max(at, to + AROUND);
  }
  if (duration - at >= LEAST) quiet.push([at, duration]);
  return quiet;
}

/**
 * The time after a step of playing, and the quiet stretch that the step skips, if any. All is played within a fixed time,
 * and what is skipped within another.
 * @param {number} at
 * @param {number} ms of playing
 * @param {Stretch[]} quiet
 * @param {number} duration
 * @returns {[at: number, skipped: Stretch | null]}
 */
export function played(at, ms, quiet, duration) {
  const skipped = quiet.find(([from, to]) => from <= at && at < to) ?? null;
  if (skipped) {
    const [from, to] = skipped;
    const within = Math.min(SKIP_MS, PLAY_MS / quiet.length);
    return [Math.min(to, at + Math.max(1, (ms * (to - from)) / within)), skipped];
  }
  const rest = quiet.reduce((sum, [from, to]) => sum - (to - from), duration);
  const next = at + Math.max(1, (ms * rest) / PLAY_MS);
  const [begins] = quiet.find(([from]) => from > at) ?? [duration];
  return [Math.min(next, begins), null];
}
