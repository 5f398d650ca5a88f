import { describe, expect, test } from "vitest";

import { NOBODY, Trace, heightAt, largest, unpacked, valueAt } from "./trace.js";

/** @import { Facts, Round } from "./model" */

/**
 * @param {Partial<Facts>} given
 * @returns {Facts}
 */
function factsOf(given) {
  return {
    scenario: "made", strategy: "range", seed: 0, duration: 100, end: { state: "Stable", generation: 1 },
    topics: [{ name: "t", partitions: 2 }], members: [memberOf({ name: "a" }), memberOf({ name: "b" })], lag: [], rates: {}, unowned_lag: [], idle: [],
    states: [[0, "Empty"]], machine: { states: [], kinds: {}, moves: [], coordinated: true }, added: {}, deleted: {}, sentences: [],
    marks: [], findings: [], rounds: [], circle: [], counts: 0, opens: null, ...given,
  };
}

/**
 * @param {Partial<Facts>} given
 * @param {[partition: number, owner: number, from: number, to: number][]} spans
 */
function traceOf(given, ...spans) {
  return new Trace({ document: factsOf(given), spans: Int32Array.from(spans.flat()) });
}

/**
 * @param {Partial<Facts["members"][0]>} given
 * @returns {Facts["members"][0]}
 */
function memberOf(given) {
  return { name: "a", letter: "A", colour: "#000000", ink: "#fff", instance: null, states: [], calls: [], told: [], generations: [], owned: [], lag: [[], []], load: [], process_rate: [], ...given };
}

/**
 * @param {number} began
 * @param {number | null} stable
 * @returns {Round}
 */
function round(began, stable) {
  const counts = { kept: 0, revoked: 0, assigned: 0, lost: 0 };
  return { began, formed: null, stable, waited_for: [], waited: "", generation: 1, protocol: "range", leader: 0, causes: [], report: "", counts, members: {}, flows: [], sentence: "", sentences: [] };
}

/**
 * @param {Trace} trace
 * @param {number} partition
 * @param {number[]} since
 */
function stretchesOf(trace, partition, ...since) {
  /** @type {[number, number, number[]][]} */
  const found = [];
  trace.stretches(partition, (from, to, owners) => found.push([from, to, [...owners]]), ...since);
  return found;
}

describe("a value of a series", () => {
  /** @type {[number, string][]} */
  const series = [[10, "x"], [20, "y"], [20, "z"]];

  test("holds from its time on", () => expect([10, 19, 20, 99].map((at) => valueAt(series, at))).toEqual(["x", "x", "z", "z"]));
  test("is not known before the first", () => expect(valueAt(series, 9)).toBeUndefined());
  test("is not known of an empty series", () => expect(valueAt([], 9)).toBeUndefined());
});

test("what comes in columns of steps is a series", () => {
  expect(unpacked([[2000, 1000, 0, 500], [50, null, -15, 7]])).toEqual([[2000, 5], [3000, null], [3000, 3.5], [3500, 4.2]]);
  expect(unpacked([[], []])).toEqual([]);
});

describe("a line through points", () => {
  /** @type {[number, number][]} */
  const points = [[10, 0], [20, 100]];

  test("is not known before its beginning", () => expect(heightAt(points, 9)).toBeUndefined());
  test("rises between them and then stays", () => expect([10, 15, 20, 99].map((at) => heightAt(points, at))).toEqual([0, 50, 100, 100]));
});

test("what nobody owns has its next owner from a time on, or none", () => {
  const trace = traceOf({}, [0, 0, 10, 40], [0, 1, 60, 100]);
  expect([5, 45, 100].map((at) => trace.nextTime(0, at))).toEqual([10, 60, null]);
});

describe("the spans", () => {
  test("are read from a part of a larger buffer", () => {
    const bytes = Int32Array.from([9, 9, 1, 0, 5, 15]);
    const trace = new Trace({ document: factsOf({}), spans: new DataView(bytes.buffer, 8) });
    expect([trace.count, trace.ownerAt(1, 5)]).toEqual([1, 0]);
  });

  test("of a trace without any are none", () => {
    const trace = traceOf({});
    expect([trace.count, trace.owned, trace.ownerAt(0, 50), trace.history(0)]).toEqual([0, 0, NOBODY, []]);
  });

  test("contain their beginning and not their end", () => {
    const trace = traceOf({}, [0, 1, 10, 20]);
    expect([9, 10, 19, 20].map((at) => trace.ownersAt(0, at))).toEqual([[], [1], [1], []]);
  });

  test("overlap only if they are of one partition", () => {
    expect(traceOf({}, [0, 0, 10, 30], [1, 1, 20, 40]).overlaps).toBe(false);
    expect(traceOf({}, [0, 0, 10, 30], [0, 1, 30, 40]).overlaps).toBe(false);
    expect(traceOf({}, [0, 0, 10, 90], [0, 1, 20, 30], [0, 0, 40, 50]).overlaps).toBe(true);
  });
});

