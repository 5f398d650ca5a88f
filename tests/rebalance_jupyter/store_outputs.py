"""Run the notebooks and store their outputs: ``python -m tests.rebalance_jupyter.store_outputs [NAME ...]``.

What is stored is the same after every run: of a widget its picture as PNG, with a digest of its SVG; streams
in one piece; no state of widgets, no times, no progress.
"""

import io
import sys
from base64 import b64encode
from hashlib import sha256
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

from rebalance_jupyter.png import png_of
from tests.places import ROOT

FOLDER = ROOT / "notebooks"
_WIDGET = "application/vnd.jupyter.widget-view+json"
_PICTURE, _PNG = "image/svg+xml", "image/png"
_COLOURS = 32
_SCALE = 1.25


def executed(notebook: Any, timeout: int = 600) -> Any:
    """Run a notebook in its folder and return it with its outputs in the form in which they are stored."""
    client = NotebookClient(
        notebook,
        timeout=timeout,
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = stored(cell.outputs)
    notebook.metadata = {name: notebook.metadata[name] for name in ("kernelspec", "language_info")}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def stored(outputs: list[Any]) -> list[Any]:
    """Return outputs in the form in which they are stored."""
    kept: list[Any] = []
    for output in outputs:
        last = kept[-1] if kept else None
        if output.output_type == "stream":
            if last is not None and (last.output_type, last.get("name")) == ("stream", output.name):
                last.text += output.text
            else:
                kept.append(output)
        elif _PICTURE in output.get("data", {}):
            kept.append(_picture(output))
        elif output.output_type == "error" or (_WIDGET not in output.data and any(_shown(output))):
            kept.append(output)
    return kept


def _shown(output: Any) -> list[str]:
    """Return what readers see of an output: not the seam above a picture, nor progress that has ended."""
    data = output.data
    return [] if "rbl-saved" in data.get("text/html", "") else [text for text in data.values() if text]


def _picture(output: Any) -> Any:
    """Return a picture as PNG in few colours. It has a digest of the SVG, which does not depend on fonts."""
    svg = output.data[_PICTURE]
    image = Image.open(io.BytesIO(png_of(svg, scale=_SCALE)))
    smaller = io.BytesIO()
    image.convert("RGB").quantize(_COLOURS).save(smaller, "PNG", optimize=True)
    data = {_PNG: b64encode(smaller.getvalue()).decode(), "text/plain": output.data["text/plain"]}
    size = {"width": round(image.width / _SCALE), "height": round(image.height / _SCALE)}
    metadata = {_PNG: size, "sha256_of_svg": sha256(svg.encode()).hexdigest()}
    return nbformat.v4.new_output("display_data", data, metadata=metadata)


def main(names: list[str]) -> None:
    """Run the notebooks whose names begin so, or all."""
    every = sorted(FOLDER.glob("*.ipynb"))
    chosen = [path for path in every if not names or path.name.startswith(tuple(names))]
    if not chosen:
        sys.exit(f"found no notebook named {', '.join(names)}, expected the beginning of a name in {FOLDER}")
    for path in chosen:
        notebook = executed(nbformat.read(path, as_version=4))
        text = nbformat.writes(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{path.name}: {len(text) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
