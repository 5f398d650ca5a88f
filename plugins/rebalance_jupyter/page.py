"""A view as one file that needs no kernel, no server and no network."""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rebalance_jupyter.view_model import ViewModel

STATIC = Path(__file__).parent / "static"
MODULE = STATIC / "view.js"
STYLE = STATIC / "view.css"

_MODEL = """
const state = JSON.parse(document.getElementById("state").textContent);
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
    views: Sequence[ViewModel], figures: Mapping[str, Any] | None = None, errors: Sequence[str] = ()
) -> str:
    """Return a complete page of one trace or several."""
    state = {
        "views": [{"document": v.document, "spans": base64.b64encode(v.spans).decode()} for v in views],
        "figures": figures or {},
        "errors": list(errors),
        "at": 0,
    }
    title = escape(views[0].document["scenario"] if views else "nothing to show")
    module = MODULE.read_text().replace("export default { render };", _MODEL + _RUN)
    data = json.dumps(state, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title>\n<style>{_PAGE_STYLE}{STYLE.read_text()}</style></head>\n"
        f'<body><div id="view"></div>\n<script type="application/json" id="state">{data}</script>\n'
        f'<script type="module">\n{module}</script></body></html>\n'
    )


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_PAGE_STYLE = ":root { color-scheme: light dark }\n"
_RUN = 'render({ model, el: document.getElementById("view") });\n'
