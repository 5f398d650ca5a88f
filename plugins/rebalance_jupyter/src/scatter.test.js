import { describe, expect, test } from "vitest";

import { labelPlaces } from "./scatter.js";

const FRAME = { left: 50, right: 330, top: 20, bottom: 190 };

/**
 * @param {[x: number, y: number][]} points
 * @param {string[]} names
 */
function placesOf(points, names) {
  return labelPlaces(points, names, FRAME).map((place) => place && [place.x, place.y, place.far]);
}

describe("the label of a point", () => {
  test("is above it, also where another point is beside it", () => {
    expect(placesOf([[100, 100], [150, 100]], ["range", "sticky"])).toEqual([[100, 87, false], [150, 87, false]]);
  });

  test("is moved into the frame", () => {
    expect(placesOf([[52, 100], [328, 100]], ["range", "sticky"])).toEqual([[65.5, 87, false], [311.4, 87, false]]);
  });

  test("is below it where it would touch another label, or lie beyond the frame", () => {
    expect(placesOf([[100, 100], [133, 100]], ["range", "sticky"])).toEqual([[100, 87, false], [133, 113, false]]);
    expect(placesOf([[100, 100], [100, 100]], ["range", "sticky"])).toEqual([[100, 87, false], [100, 113, false]]);
    expect(placesOf([[100, 30]], ["range"])).toEqual([[100, 43, false]]);
  });

  test("is not nearer to another point", () => {
    expect(placesOf([[100, 76], [100, 100]], ["range", "sticky"])).toEqual([[100, 63, false], [100, 113, false]]);
    expect(placesOf([[100, 70], [100, 100]], ["range", "sticky"])).toEqual([[100, 57, false], [100, 87, false]]);
  });

  test("is beside it where others are above and below", () => {
    expect(placesOf([[150, 100], [150, 100], [150, 100], [150, 100]], ["range", "sticky", "uniform", "optimal"]))
      .toEqual([[150, 87, false], [150, 113, false], [180.7, 100, false], [119.3, 100, false]]);
  });

  test("is far from it where nothing beside it is free", () => {
    expect(placesOf([[100, 190], [100, 190]], ["range", "sticky"])).toEqual([[100, 177, false], [100, 164, true]]);
  });

  test("is missing for a figure that is not known", () => {
    expect(labelPlaces([null, [100, 100]], ["range", "sticky"], FRAME)[0]).toBeNull();
  });
});
