import { describe, expect, test } from "vitest";

import { leasts, stepAt, workedOn } from "./worked.js";

/** @import { Trace } from "./trace.js" */

/**
 * @param {number[][]} spans partition, owner, from, to; in order
 * @param {number[][][]} paused of each member
 */
function traceOf(spans, paused = [[], []]) {
  const partitions = spans.length ? Math.max(...spans.map(([p]) => p)) + 1 : 0;
  const first = Array.from({ length: partitions + 1 }, (_, p) => spans.filter(([q]) => q < p).length);
  const trace = { spans: Int32Array.from(spans.flat()), first, partitions, paused, overlaps: true };
  return /** @type {Trace} */ (/** @type {unknown} */ (trace));
}

describe("the number of partitions that are being worked on", () => {
  test("falls while they have no owner", () => {
    const steps = workedOn(traceOf([[0, 0, 5, 40], [0, 1, 57, 90], [1, 0, 5, 40], [1, 0, 50, 90]]));
    expect(steps).toEqual({ times: [0, 5, 40, 50, 57, 90], counts: [0, 2, 0, 1, 2, 0] });
  });

  test("stays when a partition is handed over without a gap", () => {
    expect(workedOn(traceOf([[0, 0, 0, 40], [0, 1, 40, 90]]))).toEqual({ times: [0, 90], counts: [1, 0] });
  });

  test("falls while the owner is paused, unless another owner works", () => {
    const paused = [[[20, 30]], []];
    expect(workedOn(traceOf([[0, 0, 0, 90]], paused)).counts).toEqual([1, 0, 1, 0]);
    expect(workedOn(traceOf([[0, 0, 0, 90], [0, 1, 10, 50]], paused)).counts).toEqual([1, 0]);
  });

  test("is none without partitions", () => {
    expect(workedOn(traceOf([]))).toEqual({ times: [0], counts: [0] });
  });
});

describe("the least number of each column", () => {
  const steps = { times: [0, 100, 117, 1000], counts: [4, 0, 4, 2] };

  test("has a short fall in two columns at every zoom", () => {
    for (const width of [10, 20, 47, 100])
      expect([...leasts(steps, 0, 2000, width)].filter((count) => count === 0).length).toBe(2);
  });

  test("is of the time that is shown", () => {
    expect([...leasts(steps, 110, 130, 4)]).toEqual([0, 0, 4, 4]);
    expect([...leasts(steps, 1500, 1600, 2)]).toEqual([2, 2]);
  });
});

test("a step is found by its time", () => {
  expect([0, 99, 100, 5000].map((at) => stepAt([0, 100, 200], at))).toEqual([0, 0, 1, 2]);
});
