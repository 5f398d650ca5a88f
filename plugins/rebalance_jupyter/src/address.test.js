import { expect, test } from "vitest";

import { parsed, written } from "./address.js";

test("a place is read as it was written", () => {
  const place = { at: 90500, zoom: /** @type {[number, number]} */ ([60000, 120250]), partition: "a&b c-1" };
  expect(written(place)).toBe("#t=90.5&zoom=60-120.25&partition=a%26b%20c-1");
  expect(parsed(written(place))).toEqual(place);
});

test("what is not a time is left out", () => {
  const nothing = { at: null, zoom: null, partition: "" };
  for (const hash of ["", "#", "#t=", "#t=x", "#t=-1", "#zoom=5", "#zoom=9-5", "#zoom=a-b", "#other"]) expect(parsed(hash)).toEqual(nothing);
});

test("all of the time needs no zoom", () => {
  expect(written({ at: 0, zoom: null, partition: "" })).toBe("#t=0");
});
