// What one sees as an image: the drawing in an SVG document with the styles that it has on the page.

const XHTML = "http://www.w3.org/1999/xhtml";
const LEFT_OUT = ".rbl-controls, .rbl-live, .rbl-pinned button + button, form, select, details:not([open])";
const SCALE = 2; // pixels of a PNG for each of the page

// The rules of the drawing, also where the application has wrapped them in others.
function rules() {
  return [...document.styleSheets].flatMap((sheet) => {
    try {
      return [...sheet.cssRules].map((rule) => rule.cssText).filter((text) => text.includes("rbl"));
    } catch {
      return []; // of another origin
    }
  }).join("\n");
}

/** @param {HTMLElement} root */
export function seen(root) {
  const { width, height } = root.getBoundingClientRect();
  const copy = /** @type {HTMLElement} */ (root.cloneNode(true));
  const canvases = [...copy.querySelectorAll("canvas")];
  [...root.querySelectorAll("canvas")].forEach((canvas, i) => {
    const image = document.createElement("img");
    image.src = canvas.toDataURL();
    image.style.cssText = `${canvas.style.cssText}; display: block`;
    canvases[i].replaceWith(image);
  });
  for (const element of copy.querySelectorAll(LEFT_OUT)) element.remove();
  const now = getComputedStyle(root);
  for (const name of ["--rbl-ink", "--rbl-quiet", "--rbl-ground", "--rbl-line", "--rbl-wrong", "--rbl-bar"])
    copy.style.setProperty(name, now.getPropertyValue(name));
  copy.style.fontFamily = "system-ui, sans-serif";
  copy.setAttribute("xmlns", XHTML);
  const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}"`;
  const style = `<style xmlns="${XHTML}">${rules().replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</style>`;
  const drawn = new XMLSerializer().serializeToString(copy);
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}><foreignObject width="100%" height="100%">${style}${drawn}</foreignObject></svg>`;
}

/** @param {string} text */
const address = (text) => `data:image/svg+xml,${encodeURIComponent(text)}`;

/**
 * @param {string} href
 * @param {string} name
 */
function download(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

/**
 * Save what one sees as SVG or PNG.
 * @param {HTMLElement} root
 * @param {string} name
 * @param {string} kind
 */
export async function save(root, name, kind) {
  const svg = address(seen(root));
  if (kind === "svg") return download(svg, `${name}.svg`);
  const image = new Image();
  image.src = svg;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * image.width;
  canvas.height = SCALE * image.height;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return download(canvas.toDataURL(), `${name}.png`);
}
