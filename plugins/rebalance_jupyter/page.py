"""A view as one file that needs no kernel, no server and no network."""

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent / "static"
MODULE = STATIC / "view.js"
STYLE = STATIC / "view.css"

_UNPACK = """\
const packed = Uint8Array.from(atob("{}"), (c) => c.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const source = await new Response(unpacked).text();
const address = URL.createObjectURL(new Blob([source], {{ type: "text/javascript" }}));
const module = await import(/* webpackIgnore: true */ address);
URL.revokeObjectURL(address);
export default module.default;
"""


def packed_module() -> str:
    """Return a module that unpacks and loads `MODULE`. Each widget carries one, also in a saved notebook."""
    return _UNPACK.format(_packed(MODULE.read_bytes()))


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


_EXPORT = re.compile(r"export\s*\{\s*(\w+) as default\s*\};?\s*$")
"""The end of the module, which a script in a page cannot have."""

_MODEL = """
const packed = Uint8Array.from(atob(document.getElementById("state").textContent), (c) => c.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const state = await new Response(unpacked).json();
for (const view of state.views) {
  view.spans = new DataView(Uint8Array.from(atob(view.spans), (c) => c.charCodeAt(0)).buffer);
}
const listeners = {};
const model = {
  get: (name) => state[name],
  set: (name, value) => {
    state[name] = value;
    for (const listener of listeners[`change:${name}`] ?? []) listener();
  },
  save_changes: () => {},
  on: (name, listener) => (listeners[name] ??= []).push(listener),
  off: (name, listener) => { listeners[name] = (listeners[name] ?? []).filter((l) => l !== listener); },
};
"""


def as_page(
    views: Sequence[Mapping[str, Any]],
    figures: Mapping[str, Any] | None = None,
    errors: Sequence[str] = (),
    *,
    notes: Sequence[Sequence[Any]] = (),
    picture: str = "",
    at_ms: int = 0,
) -> str:
    """Return a complete page of one trace or several. ``views`` have a document and spans (`ViewModel`) each.

    Its address has the time of the cursor, the stretch of time that is shown, and the selected partition.
    ``notes`` are lists of a time in milliseconds and a text. ``picture`` is an SVG
    element for readers that run no scripts. ``at_ms`` is the time of the cursor.
    """
    state = {
        "views": [{**view, "spans": base64.b64encode(view["spans"]).decode()} for view in views],
        "figures": figures or {},
        "errors": list(errors),
        "at": at_ms,
        "selected": "",
        "zoom": [],
        "notes": list(notes),
        "address": True,
    }
    title = escape(views[0]["document"]["scenario"] if views else "nothing to show")
    module = _EXPORT.sub(r"const { render } = \1;" + "\n", MODULE.read_text()) + _MODEL + _RUN
    data = _packed(json.dumps(state, separators=(",", ":")).encode())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title>\n<style>{_PAGE_STYLE}{STYLE.read_text()}</style></head>\n"
        f'<body><noscript>{picture}</noscript><main id="view"></main>\n'
        f'<script type="text/plain" id="state">{data}</script>\n'
        f'<script type="module">\n{module}</script></body></html>\n'
    )


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_PAGE_STYLE = ":root { color-scheme: light dark }\nnoscript svg { max-width: 100%; height: auto }\n"
_RUN = 'render({ model, el: document.getElementById("view") });\n'
