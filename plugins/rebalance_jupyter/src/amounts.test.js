import { expect, test } from "vitest";
import { Scale } from "./amounts.js";

test("classes have round limits, and a limit belongs to the class below it", () => {
  const scale = new Scale(430, "records/s");
  expect(scale.step).toBe(100);
  expect([0, 100, 101, 430].map((value) => scale.classOf(value))).toEqual([0, 0, 1, 4]);
});

test("an amount that is not known has no class", () => {
  expect([null, undefined].map((value) => new Scale(10, "").classOf(value))).toEqual([-1, -1]);
});

test("a larger amount is darker", () => {
  const scale = new Scale(5, "");
  const light = [0, 1, 2, 3, 4].map((number) => parseInt(scale.colour(number).slice(1, 3), 16));
  expect(light).toEqual(light.toSorted((a, b) => b - a));
});

test("without any amount there is one class", () => {
  expect(new Scale(0, "").classOf(0)).toBe(0);
});
