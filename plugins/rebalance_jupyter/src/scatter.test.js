import { describe, expect, test } from "vitest";

import { labelPlaces } from "./scatter.js";

const FRAME = { left: 50, right: 330, top: 20, bottom: 190 };

/**
 * @param {[x: number, y: number][]} points
 * @param {string[]} names
 */
function placesOf(points, names) {
  return labelPlaces(points, names, FRAME).map((place) => place && [place.x, place.y, place["text-anchor"]]);
}

describe("the label of a point", () => {
  test("is beside it, to the left where the right has no room", () => {
    expect(placesOf([[100, 100], [320, 100]], ["range", "sticky"])).toEqual([[109, 100, "start"], [311, 100, "end"]]);
  });

  test("is on a line of its own if another point is at the same place", () => {
    expect(placesOf([[100, 100], [100, 100]], ["range", "sticky"])).toEqual([[109, 100, "start"], [91, 100, "end"]]);
    expect(placesOf([[320, 100], [320, 100]], ["range", "sticky"])).toEqual([[311, 100, "end"], [311, 87, "end"]]);
  });

  test("does not touch a point between", () => {
    expect(placesOf([[250, 100], [270, 100], [320, 100]], ["cooperative", "range", "sticky"]))
      .toEqual([[241, 100, "end"], [279, 100, "start"], [311, 87, "end"]]);
  });

  test("is above a point on the axis", () => {
    expect(placesOf([[100, 190]], ["range"])).toEqual([[109, 177, "start"]]);
  });

  test("is missing for a figure that is not known", () => {
    expect(labelPlaces([null, [100, 100]], ["range", "sticky"], FRAME)[0]).toBeNull();
  });
});
