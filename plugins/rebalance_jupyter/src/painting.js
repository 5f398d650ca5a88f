// Lanes into pixels. Colours are numbers, as `pixel` makes them.

import { GREY as NO_OWNER, pixel } from "./colours.js";

const LEAST_SPLIT = 6; // lanes of this height are divided between several owners, lower ones are striped
const STRIPE = 3;
const [LIGHT, DARK, INK, GREY] = ["#dddddd", "#888888", "#333333", NO_OWNER].map(pixel);

// Paints lanes that are at least one pixel high.
export class Painter {
  /**
   * @param {ImageData} image
   * @param {number} lane
   * @param {number} ratio
   */
  constructor(image, lane, ratio = 1) {
    this.pixels = new Uint32Array(image.data.buffer).fill(0);
    this.width = image.width;
    this.lane = lane;
    this.ratio = ratio;
    this.apart = lane > 3 * ratio ? Math.round(ratio) : 0; // a line between lanes where there is room
  }

  /**
   * @param {number} row
   */
  top(row) {
    return Math.round(row * this.lane);
  }

  /**
   * @param {number} row
   */
  bottom(row) {
    return this.top(row + 1) - this.apart;
  }

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   * @param {number} colour
   */
  fill(row, from, to, colour) {
    for (let y = this.top(row); y < this.bottom(row); y++) this.pixels.fill(colour, y * this.width + from, y * this.width + to);
  }

  /**
   * Several owners: from top to bottom, or in turns where the lane is low.
   * @param {number} row
   * @param {number} from
   * @param {number} to
   * @param {number[]} colours
   */
  share(row, from, to, colours) {
    for (let y = this.top(row); y < this.bottom(row); y++) {
      const band = this.band(row, y, colours.length);
      for (let x = from; x < to; x++)
        this.pixels[y * this.width + x] = colours[band < 0 ? Math.floor(x / (STRIPE * this.ratio)) % colours.length : band];
    }
  }

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   */
  hatch(row, from, to) {
    for (let y = this.top(row); y < this.bottom(row); y++)
      for (let x = from; x < to; x++) this.pixels[y * this.width + x] = this.isLine(x, y) ? DARK : LIGHT;
  }

  /**
   * The part of a lane at a height, of one that is divided; -1 if it is too low for that.
   * @param {number} row
   * @param {number} y
   * @param {number} parts
   */
  band(row, y, parts) {
    const [top, bottom] = [this.top(row), this.bottom(row)];
    return this.lane < LEAST_SPLIT * this.ratio ? -1 : Math.floor(((y - top) * parts) / (bottom - top));
  }

  /**
   * One of the parts of a lane, or all of it.
   * @param {number} row
   * @param {number} from
   * @param {number} to
   */
  stripe(row, from, to, part = 0, parts = 1) {
    for (let y = this.top(row); y < this.bottom(row); y++) {
      if (parts > 1 && this.band(row, y, parts) !== part) continue;
      for (let x = from; x < to; x++) if (this.isLine(x, y)) this.pixels[y * this.width + x] = INK;
    }
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  isLine(x, y) {
    return Math.floor((x + y) / this.ratio) % 5 === 0;
  }

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   */
  border(row, from, to) {
    if (this.lane > 2 * this.ratio) this.fill(row, from, to, INK);
  }

  finish() {}
}

// Paints several lanes per pixel by mixing their colours. Sums are stored as differences between neighbouring pixels, so
// that the cost of a span does not depend on its length. What a single lane would lose in the mix is not mixed: a change
// of the owner is dark, and where a lane has no owner the line is hatched.
export class Mixer {
  /**
   * @param {ImageData} image
   * @param {number} lane
   */
  constructor(image, lane) {
    this.pixels = new Uint32Array(image.data.buffer);
    this.width = image.width;
    this.lane = lane;
    this.line = 0;
    this.sums = new Int32Array(5 * (image.width + 1)); // red, green, blue, lanes, and lanes without an owner
    this.changes = new Uint8Array(image.width + 1); // whether the sums change at a pixel
    this.moves = new Uint8Array(image.width);
  }

  /**
   * @param {number} row
   */
  goTo(row) {
    const line = Math.floor(row * this.lane);
    if (line === this.line) return;
    this.finish();
    this.line = line;
  }

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   * @param {number} colour
   */
  fill(row, from, to, colour) {
    this.goTo(row);
    if (from >= to) return;
    this.add(from, colour, 1);
    this.add(to, colour, -1);
  }

  /**
   * Change the sums at a pixel by a lane that begins (1) or ends (-1) there.
   * @param {number} x
   * @param {number} colour
   * @param {number} sign
   */
  add(x, colour, sign) {
    const { sums } = this;
    const at = 5 * x;
    sums[at] += sign * (colour & 255);
    sums[at + 1] += sign * ((colour >> 8) & 255);
    sums[at + 2] += sign * ((colour >> 16) & 255);
    sums[at + 3] += sign;
    this.changes[x] = 1;
  }

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   * @param {number[]} colours
   */
  share(row, from, to, colours) {
    for (const colour of colours) this.fill(row, from, to, colour);
  }

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   */
  hatch(row, from, to) {
    this.fill(row, from, to, GREY);
    if (from >= to) return;
    this.sums[5 * from + 4] += 1;
    this.sums[5 * to + 4] -= 1;
  }

  // Lanes that are mixed have no room for stripes.
  stripe() {}

  /**
   * @param {number} row
   * @param {number} from
   * @param {number} to
   */
  border(row, from, to) {
    this.goTo(row);
    this.moves.fill(1, from, to);
  }

  // Write the line of pixels, and begin an empty one.
  finish() {
    const { sums, changes, moves, pixels, width } = this;
    const start = this.line * width;
    let [red, green, blue, lanes, without] = [0, 0, 0, 0, 0];
    changes[width] = 1; // where the last run of equal pixels ends
    pixels.fill(0, start, start + width);
    for (let x = changes.indexOf(1); x < width;) {
      const next = changes.indexOf(1, x + 1);
      const at = 5 * x;
      red += sums[at];
      green += sums[at + 1];
      blue += sums[at + 2];
      lanes += sums[at + 3];
      without += sums[at + 4];
      const mixed = lanes ? packed(red / lanes, green / lanes, blue / lanes) : 0;
      pixels.fill(mixed, start + x, start + next);
      if (without) this.hatchPixels(start, x, next, halfway(mixed, LIGHT));
      x = next;
    }
    for (let x = moves.indexOf(1); x >= 0; x = moves.indexOf(1, x + 1)) pixels[start + x] = INK;
    sums.fill(0);
    changes.fill(0);
    moves.fill(0);
  }

  /**
   * @param {number} start
   * @param {number} from
   * @param {number} to
   * @param {number} light
   */
  hatchPixels(start, from, to, light) {
    for (let x = from; x < to; x++) this.pixels[start + x] = (x + this.line) % 5 ? light : DARK;
  }
}

/**
 * @param {number} red
 * @param {number} green
 * @param {number} blue
 */
function packed(red, green, blue) {
  return ((255 << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
}

/**
 * @param {number} one
 * @param {number} other
 */
function halfway(one, other) {
  return ((255 << 24) | (((one & 0xfefefe) >> 1) + ((other & 0xfefefe) >> 1))) >>> 0;
}

/**
 * A brush for lanes of a height in pixels, which can be less than one. Rows are painted in their order.
 * @param {ImageData} image
 * @param {number} lane
 * @param {number} ratio the number of pixels of the device for one of the page
 */
export function brushFor(image, lane, ratio) {
  return lane < 1 ? new Mixer(image, lane) : new Painter(image, lane, ratio);
}
