// The part of the time that is shown, and its place in pixels. All views share one.

import { adjust } from "./elements.js";

const LEFT = 124; // pixels for names
const RIGHT = 190; // pixels for figures
const NARROWEST = 480;
const LEAST = 20; // milliseconds that are shown at least

/** @import { Stretch } from "./stops.js" */

/**
 * A stretch of time of the least length or more, moved to lie between 0 and the duration.
 * @param {number} from
 * @param {number} to
 * @param {number} duration
 * @returns {Stretch}
 */
export function within(from, to, duration) {
  const length = Math.min(duration, Math.max(LEAST, to - from));
  const start = Math.max(0, Math.min(duration - length, (from + to - length) / 2));
  return [start, start + length];
}

export class Lens {
  /** @param {number} duration */
  constructor(duration) {
    this.duration = duration;
    // Numbers that are first whole and later not make the engine compile what uses them again, in the first frame of a zoom.
    this.from = this.to = NaN;
    this.from = 0;
    this.to = duration;
    this.width = 900;
    this.left = LEFT;
    /** @type {(() => void)[]} */
    this.listeners = [];
    /** @type {number | null} */
    this.request = null;
  }

  /**
   * Call a listener once per frame in which the window has changed.
   * @param {() => void} listener
   */
  listen(listener) {
    this.listeners.push(listener);
  }

  /**
   * Show a stretch of time. Return whether the window changed.
   * @param {number} from
   * @param {number} to
   */
  zoom(from, to) {
    const [start, end] = within(from, to, this.duration);
    if (start === this.from && end === this.to) return false;
    this.from = start;
    this.to = end;
    this.request ??= requestAnimationFrame(() => {
      this.request = null;
      for (const listener of this.listeners) listener();
    });
    return true;
  }

  /**
   * Show `factor` times as much time. The time `at` keeps its place.
   * @param {number} factor
   */
  zoomBy(factor, at = (this.from + this.to) / 2) {
    const times = Math.max(factor, LEAST / this.span);
    return this.zoom(at - (at - this.from) * times, at + (this.to - at) * times);
  }

  /**
   * Move the window by a part of its length.
   * @param {number} part
   */
  pan(part) {
    return this.zoom(this.from + part * this.span, this.to + part * this.span);
  }

  all() {
    return this.zoom(0, this.duration);
  }

  /**
   * Move the window to a time that is outside of it.
   * @param {number} at
   */
  follow(at) {
    if (!this.shows(at)) this.zoom(at - this.span / 2, at + this.span / 2);
  }

  stop() {
    cancelAnimationFrame(this.request ?? 0);
    this.listeners = [];
  }

  /**
   * Return whether the width changed.
   * @param {number} width
   */
  resize(width) {
    const before = this.width;
    this.width = Math.max(NARROWEST, Math.round(width));
    return this.width !== before;
  }

  get span() {
    return this.to - this.from;
  }

  get isWhole() {
    return this.span >= this.duration;
  }

  // The width of the plots.
  get plot() {
    return this.width - LEFT - RIGHT;
  }

  // Where figures beside the plots begin.
  get beside() {
    return this.width - RIGHT + 6;
  }

  // Pixels per millisecond.
  get scale() {
    return this.plot / Math.max(1, this.span);
  }

  /** @param {number} at */
  x(at) {
    return LEFT + (at - this.from) * this.scale;
  }

  /**
   * Like `x`, but at most at the ends of the plots.
   * @param {number} at
   */
  clipped(at) {
    return this.x(Math.max(this.from, Math.min(this.to, at)));
  }

  /**
   * A column of a canvas of a width. Multiplied first, so that the end is exactly the width.
   * @param {number} at
   */
  column(at, width = this.plot) {
    return Math.floor(((at - this.from) * width) / Math.max(1, this.span));
  }

  // The pixels of the device for one of the page.
  get ratio() {
    return globalThis.devicePixelRatio || 1;
  }

  /**
   * The time at a pixel from the left edge of a view.
   * @param {number} x
   */
  at(x) {
    return this.from + (x - LEFT) / this.scale;
  }

  /**
   * Move the line of a cursor to a time, or hide it outside of the window.
   * @param {SVGElement} line
   * @param {number} at
   */
  place(line, at) {
    const x = this.clipped(at);
    adjust(line, { visibility: this.shows(at) ? "visible" : "hidden", x1: x, x2: x });
  }

  /** @param {number} at */
  shows(at) {
    return at >= this.from && at <= this.to;
  }

  /**
   * Whether a pixel is in the plots, not on a name or a figure.
   * @param {number} x
   */
  covers(x) {
    return x >= LEFT && x <= LEFT + this.plot;
  }
}
