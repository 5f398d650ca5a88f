import { describe, expect, test } from "vitest";

import { eventMarks, eventsOf } from "./events.js";
import { Lens } from "./lens.js";

const MINUTE = 60_000;

/**
 * @param {number} minutes of which one is 100 pixels
 * @param {[from: number, to: number]} shown
 */
function lensOf(minutes, shown = [0, minutes]) {
  const lens = new Lens(minutes * MINUTE);
  lens.resize(lens.width - lens.plot + 100 * (shown[1] - shown[0]));
  [lens.from, lens.to] = [shown[0] * MINUTE, shown[1] * MINUTE];
  return lens;
}

/**
 * @param {[minute: number, label: string][]} events
 * @param {Lens} lens
 */
function marksOf(events, lens) {
  const series = events.map(([minute, label]) => /** @type {[number, string]} */ ([minute * MINUTE, label]));
  return eventMarks(series, lens, lens.left + lens.plot).map(({ x, width, name }) => [x - lens.left, width, name]);
}

test("an event of several strategies is one, and events are in order of time", () => {
  expect(eventsOf([[[5, "crash b"], [9, "join c"]], [[2, "leave a"], [5, "crash b"]]]))
    .toEqual([[2, "leave a"], [5, "crash b"], [9, "join c"]]);
});

describe("the mark of an event", () => {
  test("is two pixels wide, with its middle at the time", () => {
    expect(marksOf([[1, "join c3"], [3, "crash c2"]], lensOf(6))).toEqual([[99, 2, "join c3"], [299, 2, "crash c2"]]);
  });

  test("is missing outside of the time that is shown", () => {
    expect(marksOf([[1, "join c3"], [3, "crash c2"]], lensOf(8, [2, 8]))).toEqual([[99, 2, "crash c2"]]);
  });

  test("has the kind of the event where the name has no room", () => {
    expect(marksOf([[1, "add_partitions orders"], [2, "join a"]], lensOf(6)))
      .toEqual([[99, 2, "add_partitions"], [199, 2, "join a"]]);
  });

  test("has a part of the kind where that has no room, either", () => {
    expect(marksOf([[1, "coordinator_failover broker 1"], [2, "join a"]], lensOf(6)))
      .toEqual([[99, 2, "coordinator_f…"], [199, 2, "join a"]]);
  });

  test("has no name before one that is near, whose name begins with the number of those", () => {
    expect(marksOf([[1, "pause a"], [1.1, "join b"]], lensOf(6))).toEqual([[99, 2, ""], [109, 2, "+1, join b"]]);
    expect(marksOf([[1, "pause a"], [1.1, "pause b"], [1.4, "join c"]], lensOf(6))).toEqual([[99, 2, ""], [109, 2, "+2"], [139, 2, "join c"]]);
  });

  test("leaves no event without a name or a number", () => {
    let state = 7;
    const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
    for (let run = 0; run < 50; run++) {
      const events = Array.from({ length: 1 + run }, (_, i) => /** @type {[number, string]} */ ([6 * MINUTE * random() ** 3, `crash c${i}`]))
        .sort(([a], [b]) => a - b);
      const lens = lensOf(6);
      const marks = eventMarks(events, lens, lens.width);
      expect(marks.flatMap(({ named }) => named)).toEqual(events);
      for (const { name, named } of marks) expect(Boolean(name)).toBe(named.length > 0);
    }
  });

  test("is that of all events less than a pixel apart, with their names or their number", () => {
    expect(marksOf([[1, "crash a"], [1, "crash b"], [1.02, "leave c"]], lensOf(6))).toEqual([[99, 4, "crash a, crash b, leave c"]]);
    const crowd = Array.from({ length: 121 }, (_, i) => /** @type {[number, string]} */ ([1 + i / 40, `crash c${i}`]));
    expect(marksOf(crowd, lensOf(6))).toEqual([[99, 302, "121 events"]]);
  });
});
