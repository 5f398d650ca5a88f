import { expect, test } from "vitest";

import { amount, clockText, lasting, listed, short } from "./text.js";

test.each([
  [0, "0:00:00.000"],
  [61_001, "0:01:01.001"],
  [36_000_000, "10:00:00.000"],
  [86_399_999, "23:59:59.999"],
])("%i milliseconds are %s", (ms, text) => expect(clockText(ms)).toBe(text));

test("a long name keeps its end, where names differ", () => {
  expect(short("fifteen-letters")).toBe("fifteen-letters");
  expect(short("a-consumer-of-orders-17")).toBe("…r-of-orders-17");
});

test.each([
  [[], ""],
  [["a"], "a"],
  [["a", "b"], "a and b"],
  [["a", "b", "c"], "a, b and c"],
  [["a", "b", "c", "d"], "a, b and 2 more"],
])("the names %j are listed as '%s'", (names, text) => expect(listed(names)).toBe(text));


test.each([
  [0, "0"], [0.123, "0.12"], [9.96, "10"], [850, "850"], [1200, "1,200"], [20_500, "20.5 k"], [999_999, "1,000 k"], [3_000_000, "3 M"],
  [30_000_000, "30 M"],
])("the amount %d is %s", (value, text) => expect(amount(value)).toBe(text));

test.each([
  [17, "17 ms"], [2_360, "2.36 s"], [59_900, "59.9 s"], [60_000, "1 min"], [270_000, "4 min 30 s"],
  [11_100_000, "3 h 5 min"],
])("%i milliseconds last %s", (ms, text) => expect(lasting(ms)).toBe(text));
