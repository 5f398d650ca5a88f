// Elements of HTML and SVG.

const NS = "http://www.w3.org/2000/svg";

/** @typedef {Record<string, any>} Attributes null and undefined are left out; "onclick" is a listener */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {(Node | string)[]} children
 */
export function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {(Node | string)[]} children
 */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * Set attributes that have other values. To set an equal one makes the browser lay out the drawing again.
 * @param {Element} element
 * @param {Attributes} attributes
 */
export function adjust(element, attributes) {
  for (const [name, value] of Object.entries(attributes))
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/**
 * Set the text of an element if it is another one, for the same reason.
 * @param {Element} element
 * @param {string} text
 */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @typedef {{ attributes: Attributes, words?: string, title?: string }} Wanted An element with its text and its title. */

/**
 * Give a group the wanted elements. Those that it has are changed, as new ones take longer to lay out.
 * @param {SVGElement} group
 * @param {"line" | "rect" | "text"} tag
 * @param {Wanted[]} wanted all of them with the same attributes, and with texts and titles or without
 */
export function refill(group, tag, wanted) {
  while (group.childElementCount > wanted.length) group.lastElementChild?.remove();
  wanted.forEach(({ attributes, words, title }, i) => {
    const element = group.children[i] ?? group.appendChild(svg(tag));
    adjust(element, attributes);
    if (words !== undefined) write(element, words);
    if (title !== undefined) write(element.firstElementChild ?? element.appendChild(svg("title")), title);
  });
}

// Ids must be unique in the document, which may load this module once for each widget.
export function freshId() {
  return `rbl-${Math.random().toString(36).slice(2)}`;
}

/**
 * Set the size of a canvas in pixels of the page; it has as many as the device. Return whether it was another: to set
 * an equal one takes time, too.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @param {number} ratio
 */
export function resized(canvas, width, height, ratio) {
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  const changed = canvas.width !== across || canvas.height !== down;
  if (changed) {
    canvas.width = across;
    canvas.height = down;
  }
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  return changed;
}

/**
 * An entry of a legend. Without a colour it has a pattern, of a class.
 * @param {string | null} colour
 * @param {string} label
 */
export function entry(colour, label, pattern = "rbl-hatched") {
  return html("span", {}, html("i", colour ? { style: `background: ${colour}` } : { class: pattern }), label);
}

/**
 * @param {string} words
 * @param {Attributes} attributes
 */
export function worded(words, attributes) {
  const text = svg("text", attributes);
  text.textContent = words;
  return text;
}

/**
 * @template {Element} Titled
 * @param {Titled} element
 * @param {string} text
 */
export function titled(element, text) {
  const title = svg("title");
  title.textContent = text;
  element.append(title);
  return element;
}

