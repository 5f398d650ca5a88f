import { expect, test } from "vitest";

import { ticks } from "./ticks.js";

test("a whole run has round times", () => {
  expect(ticks(0, 180_000, 0.003)).toEqual([
    [0, "0:00:00"], [30_000, "0:00:30"], [60_000, "0:01:00"], [90_000, "0:01:30"], [120_000, "0:02:00"],
    [150_000, "0:02:30"], [180_000, "0:03:00"],
  ]);
});

test("a window between two times of the axis names the times in it", () => {
  expect(ticks(61_000, 64_500, 0.1)).toEqual([[61_000, "0:01:01"], [62_000, "0:01:02"], [63_000, "0:01:03"], [64_000, "0:01:04"]]);
});

test("a short window has milliseconds", () => {
  expect(ticks(1_003, 1_012, 20)).toEqual([[1_005, "0:00:01.005"], [1_010, "0:00:01.010"]]);
});

test.each([10 ** -6, 0.0001, 0.001, 0.01, 0.1, 1, 10])("texts have room at %f pixels per millisecond", (scale) => {
  const times = ticks(0, 600 / scale, scale).map(([at]) => at);
  for (const [n, at] of times.slice(1).entries()) expect((at - times[n]) * scale).toBeGreaterThanOrEqual(70);
});
