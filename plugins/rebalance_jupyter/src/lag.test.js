import { expect, test } from "vitest";
import { spread } from "./lag.js";

test("labels that overlap are moved apart in the order of their lines", () => {
  expect(spread([50, 52, 51], 100)).toEqual([50, 76, 63]);
});

test("labels stay above the bottom", () => {
  expect(spread([100, 95, 100], 100)).toEqual([87, 74, 100]);
});

test("labels that have room are beside their lines", () => {
  expect(spread([80, 10], 100)).toEqual([80, 10]);
});
