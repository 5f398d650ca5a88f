import { describe, expect, test } from "vitest";

import { leasts } from "./worked.js";

/** @import { Series } from "./model" */

describe("the least number of each column", () => {
  /** @type {Series<number>} */
  const steps = [[0, 4], [100, 0], [117, 4], [1000, 2]];

  test("has a short fall in two columns at every zoom", () => {
    for (const width of [10, 20, 47, 100])
      expect([...leasts(steps, 0, 2000, width)].filter((count) => count === 0).length).toBe(2);
  });

  test("is of the time that is shown", () => {
    expect([...leasts(steps, 110, 130, 4)]).toEqual([0, 0, 4, 4]);
    expect([...leasts(steps, 1500, 1600, 2)]).toEqual([2, 2]);
  });
});
