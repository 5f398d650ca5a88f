import { expect, test } from "vitest";
import { corners } from "./lag.js";
import { heightAt } from "./trace.js";

/** @import { Series } from "./model" */

/**
 * The least and the largest height of a line in a column, and its heights at the column's ends.
 * @param {Series<number>} points
 * @param {number} column
 */
function seen(points, column) {
  const ends = [column, column + 1].map((at) => heightAt(points, at) ?? 0);
  const heights = [...ends, ...points.filter(([at]) => column <= at && at < column + 1).map(([, value]) => value)];
  return [...ends, Math.min(...heights), Math.max(...heights)].map((value) => Number(value.toFixed(6)));
}

test("each column of a line has the range of all its points, and at its ends the same values", () => {
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  for (let run = 0; run < 200; run++) {
    const columns = 1 + Math.floor(random() * 12);
    /** @type {Series<number>} */
    const points = Array.from({ length: 2 + Math.floor(random() ** 2 * 400) }, () =>
      /** @type {[number, number]} */ ([random() ** (1 + (run % 3)) * columns, Math.floor(random() * 9)])).sort(([a], [b]) => a - b);
    const kept = corners(points, Math.floor);
    expect(kept.length).toBeLessThanOrEqual(4 * columns);
    for (let column = 0; column < columns; column++) expect(seen(kept, column)).toEqual(seen(points, column));
  }
});
