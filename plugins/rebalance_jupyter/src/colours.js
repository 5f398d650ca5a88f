// The colours of members. Okabe and Ito chose the palette for colour-blind readers.

const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];
export const MOST_COLOURED = 24; // at most three members share a colour; letters distinguish them
export const DARK = new Set(["#0072B2"]); // has white text; all other colours have black text
// Of owners that are too many for hues: by brightness.
export const BY_CHANGE = { kept: "#b5b5b5", fresh: "#5a5a5a" };
export const GREY = "#bbbbbb";

/** @param {number} member */
export function colourOf(member) {
  return PALETTE[member % PALETTE.length];
}

/** @param {string} colour */
export function channels(colour) {
  const n = parseInt(colour.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

/**
 * The bytes of a pixel as a number.
 * @param {string} colour
 */
export function pixel(colour) {
  const [red, green, blue] = channels(colour);
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}
