// The address of an exported page: #t=90.5&zoom=60-120&partition=clicks-1. Times are in seconds.

/** @typedef {{ at: number | null, zoom: [number, number] | null, partition: string }} Place Times in milliseconds. */

/** @param {string | undefined} text */
function milliseconds(text) {
  const seconds = Number(text || NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.round(1000 * seconds) : null;
}

/**
 * What is not a time is left out.
 * @param {string} hash
 * @returns {Place}
 */
export function parsed(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const [from, to] = (given.get("zoom") ?? "").split("-").map(milliseconds);
  return {
    at: milliseconds(given.get("t") ?? ""),
    zoom: from != null && to != null && from < to ? [from, to] : null,
    partition: given.get("partition") ?? "",
  };
}

/** @param {Place} place */
export function written({ at, zoom, partition }) {
  const parts = [`t=${(at ?? 0) / 1000}`];
  if (zoom) parts.push(`zoom=${Math.round(zoom[0]) / 1000}-${Math.round(zoom[1]) / 1000}`);
  if (partition) parts.push(`partition=${encodeURIComponent(partition)}`);
  return `#${parts.join("&")}`;
}

/**
 * Go to the place that the address names, and name the place in it. Returns a function that writes the address.
 * @param {object} parts
 * @param {import("./clock.js").Clock} parts.clock
 * @param {import("./lens.js").Lens} parts.lens
 * @param {() => string} parts.selected
 * @param {(partition: string) => void} parts.select
 */
export function follow({ clock, lens, selected, select }) {
  const read = () => {
    const { at, zoom, partition } = parsed(location.hash);
    if (zoom) lens.zoom(...zoom);
    if (at !== null) clock.set(at);
    if (partition) select(partition);
  };
  const write = () => {
    const zoom = lens.isWhole ? null : /** @type {[number, number]} */ ([lens.from, lens.to]);
    history.replaceState(null, "", written({ at: clock.at, zoom, partition: selected() }));
  };
  read();
  globalThis.addEventListener("hashchange", read);
  clock.listen((_, resting) => { if (resting) write(); });
  lens.listen(write);
  return write;
}