describe("several owners", () => {
  const trace = traceOf({}, [0, 0, 10, 40], [0, 1, 20, 60]);

  test("are in the order in which they took over", () => expect(trace.ownersAt(0, 30)).toEqual([0, 1]));
  test("the last of them counts where there is room for one", () => expect(trace.ownerAt(0, 30)).toBe(1));
  test("the history names both", () => expect(trace.history(0)).toEqual([
    "0:00:00.010 to 0:00:00.040: a, a part of it together with b",
    "0:00:00.020 to 0:00:00.060: b, a part of it together with a",
  ]));
});

describe("the stretches of a partition", () => {
  test("begin when the group works, and end with the trace", () => {
    const trace = traceOf({}, [0, 0, 10, 40], [1, 1, 20, 100]);
    expect(stretchesOf(trace, 0)).toEqual([[10, 40, [0]], [40, 100, []]]);
    expect(stretchesOf(trace, 1)).toEqual([[10, 20, []], [20, 100, [1]]]);
  });

  test("begin when the partition exists", () => {
    const trace = traceOf({ added: { t: [[30, 1]] } }, [0, 0, 10, 100], [1, 1, 50, 100]);
    expect(stretchesOf(trace, 1)).toEqual([[30, 50, []], [50, 100, [1]]]);
  });

  test("without owners end when the topic is deleted", () => {
    expect(stretchesOf(traceOf({ deleted: { t: 60 } }, [1, 0, 10, 20]), 1)).toEqual([[10, 20, [0]], [20, 60, []]]);
    expect(stretchesOf(traceOf({ deleted: { t: 15 } }, [1, 0, 10, 20]), 1)).toEqual([[10, 20, [0]]]);
  });

  test("divide where an owner comes or goes", () => {
    const trace = traceOf({}, [0, 0, 10, 40], [0, 1, 20, 60], [1, 0, 0, 10]);
    expect(stretchesOf(trace, 0)).toEqual([[0, 10, []], [10, 20, [0]], [20, 40, [0, 1]], [40, 60, [1]], [60, 100, []]]);
  });

  test.each([[0, 100], [15, 35], [45, 55], [60, 61], [99, 100]])("from %i to %i are a part of all", (since, until) => {
    const apart = traceOf({}, [0, 0, 10, 20], [0, 1, 30, 50], [0, 0, 50, 60], [0, 1, 80, 90]);
    const all = stretchesOf(apart, 0);
    const some = stretchesOf(apart, 0, since, until);
    const wanted = all.filter(([from, to]) => to > since && from < until);
    expect(all).toEqual(expect.arrayContaining(some));
    expect(some).toEqual(expect.arrayContaining(wanted));
  });
});

describe("a member", () => {
  test("is paused until its next state, or the end", () => {
    const states = /** @type {[number, string][]} */ ([[0, "stable"], [10, "paused"], [30, "stable"], [90, "paused"]]);
    expect(traceOf({ members: [memberOf({ states })] }).paused).toEqual([[[10, 30], [90, 100]]]);
  });
});

describe("what the protocol told of a round", () => {
  const members = [memberOf({ name: "a", told: [[12, 0], [30, 1]] }), memberOf({ name: "b", told: [[11, 0], [15, 0], [60, 1]] })];
  const trace = traceOf({ members, sentences: ["saw a change", "claimed"], rounds: [round(10, 20), round(50, null)] });

  test("is in order of time, with one line for equal sentences", () => expect(trace.told(0)).toEqual([
    "0:00:00.011 a and b: saw a change (3 times)",
    "0:00:00.030 a: claimed",
  ]));
  test("of the last round lasts until the end", () => expect(trace.told(1)).toEqual(["0:00:00.060 b: claimed"]));
  test("before the first round is nothing", () => expect(trace.told(trace.roundAt(9))).toEqual([]));
});

describe("a partition", () => {
  const trace = traceOf({ topics: [{ name: "t", partitions: 2 }, { name: "u", partitions: 1 }] });

  test("is named after its topic", () => expect([0, 1, 2].map((p) => trace.name(p))).toEqual(["t-0", "t-1", "u-0"]));
});

test("the stops are where rounds end, or begin if they do not end", () => {
  const { times, duration } = traceOf({ rounds: [round(10, 20), round(50, null), round(60, 70), round(80, null)] });
  expect(times).toEqual([[10, 20], [50, 60], [60, 70], [80, duration]]);
});

test("the largest value of a series of any length", () => {
  expect(largest(Array.from({ length: 300_000 }, (_, i) => [i, i % 7]), 1)).toBe(6);
  expect(largest([], 1)).toBe(1);
});
