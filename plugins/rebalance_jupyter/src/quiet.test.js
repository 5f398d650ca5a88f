import { describe, expect, test } from "vitest";

import { played, quietStretches } from "./quiet.js";

const HOUR = 3600000;

describe("quiet stretches", () => {
  test("are between what happens, with a margin on both sides", () => {
    expect(quietStretches([[HOUR, HOUR + 4000], [3 * HOUR, 3 * HOUR]], 4 * HOUR)).toEqual([
      [0, HOUR - 5000], [HOUR + 9000, 3 * HOUR - 5000], [3 * HOUR + 5000, 4 * HOUR],
    ]);
  });

  test("are not short", () => expect(quietStretches([[30000, 33000], [200000, 201000]], 400000)).toEqual([]));

  test("do not begin before something longer has ended", () => {
    expect(quietStretches([[0, 2 * HOUR], [1000, 2000]], 3 * HOUR)).toEqual([[2 * HOUR + 5000, 3 * HOUR]]);
  });

  test("are none where nothing happens at all", () => expect(quietStretches([], HOUR)).toEqual([]));
});

/**
 * Play to the end in steps of 20 ms; the milliseconds that it took.
 * @param {[number, number][]} quiet
 * @param {number} duration
 */
function tookToPlay(quiet, duration) {
  let took = 0;
  for (let at = 0; at < duration; took += 20) [at] = played(at, 20, quiet, duration);
  return took;
}

describe("playing", () => {
  test("takes the same time for every duration", () => {
    expect(tookToPlay([], 60000)).toBeCloseTo(20000, -2);
    expect(tookToPlay([], 24 * HOUR)).toBeCloseTo(20000, -2);
  });

  test("skips what is quiet in a short time", () => {
    expect(tookToPlay([[10000, HOUR], [HOUR + 10000, 9 * HOUR]], 9 * HOUR + 10000)).toBeCloseTo(21250, -2);
  });

  test("takes at most twice the time however much is skipped", () => {
    const quiet = Array.from({ length: 200 }, (_, i) => /** @type {[number, number]} */ ([i * HOUR + 60000, (i + 1) * HOUR]));
    expect(tookToPlay(quiet, 200 * HOUR)).toBeLessThan(46000);
  });

  test("says what it skips, and stops at its end", () => {
    expect(played(0, 100, [[10, HOUR]], 2 * HOUR)).toEqual([10, null]);
    expect(played(HOUR - 1, 100, [[10, HOUR]], 2 * HOUR)).toEqual([HOUR, [10, HOUR]]);
  });
});
