import { describe, expect, test } from "vitest";

import { aroundRound, opening, stopsOf } from "./stops.js";

test("without rounds there is no stretch", () => expect(aroundRound([], 5)).toBeNull());

test("the round at a time has a margin of a quarter on both sides", () => {
  expect(aroundRound([[1000, 2000], [5000, 5400]], 6000)).toEqual([4900, 5500]);
  expect(aroundRound([[1000, 2000], [5000, 5400]], 4999)).toEqual([750, 2250]);
});

test("a round without length has the least margin", () => expect(aroundRound([[1000, 1000]], 1000)).toEqual([980, 1020]));

test("before the first round it is the first", () => {
  expect(aroundRound([[5000, 5400], [1000, 2000]], 0)).toEqual([750, 2250]);
});

test("rounds of other strategies that overlap it are in the stretch, others are not", () => {
  expect(aroundRound([[1000, 1400], [1200, 1800], [3000, 3400]], 1300)).toEqual([800, 2000]);
});

describe("steps", () => {
  test("are where each round began and ended", () => {
    expect(stopsOf([[[1000, 3000], [5000, 5400]]], 100)).toEqual([1000, 3000, 5000, 5400]);
  });

  test("that are nearly the same are one, the later", () => {
    expect(stopsOf([[[1000, 1020], [5000, 5000]]], 0)).toEqual([1020, 5000]);
    expect(stopsOf([[[1000, 3000]], [[1005, 3049]]], 0)).toEqual([1005, 3049]);
  });

  test("of several strategies are one if they are near each other", () => {
    expect(stopsOf([[[1000, 3000]], [[1300, 4000]]], 400)).toEqual([1300, 3000, 4000]);
  });

  test("of one strategy are never joined for being near", () => {
    expect(stopsOf([[[1000, 1100], [1300, 1400]]], 10000)).toEqual([1000, 1100, 1300, 1400]);
    expect(stopsOf([[[1000, 1100], [1300, 1400]], [[1010, 1100]]], 10000)).toEqual([1010, 1100, 1300, 1400]);
  });
});

describe("a view opens", () => {
  const minutes = 4 * 60_000;

  test("with the round at a time and what is near it", () => {
    expect(opening([[60_000, 62_000], [62_000, 64_000], [60_000, 60_000], [150_000, 195_000]], 62_000, minutes)).toEqual([59_000, 65_000]);
  });

  test("with what is near it on both sides, also if it is listed later", () => {
    expect(opening([[62_000, 64_000], [60_000, 60_000], [58_000, 58_000]], 62_000, minutes)).toEqual([56_500, 65_500]);
  });

  test("with the whole time if that would be most of it, or without rounds", () => {
    expect(opening([[60_000, 150_000]], 60_000, minutes)).toEqual([0, minutes]);
    expect(opening([], 0, minutes)).toEqual([0, minutes]);
    expect(opening([[5_000, 6_000]], 9_000, minutes)).toEqual([0, minutes]);
  });
});
