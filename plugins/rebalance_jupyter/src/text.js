// Times, names and numbers as text.

const LONGEST_NAME = 15;
export const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** @param {number} ms */
export function clockText(ms) {
  const hours = Math.floor(ms / 3600000);
  const minutes = Math.floor(ms / 60000) % 60;
  const seconds = ((ms % 60000) / 1000).toFixed(3).padStart(6, "0");
  return `${hours}:${String(minutes).padStart(2, "0")}:${seconds}`;
}

/**
 * Keep the end of a name, where names differ.
 * @param {string} name
 */
export function short(name, most = LONGEST_NAME) {
  return name.length > most ? `…${name.slice(1 - most)}` : name;
}

/**
 * Join names: "a", "a and b", "a, b and 2 more".
 * @param {string[]} names
 */
export function listed(names, most = 3) {
  if (names.length > most) return `${names.slice(0, most - 1).join(", ")} and ${names.length - most + 1} more`;
  return [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");
}

/**
 * A number in a few characters: "850", "1,200", "20.5 k", "30 M". Small ones have two digits.
 * @param {number} value
 */
export function amount(value) {
  if (value && Math.abs(value) < 10) return String(Number(value.toPrecision(2)));
  const thousands = value < 10000 ? 0 : Math.min(3, Math.floor(Math.log10(value) / 3));
  if (!thousands) return COUNT.format(value);
  const scaled = value / 1000 ** thousands;
  return `${scaled < 100 ? Number(scaled.toPrecision(3)) : COUNT.format(scaled)} ${" kMG"[thousands]}`;
}

/**
 * A length of time: "17 ms", "2.36 s", "4 min 30 s", "3 h 5 min".
 * @param {number} ms
 */
export function lasting(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${Number((ms / 1000).toFixed(ms < 10000 ? 2 : 1))} s`;
  const [large, small] = ms < 3600000 ? ["min", "s"] : ["h", "min"];
  const count = Math.round(ms / (small === "s" ? 1000 : 60000));
  const rest = count % 60;
  return `${Math.floor(count / 60)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}

/**
 * @param {number} count
 * @param {string} what
 */
export function counted(count, what) {
  return `${COUNT.format(count)} ${what}${count === 1 ? "" : "s"}`;
}

/**
 * The distance of round numbers of which at most `most` are below a limit.
 * @param {number} limit
 * @param {number} most
 */
export function roundStep(limit, most) {
  const least = limit / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}
