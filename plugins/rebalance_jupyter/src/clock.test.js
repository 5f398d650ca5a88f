import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Clock } from "./clock.js";

/** @typedef {[at: number, resting: boolean]} Heard */

/** @param {Clock} clock */
function heardOf(clock) {
  /** @type {Heard[]} */
  const heard = [];
  clock.listen((at, resting) => heard.push([at, resting]));
  return heard;
}

/** @param {boolean} calm whether the system requests reduced motion */
function system(calm) {
  vi.stubGlobal("matchMedia", () => ({ matches: calm }));
}

beforeEach(() => {
  vi.useFakeTimers();
  system(false);
  vi.stubGlobal("requestAnimationFrame", (/** @type {FrameRequestCallback} */ draw) => setTimeout(() => draw(performance.now()), 16));
  vi.stubGlobal("cancelAnimationFrame", clearTimeout);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("a clock", () => {
  test("stays between the beginning and the end, at whole milliseconds", () => {
    const clock = new Clock(100, []);
    const heard = heardOf(clock);
    for (const at of [-5, 3.6, 500]) clock.set(at);
    expect(heard).toEqual([[0, true], [4, true], [100, true]]);
  });

  test("steps from stop to stop, in order, and to the ends", () => {
    const clock = new Clock(100, [70, 30, 30]);
    const heard = heardOf(clock);
    for (const direction of [1, 1, 1, 1, -1, -1, -1, -1]) clock.step(direction);
    expect(heard.map(([at]) => at)).toEqual([30, 70, 100, 100, 70, 30, 0, 0]);
  });

  test("plays from the beginning to the end, and then rests", () => {
    const clock = new Clock(60_000, []);
    const heard = heardOf(clock);
    clock.play();
    vi.advanceTimersByTime(10_000);
    expect(clock.at).toBeGreaterThan(29_000);
    expect(clock.at).toBeLessThan(31_000);
    expect(heard.every(([, resting]) => !resting)).toBe(true);
    vi.advanceTimersByTime(11_000);
    expect([clock.playing, heard.at(-1)]).toEqual([false, [60_000, true]]);
  });

  test("plays from the beginning again after the end", () => {
    const clock = new Clock(60_000, []);
    clock.set(60_000);
    clock.play();
    expect(clock.at).toBe(0);
  });

  test("rests where it is paused", () => {
    const clock = new Clock(60_000, []);
    const heard = heardOf(clock);
    clock.toggle();
    vi.advanceTimersByTime(1_000);
    clock.toggle();
    const { at } = clock;
    vi.advanceTimersByTime(1_000);
    expect([clock.at, heard.at(-1)]).toEqual([at, [at, true]]);
  });

  test("a step pauses it", () => {
    const clock = new Clock(60_000, [40_000]);
    clock.play();
    clock.step(1);
    vi.advanceTimersByTime(1_000);
    expect([clock.playing, clock.at]).toEqual([false, 40_000]);
  });

  test("is silent after it is stopped", () => {
    const clock = new Clock(60_000, []);
    const heard = heardOf(clock);
    clock.play();
    heard.length = 0;
    clock.stop();
    vi.advanceTimersByTime(1_000);
    clock.set(5);
    expect(heard).toEqual([]);
  });
});

test("a clock jumps from round to round if the system requests reduced motion", () => {
  system(true);
  const clock = new Clock(60_000, [20_000, 40_000]);
  const heard = heardOf(clock);
  clock.play();
  vi.advanceTimersByTime(10_000);
  expect(heard).toEqual([[0, false], [20_000, false], [40_000, false], [60_000, false], [60_000, true]]);
});
