// The data of one trace.

import { MOST_COLOURED } from "./colours.js";
import { COUNT, clockText, counted, lasting, listed } from "./text.js";

/** @import { Packed, Series, ViewState } from "./model" */

export const NOBODY = -1;
/** @type {number[]} */
const NONE = [];
const HOT = 2;
const MOST_HOT = 50;

/**
 * The last value at or before a time.
 * @template Value
 * @param {Series<Value>} series
 * @param {number} at
 * @returns {Value | undefined}
 */
export function valueAt(series, at) {
  return series[countUntil(series, at) - 1]?.[1];
}

/**
 * How many values of a series are at or before a time.
 * @param {Series<unknown>} series
 * @param {number} at
 */
export function countUntil(series, at) {
  let low = 0;
  let high = series.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (series[middle][0] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The largest value of a series, at least `least`.
 * @param {Series<number>} series
 * @param {number} least
 */
export function largest(series, least) {
  return series.reduce((most, [, value]) => Math.max(most, value), least);
}

/**
 * The height of a line through points at a time, undefined before it begins.
 * @param {Series<number>} points
 * @param {number} at
 */
export function heightAt(points, at) {
  const next = countUntil(points, at);
  if (!next) return undefined;
  if (next === points.length) return points[next - 1][1];
  const [[from, low], [to, high]] = [points[next - 1], points[next]];
  return low + ((high - low) * (at - from)) / (to - from);
}

/**
 * The series of columns of steps, as the model sends them.
 * @param {Packed} columns
 * @returns {Series<number | null>}
 */
export function unpacked([times, tenths]) {
  let at = 0;
  let value = 0;
  return times.map((step, n) => {
    at += step;
    value += tenths[n] ?? 0;
    return [at, tenths[n] === null ? null : value / 10];
  });
}

export class Trace {
  /** @param {ViewState} state */
  constructor({ document: facts, spans }) {
    Object.assign(this, facts);
    this.members = facts.members.map((member) => ({ ...member, lag: unpacked(member.lag) }));
    const bytes = ArrayBuffer.isView(spans) ? spans : new DataView(spans);
    const copy = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    this.spans = new Int32Array(copy); // partition, owner, from, to
    this.count = this.spans.length / 4;
    this.partitions = this.topics.reduce((sum, topic) => sum + topic.partitions, 0);
    this.first = new Int32Array(this.partitions + 1); // spans of partition p: first[p] .. first[p + 1] - 1
    for (let i = 0; i < this.count; i++) this.first[this.spans[4 * i] + 1] = i + 1;
    for (let p = 1; p <= this.partitions; p++) this.first[p] = Math.max(this.first[p], this.first[p - 1]);
    // A round that was aborted ends when the next one begins.
    /** @type {[began: number, ended: number][]} */
    this.times = this.rounds.map(({ began, stable }, i) => [began, stable ?? this.rounds[i + 1]?.began ?? this.duration]);
    this.owned = this.duration; // the time at which a member first owns a partition
    for (let i = 0; i < this.count; i++) this.owned = Math.min(this.owned, this.spans[4 * i + 2]);
    if (!this.count) this.owned = 0;
    this.overlaps = false; // whether a partition has several owners at one time
    for (let i = 1, until = 0; i < this.count; i++) {
      const [before, , , end, partition, , from] = this.spans.subarray(4 * i - 4, 4 * i + 4);
      until = partition === before ? Math.max(until, end) : 0;
      this.overlaps ||= from < until;
    }
    /** @type {{ key: string, found: [partition: number, rate: number][] } | null} */
    this.hot = null;
    this.paused = this.members.map(({ states }) => states.flatMap(([at, state], n) =>
      state === "paused" ? [[at, states[n + 1]?.[0] ?? this.duration]] : []));
    this.since = this.topics.flatMap(({ name, partitions }) => Array.from({ length: partitions }, (_, number) =>
      this.added[name]?.findLast(([, first]) => number >= first)?.[0] ?? 0));
    this.until = this.topics.flatMap(({ name, partitions }) => Array.from({ length: partitions }, () => this.deleted[name] ?? this.duration));
  }

  /**
   * If several members own the partition, the one that took it over last.
   * @param {number} partition
   * @param {number} at
   */
  ownerAt(partition, at) {
    for (let i = this.first[partition + 1] - 1; i >= this.first[partition]; i--)
      if (this.spans[4 * i + 2] <= at && at < this.spans[4 * i + 3]) return this.spans[4 * i + 1];
    return NOBODY;
  }

  /**
   * In the order in which they took the partition over.
   * @param {number} partition
   * @param {number} at
   */
  ownersAt(partition, at) {
    /** @type {number[]} */
    const owners = [];
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (this.spans[4 * i + 2] <= at && at < this.spans[4 * i + 3]) owners.push(this.spans[4 * i + 1]);
    return owners;
  }

  /**
   * Visit the stretches of time in which a partition has the same owners. A stretch without owners begins when
   * the partition exists and the group has begun to work, and ends when its topic is deleted. Only those within a window of time, and at least one
   * before it, need to be visited. The owners are valid until `visit` returns.
   * @param {number} partition
   * @param {(from: number, to: number, owners: number[]) => void} visit
   */
  stretches(partition, visit, since = 0, until = this.duration) {
    const { spans } = this;
    const end = this.first[partition + 1];
    const last = Math.min(this.duration, until);
    const alone = [NOBODY]; // one array for all stretches with one owner, which are many
    let next = this.firstSpan(partition, since);
    /** @type {number[]} */
    let held = []; // spans
    let at = this.firstTime(partition, next);
    while (at < last) {
      if (held.length) held = held.filter((i) => spans[4 * i + 3] > at);
      const isAlone = next < end && spans[4 * next + 2] <= at && (next + 1 === end || spans[4 * next + 3] <= spans[4 * next + 6]);
      if (!held.length && isAlone) { // as most are
        alone[0] = spans[4 * next + 1];
        visit(at, spans[4 * next + 3], alone);
        at = spans[4 * next + 3];
        next += 1;
        continue;
      }
      while (next < end && spans[4 * next + 2] <= at) held.push(next++);
      let to = next < end ? spans[4 * next + 2] : this.duration;
      for (const i of held) to = Math.min(to, spans[4 * i + 3]);
      if (held.length) visit(at, to, held.map((i) => spans[4 * i + 1]));
      else this.unowned(partition, at, to, visit);
      at = to;
    }
  }

  /**
   * Visit a stretch without owners, up to the end of the topic.
   * @param {number} partition
   * @param {number} from
   * @param {number} to
   * @param {(from: number, to: number, owners: number[]) => void} visit
   */
  unowned(partition, from, to, visit) {
    const end = Math.min(to, this.until[partition]);
    if (from < end) visit(from, end, NONE);
  }

  /**
   * The time at which a span begins; before the first one, that at which the partition waits for an owner.
   * @param {number} partition
   * @param {number} span
   */
  firstTime(partition, span) {
    const at = span < this.first[partition + 1] ? this.spans[4 * span + 2] : this.duration;
    return span > this.first[partition] ? at : Math.min(at, Math.max(this.owned, this.since[partition]));
  }

  /**
   * The last span of a partition that ends before a time, or its first. Spans that overlap are not in order of their
   * ends.
   * @param {number} partition
   * @param {number} at
   */
  firstSpan(partition, at) {
    let low = this.first[partition];
    if (this.overlaps) return low;
    let high = this.first[partition + 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.spans[4 * middle + 3] <= at) low = middle;
      else high = middle;
    }
    return low;
  }

  /**
   * When a partition next gets an owner, after a time at which nobody has it; null if it does not.
   * @param {number} partition
   * @param {number} at
   */
  nextTime(partition, at) {
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (this.spans[4 * i + 2] > at) return this.spans[4 * i + 2];
    return null;
  }

  /**
   * The spans of a partition at a time: owner, from, to.
   * @param {number} partition
   * @param {number} at
   */
  spansAt(partition, at) {
    /** @type {number[][]} */
    const found = [];
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (this.spans[4 * i + 2] <= at && at < this.spans[4 * i + 3]) found.push([...this.spans.subarray(4 * i + 1, 4 * i + 4)]);
    return found;
  }

  /**
   * The records per second of a partition over time.
   * @param {number} partition
   * @returns {Series<number>}
   */
  ratesOf(partition) {
    const [topic, number] = this.placeOf(partition);
    return (this.rates[topic.name] ?? []).map(([at, rates]) => [at, Array.isArray(rates) ? rates[number] : rates]);
  }

  /**
   * The partitions with more than HOT times the mean rate at a time, hottest first: [partition, rate]. The key is another
   * one when rates have changed.
   * @param {number} at
   * @returns {{ key: string, found: [number, number][] }}
   */
  hotAt(at) {
    const steps = this.topics.map(({ name }) => (this.rates[name] ?? []).findLastIndex(([from]) => from <= at));
    const key = steps.join(" ");
    if (this.hot?.key === key) return this.hot;
    const rates = Array.from({ length: this.partitions }, (_, partition) => this.rateAt(partition, at) ?? 0);
    const mean = rates.reduce((sum, rate) => sum + rate, 0) / Math.max(1, rates.length);
    const found = [...rates.entries()].filter(([, rate]) => rate > HOT * mean).sort(([, a], [, b]) => b - a);
    const hot = { key, found: found.slice(0, MOST_HOT) };
    this.hot = hot;
    return hot;
  }

  /**
   * The records per second of a partition, undefined if the trace has none.
   * @param {number} partition
   * @param {number} at
   */
  rateAt(partition, at) {
    const [topic, number] = this.placeOf(partition);
    const rates = valueAt(this.rates[topic.name] ?? [], at);
    return Array.isArray(rates) ? rates[number] : rates;
  }

  /** @param {string} state */
  kind(state) {
    return this.machine.kinds[state];
  }

  /**
   * What the protocol tells of a round, in lines: equal sentences of several members share one.
   * @param {number} number
   */
  told(number) {
    const round = this.rounds[number];
    if (!round) return [];
    const end = this.rounds[number + 1]?.began ?? this.duration + 1;
    const lines = new Map();
    for (const member of this.members)
      for (const [at, said] of member.told) {
        if (at < round.began || at >= end) continue;
        const line = lines.get(said) ?? { at, said: this.sentences[said], names: new Set(), times: 0 };
        line.at = Math.min(line.at, at);
        line.names.add(member.name);
        line.times += 1;
        lines.set(said, line);
      }
    return [...lines.values()].sort((a, b) => a.at - b.at).map(({ at, said, names, times }) =>
      `${clockText(at)} ${listed([...names])}: ${said}${times > names.size ? ` (${COUNT.format(times)} times)` : ""}`);
  }

  /** @param {number} at */
  roundAt(at) {
    return this.rounds.findLastIndex((round) => round.began <= at);
  }

  /**
   * The topic of a partition and its number in it.
   * @param {number} partition
   * @returns {[topic: { name: string }, number: number]}
   */
  placeOf(partition) {
    let rest = partition;
    for (const topic of this.topics) {
      if (rest < topic.partitions) return [topic, rest];
      rest -= topic.partitions;
    }
    return [{ name: "" }, partition];
  }

  /** @param {number} partition */
  name(partition) {
    const [topic, number] = this.placeOf(partition);
    return `${topic.name}-${number}`;
  }

  /**
   * The changes from outside within some milliseconds of a time, in lines.
   * @param {number} at
   * @param {number} within
   */
  marksNear(at, within) {
    return this.marks.filter(([time]) => Math.abs(time - at) <= within).map(([time, label]) => `${clockText(time)} ${label}`);
  }

  /**
   * A state that holds at a time: how it is called, since when, until when, how long.
   * @param {Series<string>} states
   * @param {number} at
   */
  stateLine(states, at) {
    const next = states.findIndex(([time]) => time > at);
    if (!next || !states.length) return [];
    const [from, state] = states[(next < 0 ? states.length : next) - 1];
    const to = next < 0 ? this.duration : states[next][0];
    return [`${state} for ${lasting(to - from)}, ${clockText(from)} to ${clockText(to)}`];
  }

  /**
   * A round in lines: when it began and ended, how long it took, and how many partitions moved.
   * @param {number} number
   */
  roundLines(number) {
    const round = this.rounds[number];
    const moved = round.flows.reduce((sum, [, , count]) => sum + count, 0);
    const ended = round.stable === null ? "never ended" : `ended ${clockText(round.stable)}, took ${lasting(round.stable - round.began)}`;
    return [`Round ${number + 1} of ${this.rounds.length}`, `began ${clockText(round.began)}, ${ended}`, `${counted(moved, "partition")} moved`];
  }

  /**
   * The number of the round that goes on at a time, or NOBODY between rounds.
   * @param {number} at
   */
  roundDuring(at) {
    const number = this.roundAt(at);
    const round = this.rounds[number];
    return round && at <= this.times[number][1] ? number : NOBODY;
  }

  /**
   * The number of the partition of a name, or NOBODY.
   * @param {string} name
   */
  numberOf(name) {
    let first = 0;
    for (const topic of this.topics) {
      const number = Number(name.slice(topic.name.length + 1));
      if (number < topic.partitions && name === `${topic.name}-${number}`) return first + number;
      first += topic.partitions;
    }
    return NOBODY;
  }

  // With too many members, colours show changes of owners instead.
  get coloursAreMembers() {
    return this.members.length <= MOST_COLOURED;
  }

  /** @param {number} partition */
  history(partition) {
    const lines = [];
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++) {
      const [, owner, from, to] = this.spans.subarray(4 * i, 4 * i + 4);
      lines.push(`${clockText(from)} to ${clockText(to)}: ${this.members[owner].name}${this.beside(partition, i)}`);
    }
    return lines;
  }

  /**
   * Name the members that own a partition during a span of another one.
   * @param {number} partition
   * @param {number} span
   */
  beside(partition, span) {
    const [, , from, to] = this.spans.subarray(4 * span, 4 * span + 4);
    const names = new Set();
    for (let i = this.first[partition]; i < this.first[partition + 1]; i++)
      if (i !== span && this.spans[4 * i + 2] < to && from < this.spans[4 * i + 3])
        names.add(this.members[this.spans[4 * i + 1]].name);
    return names.size ? `, a part of it together with ${listed([...names])}` : "";
  }
}
