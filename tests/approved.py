"""Texts that were read and approved: a file for each output, in which a change of words shows."""

import os
from collections.abc import Mapping

from tests.places import DATA

APPROVE = "REBALANCE_LAB_APPROVE"
"""If it is set, the texts are written to their files, to be read and approved with the change."""


def approved(name: str, texts: Mapping[str, str]) -> None:
    """Fail unless texts, below their titles, are those of the file ``tests/data/golden/NAME.txt``."""
    path = DATA / "golden" / f"{name}.txt"
    written = "\n\n".join(f"# {title}\n{text}" for title, text in texts.items()) + "\n"
    if os.environ.get(APPROVE):
        path.write_text(written, encoding="utf-8")
    assert written.split("\n") == path.read_text(encoding="utf-8").split("\n")
