import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Lens, within } from "./lens.js";

/** @type {(() => void)[]} */
let frames;

beforeEach(() => {
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (/** @type {() => void} */ frame) => frames.push(frame));
});
afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a stretch of time", () => {
  test("is moved into the duration, at its length", () => {
    expect(within(-100, 100, 1000)).toEqual([0, 200]);
    expect(within(900, 1100, 1000)).toEqual([800, 1000]);
    expect(within(-100, 2000, 1000)).toEqual([0, 1000]);
  });
  test("is never shorter than twenty milliseconds", () => expect(within(500, 500, 1000)).toEqual([490, 510]));
  test("is the whole duration if that is shorter", () => expect(within(3, 4, 10)).toEqual([0, 10]));
});

describe("a lens", () => {
  test("maps times to pixels and back", () => {
    const lens = new Lens(1000);
    lens.zoom(200, 400);
    for (const at of [200, 250, 400]) expect(lens.at(lens.x(at))).toBeCloseTo(at);
    expect([lens.column(200), lens.column(400)]).toEqual([0, lens.plot]);
  });

  test("keeps the time at which it zooms in its place", () => {
    const lens = new Lens(1000);
    const before = lens.x(300);
    lens.zoomBy(0.5, 300);
    expect([lens.x(300), lens.span]).toEqual([before, 500]);
  });

  test("rests at the least length, wherever it zooms", () => {
    const lens = new Lens(1000);
    lens.zoom(500, 520);
    expect([lens.zoomBy(0.5, 500), lens.from, lens.to]).toEqual([false, 500, 520]);
  });

  test("does not pan over the ends, and tells whether it moved", () => {
    const lens = new Lens(1000);
    expect(lens.pan(1)).toBe(false);
    lens.zoom(0, 100);
    expect([lens.pan(-0.5), lens.pan(0.5), lens.from]).toEqual([false, true, 50]);
  });

  test("follows a time out of its window, and otherwise rests", () => {
    const lens = new Lens(1000);
    lens.zoom(0, 100);
    lens.follow(100);
    expect([lens.from, lens.to]).toEqual([0, 100]);
    lens.follow(500);
    expect([lens.from, lens.to]).toEqual([450, 550]);
  });

  test("tells of several changes once a frame", () => {
    const lens = new Lens(1000);
    const heard = vi.fn();
    lens.listen(heard);
    lens.zoom(0, 100);
    lens.zoom(0, 200);
    expect(frames).toHaveLength(1);
    frames[0]();
    expect(heard).toHaveBeenCalledTimes(1);
    lens.zoom(0, 300);
    expect(frames).toHaveLength(2);
  });

  test("covers the plots, not what is beside them", () => {
    const lens = new Lens(1000);
    expect([lens.left - 1, lens.left, lens.beside].map((x) => lens.covers(x))).toEqual([false, true, false]);
  });
});
