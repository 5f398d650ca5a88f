import { describe, expect, test } from "vitest";

import { mosts } from "./idle.js";

/** @import { Series } from "./model" */

describe("the greatest number of each column", () => {
  /** @type {Series<number>} */
  const idle = [[0, 0], [100, 4], [117, 0], [1000, 2]];
  const within = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ width) =>
    [...mosts(idle, 2000, width, (at) => ((at - from) * width) / (to - from))];

  test("has a short stop in two columns at every zoom", () => {
    for (const width of [10, 20, 47, 100])
      expect(within(0, 2000, width).filter((count) => count === 4).length).toBe(2);
  });

  test("is of the time that is shown", () => {
    expect(within(110, 130, 4)).toEqual([4, 4, 0, 0]);
    expect(within(1500, 1600, 2)).toEqual([2, 2]);
  });
});
