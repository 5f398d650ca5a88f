// The time of the cursor, which all views share.

import { played } from "./quiet.js";

/** @typedef {(at: number, resting: boolean) => void} Listener */

export class Clock {
  /**
   * @param {number} duration
   * @param {number[]} stops
   * @param {import("./quiet.js").Stretch[]} quiet what playing skips
   */
  constructor(duration, stops, quiet = []) {
    this.duration = duration;
    this.quiet = quiet;
    /** @type {import("./quiet.js").Stretch | null} */
    this.skipped = null; // while it is being skipped
    /** @type {number[]} */
    this.stops = [];
    this.stopAt(stops);
    this.at = 0;
    this.playing = false;
    /** @type {Listener[]} */
    this.listeners = [];
    this.request = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.calm = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
  }

  /** @param {number[]} stops */
  stopAt(stops) {
    this.stops = [...new Set([0, ...stops, this.duration])].sort((a, b) => a - b);
  }

  /** @param {Listener} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  /**
   * Pass to the listeners whether the cursor rests. It does not rest while it plays or is dragged.
   * @param {number} at
   */
  set(at, resting = !this.playing) {
    this.at = Math.max(0, Math.min(this.duration, Math.round(at)));
    for (const listener of this.listeners) listener(this.at, resting);
  }

  /** @param {number} direction */
  step(direction) {
    this.pause();
    const next = direction > 0 ? this.stops.find((s) => s > this.at) : this.stops.findLast((s) => s < this.at);
    this.set(next ?? (direction > 0 ? this.duration : 0));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    this.playing = true;
    this.set(this.at >= this.duration ? 0 : this.at);
    if (this.calm) this.jump();
    else this.frame(performance.now());
  }

  /** @param {number} before */
  frame(before) {
    this.request = requestAnimationFrame((now) => {
      if (!this.playing) return;
      const [at, skipped] = played(this.at, now - before, this.quiet, this.duration);
      this.skipped = skipped;
      this.set(at, false);
      if (this.at >= this.duration) this.pause();
      else this.frame(now);
    });
  }

  // Step from round to round if the system requests reduced motion.
  jump() {
    this.timer = setTimeout(() => {
      if (!this.playing) return;
      this.set(this.stops.find((s) => s > this.at) ?? this.duration, false);
      if (this.at >= this.duration) this.pause();
      else this.jump();
    }, 1000);
  }

  pause() {
    if (!this.playing) return;
    this.halt();
    this.set(this.at);
  }

  halt() {
    this.playing = false;
    this.skipped = null;
    cancelAnimationFrame(this.request);
    clearTimeout(this.timer);
  }

  stop() {
    this.halt();
    this.listeners = [];
  }
}
