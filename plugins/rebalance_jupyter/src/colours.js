// The colours that are not those of members, which the model has.

export const MOST_COLOURED = 24; // at most three members share a colour; letters distinguish them
// Of owners that are too many for hues: by brightness.
export const BY_CHANGE = { kept: "#b5b5b5", fresh: "#5a5a5a" };
export const GREY = "#bbbbbb";

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
