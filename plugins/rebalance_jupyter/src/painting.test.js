import { describe, expect, test } from "vitest";

import { channels, pixel } from "./colours.js";
import { Mixer, Painter } from "./painting.js";

const [RED, BLUE] = ["#ff0000", "#0000ff"].map(pixel);

/**
 * What `new ImageData` makes.
 * @param {number} width
 * @param {number} height
 */
function imageOf(width, height) {
  return /** @type {ImageData} */ ({ data: new Uint8ClampedArray(4 * width * height), width, height });
}

/**
 * @param {ImageData} image
 * @param {number} x
 * @param {number} y
 */
function colourAt({ data, width }, x, y) {
  const at = 4 * (y * width + x);
  return [...data.slice(at, at + 4)];
}

test("a pixel has the bytes of its colour", () => {
  expect([...new Uint8Array(Uint32Array.of(pixel("#0072B2")).buffer)]).toEqual([...channels("#0072B2"), 255]);
});

describe("a painter", () => {
  test("fills a lane up to the line between lanes", () => {
    const image = imageOf(4, 10);
    new Painter(image, 5).fill(1, 1, 3, RED);
    expect([[0, 5], [1, 4], [1, 5], [2, 8], [2, 9], [3, 5]].map(([x, y]) => colourAt(image, x, y)[0])).toEqual([0, 0, 255, 255, 0, 0]);
  });

  test("divides a high lane between owners, from top to bottom", () => {
    const image = imageOf(1, 9);
    new Painter(image, 9).share(0, 0, 1, [RED, BLUE]);
    expect([0, 3, 4, 7].map((y) => colourAt(image, 0, y)[2])).toEqual([0, 0, 255, 255]);
  });

  test("stripes one of several owners", () => {
    const image = imageOf(9, 9);
    const painter = new Painter(image, 9);
    painter.share(0, 0, 9, [RED, BLUE]);
    painter.stripe(0, 0, 9, 1, 2);
    const inks = (/** @type {number} */ y) => [0, 1, 2, 3, 4].filter((x) => Math.max(...colourAt(image, x, y).slice(0, 3)) < 100).length;
    expect([0, 3, 4, 7].map(inks)).toEqual([0, 0, 1, 1]);
  });

  test("stripes a low lane in turns", () => {
    const image = imageOf(7, 2);
    new Painter(image, 2).share(0, 0, 7, [RED, BLUE]);
    expect([0, 2, 3, 5, 6].map((x) => colourAt(image, x, 0)[0])).toEqual([255, 255, 0, 0, 255]);
  });
});

describe("a mixer", () => {
  test("mixes the lanes of a pixel", () => {
    const image = imageOf(3, 1);
    const mixer = new Mixer(image, 0.5);
    mixer.fill(0, 0, 2, RED);
    mixer.fill(1, 1, 3, BLUE);
    mixer.finish();
    expect([0, 1, 2].map((x) => colourAt(image, x, 0))).toEqual([[255, 0, 0, 255], [128, 0, 128, 255], [0, 0, 255, 255]]);
  });

  test("leaves empty what no lane covers", () => {
    const image = imageOf(2, 1);
    const mixer = new Mixer(image, 0.5);
    mixer.hatch(0, 1, 1);
    mixer.fill(1, 0, 1, RED);
    mixer.finish();
    expect(colourAt(image, 1, 0)).toEqual([0, 0, 0, 0]);
  });

  test("hatches a line of which one lane has no owner, and draws a new owner dark", () => {
    const image = imageOf(5, 1);
    const mixer = new Mixer(image, 0.5);
    mixer.fill(0, 0, 5, RED);
    mixer.hatch(1, 0, 2);
    mixer.fill(1, 2, 5, BLUE);
    mixer.border(1, 2, 3);
    mixer.finish();
    const [gap, , border, mixed] = [0, 1, 2, 3].map((x) => colourAt(image, x, 0));
    expect(gap).toEqual([0x88, 0x88, 0x88, 255]);
    expect(border).toEqual([0x33, 0x33, 0x33, 255]);
    expect(mixed).toEqual([128, 0, 128, 255]);
  });

  test("paints lanes into their lines, from top to bottom", () => {
    const image = imageOf(1, 2);
    const mixer = new Mixer(image, 0.5);
    for (let row = 0; row < 4; row++) mixer.fill(row, 0, 1, row < 2 ? RED : BLUE);
    mixer.finish();
    expect([0, 1].map((y) => colourAt(image, 0, y)[0])).toEqual([255, 0]);
  });
});
