"""Pictures as PNG, by a package that is not among the requirements."""

from functools import cache
from typing import Any

from coordinator_core.errors import InputError
from rebalance_lab.verdicts.picture import FONTS

_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9" font-family="{}">M</text></svg>'
)


def png_of(svg: str, *, scale: float) -> bytes:
    """Return a picture in SVG as PNG, ``scale`` times as wide and as high.

    Raises:
        InputError: if the package resvg-py is not installed, or if there is none of the fonts.
    """
    return bytes(_resvg().svg_to_bytes(svg_string=svg, zoom=scale))


@cache
def _resvg() -> Any:
    """Return the module that draws SVG. It leaves out text for which there is no font."""
    try:
        import resvg_py
    except ImportError as error:
        expected = 'it installed: pip install "rebalance-lab[png]"'
        raise InputError("PNG", "no module resvg_py", expected) from error
    with_text, without = (
        resvg_py.svg_to_bytes(svg_string=_PROBE.format(fonts)) for fonts in (FONTS, "no such font")
    )
    if with_text == without:
        raise InputError("PNG", "none of the fonts of the picture", f"one of {FONTS}")
    return resvg_py
