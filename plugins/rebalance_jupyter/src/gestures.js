// What the pointer does on the plots: elements of the class rbl-plot, which begin at the left edge of their view.

const CLICK = 4; // pixels that the pointer moves at most in a click
const UNTIL_NOTED = 2500; // milliseconds for which a note is shown

/**
 * A click goes to a time, a drag zooms to a stretch of time, a double click shows all. The wheel zooms at the pointer if
 * the focus is inside or Ctrl is pressed, otherwise the page scrolls.
 * @param {HTMLElement} root
 * @param {object} parts
 * @param {import("./lens.js").Lens} parts.lens
 * @param {import("./clock.js").Clock} parts.clock
 * @param {import("./view.js").View[]} parts.views
 * @param {(text: string) => void} parts.note shows a text for a moment
 */
export function gestures(root, { lens, clock, views, note }) {
  /** @type {{ plot: Element, x: number, at: number, dragging: boolean } | null} */
  let began = null; // the time at which the pointer went down, and where
  let dragged = false;

  /** @type {(event: MouseEvent, plot: Element) => number} */
  const xOf = (event, plot) => event.clientX - plot.getBoundingClientRect().left;

  /**
   * The plot at the pointer, unless the pointer is on a name or a figure.
   * @param {MouseEvent} event
   */
  const plotAt = (event) => {
    const plot = /** @type {Element} */ (event.target).closest?.(".rbl-plot");
    return plot && lens.covers(xOf(event, plot)) ? plot : null;
  };

  /** @type {(event: MouseEvent, since: { plot: Element, at: number }) => import("./stops.js").Stretch} */
  const stretch = (event, { plot, at: from }) => {
    const at = Math.max(lens.from, Math.min(lens.to, lens.at(xOf(event, plot))));
    return [Math.min(from, at), Math.max(from, at)];
  };

  const end = () => {
    began = null;
    views.forEach((view) => view.brush(null));
  };

  const acts = {
    /** @param {PointerEvent} event */
    pointerdown(event) {
      dragged = false;
      const plot = plotAt(event);
      if (!plot || event.button !== 0 || event.pointerType === "touch") return;
      began = { plot, x: event.clientX, at: lens.at(xOf(event, plot)), dragging: false };
    },

    /** @param {PointerEvent} event */
    pointermove(event) {
      if (!began) return;
      if (!began.dragging && Math.abs(event.clientX - began.x) > CLICK) {
        began.dragging = true;
        root.setPointerCapture(event.pointerId);
      }
      if (!began.dragging) return;
      const shown = stretch(event, began);
      views.forEach((view) => view.brush(shown));
    },

    /** @param {PointerEvent} event */
    pointerup(event) {
      if (!began) return;
      dragged = began.dragging;
      if (dragged) lens.zoom(...stretch(event, began));
      end();
    },

    pointercancel: end,

    /** @param {MouseEvent} event */
    click(event) {
      const plot = plotAt(event);
      if (!plot) return;
      clock.pause();
      clock.set(lens.at(xOf(event, plot)));
    },

    /** @param {MouseEvent} event */
    dblclick(event) {
      if (plotAt(event)) lens.all();
    },
  };

  /**
   * A drag ends with a click, which selects nothing.
   * @param {Event} event
   */
  const swallow = (event) => {
    if (dragged) event.stopPropagation();
    dragged = false;
  };

  /** @param {WheelEvent} event */
  const wheel = (event) => {
    const plot = plotAt(event);
    if (!plot) return;
    const pans = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const asked = event.ctrlKey || event.metaKey || event.shiftKey;
    if (!asked && !root.contains(document.activeElement)) {
      if (!pans) note("Ctrl and the wheel zoom; after a click the wheel alone does");
      return;
    }
    if (!asked && !pans && scrolls(plot)) return;
    const changed = pans
      ? lens.pan((event.deltaX || event.deltaY) / lens.plot)
      : lens.zoomBy(factor(event), lens.at(xOf(event, plot)));
    if (changed || asked) event.preventDefault(); // otherwise the page scrolls on
  };

  for (const [name, act] of Object.entries(acts)) root.addEventListener(name, /** @type {EventListener} */ (act));
  root.addEventListener("click", swallow, true);
  root.addEventListener("wheel", wheel, { passive: false });
}

/**
 * How much more time a turn of the wheel shows. A pinch on a touchpad arrives as a small turn with Ctrl.
 * @param {WheelEvent} event
 */
function factor(event) {
  const turned = (event.deltaY || event.deltaX) * (event.deltaMode ? 20 : 1);
  const pinched = event.ctrlKey && Math.abs(turned) < 50;
  return 2 ** Math.max(-1, Math.min(1, turned / (pinched ? 40 : 400)));
}

/**
 * Whether the plot is in a box that the wheel scrolls.
 * @param {Element} plot
 */
function scrolls(plot) {
  const box = plot.closest(".rbl-scroll");
  return box !== null && box.scrollHeight > box.clientHeight;
}

/**
 * Shows a text for a moment.
 * @param {HTMLElement} element
 * @returns {(text: string) => void}
 */
export function notes(element) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return (text) => {
    element.textContent = text;
    element.hidden = false;
    clearTimeout(timer);
    timer = setTimeout(() => { element.hidden = true; }, UNTIL_NOTED);
  };
}
